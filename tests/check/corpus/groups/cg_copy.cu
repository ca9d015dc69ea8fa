// cg_copy: cg::memcpy_async is read after a wait for it, without the group that copied.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 64 --arg u32[64]:iota --arg u32[64]
// EXPECT:   async-read-early|race-shared @read
// ALLOW:    async-read-early race-shared uninitialized
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cg_copy(const unsigned *in, unsigned *out)
{
    __shared__ alignas(16) unsigned words[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, words, in, sizeof words);
    out[threadIdx.x] = words[63 - threadIdx.x]; // @read
}
