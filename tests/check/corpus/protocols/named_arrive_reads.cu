// named_arrive_reads: the consumer only arrives at the barrier and reads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[32]
// EXPECT:   race-shared @fill @use within cta
// ALLOW:    uninitialized
#include "protocol.cuh"

extern "C" __global__ void named_arrive_reads(u32 *out)
{
    __shared__ u32 buffer[32];
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        buffer[lane] = lane; // @fill
        named_sync(1, 64);
    } else {
        named_arrive(1, 64);
        out[lane] = buffer[31 - lane]; // @use
    }
}
