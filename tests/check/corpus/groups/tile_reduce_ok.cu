// tile_reduce_ok: after the block has met.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg f32[256]:ones --arg f32[2]
// EXPECT:   clean
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_reduce_ok(const float *in, float *out)
{
    __shared__ float sums[4];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const float sum = cg::reduce(tile, in[blockIdx.x * 128 + threadIdx.x], cg::plus<float>());
    if (tile.thread_rank() == 0)
        sums[tile.meta_group_rank()] = sum; // @sum
    block.sync();
    if (block.thread_rank() == 0)
        out[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3]; // @read
}
