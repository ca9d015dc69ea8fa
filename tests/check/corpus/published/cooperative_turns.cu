// cooperative_turns: odd turns of a cooperative stencil skip the grid barrier.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cooperative --arg u32[258]:iota --arg u32[258]:iota
// EXPECT:   race-global
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cooperative_turns(unsigned *a, unsigned *b)
{
    auto grid = cg::this_grid();
    const unsigned i = 1 + (unsigned)grid.thread_rank();
    for (unsigned turn = 0; turn < 4; turn++) {
        b[i] = a[i - 1] + a[i + 1];
        if (turn % 2 == 0)
            grid.sync();
        unsigned *other = a;
        a = b;
        b = other;
    }
}
