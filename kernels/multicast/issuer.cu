/* One issuer: rank 0 loads every tile and sends it to all. */
#include "ways.cuh"

struct issuer : together {
    const unsigned char *source;
    u32 tile_bytes, rank = cluster_rank();
    mutable walk at;
    __device__ issuer(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), at(cluster_id(), cluster_count(), tiles)
    {
    }
    __device__ __forceinline__ void release(u32 empty, u32) const { release_mask(empty, 1); }
    __device__ __forceinline__ bool fills(u32) const { return rank == 0; }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in_multicast(stage, source + (u64)at.next() * tile_bytes, tile_bytes, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_issuer(MULTICAST_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all}, issuer(source, tile_bytes, tiles));
}
