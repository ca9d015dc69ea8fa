// half_neighbours_ok: a plain store of the other half.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[32]:0
// EXPECT:   clean
#include <cuda_fp16.h>

// Block 0 adds to the lower halves, block 1 sets the upper ones.
extern "C" __global__ void half_neighbours_ok(unsigned *words)
{
    __half *halves = reinterpret_cast<__half *>(words + threadIdx.x);
    if (blockIdx.x == 0)
        atomicAdd(&halves[0], __float2half(1.0f));
    else
        halves[1] = __float2half(1.0f);
}
