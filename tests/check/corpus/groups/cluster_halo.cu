// cluster_halo: the block's barrier stands where the cluster's should before the halo is read.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cluster 4 --arg f32[256]:iota --arg f32[256]
// EXPECT:   race-remote|remote-before-start @halo within cluster
// ALLOW:    race-remote remote-before-start
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_halo(const float *in, float *out)
{
    __shared__ float line[64];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned i = blockIdx.x * 64 + threadIdx.x, rank = cluster.block_rank();
    line[threadIdx.x] = in[i];
    __syncthreads();
    float right = 0;
    if (threadIdx.x < 63)
        right = line[threadIdx.x + 1];
    else if (rank < 3)
        right = *cluster.map_shared_rank(&line[0], rank + 1); // @halo
    out[i] = line[threadIdx.x] + right;
    cluster.sync();
}
