/* Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc. PTX ISA 9.0, "Extended-Precision
   Integer Arithmetic Instructions". The carry flag CC.CF is one predicate word, a bit per thread. After a
   subtraction it is the inverse of the borrow, as addc after sub.cc and subc after add.cc show on an H200
   (driver 13.0, 2026-11-30). */
#include "emu/alu.h"

/* u8[0]: takes the flag in; u8[1]: writes it. op->c is the flag's word. Rows may be the same, so each lane's
   flag is known before its d is written. */
#define CARRY_LANES(T, CARRY_IN, VALUE, OUT, WRITE)                     \
    T *d = EMU_ROW(T, warp, op->d);                                     \
    const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b); \
    const uint32_t in = CARRY_IN;                                       \
    uint32_t out = 0;                                                   \
    EMU_EACH_LANE(i)                                                    \
    {                                                                   \
        const T x = a[i], y = b[i];                                     \
        const T carry = in & emu_lane_bit[i] ? 1 : 0;                   \
        const T r = VALUE;                                              \
        out |= OUT ? emu_lane_bit[i] : 0;                               \
        WRITE;                                                          \
    }                                                                   \
    if (op->u8[1])                                                      \
        emu_pred_write(warp, op->c, out);                               \
    return op + 1;

#define CARRY(NAME, T, NONE, VALUE, OUT)                                                              \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)           \
    {                                                                                                 \
        CARRY_LANES(T, op->u8[0] ? EMU_PRED(warp, op->c) : NONE, VALUE, OUT, d[i] = r)                \
    }                                                                                                 \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op)         \
    {                                                                                                 \
        const uint32_t *on = warp->lane_mask;                                                         \
        CARRY_LANES(T, op->u8[0] ? EMU_PRED(warp, op->c) : NONE, VALUE, OUT, d[i] = on[i] ? r : d[i]) \
    }
/* Carry out of x + y + 1 when the sum is not above x, of x + y when it is below. A difference is x + ~y + 1
   without a borrow in: the flag is 1 when nothing is borrowed. */
CARRY(add_32, uint32_t, 0, x + y + carry, (carry ? r <= x : r < x))
CARRY(add_64, uint64_t, 0, x + y + carry, (carry ? r <= x : r < x))
CARRY(sub_32, uint32_t, EMU_ALL, x + ~y + carry, (carry ? x >= y : x > y))
CARRY(sub_64, uint64_t, EMU_ALL, x + ~y + carry, (carry ? x >= y : x > y))
#undef CARRY
#undef CARRY_LANES

static void push(struct emu_emit *emit, struct emu_pair pair, uint32_t d, uint32_t a, uint32_t b, bool in,
                 bool out)
{
    struct emu_op *op = emu_push_pair(emit, pair, d, a, b, emu_carry(emit));
    op->u8[0] = in;
    op->u8[1] = out;
}

static const struct emu_pair add_pairs[2] = {EMU_PAIR(add_32), EMU_PAIR(add_64)};
static const struct emu_pair sub_pairs[2] = {EMU_PAIR(sub_32), EMU_PAIR(sub_64)};

static clab_status two(struct emu_emit *emit, const struct ptx_insn *insn, const struct emu_pair pairs[2],
                       bool in, bool out)
{
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    push(emit, pairs[emu_lane_bytes(type) == 8], d, a, b, in, out);
    return CLAB_OK;
}

EMU_EMITTER(emu_add_cc)
{
    return two(emit, insn, add_pairs, false, true);
}

EMU_EMITTER(emu_addc)
{
    return two(emit, insn, add_pairs, true, ptx_has(insn, PTX_MOD_CC));
}

EMU_EMITTER(emu_sub_cc)
{
    return two(emit, insn, sub_pairs, false, true);
}

EMU_EMITTER(emu_subc)
{
    return two(emit, insn, sub_pairs, true, ptx_has(insn, PTX_MOD_CC));
}

/* --- mad.cc, madc: the half of the product that .lo or .hi names goes to a scratch row, then the addition.
 */
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
EMU_BINARY(lo_32, uint32_t, uint32_t, uint32_t, x *y)
EMU_BINARY(lo_64, uint64_t, uint64_t, uint64_t, x *y)
EMU_BINARY(hi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y) >> 32)
EMU_BINARY(hi_s32, uint32_t, int32_t, int32_t, (uint64_t)((int64_t)x *y) >> 32)
EMU_BINARY(hi_u64, uint64_t, uint64_t, uint64_t, ((u128)x * y) >> 64)
EMU_BINARY(hi_s64, uint64_t, int64_t, int64_t, (u128)((s128)x *y) >> 64)

static clab_status three(struct emu_emit *emit, const struct ptx_insn *insn, bool in, bool out)
{
    static const struct emu_pair lo[2] = {EMU_PAIR(lo_32), EMU_PAIR(lo_64)};
    static const struct emu_pair hi[2][2] = {{EMU_PAIR(hi_u32), EMU_PAIR(hi_u64)},
                                             {EMU_PAIR(hi_s32), EMU_PAIR(hi_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    const bool wide = emu_lane_bytes(type) == 8;
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t c = emu_source(emit, &insn->operands[3], type);
    const uint32_t product = emu_scratch(emit, type);
    emu_push_pair(emit, ptx_has(insn, PTX_MOD_HI) ? hi[emu_is_signed(type)][wide] : lo[wide], product, a, b,
                  EMU_NO_ROW);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    push(emit, add_pairs[wide], d, product, c, in, out);
    return CLAB_OK;
}

EMU_EMITTER(emu_mad_cc)
{
    return three(emit, insn, false, true);
}

EMU_EMITTER(emu_madc)
{
    return three(emit, insn, true, ptx_has(insn, PTX_MOD_CC));
}
