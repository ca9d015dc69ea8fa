// coalesced: lanes of a branch sync as a group, then read a word of a lane that is not of it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   race-shared|uninitialized @read
// ALLOW:    race-shared uninitialized
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void coalesced(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[32];
    if (in[threadIdx.x] % 2) {
        cg::coalesced_group group = cg::coalesced_threads();
        words[threadIdx.x] = in[threadIdx.x];
        group.sync();
        out[threadIdx.x] = words[threadIdx.x ^ 1]; // @read
    } else {
        words[threadIdx.x] = 0;
    }
}
