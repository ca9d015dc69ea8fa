// scan_double_buffer: the scan swaps two buffers and forgets the barrier between its steps.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:ones --arg u32[128]
// EXPECT:   race-shared @read @write within cta
// ALLOW:    race-shared uninitialized

extern "C" __global__ void scan_double_buffer(const unsigned *in, unsigned *out)
{
    __shared__ unsigned sum[2][128];
    const unsigned i = threadIdx.x;
    unsigned now = 0;
    sum[0][i] = in[i];
    __syncthreads();
    for (unsigned step = 1; step < 128; step *= 2) {
        const unsigned value = sum[now][i] + (i >= step ? sum[now][i - step] : 0); // @read
        now ^= 1;
        sum[now][i] = value; // @write
    }
    out[i] = sum[now][i];
}
