// fence_by_one_ok: it fences after the barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void fence_by_one_ok(u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        proxy_fence();
        bulk_out(out, at(tile), 256);
        bulk_commit();
        bulk_wait_read<0>();
    }
}
