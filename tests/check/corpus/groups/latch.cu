// latch: a latch in shared memory, and words read before the wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[96]:iota --arg u32[96]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized
#include <cuda/latch>

extern "C" __global__ void latch(const unsigned *in, unsigned *out)
{
    using latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(latch) unsigned char place[sizeof(latch)];
    __shared__ unsigned words[96];
    latch &done = *reinterpret_cast<latch *>(place);
    if (threadIdx.x == 0)
        new (place) latch(96);
    __syncthreads();
    words[threadIdx.x] = in[threadIdx.x]; // @store
    done.count_down();
    out[threadIdx.x] = words[95 - threadIdx.x]; // @read
    done.wait();
}
