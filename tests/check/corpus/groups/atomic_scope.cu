// atomic_scope: an atomic of block scope is a flag between blocks.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   race-scope within grid
// ALLOW:    race-scope race-global
#include <cuda/atomic>

extern "C" __global__ void atomic_scope(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> flag(words[1]);
    if (blockIdx.x == 0) {
        words[0] = 9;
        flag.store(1, cuda::memory_order_release);
    } else {
        while (flag.load(cuda::memory_order_acquire) == 0)
            ;
        *out = words[0];
    }
}
