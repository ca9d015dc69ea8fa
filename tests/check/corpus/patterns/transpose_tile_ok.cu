// transpose_tile_ok: with the barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2,2 --block 32,8 --arg f32[4096]:iota --arg f32[4096]
// EXPECT:   clean

extern "C" __global__ void transpose_tile_ok(const float *in, float *out)
{
    __shared__ float tile[32][33];
    for (unsigned y = threadIdx.y; y < 32; y += 8)
        tile[y][threadIdx.x] = in[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + threadIdx.x]; // @store
    __syncthreads();
    for (unsigned y = threadIdx.y; y < 32; y += 8)
        out[(blockIdx.x * 32 + y) * 64 + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][y]; // @read
}
