// shuffle_sum_partial_ok: over the lanes of the branch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void shuffle_sum_partial_ok(const unsigned *in, unsigned *out)
{
    unsigned value = in[threadIdx.x];
    if (threadIdx.x < 20) {
        for (unsigned distance = 16; distance > 0; distance /= 2) {
            const unsigned from = threadIdx.x + distance, other = __shfl_sync(0xfffff, value, from < 20 ? from : 0);
            value += from < 20 ? other : 0;
        }
    }
    out[threadIdx.x] = value;
}
