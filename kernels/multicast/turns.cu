/* Explicit multicast by turns: in each round another CTA loads the whole tile and sends it to all. */
#include "ways.cuh"

struct turns : together {
    const unsigned char *source;
    u32 tile_bytes, rank = cluster_rank();
    mutable walk at;
    __device__ turns(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), at(cluster_id(), cluster_count(), tiles)
    {
    }
    __device__ __forceinline__ void fill(u32 round, u32 stage, u32 full) const
    {
        const u32 tile = at.next();
        if (round % size == rank)
            copy_in_multicast(stage, source + (u64)tile * tile_bytes, tile_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_turns(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, turns(source, tile_bytes, tiles));
}
