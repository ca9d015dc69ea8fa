// barrier_after_return: threads beyond n leave before the barrier; what they should have stored is read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:iota --arg u32[128] --arg u32:80
// EXPECT:   uninitialized @read
// ALLOW:    barrier-divergent barrier-count uninitialized

extern "C" __global__ void barrier_after_return(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned tile[128];
    if (threadIdx.x >= n)
        return;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[127 - threadIdx.x]; // @read
}
