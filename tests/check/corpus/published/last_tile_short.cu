// last_tile_short: the last tile is shorter, and the barrier expects a whole one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[224]:iota --arg u32[32] --arg u32:224
// EXPECT:   mbarrier-tx|deadlock
// ALLOW:    mbarrier-tx deadlock
#include "../protocols/protocol.cuh"

extern "C" __global__ void last_tile_short(const u32 *in, u32 *out, u32 n)
{
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 1);
    __syncthreads();
    u32 sum = 0, parity = 0;
    for (u32 from = 0; from < n; from += 64, parity ^= 1) {
        const u32 count = n - from < 64 ? n - from : 64;
        if (threadIdx.x == 0) {
            bar_expect(at(&bar), 256);
            bulk_in(at(tile), in + from, 4 * count, at(&bar));
        }
        bar_wait(at(&bar), parity);
        for (u32 i = threadIdx.x; i < count; i += 32)
            sum += tile[i];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
