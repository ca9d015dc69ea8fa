// bulk_add_ok: after wait_group.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:ones --arg u32[32]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void bulk_add_ok(u32 *sums, u32 *out)
{
    __shared__ alignas(16) u32 tile[32];
    tile[threadIdx.x] = threadIdx.x;
    proxy_fence();
    __syncwarp();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(sums)), "r"(at(tile)) : "memory");
        bulk_commit();
        bulk_wait<0>();
        out[0] = sums[7]; // @read
    }
}
