// fp16_tile_transposed_ok: between storing and reading.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:zero --arg u32[512]
// EXPECT:   clean
#include <cuda_fp16.h>

extern "C" __global__ void fp16_tile_transposed_ok(const unsigned *in, unsigned *out)
{
    __shared__ __half tile[16][34];
    const unsigned t = threadIdx.x;
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < 4; i++) {
            const unsigned w = i * 64 + t;
            *reinterpret_cast<__half2 *>(&tile[w / 16][2 * (w % 16)]) = *reinterpret_cast<const __half2 *>(&in[k * 256 + w]);
        }
        __syncthreads();
        for (unsigned i = 0; i < 4; i++) {
            const unsigned w = i * 64 + t, row = w % 8 * 2, column = w / 8;
            const __half2 both = __halves2half2(tile[row][column], tile[row + 1][column]);
            out[k * 256 + w] = *reinterpret_cast<const unsigned *>(&both);
        }
        __syncthreads();
    }
}
