/* Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc. PTX ISA 9.0, "Extended-Precision Integer
   Arithmetic Instructions". The carry flag CC.CF is one predicate word, a bit per thread; after a subtraction it is the
   borrow. UNVERIFIED: subc after add.cc and addc after sub.cc read the flag as it is, carry or borrow. */
#include "emu/alu.h"

/* u8[0]: adds the flag in; u8[1]: writes it. op->c is the flag's word. A destination may be a source, so the new flag
   is known before d is written. */
#define CARRY(NAME, T, VALUE, OUT)                                                                                    \
    static const struct emu_op *NAME(struct emu_warp *warp, const struct emu_op *op)                                  \
    {                                                                                                                 \
        T *d = EMU_ROW(T, warp, op->d);                                                                               \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);                                           \
        const uint32_t *on = warp->lane_mask;                                                                         \
        const uint32_t in = op->u8[0] ? EMU_PRED(warp, op->c) : 0;                                                    \
        uint32_t out = 0;                                                                                             \
        EMU_EACH_LANE(i)                                                                                              \
        {                                                                                                             \
            const T x = a[i], y = b[i];                                                                               \
            const T carry = in & emu_lane_bit[i] ? 1 : 0;                                                             \
            const T r = VALUE;                                                                                        \
            out |= OUT ? emu_lane_bit[i] : 0;                                                                         \
            d[i] = on[i] ? r : d[i];                                                                                  \
        }                                                                                                             \
        if (op->u8[1])                                                                                                \
            emu_pred_write(warp, op->c, out);                                                                         \
        return op + 1;                                                                                                \
    }
/* Carry out of x + y + 1 when the sum is not above x, of x + y when it is below. */
CARRY(add_32, uint32_t, x + y + carry, (carry ? r <= x : r < x))
CARRY(add_64, uint64_t, x + y + carry, (carry ? r <= x : r < x))
CARRY(sub_32, uint32_t, x - y - carry, (carry ? x <= y : x < y))
CARRY(sub_64, uint64_t, x - y - carry, (carry ? x <= y : x < y))
#undef CARRY

static void push(struct emu_emit *emit, emu_handler *handler, uint32_t d, uint32_t a, uint32_t b, bool in, bool out)
{
    struct emu_op *op = emu_push(emit, handler, handler);
    op->d = d;
    op->a = a;
    op->b = b;
    op->c = emu_carry(emit);
    op->u8[0] = in;
    op->u8[1] = out;
}

static clab_status two(struct emu_emit *emit, const struct ptx_insn *insn, emu_handler *narrow, emu_handler *wide,
                       bool in, bool out)
{
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    push(emit, emu_lane_bytes(type) == 8 ? wide : narrow, d, a, b, in, out);
    return CLAB_OK;
}

EMU_EMITTER(emu_add_cc)
{
    return two(emit, insn, add_32, add_64, false, true);
}

EMU_EMITTER(emu_addc)
{
    return two(emit, insn, add_32, add_64, true, ptx_has(insn, PTX_MOD_CC));
}

EMU_EMITTER(emu_sub_cc)
{
    return two(emit, insn, sub_32, sub_64, false, true);
}

EMU_EMITTER(emu_subc)
{
    return two(emit, insn, sub_32, sub_64, true, ptx_has(insn, PTX_MOD_CC));
}

/* --- mad.cc, madc: the half of the product that .lo or .hi names goes to a scratch row, then the addition. */
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
EMU_BINARY(lo_32, uint32_t, uint32_t, uint32_t, x *y)
EMU_BINARY(lo_64, uint64_t, uint64_t, uint64_t, x *y)
EMU_BINARY(hi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y) >> 32)
EMU_BINARY(hi_s32, uint32_t, int32_t, int32_t, (uint64_t)((int64_t)x * y) >> 32)
EMU_BINARY(hi_u64, uint64_t, uint64_t, uint64_t, ((u128)x * y) >> 64)
EMU_BINARY(hi_s64, uint64_t, int64_t, int64_t, (u128)((s128)x * y) >> 64)

static clab_status three(struct emu_emit *emit, const struct ptx_insn *insn, bool in, bool out)
{
    static const struct emu_pair lo[2] = {EMU_PAIR(lo_32), EMU_PAIR(lo_64)};
    static const struct emu_pair hi[2][2] = {{EMU_PAIR(hi_u32), EMU_PAIR(hi_u64)}, {EMU_PAIR(hi_s32), EMU_PAIR(hi_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    const bool wide = emu_lane_bytes(type) == 8;
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t c = emu_source(emit, &insn->operands[3], type);
    const uint32_t product = emu_scratch(emit, type);
    emu_push_pair(emit, ptx_has(insn, PTX_MOD_HI) ? hi[emu_is_signed(type)][wide] : lo[wide], product, a, b, EMU_NO_ROW);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    push(emit, wide ? add_64 : add_32, d, product, c, in, out);
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
