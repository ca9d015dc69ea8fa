/* What the ways of kernels/dsmem_stage.lua have in common. The CTA of rank r serves the next rank, its receiver; the last
   serves the first. Each receiver gets tiles of its own: CTA after CTA takes the next one, round after round. */
#pragma once

#include "../common/ring.cuh"

/* `scratch`: [CTA][stage][tile], for the way through global memory. */
#define DSMEM_STAGE_PARAMETERS                                                                                               \
    const unsigned char *source, u32 *digests, u32 *last, u32 *touched, unsigned char *scratch, u32 rounds, u32 stages,      \
        u32 tile_bytes, u32 tiles, u32 read_all

#define MOVER_THREADS       128 /* beyond the ring's, where a way has threads move the bytes */
#define DSMEM_STAGE_THREADS (RING_THREADS + MOVER_THREADS)

__device__ __forceinline__ u32 receiver_rank()
{
    return cluster_rank() + 1 == cluster_size() ? 0 : cluster_rank() + 1;
}

__device__ __forceinline__ u32 sender_rank()
{
    return cluster_rank() == 0 ? cluster_size() - 1 : cluster_rank() - 1;
}

/* The tiles of the CTA of a rank of this cluster. */
__device__ __forceinline__ walk walk_of(u32 rank, u32 tiles)
{
    return walk(cluster_id() * cluster_size() + rank, cluster_count() * cluster_size(), tiles);
}

/* A way that hears from its receiver, and as a receiver tells its sender. */
struct to_receiver : plain_way {
    const unsigned char *source;
    u32 tile_bytes, receiver = receiver_rank(), sender = sender_rank();
    mutable walk at;
    __device__ to_receiver(const unsigned char *from, u32 bytes, u32 tiles)
        : source(from), tile_bytes(bytes), at(walk_of(receiver_rank(), tiles))
    {
    }
    __device__ __forceinline__ u32 hears() const { return 1; }
    __device__ __forceinline__ void release(u32 empty, u32) const
    {
        if (threadIdx.x % 32 == 0)
            arrive_remote(peer_address(empty, sender));
    }
};
