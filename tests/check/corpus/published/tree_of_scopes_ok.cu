// tree_of_scopes_ok: with cluster scope, and the clusters with device scope.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 64 --cluster 2 --arg u32[8]:0 --arg u32[4]:0 --arg u32[1]:0 --arg u32[1]:0
// EXPECT:   clean
#include "../protocols/protocol.cuh"

// Sums climb from the threads to the block, the cluster, the grid; the last to arrive climbs on.
extern "C" __global__ void tree_of_scopes_ok(u32 *blocks, u32 *in_cluster, u32 *in_grid, u32 *out)
{
    const u32 sum = __syncthreads_count(threadIdx.x % 3 == 0), cluster = blockIdx.x / 2;
    if (threadIdx.x != 0)
        return;
    blocks[blockIdx.x] = sum;
    u32 before;
    asm volatile("atom.acq_rel.cluster.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(in_cluster + cluster) : "memory");
    if (before != 1)
        return;
    blocks[2 * cluster] += blocks[2 * cluster + 1];
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(in_grid) : "memory");
    if (before != 3)
        return;
    *out = blocks[0] + blocks[2] + blocks[4] + blocks[6];
}
