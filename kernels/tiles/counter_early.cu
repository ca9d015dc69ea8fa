/* tiles_counter_early: tiles_counter, which draws its next tile some rounds before it has finished the present one. The
   answer is there in time, and yet no tile is held for long by a CTA that is busy with another: asking before the whole
   of a long tile would be as quick, and leave the tile that was drawn waiting behind it.

   Contract: tile.cuh.   Launch: as many CTAs as are resident at once.   Needs: CUDA C++17, sm_80.
   Expect: tiles + grid draws. */
#include "tile.cuh"

#define EARLY 16 /* rounds: about 1 us */

extern "C" __global__ void tiles_counter_early(WORK_PARAMETERS)
{
    __shared__ u32 drawn;
    const work w = WORK;
    if (threadIdx.x == 0)
        drawn = atomicAdd(next, 1);
    __syncthreads();
    for (u32 id = drawn; id < tiles; id = drawn) {
        u32 following = 0;
        tile t = tile_begin(w, id);
        tile_advance(w, t, t.rounds > EARLY ? t.rounds - EARLY : 0);
        if (threadIdx.x == 0) {
            following = atomicAdd(next, 1);
            count_handed(w, 1);
        }
        tile_end(w, t);
        if (threadIdx.x == 0)
            drawn = following;
        __syncthreads();
    }
}
