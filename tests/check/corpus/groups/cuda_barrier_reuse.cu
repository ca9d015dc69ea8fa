// cuda_barrier_reuse: a cuda::barrier has its count in the wrong place: the phases run ahead of a warp that only arrives.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   race-shared within cta
// ALLOW:    race-shared
#include <cuda/barrier>

extern "C" __global__ void cuda_barrier_reuse(const unsigned *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned words[64];
    if (threadIdx.x == 0)
        init(&bar, 64);
    __syncthreads();
    words[threadIdx.x] = in[threadIdx.x];
    bar.arrive_and_wait();
    const unsigned value = words[63 - threadIdx.x];
    bar.arrive();
    words[threadIdx.x] = value + 1;
    __syncthreads();
    out[threadIdx.x] = words[threadIdx.x ^ 32];
}
