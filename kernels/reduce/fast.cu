/* reduce_fast: the input at the rate of DRAM. One tile per CTA, so that the hardware deals the work to the SMs as they
   come free and all of them finish together; FIGURES

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   block 1024; grid = ceil(n / 8192), or for inputs from 2^27 floats ceil(n / 16384).
   Needs:    CUDA C++17.   Expect: one global atomic per CTA. */
#include "fast.cuh"

#define THREADS 1024

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_fast(const float *input, float *sum, unsigned long long n)
{
    __shared__ float warps[THREADS / 32];
    const span s = span_of(input, n);
    float total = gridDim.x * (THREADS * 2ull) >= s.count ? tile_sum<THREADS, 2, true>(s) : tile_sum<THREADS, 4, false>(s);
    total += edge_sum(s);
    total = cta_sum<THREADS>(total, warps);
    if (threadIdx.x == 0)
        atomicAdd(sum, total);
}
