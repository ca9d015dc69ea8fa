// parity_first_ok: for parity 0.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   clean
#include "protocol.cuh"

extern "C" __global__ void parity_first_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    if (threadIdx.x == 0)
        bar_init(at(&full), 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bar_expect(at(&full), 256);
        bulk_in(at(tile), in, 256, at(&full));
    }
    bar_wait(at(&full), 0);
    out[threadIdx.x] = tile[threadIdx.x ^ 1]; // @read
}
