// last_warp: one __syncwarp a step: a lane may add before its neighbour has read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[1]
// EXPECT:   race-shared @read @store
// ALLOW:    race-shared

extern "C" __global__ void last_warp(const unsigned *in, unsigned *out)
{
    __shared__ unsigned sums[64];
    const unsigned t = threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    if (t < 32) {
        for (unsigned step = 32; step > 0; step /= 2) {
            const unsigned other = sums[t + step]; // @read
            sums[t] += other; // @store
            __syncwarp();
        }
        if (t == 0)
            out[0] = sums[0];
    }
}
