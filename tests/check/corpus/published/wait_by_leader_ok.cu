// wait_by_leader_ok: by __syncwarp.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[64]:iota --arg u32[32]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void wait_by_leader_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0)
        bar_init(at(&bar), 1);
    __syncwarp();
    u32 done = 0;
    if (threadIdx.x == 0) {
        bar_expect(at(&bar), 256);
        bulk_in(at(tile), in, 256, at(&bar));
        bar_wait(at(&bar), 0);
        done = 1;
    }
    __syncwarp();
    done = 1;
    out[threadIdx.x] = tile[threadIdx.x] + tile[63 - threadIdx.x] + done;
}
