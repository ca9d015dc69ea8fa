// expect_after_arrive: the thread arrives first and raises the expected bytes afterwards: the phase may be over by then.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   async-read-early|mbarrier-tx|mbarrier-count|mbarrier-ahead
// ALLOW:    async-read-early mbarrier-tx mbarrier-count mbarrier-ahead async-exit deadlock uninitialized
#include "../protocols/protocol.cuh"

extern "C" __global__ void expect_after_arrive(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bar_arrive(at(&bar));
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(at(&bar)) : "memory");
        bulk_in(at(tile), in, 256, at(&bar));
    }
    bar_wait(at(&bar), 0);
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
