// histogram_plain: threads count into shared bins with plain adds.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:iota --arg u32[16]
// EXPECT:   race-shared @add within cta
// ALLOW:    race-shared race-same-value

extern "C" __global__ void histogram_plain(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned local[16];
    if (threadIdx.x < 16)
        local[threadIdx.x] = 0;
    __syncthreads();
    const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 16;
    local[bin]++; // @add
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
