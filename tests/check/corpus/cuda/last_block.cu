// last_block: the last block adds up partial sums that were published without __threadfence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 64 --arg f32[512]:ones --arg f32[8] --arg u32[1] --arg f32[1]
// EXPECT:   race-global @store @read within grid

extern "C" __global__ void last_block(const float *in, float *partial, unsigned *count, float *out)
{
    __shared__ float tile[64];
    __shared__ bool last;
    tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    for (unsigned half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = tile[0]; // @store
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += partial[i]; // @read
        *out = sum;
    }
}
