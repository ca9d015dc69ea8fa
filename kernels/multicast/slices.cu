/* Explicit multicast: each CTA loads its share of the tile, one part in `size`, and sends it to all. */
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
    __device__ __forceinline__ void fill(u32, u32 stage, u32 full) const
    {
        copy_in_multicast(stage + offset, source + (u64)at.next() * tile_bytes + offset, slice_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_slices(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, slices(source, tile_bytes, tiles));
}
