// wait_by_clock_ok: it sleeps until a flag is there.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[1]:0 --arg u32[1]:0 --arg u32[1]
// EXPECT:   clean
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// One block waits a while for the other, by the clock.
extern "C" __global__ void wait_by_clock_ok(unsigned *data, unsigned *flag, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        data[0] = 7; // @store
        dev(flag[0]).store(1, cuda::memory_order_release);
    } else {
        while (dev(flag[0]).load(cuda::memory_order_acquire) == 0)
            __nanosleep(100);
        out[0] = data[0]; // @read
    }
}
