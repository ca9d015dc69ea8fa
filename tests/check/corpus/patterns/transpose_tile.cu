// transpose_tile: a padded tile is read by columns without a barrier after it was filled by rows.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2,2 --block 32,8 --arg f32[4096]:iota --arg f32[4096]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    uninitialized

extern "C" __global__ void transpose_tile(const float *in, float *out)
{
    __shared__ float tile[32][33];
    for (unsigned y = threadIdx.y; y < 32; y += 8)
        tile[y][threadIdx.x] = in[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + threadIdx.x]; // @store
    for (unsigned y = threadIdx.y; y < 32; y += 8)
        out[(blockIdx.x * 32 + y) * 64 + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][y]; // @read
}
