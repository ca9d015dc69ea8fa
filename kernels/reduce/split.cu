/* reduce_split: the halves of the cluster barrier with the work between them. The CTAs push: each stores its total into
   rank 0's shared memory, so that the first barrier only has to say that rank 0 has started. Every thread arrives at it
   on entry (relaxed: nothing is published) and waits for it after the block sum, by when it is long complete. The
   second barrier hands the totals over; the peers need no third, since nobody reads their shared memory.

   Contract, launch: textbook.cuh.   Needs: CUDA C++17, sm_90.   Expect: grid / cluster global atomics. */
#include "textbook.cuh"

extern "C" __global__ void reduce_split(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    __shared__ float totals[MAX_CLUSTER]; /* of rank 0: one slot per CTA of the cluster */
    cluster_arrive_relaxed();
    float total = block_total(tile, input, n);
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
