// syncwarp_half_ok: of all lanes.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 32 --arg u32[32]:iota --arg u32[32]
// EXPECT:   clean

extern "C" __global__ void syncwarp_half_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[32];
    tile[threadIdx.x] = in[threadIdx.x]; // @store
    __syncwarp();
    out[threadIdx.x] = tile[31 - threadIdx.x]; // @read
}
