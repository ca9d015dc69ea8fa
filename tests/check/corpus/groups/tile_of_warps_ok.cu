// tile_of_warps_ok: within a tile; a shuffle from its second warp too.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:iota --arg u32[256]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_of_warps_ok(const unsigned *in, unsigned *out)
{
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ unsigned words[256];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    words[threadIdx.x] = in[threadIdx.x];
    tile.sync();
    out[threadIdx.x] = words[threadIdx.x ^ 33] + tile.shfl(in[threadIdx.x], 40);
}
