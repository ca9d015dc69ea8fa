// warp_aggregated: lanes take places from a counter in global memory that all of them read plainly first.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32[1] --arg u32[256]
// EXPECT:   race-global within grid
// ALLOW:    race-global race-same-value

extern "C" __global__ void warp_aggregated(const unsigned *in, unsigned *count, unsigned *out)
{
    const unsigned value = in[blockIdx.x * 64 + threadIdx.x], lane = threadIdx.x % 32;
    if (value % 3 == 0) {
        const unsigned active = __activemask(), leader = __ffs(active) - 1;
        unsigned first = 0;
        first = *count;
        if (lane == leader)
            *count = first + __popc(active);
        first = __shfl_sync(active, first, leader);
        out[first + __popc(active & ((1u << lane) - 1))] = value;
    }
}
