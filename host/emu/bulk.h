/* Bulk copies of one thread, between global and shared memory: checked when issued, performed later
 * (async.h). */
#ifndef CLAB_EMU_BULK_H
#define CLAB_EMU_BULK_H

#include "emu/async.h"
#include "emu/window.h"

/* Where a copy into shared memory lands: the same offsets in each CTA of `ranks`. */
struct emu_bulk_target {
    uint32_t to, mbarrier; /* window addresses */
    uint32_t ranks;        /* CTAs of the destination, a bit each */
};

/* The operands of `lane`. Without multicast the destination's own CTA, and the mbarrier must be in it (pair:
   or in the other CTA of its pair); with multicast the CTAs of `mask`. False after a fault. bytes may be 0.
 */
bool emu_bulk_target_get(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                         const struct emu_window_operand *to, const struct emu_window_operand *mbarrier,
                         uint32_t bytes, uint32_t align, bool multicast, uint32_t mask, bool pair,
                         struct emu_bulk_target *out);
/* Posts a copy of `bytes` as emu_copy_post does, and counts it. False: memory is out (copy NULL says so too),
   and the fault is made. */
bool emu_bulk_post(struct emu_warp *warp, const struct emu_op *op, unsigned lane, struct emu_copy *copy,
                   bool in_group, uint64_t bytes);
/* The CTA whose mbarrier a copy to `rank` signals. */
static inline uint32_t emu_bulk_signalled(const struct emu_bulk_target *target, bool pair, uint32_t rank)
{
    return pair ? (rank & ~UINT32_C(1)) | (target->mbarrier >> EMU_RANK_SHIFT & 1) : rank;
}

static inline unsigned char *emu_bulk_shared(const struct emu_cta *cta, uint32_t address)
{
    return cta->shared + ((address & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1)) - EMU_SHARED_FIRST);
}

enum emu_bulk_kind { EMU_BULK_GLOBAL_TO_SHARED, EMU_BULK_SHARED_TO_SHARED, EMU_BULK_SHARED_TO_GLOBAL };

/* One instruction, decoded. */
struct emu_bulk_plan {
    enum emu_bulk_kind kind;
    struct emu_window_operand shared_to, shared_from, mbarrier;
    uint32_t global_row; /* 64-bit lanes */
    uint64_t global_imm;
    uint32_t size_row;            /* 32-bit lanes */
    uint32_t mask_row;            /* multicast: 16-bit lanes; EMU_NO_ROW without */
    uint32_t byte_mask_row;       /* .cp_mask: 16-bit lanes; EMU_NO_ROW without */
    enum emu_reduction reduction; /* EMU_REDUCE_COUNT: a copy */
};
/* Issues the copy of `lane`. False after a fault. */
bool emu_bulk_issue(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                    const struct emu_bulk_plan *plan);

#endif
