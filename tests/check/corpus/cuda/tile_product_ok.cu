// tile_product_ok: the tiled product with both barriers.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2,2 --block 16,16 --arg f32[1024]:iota --arg f32[1024]:ones --arg f32[1024] --arg u32:32
// EXPECT:   clean

extern "C" __global__ void tile_product_ok(const float *a, const float *b, float *c, unsigned n)
{
    __shared__ float tile_a[16][16], tile_b[16][16];
    const unsigned row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (unsigned first = 0; first < n; first += 16) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];      // @store
        tile_b[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column]; // @store_b
        __syncthreads();
        for (unsigned i = 0; i < 16; i++)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x]; // @read
        __syncthreads();
    }
    c[row * n + column] = sum;
}
