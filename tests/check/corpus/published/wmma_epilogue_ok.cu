// wmma_epilogue_ok: with one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[256]:zero --arg f32[512]
// EXPECT:   clean
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_epilogue_ok(const unsigned *in, float *out)
{
    __shared__ alignas(32) float tile[2][256];
    const unsigned warp = threadIdx.x / 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(a, reinterpret_cast<const __half *>(in), 16);
    wmma::load_matrix_sync(b, reinterpret_cast<const __half *>(in + 128), 16);
    wmma::fill_fragment(c, 1.0f);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(tile[warp], c, 16, wmma::mem_row_major);
    __syncthreads();
    for (unsigned i = 0; i < 8; i++)
        out[i * 64 + threadIdx.x] = tile[1 - warp][(i * 32 + threadIdx.x) % 256];
}
