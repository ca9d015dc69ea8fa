// epilogue: a tile is staged in shared memory and stored by one thread; the next is staged before the copy has read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[512]
// EXPECT:   async-source @stage
// ALLOW:    async-source
#include "protocol.cuh"

extern "C" __global__ void epilogue(u32 *out)
{
    __shared__ alignas(128) u32 tile[128];
    for (u32 part = 0; part < 4; part++) {
        named_sync(3, 128);
        tile[threadIdx.x ^ 3] = part * 128 + threadIdx.x; // @stage
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        named_sync(3, 128);
        if (threadIdx.x == 0) {
            bulk_out(out + part * 128, at(tile), 512);
            bulk_commit();
        }
    }
    if (threadIdx.x == 0)
        bulk_wait_read<0>();
}
