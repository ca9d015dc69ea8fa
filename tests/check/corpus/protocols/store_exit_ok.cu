// store_exit_ok: after wait_group.read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void store_exit_ok(u32 *out)
{
    __shared__ alignas(16) u32 tile[32];
    tile[threadIdx.x] = threadIdx.x;
    proxy_fence();
    __syncwarp();
    if (threadIdx.x == 0) {
        bulk_out(out + blockIdx.x * 32, at(tile), 128);
        bulk_commit();
        bulk_wait_read<0>();
    }
}
