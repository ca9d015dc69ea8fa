// remote_add_scope: atomics of block scope on a peer's shared memory.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 64 --cluster 4 --arg u32[512]:random(1) --arg u32[64]
// EXPECT:   race-scope|race-remote @add @add within cluster
// ALLOW:    race-scope race-remote
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each block counts in the bins of the cluster's first block.
extern "C" __global__ void remote_add_scope(const unsigned *in, unsigned *out)
{
    __shared__ unsigned bins[32];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < 32)
        bins[threadIdx.x] = 0;
    cluster.sync();
    atomicAdd_block(cluster.map_shared_rank(bins, 0) + in[blockIdx.x * blockDim.x + threadIdx.x] % 32, 1); // @add
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x < 32)
        out[blockIdx.x / 4 * 32 + threadIdx.x] = bins[threadIdx.x];
}
