// scopes_differ: system scope on one side, block scope on the other.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[8]:0 --arg u32[8]:0 --arg u32[8]:0
// EXPECT:   race-global|race-scope @store @read within grid
// ALLOW:    race-scope
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void scopes_differ(unsigned *data, unsigned *flags, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        data[0] = 42; // @store
        sys(flags[0]).store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1) {
        while (blk(flags[0]).load(cuda::memory_order_acquire) == 0)
            ;
        out[0] = data[0]; // @read
    }
}
