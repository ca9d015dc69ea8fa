// barrier_in_both_branches: the lanes of a warp come to two different __syncthreads, one in each branch.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   barrier-divergent|barrier-count|deadlock
// ALLOW:    barrier-divergent barrier-count deadlock race-shared
extern "C" __global__ void barrier_in_both_branches(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[64];
    const unsigned t = threadIdx.x;
    if (t % 2 == 0) {
        words[t] = in[t];
        asm volatile("bar.sync 0;" ::: "memory");
    } else {
        words[t] = in[t] * 2;
        asm volatile("bar.sync 0;" ::: "memory");
    }
    out[t] = words[63 - t];
}
