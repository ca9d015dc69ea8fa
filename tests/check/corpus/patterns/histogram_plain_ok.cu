// histogram_plain_ok: with atomicAdd.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:iota --arg u32[16]
// EXPECT:   clean

extern "C" __global__ void histogram_plain_ok(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned local[16];
    if (threadIdx.x < 16)
        local[threadIdx.x] = 0;
    __syncthreads();
    const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 16;
    atomicAdd(&local[bin], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
