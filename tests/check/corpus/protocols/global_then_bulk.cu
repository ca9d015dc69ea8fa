// global_then_bulk: global words are stored by the block and read back by a bulk copy: no proxy fence.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64] --arg u32[64]
// EXPECT:   proxy-fence
#include "protocol.cuh"

extern "C" __global__ void global_then_bulk(u32 *words, u32 *out)
{
    __shared__ alignas(16) u32 tile[64];
    __shared__ u64 full;
    words[threadIdx.x] = threadIdx.x * 7;
    if (threadIdx.x == 0)
        bar_init(at(&full), 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bar_expect(at(&full), 256);
        bulk_in(at(tile), words, 256, at(&full));
    }
    bar_wait(at(&full), 0);
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
