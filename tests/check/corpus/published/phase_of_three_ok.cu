// phase_of_three_ok: that of the round: turn / 3.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[768]:iota --arg u32[32]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void phase_of_three_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[3][64];
    __shared__ u64 full[3], empty[3];
    if (threadIdx.x < 3) {
        bar_init(at(&full[threadIdx.x]), 1);
        bar_init(at(&empty[threadIdx.x]), 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = 0;
        for (u32 k = 0; k < 12; k++) {
            bar_wait(at(&full[k % 3]), k / 3 & 1);
            sum += tile[k % 3][threadIdx.x] + tile[k % 3][threadIdx.x + 32];
            __syncwarp();
            if (threadIdx.x == 0)
                bar_arrive(at(&empty[k % 3]));
        }
        out[threadIdx.x] = sum;
    } else if (threadIdx.x == 32) {
        for (u32 k = 0; k < 12; k++) {
            bar_wait(at(&empty[k % 3]), (k / 3 & 1) ^ 1);
            bar_expect(at(&full[k % 3]), 256);
            bulk_in(at(tile[k % 3]), in + k * 64, 256, at(&full[k % 3]));
        }
    }
}
