// grid_sync: CTAs take turns at each other's cells, and one turn has no grid barrier after it.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --cooperative --grid 8 --block 64 --arg u32[8]:0 --arg u32:6
// EXPECT:   race-global @add @add within grid
// ALLOW:    race-same-value
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sync(unsigned *cells, unsigned turns)
{
    cg::grid_group grid = cg::this_grid();
    for (unsigned turn = 0; turn < turns; turn++) {
        if (threadIdx.x == 0)
            cells[(blockIdx.x + turn) % gridDim.x] += blockIdx.x; // @add
        if (turn != 3)
            grid.sync();
    }
}
