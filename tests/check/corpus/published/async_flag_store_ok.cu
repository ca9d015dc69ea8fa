// async_flag_store_ok: after __syncthreads.
//
// Needs:    CUDA C++17, sm_100
// DEVICE:   emu:sm_100
// LAUNCH:   --grid 2 --block 64 --arg u32[64] --arg u32[1]:0 --arg u32[64]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void async_flag_store_ok(u32 *words, u32 *flag, u32 *out)
{
    const u32 t = threadIdx.x;
    if (blockIdx.x == 0) {
        words[t] = t * 5;
        __syncthreads();
        if (t == 0)
            asm volatile("st.async.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag)) : "memory");
    } else {
        u32 seen;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        while (!seen);
        out[t] = words[63 - t];
    }
}
