// group_of_another_thread_ok: the same thread waits.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[256]
// EXPECT:   clean
#include "../protocols/protocol.cuh"

extern "C" __global__ void group_of_another_thread_ok(const u32 *in, u32 *out)
{
    __shared__ alignas(128) u32 stage[64];
    for (u32 k = 0; k < 4; k++) {
        stage[threadIdx.x] = in[threadIdx.x] * (k + 1);
        proxy_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_out(out + 64 * k, at(stage), 256);
            bulk_commit();
        }
        if (threadIdx.x == 0)
            bulk_wait_read<0>();
        __syncthreads();
    }
}
