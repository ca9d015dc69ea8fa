// unaligned_memcpy_async: cuda::memcpy_async of 3 bytes a thread is no copy engine's: but it is read before the pipeline has been waited for.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   race-shared|async-read-early
// ALLOW:    race-shared async-read-early uninitialized
#include <cuda/pipeline>

extern "C" __global__ void unaligned_memcpy_async(const unsigned *in, unsigned *out)
{
    __shared__ unsigned char bytes[192];
    auto pipe = cuda::make_pipeline();
    const unsigned char *from = reinterpret_cast<const unsigned char *>(in);
    pipe.producer_acquire();
    cuda::memcpy_async(bytes + 3 * threadIdx.x, from + 3 * threadIdx.x, 3, pipe);
    pipe.producer_commit();
    out[threadIdx.x] = bytes[191 - threadIdx.x];
    pipe.consumer_release();
}
