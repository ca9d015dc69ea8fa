// counter_reset_ok: the last to leave resets it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 32 --arg u32[2]:0 --arg u32[512]:iota --arg u32[512]
// EXPECT:   clean
// A persistent kernel that leaves its counter at zero for the next launch.
extern "C" __global__ void counter_reset_ok(unsigned *counters, const unsigned *in, unsigned *out)
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
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&counters[1], 1) == gridDim.x - 1) {
            __threadfence();
            counters[0] = 0;
            counters[1] = 0;
        }
    }
}
