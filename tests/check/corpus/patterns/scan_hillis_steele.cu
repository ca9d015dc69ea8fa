// scan_hillis_steele: the scan adds in one buffer with one barrier a step: a neighbour may have been added to already.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:ones --arg u32[256]
// EXPECT:   race-shared @read @write within cta
// ALLOW:    race-shared

extern "C" __global__ void scan_hillis_steele(const unsigned *in, unsigned *out)
{
    __shared__ unsigned sum[256];
    const unsigned i = threadIdx.x;
    sum[i] = in[i];
    __syncthreads();
    for (unsigned step = 1; step < 256; step *= 2) {
        unsigned other = 0;
        if (i >= step)
            other = sum[i - step]; // @read
        sum[i] += other; // @write
        __syncthreads();
    }
    out[i] = sum[i];
}
