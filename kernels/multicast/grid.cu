/* As a matrix product does: in a cluster of width x height CTAs, a row shares its part of A and a column its part of B. A
   stage is half A, half B; the source is half A, half B. own: each CTA loads both parts whole; multicast: its share of the
   row's A goes to the row, its share of the column's B to the column, by masks. */
#include "ways.cuh"

struct parts {
    const unsigned char *a, *b;
    u32 bytes, width, height, x, y;
    mutable walk at_a, at_b;
    __device__ parts(const unsigned char *source, u32 stage_bytes, u32 tiles, u32 wide, u32 high)
        : a(source), b(source + (u64)tiles * (stage_bytes / 2)), bytes(stage_bytes / 2), width(wide), height(high),
          x(cluster_rank() % wide), y(cluster_rank() / wide),
          at_a(cluster_id() * high + y, cluster_count() * high, tiles),
          at_b(cluster_id() * wide + x, cluster_count() * wide, tiles)
    {
    }
};

struct grid_own : alone {
    parts p;
    __device__ explicit grid_own(const parts &its) : p(its) {}
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        copy_in(stage, p.a + (u64)p.at_a.next() * p.bytes, p.bytes, full);
        copy_in(stage + p.bytes, p.b + (u64)p.at_b.next() * p.bytes, p.bytes, full);
    }
};

struct grid_masks : plain_way {
    parts p;
    u32 row = 0, column = 0;
    __device__ explicit grid_masks(const parts &its) : p(its)
    {
        row = ((1u << p.width) - 1) << (p.y * p.width);
        for (u32 y = 0; y < p.height; y++)
            column |= 1u << (y * p.width + p.x);
    }
    __device__ __forceinline__ u32 hears() const { return p.width + p.height - 1; }
    __device__ __forceinline__ void release(u32 empty, u32) const { release_mask(empty, row | column); }
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        const u32 a = p.bytes / p.width, b = p.bytes / p.height;
        copy_in_multicast(stage + p.x * a, p.a + (u64)p.at_a.next() * p.bytes + p.x * a, a, full, row);
        copy_in_multicast(stage + p.bytes + p.y * b, p.b + (u64)p.at_b.next() * p.bytes + p.y * b, b, full, column);
    }
};

/* `tiles`: parts of A, and as many of B. */
extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_grid_own(MULTICAST_PARAMETERS, u32 width, u32 height)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all},
             grid_own(parts(source, tile_bytes, tiles, width, height)));
}

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_grid_masks(MULTICAST_PARAMETERS, u32 width, u32 height)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, 0, read_all},
             grid_masks(parts(source, tile_bytes, tiles, width, height)));
}
