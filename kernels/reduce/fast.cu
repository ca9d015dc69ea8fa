/* reduce_fast: the input at the rate of DRAM, one global atomic per CTA; forms and launch in fast.cuh.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   tile form: block 1024, grid = ceil(n / 8192), no dynamic shared memory; pipeline form: block 512, one CTA per
             SM, 192 KiB of dynamic shared memory.
   Needs:    CUDA C++17, sm_90.   Expect: one global atomic per CTA. */
#include "fast.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    reduce_fast(const float *input, float *sum, unsigned long long n)
{
    extern __shared__ __align__(128) float4 ring[];
    __shared__ unsigned long long full[RING_STAGES];
    __shared__ float warps[MAX_THREADS / 32];
    const float total = cta_sum(input, n, ring, full, warps);
    if (threadIdx.x == 0)
        atomicAdd(sum, total);
}
