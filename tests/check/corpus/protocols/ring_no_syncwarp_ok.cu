// ring_no_syncwarp_ok: with it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void ring_no_syncwarp_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[2][64];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x < 2) {
        bar_init(at(&full[threadIdx.x]), 1);
        bar_init(at(&empty[threadIdx.x]), 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = 0;
        for (u32 k = 0; k < 8; k++) {
            bar_wait(at(&full[k % 2]), k / 2 % 2);
            sum += tile[k % 2][threadIdx.x] + tile[k % 2][threadIdx.x + 32];
            __syncwarp();
            if (threadIdx.x == 0)
                bar_arrive(at(&empty[k % 2]));
        }
        out[threadIdx.x] = sum;
    } else if (threadIdx.x == 32) {
        for (u32 k = 0; k < 8; k++) {
            bar_wait(at(&empty[k % 2]), k / 2 % 2 ^ 1);
            bar_expect(at(&full[k % 2]), 256);
            bulk_in(at(tile[k % 2]), in + k * 64, 256, at(&full[k % 2]));
        }
    }
}
