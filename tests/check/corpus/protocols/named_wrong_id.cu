// named_wrong_id: producer and consumer name different barriers.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   deadlock|barrier-count
// ALLOW:    deadlock barrier-count uninitialized race-shared
#include "protocol.cuh"

extern "C" __global__ void named_wrong_id(u32 *out)
{
    __shared__ u32 buffer[32];
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        buffer[lane] = lane;
        named_arrive(2, 64);
    } else {
        named_sync(1, 64);
        out[lane] = buffer[31 - lane];
    }
}
