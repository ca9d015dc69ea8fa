// bulk_zero: st.bulk clears the bins, and other warps count before it is known to have done so.
//
// Needs:    CUDA C++17, sm_100
// DEVICE:   emu:sm_100
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   race-shared|uninitialized|async-read-early
// ALLOW:    race-shared uninitialized async-read-early
#include "../protocols/protocol.cuh"

extern "C" __global__ void bulk_zero(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 bins[64];
    if (threadIdx.x == 0)
        asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"(at(bins)) : "memory");
    atomicAdd(&bins[in[threadIdx.x] % 7], 1);
    __syncthreads();
    if (threadIdx.x < 7)
        out[threadIdx.x] = bins[threadIdx.x];
}
