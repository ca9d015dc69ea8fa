// empty_starts_full_ok: for parity 1, which a fresh barrier has passed.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[32]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void empty_starts_full_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[2][64];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x < 2) {
        bar_init(at(&full[threadIdx.x]), 1);
        bar_init(at(&empty[threadIdx.x]), 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 sum = 0, phase = 0;
        for (u32 k = 0, s = 0; k < 8; k++) {
            bar_wait(at(&full[s]), phase);
            sum += tile[s][threadIdx.x] + tile[s][threadIdx.x + 32];
            __syncwarp();
            if (threadIdx.x == 0)
                bar_arrive(at(&empty[s]));
            if (++s == 2)
                s = 0, phase ^= 1;
        }
        out[threadIdx.x] = sum;
    } else if (threadIdx.x == 32) {
        u32 phase = 1;
        for (u32 k = 0, s = 0; k < 8; k++) {
            bar_wait(at(&empty[s]), phase);
            bar_expect(at(&full[s]), 256);
            bulk_in(at(tile[s]), in + k * 64, 256, at(&full[s]));
            if (++s == 2)
                s = 0, phase ^= 1;
        }
    }
}
