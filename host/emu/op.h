/* The decoded form of a kernel: a compact array of warp-wide operations, and the part of a warp that handlers
   touch.

   A virtual register is a row of 32 lanes side by side in the warp's register file; a predicate is one 32-bit
   mask (bit = lane). Constants (immediates, symbol addresses) are rows too, filled once per register file and
   never written. Every operation has two handlers: `full` is called when all 32 lanes execute, `masked` when
   only the lanes in warp->exec do (warp->lane_mask[i] is all ones for those, 0 for the others).

   A handler returns the next operation to run (op + 1, or a branch target), or NULL to leave the run loop,
   after having set warp->stop. The same sources are compiled once per instruction set and twice per set
   (without and with hooks): see set.h. */
#ifndef CLAB_EMU_OP_H
#define CLAB_EMU_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define EMU_LANES    32
#define EMU_ALL      UINT32_C(0xffffffff)
#define EMU_NO_ROW   UINT32_MAX /* operand not used */
#define EMU_NO_GUARD UINT32_MAX

struct emu_warp;
struct emu_op;
typedef const struct emu_op *emu_handler(struct emu_warp *warp, const struct emu_op *op);

struct emu_op {
    emu_handler *full, *masked;
    uint32_t d, a, b, c; /* byte offsets of rows (or predicate words) from warp->regs */
    uint64_t imm;        /* offset, count, flags: the handler's own */
    union {
        const struct emu_op *target; /* branches */
        const void *extra;           /* side list for long operand lists; owned by the kernel's arena */
    };
    emu_handler *inner_full, *inner_masked; /* behind a guard */
    uint32_t guard;                         /* byte offset of the guard's predicate word, EMU_NO_GUARD none */
    uint8_t guard_negated;
    uint8_t u8[3]; /* small immediates: the handler's own */
    uint32_t insn; /* index into the ptx_function's insns, for diagnostics and counters */
    uint8_t spin;  /* 1: part of a polling loop, counted apart */
};

/* Why a handler left the run loop. */
enum emu_stop {
    EMU_STOP_NONE,
    EMU_STOP_REMASK,  /* exec or fragment changed: pick again, go on */
    EMU_STOP_WAIT,    /* fragment blocked (barrier, mbarrier, collective); its pc says where to resume */
    EMU_STOP_BARRIER, /* a whole warp blocked at bar.sync, its instructions not counted (ops_barrier.c) */
    EMU_STOP_YIELD,   /* quantum over at a backward branch, or nanosleep */
    EMU_STOP_EXIT,    /* all lanes of the fragment exited */
    EMU_STOP_FAULT    /* launch->error is set */
};

struct emu_cta;
struct emu_fragment;
struct emu_traffic; /* traffic.h */

/* What every handler may use. The rest of a warp's state (fragments, call stack, scheduling) is in warp.h. */
struct emu_warp {
    unsigned char *regs; /* register file: rows, 64-byte aligned */
    uint32_t exec;       /* lanes executing now */
    enum emu_stop stop;
    struct emu_cta *cta;
    struct emu_fragment *fragment;  /* the fragment that runs now */
    struct emu_fragment *fragments; /* EMU_LANES of them */
    uint32_t used;                  /* bit per fragment that is not EMU_FRAGMENT_FREE */
    uint32_t bit;                   /* 1 << index */

    /* Counts. Memory operations add to *traffic (private to the host thread that runs the warp) and raise
       `progress` for every store, changed atomic, arrival or completed copy: see emu_progress in warp.h. */
    struct emu_traffic *traffic;
    uint64_t progress;
    /* What has no part in most slices: the second cache line. */
    uint32_t index;                      /* warp index in its CTA */
    bool stepped;                        /* an observer sees every operation */
    uint32_t present;                    /* lanes that exist (last warp of a CTA may be short) */
    uint32_t live;                       /* present lanes that have not exited */
    uint64_t *warp_insns, *thread_insns; /* the host thread's counts; [1]: inside polling loops */
    uint32_t count_from; /* index of the first instruction of the running function that is not counted yet */
    int32_t fuel;        /* backward branches left in this slice */
    uint32_t round;      /* rounds of the fragments, see warp.c */
    const uint32_t *costs;  /* of the running function (code.h), where the schedule has a clock; else NULL */
    uint64_t clock, cycles; /* virtual time at which the slice began, and what it has taken since */
    uint64_t state_hash;    /* registers at an earlier turn: see resident.c */
    uint32_t state_turns, state_limit, short_turns;
    void *observed;            /* an observer's own state */
    bool state_same;           /* the state had not changed when it was compared last */
    struct emu_gather *gather; /* collective.c; NULL until the warp needs one */
    uint32_t gathered;         /* lanes that have arrived at the warp's open collective */
    uint32_t deepest;          /* call depth reached so far: getting deeper is progress */
    _Alignas(64) uint32_t lane_mask[EMU_LANES];
};

/* Row access: T is the lane's C type. */
#define EMU_ROW(T, warp, offset) ((T *)(void *)((warp)->regs + (offset)))
#define EMU_PRED(warp, offset)   (*(uint32_t *)(void *)((warp)->regs + (offset)))

/* Number of lanes in a mask; mostly all of them, and the baseline instruction set has no population count. */
static inline uint32_t emu_lane_count(uint32_t mask)
{
    return mask == EMU_ALL ? EMU_LANES : (uint32_t)__builtin_popcount(mask);
}

#if defined(__clang__)
/* Loops of scalar work (division, tables), and all with a sanitizer, stay scalar; clang need not say so. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define EMU_VECTORIZE _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define EMU_VECTORIZE _Pragma("GCC ivdep")
#endif
/* Lanes are independent: a destination row is either disjoint from a source row or the same row. */
#define EMU_EACH_LANE(i) EMU_VECTORIZE for (unsigned i = 0; i < EMU_LANES; i++)

/* Reports a kernel fault at `op` for `lane` (EMU_LANES: no one lane): fills the launch's error (kernel,
   file:line, instruction, cluster/CTA/warp/lane), sets warp->stop and returns NULL so that a handler can
   `return` it. space NULL: no address. */
const struct emu_op *emu_fault(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                               clab_status status, const char *space, uint64_t address, const char *format,
                               ...) CLAB_PRINTF(7, 8);

#endif
