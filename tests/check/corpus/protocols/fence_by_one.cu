// fence_by_one: only the thread that issues the copy fences, before the barrier: its fence covers no others' stores.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]
// EXPECT:   proxy-fence
#include "protocol.cuh"

extern "C" __global__ void fence_by_one(u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    tile[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 0)
        proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_out(out, at(tile), 256);
        bulk_commit();
        bulk_wait_read<0>();
    }
}
