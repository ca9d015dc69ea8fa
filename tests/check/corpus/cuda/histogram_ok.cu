// histogram_ok: shared bins, then global ones, all by atomics.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 128 --arg u32[1024]:iota --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void histogram_ok(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned local[32];
    if (threadIdx.x < 32)
        local[threadIdx.x] = 0; // @zero
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&local[in[blockIdx.x * 256 + i] % 32], 1); // @add
    __syncthreads();
    if (threadIdx.x < 32)
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
