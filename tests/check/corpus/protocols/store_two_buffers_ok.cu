// store_two_buffers_ok: one in flight.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[256]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void store_two_buffers_ok(u32 *out)
{
    __shared__ alignas(16) u32 tile[2][32];
    for (u32 k = 0; k < 8; k++) {
        if (threadIdx.x == 0)
            bulk_wait_read<1>();
        __syncwarp();
        tile[k % 2][threadIdx.x] = k * 32 + threadIdx.x; // @store
        proxy_fence();
        __syncwarp();
        if (threadIdx.x == 0) {
            bulk_out(out + k * 32, at(tile[k % 2]), 128);
            bulk_commit();
        }
    }
    if (threadIdx.x == 0)
        bulk_wait<0>();
}
