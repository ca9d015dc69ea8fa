/* reduce_atomic: the textbook block sum, and the baseline of the experiment.

   Each thread loads two floats, the CTA sums them in shared memory (a tree of bar.sync and add), and thread 0 adds the
   CTA's total to *sum with one global atomic.

   Contract, launch: textbook.cuh; no cluster.   Needs: CUDA C++17, sm_50 or later.
   Expect: ceil(n / (2 block)) global atomics, one per CTA. */
#include "textbook.cuh"

extern "C" __global__ void reduce_atomic(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    const float total = block_total(tile, input, n);
    if (threadIdx.x == 0)
        atomicAdd(sum, total);
}
