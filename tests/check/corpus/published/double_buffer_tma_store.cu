// double_buffer_tma_store: an output tile is staged in one of two buffers, and the wait before reuse allows both to be in flight.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[512]
// EXPECT:   async-source
#include "../protocols/protocol.cuh"

extern "C" __global__ void double_buffer_tma_store(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 stage[2][64];
    for (u32 k = 0; k < 8; k++) {
        if (threadIdx.x == 0)
            bulk_wait_read<2>();
        __syncthreads();
        stage[k % 2][threadIdx.x] = in[k * 64 + 63 - threadIdx.x];
        proxy_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_out(out + k * 64, at(stage[k % 2]), 256);
            bulk_commit();
        }
    }
    if (threadIdx.x == 0)
        bulk_wait_read<0>();
}
