// counter_reset: the block that finds nothing left resets the work counter while others have yet to find that out.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[2]:0 --arg u32[512]:iota --arg u32[512]
// EXPECT:   race-global
// ALLOW:    race-global race-same-value deadlock
// A persistent kernel that leaves its counter at zero for the next launch.
extern "C" __global__ void counter_reset(unsigned *counters, const unsigned *in, unsigned *out)
{
    unsigned tile;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(&counters[0], 1);
        tile = __shfl_sync(0xffffffff, tile, 0);
        if (tile >= 16)
            break;
        out[tile * 32 + threadIdx.x] = in[tile * 32 + threadIdx.x] + 1;
    }
    if (threadIdx.x == 0 && tile == 16)
        counters[0] = 0;
}
