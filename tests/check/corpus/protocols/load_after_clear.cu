// load_after_clear: the buffer is cleared by ordinary stores, then filled by a copy: no proxy fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   proxy-fence
#include "protocol.cuh"

extern "C" __global__ void load_after_clear(const u32 *in, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    tile[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        bar_init(at(&full), 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bar_expect(at(&full), 256);
        bulk_in(at(tile), in, 256, at(&full));
    }
    bar_wait(at(&full), 0);
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
