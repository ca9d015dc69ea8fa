/* The same with tensor copies: cp.async.bulk.tensor.2d through a descriptor whose rows are as wide as the swizzle's span.
   A CTA's part of a tile is `boxes` boxes of `box_rows` rows; own: the whole tile, multicast: one part in `size`. */
#include "ways.cuh"

#define TENSOR_PARAMETERS                                                                                                    \
    const __grid_constant__ tensor_map map, u32 *digests, u32 *last, u32 *touched, u32 rounds, u32 stages, u32 tile_bytes,   \
        u32 tiles, u32 read_all, u32 row_bytes, u32 box_rows, u32 boxes, u32 swizzle

struct part {
    const tensor_map *map;
    u32 tile_rows, box_rows, box_bytes, boxes, first;
    mutable walk at;
    __device__ part(const tensor_map *descriptor, u32 tile_bytes, u32 tiles, u32 row_bytes, u32 rows, u32 count, u32 first_box)
        : map(descriptor), tile_rows(tile_bytes / row_bytes), box_rows(rows), box_bytes(rows * row_bytes), boxes(count),
          first(first_box), at(cluster_id(), cluster_count(), tiles)
    {
    }
};

struct tensor_own : alone {
    part p;
    __device__ explicit tensor_own(const part &its) : p(its) {}
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        const u32 row = p.at.next() * p.tile_rows;
        for (u32 i = 0; i < p.boxes; i++)
            copy_box(stage + i * p.box_bytes, p.map, 0, row + i * p.box_rows, full);
    }
};

struct tensor_slices : together {
    part p;
    __device__ explicit tensor_slices(const part &its) : p(its) {}
    __device__ __forceinline__ void fill(u32 stage, u32 full) const
    {
        const u32 row = p.at.next() * p.tile_rows;
        for (u32 i = p.first; i < p.first + p.boxes; i++)
            copy_box_multicast(stage + i * p.box_bytes, p.map, 0, row + i * p.box_rows, full, all());
    }
};

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_tensor_own(TENSOR_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, swizzle, read_all},
             tensor_own(part(&map, tile_bytes, tiles, row_bytes, box_rows, boxes, 0)));
}

extern "C" __global__ void __launch_bounds__(RING_THREADS) multicast_tensor_slices(TENSOR_PARAMETERS)
{
    ring_run({digests, last, touched, rounds, stages, tile_bytes, swizzle, read_all},
             tensor_slices(part(&map, tile_bytes, tiles, row_bytes, box_rows, boxes, cluster_rank() * boxes)));
}
