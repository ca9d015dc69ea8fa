// warp_volatile_reduce: the last warp of the tree relies on lockstep.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:ones --arg u32[1]
// EXPECT:   race-shared
// ALLOW:    race-shared

extern "C" __global__ void warp_volatile_reduce(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        volatile unsigned *sums = tile;
        for (unsigned half = 32; half > 0; half /= 2)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *out = tile[0];
}
