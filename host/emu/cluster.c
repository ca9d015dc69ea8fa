/* barrier.cluster. PTX ISA 9.0, 9.7.13.4 "barrier.cluster"; rules gathered in ptx-facts, section 2.

   One barrier per cluster: it completes when every live thread of the cluster has arrived, and is then ready
   for the next phase. Each thread arrives once and then waits once per phase; anything else is reported. A
   thread that ends without arriving lowers the count, one that arrived before it ended stays counted once.
   Leaves out: the memory ordering of .release, .acquire and .relaxed, since all of a cluster runs on one host
   thread; and that a not .aligned arrive also waits for the other lanes of its warp. */
#include "emu/fragment.h"
#include "emu/hook.h"

static void complete_phase(struct emu_cluster *cluster)
{
    cluster->barrier_arrived = 0;
    cluster->barrier_phase++;
    cluster->barrier_before = cluster->barrier_latest;
    cluster->barrier_latest = 0;
    cluster->thread->cluster_barriers++;
    emu_hook_event(&cluster->ctas[0], NULL, NULL,
                   &(struct emu_event){.kind = EMU_EVENT_CLUSTER_COMPLETE, .value = cluster->barrier_phase});
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        struct emu_cta *cta = &cluster->ctas[rank];
        for (uint32_t left = cta->cluster_waiting; left; left &= left - 1) {
            struct emu_warp *warp = &cta->warps[__builtin_ctz(left)];
            for (uint32_t used = warp->used; used; used &= used - 1) {
                struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
                if (fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == EMU_WAIT_CLUSTER_BARRIER) {
                    emu_wake_fragment(warp, fragment, EMU_WAKE_DONE, 0);
                }
            }
        }
        cta->cluster_waiting = 0;
    }
}

static void check(struct emu_cluster *cluster)
{
    if (cluster->live_threads > 0 && cluster->barrier_arrived == cluster->live_threads) {
        complete_phase(cluster);
    }
}

const struct emu_op *emu_cluster_arrive(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    const uint32_t lanes = warp->exec, twice = cta->cluster_arrived[warp->index] & lanes;
    if (twice) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(warp, op, (unsigned)__builtin_ctz(twice), CLAB_FAULT, NULL, 0,
                         "barrier.cluster.arrive twice without a wait between");
    }
    cta->cluster_arrived[warp->index] |= lanes;
    cta->cluster_parity[warp->index] =
        (cta->cluster_parity[warp->index] & ~lanes) | (cluster->barrier_phase & 1 ? lanes : 0);
    cluster->barrier_arrived += emu_lane_count(lanes);
    warp->progress++;
    if (cta->run->clocked) {
        cluster->barrier_latest = emu_clock_later(warp, op, cluster->barrier_latest);
    }
    emu_hook_event(cta, warp, op, &(struct emu_event){.kind = EMU_EVENT_CLUSTER_ARRIVE, .lanes = lanes});
    check(cluster);
    return op + 1;
}

const struct emu_op *emu_cluster_wait(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    const uint32_t lanes = warp->exec, without = lanes & ~cta->cluster_arrived[warp->index];
    (void)emu_woken(warp, NULL);
    if (without) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(warp, op, (unsigned)__builtin_ctz(without), CLAB_FAULT, NULL, 0,
                         "barrier.cluster.wait without an arrive before it");
    }
    /* A thread that waits keeps its next phase from completing, so parity tells phases apart. */
    const uint32_t current =
        cluster->barrier_phase & 1 ? cta->cluster_parity[warp->index] : ~cta->cluster_parity[warp->index];
    if (current & lanes) {
        cta->cluster_waiting |= UINT32_C(1) << warp->index;
        return emu_wait(warp, op, EMU_WAIT_CLUSTER_BARRIER, 0);
    }
    cta->cluster_arrived[warp->index] &= ~lanes;
    if (cta->run->clocked) {
        emu_clock_raise(warp, cluster->barrier_before);
    }
    emu_hook_event(cta, warp, op, &(struct emu_event){.kind = EMU_EVENT_CLUSTER_WAIT, .lanes = lanes});
    return op + 1;
}

void emu_cluster_barrier_exit(struct emu_warp *warp, uint32_t lanes)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    const uint32_t current =
        cluster->barrier_phase & 1 ? cta->cluster_parity[warp->index] : ~cta->cluster_parity[warp->index];
    cluster->barrier_arrived -= emu_lane_count(cta->cluster_arrived[warp->index] & current & lanes);
    cta->cluster_arrived[warp->index] &= ~lanes;
    check(cluster);
}
