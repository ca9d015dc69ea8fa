// pipeline_roles: consumers release the stage, then read it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[512]:iota --arg u32[32]
// EXPECT:   async-overwrite|race-shared
// ALLOW:    async-overwrite race-shared async-read-early
#include <cooperative_groups.h>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

// A pipeline of the block with roles: warp 0 consumes, warp 1 produces.
extern "C" __global__ void pipeline_roles(const unsigned *in, unsigned *out)
{
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ unsigned stage[2][64];
    auto block = cg::this_thread_block();
    const auto role = threadIdx.x < 32 ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    if (role == cuda::pipeline_role::producer) {
        const unsigned lane = threadIdx.x - 32;
        for (unsigned k = 0; k < 8; k++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[k % 2][lane * 2], &in[k * 64 + lane * 2], cuda::aligned_size_t<8>(8), pipe);
            pipe.producer_commit();
        }
    } else {
        unsigned sum = 0;
        for (unsigned k = 0; k < 8; k++) {
            pipe.consumer_wait();
            pipe.consumer_release();
            sum += stage[k % 2][threadIdx.x] + stage[k % 2][63 - threadIdx.x];
        }
        out[threadIdx.x] = sum;
    }
}
