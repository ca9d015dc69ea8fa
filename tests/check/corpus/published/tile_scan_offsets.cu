// tile_scan_offsets: tiles scan, and each reads its predecessors' totals before these have been stored.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 128 --arg u32[256]:iota --arg u32[256]
// EXPECT:   race-shared
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_scan_offsets(const unsigned *in, unsigned *out)
{
    __shared__ unsigned totals[4];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    const unsigned i = blockIdx.x * 128 + threadIdx.x;
    unsigned sum = cg::inclusive_scan(tile, in[i]);
    if (tile.thread_rank() == 31)
        totals[tile.meta_group_rank()] = sum;
    tile.sync();
    for (unsigned k = 0; k < tile.meta_group_rank(); k++)
        sum += totals[k];
    out[i] = sum;
}
