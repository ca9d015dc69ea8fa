// named_subset: two of four warps meet at a barrier of theirs, and read what a third stored.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]
// EXPECT:   race-shared @fill @use within cta
// ALLOW:    uninitialized race-shared
#include "protocol.cuh"

extern "C" __global__ void named_subset(u32 *out)
{
    __shared__ u32 buffer[128];
    buffer[threadIdx.x] = threadIdx.x; // @fill
    if (threadIdx.x < 64) {
        named_sync(1, 64);
        out[threadIdx.x] = buffer[threadIdx.x + 64]; // @use
    }
}
