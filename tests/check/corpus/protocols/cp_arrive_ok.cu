// cp_arrive_ok: .noinc.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]:iota --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void cp_arrive_ok(const uint4 *in, u32 *out)
{
    __shared__ uint4 tile[32];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 32);
    __syncwarp();
    cp_async16(at(&tile[threadIdx.x]), in + threadIdx.x);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(&bar)) : "memory");
    bar_wait(at(&bar), 0);
    out[threadIdx.x] = tile[31 - threadIdx.x].x;
}
