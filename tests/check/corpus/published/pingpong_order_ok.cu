// pingpong_order_ok: an order barrier in both directions.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[2048]:iota --arg u32[2048]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

// Warp groups 0 and 1 compute tiles in turn and stage them in one buffer: barrier 1 lets group 0 in, barrier 2 group 1.
extern "C" __global__ void pingpong_order_ok(const u32 *in, u32 *out)
{
    __shared__ u32 stage[128];
    const u32 group = threadIdx.x / 128, lane = threadIdx.x % 128;
    if (group == 1)
        named_arrive(1, 256);
    for (u32 tile = group; tile < 8; tile += 2) {
        u32 value = in[tile * 128 + lane] * 3;
        named_sync(1 + group, 256);
        stage[lane] = value;
        named_sync(3 + group, 128);
        out[tile * 128 + lane] = stage[127 - lane];
        if (tile + 1 < 8)
            named_arrive(2 - group, 256);
    }
}
