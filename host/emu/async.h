/* Copies under way: cp.async with its per-thread groups, and the bulk copies of cp.async.bulk and the tensor
   forms with theirs. Payload moves when the copy completes: at a moment that the seed chooses, or at the
   latest when a thread waits for it, which therefore never has to block. Both are orders that PTX allows (PTX
   ISA 9.0, "Asynchronous copy"). */
#ifndef CLAB_EMU_ASYNC_H
#define CLAB_EMU_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/access.h"
#include "emu/cta_memory.h"
#include "emu/reduce.h"

/* How much later (emu_now) something lands: as the seed has it, on the schedule `fair` about a copy's
 * latency. */
uint64_t emu_async_delay(struct emu_cluster *cluster);

/* Offset in a CTA's shared window, as observers are told. */
static inline uint32_t emu_window_offset(uint32_t address)
{
    return address & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1);
}

/* --- cp.async */

struct emu_cp_async {
    uint32_t mask;                        /* lanes still to be copied */
    uint32_t bytes;                       /* 4, 8 or 16 for each lane */
    uint32_t group[EMU_LANES];            /* the lane's commit_groups before it */
    uint8_t from_bytes[EMU_LANES];        /* bytes read; the rest of `bytes` is zero-filled */
    unsigned char *to[EMU_LANES];         /* shared memory of the executing CTA */
    const unsigned char *from[EMU_LANES]; /* global memory; not read when from_bytes is 0 */
};

/* A copy for the executing lanes, to be filled by the caller in all but mask and group; NULL when memory is
 * out. */
struct emu_cp_async *emu_cp_async_new(struct emu_warp *warp);
/* cp.async.commit_group; false when memory is out. */
bool emu_cp_async_commit(struct emu_warp *warp);
/* Completes the executing lanes' groups but for the `newest` newest; everything when `all`. */
void emu_cp_async_wait(struct emu_warp *warp, uint32_t newest, bool all);
/* cp.async.mbarrier.arrive: arrives at each executing lane's object, in shared memory of its own CTA, when
   the lane's copies are done. False when memory is out. */
bool emu_cp_async_arrive(struct emu_warp *warp, const uint32_t addresses[EMU_LANES]);

/* --- bulk copies: one thread's, of any shape. */

struct emu_copy {
    struct emu_async async;
    struct emu_copies *owner; /* whose bulk group it is in; NULL: it completes on an mbarrier */
    struct emu_copy *next, *previous;
    unsigned lane;
    uint32_t group;
    bool done;
    uint32_t cycles;     /* of latency on the schedule `fair`; 0: a copy's */
    uint64_t id;         /* of the cluster's copies, for observers */
    struct emu_cta *cta; /* that issued it */
    /* Moves the payload and signals its mbarrier; faults by emu_fault_async. */
    void (*perform)(struct emu_copy *copy);
};

/* Posts a copy for `lane`; takes ownership (it was made with malloc). in_group: part of the thread's bulk
   group that the next commit closes. False when memory is out; the copy is freed then. */
bool emu_copy_post(struct emu_warp *warp, struct emu_copy *copy, unsigned lane, bool in_group);
bool emu_copy_commit(struct emu_warp *warp);
void emu_copy_wait(struct emu_warp *warp, uint32_t newest);

/* Tells observers of a completion: that of the copy, or what a tensor copy does to global memory. */
void emu_copy_tell(const struct emu_cta *cta, uint64_t id, enum emu_event_kind kind, uint64_t address,
                   uint64_t bytes, bool write);
/* complete_tx by an operation that `issuer` issued; NULL, or what is wrong. */
const char *emu_copy_complete_tx(const struct emu_cta *issuer, uint64_t id, struct emu_cta *cta,
                                 uint32_t mbarrier, uint32_t bytes);
/* complete_tx(bytes) at a copy's destination, or a fault. */
void emu_copy_signal(struct emu_copy *copy, struct emu_cta *cta, uint32_t mbarrier, uint32_t bytes);
/* Whether a CTA that a copy reads or writes is still there; reports it, naming both, when not. */
bool emu_copy_alive(struct emu_copy *copy, const struct emu_cta *cta, const char *what);

#endif
