/* tiles_counter: persistent CTAs that draw the next tile from one global counter when they have finished one: what there
   is on Hopper in the place of cluster launch control. The answer takes about as long as a load from the L2, and the CTA
   waits for it.

   Contract: tile.cuh.   Launch: as many CTAs as are resident at once.   Needs: CUDA C++17, sm_80.
   Expect: tiles + grid draws. */
#include "tile.cuh"

extern "C" __global__ void tiles_counter(WORK_PARAMETERS)
{
    __shared__ u32 drawn;
    const work w = WORK;
    for (;;) {
        if (threadIdx.x == 0) {
            drawn = atomicAdd(next, 1);
            if (drawn < tiles)
                count_handed(w, 1);
        }
        __syncthreads();
        const u32 id = drawn;
        if (id >= tiles)
            return;
        tile_run(w, id);
        __syncthreads();
    }
}
