/* reduce_relaxed: reduce_inline with a relaxed second arrive. That barrier publishes nothing: it only keeps the peers
   from ending while rank 0 reads. A relaxed arrive orders no memory accesses, so the reads must be over by themselves
   before it: their values are consumed, by the atomic that adds them, first.

   Contract, launch: textbook.cuh.   Needs: CUDA C++17, sm_90.   Expect: grid / cluster global atomics; in SASS one
   MEMBAR less per thread. */
#include "textbook.cuh"

extern "C" __global__ void reduce_relaxed(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    float total = block_total(tile, input, n);

    cluster_arrive_release(); /* every CTA has started, and its total is in tile[0] */
    cluster_wait();
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        for (unsigned int rank = 1; rank < cluster_size(); rank++)
            total += cluster_load(cluster_map(tile, rank));
        atomicAdd(sum, total); /* needs every loaded value */
    }
    cluster_arrive_relaxed(); /* no CTA ends while its shared memory may still be read */
    cluster_wait();
}
