// cp_async_tail: the last turns commit no group, so that a constant wait_group no longer covers the stage that is read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[64]
// EXPECT:   async-read-early
// ALLOW:    async-read-early race-shared
#include "../protocols/protocol.cuh"

// The multi-stage loop of CUTLASS for Ampere: four stages, cp.async.wait_group 2 in every turn.
extern "C" __global__ void cp_async_tail(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 stage[4][64];
    const u32 t = threadIdx.x;
    for (u32 k = 0; k < 3; k++) {
        if (t < 16)
            cp_async16(at(&stage[k][t * 4]), in + k * 64 + t * 4);
        cp_commit();
    }
    u32 sum = 0;
    for (u32 k = 0; k < 8; k++) {
        cp_wait<2>();
        __syncthreads();
        sum += stage[k % 4][63 - t];
        if (k + 3 < 8) {
            if (t < 16)
                cp_async16(at(&stage[(k + 3) % 4][t * 4]), in + (k + 3) * 64 + t * 4);
            cp_commit();
        }
    }
    out[t] = sum;
}
