/* Scheduling of one host thread's share of a launch. resident.c has the pieces, sched.c the schedule `fast`
   and what both schedules need to end a launch that makes no progress, sched_fair.c the schedule `fair`. */
#ifndef CLAB_EMU_SCHED_H
#define CLAB_EMU_SCHED_H

#include "emu/fragment.h"

/* Runs clusters until none is left or the launch stops. The thread's pool exists; it is emptied of clusters.
 */
void emu_thread_run(struct emu_thread *thread);
/* The same for the one host thread of a launch with the schedule `fair`. */
void emu_thread_run_fair(struct emu_thread *thread);
/* The same for the one host thread of a launch whose observer wants one (sched_seeded.c). */
void emu_thread_run_seeded(struct emu_thread *thread);

/* --- resident.c */
/* Starts the next cluster of the grid here, if residency allows and there is one. */
bool emu_cluster_start_next(struct emu_thread *thread);
/* Takes a cluster off the residents; drops completions that are still to come. */
void emu_cluster_end(struct emu_thread *thread, struct emu_cluster *cluster);
/* Runs one warp until it waits, ends or gives way, and notes whether it only polled. */
void emu_warp_step(struct emu_warp *warp);
/* The same for each ready warp of the CTA from *inout_warp on, once; *inout_warp: where to go on. Ends early
   when a completion is due or the launch has stopped. Returns the slices' weight: 1 for those that ended at a
   barrier, which are short (a warp's fuel lasts through them), else EMU_SLICE_WEIGHT. */
#define EMU_SLICE_WEIGHT 8
unsigned emu_cta_steps(struct emu_cta *cta, uint32_t *inout_warp);
/* Completes the cluster's earliest pending item. */
void emu_async_complete_first(struct emu_cluster *cluster);
/* Warps that only polled become ready again, and bounded waits end: each gets one more turn. True when there
 * are any. */
bool emu_cluster_second_chance(struct emu_cluster *cluster);
/* Whether a thread of the cluster sleeps; lowers *inout_first_ns to the first wake-up time. */
bool emu_cluster_sleeper(const struct emu_cluster *cluster, uint64_t *inout_first_ns);
/* Whether lanes of one of its warps wait at a join for others of the warp. */
bool emu_cluster_parked(const struct emu_cluster *cluster);

/* --- sched.c */
static inline bool emu_run_stopped(const struct emu_run *run)
{
    return atomic_load_explicit(&run->stop, memory_order_relaxed) != 0;
}
/* The host thread's virtual clock. */
uint64_t emu_thread_cycles(const struct emu_thread *thread);
/* Looks after budget, cancellation and virtual time. */
void emu_thread_housekeeping(struct emu_thread *thread);
/* Nothing here can go on. `epoch`: the machine's before all was tried. Lets virtual time pass, declares the
   launch dead when the rules at the head of sched.c say so, or rests a little. */
void emu_thread_idle(struct emu_thread *thread, uint64_t epoch);
void emu_thread_set_stuck(struct emu_thread *thread, bool stuck);
/* All of a cluster wait, and nothing is left that could wake them: fails the launch. */
void emu_cluster_dead(struct emu_cluster *cluster);
/* Tells who waits where when the launch failed for lack of progress, and gives everything back. */
void emu_thread_finish(struct emu_thread *thread);

#endif
