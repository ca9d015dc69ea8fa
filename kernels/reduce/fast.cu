/* reduce_fast: the input at the rate of DRAM. One tile per CTA: the hardware deals the tiles to the SMs as they come free,
   so that all of them finish together, which a grid of CTAs that stay, each with its share, did not.

   Small inputs go in tiles of 2 float4 per thread, whose lines replace each other in the L2. What an earlier kernel wrote
   then stays there and is not written back meanwhile: 21.5 us against 25.1 at n = 16,776,605 after a flush by a memset,
   19.3 either way after one by reads. A long input drives those lines out in any case, slowly and between the reads if
   its own go first: 249.1 us against 246.1 at 2^28. It goes in tiles of 8 float4, its lines as any other's.

   Against CUB 3.0.1's DeviceReduce::Sum (H200, driver 580.159.04, 2026-11-30; interleaved, cold L2, *sum zeroed within
   the time; tests/evidence/nvidia-h200/reduce_vs_cub.jsonl): 21.7 us, 1.31 times as fast, at n = 16,776,605; 241.6 us,
   4444 GB/s, 1.021 times at 2^28; 1832.9 us, 4687 GB/s (98 % of 4.8 TB/s), 1.012 times at 2^31.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   block 1024; grid = ceil(n / 8192), or for inputs from 2^27 floats ceil(n / 32768).
   Needs:    CUDA C++17.   Expect: one global atomic per CTA. */
#include "fast.cuh"

#define THREADS 1024

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    reduce_fast(const float *input, float *sum, unsigned long long n)
{
    __shared__ float warps[THREADS / 32];
    const span s = span_of(input, n);
    float total = gridDim.x * (THREADS * 2ull) >= s.count ? tile_sum<THREADS, 2, true>(s) : tile_sum<THREADS, 8, false>(s);
    total += edge_sum(s);
    total = cta_sum<THREADS>(total, warps);
    if (threadIdx.x == 0)
        atomicAdd(sum, total);
}
