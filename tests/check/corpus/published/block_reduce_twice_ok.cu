// block_reduce_twice_ok: the function starts with a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg f32[256]:ones --arg f32[4]
// EXPECT:   clean
__device__ float block_sum(float v, float *shared)
{
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffff, v, d);
    __syncthreads();
    if (lane == 0)
        shared[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? shared[lane] : 0.0f;
    if (warp == 0)
        for (int d = 16; d > 0; d /= 2)
            v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

// The moments of a row for a layer norm.
extern "C" __global__ void block_reduce_twice_ok(const float *in, float *out)
{
    __shared__ float shared[32];
    const float x = in[blockIdx.x * 128 + threadIdx.x];
    const float sum = block_sum(x, shared), squares = block_sum(x * x, shared);
    if (threadIdx.x == 0) {
        out[blockIdx.x * 2] = sum;
        out[blockIdx.x * 2 + 1] = squares;
    }
}
