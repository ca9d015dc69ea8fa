// named_full_empty: producer and consumer warps with named barriers: the buffer is filled again without word from the consumer.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   race-shared @fill @use within cta
// ALLOW:    race-shared barrier-count
#include "protocol.cuh"

extern "C" __global__ void named_full_empty(u32 *out)
{
    __shared__ u32 buffer[32];
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (u32 k = 0; k < 4; k++) {
            buffer[lane] = k * 100 + lane; // @fill
            named_arrive(1, 64);
        }
    } else {
        u32 sum = 0;
        for (u32 k = 0; k < 4; k++) {
            named_sync(1, 64);
            sum += buffer[31 - lane]; // @use
        }
        out[lane] = sum;
    }
}
