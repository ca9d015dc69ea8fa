// cuda_pipeline_ok: the pipeline is of the block.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[64]
// EXPECT:   clean
#include <cuda/pipeline>

extern "C" __global__ void cuda_pipeline_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned stage[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    struct block_group { __device__ static void sync() { __syncthreads(); } __device__ static unsigned size() { return 64; } __device__ static unsigned thread_rank() { return threadIdx.x; } };
    auto pipe = cuda::make_pipeline(block_group(), &state);
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
