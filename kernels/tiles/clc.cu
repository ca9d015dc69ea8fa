/* tiles_clc: one CTA per tile in the grid, but a CTA that runs takes the work of those that have not started. It asks
   first and computes meanwhile, so that the answer has come when its tile is done; it ends when one says no.

   Contract: tile.cuh.   Launch: grid = tiles.   Needs: CUDA C++17, sm_100.
   Expect: as many requests granted as CTAs never start; one declined for each that did. */
#include "clc.cuh"

extern "C" __global__ void tiles_clc(WORK_PARAMETERS)
{
    __shared__ clc_slot slot;
    const work w = WORK;
    if (threadIdx.x == 0) {
        clc_init(&slot);
        count_handed(w, 1);
    }
    __syncthreads();
    bool taken = true;
    for (u32 id = blockIdx.x, parity = 0; taken; parity ^= 1) {
        if (threadIdx.x == 0) {
            clc_arm(&slot);
            clc_ask(&slot);
        }
        tile_run(w, id);
        taken = clc_wait(&slot, parity, &id);
        if (taken && threadIdx.x == 0)
            count_handed(w, 1);
        __syncthreads(); /* all have read the answer */
    }
}
