/* reduce_fast_cluster: as fast as DRAM too, with a finish through distributed shared memory: each CTA stores its total in
   rank 0's shared memory, and rank 0 adds one global atomic per cluster. The barrier that says that rank 0 has started is
   arrived at on entry and waited for at the end.

   A cluster starts and ends as one, which costs SM time each time one passes: at 2^28 floats tiles took 258 to 275 us,
   CTAs that stay 243 with clusters of 1 or 2 and 254 with 4 or 8, which leave 16 or 24 of the 264 places empty; at
   2^26 tiles took 71 against 73 to 75, but in clusters of 1 75 (H200, driver 580.159.04, 2026-11-30, cold L2). Tile form, when the grid covers the
   input: 4 float4 per thread. Pipeline form otherwise: ring.cuh.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   block 256, the grid a multiple of the cluster of 1 to 16 CTAs. Tile form: grid >= ceil(n / 4096), no dynamic
             shared memory; pipeline form: two CTAs per SM with 96 KiB of dynamic shared memory each.
   Needs:    CUDA C++17, sm_90.   Expect: one global atomic per cluster. */
#include "fast.cuh"
#include "ring.cuh"
#include "textbook.cuh"

extern "C" __global__ void __launch_bounds__(RING_THREADS)
    reduce_fast_cluster(const float *input, float *sum, unsigned long long n)
{
    extern __shared__ __align__(128) float4 ring[];
    __shared__ unsigned long long full[RING_STAGES];
    __shared__ float warps[RING_THREADS / 32];
    __shared__ float totals[MAX_CLUSTER]; /* of rank 0: one slot per CTA of the cluster */
    cluster_arrive_relaxed();
    const span s = span_of(input, n);
    float total = gridDim.x * (RING_THREADS * 4ull) >= s.count ? tile_sum<RING_THREADS, 4, true>(s)
                                                               : ring_sum(s, ring, full);
    total += edge_sum(s);
    total = cta_sum<RING_THREADS>(total, warps);
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
