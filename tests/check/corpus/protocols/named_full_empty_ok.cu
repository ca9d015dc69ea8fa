// named_full_empty_ok: full and empty barriers.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void named_full_empty_ok(u32 *out)
{
    __shared__ u32 buffer[32];
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (u32 k = 0; k < 4; k++) {
            if (k > 0)
                named_sync(2, 64);
            buffer[lane] = k * 100 + lane; // @fill
            named_arrive(1, 64);
        }
    } else {
        u32 sum = 0;
        for (u32 k = 0; k < 4; k++) {
            named_sync(1, 64);
            sum += buffer[31 - lane]; // @use
            if (k < 3)
                named_arrive(2, 64);
        }
        out[lane] = sum;
    }
}
