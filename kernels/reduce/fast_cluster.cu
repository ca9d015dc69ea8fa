/* reduce_fast_cluster: reduce_fast with a finish through distributed shared memory: each CTA stores its total in rank 0's
   shared memory, and rank 0 adds one global atomic per cluster. The barrier that says that rank 0 has started is
   arrived at on entry and waited for at the end.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   as reduce_fast, the grid a multiple of the cluster of 1 to 16 CTAs.
   Needs:    CUDA C++17, sm_90.   Expect: one global atomic per cluster. */
#include "fast.cuh"
#include "textbook.cuh"

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    reduce_fast_cluster(const float *input, float *sum, unsigned long long n)
{
    extern __shared__ __align__(128) float4 ring[];
    __shared__ unsigned long long full[RING_STAGES];
    __shared__ float warps[MAX_THREADS / 32];
    __shared__ float totals[MAX_CLUSTER]; /* of rank 0: one slot per CTA of the cluster */
    cluster_arrive_relaxed();
    float total = cta_sum(input, n, ring, full, warps);
    cluster_wait(); /* rank 0 has started */

    if (threadIdx.x == 0)
        cluster_store(cluster_map(&totals[cluster_rank()], 0), total);
    cluster_arrive_release(); /* the totals are in rank 0's slots */
    cluster_wait();
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        total = 0.0f;
        for (unsigned int rank = 0; rank < cluster_size(); rank++)
            total += totals[rank];
        atomicAdd(sum, total);
    }
}
