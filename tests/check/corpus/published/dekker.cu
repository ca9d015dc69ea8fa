// dekker: Dekker's lock with acquire-release fences: each store may still be waiting when the other flag is read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2]:0 --arg u32[1]:0
// SEEDS:    16
// EXPECT:   race-global
#include <cuda/atomic>

// Two blocks try once each to enter, as in the textbook; who finds the other's flag up goes away.
extern "C" __global__ void dekker(unsigned *flags, unsigned *count)
{
    if (threadIdx.x != 0)
        return;
    const unsigned me = blockIdx.x, other = 1 - me;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(flags[me]), theirs(flags[other]);
    mine.store(1, cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
    if (theirs.load(cuda::memory_order_acquire) == 0)
        count[0] += 1;
}
