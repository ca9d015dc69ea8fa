/* No sharing: every CTA loads tiles of its own. */
#include "ways.cuh"

struct apart : alone {
    const unsigned char *source;
    u32 tile_bytes;
    mutable walk at;
    __device__ apart(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes),
          at(cluster_id() * cluster_size() + cluster_rank(), cluster_count() * cluster_size(), tiles)
    {
    }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full);
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_apart(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, apart(source, tile_bytes, tiles));
}
