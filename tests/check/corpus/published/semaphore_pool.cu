// semaphore_pool: a pool of two scratch rows, admitted by a semaphore of two, and both holders take row 0.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[4]:0 --arg u32[64] --arg u32[128]
// EXPECT:   race-global
#include <cuda/atomic>

// A counting semaphore made of an atomic, as libcu++ has it, and a scratch row for each that it admits.
extern "C" __global__ void semaphore_pool(unsigned *control, unsigned *scratch, unsigned *out)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> taken(control[0]), rows(control[1]);
    unsigned row = 0;
    if (threadIdx.x == 0) {
        for (;;) {
            unsigned n = taken.load(cuda::memory_order_relaxed);
            if (n < 2 && taken.compare_exchange_weak(n, n + 1, cuda::memory_order_acquire, cuda::memory_order_relaxed))
                break;
            __nanosleep(50);
        }
    }
    row = __shfl_sync(0xffffffff, row, 0);
    __syncwarp();
    scratch[row * 32 + threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
    __syncwarp();
    out[blockIdx.x * 32 + threadIdx.x] = scratch[row * 32 + 31 - threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) {
        taken.fetch_sub(1, cuda::memory_order_release);
    }
}
