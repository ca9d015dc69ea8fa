/* What control-flow operations do to the fragments of a warp (warp.c). */
#ifndef CLAB_EMU_FRAGMENT_H
#define CLAB_EMU_FRAGMENT_H

#include "emu/code.h"
#include "emu/warp.h"

/* Counts the instructions before index `insn` of the running function that were not counted yet, for `lanes`,
   and leaves `next` as the first uncounted one. `op` is in the same stretch of code: it says whether that is
   part of a polling loop, whose instructions are counted apart because their number depends on the schedule.
 */
static inline void emu_count(struct emu_warp *warp, const struct emu_op *op, uint32_t insn, uint32_t lanes,
                             uint32_t next)
{
    if (insn > warp->count_from) {
        const uint32_t n = insn - warp->count_from;
        warp->warp_insns[op->spin] += n;
        warp->thread_insns[op->spin] += (uint64_t)n * emu_lane_count(lanes);
        if (__builtin_expect(warp->costs != NULL, 0)) {
            warp->cycles += warp->costs[insn] - warp->costs[warp->count_from];
        }
    }
    warp->count_from = next;
}

/* On the schedule `fair` a warp's slice runs ahead of the others': where warps meet, none goes on before the
   latest of them came. The later of `latest` and the time at which the running warp is at `op`. */
static inline uint64_t emu_clock_later(struct emu_warp *warp, const struct emu_op *op, uint64_t latest)
{
    emu_count(warp, op, op->insn, warp->exec, op->insn);
    const uint64_t now = warp->clock + warp->cycles;
    return now < latest ? latest : now;
}
/* The warp goes on at `time`, if it is not later there already. */
static inline void emu_clock_raise(struct emu_warp *warp, uint64_t time)
{
    const uint64_t now = warp->clock + warp->cycles;
    if (now < time) {
        uint64_t *own = warp == warp->cta->cluster->running ? &warp->cycles : &warp->clock;
        *own += time - now;
    }
}

/* The running fragment's lanes part at `op`: `taken` (neither none nor all of exec) go to `target`, the rest
   to op + 1. Lanes that are at `join` already wait there. Counting is done. Sets the fragment's pc and mask,
   exec and lane_mask. Returns the operation that the fragment goes on with. */
const struct emu_op *emu_diverge(struct emu_warp *warp, const struct emu_op *op, uint32_t taken,
                                 const struct emu_op *target, const struct emu_op *join);
/* Leaves the run loop to go on at `pc`: because exec changed between full and not full. */
const struct emu_op *emu_remask(struct emu_warp *warp, const struct emu_op *pc);
/* The fragment gives way at a backward branch. */
const struct emu_op *emu_yield(struct emu_warp *warp, const struct emu_op *pc);
/* An operation of its own, after one by which threads synchronise through memory (atomics, volatile and
   ordered accesses): under an observer of order every second time, by the cluster's random numbers, others go
   first, so that what comes after such an access is not always done before another warp's turn. A warp does
   so early in its life only. */
const struct emu_op *emu_give_way(struct emu_warp *warp, const struct emu_op *op);
/* The fragment reached a join with fewer than 32 lanes. */
const struct emu_op *emu_join(struct emu_warp *warp, const struct emu_op *op);
/* All executing lanes of the fragment end. */
const struct emu_op *emu_exit_lanes(struct emu_warp *warp, const struct emu_op *op);
/* The executing fragment's lanes return from a function, or end when it is the entry. */
const struct emu_op *emu_return(struct emu_warp *warp, const struct emu_op *op);
/* Enters `code` with all lanes of the fragment; they come back to `back`. Local memory and register file are
   ready; arguments are not copied yet (the caller of emu_enter does). NULL frame: a fault was reported. */
struct emu_frame *emu_enter(struct emu_warp *warp, const struct emu_op *op, const struct emu_code *code,
                            const struct emu_op *back);
/* Copies a mask's lanes only: bytes of local memory from one place of each thread's piece to another. */
void emu_local_copy(struct emu_warp *warp, uint32_t lanes, uint32_t to, uint32_t from, uint32_t bytes);

/* Splits `lanes` off the running fragment and sends them to `target`: they wait there when it is `join`. */
void emu_send(struct emu_warp *warp, uint32_t lanes, const struct emu_op *target, const struct emu_op *join);
/* Splits `lanes` off the running fragment into a new one that is READY at `pc`. */
struct emu_fragment *emu_split(struct emu_warp *warp, uint32_t lanes, const struct emu_op *pc);

/* --- used by the scheduler */
/* First fragment of a warp that starts: all present lanes at the entry. */
void emu_warp_start(struct emu_warp *warp, struct emu_frame *frame);
/* Runs the warp until all its fragments wait or ended, or it gives way. EMU_STOP_WAIT, EXIT, YIELD or FAULT.
 */
enum emu_stop emu_warp_run(struct emu_warp *warp);
/* The same for a warp whose only fragment ran until it left the run loop. */
enum emu_stop emu_warp_go_on(struct emu_warp *warp);

/* Counts what a warp left uncounted when it stopped at a barrier (EMU_STOP_BARRIER). It goes on like any
   other warp then. */
static inline void emu_barrier_settle(struct emu_warp *warp)
{
    if (warp->stop == EMU_STOP_BARRIER) {
        const struct emu_fragment *fragment = &warp->fragments[0];
        const struct emu_op *op = fragment->state == EMU_FRAGMENT_WAITING ? fragment->pc : fragment->pc - 1;
        emu_count(warp, op, op->insn + 1, EMU_ALL, op->insn + 1);
        warp->stop = EMU_STOP_WAIT;
    }
}

/* A slice of a warp whose last one ended with EMU_STOP_BARRIER: nothing of it has changed. */
static inline void emu_warp_run_on(struct emu_warp *warp)
{
    const struct emu_op *op = warp->fragments[0].pc;
    warp->stop = EMU_STOP_NONE;
    do {
        op = op->full(warp, op);
    } while (op);
}

/* The most frequent slice but for those: one fragment, all 32 lanes, no observer. Runs it until it leaves the
   run loop; false when the warp is in another state. `fuel`: the run's slice_fuel. */
static inline bool emu_warp_run_whole(struct emu_warp *warp, int32_t fuel)
{
    struct emu_fragment *fragment = &warp->fragments[0];
    if (warp->used != 1 || warp->stepped || fragment->state != EMU_FRAGMENT_READY ||
        fragment->mask != EMU_ALL) {
        return false;
    }
    const struct emu_op *op = fragment->pc;
    warp->fragment = fragment;
    warp->regs = emu_frame_regs(fragment->frame);
    warp->exec = EMU_ALL;
    warp->stop = EMU_STOP_NONE;
    warp->count_from = op->insn;
    warp->fuel = fuel;
    do {
        op = op->full(warp, op);
    } while (op);
    return true;
}
/* Ends waits with EMU_WAKE_TIMEOUT: of bounded waits, and sleeps whose time has come. Number of fragments
 * woken. */
unsigned emu_warp_timeout(struct emu_warp *warp, uint64_t now_ns);
/* Virtual time as the running warp sees it. */
uint64_t emu_cycles(const struct emu_warp *warp, const struct emu_op *op);
uint64_t emu_time_ns(struct emu_warp *warp, const struct emu_op *op);

/* Makes a waiting fragment ready. */
void emu_wake_fragment(struct emu_warp *warp, struct emu_fragment *fragment, enum emu_wake wake,
                       uint64_t value);
/* Merges another fragment into the running one, whose exec does not change yet. */
void emu_absorb(struct emu_warp *warp, struct emu_fragment *other);
/* Merges fragments of the warp that are ready at the same operation of the same frame. */
void emu_merge_ready(struct emu_warp *warp);

/* --- barrier.c. How a fragment takes part in a named barrier. */
enum emu_barrier_mode {
    EMU_BARRIER_SYNC,
    EMU_BARRIER_ARRIVE,
    EMU_BARRIER_POPC,
    EMU_BARRIER_AND,
    EMU_BARRIER_OR
};
/* The executing lanes arrive at barrier `id` (0..15) with `expected` threads (0: all of the CTA). mode SYNC:
   returns op + 1 when the barrier completed, else NULL: the fragment waits and goes on at op + 1. ARRIVE: op
   + 1. The reductions, with `predicate`: op + 1 with *out_value set, or NULL: `op` is executed again when
   woken. */
const struct emu_op *emu_barrier_take(struct emu_warp *warp, const struct emu_op *op, uint32_t id,
                                      uint32_t expected, enum emu_barrier_mode mode, uint32_t predicate,
                                      uint64_t *out_value);
/* The same for bar.sync u8[0] of a whole CTA by a whole warp: the common case. The instruction is counted
   when the warp waits. */
const struct emu_op *emu_barrier_whole(struct emu_warp *warp, const struct emu_op *op);
void emu_barriers_exit(struct emu_warp *warp, uint32_t lanes);
/* --- cluster.c: barrier.cluster */
const struct emu_op *emu_cluster_arrive(struct emu_warp *warp, const struct emu_op *op);
const struct emu_op *emu_cluster_wait(struct emu_warp *warp, const struct emu_op *op);
void emu_cluster_barrier_exit(struct emu_warp *warp, uint32_t lanes);
/* --- collective.c: lanes that ended are not waited for. */
void emu_collective_exit(struct emu_warp *warp, uint32_t lanes);

/* --- pool of register files (pool.c) */
/* A register file of `code` with its constants filled, in a frame with refs 1; NULL when memory is out. */
struct emu_frame *emu_frame_take(struct emu_thread *thread, const struct emu_code *code, uint32_t rank);
void emu_frame_give(struct emu_thread *thread, struct emu_frame *frame);

#endif
