/* The schedule `fair`: one host thread and a modelled clock. What is due first happens first: the next slice
   of a warp, a completion, the end of a sleep. The same seed gives the same run, whatever the host does;
   other seeds give other orders of the warps of a CTA that are about as far, and other delays of completions.

   The clock. Every warp has its own time. A slice takes it on by what its instructions cost (cost.h), or by
   more where something is short: an SM has four schedulers that each issue one warp instruction a cycle, and
   all SMs together one memory. A warp that is woken goes on no earlier than what woke it. Slices are short
   but not instructions, so that between CTAs an order may be wrong by the length of a slice.

   Residency. All clusters that the modelled device holds start at once, in order; each CTA goes to the SM
   with the fewest CTAs, the lowest number first, and a cluster that ends makes room for the next one in its
   place.

   UNVERIFIED: against an H200 the makespans of `tiles` were compared, and nothing else (host/emu/README.md).
   Caches, bank conflicts, tensor cores, the network between SMs and the place of a cluster's CTAs in one GPC
   are not modelled. */
#include <stdlib.h>

#include "emu/cost.h"
#include "emu/report.h"
#include "emu/sched.h"

#define HOUSEKEEPING_SLICES 64
#define FAIRNESS_SLICES     256 /* between turns for warps that only polled */
#define SCHEDULERS          4   /* of an SM */
/* Warps of a CTA that are no further ahead of the last than this, in cycles, are taken in the seed's order.
 */
#define TOGETHER 512
/* What a read of 8 GiB reached of the memory's peak: 4630 of 4814 GB/s on an H200 (CUB DeviceReduce::Sum,
   driver 580.159.04, 2026-11-30). UNVERIFIED: other chips. */
#define MEMORY_SHARE 0.96
#define NEVER        UINT64_MAX

struct sm {
    uint64_t issued[SCHEDULERS]; /* cycles up to which issue slots are taken */
    uint64_t free_at;            /* end of the last CTA here */
    uint32_t ctas;               /* resident */
    bool used;
};

struct fair {
    struct emu_thread *thread;
    struct sm *sms;
    uint32_t n_sms;
    struct emu_cluster **heap; /* residents, by next_event, then by index */
    uint32_t n_heap;
    uint64_t now;           /* the latest event */
    uint64_t dispatch;      /* when the next CTA may start */
    double memory;          /* when the memory has delivered all that was asked for */
    double cycles_per_byte; /* of the memory */
};

/* --- the heap of resident clusters */

static bool goes_first(const struct emu_cluster *a, const struct emu_cluster *b)
{
    return a->next_event != b->next_event ? a->next_event < b->next_event : a->index < b->index;
}

static void heap_put(struct fair *fair, uint32_t at, struct emu_cluster *cluster)
{
    fair->heap[at] = cluster;
    cluster->place = at;
}

static void heap_settle(struct fair *fair, uint32_t at)
{
    struct emu_cluster *cluster = fair->heap[at];
    while (at > 0 && goes_first(cluster, fair->heap[(at - 1) / 2])) {
        heap_put(fair, at, fair->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= fair->n_heap) {
            break;
        }
        child += child + 1 < fair->n_heap && goes_first(fair->heap[child + 1], fair->heap[child]);
        if (!goes_first(fair->heap[child], cluster)) {
            break;
        }
        heap_put(fair, at, fair->heap[child]);
        at = child;
    }
    heap_put(fair, at, cluster);
}

static void heap_remove(struct fair *fair, const struct emu_cluster *cluster)
{
    const uint32_t at = cluster->place;
    struct emu_cluster *last = fair->heap[--fair->n_heap];
    if (last != cluster) {
        heap_put(fair, at, last);
        heap_settle(fair, at);
    }
}

/* --- what is due */

static uint64_t cycles_of(const struct fair *fair, uint64_t ns)
{
    const struct emu_run *run = fair->thread->run;
    const uint64_t since = ns > run->start_ns ? ns - run->start_ns : 0,
                   mhz = run->machine->model->clock_khz / 1000;
    return since / 1000 * mhz + (since % 1000 * mhz + 999) / 1000;
}

/* The least clock of the CTA's warps that can go on; NEVER: none. */
static uint64_t cta_due(const struct emu_cta *cta)
{
    uint64_t least = NEVER;
    for (uint32_t left = cta->ready & ~cta->polling; left; left &= left - 1) {
        const uint64_t clock = cta->warps[__builtin_ctz(left)].clock;
        least = clock < least ? clock : least;
    }
    return least;
}

static uint64_t sleeper_due(const struct fair *fair, struct emu_cluster *cluster)
{
    uint64_t first_ns = UINT64_MAX;
    if (!cluster->sleeps) {
        return NEVER;
    }
    cluster->sleeps = emu_cluster_sleeper(cluster, &first_ns);
    return cluster->sleeps ? cycles_of(fair, first_ns) : NEVER;
}

/* *out_cta: whose warp it is; NULL: a completion or a sleeper. */
static uint64_t next_event(const struct fair *fair, struct emu_cluster *cluster, struct emu_cta **out_cta)
{
    uint64_t first = cluster->pending ? cluster->pending->due : NEVER;
    const uint64_t sleeper = sleeper_due(fair, cluster);
    first = sleeper < first ? sleeper : first;
    *out_cta = NULL;
    for (uint32_t ready = cluster->ready; ready; ready &= ready - 1) {
        struct emu_cta *cta = &cluster->ctas[__builtin_ctz(ready)];
        const uint64_t due = cta_due(cta);
        if (due < first) {
            first = due;
            *out_cta = cta;
        }
    }
    return first;
}

static void renew(struct fair *fair, struct emu_cluster *cluster)
{
    struct emu_cta *cta;
    cluster->next_event = next_event(fair, cluster, &cta);
    heap_settle(fair, cluster->place);
}

/* The thread's clock, which housekeeping and the rules about progress go by, is the latest event's. */
static void come_to(struct fair *fair, uint64_t cycle)
{
    struct emu_thread *thread = fair->thread;
    fair->now = cycle > fair->now ? cycle : fair->now;
    thread->skipped_cycles += fair->now - emu_thread_cycles(thread);
}

/* --- clusters start and end */

static uint64_t start_cta(struct fair *fair, struct emu_cta *cta)
{
    uint32_t best = 0;
    for (uint32_t sm = 1; sm < fair->n_sms; sm++) {
        best = fair->sms[sm].ctas < fair->sms[best].ctas ? sm : best;
    }
    struct sm *sm = &fair->sms[best];
    const uint64_t ready = sm->used ? sm->free_at + EMU_COST_CTA_TURN : 0;
    sm->ctas++;
    cta->sm = best;
    fair->dispatch = (ready > fair->dispatch ? ready : fair->dispatch) + EMU_COST_CTA_DISPATCH;
    return fair->dispatch;
}

/* All CTAs of a cluster start together. */
static void start_all(struct fair *fair)
{
    while (!emu_run_stopped(fair->thread->run) && emu_cluster_start_next(fair->thread)) {
        struct emu_cluster *cluster = fair->thread->residents;
        uint64_t start = 0;
        for (uint32_t rank = 0; rank < cluster->size; rank++) {
            const uint64_t ready = start_cta(fair, &cluster->ctas[rank]);
            start = ready > start ? ready : start;
        }
        for (uint32_t rank = 0; rank < cluster->size; rank++) {
            for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
                cluster->ctas[rank].warps[w].clock = start;
            }
        }
        cluster->event = start;
        heap_put(fair, fair->n_heap++, cluster);
        renew(fair, cluster);
    }
}

static void end(struct fair *fair, struct emu_cluster *cluster)
{
    struct emu_thread *thread = fair->thread;
    uint64_t last = cluster->event;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            const uint64_t clock = cluster->ctas[rank].warps[w].clock;
            last = clock > last ? clock : last;
        }
    }
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        struct sm *sm = &fair->sms[cluster->ctas[rank].sm];
        sm->free_at = last > sm->free_at ? last : sm->free_at;
        sm->used = true;
        sm->ctas--;
    }
    heap_remove(fair, cluster);
    thread->clusters++;
    thread->ctas += cluster->size;
    emu_cluster_end(thread, cluster);
}

/* --- one event */

static uint64_t memory_bytes(const struct emu_traffic *traffic)
{
    uint64_t bytes = traffic->bulk_requested_bytes + traffic->odd_loads[CLAB_SPACE_GLOBAL].bytes +
                     traffic->odd_stores[CLAB_SPACE_GLOBAL].bytes;
    for (unsigned size = 0; size < EMU_TRAFFIC_SIZES; size++) {
        bytes += (traffic->loads[CLAB_SPACE_GLOBAL][size] + traffic->stores[CLAB_SPACE_GLOBAL][size]) << size;
    }
    return bytes;
}

/* Takes the warp's clock over a slice in which it issued `insns` and moved `bytes`. */
static void charge(struct fair *fair, struct emu_warp *warp, uint64_t insns, uint64_t bytes)
{
    uint64_t *issued = &fair->sms[warp->cta->sm].issued[warp->index % SCHEDULERS];
    uint64_t after = warp->clock + warp->cycles;
    *issued = (*issued > warp->clock ? *issued : warp->clock) + insns * EMU_COST_ISSUE;
    after = *issued > after ? *issued : after;
    if (bytes > 0) {
        const double from = fair->memory > (double)warp->clock ? fair->memory : (double)warp->clock;
        fair->memory = from + (double)bytes * fair->cycles_per_byte;
        after = fair->memory > (double)after ? (uint64_t)fair->memory : after;
    }
    warp->clock = after;
    warp->cycles = 0;
}

/* One of the warps that are about as far as the last one, as the seed has it. */
static struct emu_warp *choose(struct emu_cta *cta, uint64_t due)
{
    uint32_t warps = cta->ready & ~cta->polling;
    for (uint32_t left = warps; left; left &= left - 1) {
        const uint32_t bit = left & (~left + 1);
        warps &= cta->warps[__builtin_ctz(left)].clock - due > TOGETHER ? ~bit : EMU_ALL;
    }
    uint32_t skip = (uint32_t)(emu_random(cta->cluster) % emu_lane_count(warps));
    while (skip-- > 0) {
        warps &= warps - 1;
    }
    return &cta->warps[__builtin_ctz(warps)];
}

static void step(struct fair *fair, struct emu_cta *cta, uint64_t due)
{
    struct emu_thread *thread = fair->thread;
    struct emu_warp *warp = choose(cta, due);
    const uint64_t insns = thread->warp_insns[0] + thread->warp_insns[1],
                   bytes = memory_bytes(&thread->traffic);
    emu_warp_step(warp);
    warp->cta->cluster->running = NULL;
    charge(fair, warp, thread->warp_insns[0] + thread->warp_insns[1] - insns,
           memory_bytes(&thread->traffic) - bytes);
}

static void wake_sleepers(struct fair *fair, struct emu_cluster *cluster, uint64_t due)
{
    cluster->event = due > cluster->event ? due : cluster->event;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            struct emu_warp *warp = &cluster->ctas[rank].warps[w];
            for (uint32_t used = warp->used; used; used &= used - 1) {
                struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
                if (fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == EMU_WAIT_SLEEP &&
                    cycles_of(fair, fragment->wait_key) <= due) {
                    emu_wake_fragment(warp, fragment, EMU_WAKE_TIMEOUT, 0);
                }
            }
        }
    }
}

/* Does what is due first. False when nothing is. */
static bool happen(struct fair *fair)
{
    struct emu_cluster *cluster = fair->n_heap ? fair->heap[0] : NULL;
    struct emu_cta *cta = NULL;
    const uint64_t due = cluster ? next_event(fair, cluster, &cta) : NEVER;
    if (due == NEVER) {
        return false;
    }
    come_to(fair, due);
    if (cta) {
        step(fair, cta, due);
    } else if (cluster->pending && cluster->pending->due == due) {
        emu_async_complete_first(cluster);
    } else {
        wake_sleepers(fair, cluster, due);
    }
    if (cluster->live_threads == 0 && !cluster->pending) {
        end(fair, cluster);
        start_all(fair);
    } else {
        renew(fair, cluster);
    }
    return true;
}

/* --- the whole launch */

/* Warps that only polled, and bounded waits, get a turn in the present. */
static void second_chances(struct fair *fair)
{
    for (struct emu_cluster *cluster = fair->thread->residents; cluster; cluster = cluster->next) {
        uint64_t first_ns = UINT64_MAX;
        for (uint32_t rank = 0; rank < cluster->size; rank++) {
            for (uint32_t left = cluster->ctas[rank].polling; left; left &= left - 1) {
                struct emu_warp *warp = &cluster->ctas[rank].warps[__builtin_ctz(left)];
                warp->clock = warp->clock < fair->now ? fair->now : warp->clock;
            }
        }
        cluster->event = cluster->event < fair->now ? fair->now : cluster->event;
        const bool chance = emu_cluster_second_chance(cluster);
        if (!chance && cluster->ready == 0 && !cluster->pending && cluster->live_threads > 0 &&
            !emu_cluster_sleeper(cluster, &first_ns)) {
            emu_cluster_dead(cluster);
        }
        renew(fair, cluster);
    }
}

static void run(struct fair *fair)
{
    struct emu_thread *thread = fair->thread;
    struct emu_machine *machine = thread->run->machine;
    uint64_t seen = UINT64_MAX, epoch = atomic_load(&machine->epoch);
    start_all(fair);
    for (unsigned slice = 1; !emu_run_stopped(thread->run) && thread->residents; slice++) {
        if (happen(fair)) {
            if (slice % HOUSEKEEPING_SLICES == 0) {
                emu_thread_housekeeping(thread);
            }
            if (slice % FAIRNESS_SLICES == 0) {
                second_chances(fair);
            }
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
        come_to(fair, emu_thread_cycles(thread));
        epoch = atomic_load(&machine->epoch);
        second_chances(fair);
    }
}

void emu_thread_run_fair(struct emu_thread *thread)
{
    const struct emu_model *model = thread->run->model;
    struct fair fair = {.thread = thread, .n_sms = model->sms};
    /* Two transfers a memory clock on each line of the bus. */
    fair.cycles_per_byte = (double)model->clock_khz /
                           (MEMORY_SHARE * 2 * (double)model->memory_clock_khz * (model->bus_bits / 8));
    fair.sms = calloc(fair.n_sms, sizeof *fair.sms);
    fair.heap = calloc(thread->run->resident_limit / thread->run->cluster_size + 1, sizeof *fair.heap);
    if (fair.sms && fair.heap) {
        run(&fair);
    } else {
        emu_run_fail(thread->run, CLAB_NO_MEMORY, "out of memory for the clocks of %u SMs", fair.n_sms);
    }
    free(fair.sms);
    free(fair.heap);
    emu_thread_finish(thread);
}
