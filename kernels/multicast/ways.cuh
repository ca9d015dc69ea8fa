/* What the ways of kernels/multicast.lua have in common. A source is `tiles` tiles; cluster after cluster takes the next
   one, round after round. */
#pragma once

#include "../common/ring.cuh"

/* One arrival per CTA of `mask`, a lane each. */
__device__ __forceinline__ void release_mask(u32 empty, u32 mask)
{
    const u32 lane = threadIdx.x % 32;
    if (mask >> lane & 1)
        arrive_remote(peer_address(empty, lane));
}

/* A way in which nobody else copies into this CTA. */
struct alone : plain_way {
    __device__ __forceinline__ u32 hears() const { return 1; }
    __device__ __forceinline__ void release(u32 empty, u32) const
    {
        if (threadIdx.x % 32 == 0)
            arrive(empty);
    }
};

/* A way in which every CTA copies into every other. */
struct together : plain_way {
    u32 size = cluster_size();
    __device__ __forceinline__ u32 all() const { return (1u << size) - 1; }
    __device__ __forceinline__ u32 hears() const { return size; }
    __device__ __forceinline__ void release(u32 empty, u32) const { release_mask(empty, all()); }
};

/* The arguments that all kernels of the experiment take. */
#define MULTICAST_PARAMETERS                                                                                                 \
    const unsigned char *source, u32 *digests, u32 *last, u32 *touched, u32 rounds, u32 stages, u32 tile_bytes, u32 tiles,   \
        u32 read_all
