/* Explicit multicast: each CTA loads its share of the tile, one part in `size`, and sends it to all.

   With -DPACE_CYCLES=60 the producer lets so many cycles pass between hearing that a stage is free and filling it. On an H200
   (driver 580.159.04, 2026-11-30; L2, 4 stages of 32 KiB) that delivers 21.6 TB/s instead of 16.3 with clusters of 4, 22.1
   instead of 17.7 with 8, 17.7 instead of 18.4 with 16. Why, was not found out: shares of a tile taken in another order by
   each CTA change little (16.3 and 17.8); whole tiles by turns (turns.cu) need no pause (20.7 and 20.9). */
#include "ways.cuh"

struct slices : together {
    const unsigned char *source;
    u32 tile_bytes, slice_bytes, offset;
    mutable walk at;
    __device__ slices(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), slice_bytes(bytes / cluster_size()), offset(cluster_rank() * slice_bytes),
          at(cluster_id(), cluster_count(), tiles)
    {
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
#if defined(PACE_CYCLES)
        const long long free_at = clock64();
        while (clock64() - free_at < PACE_CYCLES)
            continue;
#endif
        copy_in_multicast(stage + offset, source + (u64)at.next() * tile_bytes + offset, slice_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_slices(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, slices(source, tile_bytes, tiles));
}
