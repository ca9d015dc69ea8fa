// block_arrive: the block arrives, reads, and waits afterwards.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 128 --arg u32[128]:iota --arg u32[128]
// EXPECT:   race-shared @store @read within cta
// ALLOW:    uninitialized
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void block_arrive(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[128];
    cg::thread_block block = cg::this_thread_block();
    words[threadIdx.x] = in[threadIdx.x]; // @store
    cg::thread_block::arrival_token token = block.barrier_arrive();
    out[threadIdx.x] = words[127 - threadIdx.x]; // @read
    block.barrier_wait(cuda::std::move(token));
}
