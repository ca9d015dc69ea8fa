// expect_short: the mbarrier expects half of the bytes that come.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[64]:iota --arg u32[32]
// EXPECT:   mbarrier-tx
// ALLOW:    async-read-early async-exit mbarrier-count
#include "protocol.cuh"

extern "C" __global__ void expect_short(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        bar_init(at(&full), 1);
        bar_expect(at(&full), 128);
        bulk_in(at(tile), in, 128, at(&full));
        bulk_in(at(tile + 32), in + 32, 128, at(&full));
    }
    __syncthreads();
    bar_wait(at(&full), 0);
    out[threadIdx.x] = tile[threadIdx.x] + tile[threadIdx.x + 32];
}
