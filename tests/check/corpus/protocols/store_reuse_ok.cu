// store_reuse_ok: after wait_group.read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void store_reuse_ok(u32 *out)
{
    __shared__ alignas(16) u32 tile[32];
    for (u32 k = 0; k < 4; k++) {
        tile[threadIdx.x] = k * 32 + threadIdx.x; // @store
        proxy_fence();
        __syncwarp();
        if (threadIdx.x == 0) {
            bulk_out(out + k * 32, at(tile), 128);
            bulk_commit();
            bulk_wait_read<0>();
        }
        __syncwarp();
    }
    if (threadIdx.x == 0)
        bulk_wait<0>();
}
