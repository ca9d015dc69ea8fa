// atomic_wait: cuda::atomic's wait returns, and the word that it stands for was published by a relaxed store.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]:iota --arg u32[32]
// EXPECT:   race-shared
#include <cuda/atomic>

extern "C" __global__ void atomic_wait(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[32];
    __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> ready;
    if (threadIdx.x == 0)
        ready.store(0, cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x >= 32) {
        words[threadIdx.x - 32] = in[threadIdx.x - 32];
        __syncwarp();
        if (threadIdx.x == 32) {
            ready.store(1, cuda::memory_order_relaxed);
            ready.notify_all();
        }
    } else {
        ready.wait(0, cuda::memory_order_acquire);
        out[threadIdx.x] = words[31 - threadIdx.x];
    }
}
