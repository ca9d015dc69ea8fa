// tile_sync_ok: within a tile.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_sync_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[64];
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    words[threadIdx.x] = in[threadIdx.x]; // @store
    tile.sync();
    out[threadIdx.x] = words[threadIdx.x ^ 4];
}
