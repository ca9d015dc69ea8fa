// barrier_in_condition_ok: the barrier stands outside the condition.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean

extern "C" __global__ void barrier_in_condition_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    if (in[threadIdx.x] % 2) {
        tile[threadIdx.x] = in[threadIdx.x];
    }
    __syncthreads();
    if (in[threadIdx.x] % 2)
        out[threadIdx.x] = tile[threadIdx.x ^ 34];
}
