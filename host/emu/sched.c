/* The scheduler of one host thread (schedule `fast`): clusters, their CTAs and warps.

   A cluster runs until it ends or is stuck: every fragment waits, or went round a loop without a store, an
   arrival, an atomic that changed memory or a completed copy. Only then does the host thread start another,
   up to the modelled residency; so look-back chains and grid barriers end, and memory stays bounded. Clusters
   start in order from one counter. Within a cluster ready warps take turns, CTA by CTA; a warp that only
   polled waits until no other is ready. When nothing else can run, asynchronous completions land early, then
   bounded waits time out, then virtual time moves to the next sleeper.

   No progress. A cluster in which all wait, for nothing that could still happen, is dead at once. Loops that
   only poll are dead when every host thread of the launch has gone round its clusters twice and seen nothing
   change anywhere (machine->epoch), no other launch runs, virtual time has moved on by TIME_LIMIT if clocks
   are read or threads sleep, and a grace of real time has passed, because the host program may write the
   memory they poll. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "emu/hook.h"
#include "emu/pool.h"
#include "emu/report.h"
#include "emu/sched.h"

#define HOUSEKEEPING_SLICES   64  /* between looks at budget, cancellation and time */
#define HOUSEKEEPING_CLUSTERS 256 /* the same for clusters that end within a few slices */
#define CTA_BUDGET \
    256 /* warp instructions of the budget that a CTA stands for: about what it costs the host */
#define FAIRNESS_ROUNDS 16               /* rounds of ready warps before polling ones get a turn */
#define TIME_LEAP_NS    UINT64_C(100000) /* virtual time that passes while all wait and clocks are read */
#define TIME_LIMIT_NS   UINT64_C(20000000000) /* and how much of it may pass without any progress */
#define GRACE_NS        UINT64_C(1000000000)  /* real time before loops are declared dead */
#define GRACE_SEEDED_NS \
    UINT64_C(20000000) /* the same on the schedule of sched_seeded.c, under which nothing else runs */
#define GRACE_HOST_NS UINT64_C(10000000000) /* the same when the host program can write memory they see */

/* Rounds without progress before loops are declared dead; the second where lanes that left a loop wait for
   others of their warp, from where each nested loop and call takes them a round further. */
#define IDLE_ROUNDS        2
#define IDLE_ROUNDS_PARKED 128

enum outcome { OUTCOME_DONE, OUTCOME_STUCK, OUTCOME_DEAD, OUTCOME_STOP };

uint64_t emu_thread_cycles(const struct emu_thread *thread)
{
    return thread->skipped_cycles + thread->warp_insns[0] + thread->warp_insns[1];
}

/* Budget, cancellation, virtual time. */
void emu_thread_housekeeping(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    const uint64_t issued = thread->warp_insns[0] + thread->warp_insns[1];
    const uint64_t more = issued - thread->issued_told, more_ctas = thread->ctas - thread->ctas_told;
    const uint64_t all = atomic_fetch_add_explicit(&run->issued, more, memory_order_relaxed) + more;
    const uint64_t ctas = atomic_fetch_add_explicit(&run->ended, more_ctas, memory_order_relaxed) + more_ctas;
    thread->issued_told = issued;
    thread->ctas_told = thread->ctas;
    const uint64_t budget = run->machine->options.instruction_budget;
    if (budget && (all > budget || ctas > (budget - all) / CTA_BUDGET)) {
        emu_run_fail(run, CLAB_TIMEOUT,
                     "more than %llu warp instructions, the budget of a launch: %llu ran, and %llu CTAs, "
                     "which count for %d each, ended",
                     (unsigned long long)budget, (unsigned long long)all, (unsigned long long)ctas,
                     CTA_BUDGET);
    }
    if (run->launch->cancel && *run->launch->cancel) {
        emu_run_fail(run, CLAB_INTERRUPTED, "interrupted");
    }
    const uint64_t own = emu_thread_cycles(thread) * 1000 / (run->machine->model->clock_khz / 1000);
    uint64_t latest = atomic_load_explicit(&run->time_ns, memory_order_relaxed);
    while (own > latest && !atomic_compare_exchange_weak(&run->time_ns, &latest, own)) {
    }
}

static enum outcome cluster_run(struct emu_cluster *cluster)
{
    struct emu_run *run = cluster->run;
    struct emu_thread *thread = cluster->thread;
    uint32_t rank = 0, w = 0, rounds = 0;
    uint64_t seen = UINT64_MAX;
    for (unsigned weight = 0;;) {
        if (emu_run_stopped(run)) {
            return OUTCOME_STOP;
        }
        while (cluster->pending && cluster->pending->due <= cluster->steps) {
            emu_async_complete_first(cluster);
        }
        if (cluster->ready) {
            /* The next ready warp at or after (rank, w), CTA by CTA. */
            struct emu_cta *cta = &cluster->ctas[rank];
            if (w >= EMU_MAX_WARPS || !(cta->ready & ~cta->polling & (EMU_ALL << w))) {
                const uint32_t later = rank + 1 < 32 ? cluster->ready & (EMU_ALL << (rank + 1)) : 0;
                if (!later && ++rounds % FAIRNESS_ROUNDS == 0) {
                    emu_cluster_second_chance(cluster);
                    if (cluster->bounded) {
                        emu_thread_housekeeping(thread);
                    }
                }
                rank = (uint32_t)__builtin_ctz(later ? later : cluster->ready);
                cta = &cluster->ctas[rank];
                w = 0;
            }
            weight += emu_cta_steps(cta, &w);
            if (weight >= HOUSEKEEPING_SLICES * EMU_SLICE_WEIGHT) {
                weight = 0;
                emu_thread_housekeeping(thread);
            }
            continue;
        }
        if (cluster->pending) {
            emu_async_complete_first(cluster);
            continue;
        }
        if (cluster->live_threads == 0) {
            return OUTCOME_DONE;
        }
        if (seen != thread->progress && emu_cluster_second_chance(cluster)) {
            seen = thread->progress;
            continue;
        }
        emu_thread_housekeeping(thread);
        uint64_t first_ns = UINT64_MAX;
        return seen == thread->progress || emu_cluster_sleeper(cluster, &first_ns) ? OUTCOME_STUCK
                                                                                   : OUTCOME_DEAD;
    }
}

/* --- ends */

void emu_cluster_dead(struct emu_cluster *cluster)
{
    emu_run_fail(
        cluster->run, CLAB_DEADLOCK,
        "the kernel makes no progress: all threads of cluster (%u,%u,%u) wait for something that nobody is "
        "left to do",
        cluster->clusterid[0], cluster->clusterid[1], cluster->clusterid[2]);
}

void emu_thread_finish(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    pthread_mutex_lock(&run->lock);
    if (run->status == CLAB_DEADLOCK) {
        for (const struct emu_cluster *cluster = thread->residents; cluster && run->report_lines > 0;
             cluster = cluster->next) {
            run->told_bytes =
                run->told_bytes || emu_report_bytes(cluster, run->error ? run->error : &run->own_error);
            emu_report_stuck(cluster, &run->report, &run->report_lines);
        }
    }
    pthread_mutex_unlock(&run->lock);
    while (thread->residents) {
        emu_cluster_end(thread, thread->residents);
    }
    /* A host thread that is done counts as stuck, at whatever epoch. */
    emu_thread_set_stuck(thread, true);
    atomic_store(&thread->done, true);
    emu_thread_housekeeping(thread);
    while (thread->pool->clusters) {
        struct emu_cluster *cluster = thread->pool->clusters;
        thread->pool->clusters = cluster->next;
        emu_cluster_dispose(cluster);
    }
}

void emu_thread_set_stuck(struct emu_thread *thread, bool stuck)
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
        sleepers |= emu_cluster_sleeper(cluster, &first_ns);
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
    if (cycles > emu_thread_cycles(thread) && (sleepers || leap)) {
        thread->skipped_cycles += cycles - emu_thread_cycles(thread);
    }
    thread->idle_ns += leap;
    emu_thread_housekeeping(thread);
    return sleepers || leap > 0;
}

static bool any_parked(const struct emu_thread *thread)
{
    for (const struct emu_cluster *cluster = thread->residents; cluster; cluster = cluster->next) {
        if (emu_cluster_parked(cluster)) {
            return true;
        }
    }
    return false;
}

/* All clusters of this host thread are stuck and no other may start. `epoch`: the machine's before they were
 * tried. */
void emu_thread_idle(struct emu_thread *thread, uint64_t epoch)
{
    struct emu_run *run = thread->run;
    const uint64_t now = clab_now_ns();
    if (epoch != atomic_load(&thread->stuck_epoch) || !atomic_load(&thread->stuck)) {
        thread->stuck_since_ns = now;
        thread->idle_ns = 0;
        thread->idle_rounds = 0;
    }
    atomic_store(&thread->stuck_epoch, epoch);
    emu_thread_set_stuck(thread, true);
    const bool timed = pass_time(thread) && thread->idle_ns < TIME_LIMIT_NS;
    const uint64_t grace = emu_space_host_visible(run->machine->space) ? GRACE_HOST_NS
                           : run->hooks && run->hooks->one_thread      ? GRACE_SEEDED_NS
                                                                       : GRACE_NS;
    if (++thread->idle_rounds > IDLE_ROUNDS && !timed && now - thread->stuck_since_ns > grace &&
        (thread->idle_rounds > IDLE_ROUNDS_PARKED || !any_parked(thread)) && all_stuck(run, epoch)) {
        emu_run_fail(run, CLAB_DEADLOCK,
                     "the kernel makes no progress: all its threads wait, or go round loops that "
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
            emu_cluster_end(thread, cluster);
            moved = true;
            if (thread->clusters % HOUSEKEEPING_CLUSTERS == 0) {
                emu_thread_housekeeping(thread);
            }
            break;
        case OUTCOME_DEAD:
            emu_cluster_dead(cluster);
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

/* All that are resident wait, perhaps for a cluster far behind the next one, as at the barrier of a large
   grid: an eighth as many again are started, so that the number of turns grows with the logarithm of the grid
   only. */
static void start_more(struct emu_thread *thread)
{
    uint32_t residents = 0;
    for (const struct emu_cluster *cluster = thread->residents; cluster; cluster = cluster->next) {
        residents++;
    }
    for (uint32_t i = 0; i < residents / 8 && emu_cluster_start_next(thread); i++) {
        continue;
    }
}

void emu_thread_run(struct emu_thread *thread)
{
    struct emu_run *run = thread->run;
    while (!emu_run_stopped(run)) {
        const uint64_t epoch = atomic_load(&run->machine->epoch);
        const bool moved = turn(thread);
        if (moved) {
            emu_thread_set_stuck(thread, false);
            if (thread->residents) {
                continue;
            }
        }
        if (emu_run_stopped(run)) {
            break;
        }
        if (emu_cluster_start_next(thread)) {
            emu_thread_set_stuck(thread, false);
            start_more(thread);
        } else if (!thread->residents && atomic_load(&run->next_cluster) >= run->end_cluster) {
            break;
        } else if (!moved) {
            emu_thread_idle(thread, epoch);
        }
    }
    emu_thread_finish(thread);
}
