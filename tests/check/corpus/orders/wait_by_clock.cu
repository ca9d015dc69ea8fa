// wait_by_clock: sleeping orders nothing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[1]:0 --arg u32[1]:0 --arg u32[1]
// EXPECT:   race-global @store @read within grid
#include <cuda/atomic>

using dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

// One block waits a while for the other, by the clock.
extern "C" __global__ void wait_by_clock(unsigned *data, unsigned *flag, unsigned *out)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        data[0] = 7; // @store
    } else {
        __nanosleep(100000);
        out[0] = data[0]; // @read
    }
}
