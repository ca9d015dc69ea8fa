// parity_never_flips: the consumer waits for parity 0 in every round.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]:iota --arg u32[64]
// EXPECT:   async-read-early|mbarrier-parity|deadlock
// ALLOW:    async-read-early mbarrier-parity deadlock race-shared async-overwrite async-exit mbarrier-count mbarrier-tx
#include "protocol.cuh"

extern "C" __global__ void parity_never_flips(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    u32 sum = 0;
    if (threadIdx.x == 0)
        bar_init(at(&full), 1);
    __syncthreads();
    for (u32 k = 0; k < 4; k++) {
        if (threadIdx.x == 0) {
            bar_expect(at(&full), 256);
            bulk_in(at(tile), in + k * 64, 256, at(&full));
        }
        bar_wait(at(&full), 0);
        sum += tile[threadIdx.x ^ 1]; // @read
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
