// dekker_ok: with sequentially consistent fences.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[2]:0 --arg u32[1]:0
// SEEDS:    16
// EXPECT:   clean
#include <cuda/atomic>

// Two blocks try once each to enter, as in the textbook; who finds the other's flag up goes away.
extern "C" __global__ void dekker_ok(unsigned *flags, unsigned *count)
{
    if (threadIdx.x != 0)
        return;
    const unsigned me = blockIdx.x, other = 1 - me;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(flags[me]), theirs(flags[other]);
    mine.store(1, cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    if (theirs.load(cuda::memory_order_acquire) == 0)
        count[0] += 1;
}
