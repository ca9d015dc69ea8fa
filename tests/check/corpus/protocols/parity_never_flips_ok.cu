// parity_never_flips_ok: the parity flips.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]:iota --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void parity_never_flips_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    u32 sum = 0;
    if (threadIdx.x == 0)
        bar_init(at(&full), 1);
    __syncthreads();
    for (u32 k = 0; k < 4; k++) {
        if (threadIdx.x == 0) {
            bar_expect(at(&full), 256);
            bulk_in(at(tile), in + k * 64, 256, at(&full));
        }
        bar_wait(at(&full), k & 1);
        sum += tile[threadIdx.x ^ 1]; // @read
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
