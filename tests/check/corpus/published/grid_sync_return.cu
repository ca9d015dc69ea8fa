// grid_sync_return: blocks without work return before the grid barrier that the others wait at.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cooperative --arg u32[128]:iota --arg u32[128] --arg u32:3
// EXPECT:   deadlock
// ALLOW:    deadlock
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sync_return(const unsigned *in, unsigned *out, unsigned blocks)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x >= blocks)
        return;
    out[i] = in[i] * 2;
    cg::this_grid().sync();
    out[i] += 1;
}
