// store_read_back: the thread reads global memory after wait_group.read: read from shared memory, not yet written.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32] --arg u32[1]
// EXPECT:   async-read-early @read
#include "protocol.cuh"

extern "C" __global__ void store_read_back(u32 *out, u32 *seen)
{
    __shared__ alignas(16) u32 tile[32];
    tile[threadIdx.x] = threadIdx.x;
    proxy_fence();
    __syncwarp();
    if (threadIdx.x == 0) {
        bulk_out(out, at(tile), 128);
        bulk_commit();
        bulk_wait_read<0>();
        *seen = *(volatile u32 *)(out + 5); // @read
    }
}
