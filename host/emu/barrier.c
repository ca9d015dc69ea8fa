/* Named barriers of a CTA: bar.sync, bar.arrive, bar.red and barrier.cta. PTX ISA 9.0, 9.7.13.1 "bar,
   barrier".

   Threads are counted, so that lanes of one warp may arrive from different places (as on an H200: design,
   "Progress inside a warp"). A warp that arrives whole counts 32 threads towards a given count even when some
   of its lanes ended or never existed, because such counts are multiples of the warp size. Threads that ended
   are not waited for: a barrier completes when all live threads of the CTA wait at it, and that is checked
   again whenever threads end.

   On an H200 (driver 13.0, 2026-11-30) arrivals with different thread counts end the launch with
   CUDA_ERROR_ILLEGAL_INSTRUCTION, as here; bar.red reached by lanes of one warp in different branches hangs
   it, and completes here: the manual leaves that undefined, since bar.red is .aligned. */
#include "emu/fragment.h"
#include "emu/hook.h"

static bool complete(const struct emu_cta *cta, const struct emu_barrier *barrier)
{
    return barrier->arrived > 0 && ((barrier->expected && barrier->arrived >= barrier->expected) ||
                                    (barrier->waiting > 0 && barrier->waiting == cta->live_threads));
}

static uint64_t reduced(const struct emu_barrier *barrier, enum emu_barrier_mode mode)
{
    return mode == EMU_BARRIER_POPC  ? barrier->reduce_count
           : mode == EMU_BARRIER_AND ? (barrier->reduce_and ? EMU_ALL : 0)
                                     : (barrier->reduce_or ? EMU_ALL : 0);
}

static void release_warp(struct emu_warp *warp, const struct emu_barrier *barrier, uint32_t id)
{
    for (uint32_t used = warp->used; used; used &= used - 1) {
        struct emu_fragment *fragment = &warp->fragments[__builtin_ctz(used)];
        if (fragment->state != EMU_FRAGMENT_WAITING || fragment->wait != EMU_WAIT_BARRIER ||
            fragment->wait_key != id) {
            continue;
        }
        const enum emu_barrier_mode mode = fragment->pc->u8[1];
        if (mode == EMU_BARRIER_SYNC) {
            fragment->pc++;
            emu_wake_fragment(warp, fragment, EMU_WAKE_NONE, 0);
        } else {
            emu_wake_fragment(warp, fragment, EMU_WAKE_DONE, reduced(barrier, mode));
        }
    }
    if (warp->used & (warp->used - 1)) {
        emu_merge_ready(warp);
    }
}

/* Wakes all that wait at barrier `id`, and makes it fresh. */
static void release(struct emu_cta *cta, uint32_t id)
{
    struct emu_barrier *barrier = &cta->barriers[id];
    const uint32_t whole = barrier->whole_warps;
    for (uint32_t left = whole; left; left &= left - 1) {
        const uint32_t w = (uint32_t)__builtin_ctz(left);
        struct emu_fragment *fragment = &cta->warps[w].fragments[0];
        fragment->pc++;
        fragment->state = EMU_FRAGMENT_READY;
        fragment->wait = EMU_WAIT_NONE;
    }
    for (uint32_t left = barrier->waiting_warps; left; left &= left - 1) {
        const uint32_t w = (uint32_t)__builtin_ctz(left);
        release_warp(&cta->warps[w], barrier, id);
        barrier->lanes[w] = 0;
    }
    for (uint32_t left = cta->run->clocked ? whole | barrier->waiting_warps : 0; left; left &= left - 1) {
        emu_clock_raise(&cta->warps[__builtin_ctz(left)], barrier->latest);
    }
    if (whole) {
        cta->ready |= whole;
        cta->polling &= ~whole;
        cta->cluster->ready |= UINT32_C(1) << cta->rank;
    }
    cta->barriers_active &= ~(UINT32_C(1) << id);
    barrier->expected = barrier->arrived = barrier->waiting = barrier->waiting_warps = barrier->whole_warps =
        0;
    barrier->latest = 0;
    cta->cluster->thread->barriers++;
}

const struct emu_op *emu_barrier_whole(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_cta *cta = warp->cta;
    const uint32_t id = op->u8[0];
    struct emu_barrier *barrier = &cta->barriers[id];
    if (warp->used != 1 || (barrier->arrived && barrier->expected != 0)) {
        return emu_barrier_take(warp, op, id, 0, EMU_BARRIER_SYNC, 0, NULL);
    }
    if (barrier->arrived == 0) {
        cta->barriers_active |= UINT32_C(1) << id;
        barrier->expected = 0;
    }
    warp->progress++;
    barrier->arrived += EMU_LANES;
    barrier->waiting += EMU_LANES;
    if (cta->run->clocked) {
        barrier->latest = emu_clock_later(warp, op, barrier->latest);
    }
    if (cta->run->hooks) {
        emu_hook_event(cta, warp, op,
                       &(struct emu_event){
                           .kind = EMU_EVENT_BARRIER_ARRIVE, .lanes = EMU_ALL, .wait = true, .value = id});
    }
    if (barrier->waiting == cta->live_threads) {
        if (cta->run->hooks) {
            barrier->lanes[warp->index] = EMU_ALL;
            emu_hook_event(cta, warp, op,
                           &(struct emu_event){.kind = EMU_EVENT_BARRIER_COMPLETE, .value = id});
            barrier->lanes[warp->index] = 0;
        }
        if (cta->run->clocked) {
            emu_clock_raise(warp, barrier->latest);
        }
        release(cta, id);
        return op + 1;
    }
    barrier->whole_warps |= UINT32_C(1) << warp->index;
    struct emu_fragment *fragment = &warp->fragments[0];
    emu_count(warp, op, op->insn + 1, EMU_ALL, op->insn + 1);
    fragment->pc = op;
    fragment->state = EMU_FRAGMENT_WAITING;
    fragment->wait = EMU_WAIT_BARRIER;
    fragment->wait_key = id;
    fragment->bounded = false;
    warp->stop = EMU_STOP_WAIT;
    return NULL;
}

const struct emu_op *emu_barrier_take(struct emu_warp *warp, const struct emu_op *op, uint32_t id,
                                      uint32_t expected, enum emu_barrier_mode mode, uint32_t predicate,
                                      uint64_t *out_value)
{
    struct emu_cta *cta = warp->cta;
    if (id >= EMU_NAMED_BARRIERS || expected % EMU_LANES != 0) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
                         id >= EMU_NAMED_BARRIERS ? "barrier %u: there are 0 to 15"
                                                  : "barrier %u: thread count %u is not a multiple of 32",
                         id, expected);
    }
    struct emu_barrier *barrier = &cta->barriers[id];
    const uint32_t lanes = warp->exec, before = barrier->lanes[warp->index];
    if (barrier->arrived == 0) {
        cta->barriers_active |= UINT32_C(1) << id;
        barrier->expected = expected;
        barrier->reduce_count = 0;
        barrier->reduce_and = true;
        barrier->reduce_or = false;
    } else if (barrier->expected != expected) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
                         "barrier %u: arrived with a thread count of %u, others with %u (0: the whole CTA)",
                         id, expected, barrier->expected);
    }
    const bool whole = ((before | lanes) & warp->live) == warp->live;
    barrier->arrived += whole ? EMU_LANES - emu_lane_count(before) : emu_lane_count(lanes);
    barrier->reduce_count += emu_lane_count(predicate & lanes);
    barrier->reduce_and &= (predicate & lanes) == lanes;
    barrier->reduce_or |= (predicate & lanes) != 0;
    warp->progress++;
    if (cta->run->clocked) {
        barrier->latest = emu_clock_later(warp, op, barrier->latest);
    }
    emu_hook_event(cta, warp, op,
                   &(struct emu_event){.kind = EMU_EVENT_BARRIER_ARRIVE,
                                       .lanes = lanes,
                                       .wait = mode != EMU_BARRIER_ARRIVE,
                                       .value = id});
    if (mode != EMU_BARRIER_ARRIVE) {
        barrier->lanes[warp->index] |= lanes;
        barrier->waiting += emu_lane_count(lanes);
    }
    if (complete(cta, barrier)) {
        emu_hook_event(cta, warp, op, &(struct emu_event){.kind = EMU_EVENT_BARRIER_COMPLETE, .value = id});
        barrier->lanes[warp->index] = 0;
        if (out_value) {
            *out_value = reduced(barrier, mode);
        }
        if (cta->run->clocked && mode != EMU_BARRIER_ARRIVE) {
            emu_clock_raise(warp, barrier->latest);
        }
        release(cta, id);
        if (mode != EMU_BARRIER_SYNC || (warp->used & (warp->used - 1)) == 0) {
            return op + 1;
        }
        /* Lanes of this warp that waited elsewhere at the same barrier may be at the same operation now. */
        emu_count(warp, op, op->insn + 1, lanes, op->insn + 1);
        warp->fragment->pc = op + 1;
        warp->fragment = NULL;
        emu_merge_ready(warp);
        warp->stop = EMU_STOP_REMASK;
        return NULL;
    }
    if (mode == EMU_BARRIER_ARRIVE) {
        return op + 1;
    }
    barrier->waiting_warps |= UINT32_C(1) << warp->index;
    if (mode == EMU_BARRIER_SYNC) {
        emu_count(warp, op, op->insn + 1, lanes, op->insn + 1);
    }
    return emu_wait(warp, op, EMU_WAIT_BARRIER, id);
}

void emu_barriers_exit(struct emu_warp *warp, uint32_t lanes)
{
    struct emu_cta *cta = warp->cta;
    (void)lanes; /* they wait nowhere */
    for (uint32_t left = cta->barriers_active; left; left &= left - 1) {
        const uint32_t id = (uint32_t)__builtin_ctz(left);
        if (complete(cta, &cta->barriers[id])) {
            emu_hook_event(cta, NULL, NULL,
                           &(struct emu_event){.kind = EMU_EVENT_BARRIER_COMPLETE, .value = id});
            release(cta, id);
        }
    }
}
