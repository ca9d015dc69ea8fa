// cp_arrive: cp.async.mbarrier.arrive without .noinc raises the pending count by what it then takes away: an mbarrier that counts it waits for ever.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]:iota --arg u32[32]
// EXPECT:   deadlock|mbarrier-count
// ALLOW:    deadlock mbarrier-count
#include "protocol.cuh"

extern "C" __global__ void cp_arrive(const uint4 *in, u32 *out)
{
    __shared__ uint4 tile[32];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 32);
    __syncwarp();
    cp_async16(at(&tile[threadIdx.x]), in + threadIdx.x);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at(&bar)) : "memory");
    bar_wait(at(&bar), 0);
    out[threadIdx.x] = tile[31 - threadIdx.x].x;
}
