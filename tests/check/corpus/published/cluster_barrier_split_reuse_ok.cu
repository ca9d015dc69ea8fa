// cluster_barrier_split_reuse_ok: after waiting.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --cluster 2 --arg u32[64]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_barrier_split_reuse_ok(unsigned *out)
{
    __shared__ unsigned words[32];
    auto cluster = cg::this_cluster();
    const unsigned t = threadIdx.x, me = cluster.block_rank();
    words[t] = t + me;
    cluster.sync();
    const unsigned got = cluster.map_shared_rank(words, me ^ 1)[t];
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(static_cast<decltype(token) &&>(token));
    words[t] = got;
    __syncthreads();
    out[me * 32 + t] = words[31 - t];
}
