/* tiles_clc_late: tiles_clc in the wrong order: compute, then ask, then wait. What it loses per tile is the latency of a
   request.

   Contract, launch, expectations: clc.cu.   Needs: CUDA C++17, sm_100. */
#include "clc.cuh"

extern "C" __global__ void tiles_clc_late(WORK_PARAMETERS)
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
        tile_run(w, id);
        if (threadIdx.x == 0) {
            clc_arm(&slot);
            clc_ask(&slot);
        }
        taken = clc_wait(&slot, parity, &id);
        if (taken && threadIdx.x == 0)
            count_handed(w, 1);
        __syncthreads(); /* all have read the answer */
    }
}
