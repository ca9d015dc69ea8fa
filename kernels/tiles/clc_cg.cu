/* tiles_clc_cg: the toolkit's own loop, cuda::for_each_canceled_block of libcu++ (CUDA 13.0, CCCL 3.0; cooperative groups
   have none). It asks first, waits with one thread, and passes the answer on through a CTA barrier.

   The same source compiles for sm_90, and without --device-int128 for sm_100 too, and then runs its function once per CTA
   without asking anybody: the right results of tiles_grid, silently. So the experiment insists on finding the instruction.

   Contract, launch, expectations: clc.cu.   Needs: CUDA C++17, <cuda/work_stealing> of CCCL 3.0, sm_100,
   --device-int128. */
#include <cuda/work_stealing>

#include "tile.cuh"

extern "C" __global__ void tiles_clc_cg(WORK_PARAMETERS)
{
    const work w = WORK;
    cuda::for_each_canceled_block<1>([=](dim3 block) {
        if (threadIdx.x == 0)
            count_handed(w, 1);
        tile_run(w, block.x);
    });
}
