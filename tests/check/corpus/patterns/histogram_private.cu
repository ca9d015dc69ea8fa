// histogram_private: each warp counts into bins of its own, which are summed without a barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[512]:random(9) --arg u32[32]
// EXPECT:   race-shared @add @sum within cta
// ALLOW:    race-shared

extern "C" __global__ void histogram_private(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned local[4][32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    local[warp][lane] = 0;
    __syncwarp();
    for (unsigned i = threadIdx.x; i < 512; i += 128)
        atomicAdd(&local[warp][in[i] % 32], 1); // @add
    if (warp == 0)
        bins[lane] = local[0][lane] + local[1][lane] + local[2][lane] + local[3][lane]; // @sum
}
