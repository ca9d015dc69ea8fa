/* tiles_clc_cluster: clusters take clusters. One thread of the cluster asks, and the answer is multicast to the same slot
   of every CTA, whose own barrier each has armed; three requests are under way. A slot is asked for again only when every
   CTA of the cluster has read it and armed its barrier anew, which the cluster barrier says: arrived at before a tile's
   work, waited for after it.

   Requests under way when one is declined are read to the end: no CTA leaves before the last answer has landed in every
   peer, and an answer that took a cluster has to be worked off whatever another said.

   Contract: tile.cuh; CTA k of a cluster does the tile of its first CTA plus k.   Launch: grid = tiles, a multiple of the
   one-dimensional cluster.   Needs: CUDA C++17, sm_100f (multicast). */
#include "clc.cuh"

#define IN_FLIGHT 3

/* To the same slot of every CTA of the cluster. */
__device__ __forceinline__ void clc_ask_all(clc_slot *slot)
{
    asm volatile("fence.proxy.async.shared::cta;\n\t"
                 "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all"
                 ".b128 [%0], [%1];" ::"r"(shared_address(&slot->answer)),
                 "r"(shared_address(&slot->barrier))
                 : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void tiles_clc_cluster(WORK_PARAMETERS)
{
    __shared__ clc_slot slots[IN_FLIGHT];
    const work w = WORK;
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const bool leader = threadIdx.x == 0, asker = leader && rank == 0;
    if (leader) {
        for (u32 i = 0; i < IN_FLIGHT; i++) {
            clc_init(&slots[i]);
            clc_arm(&slots[i]);
        }
        count_handed(w, 1);
    }
    cluster_arrive(); /* every CTA has started, its barriers armed */
    cluster_wait();
    for (u32 i = 0; asker && i < IN_FLIGHT; i++)
        clc_ask_all(&slots[i]);

    tile_run(w, blockIdx.x);
    __syncthreads();
    u32 at = 0, parity = 0, under_way = IN_FLIGHT;
    bool ask = true;
    while (under_way > 0) {
        u32 first;
        const bool taken = clc_wait(&slots[at], parity, &first);
        under_way--;
        ask = ask && taken;
        __syncthreads(); /* all threads have read the answer */
        if (ask && leader)
            clc_arm(&slots[at]);
        cluster_arrive();
        if (taken) {
            if (leader)
                count_handed(w, 1);
            tile_run(w, first + rank);
        }
        cluster_wait();
        if (ask) {
            under_way++;
            if (asker)
                clc_ask_all(&slots[at]);
        }
        at = (at + 1) % IN_FLIGHT;
        parity ^= at == 0;
    }
}
