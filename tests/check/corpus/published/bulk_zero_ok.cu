// bulk_zero_ok: after __syncthreads.
//
// Needs:    CUDA C++17, sm_100
// DEVICE:   emu:sm_100
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void bulk_zero_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 bins[64];
    if (threadIdx.x == 0)
        asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"(at(bins)) : "memory");
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] % 7], 1);
    __syncthreads();
    if (threadIdx.x < 7)
        out[threadIdx.x] = bins[threadIdx.x];
}
