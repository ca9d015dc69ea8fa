// cluster_split_barrier_ok: after the wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cluster 4 --arg u32[256]:iota --arg u32[256]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_split_barrier_ok(const unsigned *in, unsigned *out)
{
    __shared__ unsigned words[64];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned i = blockIdx.x * 64 + threadIdx.x;
    words[threadIdx.x] = in[i]; // @store
    cg::cluster_group::arrival_token token = cluster.barrier_arrive();
    cluster.barrier_wait(cuda::std::move(token));
    out[i] = cluster.map_shared_rank(words, cluster.block_rank() ^ 1)[threadIdx.x]; // @peer
    cluster.sync();
}
