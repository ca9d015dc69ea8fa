// cuda_pipeline: two stages: a stage is read after consumer_wait by threads that did not copy it, without a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[64]
// EXPECT:   async-read-early|race-shared
// ALLOW:    async-read-early race-shared async-overwrite
#include <cuda/pipeline>

extern "C" __global__ void cuda_pipeline(const unsigned *in, unsigned *out)
{
    __shared__ unsigned stage[2][64];
    auto pipe = cuda::make_pipeline();
    unsigned sum = 0;
    for (unsigned next = 0, now = 0; now < 8; now++) {
        for (; next < 8 && next < now + 2; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[next % 2][threadIdx.x], &in[next * 64 + threadIdx.x], 4, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += stage[now % 2][63 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
