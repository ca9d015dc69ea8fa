// barrier_zero_shared: two math warps meet at named barrier 0, which is __syncthreads' of the whole block.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[64]:iota --arg u32[96]
// EXPECT:   barrier-count|deadlock|race-shared
// ALLOW:    barrier-count deadlock race-shared barrier-divergent
#include "../protocols/protocol.cuh"

extern "C" __global__ void barrier_zero_shared(const u32 *in, u32 *out)
{
    __shared__ u32 words[64];
    const u32 t = threadIdx.x;
    u32 sum = 0;
    if (t < 64) {
        words[t] = in[t];
        named_sync(0, 64);
        sum = words[63 - t];
    }
    __syncthreads();
    out[t] = sum + words[t % 64];
}
