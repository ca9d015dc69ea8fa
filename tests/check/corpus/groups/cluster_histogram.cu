// cluster_histogram: the bins of a cluster are cleared by each block, and peers add to them at once.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cluster 2 --arg u32[256]:random(8) --arg u32[64]
// EXPECT:   remote-before-start|race-remote @add within cluster
// ALLOW:    race-remote remote-before-start
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_histogram(const unsigned *in, unsigned *bins)
{
    __shared__ unsigned local[32];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < 32)
        local[threadIdx.x] = 0; // @clear
    __syncthreads();
    const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 64;
    atomicAdd(cluster.map_shared_rank(&local[bin % 32], bin / 32), 1); // @add
    cluster.sync();
    if (threadIdx.x < 32)
        atomicAdd(&bins[cluster.block_rank() * 32 + threadIdx.x], local[threadIdx.x]);
}
