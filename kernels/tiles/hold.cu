/* tiles_hold: the companion of the contention scenario. Each CTA keeps its SM for hold_us microseconds, and logs that as
   slot tiles + CTA with a 1 in the last word: not a tile.

   Contract: (uint64 *log, uint32 tiles, uint32 hold_us).   Launch: one CTA for each SM to hold, with the shared memory of
   the tile kernels, so that both do not fit one SM.   Needs: CUDA C++17. */
#include "tile.cuh"

extern "C" __global__ void tiles_hold(u64 *log, u32 tiles, u32 hold_us)
{
    const u64 start = now_ns(), end = start + hold_us * 1000ull;
    while (now_ns() < end)
        __nanosleep(500);
    if (threadIdx.x == 0) {
        u32 sm;
        asm("mov.u32 %0, %%smid;" : "=r"(sm));
        u64 *slot = &log[4ull * (tiles + blockIdx.x)];
        slot[0] = start;
        slot[1] = now_ns();
        slot[2] = (u64)blockIdx.x << 32 | sm;
        slot[3] = 1;
    }
}
