/* The mbarrier object (PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: mbarrier"): 8
   bytes of shared memory, in the layout that mbarrier.init stores and mbarrier.pending_count reads on sm_90,
   100 and 120:

     63     phase parity                 62:43  2^20 - pending arrivals (0 when none are pending)
     41:21  bytes completed minus expected, signed           20:1  2^20 - expected arrivals

   All of it was read back on an H200, by mbarrier.inval and a load.

   Operations here act on one object, for a thread of any CTA of the cluster or for a completed copy. They
   return NULL, or what the program did wrong, for the caller to report. A completed phase wakes those who
   wait for the object. */
#ifndef CLAB_EMU_MBARRIER_H
#define CLAB_EMU_MBARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/warp.h"

#define EMU_MBARRIER_MAX ((UINT32_C(1) << 20) - 1) /* largest count, and largest tx-count either way */

/* An object is named by its CTA and its shared window address, of which only the offset counts; the address
   has been checked to lie in the CTA's shared memory, at a multiple of 8. */
const char *emu_mbarrier_init(struct emu_cta *cta, uint32_t address, uint32_t count);
const char *emu_mbarrier_inval(struct emu_cta *cta, uint32_t address);
bool emu_mbarrier_is_live(const struct emu_cta *cta, uint32_t address);

struct emu_mbarrier_arrival {
    uint32_t count;  /* arrivals */
    uint32_t expect; /* bytes to expect first */
    bool drop;       /* arrive_drop: the next phases expect fewer arrivals too */
    bool must_not_complete;
    uint32_t operand; /* count or bytes as the instruction gives them, 0 without: the state's low word */
};
/* *out_state: the state before the arrival, as the instruction returns it. */
const char *emu_mbarrier_arrive(struct emu_cta *cta, uint32_t address,
                                const struct emu_mbarrier_arrival *arrival, uint64_t *out_state);
const char *emu_mbarrier_expect_tx(struct emu_cta *cta, uint32_t address, uint32_t bytes);
const char *emu_mbarrier_complete_tx(struct emu_cta *cta, uint32_t address, uint32_t bytes);
/* cp.async.mbarrier.arrive without .noinc: one more pending arrival in this phase. */
const char *emu_mbarrier_add_pending(struct emu_cta *cta, uint32_t address);
/* *out_done: whether the phase of that parity is complete, and the current one is the next. */
const char *emu_mbarrier_test(const struct emu_cta *cta, uint32_t address, unsigned parity, bool *out_done);

/* For reports: the object's parts. */
struct emu_mbarrier_view {
    uint32_t expected, pending;
    int32_t outstanding_bytes; /* expected minus completed */
    unsigned parity;
    uint32_t expected_bytes, arrived_bytes; /* in this phase */
};
struct emu_mbarrier_view emu_mbarrier_view(const struct emu_cta *cta, uint32_t address);

/* mbarrier.pending_count, as ptxas 13.0 lowers it. */
static inline uint32_t emu_mbarrier_pending_of(uint64_t state)
{
    return (UINT32_C(1) << 20) - ((uint32_t)(state >> 43) & EMU_MBARRIER_MAX);
}

#endif
