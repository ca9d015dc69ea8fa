// isa2: two hops, and the second, to another block, has block scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[8]:0 --arg u32[8]:0 --arg u32[8]:0
// EXPECT:   race-global|race-scope @store @read within grid
// ALLOW:    race-scope race-global
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using sys = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void isa2(unsigned *data, unsigned *flags, unsigned *out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data[0] = 42; // @store
        blk(flags[0]).store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 0 && threadIdx.x == 32) {
        while (blk(flags[0]).load(cuda::memory_order_acquire) == 0)
            ;
        blk(flags[1]).store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (dev(flags[1]).load(cuda::memory_order_acquire) == 0)
            ;
        out[0] = data[0]; // @read
    }
}
