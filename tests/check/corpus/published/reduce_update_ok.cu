// reduce_update_ok: after the block has met.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[256]:iota --arg u32[256]
// EXPECT:   clean
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

extern "C" __global__ void reduce_update_ok(const unsigned *in, unsigned *out)
{
    __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> sum;
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    if (threadIdx.x == 0)
        sum.store(0, cuda::memory_order_relaxed);
    block.sync();
    cg::reduce_update_async(tile, sum, in[blockIdx.x * 128 + threadIdx.x], cg::plus<unsigned>());
    block.sync();
    unsigned seen = sum.load(cuda::memory_order_relaxed);
    out[blockIdx.x * 128 + threadIdx.x] = seen;
}
