// scan_double_buffer_ok: with one barrier a step, which two buffers make enough.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:ones --arg u32[128]
// EXPECT:   clean

extern "C" __global__ void scan_double_buffer_ok(const unsigned *in, unsigned *out)
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
        __syncthreads();
    }
    out[i] = sum[now][i];
}
