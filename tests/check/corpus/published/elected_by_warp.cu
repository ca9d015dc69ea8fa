// elected_by_warp: elect.sync elects one thread a warp, and both warps arm the barrier and load.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]:iota --arg u32[64]
// EXPECT:   mbarrier-count|mbarrier-tx|async-overwrite|mbarrier-ahead|async-read-early
// ALLOW:    mbarrier-count mbarrier-tx async-overwrite mbarrier-ahead race-shared async-read-early mbarrier-parity async-exit
#include "../protocols/protocol.cuh"

__device__ __forceinline__ bool elected()
{
    u32 p;
    asm volatile("{ .reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p; }" : "=r"(p));
    return p;
}

extern "C" __global__ void elected_by_warp(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 1);
    __syncthreads();
    u32 sum = 0;
    for (u32 k = 0; k < 4; k++) {
        if (elected()) {
            bar_expect(at(&bar), 256);
            bulk_in(at(tile), in + 64 * k, 256, at(&bar));
        }
        bar_wait(at(&bar), k & 1);
        sum += tile[63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
