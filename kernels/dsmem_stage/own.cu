/* The measure of the others: each CTA loads its tiles itself. */
#include "ways.cuh"

struct own : plain_way {
    const unsigned char *source;
    u32 tile_bytes;
    mutable walk at;
    __device__ own(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), at(walk_of(cluster_rank(), tiles))
    {
    }
    __device__ __forceinline__ u32 hears() const { return 1; }
    __device__ __forceinline__ void release(u32 empty, u32) const
    {
        if (threadIdx.x % 32 == 0)
            arrive(empty);
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full);
    }
};

extern "C" __global__ void __launch_bounds__(DSMEM_STAGE_THREADS) dsmem_stage_own(DSMEM_STAGE_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, own(source, tile_bytes, tiles));
}
