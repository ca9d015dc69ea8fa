// epilogue_ok: after wait_group.read and the barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[512]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void epilogue_ok(u32 *out)
{
    __shared__ alignas(128) u32 tile[128];
    for (u32 part = 0; part < 4; part++) {
        if (threadIdx.x == 0)
            bulk_wait_read<0>();
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
