/* reduce_atomic: the textbook block sum, and the baseline of the experiment.

   Each thread loads two floats, the CTA sums them in shared memory (a tree of bar.sync and add), and thread 0 adds the
   CTA's total to *sum with one global atomic.

   Contract: (const float *input, float *sum, uint64 n); *sum is zero before, the sum of input[0..n) after.
   Launch:   block a power of two up to 1024, one-dimensional; grid x 2 x block >= n, any more CTAs add zero.
   Needs:    CUDA C++17, sm_50 or later.   Expect: ceil(n / (2 block)) global atomics, one per CTA. */

extern "C" __global__ void reduce_atomic(const float *input, float *sum, unsigned long long n)
{
    __shared__ float tile[1024];
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
    if (tid == 0)
        atomicAdd(sum, tile[0]);
}
