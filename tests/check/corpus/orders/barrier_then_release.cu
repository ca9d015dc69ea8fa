// barrier_then_release: the release covers its own warp's stores only: the block has not met.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[8]:0 --arg u32[8]:0 --arg u32[8]:0
// EXPECT:   race-global @store @read within grid
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void barrier_then_release(unsigned *data, unsigned *flags, unsigned *out)
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 40)
            data[0] = 42; // @store
        __syncwarp();
        if (threadIdx.x == 0)
            dev(flags[0]).store(1, cuda::memory_order_release);
    } else if (threadIdx.x == 0) {
        while (dev(flags[0]).load(cuda::memory_order_acquire) == 0)
            ;
        out[0] = data[0]; // @read
    }
}
