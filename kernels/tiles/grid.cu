/* tiles_grid: one CTA per tile; the hardware hands them out as SMs come free. The baseline.

   Contract: tile.cuh.   Launch: grid = tiles.   Needs: CUDA C++17, sm_80. */
#include "tile.cuh"

extern "C" __global__ void tiles_grid(WORK_PARAMETERS)
{
    const work w = WORK;
    if (threadIdx.x == 0)
        count_handed(w, 1);
    tile_run(w, blockIdx.x);
}
