/* Implicit sharing: every CTA of a cluster loads the whole of the same tile. */
#include "ways.cuh"

struct own : alone {
    const unsigned char *source;
    u32 tile_bytes;
    mutable walk at;
    __device__ own(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), at(cluster_id(), cluster_count(), tiles)
    {
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full);
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_own(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, own(source, tile_bytes, tiles));
}
