// shuffle_tail_ok: everybody shuffles, and those beyond n store nothing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64] --arg u32:50
// EXPECT:   clean

extern "C" __global__ void shuffle_tail_ok(const unsigned *in, unsigned *out, unsigned n)
{
    unsigned value = threadIdx.x < n ? in[threadIdx.x] : 0;
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffff, value, distance); // @shfl
    if (threadIdx.x < n)
        out[threadIdx.x] = value;
}
