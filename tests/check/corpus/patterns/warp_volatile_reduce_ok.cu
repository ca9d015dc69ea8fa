// warp_volatile_reduce_ok: with __syncwarp between reads and writes.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:ones --arg u32[1]
// EXPECT:   clean

extern "C" __global__ void warp_volatile_reduce_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        unsigned sum = tile[threadIdx.x];
        for (unsigned half = 32; half > 0; half /= 2) {
            sum += threadIdx.x + half < 64 ? tile[threadIdx.x + half] : 0;
            __syncwarp();
            tile[threadIdx.x] = sum;
            __syncwarp();
        }
    }
    if (threadIdx.x == 0)
        *out = tile[0];
}
