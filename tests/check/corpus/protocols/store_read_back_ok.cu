// store_read_back_ok: after wait_group.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32] --arg u32[1]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void store_read_back_ok(u32 *out, u32 *seen)
{
    __shared__ alignas(16) u32 tile[32];
    tile[threadIdx.x] = threadIdx.x;
    proxy_fence();
    __syncwarp();
    if (threadIdx.x == 0) {
        bulk_out(out, at(tile), 128);
        bulk_commit();
        bulk_wait<0>();
        *seen = *(volatile u32 *)(out + 5); // @read
    }
}
