/* reduce_parallel: rank 0 collects with one thread per CTA of the cluster instead of one after the other. Each of the
   first cluster_nctarank threads maps and loads one tile; a butterfly of shuffles adds them.

   Contract, launch: textbook.cuh; block of at least 32.   Needs: CUDA C++17, sm_90.
   Expect: grid / cluster global atomics. */
#include "textbook.cuh"

extern "C" __global__ void reduce_parallel(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[MAX_BLOCK];
    block_total(tile, input, n);

    cluster_arrive_release(); /* every CTA has started, and its total is in tile[0] */
    cluster_wait();
    if (cluster_rank() == 0 && threadIdx.x < 32) {
        float total = 0.0f;
        if (threadIdx.x < cluster_size())
            total = cluster_load(cluster_map(tile, threadIdx.x));
        for (int distance = MAX_CLUSTER / 2; distance > 0; distance /= 2)
            total += __shfl_xor_sync(0xffffffffu, total, distance);
        if (threadIdx.x == 0)
            atomicAdd(sum, total);
    }
    cluster_arrive_release(); /* no CTA ends while its shared memory may still be read */
    cluster_wait();
}
