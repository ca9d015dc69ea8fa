// named_arrive_reads_ok: the consumer syncs.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void named_arrive_reads_ok(u32 *out)
{
    __shared__ u32 buffer[32];
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        buffer[lane] = lane; // @fill
        named_arrive(1, 64);
    } else {
        named_sync(1, 64);
        out[lane] = buffer[31 - lane]; // @use
    }
}
