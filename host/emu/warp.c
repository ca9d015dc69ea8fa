/* Warps as fragments: lanes that part ways, meet again at joins, wait, spin, call, return and end.

   A warp starts as one fragment. A divergent branch splits it; the fragment with the lower address goes first
   (deepest call first), which brings structured code back together. A join is an offer: a fragment that
   arrives merges with those parked there, and parks while others of its warp can still run. When no fragment
   is ready, a parked one is released; a fragment that used up its fuel of backward branches has SPUN, and a
   round ends when all that could run have spun, blocked, parked or ended. While some spin, a parked fragment
   is released only after a whole round, so that the holder of a lock goes on although the others spin on it,
   as measured on an H200 (design, "Progress inside a warp"). PTX ISA 9.0, 3.1 "A Set of SIMT
   Multiprocessors", 9.5 "Divergence of Threads in Control Constructs".

   Every stop leaves the instructions before the fragment's pc counted: see emu_count. */
#include <stddef.h>
#include <string.h>

#include "emu/fragment.h"
#include "emu/hook.h"

#define PATIENCE       32  /* times an eligible parked fragment may be passed over */
#define GIVE_WAY_UNTIL 256 /* stores and the like of a warp, or times that it gave way */

#define EACH_USED(warp, at)                                                                                \
    for (uint32_t left_##at = (warp)->used, at; left_##at && (at = (uint32_t)__builtin_ctz(left_##at), 1); \
         left_##at &= left_##at - 1)

static uint32_t fragment_index(const struct emu_warp *warp, const struct emu_fragment *fragment)
{
    return (uint32_t)(fragment - warp->fragments);
}

/* There are never more fragments than lanes. */
static struct emu_fragment *fragment_new(struct emu_warp *warp)
{
    const uint32_t at = (uint32_t)__builtin_ctz(~warp->used);
    warp->used |= UINT32_C(1) << at;
    struct emu_fragment *fragment = &warp->fragments[at];
    memset(fragment, 0, sizeof *fragment);
    return fragment;
}

static void frame_release(struct emu_warp *warp, struct emu_frame *frame)
{
    while (frame && --frame->refs == 0) {
        struct emu_frame *caller = frame->caller;
        emu_frame_give(warp->cta->cluster->thread, frame);
        frame = caller;
    }
}

static void fragment_free(struct emu_warp *warp, struct emu_fragment *fragment)
{
    fragment->state = EMU_FRAGMENT_FREE;
    warp->used &= ~(UINT32_C(1) << fragment_index(warp, fragment));
    frame_release(warp, fragment->frame);
    fragment->frame = NULL;
}

void emu_absorb(struct emu_warp *warp, struct emu_fragment *other)
{
    warp->fragment->mask |= other->mask;
    fragment_free(warp, other);
}

struct emu_fragment *emu_split(struct emu_warp *warp, uint32_t lanes, const struct emu_op *pc)
{
    struct emu_fragment *from = warp->fragment, *to = fragment_new(warp);
    to->state = EMU_FRAGMENT_READY;
    to->mask = lanes;
    to->pc = pc;
    to->frame = from->frame;
    to->frame->refs++;
    from->mask &= ~lanes;
    emu_exec_set(warp, from->mask);
    return to;
}

void emu_send(struct emu_warp *warp, uint32_t lanes, const struct emu_op *target, const struct emu_op *join)
{
    if (target == join) {
        EACH_USED(warp, at)
        {
            struct emu_fragment *parked = &warp->fragments[at];
            if (parked->state == EMU_FRAGMENT_PARKED && parked->pc == join &&
                parked->frame == warp->fragment->frame) {
                parked->mask |= lanes;
                warp->fragment->mask &= ~lanes;
                emu_exec_set(warp, warp->fragment->mask);
                return;
            }
        }
    }
    struct emu_fragment *sent = emu_split(warp, lanes, target);
    if (target == join) {
        sent->state = EMU_FRAGMENT_PARKED;
        sent->parked_round = warp->round;
    }
}

const struct emu_op *emu_diverge(struct emu_warp *warp, const struct emu_op *op, uint32_t taken,
                                 const struct emu_op *target, const struct emu_op *join)
{
    const struct emu_op *next = op + 1;
    const uint32_t rest = warp->exec & ~taken;
    if (target == join || (next != join && next < target)) {
        emu_send(warp, taken, target, join);
        return next;
    }
    emu_send(warp, rest, next, join);
    return target;
}

const struct emu_op *emu_remask(struct emu_warp *warp, const struct emu_op *pc)
{
    warp->fragment->pc = pc;
    warp->stop = EMU_STOP_REMASK;
    return NULL;
}

const struct emu_op *emu_yield(struct emu_warp *warp, const struct emu_op *pc)
{
    warp->fragment->pc = pc;
    warp->fragment->state = EMU_FRAGMENT_SPUN;
    warp->stop = EMU_STOP_YIELD;
    return NULL;
}

const struct emu_op *emu_give_way(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_run *run = warp->cta->run;
    const enum emu_held_turn held = emu_held_begin(warp);
    const uint32_t of_four =
        run->machine->options.seed % 2 ? 2 : 3; /* even seeds mix finely (sched_seeded.c) */
    /* Not inside a region that runs in place: its lanes are no fragment. */
    if (warp->progress >= GIVE_WAY_UNTIL || !run->hooks || !run->hooks->one_thread ||
        warp->exec != warp->fragment->mask || held == EMU_HELD_GO_ON ||
        (held == EMU_HELD_NONE && emu_random(warp->cta->cluster) % 4 >= of_four)) {
        return op + 1;
    }
    emu_progress(warp); /* whoever has only been interrupted does not poll */
    emu_count(warp, op, op[1].insn, warp->exec, op[1].insn);
    return emu_yield(warp, op + 1);
}

const struct emu_op *emu_join(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_fragment *fragment = warp->fragment;
    bool others = false;
    emu_count(warp, op, op->insn, warp->exec, op->insn);
    EACH_USED(warp, at)
    {
        struct emu_fragment *other = &warp->fragments[at];
        if (other == fragment) {
            continue;
        }
        if (other->state == EMU_FRAGMENT_PARKED && other->pc == op && other->frame == fragment->frame) {
            fragment->mask |= other->mask;
            fragment_free(warp, other);
        } else {
            others |= other->state != EMU_FRAGMENT_WAITING;
        }
    }
    if (others) {
        fragment->state = EMU_FRAGMENT_PARKED;
        fragment->parked_round = warp->round;
        fragment->age = 0;
        return emu_remask(warp, op);
    }
    if (fragment->mask == EMU_ALL) {
        return emu_remask(warp, op + 1);
    }
    emu_exec_set(warp, fragment->mask);
    return op + 1;
}

/* --- calls */

struct emu_frame *emu_enter(struct emu_warp *warp, const struct emu_op *op, const struct emu_code *code,
                            const struct emu_op *back)
{
    struct emu_fragment *fragment = warp->fragment;
    struct emu_frame *caller = fragment->frame;
    const uint32_t base = caller->local_base + caller->code->local_bytes + caller->dynamic;
    /* Every activation takes at least 16 bytes, as a return address would: recursion ends. */
    const uint32_t need = code->local_bytes + 16;
    if (need > warp->cta->local_bytes - base) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_ADDRESS);
        emu_fault(warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
                  "stack overflow: calling '%s' at depth %u needs %u bytes of local memory beyond the %u of "
                  "a thread",
                  code->function->name, caller->depth + 1, need, warp->cta->local_bytes);
        return NULL;
    }
    struct emu_frame *frame = emu_frame_take(warp->cta->cluster->thread, code, warp->cta->rank);
    if (!frame) {
        emu_fault(warp, op, EMU_LANES, CLAB_NO_MEMORY, NULL, 0, "out of memory for the registers of '%s'",
                  code->function->name);
        return NULL;
    }
    frame->caller = caller;
    frame->arguments = base;
    frame->return_to = back;
    frame->local_base = base + (code->local_bytes ? 0 : 16);
    frame->depth = caller->depth + 1;
    if (frame->depth > warp->deepest) {
        warp->deepest = frame->depth;
        emu_progress(warp);
    }
    fragment->frame = frame;
    warp->regs = frame->regs;
    warp->costs = warp->costs ? code->costs : NULL;
    warp->count_from = 0;
    return frame;
}

const struct emu_op *emu_return(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_fragment *fragment = warp->fragment;
    struct emu_frame *frame = fragment->frame, *caller = frame->caller;
    if (!caller) {
        return emu_exit_lanes(warp, op);
    }
    const struct emu_op *back = frame->return_to;
    caller->refs++;
    fragment->returned = frame->arguments;
    fragment->frame = caller;
    frame_release(warp, frame);
    warp->regs = caller->regs;
    warp->costs = warp->costs ? caller->code->costs : NULL;
    warp->count_from = back->insn;
    return back;
}

void emu_local_copy(struct emu_warp *warp, uint32_t lanes, uint32_t to, uint32_t from, uint32_t bytes)
{
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (lanes >> i & 1) {
            unsigned char *local = emu_local(warp, i);
            memcpy(local + to, local + from, bytes);
        }
    }
}

const struct emu_op *emu_exit_lanes(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cluster *cluster = cta->cluster;
    const uint32_t lanes = warp->exec, n = emu_lane_count(lanes);
    emu_hook_event(cta, warp, op, &(struct emu_event){.kind = EMU_EVENT_EXIT, .lanes = lanes});
    fragment_free(warp, warp->fragment);
    warp->live &= ~lanes;
    cta->live_threads -= n;
    cluster->live_threads -= n;
    warp->progress++;
    if (cta->live_threads == 0) {
        const struct emu_hooks *hooks = cta->run->hooks;
        cta->state = hooks && hooks->whole_lives ? EMU_CTA_RUNNING : EMU_CTA_EXITED;
        cluster->live_ctas--;
        emu_hook_event(cta, warp, op, &(struct emu_event){.kind = EMU_EVENT_CTA_EXIT, .rank = cta->rank});
    }
    emu_collective_exit(warp, lanes);
    emu_barriers_exit(warp, lanes);
    emu_cluster_barrier_exit(warp, lanes);
    warp->stop = EMU_STOP_EXIT;
    return NULL;
}

/* --- waiting */

static const struct emu_op *wait_for(struct emu_warp *warp, const struct emu_op *op, enum emu_wait_kind kind,
                                     uint64_t key, bool bounded)
{
    struct emu_fragment *fragment = warp->fragment;
    emu_count(warp, op, op->insn, fragment->mask, op->insn);
    fragment->pc = op;
    fragment->state = EMU_FRAGMENT_WAITING;
    fragment->wait = kind;
    fragment->wait_key = key;
    fragment->wake = EMU_WAKE_NONE;
    fragment->bounded = bounded;
    warp->stop = EMU_STOP_WAIT;
    warp->cta->cluster->sleeps |= kind == EMU_WAIT_SLEEP;
    warp->cta->cluster->bounded |= bounded;
    EACH_USED(warp, at)
    {
        struct emu_fragment *other = &warp->fragments[at];
        if (other != fragment && other->state == EMU_FRAGMENT_WAITING && other->pc == op &&
            other->frame == fragment->frame && other->wait == kind && other->wait_key == key) {
            other->mask |= fragment->mask;
            fragment_free(warp, fragment);
            break;
        }
    }
    return NULL;
}

const struct emu_op *emu_wait(struct emu_warp *warp, const struct emu_op *op, enum emu_wait_kind kind,
                              uint64_t key)
{
    return wait_for(warp, op, kind, key, false);
}

const struct emu_op *emu_wait_bounded(struct emu_warp *warp, const struct emu_op *op, enum emu_wait_kind kind,
                                      uint64_t key)
{
    return wait_for(warp, op, kind, key, true);
}

enum emu_wake emu_woken(struct emu_warp *warp, uint64_t *out_value)
{
    const enum emu_wake wake = warp->fragment->wake;
    warp->fragment->wake = EMU_WAKE_NONE;
    if (out_value) {
        *out_value = warp->fragment->wait_value;
    }
    return wake;
}

void emu_wake_fragment(struct emu_warp *warp, struct emu_fragment *fragment, enum emu_wake wake,
                       uint64_t value)
{
    struct emu_cta *cta = warp->cta;
    fragment->state = EMU_FRAGMENT_READY;
    fragment->wait = EMU_WAIT_NONE;
    fragment->wake = wake;
    fragment->wait_value = value;
    if (cta->run->clocked && warp != cta->cluster->running) {
        const uint64_t now = emu_now(cta->cluster);
        warp->clock = warp->clock < now ? now : warp->clock;
    }
    cta->ready |= UINT32_C(1) << warp->index;
    cta->polling &= ~(UINT32_C(1) << warp->index);
    cta->cluster->ready |= UINT32_C(1) << cta->rank;
}

void emu_merge_ready(struct emu_warp *warp)
{
    EACH_USED(warp, a)
    {
        struct emu_fragment *into = &warp->fragments[a];
        if (into->state != EMU_FRAGMENT_READY || into == warp->fragment) {
            continue;
        }
        for (uint32_t b = a + 1; b < EMU_LANES; b++) {
            struct emu_fragment *from = &warp->fragments[b];
            if ((warp->used >> b & 1) && from->state == EMU_FRAGMENT_READY && from != warp->fragment &&
                from->pc == into->pc && from->frame == into->frame && from->wake == into->wake) {
                into->mask |= from->mask;
                fragment_free(warp, from);
            }
        }
    }
}

void emu_wake_all(struct emu_cluster *cluster, struct emu_cta *cta, enum emu_wait_kind kind, uint64_t key)
{
    const uint32_t first = cta ? cta->rank : 0, last = cta ? cta->rank : cluster->size - 1;
    for (uint32_t rank = first; rank <= last; rank++) {
        for (uint32_t w = 0; w < cluster->ctas[rank].n_warps; w++) {
            struct emu_warp *warp = &cluster->ctas[rank].warps[w];
            EACH_USED(warp, at)
            {
                struct emu_fragment *fragment = &warp->fragments[at];
                if (fragment->state == EMU_FRAGMENT_WAITING && fragment->wait == kind &&
                    fragment->wait_key == key) {
                    emu_wake_fragment(warp, fragment, EMU_WAKE_DONE, 0);
                }
            }
        }
    }
}

unsigned emu_warp_timeout(struct emu_warp *warp, uint64_t now_ns)
{
    unsigned woken = 0;
    EACH_USED(warp, at)
    {
        struct emu_fragment *fragment = &warp->fragments[at];
        if (fragment->state == EMU_FRAGMENT_WAITING && fragment->bounded &&
            (fragment->wait != EMU_WAIT_SLEEP || fragment->wait_key <= now_ns)) {
            emu_wake_fragment(warp, fragment, EMU_WAKE_TIMEOUT, 0);
            woken++;
        }
    }
    return woken;
}

/* --- running */

void emu_warp_start(struct emu_warp *warp, struct emu_frame *frame)
{
    warp->used = 0;
    warp->live = warp->present;
    warp->round = 0;
    warp->progress = 0;
    warp->deepest = 0;
    struct emu_fragment *fragment = fragment_new(warp);
    fragment->state = EMU_FRAGMENT_READY;
    fragment->mask = warp->present;
    fragment->pc = frame->code->ops;
    fragment->frame = frame;
}

/* Deepest call first, then lowest address: the order in which structured code meets again. */
static bool goes_first(const struct emu_fragment *a, const struct emu_fragment *b)
{
    return a->frame->depth != b->frame->depth ? a->frame->depth > b->frame->depth : a->pc < b->pc;
}

static struct emu_fragment *release(struct emu_warp *warp, struct emu_fragment *first, bool any_spun)
{
    EACH_USED(warp, at)
    {
        struct emu_fragment *other = &warp->fragments[at];
        if (other->state == EMU_FRAGMENT_PARKED && other != first &&
            (!any_spun || other->parked_round < warp->round) && other->age++ >= PATIENCE) {
            first = other;
        }
    }
    first->state = EMU_FRAGMENT_READY;
    first->pc += first->pc->u8[1]; /* past the join itself */
    first->age = 0;
    return first;
}

/* The fragment to run now; NULL with *out_stop when none can. */
static struct emu_fragment *pick(struct emu_warp *warp, enum emu_stop *out_stop)
{
    struct emu_fragment *ready = NULL, *parked = NULL;
    bool any_spun = false, eligible = false;
    EACH_USED(warp, at)
    {
        struct emu_fragment *fragment = &warp->fragments[at];
        if (fragment->state == EMU_FRAGMENT_READY) {
            ready = !ready || goes_first(fragment, ready) ? fragment : ready;
        } else if (fragment->state == EMU_FRAGMENT_PARKED) {
            parked = !parked || goes_first(fragment, parked) ? fragment : parked;
            eligible |= fragment->parked_round < warp->round;
        } else {
            any_spun |= fragment->state == EMU_FRAGMENT_SPUN;
        }
    }
    if (ready) {
        return ready;
    }
    if (parked && (eligible || !any_spun)) {
        return release(warp, parked, any_spun);
    }
    *out_stop = any_spun ? EMU_STOP_YIELD : warp->used ? EMU_STOP_WAIT : EMU_STOP_EXIT;
    if (any_spun) {
        warp->round++;
        EACH_USED(warp, at)
        {
            if (warp->fragments[at].state == EMU_FRAGMENT_SPUN) {
                warp->fragments[at].state = EMU_FRAGMENT_READY;
            }
        }
    }
    return NULL;
}

static void run_stepped(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_hooks *hooks = warp->cta->run->hooks;
    const bool full = warp->fragment->mask == EMU_ALL;
    emu_exec_set(warp, warp->fragment->mask);
    while (op) {
        hooks->op(hooks->user, warp, op);
        op = full ? op->full(warp, op) : op->masked(warp, op);
    }
}

static void run_fragment(struct emu_warp *warp, struct emu_fragment *fragment)
{
    const struct emu_op *op = fragment->pc;
    warp->fragment = fragment;
    warp->regs = fragment->frame->regs;
    warp->costs = warp->cta->run->clocked ? fragment->frame->code->costs : NULL;
    warp->stop = EMU_STOP_NONE;
    warp->count_from = op->insn;
    if (warp->stepped) {
        run_stepped(warp, op);
    } else if (fragment->mask == EMU_ALL) {
        warp->exec = EMU_ALL;
        while (op) {
            op = op->full(warp, op);
        }
    } else {
        emu_exec_set(warp, fragment->mask);
        while (op) {
            op = op->masked(warp, op);
        }
    }
}

/* `fragment`: ran last and left the run loop; NULL none. */
static enum emu_stop run_from(struct emu_warp *warp, struct emu_fragment *fragment)
{
    for (bool ran = fragment != NULL;; ran = false) {
        if (!ran) {
            if (!fragment || fragment->state != EMU_FRAGMENT_READY ||
                !(warp->used >> fragment_index(warp, fragment) & 1)) {
                fragment = &warp->fragments[__builtin_ctz(warp->used | UINT32_C(1) << 31)];
                /* Nearly always there is one fragment, and it is ready. */
                if ((warp->used & (warp->used - 1)) != 0 || fragment->state != EMU_FRAGMENT_READY) {
                    enum emu_stop stop = EMU_STOP_NONE;
                    fragment = pick(warp, &stop);
                    if (!fragment) {
                        warp->fragment = NULL;
                        return stop;
                    }
                }
            }
            run_fragment(warp, fragment);
            emu_barrier_settle(warp);
        }
        if (warp->stop == EMU_STOP_FAULT) {
            return EMU_STOP_FAULT;
        }
        if (warp->stop == EMU_STOP_YIELD) {
            warp->fuel = warp->cta->run->slice_fuel;
        }
        if (warp->stop == EMU_STOP_REMASK) {
            continue;
        }
        if (warp->stop == EMU_STOP_WAIT && (warp->used & (warp->used - 1)) == 0 &&
            fragment->state == EMU_FRAGMENT_WAITING) {
            warp->fragment = NULL;
            return EMU_STOP_WAIT;
        }
        fragment = NULL;
    }
}

enum emu_stop emu_warp_run(struct emu_warp *warp)
{
    /* Not refilled when a parked fragment is released: lanes that meet and part for ever must give way too.
     */
    warp->fuel = warp->cta->run->slice_fuel;
    return run_from(warp, NULL);
}

enum emu_stop emu_warp_go_on(struct emu_warp *warp)
{
    return run_from(warp, &warp->fragments[0]);
}

/* --- clocks */

uint64_t emu_cycles(const struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_thread *thread = warp->cta->cluster->thread;
    const uint32_t since = op->insn > warp->count_from ? op->insn - warp->count_from : 0;
    thread->clock_read = true;
    if (warp->costs) {
        return warp->clock + warp->cycles +
               (since ? warp->costs[op->insn] - warp->costs[warp->count_from] : 0);
    }
    return ++thread->skipped_cycles + thread->warp_insns[0] + thread->warp_insns[1] + since;
}

uint64_t emu_time_ns(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_run *run = warp->cta->run;
    const uint64_t khz = run->machine->model->clock_khz;
    const uint64_t own = emu_cycles(warp, op) * 1000 / (khz / 1000);
    const uint64_t all = atomic_load_explicit(&run->time_ns, memory_order_relaxed);
    return run->start_ns + (own > all || run->clocked ? own : all);
}
