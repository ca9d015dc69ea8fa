// cuda_barrier_uninit: the block uses a cuda::barrier that thread 0 may not have made yet.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   mbarrier-init-order|mbarrier-not-live
// ALLOW:    mbarrier-init-order mbarrier-not-live race-shared uninitialized
#include <cuda/barrier>

extern "C" __global__ void cuda_barrier_uninit(const unsigned *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ unsigned words[64];
    if (threadIdx.x == 0)
        init(&bar, 64);
    words[threadIdx.x] = in[threadIdx.x];
    bar.arrive_and_wait();
    out[threadIdx.x] = words[63 - threadIdx.x];
}
