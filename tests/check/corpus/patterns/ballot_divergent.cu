// ballot_divergent: lanes vote with the mask of all in a branch that only some take.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   mask-diverged|mask-exited|deadlock
// ALLOW:    mask-diverged deadlock mask-exited shfl-inactive

extern "C" __global__ void ballot_divergent(const unsigned *in, unsigned *out)
{
    const unsigned value = in[threadIdx.x];
    const unsigned takers = __ballot_sync(0xffffffff, value % 3 == 0);
    if (value % 3 == 0)
        out[threadIdx.x] = __ballot_sync(0xffffffff, value > 8);
    else
        out[threadIdx.x] = takers;
}
