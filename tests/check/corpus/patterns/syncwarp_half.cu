// syncwarp_half: __syncwarp of the lower half where both halves exchange.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    race-shared uninitialized

extern "C" __global__ void syncwarp_half(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[32];
    tile[threadIdx.x] = in[threadIdx.x]; // @store
    __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
    out[threadIdx.x] = tile[31 - threadIdx.x]; // @read
}
