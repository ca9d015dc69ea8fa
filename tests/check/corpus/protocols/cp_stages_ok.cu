// cp_stages_ok: waits until the stage's group is done.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[2048]:iota --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void cp_stages_ok(const uint4 *in, u32 *out)
{
    __shared__ uint4 stage[4][32];
    u32 sum = 0;
    for (u32 k = 0; k < 3; k++) {
        cp_async16(at(&stage[k][threadIdx.x]), in + k * 32 + threadIdx.x);
        cp_commit();
    }
    for (u32 k = 0; k < 16; k++) {
        cp_wait<2>();
        __syncwarp();
        sum += stage[k % 4][31 - threadIdx.x].x;
        __syncwarp();
        if (k + 3 < 16)
            cp_async16(at(&stage[(k + 3) % 4][threadIdx.x]), in + (k + 3) * 32 + threadIdx.x);
        cp_commit();
    }
    out[threadIdx.x] = sum;
}
