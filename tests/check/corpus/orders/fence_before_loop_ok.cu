// fence_before_loop_ok: it stands behind the loop.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[8]:0 --arg u32[8]:0 --arg u32[8]:0
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void fence_before_loop_ok(unsigned *data, unsigned *flags, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        data[0] = 42; // @store
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
        dev(flags[0]).store(1, cuda::memory_order_relaxed);
    } else if (blockIdx.x == 1) {
        while (dev(flags[0]).load(cuda::memory_order_relaxed) == 0)
            ;
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        out[0] = data[0]; // @read
    }
}
