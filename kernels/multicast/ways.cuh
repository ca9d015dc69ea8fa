/* What the ways of kernels/multicast.lua have in common. A source is `tiles` tiles; cluster after cluster takes the next
   one, round after round. */
#pragma once

#include "../common/ring.cuh"

/* The next tile of a walk that starts at `unit` and goes `units` on each time. */
struct walk {
    u32 tile, units, tiles;
    __device__ __forceinline__ walk(u32 unit, u32 all_units, u32 all_tiles)
        : tile(unit % all_tiles), units(all_units % all_tiles), tiles(all_tiles)
    {
    }
    __device__ __forceinline__ u32 next()
    {
        const u32 now = tile;
        tile += units;
        if (tile >= tiles)
            tile -= tiles;
        return now;
    }
};

/* One arrival per CTA of `mask`, a lane each. */
__device__ __forceinline__ void release_mask(u32 empty, u32 mask)
{
    const u32 lane = threadIdx.x % 32;
    if (mask >> lane & 1)
        arrive_remote(peer_address(empty, lane));
}

/* A way in which nobody else copies into this CTA. */
struct alone {
    __device__ __forceinline__ u32 hears() const { return 1; }
    __device__ __forceinline__ void release(u32 empty) const
    {
        if (threadIdx.x % 32 == 0)
            arrive(empty);
    }
    __device__ __forceinline__ void wait(u32 barrier, u32 parity) const { wait_phase(barrier, parity); }
};

/* A way in which every CTA copies into every other. */
struct together {
    u32 size = cluster_size();
    __device__ __forceinline__ u32 all() const { return (1u << size) - 1; }
    __device__ __forceinline__ u32 hears() const { return size; }
    __device__ __forceinline__ void release(u32 empty) const { release_mask(empty, all()); }
    __device__ __forceinline__ void wait(u32 barrier, u32 parity) const { wait_phase(barrier, parity); }
};

/* The arguments that all kernels of the experiment take. */
#define MULTICAST_PARAMETERS                                                                                                 \
    const unsigned char *source, u32 *digests, u32 *last, u32 *touched, u32 rounds, u32 stages, u32 tile_bytes, u32 tiles,   \
        u32 read_all
