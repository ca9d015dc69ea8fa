/* reduce_cg: one global atomic per cluster, with cooperative groups.

   The block sum of reduce_atomic; then rank 0 of each cluster reads every CTA's total through map_shared_rank (a generic
   pointer into the peer's shared memory) and adds their sum to *sum.

   Contract, launch: textbook.cuh.   Needs: CUDA C++17, cooperative_groups.h, sm_90.
   Expect: grid / cluster global atomics. */
#include "textbook.cuh"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void reduce_cg(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    const cg::cluster_group cluster = cg::this_cluster();
    block_total(tile, input, n);

    cluster.sync(); /* every CTA has started, and its total is in tile[0] */
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        float total = 0.0f;
        for (unsigned int rank = 0; rank < cluster.num_blocks(); rank++)
            total += *cluster.map_shared_rank(tile, rank);
        atomicAdd(sum, total);
    }
    cluster.sync(); /* no CTA ends while its shared memory may still be read */
}
