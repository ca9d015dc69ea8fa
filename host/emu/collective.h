/* Instructions that all live lanes of a member mask execute together: shfl, vote, match, redux, elect,
   bar.warp.sync, and matrix instructions (collective.c). */
#ifndef CLAB_EMU_COLLECTIVE_H
#define CLAB_EMU_COLLECTIVE_H

#include "emu/fragment.h"

/* Rows that each lane brings; NULL where not used. */
struct emu_brought {
    const uint32_t *a, *a_high, *b, *c;
};
/* What each lane gets: a 32-bit value, and a predicate as a bit. */
struct emu_got {
    uint32_t value[EMU_LANES];
    uint32_t pred;
};
/* Computes what `participants` get from what they brought. op: for its immediates only, equal among
 * participants. */
typedef void emu_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                         struct emu_got *out);

/* Brings the executing lanes to a collective with the member masks of row `members` (NULL: the same mask
   `mask` for all). True: *out is filled for the executing lanes. False: the handler returns NULL; `op` is
   executed again later. Lanes that name another mask than the first one are split off and go later. */
bool emu_collective(struct emu_warp *warp, const struct emu_op *op, const uint32_t *members, uint32_t mask,
                    const struct emu_brought *in, emu_compute *compute, struct emu_got *out);

/* For instructions that only work converged (.sync.aligned): true when the executing lanes are all live lanes
   of `mask`; else the fragment waits for the rest at `op` and runs again, merged with them. */
bool emu_converged(struct emu_warp *warp, const struct emu_op *op, uint32_t mask);

#endif
