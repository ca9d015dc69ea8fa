// grid_sync_ok: a grid barrier after every turn, the last one split into arrival and wait.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --cooperative --grid 8 --block 64 --arg u32[8]:0 --arg u32:6
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sync_ok(unsigned *cells, unsigned turns)
{
    cg::grid_group grid = cg::this_grid();
    for (unsigned turn = 0; turn < turns; turn++) {
        if (threadIdx.x == 0)
            cells[(blockIdx.x + turn) % gridDim.x] += blockIdx.x;
        grid.sync();
    }
    auto token = grid.barrier_arrive();
    grid.barrier_wait(static_cast<decltype(token) &&>(token));
    if (threadIdx.x == 0)
        cells[blockIdx.x] += cells[blockIdx.x] == 0;
}
