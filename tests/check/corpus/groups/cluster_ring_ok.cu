// cluster_ring_ok: with a cluster barrier between reading and writing.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 32 --cluster 4 --arg u32[8]
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_ring_ok(unsigned *out)
{
    __shared__ unsigned word;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    if (threadIdx.x == 0)
        word = rank;
    cluster.sync();
    for (unsigned round = 0; round < 3; round++) {
        unsigned seen = 0;
        if (threadIdx.x == 0)
            seen = *cluster.map_shared_rank(&word, next); // @read
        cluster.sync();
        if (threadIdx.x == 0)
            word = seen; // @write
        cluster.sync();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = word;
}
