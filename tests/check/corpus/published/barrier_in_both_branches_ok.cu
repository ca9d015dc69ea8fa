// barrier_in_both_branches_ok: one barrier after the branches.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
extern "C" __global__ void barrier_in_both_branches_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[64];
    const unsigned t = threadIdx.x;
    if (t % 2 == 0) {
        words[t] = in[t];
    } else {
        words[t] = in[t] * 2;
    }
    asm volatile("bar.sync 0;" ::: "memory");
    out[t] = words[63 - t];
}
