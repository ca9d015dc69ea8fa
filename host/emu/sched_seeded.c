/* The schedule of launches whose observer wants one host thread (hook.h: one_thread): every choice is the
   seed's. Which cluster goes on and for how many slices, which of its ready warps is next, how many clusters
   are under way at once; when copies land follows from the cluster's own random numbers. The same seed gives
   the same run, whatever the host does, and other seeds other orders. As in sched.c further clusters start,
   up to the modelled residency, when those under way can only wait. */
#include "emu/report.h"
#include "emu/sched.h"

#define BURST_SLICES        48 /* most slices of one cluster in a row, under an odd seed */
#define BURST_SLICES_EVEN   2  /* and under an even one, which mixes clusters finely … */
#define INSIDE_SLICES       64 /* … but for slices that no other cluster can tell the order of: most in a burst */
#define WINDOW_CLUSTERS     6 /* most clusters under way by choice */
#define HOUSEKEEPING_SLICES 64
#define FAIRNESS_SLICES     512 /* between turns for warps that only polled */

struct seeded {
    struct emu_thread *thread;
    uint64_t random; /* splitmix64 */
    uint32_t window, burst, inside;
    unsigned slices;
};

static uint32_t choose(struct seeded *s, uint32_t n)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    switch (n) { /* divisions by constants are cheap, and these are the most frequent */
    case 2:
        return (uint32_t)(z % 2);
    case 3:
        return (uint32_t)(z % 3);
    case 4:
        return (uint32_t)(z % 4);
    case 5:
        return (uint32_t)(z % 5);
    case WINDOW_CLUSTERS:
        return (uint32_t)(z % WINDOW_CLUSTERS);
    case 32:
        return (uint32_t)(z % 32);
    default:
        return (uint32_t)(z % n);
    }
}

/* A set bit of `mask`, which is not 0. */
static uint32_t choose_bit(struct seeded *s, uint32_t mask)
{
    if ((mask & (mask - 1)) == 0) {
        return (uint32_t)__builtin_ctz(mask);
    }
    /* The first one from a place chosen at random: any order can come about. */
    const uint32_t from = choose(s, 32);
    const uint32_t turned = mask >> from | (uint32_t)((uint64_t)mask << (32 - from));
    return ((uint32_t)__builtin_ctz(turned) + from) & 31;
}

static struct emu_cluster *choose_cluster(struct seeded *s)
{
    uint32_t n = 0;
    struct emu_cluster *chosen = NULL;
    for (struct emu_cluster *cluster = s->thread->residents; cluster; cluster = cluster->next) {
        if (cluster->ready && (++n == 1 || choose(s, n) == 0)) {
            chosen = cluster;
        }
    }
    return chosen;
}

static void end(struct seeded *s, struct emu_cluster *cluster)
{
    s->thread->clusters++;
    s->thread->ctas += cluster->size;
    emu_cluster_end(s->thread, cluster);
}

static void start_some(struct seeded *s)
{
    uint32_t n = 0;
    for (const struct emu_cluster *cluster = s->thread->residents; cluster; cluster = cluster->next) {
        if (++n >= s->window) {
            return;
        }
    }
    while (n++ < s->window && emu_cluster_start_next(s->thread)) {
    }
}

static bool second_chances(struct seeded *s)
{
    bool any = false;
    for (struct emu_cluster *cluster = s->thread->residents; cluster; cluster = cluster->next) {
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

static void burst(struct seeded *s, struct emu_cluster *cluster)
{
    uint32_t left = 1 + choose(s, s->burst), inside = s->inside;
    while (left > 0 && cluster->ready && !emu_run_stopped(s->thread->run)) {
        struct emu_cta *cta = &cluster->ctas[choose_bit(s, cluster->ready)];
        struct emu_warp *warp = &cta->warps[choose_bit(s, cta->ready & ~cta->polling)];
        cluster->outside = false;
        emu_warp_step(warp);
        if (warp->stop == EMU_STOP_BARRIER && !cluster->outside && inside > 0) {
            inside--;
        } else {
            left--;
        }
        while (cluster->pending && cluster->pending->due <= cluster->steps) {
            emu_async_complete_first(cluster);
        }
        s->slices++;
        if (s->slices % HOUSEKEEPING_SLICES == 0) {
            emu_thread_housekeeping(s->thread);
        }
        if (s->slices % FAIRNESS_SLICES == 0) {
            second_chances(s);
        }
    }
}

/* Nothing is ready: completions land, ended clusters make room. True when something changed. */
static bool settle(struct seeded *s)
{
    bool changed = false;
    struct emu_cluster *next;
    for (struct emu_cluster *cluster = s->thread->residents; cluster; cluster = next) {
        next = cluster->next;
        if (cluster->pending) {
            emu_async_complete_first(cluster);
            changed = true;
        } else if (cluster->live_threads == 0) {
            end(s, cluster);
            changed = true;
        }
    }
    return changed;
}

static void run(struct seeded *s)
{
    struct emu_thread *thread = s->thread;
    struct emu_run *launch = thread->run;
    struct emu_machine *machine = launch->machine;
    uint64_t seen = UINT64_MAX, epoch = atomic_load(&machine->epoch);
    while (!emu_run_stopped(launch)) {
        start_some(s);
        struct emu_cluster *cluster = choose_cluster(s);
        if (cluster) {
            burst(s, cluster);
            if (cluster->live_threads == 0 && !cluster->pending) {
                end(s, cluster);
            }
            continue;
        }
        if (settle(s)) {
            continue;
        }
        if (emu_cluster_start_next(thread)) {
            continue;
        }
        if (!thread->residents && atomic_load(&launch->next_cluster) >= launch->end_cluster) {
            return;
        }
        if (seen != thread->progress) {
            /* Something moved since the last time all had only polled. */
            seen = thread->progress;
            emu_thread_set_stuck(thread, false);
            emu_machine_progress(machine);
            epoch = atomic_load(&machine->epoch);
            second_chances(s);
            continue;
        }
        emu_thread_idle(thread, epoch);
        epoch = atomic_load(&machine->epoch);
        second_chances(s);
    }
}

void emu_thread_run_seeded(struct emu_thread *thread)
{
    struct seeded s = {.thread = thread, .random = thread->run->machine->options.seed};
    const bool odd = thread->run->machine->options.seed % 2;
    s.burst = odd ? BURST_SLICES : BURST_SLICES_EVEN;
    s.inside = odd ? 0 : INSIDE_SLICES;
    s.window = odd ? 1 + choose(&s, WINDOW_CLUSTERS) : WINDOW_CLUSTERS;
    run(&s);
    emu_thread_finish(thread);
}
