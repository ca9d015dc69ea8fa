/* One lane's address in shared memory, for operations that act on an object there (mbarrier, asynchronous
 * copies). */
#ifndef CLAB_EMU_WINDOW_H
#define CLAB_EMU_WINDOW_H

#include "emu/place.h"

/* An address operand: row of 64-bit lanes, bytes to add, and how far it reaches. */
struct emu_window_operand {
    uint32_t row;
    uint64_t imm;
    enum emu_reach reach; /* SHARED_CTA, SHARED_CLUSTER or GENERIC */
};

struct emu_window_place {
    struct emu_cta *cta; /* whose memory it is */
    uint32_t address;    /* window address */
    unsigned char *at;
};

/* Reach of an operand of a space that an instruction gives: none is generic. */
static inline enum emu_reach emu_window_reach(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
        return EMU_REACH_SHARED_CTA;
    case PTX_SPACE_SHARED_CLUSTER:
        return EMU_REACH_SHARED_CLUSTER;
    default:
        return EMU_REACH_GENERIC;
    }
}

static inline struct emu_window_operand
emu_window_operand(struct emu_emit *emit, const struct ptx_operand *operand, enum emu_reach reach)
{
    int64_t offset = 0;
    const uint32_t row = emu_address(emit, operand, &offset);
    return (struct emu_window_operand){row, (uint64_t)offset, reach};
}

/* Checks [address, address + bytes) of `lane`; false after emu_fault. `own`: a generic address may not leave
   the executing CTA. */
bool emu_window_lane(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                     const struct emu_window_operand *operand, bool own, uint32_t bytes, uint32_t align,
                     enum emu_access_mode mode, struct emu_window_place *out);
/* st.async, red.async and copies from shared to shared::cluster are illegal instructions in a launch without
   clusters, though they name the executing CTA; a cluster of one CTA will do (NVIDIA H200, driver 13.0,
   2026-12-01: CUDA_ERROR_ILLEGAL_INSTRUCTION). Loads, stores, atomics and arrivals through mapa, and bulk
   copies from global memory, are not. False after emu_fault. */
bool emu_window_clustered(struct emu_warp *warp, const struct emu_op *op);

#endif
