// seqlock_ok: the data are relaxed atomics.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[1]:0 --arg u32[2]:0 --arg u32[4]:0
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// A sequence lock: the reader tries again when the sequence has changed.
extern "C" __global__ void seqlock_ok(unsigned *seq, unsigned *data, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        for (unsigned i = 0; i < 4; i++) {
            dev(seq[0]).store(2 * i + 1, cuda::memory_order_relaxed);
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
            dev(data[0]).store(i, cuda::memory_order_relaxed); // @store
            dev(data[1]).store(i, cuda::memory_order_relaxed);
            dev(seq[0]).store(2 * i + 2, cuda::memory_order_release);
        }
        return;
    }
    unsigned before, after, a, b;
    do {
        before = dev(seq[0]).load(cuda::memory_order_acquire);
        a = dev(data[0]).load(cuda::memory_order_relaxed); // @read
        b = dev(data[1]).load(cuda::memory_order_relaxed);
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        after = dev(seq[0]).load(cuda::memory_order_relaxed);
    } while (before != after || (before & 1));
    out[blockIdx.x] = a + b;
}
