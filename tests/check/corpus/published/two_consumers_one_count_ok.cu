// two_consumers_one_count_ok: it counts both.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 96 --arg u32[512]:iota --arg u32[64]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void two_consumers_one_count_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[2][64];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x < 2) {
        bar_init(at(&full[threadIdx.x]), 1);
        bar_init(at(&empty[threadIdx.x]), 2);
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        u32 sum = 0;
        for (u32 k = 0; k < 8; k++) {
            bar_wait(at(&full[k % 2]), k / 2 % 2);
            sum += tile[k % 2][threadIdx.x];
            __syncwarp();
            if (threadIdx.x % 32 == 0)
                bar_arrive(at(&empty[k % 2]));
        }
        out[threadIdx.x] = sum;
    } else if (threadIdx.x == 64) {
        for (u32 k = 0; k < 8; k++) {
            bar_wait(at(&empty[k % 2]), k / 2 % 2 ^ 1);
            bar_expect(at(&full[k % 2]), 256);
            bulk_in(at(tile[k % 2]), in + k * 64, 256, at(&full[k % 2]));
        }
    }
}
