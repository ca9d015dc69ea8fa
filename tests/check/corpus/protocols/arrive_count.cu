// arrive_count: a barrier for 64 arrivals gets 32.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   deadlock
#include "protocol.cuh"

extern "C" __global__ void arrive_count(const u32 *in, u32 *out)
{
    __shared__ u32 tile[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 64);
    __syncthreads();
    tile[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 32)
        bar_arrive(at(&bar));
    bar_wait(at(&bar), 0);
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
