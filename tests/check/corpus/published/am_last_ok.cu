// am_last_ok: after __syncthreads.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --arg u32[256]:iota --arg u32[4] --arg u32[1]:0 --arg u32[1]
// EXPECT:   clean
// The toolkit's threadFenceReduction.
extern "C" __global__ void am_last_ok(const unsigned *in, volatile unsigned *parts, unsigned *ticket, unsigned *out)
{
    __shared__ unsigned sums[64];
    __shared__ bool last;
    const unsigned t = threadIdx.x;
    sums[t] = in[blockIdx.x * 64 + t];
    for (unsigned s = 32; s > 0; s /= 2) {
        __syncthreads();
        if (t < s)
            sums[t] += sums[t + s];
    }
    if (t == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        unsigned sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += parts[i];
        *out = sum;
        *ticket = 0;
    }
}
