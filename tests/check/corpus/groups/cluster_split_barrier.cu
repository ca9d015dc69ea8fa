// cluster_split_barrier: peers are read between the arrival at the cluster barrier and the wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cluster 4 --arg u32[256]:iota --arg u32[256]
// EXPECT:   race-remote|remote-before-start @peer within cluster
// ALLOW:    race-remote remote-before-start
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_split_barrier(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[64];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    words[threadIdx.x] = in[i]; // @store
    cg::cluster_group::arrival_token token = cluster.barrier_arrive();
    out[i] = cluster.map_shared_rank(words, cluster.block_rank() ^ 1)[threadIdx.x]; // @peer
    cluster.barrier_wait(cuda::std::move(token));
    cluster.sync();
}
