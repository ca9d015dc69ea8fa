// grid_sync_return_ok: they wait too.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --cooperative --arg u32[128]:iota --arg u32[128] --arg u32:3
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sync_return_ok(const unsigned *in, unsigned *out, unsigned blocks)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x < blocks)
        out[i] = in[i] * 2;
    cg::this_grid().sync();
    if (blockIdx.x < blocks)
        out[i] += 1;
}
