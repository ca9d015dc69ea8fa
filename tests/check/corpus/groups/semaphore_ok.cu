// semaphore_ok: one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1]:2 --arg u32[1]
// EXPECT:   clean
#include <cuda/atomic>

extern "C" __global__ void semaphore_ok(unsigned *places, unsigned *sum)
{
    if (threadIdx.x != 0)
        return;
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> free(places[0]);
    for (;;) {
        unsigned now = free.load(cuda::memory_order_relaxed);
        if (now > 1 && free.compare_exchange_weak(now, now - 1, cuda::memory_order_acquire))
            break;
    }
    *sum += 3; // @add
    free.fetch_add(1, cuda::memory_order_release);
}
