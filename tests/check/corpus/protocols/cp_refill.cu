// cp_refill: a stage is refilled while other lanes still read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[2048]:iota --arg u32[64]
// EXPECT:   race-shared|async-overwrite @copy
// ALLOW:    race-shared async-overwrite
#include "protocol.cuh"

extern "C" __global__ void cp_refill(const uint4 *in, u32 *out)
{
    __shared__ uint4 stage[2][64];
    u32 sum = 0;
    cp_async16(at(&stage[0][threadIdx.x]), in + threadIdx.x);
    cp_commit();
    for (u32 k = 0; k < 8; k++) {
        if (k == 7 || k == 0)
            __syncthreads();
        if (k + 1 < 8)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(&stage[(k + 1) % 2][threadIdx.x])), "l"(in + (k + 1) * 64 + threadIdx.x) : "memory"); // @copy
        cp_commit();
        cp_wait<1>();
        __syncwarp(); // all lanes have waited for their own copies
        sum += stage[k % 2][threadIdx.x].x;
        sum += stage[k % 2][threadIdx.x ^ 1].x;
    }
    out[threadIdx.x] = sum;
}
