/* The schedule `fair`: one host thread, one virtual clock per modelled SM, and always the CTA whose SM is
   furthest behind goes next, a slice of a ready warp that the seed chooses. The same seed gives the same run,
   whatever the host does; other seeds give other orders of warps and completions.

   All clusters that the modelled residency holds start at once, in order; each CTA goes to the SM with the
   fewest CTAs, the lowest number first. A cluster that ends makes room for the next.

   UNVERIFIED: cost model. A warp instruction costs one cycle of its SM, whatever it does; no latency of
   memory or barriers is modelled, and no placement of a cluster's CTAs within one GPC. So virtual times order
   events plausibly, and predict nothing. */
#include <stdlib.h>

#include "emu/report.h"
#include "emu/sched.h"

#define HOUSEKEEPING_SLICES 64
#define FAIRNESS_SLICES     256 /* between turns for warps that only polled */

struct fair {
    struct emu_thread *thread;
    uint64_t *clocks; /* by SM */
    uint32_t *ctas;   /* resident, by SM */
    uint32_t n_sms;
};

static void place(struct fair *fair, struct emu_cluster *cluster)
{
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        uint32_t best = 0;
        for (uint32_t sm = 1; sm < fair->n_sms; sm++) {
            best = fair->ctas[sm] < fair->ctas[best] ? sm : best;
        }
        fair->ctas[best]++;
        cluster->ctas[rank].sm = best;
    }
}

static void start_all(struct fair *fair)
{
    while (!emu_run_stopped(fair->thread->run) && emu_cluster_start_next(fair->thread)) {
        place(fair, fair->thread->residents);
    }
}

/* The CTA with a ready warp whose SM is furthest behind; of equals the one that started first. NULL: none. */
static struct emu_cta *next_cta(const struct fair *fair)
{
    struct emu_cta *best = NULL;
    for (struct emu_cluster *cluster = fair->thread->residents; cluster; cluster = cluster->next) {
        for (uint32_t ready = cluster->ready; ready; ready &= ready - 1) {
            struct emu_cta *cta = &cluster->ctas[__builtin_ctz(ready)];
            const bool before =
                !best || fair->clocks[cta->sm] < fair->clocks[best->sm] ||
                (fair->clocks[cta->sm] == fair->clocks[best->sm] && cta->linear < best->linear);
            best = before ? cta : best;
        }
    }
    return best;
}

static void step(struct fair *fair, struct emu_cta *cta)
{
    struct emu_thread *thread = fair->thread;
    struct emu_cluster *cluster = cta->cluster;
    const uint32_t warps = cta->ready & ~cta->polling;
    uint32_t skip = (uint32_t)(emu_random(cluster) % emu_lane_count(warps)), left = warps;
    while (skip-- > 0) {
        left &= left - 1;
    }
    /* The thread's clock shows the SM's time while this warp runs. */
    thread->skipped_cycles += fair->clocks[cta->sm] - emu_thread_cycles(thread);
    emu_warp_step(&cta->warps[__builtin_ctz(left)]);
    fair->clocks[cta->sm] = emu_thread_cycles(thread) + 1;
    while (cluster->pending && cluster->pending->due <= cluster->steps) {
        emu_async_complete_first(cluster);
    }
}

/* Nothing is ready: completions land, and clusters that ended make room. True when something changed. */
static bool settle(struct fair *fair)
{
    struct emu_thread *thread = fair->thread;
    bool changed = false;
    struct emu_cluster *next;
    for (struct emu_cluster *cluster = thread->residents; cluster; cluster = next) {
        next = cluster->next;
        if (cluster->pending) {
            emu_async_complete_first(cluster);
            changed = true;
        } else if (cluster->live_threads == 0) {
            for (uint32_t rank = 0; rank < cluster->size; rank++) {
                fair->ctas[cluster->ctas[rank].sm]--;
            }
            thread->clusters++;
            thread->ctas += cluster->size;
            emu_cluster_end(thread, cluster);
            changed = true;
        }
    }
    return changed;
}

static void end_finished(struct fair *fair)
{
    for (const struct emu_cluster *cluster = fair->thread->residents; cluster; cluster = cluster->next) {
        if (cluster->live_threads == 0) {
            settle(fair);
            start_all(fair);
            return;
        }
    }
}

static bool second_chances(struct fair *fair)
{
    bool any = false;
    for (struct emu_cluster *cluster = fair->thread->residents; cluster; cluster = cluster->next) {
        uint64_t first_ns = UINT64_MAX;
        const bool chance = emu_cluster_second_chance(cluster);
        if (!chance && cluster->ready == 0 && !cluster->pending && cluster->live_threads > 0 &&
            !emu_cluster_sleeper(cluster, &first_ns)) {
            emu_cluster_dead(cluster);
        }
        any |= chance;
    }
    return any;
}

static void run(struct fair *fair)
{
    struct emu_thread *thread = fair->thread;
    struct emu_machine *machine = thread->run->machine;
    uint64_t seen = UINT64_MAX, epoch = atomic_load(&machine->epoch);
    start_all(fair);
    for (unsigned slice = 1; !emu_run_stopped(thread->run) && thread->residents; slice++) {
        struct emu_cta *cta = next_cta(fair);
        if (cta) {
            step(fair, cta);
            if (slice % HOUSEKEEPING_SLICES == 0) {
                emu_thread_housekeeping(thread);
            }
            if (slice % FAIRNESS_SLICES == 0) {
                second_chances(fair);
            }
            if (cta->cluster->live_threads == 0) {
                end_finished(fair);
            }
            continue;
        }
        if (settle(fair)) {
            start_all(fair);
            continue;
        }
        if (seen != thread->progress) {
            /* Something moved since the last time all had only polled. */
            seen = thread->progress;
            emu_thread_set_stuck(thread, false);
            emu_machine_progress(machine);
            epoch = atomic_load(&machine->epoch);
            second_chances(fair);
            continue;
        }
        emu_thread_idle(thread, epoch);
        /* What virtual time skipped, it skipped everywhere. */
        for (uint32_t sm = 0; sm < fair->n_sms; sm++) {
            const uint64_t now = emu_thread_cycles(thread);
            fair->clocks[sm] = fair->clocks[sm] < now ? now : fair->clocks[sm];
        }
        epoch = atomic_load(&machine->epoch);
        second_chances(fair);
    }
}

void emu_thread_run_fair(struct emu_thread *thread)
{
    struct fair fair = {.thread = thread, .n_sms = thread->run->machine->model->sms};
    fair.clocks = calloc(fair.n_sms, sizeof *fair.clocks);
    fair.ctas = calloc(fair.n_sms, sizeof *fair.ctas);
    if (fair.clocks && fair.ctas) {
        run(&fair);
    } else {
        emu_run_fail(thread->run, CLAB_NO_MEMORY, "out of memory for the clocks of %u SMs", fair.n_sms);
    }
    free(fair.clocks);
    free(fair.ctas);
    emu_thread_finish(thread);
}
