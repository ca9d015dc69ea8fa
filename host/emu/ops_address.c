/* Addresses: cvta, cvta.to, isspacep, mapa, getctarank. PTX ISA 9.0, sections of those names.

   Generic addresses of device memory, constants and kernel parameters are their addresses in their own space;
   shared and local memory lie in windows of 4 GiB, so that cvta adds the window's address and cvta.to keeps
   the low word. What mapa and getctarank do with an address is what the machine code of ptxas 13.0 does: the
   rank is the top byte of the low word, and neither the address nor the rank is checked. */
#include "emu/access.h"
#include "emu/emit.h"
#include "emu/lanes.h"

/* --- cvta */

/* x: the lane; window: the generic address of the window. */
#define CVTA(NAME, WINDOW, EXPR)                                                                   \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)        \
    {                                                                                              \
        uint64_t *d = EMU_ROW(uint64_t, warp, op->d);                                              \
        const uint64_t *a = EMU_ROW(uint64_t, warp, op->a), window = emu_warp_space(warp)->WINDOW; \
        EMU_EACH_LANE(i)                                                                           \
        {                                                                                          \
            const uint64_t x = a[i];                                                               \
            d[i] = (EXPR);                                                                         \
        }                                                                                          \
        return op + 1;                                                                             \
    }                                                                                              \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op)      \
    {                                                                                              \
        uint64_t *d = EMU_ROW(uint64_t, warp, op->d);                                              \
        const uint64_t *a = EMU_ROW(uint64_t, warp, op->a), window = emu_warp_space(warp)->WINDOW; \
        const uint32_t *on = warp->lane_mask;                                                      \
        EMU_EACH_LANE(i)                                                                           \
        {                                                                                          \
            const uint64_t x = a[i], r = (EXPR);                                                   \
            d[i] = on[i] ? r : d[i];                                                               \
        }                                                                                          \
        return op + 1;                                                                             \
    }
CVTA(cvta_shared, shared_window, window + (uint32_t)x)
CVTA(cvta_local, local_window, window + (uint32_t)x)
/* A parameter of a function lives in local memory: below 4 GiB it is an offset there. */
CVTA(cvta_param, local_window, x + (x >> 32 ? 0 : window))
CVTA(cvta_to_param, local_window, x - ((x - window) >> 32 ? 0 : window))
#undef CVTA
EMU_UNARY(cvta_low, uint64_t, uint64_t, (uint32_t)x)
EMU_UNARY(cvta_same, uint64_t, uint64_t, x)
/* .u32: the low halves, which the windows do not change. */
EMU_UNARY(cvta_narrow, uint32_t, uint32_t, x)

EMU_EMITTER(emu_cvta)
{
    if (insn->types[0] != PTX_U64) {
        const uint32_t low = emu_source(emit, &insn->operands[1], PTX_U32);
        const uint32_t to_low = emu_dest(emit, &insn->operands[0], PTX_U32);
        struct emu_op *narrow = emu_push(emit, cvta_narrow_full, cvta_narrow_masked);
        narrow->d = to_low;
        narrow->a = low;
        return CLAB_OK;
    }
    const bool to = ptx_has(insn, PTX_MOD_TO);
    emu_handler *full = cvta_same_full, *masked = cvta_same_masked;
    switch ((enum ptx_space)insn->spaces[0]) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
    case PTX_SPACE_SHARED_CLUSTER:
        full = to ? cvta_low_full : cvta_shared_full;
        masked = to ? cvta_low_masked : cvta_shared_masked;
        break;
    case PTX_SPACE_LOCAL:
        full = to ? cvta_low_full : cvta_local_full;
        masked = to ? cvta_low_masked : cvta_local_masked;
        break;
    case PTX_SPACE_PARAM:
    case PTX_SPACE_PARAM_ENTRY:
        full = to ? cvta_to_param_full : cvta_param_full;
        masked = to ? cvta_to_param_masked : cvta_param_masked;
        break;
    default:
        break;
    }
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_U64);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_U64);
    struct emu_op *op = emu_push(emit, full, masked);
    op->d = d;
    op->a = a;
    return CLAB_OK;
}

/* --- isspacep: op->imm is the space asked for */

static bool lane_in_space(const struct emu_warp *warp, enum ptx_space asked, uint64_t address)
{
    const struct emu_cta *cta = warp->cta;
    const enum emu_address_class class = emu_space_classify(emu_warp_space(warp), address);
    const uint32_t rank = (uint32_t)address >> EMU_RANK_SHIFT;
    switch (asked) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
        return class == EMU_ADDRESS_SHARED && rank == cta->rank;
    case PTX_SPACE_SHARED_CLUSTER:
        return class == EMU_ADDRESS_SHARED && rank < cta->cluster->size;
    case PTX_SPACE_LOCAL:
        return class == EMU_ADDRESS_LOCAL;
    case PTX_SPACE_CONST:
        return class == EMU_ADDRESS_CONST;
    case PTX_SPACE_PARAM:
    case PTX_SPACE_PARAM_ENTRY:
        return class == EMU_ADDRESS_PARAM;
    default: /* global: whatever is in no other window; kernel parameters are inside it */
        return class == EMU_ADDRESS_GLOBAL || class == EMU_ADDRESS_PARAM;
    }
}

static const struct emu_op *isspacep_any(struct emu_warp *warp, const struct emu_op *op)
{
    const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
    uint32_t in = 0;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        in |= (uint32_t)lane_in_space(warp, (enum ptx_space)op->imm, a[lane]) << lane;
    }
    uint32_t *p = &EMU_PRED(warp, op->d);
    *p = (*p & ~warp->exec) | in;
    return op + 1;
}

EMU_EMITTER(emu_isspacep)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_U64);
    const uint32_t d = emu_pred_dest(emit, &insn->operands[0]);
    struct emu_op *op = emu_push(emit, isspacep_any, isspacep_any);
    op->d = d;
    op->a = a;
    op->imm = (uint64_t)insn->spaces[0];
    return CLAB_OK;
}

/* --- mapa, getctarank */

#define RANK_BITS UINT32_C(0xff000000)
EMU_BINARY(mapa_32, uint32_t, uint32_t, uint32_t, (x & ~RANK_BITS) | (y << EMU_RANK_SHIFT))
EMU_BINARY(mapa_64, uint64_t, uint64_t, uint32_t,
           (x & ~(uint64_t)RANK_BITS) | (uint32_t)(y << EMU_RANK_SHIFT))
EMU_UNARY(getctarank_32, uint32_t, uint32_t, x >> EMU_RANK_SHIFT)
EMU_UNARY(getctarank_64, uint32_t, uint64_t, (uint32_t)x >> EMU_RANK_SHIFT)

EMU_EMITTER(emu_mapa)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const bool wide = type == PTX_U64;
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_U32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    struct emu_op *op =
        emu_push(emit, wide ? mapa_64_full : mapa_32_full, wide ? mapa_64_masked : mapa_32_masked);
    op->d = d;
    op->a = a;
    op->b = b;
    return CLAB_OK;
}

EMU_EMITTER(emu_getctarank)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const bool wide = type == PTX_U64;
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_U32);
    struct emu_op *op = emu_push(emit, wide ? getctarank_64_full : getctarank_32_full,
                                 wide ? getctarank_64_masked : getctarank_32_masked);
    op->d = d;
    op->a = a;
    return CLAB_OK;
}
