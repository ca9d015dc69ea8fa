// peterson: Peterson's lock with acquire-release fences: the flag may still be waiting when the other's is read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[3]:0 --arg u32[1]:0
// SEEDS:    16
// EXPECT:   race-global
#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

extern "C" __global__ void peterson(unsigned *state, unsigned *count)
{
    if (threadIdx.x != 0)
        return;
    const unsigned me = blockIdx.x, other = 1 - me;
    word mine(state[me]), theirs(state[other]), turn(state[2]);
    for (unsigned k = 0; k < 3; k++) {
        mine.store(1, cuda::memory_order_relaxed);
        turn.store(other, cuda::memory_order_release);
        cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
        while (theirs.load(cuda::memory_order_acquire) == 1 && turn.load(cuda::memory_order_acquire) == other)
            continue;
        count[0] += 1;
        mine.store(0, cuda::memory_order_release);
    }
}
