// warps_specialised_ok: the math warps wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[512]:iota --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void warps_specialised_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[2][64];
    __shared__ u64 full[2];
    const u32 lane = threadIdx.x % 32;
    u32 sum = 0;
    if (threadIdx.x < 2)
        bar_init(at(&full[threadIdx.x]), 1);
    __syncthreads();
    for (u32 k = 0; k < 8; k++) {
        if (threadIdx.x >= 64) {
            if (lane == 0) {
                bar_expect(at(&full[k % 2]), 256);
                bulk_in(at(tile[k % 2]), in + k * 64, 256, at(&full[k % 2]));
            }
        } else {
            bar_wait(at(&full[k % 2]), k / 2 % 2);
            sum += tile[k % 2][threadIdx.x ^ 5];
        }
        __syncthreads();
    }
    bar_wait(at(&full[1]), 1);
    if (threadIdx.x < 64)
        out[threadIdx.x] = sum;
}
