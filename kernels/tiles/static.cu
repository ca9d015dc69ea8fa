/* tiles_static: persistent CTAs, each with a fixed share: its own index, then every grid-th tile. Nothing is asked of
   anybody, and nothing adapts.

   Contract: tile.cuh.   Launch: as many CTAs as are resident at once.   Needs: CUDA C++17, sm_80. */
#include "tile.cuh"

extern "C" __global__ void tiles_static(WORK_PARAMETERS)
{
    const work w = WORK;
    for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
        if (threadIdx.x == 0)
            count_handed(w, 1);
        tile_run(w, id);
        __syncthreads();
    }
}
