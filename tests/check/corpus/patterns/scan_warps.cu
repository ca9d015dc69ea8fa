// scan_warps: the first warp scans the totals of the warps before these have stored them.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[256]:ones --arg u32[256]
// EXPECT:   race-shared @total @read within cta
// ALLOW:    race-shared uninitialized race-same-value

extern "C" __global__ void scan_warps(const unsigned *in, unsigned *out)
{
    __shared__ unsigned totals[4];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * 128 + threadIdx.x;
    unsigned value = in[i];
    for (unsigned step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffff, value, step);
        if (lane >= step)
            value += other;
    }
    if (lane == 31)
        totals[warp] = value; // @total
    if (warp == 0 && lane < 4) {
        unsigned total = totals[lane]; // @read
        for (unsigned step = 1; step < 4; step *= 2) {
            const unsigned other = __shfl_up_sync(0xf, total, step);
            if (lane >= step)
                total += other;
        }
        totals[lane] = total;
    }
    __syncthreads();
    out[i] = value + (warp > 0 ? totals[warp - 1] : 0);
}
