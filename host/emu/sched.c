/* The scheduler of one host thread (schedule `fast`): clusters, their CTAs and warps.

   A cluster runs until it ends or is stuck: every fragment waits, or went round a loop without a store, an arrival, an
   atomic that changed memory or a completed copy. Only then does the host thread start another, up to the modelled
   residency; so look-back chains and grid barriers end, and memory stays bounded. Clusters start in order from one
   counter. Within a cluster ready warps take turns, CTA by CTA; a warp that only polled waits until no other is ready.
   When nothing else can run, asynchronous completions land early, then bounded waits time out, then virtual time moves
   to the next sleeper.

   No progress. A cluster in which all wait, for nothing that could still happen, is dead at once. Loops that only poll
   are dead when every host thread of the launch has gone round its clusters twice and seen nothing change anywhere
   (machine->epoch), no other launch runs, virtual time has moved on by TIME_LIMIT if clocks are read or threads sleep,
   and a grace of real time has passed, because the host program may write the memory they poll. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "emu/hook.h"
#include "emu/pool.h"
#include "emu/report.h"
#include "emu/sched.h"

#define HOUSEKEEPING_SLICES 64                      /* between looks at budget, cancellation and time */
#define FAIRNESS_ROUNDS     16                      /* rounds of ready warps before polling ones get a turn */
#define TIME_LEAP_NS        UINT64_C(100000)        /* virtual time that passes while all wait and clocks are read */
#define TIME_LIMIT_NS       UINT64_C(20000000000)   /* and how much of it may pass without any progress */
#define GRACE_NS            UINT64_C(500000000)     /* real time before loops are declared dead */
#define GRACE_HOST_NS       UINT64_C(10000000000)   /* the same when the host program can write memory they see */
#define REPORT_LINES        64

enum outcome { OUTCOME_DONE, OUTCOME_STUCK, OUTCOME_DEAD, OUTCOME_STOP };

/* --- starting and ending clusters */

bool emu_cluster_take(struct emu_run *run, uint64_t *out_index)
{
    uint64_t index = atomic_load_explicit(&run->next_cluster, memory_order_relaxed);
    do {
        if (index >= run->n_clusters) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&run->next_cluster, &index, index + 1));
    *out_index = index;
    return true;
}

void emu_cluster_coordinates(const struct emu_run *run, uint64_t index, uint32_t out_clusterid[3])
{
    out_clusterid[0] = (uint32_t)(index % run->clusters[0]);
    out_clusterid[1] = (uint32_t)(index / run->clusters[0] % run->clusters[1]);
    out_clusterid[2] = (uint32_t)(index / run->clusters[0] / run->clusters[1]);
}

uint64_t emu_random(struct emu_cluster *cluster)
{
    /* splitmix64: any state will do, also zero. */
    uint64_t z = cluster->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void cta_init(struct emu_cta *cta, struct emu_cluster *cluster, uint32_t rank)
{
    struct emu_run *run = cluster->run;
    struct emu_warp *warps = cta->warps;
    unsigned char *shared = cta->shared, *local = cta->local;
    memset(cta, 0, sizeof *cta);
    cta->warps = warps;
    cta->shared = shared;
    cta->local = local;
    cta->cluster = cluster;
    cta->run = run;
    cta->rank = rank;
    const uint32_t *size = run->cluster;
    const uint32_t at[3] = {rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
    for (unsigned k = 0; k < 3; k++) {
        cta->ctaid[k] = cluster->clusterid[k] * size[k] + at[k];
    }
    cta->linear = cta->ctaid[0] + (uint64_t)run->grid[0] * (cta->ctaid[1] + (uint64_t)run->grid[1] * cta->ctaid[2]);
    cta->n_warps = run->warps_per_cta;
    cta->n_threads = cta->live_threads = run->threads_per_cta;
    cta->shared_bytes = run->shared_bytes;
    cta->local_bytes = run->local_bytes;
    memset(cta->shared, 0, cta->shared_bytes);
    for (uint32_t w = 0; w < cta->n_warps; w++) {
        struct emu_warp *warp = &cta->warps[w];
        struct emu_fragment *fragments = warp->fragments;
        struct emu_gather *gather = warp->gather;
        const uint32_t left = cta->n_threads - w * EMU_LANES;
        memset(warp, 0, sizeof *warp);
        warp->fragments = fragments;
        warp->gather = gather;
        warp->cta = cta;
        warp->index = w;
        warp->present = left >= EMU_LANES ? EMU_ALL : (UINT32_C(1) << left) - 1;
        warp->live = warp->present;
        warp->traffic = &cluster->thread->traffic;
        warp->stepped = run->hooks && run->hooks->op;
    }
    cta->ready = cta->n_warps == 32 ? EMU_ALL : (UINT32_C(1) << cta->n_warps) - 1;
}

/* Starts cluster `index` on this host thread; NULL when memory is out (the launch has failed then). */
static struct emu_cluster *cluster_start(struct emu_thread *thread, uint64_t index)
{
    struct emu_run *run = thread->run;
    struct emu_cluster *cluster = thread->pool->clusters;
    if (cluster) {
        thread->pool->clusters = cluster->next;
    } else {
        cluster = emu_cluster_alloc(run);
        if (!cluster) {
            emu_run_fail(run, CLAB_NO_MEMORY, "out of memory for a cluster of %u CTAs with %u bytes of shared memory",
                         run->cluster_size, run->shared_bytes);
            return NULL;
        }
    }
    struct emu_cta *ctas = cluster->ctas;
    memset(cluster, 0, sizeof *cluster);
    cluster->ctas = ctas;
    cluster->n_all_warps = run->cluster_size * run->warps_per_cta;
    cluster->thread = thread;
    cluster->run = run;
    cluster->index = index;
    emu_cluster_coordinates(run, index, cluster->clusterid);
    cluster->size = cluster->live_ctas = run->cluster_size;
    cluster->live_threads = run->cluster_size * run->threads_per_cta;
    cluster->ready = run->cluster_size == 32 ? EMU_ALL : (UINT32_C(1) << run->cluster_size) - 1;
    cluster->random = run->machine->options.seed ^ index * UINT64_C(0xd1342543de82ef95);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        cta_init(&cluster->ctas[rank], cluster, rank);
    }
    cluster->next = thread->residents;
    thread->residents = cluster;
    return cluster;
}

/* Frames that fragments still hold: only when the launch was stopped. */
static void warp_abandon(struct emu_warp *warp)
{
    for (uint32_t used = warp->used; used; used &= used - 1) {
        struct emu_frame *frame = warp->fragments[__builtin_ctz(used)].frame;
        while (frame && --frame->refs == 0) {
            struct emu_frame *caller = frame->caller;
            emu_frame_give(warp->cta->cluster->thread, frame);
            frame = caller;
        }
    }
    warp->used = 0;
}

static void cluster_end(struct emu_thread *thread, struct emu_cluster *cluster)
{
    for (struct emu_cluster **at = &thread->residents; *at; at = &(*at)->next) {
        if (*at == cluster) {
            *at = cluster->next;
            break;
        }
    }
    while (cluster->pending) {
        struct emu_async *item = cluster->pending;
        cluster->pending = item->next;
        item->complete(item, NULL);
    }
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            warp_abandon(&cluster->ctas[rank].warps[w]);
        }
        emu_cta_memory_reset(&cluster->ctas[rank]);
    }
    atomic_fetch_sub(&thread->run->resident, cluster->size);
    cluster->next = thread->pool->clusters;
    thread->pool->clusters = cluster;
}

/* --- asynchronous completions */

void emu_async_post(struct emu_cluster *cluster, struct emu_async *item, uint64_t delay)
{
    item->due = cluster->steps + delay;
    struct emu_async **at = &cluster->pending;
    while (*at && (*at)->due <= item->due) {
        at = &(*at)->next;
    }
    item->next = *at;
    *at = item;
}

static void complete_first(struct emu_cluster *cluster)
{
    struct emu_async *item = cluster->pending;
    cluster->pending = item->next;
    cluster->thread->progress++;
    item->complete(item, cluster);
}

/* --- one cluster */

static void cta_note_ready(struct emu_cta *cta)
{
    if (cta->ready & ~cta->polling) {
        cta->cluster->ready |= UINT32_C(1) << cta->rank;
    } else {
        cta->cluster->ready &= ~(UINT32_C(1) << cta->rank);
    }
}

static void warp_step(struct emu_warp *warp)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    struct emu_thread *thread = cluster->thread;
    const uint32_t bit = UINT32_C(1) << warp->index;
    if (!(cta->started & bit)) {
        struct emu_frame *frame = emu_frame_take(thread, cluster->run->code, cta->rank);
        if (!frame) {
            emu_run_fail(cluster->run, CLAB_NO_MEMORY, "out of memory for the registers of a warp");
            return;
        }
        cta->started |= bit;
        if (cta->state == EMU_CTA_NOT_STARTED) {
            cta->state = EMU_CTA_RUNNING;
            emu_hook_event(cta, NULL, NULL, (struct emu_event){.kind = EMU_EVENT_CTA_START, .rank = cta->rank});
        }
        emu_warp_start(warp, frame);
    }
    const uint64_t before = warp->progress;
    const enum emu_stop stop = emu_warp_run(warp);
    for (unsigned spin = 0; spin < 2; spin++) {
        thread->warp_insns[spin] += warp->warp_insns[spin];
        thread->thread_insns[spin] += warp->thread_insns[spin];
        warp->warp_insns[spin] = warp->thread_insns[spin] = 0;
    }
    thread->progress += warp->progress - before;
    cluster->steps++;
    if (stop == EMU_STOP_YIELD) {
        cta->polling |= warp->progress == before ? bit : 0;
    } else {
        cta->ready &= ~bit;
    }
    cta_note_ready(cta);
}

static bool stopped(const struct emu_run *run)
{
    return atomic_load_explicit(&run->stop, memory_order_relaxed) != 0;
}

static uint64_t cycles_of(const struct emu_thread *thread)
{
    return thread->skipped_cycles + thread->warp_insns[0] + thread->warp_insns[1];
}

/* Budget, cancellation, virtual time. */
static void housekeeping(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    const uint64_t issued = thread->warp_insns[0] + thread->warp_insns[1];
    const uint64_t all = atomic_fetch_add_explicit(&run->issued, issued - thread->issued_told, memory_order_relaxed) +
                         (issued - thread->issued_told);
    thread->issued_told = issued;
    const uint64_t budget = run->machine->options.instruction_budget;
    if (budget && all > budget) {
        emu_run_fail(run, CLAB_TIMEOUT, "more than %llu warp instructions, the budget of a launch",
                     (unsigned long long)budget);
    }
    if (run->launch->cancel && *run->launch->cancel) {
        emu_run_fail(run, CLAB_INTERRUPTED, "interrupted");
    }
    const uint64_t own = cycles_of(thread) * 1000 / (run->machine->model->clock_khz / 1000);
    uint64_t latest = atomic_load_explicit(&run->time_ns, memory_order_relaxed);
    while (own > latest && !atomic_compare_exchange_weak(&run->time_ns, &latest, own)) {
    }
}

/* Warps that only polled become ready again, and bounded waits end: each gets one more turn. True when there are any. */
static bool cluster_second_chance(struct emu_cluster *cluster)
{
    const uint64_t now = cluster->run->start_ns + atomic_load_explicit(&cluster->run->time_ns, memory_order_relaxed);
    bool any = false;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        struct emu_cta *cta = &cluster->ctas[rank];
        if (cta->state == EMU_CTA_EXITED) {
            continue;
        }
        any |= cta->polling != 0;
        cta->polling = 0;
        for (uint32_t w = 0; w < cta->n_warps; w++) {
            any |= emu_warp_timeout(&cta->warps[w], now) > 0;
        }
        cta_note_ready(cta);
    }
    return any;
}

static bool any_sleeper(const struct emu_cluster *cluster, uint64_t *inout_first_ns)
{
    bool any = false;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            const struct emu_warp *warp = &cluster->ctas[rank].warps[w];
            for (uint32_t used = warp->used; used; used &= used - 1) {
                const struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
                if (fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == EMU_WAIT_SLEEP) {
                    any = true;
                    *inout_first_ns = fragment->wait_key < *inout_first_ns ? fragment->wait_key : *inout_first_ns;
                }
            }
        }
    }
    return any;
}

static enum outcome cluster_run(struct emu_cluster *cluster)
{
    struct emu_run *run = cluster->run;
    struct emu_thread *thread = cluster->thread;
    uint32_t rank = 0, w = 0, rounds = 0;
    uint64_t seen = UINT64_MAX;
    for (unsigned slice = 0;; slice++) {
        if (stopped(run)) {
            return OUTCOME_STOP;
        }
        while (cluster->pending && cluster->pending->due <= cluster->steps) {
            complete_first(cluster);
        }
        if (cluster->ready) {
            /* The next ready warp at or after (rank, w), CTA by CTA. */
            struct emu_cta *cta = &cluster->ctas[rank];
            uint32_t warps = w < 32 ? (cta->ready & ~cta->polling) & (EMU_ALL << w) : 0;
            if (!warps) {
                const uint32_t later = rank + 1 < 32 ? cluster->ready & (EMU_ALL << (rank + 1)) : 0;
                if (!later && ++rounds % FAIRNESS_ROUNDS == 0) {
                    cluster_second_chance(cluster);
                    housekeeping(thread);
                }
                rank = (uint32_t)__builtin_ctz(later ? later : cluster->ready);
                cta = &cluster->ctas[rank];
                warps = cta->ready & ~cta->polling;
            }
            w = (uint32_t)__builtin_ctz(warps);
            warp_step(&cta->warps[w]);
            w++;
            if (slice % HOUSEKEEPING_SLICES == HOUSEKEEPING_SLICES - 1) {
                housekeeping(thread);
            }
            continue;
        }
        if (cluster->pending) {
            complete_first(cluster);
            continue;
        }
        if (cluster->live_threads == 0) {
            return OUTCOME_DONE;
        }
        if (seen != thread->progress && cluster_second_chance(cluster)) {
            seen = thread->progress;
            continue;
        }
        housekeeping(thread);
        uint64_t first_ns = UINT64_MAX;
        return seen == thread->progress || any_sleeper(cluster, &first_ns) ? OUTCOME_STUCK : OUTCOME_DEAD;
    }
}

/* --- the host thread */

static void report_residents(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    pthread_mutex_lock(&run->lock);
    if (run->status == CLAB_DEADLOCK && run->report_lines > 0) {
        for (const struct emu_cluster *cluster = thread->residents; cluster; cluster = cluster->next) {
            emu_report_stuck(cluster, &run->report, &run->report_lines);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

static bool may_start(struct emu_run *run)
{
    uint32_t resident = atomic_load(&run->resident);
    do {
        if (resident + run->cluster_size > run->resident_limit) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&run->resident, &resident, resident + run->cluster_size));
    return true;
}

static bool start_next(struct emu_thread *thread)
{
    uint64_t index;
    if (!may_start(thread->run)) {
        return false;
    }
    if (!emu_cluster_take(thread->run, &index)) {
        atomic_fetch_sub(&thread->run->resident, thread->run->cluster_size);
        return false;
    }
    return cluster_start(thread, index) != NULL;
}

static void set_stuck(struct emu_thread *thread, bool stuck)
{
    if (stuck != atomic_load_explicit(&thread->stuck, memory_order_relaxed)) {
        atomic_store(&thread->stuck, stuck);
        if (stuck) {
            atomic_fetch_sub(&thread->run->machine->running, 1);
        } else {
            atomic_fetch_add(&thread->run->machine->running, 1);
        }
    }
}

static bool all_stuck(const struct emu_run *run, uint64_t epoch)
{
    for (uint32_t i = 0; i < run->n_threads; i++) {
        if (atomic_load(&run->threads[i].done)) {
            continue;
        }
        if (!atomic_load(&run->threads[i].stuck) || atomic_load(&run->threads[i].stuck_epoch) != epoch) {
            return false;
        }
    }
    return atomic_load(&run->machine->running) == 0 && atomic_load(&run->machine->epoch) == epoch;
}

/* Virtual time moves on for sleepers and for loops that read a clock. False when there are none. */
static bool pass_time(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    uint64_t first_ns = UINT64_MAX;
    bool sleepers = false;
    for (const struct emu_cluster *cluster = thread->residents; cluster; cluster = cluster->next) {
        sleepers |= any_sleeper(cluster, &first_ns);
    }
    const uint64_t now = run->start_ns + atomic_load(&run->time_ns);
    uint64_t leap = 0;
    if (sleepers) {
        leap = first_ns > now ? first_ns - now : 0;
    } else if (thread->clock_read) {
        leap = TIME_LEAP_NS;
    }
    thread->clock_read = false;
    const uint64_t to = now - run->start_ns + leap;
    const uint64_t cycles = to / 1000 * (run->machine->model->clock_khz / 1000) +
                            to % 1000 * (run->machine->model->clock_khz / 1000) / 1000 + 1;
    if (cycles > cycles_of(thread) && (sleepers || leap)) {
        thread->skipped_cycles += cycles - cycles_of(thread);
    }
    thread->idle_ns += leap;
    housekeeping(thread);
    return sleepers || leap > 0;
}

/* All clusters of this host thread are stuck and no other may start. `epoch`: the machine's before they were tried. */
static void idle(struct emu_thread *thread, uint64_t epoch)
{
    struct emu_run *run = thread->run;
    const uint64_t now = clab_now_ns();
    if (epoch != atomic_load(&thread->stuck_epoch) || !atomic_load(&thread->stuck)) {
        thread->stuck_since_ns = now;
        thread->idle_ns = 0;
        thread->idle_rounds = 0;
    }
    atomic_store(&thread->stuck_epoch, epoch);
    set_stuck(thread, true);
    const bool timed = pass_time(thread) && thread->idle_ns < TIME_LIMIT_NS;
    const uint64_t grace = emu_space_host_visible(run->machine->space) ? GRACE_HOST_NS : GRACE_NS;
    if (++thread->idle_rounds > 2 && !timed && now - thread->stuck_since_ns > grace && all_stuck(run, epoch)) {
        emu_run_fail(run, CLAB_DEADLOCK, "the kernel makes no progress: all its threads wait, or go round loops that "
                     "see nothing change");
        return;
    }
    if (thread->idle_rounds > 16 && !timed) {
        usleep(thread->idle_rounds > 200 ? 1000 : 50);
    } else if (run->n_threads > 1 || !timed) {
        sched_yield();
    }
}

/* One turn of every resident cluster. True when something moved. */
static bool turn(struct emu_thread *thread)
{
    const uint64_t before = thread->progress;
    bool moved = false;
    struct emu_cluster *next;
    for (struct emu_cluster *cluster = thread->residents; cluster; cluster = next) {
        next = cluster->next;
        switch (cluster_run(cluster)) {
        case OUTCOME_DONE:
            thread->clusters++;
            thread->ctas += cluster->size;
            cluster_end(thread, cluster);
            moved = true;
            break;
        case OUTCOME_DEAD:
            emu_run_fail(thread->run, CLAB_DEADLOCK,
                         "the kernel makes no progress: all threads of cluster (%u,%u,%u) wait for something that "
                         "nobody is left to do", cluster->clusterid[0], cluster->clusterid[1], cluster->clusterid[2]);
            return false;
        case OUTCOME_STOP:
            return false;
        case OUTCOME_STUCK:
            break;
        }
    }
    moved |= thread->progress != before;
    if (moved) {
        emu_machine_progress(thread->run->machine);
    }
    return moved;
}

void emu_thread_run(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    while (!stopped(run)) {
        const uint64_t epoch = atomic_load(&run->machine->epoch);
        const bool moved = turn(thread);
        if (moved) {
            set_stuck(thread, false);
            if (thread->residents) {
                continue;
            }
        }
        if (stopped(run)) {
            break;
        }
        if (start_next(thread)) {
            set_stuck(thread, false);
        } else if (!thread->residents && atomic_load(&run->next_cluster) >= run->n_clusters) {
            break;
        } else if (!moved) {
            idle(thread, epoch);
        }
    }
    report_residents(thread);
    while (thread->residents) {
        cluster_end(thread, thread->residents);
    }
    /* A host thread that is done counts as stuck, at whatever epoch. */
    set_stuck(thread, true);
    atomic_store(&thread->done, true);
    housekeeping(thread);
    while (thread->pool->clusters) {
        struct emu_cluster *cluster = thread->pool->clusters;
        thread->pool->clusters = cluster->next;
        emu_cluster_dispose(cluster);
    }
}
