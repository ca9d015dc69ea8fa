// shuffle_tail: threads beyond n leave, and the rest shuffle with a full mask.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64] --arg u32:50
// EXPECT:   mask-exited @shfl
// ALLOW:    shfl-inactive mask-exited

extern "C" __global__ void shuffle_tail(const unsigned *in, unsigned *out, unsigned n)
{
    if (threadIdx.x >= n)
        return;
    unsigned value = in[threadIdx.x];
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffff, value, distance); // @shfl
        out[threadIdx.x] = value;
}
