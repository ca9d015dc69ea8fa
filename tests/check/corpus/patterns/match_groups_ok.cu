// match_groups_ok: with an atomic.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 64 --arg u32[128]:random(2) --arg u32[8]
// EXPECT:   clean

extern "C" __global__ void match_groups_ok(const unsigned *in, unsigned *bins)
{
    const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 8;
    const unsigned peers = __match_any_sync(0xffffffff, bin);
    if (threadIdx.x % 32 == __ffs(peers) - 1)
        atomicAdd(&bins[bin], __popc(peers));
}
