// store_reuse: the buffer of a bulk store is filled again before the copy has read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[128]
// EXPECT:   async-source @store
// ALLOW:    async-source
#include "protocol.cuh"

extern "C" __global__ void store_reuse(u32 *out)
{
    __shared__ alignas(16) u32 tile[32];
    for (u32 k = 0; k < 4; k++) {
        tile[threadIdx.x] = k * 32 + threadIdx.x; // @store
        proxy_fence();
        __syncwarp();
        if (threadIdx.x == 0) {
            bulk_out(out + k * 32, at(tile), 128);
            bulk_commit();
        }
        __syncwarp();
    }
    if (threadIdx.x == 0)
        bulk_wait<0>();
}
