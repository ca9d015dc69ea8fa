/* reduce_static: reduce_cg with its cluster fixed when it is compiled (__cluster_dims__, .reqnctapercluster): a launch
   needs no attribute, and one that asks for another shape fails with CUDA_ERROR_INVALID_CLUSTER_SIZE.

   Contract, launch: textbook.cuh, clusters of 4.   Needs: CUDA C++17, cooperative_groups.h, sm_90.
   Expect: grid / 4 global atomics. */
#include "textbook.cuh"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1)
    reduce_static(const float *input, float *sum, unsigned long long n)
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
