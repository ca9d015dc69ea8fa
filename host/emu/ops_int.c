/* Integer arithmetic, 16 to 64 bits and packed 16x2. PTX ISA 9.0, "Integer Arithmetic Instructions": add,
   sub, mul, mad, mul24, mad24, sad, abs, neg, min, max. Division is in ops_divide.c, carry chains in
   ops_carry.c, bit fields in ops_bits.c. All arithmetic is on unsigned C types, so that overflow wraps as PTX
   says. */
#include "emu/alu.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* One table row per width (16, 32, 64): index by emu_size_index(type) - 1. */
#define BY_SIZE(NAME)                                                 \
    {                                                                 \
        EMU_PAIR(NAME##_16), EMU_PAIR(NAME##_32), EMU_PAIR(NAME##_64) \
    }

static unsigned width(enum ptx_type type)
{
    const unsigned index = emu_size_index(type);
    return index ? index - 1 : 0;
}

/* --- add, sub */
EMU_BINARY(add_16, uint16_t, uint16_t, uint16_t, x + y)
EMU_BINARY(add_32, uint32_t, uint32_t, uint32_t, x + y)
EMU_BINARY(add_64, uint64_t, uint64_t, uint64_t, x + y)
EMU_BINARY(sub_16, uint16_t, uint16_t, uint16_t, x - y)
EMU_BINARY(sub_32, uint32_t, uint32_t, uint32_t, x - y)
EMU_BINARY(sub_64, uint64_t, uint64_t, uint64_t, x - y)
static const struct emu_pair add_by_size[] = BY_SIZE(add), sub_by_size[] = BY_SIZE(sub);

/* .sat.s32: overflow has happened when the sum's sign differs from both addends'; the bound is x's sign. */
static inline uint32_t add_sat(uint32_t x, uint32_t y)
{
    const uint32_t r = x + y;
    const uint32_t bound = (x >> 31) + UINT32_C(0x7fffffff);
    return ((x ^ r) & (y ^ r)) >> 31 ? bound : r;
}

static inline uint32_t sub_sat(uint32_t x, uint32_t y)
{
    const uint32_t r = x - y;
    const uint32_t bound = (x >> 31) + UINT32_C(0x7fffffff);
    return ((x ^ y) & (x ^ r)) >> 31 ? bound : r;
}

EMU_BINARY(add_sat_s32, uint32_t, uint32_t, uint32_t, add_sat(x, y))
EMU_BINARY(sub_sat_s32, uint32_t, uint32_t, uint32_t, sub_sat(x, y))

/* Packed halves: no carry from one into the other. */
EMU_BINARY(add_x2, uint32_t, uint32_t, uint32_t,
           ((x + y) & 0xffffu) | ((x & 0xffff0000u) + (y & 0xffff0000u)))
EMU_BINARY(sub_x2, uint32_t, uint32_t, uint32_t,
           ((x - y) & 0xffffu) | ((x & 0xffff0000u) - (y & 0xffff0000u)))

static clab_status add_or_sub(struct emu_emit *emit, const struct ptx_insn *insn,
                              const struct emu_pair *by_size, struct emu_pair sat, struct emu_pair packed)
{
    const enum ptx_type type = emu_last_type(insn);
    struct emu_pair pair = by_size[width(type)];
    if (type == PTX_U16X2 || type == PTX_S16X2)
        pair = packed;
    else if (ptx_has(insn, PTX_MOD_SAT))
        pair = sat;
    return emu_emit_binary(emit, insn, pair, type, type, type);
}

EMU_EMITTER(emu_add_int)
{
    return add_or_sub(emit, insn, add_by_size, (struct emu_pair)EMU_PAIR(add_sat_s32),
                      (struct emu_pair)EMU_PAIR(add_x2));
}

EMU_EMITTER(emu_sub_int)
{
    return add_or_sub(emit, insn, sub_by_size, (struct emu_pair)EMU_PAIR(sub_sat_s32),
                      (struct emu_pair)EMU_PAIR(sub_x2));
}

/* --- mul, mad: .lo, .hi, .wide (16 and 32 bits). Widening before the multiplication keeps 16-bit products
   out of the int range. */
EMU_BINARY(mul_lo_16, uint16_t, uint16_t, uint16_t, (uint32_t)x *y)
EMU_BINARY(mul_lo_32, uint32_t, uint32_t, uint32_t, x *y)
EMU_BINARY(mul_lo_64, uint64_t, uint64_t, uint64_t, x *y)
EMU_BINARY(mul_hi_u16, uint16_t, uint16_t, uint16_t, ((uint32_t)x * y) >> 16)
EMU_BINARY(mul_hi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y) >> 32)
EMU_BINARY(mul_hi_u64, uint64_t, uint64_t, uint64_t, ((u128)x * y) >> 64)
EMU_BINARY(mul_hi_s16, uint16_t, int16_t, int16_t, (uint32_t)((int32_t)x *y) >> 16)
EMU_BINARY(mul_hi_s32, uint32_t, int32_t, int32_t, (uint64_t)((int64_t)x *y) >> 32)
EMU_BINARY(mul_hi_s64, uint64_t, int64_t, int64_t, (u128)((s128)x *y) >> 64)
EMU_BINARY(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)x *y)
EMU_BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)x *y)
EMU_BINARY(mul_wide_s16, uint32_t, int16_t, int16_t, (int32_t)x *y)
EMU_BINARY(mul_wide_s32, uint64_t, int32_t, int32_t, (int64_t)x *y)

EMU_TERNARY(mad_lo_16, uint16_t, uint16_t, uint16_t, uint16_t, (uint32_t)x *y + z)
EMU_TERNARY(mad_lo_32, uint32_t, uint32_t, uint32_t, uint32_t, x *y + z)
EMU_TERNARY(mad_lo_64, uint64_t, uint64_t, uint64_t, uint64_t, x *y + z)
EMU_TERNARY(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, (((uint32_t)x * y) >> 16) + z)
EMU_TERNARY(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(((uint64_t)x * y) >> 32) + z)
EMU_TERNARY(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)(((u128)x * y) >> 64) + z)
EMU_TERNARY(mad_hi_s16, uint16_t, int16_t, int16_t, uint16_t, ((uint32_t)((int32_t)x * y) >> 16) + z)
EMU_TERNARY(mad_hi_s32, uint32_t, int32_t, int32_t, uint32_t, (uint32_t)((uint64_t)((int64_t)x *y) >> 32) + z)
EMU_TERNARY(mad_hi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)((u128)((s128)x *y) >> 64) + z)
EMU_TERNARY(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)x *y + z)
EMU_TERNARY(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)x *y + z)
EMU_TERNARY(mad_wide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)x *y) + z)
EMU_TERNARY(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)x *y) + z)
/* mad.hi.sat.s32: the addition saturates. */
EMU_TERNARY(mad_hi_sat_s32, uint32_t, int32_t, int32_t, uint32_t,
            add_sat((uint32_t)((uint64_t)((int64_t)x *y) >> 32), z))

struct products {
    struct emu_pair lo[3], hi[2][3], wide[2][2]; /* [signed][width] */
};
static const struct products mul_products = {
    BY_SIZE(mul_lo),
    {{EMU_PAIR(mul_hi_u16), EMU_PAIR(mul_hi_u32), EMU_PAIR(mul_hi_u64)},
     {EMU_PAIR(mul_hi_s16), EMU_PAIR(mul_hi_s32), EMU_PAIR(mul_hi_s64)}},
    {{EMU_PAIR(mul_wide_u16), EMU_PAIR(mul_wide_u32)}, {EMU_PAIR(mul_wide_s16), EMU_PAIR(mul_wide_s32)}}};
static const struct products mad_products = {
    BY_SIZE(mad_lo),
    {{EMU_PAIR(mad_hi_u16), EMU_PAIR(mad_hi_u32), EMU_PAIR(mad_hi_u64)},
     {EMU_PAIR(mad_hi_s16), EMU_PAIR(mad_hi_s32), EMU_PAIR(mad_hi_s64)}},
    {{EMU_PAIR(mad_wide_u16), EMU_PAIR(mad_wide_u32)}, {EMU_PAIR(mad_wide_s16), EMU_PAIR(mad_wide_s32)}}};

/* Twice as wide, of the same sign. */
static enum ptx_type widened(enum ptx_type type)
{
    switch (type) {
    case PTX_S16:
        return PTX_S32;
    case PTX_U16:
        return PTX_U32;
    case PTX_S32:
        return PTX_S64;
    default:
        return PTX_U64;
    }
}

static struct emu_pair product(const struct products *products, const struct ptx_insn *insn,
                               enum ptx_type type, enum ptx_type *out_result)
{
    const unsigned is_signed = emu_is_signed(type);
    *out_result = type;
    if (ptx_has(insn, PTX_MOD_WIDE)) {
        *out_result = widened(type);
        return products->wide[is_signed][width(type) & 1];
    }
    return ptx_has(insn, PTX_MOD_HI) ? products->hi[is_signed][width(type)] : products->lo[width(type)];
}

EMU_EMITTER(emu_mul_int)
{
    const enum ptx_type type = emu_last_type(insn);
    enum ptx_type result;
    const struct emu_pair pair = product(&mul_products, insn, type, &result);
    return emu_emit_binary(emit, insn, pair, result, type, type);
}

EMU_EMITTER(emu_mad_int)
{
    const enum ptx_type type = emu_last_type(insn);
    enum ptx_type result;
    struct emu_pair pair = product(&mad_products, insn, type, &result);
    if (ptx_has(insn, PTX_MOD_SAT))
        pair = (struct emu_pair)EMU_PAIR(mad_hi_sat_s32);
    return emu_emit_ternary(emit, insn, pair, result, type, type, result);
}

/* --- mul24, mad24: the low 24 bits of each operand; .lo is bits 31:0 of the 48-bit product, .hi bits 47:16.
 */
static inline uint64_t low24_u(uint32_t x)
{
    return x & 0xffffffu;
}

static inline int64_t low24_s(uint32_t x)
{
    return (int32_t)(x << 8) >> 8;
}

EMU_BINARY(mul24_lo_u32, uint32_t, uint32_t, uint32_t, low24_u(x) * low24_u(y))
EMU_BINARY(mul24_hi_u32, uint32_t, uint32_t, uint32_t, (low24_u(x) * low24_u(y)) >> 16)
EMU_BINARY(mul24_lo_s32, uint32_t, uint32_t, uint32_t, low24_s(x) * low24_s(y))
EMU_BINARY(mul24_hi_s32, uint32_t, uint32_t, uint32_t, (uint64_t)(low24_s(x) * low24_s(y)) >> 16)
EMU_TERNARY(mad24_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(low24_u(x) * low24_u(y)) + z)
EMU_TERNARY(mad24_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t,
            (uint32_t)((low24_u(x) * low24_u(y)) >> 16) + z)
EMU_TERNARY(mad24_lo_s32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)(low24_s(x) * low24_s(y)) + z)
EMU_TERNARY(mad24_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t,
            (uint32_t)((uint64_t)(low24_s(x) * low24_s(y)) >> 16) + z)
EMU_TERNARY(mad24_hi_sat_s32, uint32_t, uint32_t, uint32_t, uint32_t,
            add_sat((uint32_t)((uint64_t)(low24_s(x) * low24_s(y)) >> 16), z))

EMU_EMITTER(emu_mul24)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(mul24_lo_u32), EMU_PAIR(mul24_hi_u32)},
                                                {EMU_PAIR(mul24_lo_s32), EMU_PAIR(mul24_hi_s32)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[emu_is_signed(type)][ptx_has(insn, PTX_MOD_HI)], type, type,
                           type);
}

EMU_EMITTER(emu_mad24)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(mad24_lo_u32), EMU_PAIR(mad24_hi_u32)},
                                                {EMU_PAIR(mad24_lo_s32), EMU_PAIR(mad24_hi_s32)}};
    const enum ptx_type type = emu_last_type(insn);
    struct emu_pair pair = pairs[emu_is_signed(type)][ptx_has(insn, PTX_MOD_HI)];
    if (ptx_has(insn, PTX_MOD_SAT))
        pair = (struct emu_pair)EMU_PAIR(mad24_hi_sat_s32);
    return emu_emit_ternary(emit, insn, pair, type, type, type, type);
}

/* --- sad: c + |a - b| */
EMU_TERNARY(sad_u16, uint16_t, uint16_t, uint16_t, uint16_t, (x < y ? y - x : x - y) + z)
EMU_TERNARY(sad_u32, uint32_t, uint32_t, uint32_t, uint32_t, (x < y ? y - x : x - y) + z)
EMU_TERNARY(sad_u64, uint64_t, uint64_t, uint64_t, uint64_t, (x < y ? y - x : x - y) + z)
EMU_TERNARY(sad_s16, uint16_t, int16_t, int16_t, uint16_t, (x < y ? y - x : x - y) + z)
EMU_TERNARY(sad_s32, uint32_t, int32_t, int32_t, uint32_t,
            (x < y ? (uint32_t)y - (uint32_t)x : (uint32_t)x - (uint32_t)y) + z)
EMU_TERNARY(sad_s64, uint64_t, int64_t, int64_t, uint64_t,
            (x < y ? (uint64_t)y - (uint64_t)x : (uint64_t)x - (uint64_t)y) + z)

EMU_EMITTER(emu_sad)
{
    static const struct emu_pair pairs[2][3] = {{EMU_PAIR(sad_u16), EMU_PAIR(sad_u32), EMU_PAIR(sad_u64)},
                                                {EMU_PAIR(sad_s16), EMU_PAIR(sad_s32), EMU_PAIR(sad_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_ternary(emit, insn, pairs[emu_is_signed(type)][width(type)], type, type, type, type);
}

/* --- abs, neg: the least value of the type stays itself. */
EMU_UNARY(abs_16, uint16_t, int16_t, x < 0 ? -x : x)
EMU_UNARY(abs_32, uint32_t, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
EMU_UNARY(abs_64, uint64_t, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
EMU_UNARY(neg_16, uint16_t, uint16_t, -x)
EMU_UNARY(neg_32, uint32_t, uint32_t, 0u - x)
EMU_UNARY(neg_64, uint64_t, uint64_t, 0u - x)

EMU_EMITTER(emu_abs_int)
{
    static const struct emu_pair pairs[] = BY_SIZE(abs);
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[width(type)], type, type);
}

EMU_EMITTER(emu_neg_int)
{
    static const struct emu_pair pairs[] = BY_SIZE(neg);
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[width(type)], type, type);
}

/* --- min, max; .relu clamps a negative result to 0 (.s32 and .s16x2). */
EMU_BINARY(min_u16, uint16_t, uint16_t, uint16_t, x < y ? x : y)
EMU_BINARY(min_u32, uint32_t, uint32_t, uint32_t, x < y ? x : y)
EMU_BINARY(min_u64, uint64_t, uint64_t, uint64_t, x < y ? x : y)
EMU_BINARY(min_s16, int16_t, int16_t, int16_t, x < y ? x : y)
EMU_BINARY(min_s32, int32_t, int32_t, int32_t, x < y ? x : y)
EMU_BINARY(min_s64, int64_t, int64_t, int64_t, x < y ? x : y)
EMU_BINARY(max_u16, uint16_t, uint16_t, uint16_t, x > y ? x : y)
EMU_BINARY(max_u32, uint32_t, uint32_t, uint32_t, x > y ? x : y)
EMU_BINARY(max_u64, uint64_t, uint64_t, uint64_t, x > y ? x : y)
EMU_BINARY(max_s16, int16_t, int16_t, int16_t, x > y ? x : y)
EMU_BINARY(max_s32, int32_t, int32_t, int32_t, x > y ? x : y)
EMU_BINARY(max_s64, int64_t, int64_t, int64_t, x > y ? x : y)

static inline int32_t relu(int32_t x)
{
    return x > 0 ? x : 0;
}

static inline int32_t least(int32_t x, int32_t y)
{
    return x < y ? x : y;
}

static inline int32_t most(int32_t x, int32_t y)
{
    return x > y ? x : y;
}

static inline int32_t low_s(uint32_t x)
{
    return (int16_t)x;
}

static inline int32_t high_s(uint32_t x)
{
    return (int32_t)x >> 16;
}

static inline uint32_t pack(int32_t high, int32_t low)
{
    return (uint32_t)high << 16 | ((uint32_t)low & 0xffffu);
}

EMU_BINARY(min_relu_s32, int32_t, int32_t, int32_t, relu(least(x, y)))
EMU_BINARY(max_relu_s32, int32_t, int32_t, int32_t, relu(most(x, y)))
EMU_BINARY(min_s16x2, uint32_t, uint32_t, uint32_t,
           pack(least(high_s(x), high_s(y)), least(low_s(x), low_s(y))))
EMU_BINARY(max_s16x2, uint32_t, uint32_t, uint32_t,
           pack(most(high_s(x), high_s(y)), most(low_s(x), low_s(y))))
EMU_BINARY(min_relu_s16x2, uint32_t, uint32_t, uint32_t,
           pack(relu(least(high_s(x), high_s(y))), relu(least(low_s(x), low_s(y)))))
EMU_BINARY(max_relu_s16x2, uint32_t, uint32_t, uint32_t,
           pack(relu(most(high_s(x), high_s(y))), relu(most(low_s(x), low_s(y)))))
EMU_BINARY(min_u16x2, uint32_t, uint32_t, uint32_t,
           pack(least((int32_t)(x >> 16), (int32_t)(y >> 16)),
                least((int32_t)(x & 0xffffu), (int32_t)(y & 0xffffu))))
EMU_BINARY(max_u16x2, uint32_t, uint32_t, uint32_t,
           pack(most((int32_t)(x >> 16), (int32_t)(y >> 16)),
                most((int32_t)(x & 0xffffu), (int32_t)(y & 0xffffu))))

struct extremes {
    struct emu_pair by_size[2][3], relu_s32, u16x2, s16x2, relu_s16x2;
};

static clab_status extreme(struct emu_emit *emit, const struct ptx_insn *insn,
                           const struct extremes *extremes)
{
    const enum ptx_type type = emu_last_type(insn);
    const bool with_relu = ptx_has(insn, PTX_MOD_RELU);
    struct emu_pair pair;
    if (type == PTX_U16X2)
        pair = extremes->u16x2;
    else if (type == PTX_S16X2)
        pair = with_relu ? extremes->relu_s16x2 : extremes->s16x2;
    else if (with_relu)
        pair = extremes->relu_s32;
    else
        pair = extremes->by_size[emu_is_signed(type)][width(type)];
    return emu_emit_binary(emit, insn, pair, type, type, type);
}

EMU_EMITTER(emu_min_int)
{
    static const struct extremes extremes = {{{EMU_PAIR(min_u16), EMU_PAIR(min_u32), EMU_PAIR(min_u64)},
                                              {EMU_PAIR(min_s16), EMU_PAIR(min_s32), EMU_PAIR(min_s64)}},
                                             EMU_PAIR(min_relu_s32),
                                             EMU_PAIR(min_u16x2),
                                             EMU_PAIR(min_s16x2),
                                             EMU_PAIR(min_relu_s16x2)};
    return extreme(emit, insn, &extremes);
}

EMU_EMITTER(emu_max_int)
{
    static const struct extremes extremes = {{{EMU_PAIR(max_u16), EMU_PAIR(max_u32), EMU_PAIR(max_u64)},
                                              {EMU_PAIR(max_s16), EMU_PAIR(max_s32), EMU_PAIR(max_s64)}},
                                             EMU_PAIR(max_relu_s32),
                                             EMU_PAIR(max_u16x2),
                                             EMU_PAIR(max_s16x2),
                                             EMU_PAIR(max_relu_s16x2)};
    return extreme(emit, insn, &extremes);
}
