/* Modelled cost of code, for the schedule `fair` (sched_fair.c): when each instruction of a straight stretch
 * would issue. */
#ifndef CLAB_EMU_COST_H
#define CLAB_EMU_COST_H

#include "ptx/ptx.h"

enum emu_cost {
#define EMU_COST(id, cycles, what, source) EMU_COST_##id = (cycles),
#include "emu/cost.def"
#undef EMU_COST
};

/* Cycles before each instruction of the function in program order, n_insns + 1 entries: the difference of two
   is what the instructions between them take one warp that waits for nobody. An instruction issues a cycle
   after the one before, and not before the registers that it reads have arrived; what is still on its way at
   the end of a block is waited for, if anything reads it. No cache, no bank conflict, no divergence. NULL
   when memory is out. */
uint32_t *emu_cost_schedule(const struct ptx_function *function, const struct ptx_cfg *cfg,
                            struct clab_arena *arena, struct clab_arena *scratch);

#endif
