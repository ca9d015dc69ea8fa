// cluster_sum: rank 0 reads its peers' sums, which may be gone: no cluster.sync() at the end.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 8 --block 64 --cluster 4 --arg f32[512]:ones --arg f32[2]
// EXPECT:   remote-after-exit @read within cluster
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cluster_sum(const float *in, float *out)
{
    __shared__ float tile[64];
    cg::cluster_group cluster = cg::this_cluster();
    tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    for (unsigned half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        float sum = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); rank++)
            sum += *cluster.map_shared_rank(tile, rank); // @read
        out[blockIdx.x / 4] = sum;
    }
}
