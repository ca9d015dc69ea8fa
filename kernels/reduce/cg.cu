/* reduce_cg: one global atomic per cluster, with cooperative groups.

   The block sum of reduce_atomic; then rank 0 of each cluster reads every CTA's total through map_shared_rank (a generic
   pointer into the peer's shared memory) and adds their sum to *sum.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   as reduce_atomic, the grid a multiple of the cluster; one-dimensional cluster of 1 to 16 CTAs.
   Needs:    CUDA C++17, cooperative_groups.h, sm_90.   Expect: grid / cluster global atomics. */

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void reduce_cg(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[1024];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned int tid = threadIdx.x;
    const unsigned long long first = blockIdx.x * 2ull * blockDim.x + tid, second = first + blockDim.x;

    float total = first < n ? input[first] : 0.0f;
    if (second < n)
        total += input[second];
    tile[tid] = total;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            tile[tid] += tile[tid + half];
        __syncthreads();
    }

    cluster.sync(); /* every CTA has started, and its total is in tile[0] */
    if (cluster.block_rank() == 0 && tid == 0) {
        float cluster_total = 0.0f;
        for (unsigned int rank = 0; rank < cluster.num_blocks(); rank++)
            cluster_total += *cluster.map_shared_rank(tile, rank);
        atomicAdd(sum, cluster_total);
    }
    cluster.sync(); /* no CTA ends while its shared memory may still be read */
}
