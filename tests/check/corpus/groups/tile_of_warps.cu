// tile_of_warps: tiles of 64 threads, whose barrier is in the reserved shared memory, exchange words with another tile.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:iota --arg u32[256]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_of_warps(const unsigned *in, unsigned *out)
{
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ unsigned words[256];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    words[threadIdx.x] = in[threadIdx.x]; // @store
    tile.sync();
    out[threadIdx.x] = words[threadIdx.x ^ 64]; // @read
}
