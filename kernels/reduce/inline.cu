/* reduce_inline: CUDA C++ with the cluster instructions as inline PTX; what reduce_mapa does by hand.

   Contract, launch: textbook.cuh.   Needs: CUDA C++17, sm_90.   Expect: grid / cluster global atomics. */
#include "textbook.cuh"

extern "C" __global__ void reduce_inline(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    float total = block_total(tile, input, n);

    cluster_arrive_release(); /* every CTA has started, and its total is in tile[0] */
    cluster_wait();
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        for (unsigned int rank = 1; rank < cluster_size(); rank++)
            total += cluster_load(cluster_map(tile, rank));
        atomicAdd(sum, total);
    }
    cluster_arrive_release(); /* no CTA ends while its shared memory may still be read */
    cluster_wait();
}
