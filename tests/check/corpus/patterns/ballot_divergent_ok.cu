// ballot_divergent_ok: with the mask of those that took it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void ballot_divergent_ok(const unsigned *in, unsigned *out)
{
    const unsigned value = in[threadIdx.x];
    const unsigned takers = __ballot_sync(0xffffffff, value % 3 == 0);
    if (value % 3 == 0)
        out[threadIdx.x] = __ballot_sync(takers, value > 8);
    else
        out[threadIdx.x] = takers;
}
