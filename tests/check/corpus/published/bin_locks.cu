// bin_locks: locks in shared memory, one a bin, are given back by a plain store.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[8]
// EXPECT:   race-shared
// ALLOW:    race-shared race-same-value
extern "C" __global__ void bin_locks(const unsigned *in, unsigned *out)
{
    __shared__ unsigned lock[8], sum[8];
    const unsigned t = threadIdx.x, bin = in[t] % 8;
    if (t < 8)
        lock[t] = sum[t] = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock[bin], 0, 1) == 0) {
            __threadfence_block();
            sum[bin] += in[t];
            lock[bin] = 0;
            done = true;
        }
    __syncthreads();
    if (t < 8)
        out[t] = sum[t];
}
