// warp_reduce_one_sync_ok: with two.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:ones --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void warp_reduce_one_sync_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[32];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    for (unsigned half = 16; half > 0; half /= 2) {
        const unsigned other = tile[threadIdx.x ^ half];
        __syncwarp();
        tile[threadIdx.x] += other; // @step
        __syncwarp();
    }
    if (threadIdx.x == 0)
        *out = tile[0];
}
