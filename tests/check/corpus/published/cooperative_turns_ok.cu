// cooperative_turns_ok: every turn has one.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 4 --block 64 --cooperative --arg u32[258]:iota --arg u32[258]:iota
// EXPECT:   clean
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cooperative_turns_ok(unsigned *a, unsigned *b)
{
    auto grid = cg::this_grid();
    const unsigned i = 1 + (unsigned)grid.thread_rank();
    for (unsigned turn = 0; turn < 4; turn++) {
        b[i] = a[i - 1] + a[i + 1];
        grid.sync();
        unsigned *other = a;
        a = b;
        b = other;
    }
}
