// match_groups: a lane of each group of equal keys adds for all: without an atomic.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(2) --arg u32[8]
// EXPECT:   race-global
// ALLOW:    race-global race-same-value

extern "C" __global__ void match_groups(const unsigned *in, unsigned *bins)
{
    const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 8;
    const unsigned peers = __match_any_sync(0xffffffff, bin);
    if (threadIdx.x % 32 == __ffs(peers) - 1)
        bins[bin] += __popc(peers);
}
