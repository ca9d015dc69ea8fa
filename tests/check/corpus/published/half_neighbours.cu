// half_neighbours: atomics on one half of a word, and a plain store of the whole word.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[32]:0
// EXPECT:   race-global
#include <cuda_fp16.h>

// Block 0 adds to the lower halves, block 1 sets the upper ones.
extern "C" __global__ void half_neighbours(unsigned *words)
{
    __half *halves = reinterpret_cast<__half *>(words + threadIdx.x);
    if (blockIdx.x == 0)
        atomicAdd(&halves[0], __float2half(1.0f));
    else
        words[threadIdx.x] = 0x3c000000;
}
