// spsc_queue_ok: with a release.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[8] --arg u32[2]:0 --arg u32[1]
// EXPECT:   clean
#include <cuda/atomic>

using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// One producer, one consumer, a ring of 8.
extern "C" __global__ void spsc_queue_ok(unsigned *ring, unsigned *ends, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    word head(ends[0]), tail(ends[1]);
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 32; i++) {
            while (i - tail.load(cuda::memory_order_acquire) == 8)
                continue;
            ring[i % 8] = i * i;
            head.store(i + 1, cuda::memory_order_release);
        }
    } else {
        unsigned sum = 0;
        for (unsigned i = 0; i < 32; i++) {
            while (head.load(cuda::memory_order_acquire) == i)
                continue;
            sum += ring[i % 8];
            tail.store(i + 1, cuda::memory_order_release);
        }
        *out = sum;
    }
}
