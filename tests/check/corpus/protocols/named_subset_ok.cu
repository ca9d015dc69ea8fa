// named_subset_ok: all that store take part.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void named_subset_ok(u32 *out)
{
    __shared__ u32 buffer[128];
    buffer[threadIdx.x] = threadIdx.x; // @fill
    if (threadIdx.x < 64) {
        named_sync(1, 64);
        out[threadIdx.x] = buffer[63 - threadIdx.x];
    }
}
