// invoke_one_ok: after the group has met.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void invoke_one_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned table[8];
    auto block = cg::this_thread_block();
    cg::invoke_one(block, [&] {
        for (unsigned i = 0; i < 8; i++)
            table[i] = in[i] * i;
    });
    block.sync();
    out[threadIdx.x] = table[in[threadIdx.x] % 8];
}
