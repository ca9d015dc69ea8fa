/* Explicit multicast by turns: in each round another CTA loads the whole tile and sends it to all. That a stage is free is told
   to the CTA alone whose turn comes next with it, so that a producer waits for every phase of its mbarriers (PTX ISA 9.0,
   "mbarrier": some thread observes each phase before the next completes). At most 64 stages. */
#include "ways.cuh"

struct turns : together {
    const unsigned char *source;
    u32 tile_bytes, rank = cluster_rank();
    mutable walk at;
    mutable u64 parities = 0; /* a bit per stage: of the phase that this CTA waits for next; 1 of a fresh mbarrier has completed */
    __device__ turns(const unsigned char *from, u32 bytes, u32 tiles, u32 stages)
        : source(from), tile_bytes(bytes),
          at(cluster_id() + cluster_rank() * cluster_count(), cluster_count() * cluster_size(), tiles)
    {
        for (u32 stage = rank; stage < stages; stage += size)
            parities |= (u64)1 << stage; /* in the first round over the ring these are its own */
    }
    __device__ __forceinline__ bool fills(u32 round) const { return round % size == rank; }
    __device__ __forceinline__ u32 parity(u32 stage, u32) const
    {
        const u32 parity = parities >> stage & 1;
        parities ^= (u64)1 << stage;
        return parity;
    }
    __device__ __forceinline__ void release(u32 empty, u32 round) const
    {
        if (threadIdx.x % 32 == 0)
            arrive_remote(peer_address(empty, round % size));
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in_multicast(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_turns(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, turns(source, tile_bytes, tiles, stages));
}
