// bulk_to_bulk_ok: after wait_group; a completed copy needs no proxy fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[64] --arg u32[1]:0 --arg u32[64]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void bulk_to_bulk_ok(u32 *row, u32 *flag, u32 *out)
{
    __shared__ alignas(128) u32 tile[64];
    __shared__ u64 bar;
    const u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        tile[t] = t;
        tile[t + 32] = t * 2;
        proxy_fence();
        __syncwarp();
        if (t == 0) {
            bulk_out(row, at(tile), 256);
            bulk_commit();
            bulk_wait<0>();
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
        }
        return;
    }
    if (t == 0) {
        bar_init(at(&bar), 1);
        u32 seen;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        bar_expect(at(&bar), 256);
        bulk_in(at(tile), row, 256, at(&bar));
    }
    __syncwarp();
    bar_wait(at(&bar), 0);
    out[t] = tile[t];
    out[t + 32] = tile[t + 32];
}
