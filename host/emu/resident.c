/* Clusters that are resident on a host thread: their start and end, one slice of one of their warps,
   asynchronous completions, second chances for warps that only poll. Which cluster and which warp goes next
   is the schedulers' business (sched.c, sched_fair.c). */
#include <string.h>

#include "emu/hook.h"
#include "emu/pool.h"
#include "emu/report.h"
#include "emu/sched.h"

/* Short turns are looked at only now and then: the look costs more than such a turn. */
#define SHORT_TURNS 16
/* A turn with more instructions outside polling loops than this did more than poll. The turns of a clocked
   schedule are short; a loop that is known to poll ends them at once. */
#define POLL_INSNS 1024
static uint64_t poll_insns(const struct emu_run *run)
{
    return run->clocked ? (uint64_t)run->slice_fuel : POLL_INSNS;
}
/* Completions of one cluster that may be pending before the warp that posts more is slowed down. */
#define PENDING_PLENTY 4096

/* --- starting and ending clusters */

bool emu_cluster_take(struct emu_run *run, uint64_t *out_index)
{
    uint64_t index = atomic_load_explicit(&run->next_cluster, memory_order_relaxed);
    do {
        if (index >= run->end_cluster) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&run->next_cluster, &index, index + 1));
    *out_index = index;
    return true;
}

bool emu_cluster_take_last(struct emu_run *run, uint64_t *out_index)
{
    if (atomic_load(&run->next_cluster) >= run->end_cluster) {
        return false;
    }
    *out_index = --run->end_cluster;
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
    cta->linear =
        cta->ctaid[0] + (uint64_t)run->grid[0] * (cta->ctaid[1] + (uint64_t)run->grid[1] * cta->ctaid[2]);
    cta->sm = (uint32_t)(cta->linear % run->model->sms); /* sched_fair.c knows better */
    cta->state = run->hooks && run->hooks->whole_lives ? EMU_CTA_RUNNING : EMU_CTA_NOT_STARTED;
    cta->n_warps = run->warps_per_cta;
    cta->n_threads = cta->live_threads = run->threads_per_cta;
    cta->shared_bytes = run->shared_bytes;
    cta->room_bytes = run->room_bytes;
    cta->shared_end = run->shared_bytes;
    cta->shared_window = (rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST;
    cta->counted = run->counted;
    cta->local_bytes = run->local_bytes;
    memset(cta->shared, 0, ((size_t)cta->room_bytes + 15) & ~(size_t)15); /* as far as a load may reach */
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
        warp->bit = UINT32_C(1) << w;
        warp->present = left >= EMU_LANES ? EMU_ALL : (UINT32_C(1) << left) - 1;
        warp->live = warp->present;
        warp->traffic = &cluster->thread->traffic;
        warp->warp_insns = cluster->thread->warp_insns;
        warp->thread_insns = cluster->thread->thread_insns;
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
            emu_run_fail(run, CLAB_NO_MEMORY,
                         "out of memory for a cluster of %u CTAs with %u bytes of shared memory",
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
    emu_hook_event(&cluster->ctas[0], NULL, NULL, &(struct emu_event){.kind = EMU_EVENT_CLUSTER_START});
    return cluster;
}

/* Frames that fragments still hold: only when the launch was stopped. */
static void warp_abandon(struct emu_warp *warp)
{
    emu_barrier_settle(warp);
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

/* A pairing heap: posting is O(1), taking the first O(log n) on average, and no memory but the items'. */
static struct emu_async *heap_meld(struct emu_async *a, struct emu_async *b)
{
    if (!a || !b) {
        return a ? a : b;
    }
    if (b->due < a->due || (b->due == a->due && b->serial < a->serial)) {
        struct emu_async *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    a->child = b;
    return a;
}

/* Melds the children pair by pair, then the pairs from the last to the first. */
static struct emu_async *heap_rest(struct emu_async *children)
{
    struct emu_async *pairs = NULL, *all = NULL;
    while (children) {
        struct emu_async *a = children, *b = a->next;
        children = b ? b->next : NULL;
        a->next = NULL;
        if (b) {
            b->next = NULL;
        }
        a = heap_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct emu_async *next = pairs->next;
        pairs->next = NULL;
        all = heap_meld(all, pairs);
        pairs = next;
    }
    return all;
}

static struct emu_async *pending_take(struct emu_cluster *cluster)
{
    struct emu_async *item = cluster->pending;
    cluster->pending = heap_rest(item->child);
    cluster->n_pending--;
    return item;
}

void emu_cluster_end(struct emu_thread *thread, struct emu_cluster *cluster)
{
    for (struct emu_cluster **at = &thread->residents; *at; at = &(*at)->next) {
        if (*at == cluster) {
            *at = cluster->next;
            break;
        }
    }
    while (cluster->pending) {
        struct emu_async *item = pending_take(cluster);
        item->complete(item, NULL);
    }
    emu_hook_event(&cluster->ctas[0], NULL, NULL, &(struct emu_event){.kind = EMU_EVENT_CLUSTER_END});
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
    item->due = emu_now(cluster) + delay;
    item->serial = cluster->posted++;
    item->next = item->child = NULL;
    cluster->pending = heap_meld(cluster->pending, item);
    /* One that floods the queue gives way at its next backward branch, so that completions come about. */
    if (++cluster->n_pending > PENDING_PLENTY && cluster->running) {
        cluster->running->fuel = 0;
    }
}

void emu_async_complete_first(struct emu_cluster *cluster)
{
    struct emu_async *item = pending_take(cluster);
    cluster->event = item->due > cluster->event ? item->due : cluster->event;
    cluster->thread->progress++;
    cluster->completing = item;
    item->complete(item, cluster);
    cluster->completing = NULL;
}

void emu_async_issued(struct emu_async *item, const struct emu_warp *warp, const struct emu_op *op,
                      unsigned lane)
{
    item->code = warp->fragment->frame->code;
    item->insn = op->insn;
    item->issuer = warp->cta;
    item->warp = warp->index;
    item->lane = lane;
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

static uint64_t hash_words(const uint64_t *words, size_t n, uint64_t hash)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* A loop that stores nothing may still compute something. It does not when a state comes back that it was in
   before, with nothing stored since: same places, same registers. Brent's method: the state is compared with
   one remembered, which is renewed at every power of two of turns. */
static bool state_changed(struct emu_warp *warp)
{
    uint64_t hash = 1;
    if (warp->cta->run->clocked && ++warp->short_turns % SHORT_TURNS != 0) {
        return !warp->state_same; /* as the last time that it was looked at */
    }
    for (uint32_t used = warp->used; used; used &= used - 1) {
        const struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
        const uint64_t place[] = {(uint64_t)(uintptr_t)fragment->pc, fragment->mask, fragment->state};
        hash = hash_words(place, sizeof place / sizeof *place, hash);
        for (const struct emu_frame *frame = fragment->frame; frame; frame = frame->caller) {
            /* A function without registers still gets deeper. */
            hash = hash_words(&(uint64_t){(uint64_t)(uintptr_t)frame->code}, 1, hash);
            hash = hash_words((const uint64_t *)(const void *)frame->regs, frame->code->file_bytes / 8, hash);
        }
    }
    warp->state_same = warp->state_limit != 0 && hash == warp->state_hash;
    if (warp->state_same) {
        return false;
    }
    if (warp->state_limit == 0 || ++warp->state_turns >= warp->state_limit) {
        warp->state_limit = warp->state_limit ? warp->state_limit * 2 : 1;
        warp->state_turns = 0;
        warp->state_hash = hash;
    }
    return true;
}

/* First slice of a warp; false when memory is out (the launch has failed then). */
static bool start_warp(struct emu_warp *warp)
{
    struct emu_cta *cta = warp->cta;
    struct emu_frame *frame = emu_frame_take(cta->cluster->thread, cta->run->code, cta->rank);
    if (!frame) {
        emu_run_fail(cta->run, CLAB_NO_MEMORY, "out of memory for the registers of a warp");
        return false;
    }
    const bool first = cta->started == 0;
    cta->started |= UINT32_C(1) << warp->index;
    if (first) {
        cta->state = EMU_CTA_RUNNING;
        emu_hook_event(cta, NULL, NULL, &(struct emu_event){.kind = EMU_EVENT_CTA_START, .rank = cta->rank});
    }
    emu_warp_start(warp, frame);
    return true;
}

/* What follows from how a slice ended. `before`: the warp's progress, `issued`: the host thread's warp
   instructions when it began. */
static void slice_end(struct emu_warp *warp, enum emu_stop stop, uint64_t before, uint64_t issued)
{
    struct emu_cta *cta = warp->cta;
    struct emu_thread *thread = cta->cluster->thread;
    const uint32_t bit = UINT32_C(1) << warp->index;
    if (warp->progress != before) {
        warp->state_limit = 0;
        warp->state_same = false;
    } else if (stop == EMU_STOP_YIELD && thread->warp_insns[0] - issued > poll_insns(cta->run) &&
               state_changed(warp)) {
        thread->progress++;
        warp->progress++;
    }
    if (stop == EMU_STOP_YIELD) {
        cta->polling |= warp->progress == before ? bit : 0;
    } else {
        cta->ready &= ~bit;
    }
}

/* A slice of a warp that is in no frequent state, from its start to its end. */
static __attribute__((noinline)) void step_any(struct emu_warp *warp)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    struct emu_thread *thread = cluster->thread;
    if (!(cta->started >> warp->index & 1) && !start_warp(warp)) {
        return;
    }
    const uint64_t before = warp->progress, issued = thread->warp_insns[0];
    cluster->running = warp;
    const enum emu_stop stop = emu_warp_run(warp);
    thread->progress += warp->progress - before;
    cluster->steps++;
    slice_end(warp, stop, before, issued);
    cta_note_ready(cta);
}

/* Goes on with a warp that left the run loop (emu_warp_run_whole) and does not just wait. */
static __attribute__((noinline)) void go_on_whole(struct emu_warp *warp, uint64_t before, uint64_t issued)
{
    struct emu_cluster *cluster = warp->cta->cluster;
    const enum emu_stop stop = emu_warp_go_on(warp);
    cluster->thread->progress += warp->progress - before;
    cluster->steps++;
    slice_end(warp, stop, before, issued);
}

/* One slice, `fuel` backward branches long; true when it ended with EMU_STOP_BARRIER: short, and no launch
   stops so. The caller adds `moved` to the host thread's progress and notes whether the CTA is ready. */
static inline __attribute__((always_inline)) bool
step(struct emu_warp *warp, struct emu_cta *cta, struct emu_cluster *cluster, int32_t fuel, uint64_t *moved)
{
    struct emu_thread *thread = cluster->thread;
    cluster->running = warp;
    if (warp->stop == EMU_STOP_BARRIER) {
        /* A barrier completed since: that is progress, whatever the slice does. */
        emu_warp_run_on(warp);
        if (warp->stop == EMU_STOP_BARRIER) {
            ++*moved;
            cluster->steps++;
            return true;
        }
        go_on_whole(warp, warp->progress - 1, thread->warp_insns[0]);
        return false;
    }
    const uint64_t before = warp->progress, issued = thread->warp_insns[0];
    if (!emu_warp_run_whole(warp, fuel)) {
        step_any(warp);
        return false;
    }
    if (warp->stop == EMU_STOP_BARRIER) {
        warp->state_limit = 0;
        ++*moved;
        cluster->steps++;
        return true;
    }
    if (warp->stop == EMU_STOP_WAIT && warp->used == 1 && warp->fragments[0].state == EMU_FRAGMENT_WAITING) {
        /* slice_end in short */
        if (warp->progress != before) {
            warp->state_limit = 0;
            *moved += warp->progress - before;
        }
        cluster->steps++;
        cta->ready &= ~warp->bit;
        return false;
    }
    go_on_whole(warp, before, issued);
    return false;
}

void emu_warp_step(struct emu_warp *warp)
{
    struct emu_cta *cta = warp->cta;
    uint64_t moved = 0;
    step(warp, cta, cta->cluster, cta->run->slice_fuel, &moved);
    cta->cluster->thread->progress += moved;
    cta_note_ready(cta);
}

unsigned emu_cta_steps(struct emu_cta *cta, uint32_t *inout_warp)
{
    struct emu_cluster *cluster = cta->cluster;
    const int32_t fuel = cta->run->slice_fuel;
    uint64_t moved = 0;
    unsigned weight = 0;
    uint32_t w = *inout_warp;
    while (w < EMU_MAX_WARPS) {
        const uint32_t warps = (cta->ready & ~cta->polling) >> w;
        if (!warps || (cluster->pending && cluster->pending->due <= cluster->steps)) {
            break;
        }
        w += (uint32_t)__builtin_ctz(warps);
        weight++;
        if (!step(&cta->warps[w++], cta, cluster, fuel, &moved)) {
            weight += EMU_SLICE_WEIGHT - 1;
            if (emu_run_stopped(cta->run)) {
                break;
            }
        }
    }
    cluster->thread->progress += moved;
    cta_note_ready(cta);
    *inout_warp = w;
    return weight;
}

/* Warps that only polled become ready again, and bounded waits end: each gets one more turn. True when there
 * are any. */
bool emu_cluster_second_chance(struct emu_cluster *cluster)
{
    const uint64_t now =
        cluster->run->start_ns + atomic_load_explicit(&cluster->run->time_ns, memory_order_relaxed);
    bool any = false;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        struct emu_cta *cta = &cluster->ctas[rank];
        if (cta->state == EMU_CTA_EXITED) {
            continue;
        }
        any |= cta->polling != 0;
        cta->polling = 0;
        for (uint32_t w = 0; cluster->bounded && w < cta->n_warps; w++) {
            any |= emu_warp_timeout(&cta->warps[w], now) > 0;
        }
        cta_note_ready(cta);
    }
    return any;
}

bool emu_cluster_parked(const struct emu_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n_all_warps; i++) {
        const struct emu_warp *warp = &cluster->ctas[0].warps[i]; /* those of all CTAs follow each other */
        for (uint32_t used = warp->used; used; used &= used - 1) {
            if (warp->fragments[__builtin_ctz(used)].state == EMU_FRAGMENT_PARKED) {
                return true;
            }
        }
    }
    return false;
}

bool emu_cluster_sleeper(const struct emu_cluster *cluster, uint64_t *inout_first_ns)
{
    bool any = false;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            const struct emu_warp *warp = &cluster->ctas[rank].warps[w];
            for (uint32_t used = warp->used; used; used &= used - 1) {
                const struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
                if (fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == EMU_WAIT_SLEEP) {
                    any = true;
                    *inout_first_ns =
                        fragment->wait_key < *inout_first_ns ? fragment->wait_key : *inout_first_ns;
                }
            }
        }
    }
    return any;
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

bool emu_cluster_start_next(struct emu_thread *thread)
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
