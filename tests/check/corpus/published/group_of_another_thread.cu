// group_of_another_thread: one thread commits the bulk store, another waits: groups belong to threads, so that it waits for nothing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[256]
// EXPECT:   async-source
// ALLOW:    async-source async-exit
#include "../protocols/protocol.cuh"

extern "C" __global__ void group_of_another_thread(const u32 *in, u32 *out)
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
        if (threadIdx.x == 32)
            bulk_wait_read<0>();
        __syncthreads();
    }
    if (threadIdx.x == 0)
        bulk_wait_read<0>();
}
