// cuda_barrier_uninit_ok: __syncthreads after init.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include <cuda/barrier>

extern "C" __global__ void cuda_barrier_uninit_ok(const unsigned *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned words[64];
    if (threadIdx.x == 0)
        init(&bar, 64);
    __syncthreads();
    words[threadIdx.x] = in[threadIdx.x];
    bar.arrive_and_wait();
    out[threadIdx.x] = words[63 - threadIdx.x];
}
