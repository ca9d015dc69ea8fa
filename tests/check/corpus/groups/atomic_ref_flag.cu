// atomic_ref_flag: cuda::atomic_ref with relaxed order publishes a word.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2] --arg u32[1]
// EXPECT:   race-global @store @read within grid
#include <cuda/atomic>

extern "C" __global__ void atomic_ref_flag(unsigned *words, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(words[1]);
    if (blockIdx.x == 0) {
        words[0] = 9; // @store
        flag.store(1, cuda::memory_order_relaxed);
    } else {
        while (flag.load(cuda::memory_order_relaxed) == 0)
            ;
        *out = words[0]; // @read
    }
}
