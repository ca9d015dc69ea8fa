// barrier_after_return_ok: all store, and those beyond n leave afterwards.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:iota --arg u32[128] --arg u32:80
// EXPECT:   clean

extern "C" __global__ void barrier_after_return_ok(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x >= n)
        return;
    out[threadIdx.x] = tile[127 - threadIdx.x]; // @read
}
