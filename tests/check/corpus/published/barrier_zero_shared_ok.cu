// barrier_zero_shared_ok: at barrier 1.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[64]:iota --arg u32[96]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void barrier_zero_shared_ok(const u32 *in, u32 *out)
{
    __shared__ u32 words[64];
    const u32 t = threadIdx.x;
    u32 sum = 0;
    if (t < 64) {
        words[t] = in[t];
        named_sync(1, 64);
        sum = words[63 - t];
    }
    __syncthreads();
    out[t] = sum + words[t % 64];
}
