// drop_ok: arrive_drop.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void drop_ok(u32 *out)
{
    __shared__ u32 words[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 64);
    __syncthreads();
    words[threadIdx.x] = threadIdx.x;
    if (threadIdx.x >= 32) {
        asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(at(&bar)) : "memory");
        return;
    }
    bar_arrive(at(&bar));
    bar_wait(at(&bar), 0);
    const u32 seen = words[63 - threadIdx.x];
    bar_arrive(at(&bar));
    bar_wait(at(&bar), 1);
    words[threadIdx.x] = seen;
    bar_arrive(at(&bar));
    bar_wait(at(&bar), 0);
    out[threadIdx.x] = words[31 - threadIdx.x];
}
