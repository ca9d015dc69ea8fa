/* Bit fields and counts. PTX ISA 9.0, "Integer Arithmetic Instructions": popc, clz, bfind, fns, brev, bfe,
   bfi, szext, bmsk, dp4a, dp2a. */
#include "emu/alu.h"

static unsigned is_64(enum ptx_type type)
{
    return emu_lane_bytes(type) == 8;
}

/* --- popc, clz, brev: counted by halving, which every compiler vectorises at every width. */
static inline uint32_t ones(uint32_t x)
{
    x -= (x >> 1) & 0x55555555u;
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return (x * 0x01010101u) >> 24;
}

/* All bits below the highest set one become ones. */
static inline uint32_t smear(uint32_t x)
{
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    return x | x >> 16;
}

static inline uint32_t leading_zeros(uint32_t x)
{
    return 32 - ones(smear(x));
}

static inline uint32_t leading_zeros_64(uint64_t x)
{
    const uint32_t high = (uint32_t)(x >> 32);
    return high ? leading_zeros(high) : 32 + leading_zeros((uint32_t)x);
}

static inline uint32_t reversed(uint32_t x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
    return x >> 16 | x << 16;
}

EMU_UNARY(popc_b32, uint32_t, uint32_t, ones(x))
EMU_UNARY(popc_b64, uint32_t, uint64_t, ones((uint32_t)x) + ones((uint32_t)(x >> 32)))
EMU_UNARY(clz_b32, uint32_t, uint32_t, leading_zeros(x))
EMU_UNARY(clz_b64, uint32_t, uint64_t, leading_zeros_64(x))
EMU_UNARY(brev_b32, uint32_t, uint32_t, reversed(x))
EMU_UNARY(brev_b64, uint64_t, uint64_t, (uint64_t)reversed((uint32_t)x) << 32 | reversed((uint32_t)(x >> 32)))

EMU_EMITTER(emu_popc)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(popc_b32), EMU_PAIR(popc_b64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[is_64(type)], PTX_U32, type);
}

EMU_EMITTER(emu_clz)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(clz_b32), EMU_PAIR(clz_b64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[is_64(type)], PTX_U32, type);
}

EMU_EMITTER(emu_brev)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(brev_b32), EMU_PAIR(brev_b64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[is_64(type)], type, type);
}

/* --- bfind: position of the highest set bit (of the highest bit unlike the sign, for signed types), ffffffff
   when there is none; .shiftamt gives the left shift that brings it to the top. */
static inline uint32_t found(uint32_t zeros, uint32_t bits, bool shift_amount)
{
    const uint32_t value = shift_amount ? zeros : bits - 1 - zeros;
    return zeros == bits ? UINT32_MAX : value;
}

EMU_UNARY(bfind_u32, uint32_t, uint32_t, found(leading_zeros(x), 32, false))
EMU_UNARY(bfind_u64, uint32_t, uint64_t, found(leading_zeros_64(x), 64, false))
EMU_UNARY(bfind_s32, uint32_t, int32_t, found(leading_zeros((uint32_t)(x ^ x >> 31)), 32, false))
EMU_UNARY(bfind_s64, uint32_t, int64_t, found(leading_zeros_64((uint64_t)(x ^ x >> 63)), 64, false))
EMU_UNARY(bfind_shift_u32, uint32_t, uint32_t, found(leading_zeros(x), 32, true))
EMU_UNARY(bfind_shift_u64, uint32_t, uint64_t, found(leading_zeros_64(x), 64, true))
EMU_UNARY(bfind_shift_s32, uint32_t, int32_t, found(leading_zeros((uint32_t)(x ^ x >> 31)), 32, true))
EMU_UNARY(bfind_shift_s64, uint32_t, int64_t, found(leading_zeros_64((uint64_t)(x ^ x >> 63)), 64, true))

EMU_EMITTER(emu_bfind)
{
    static const struct emu_pair pairs[2][2][2] = {
        {{EMU_PAIR(bfind_u32), EMU_PAIR(bfind_u64)}, {EMU_PAIR(bfind_s32), EMU_PAIR(bfind_s64)}},
        {{EMU_PAIR(bfind_shift_u32), EMU_PAIR(bfind_shift_u64)},
         {EMU_PAIR(bfind_shift_s32), EMU_PAIR(bfind_shift_s64)}}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(
        emit, insn, pairs[ptx_has(insn, PTX_MOD_SHIFTAMT)][emu_is_signed(type)][is_64(type)], PTX_U32, type);
}

/* --- fns: the offset-th set bit of mask from base on (upwards for a positive offset, downwards for a
   negative one, base itself for 0). A base above 31 finds nothing. The least offset gives 0 on an H200
   (driver 13.0, 2026-11-30). */
static inline uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == INT32_MIN)
        return 0;
    if (base > 31)
        return UINT32_MAX;
    if (offset == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int32_t left = offset < 0 ? -offset : offset;
    for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += offset < 0 ? -1 : 1)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

EMU_TERNARY(fns, uint32_t, uint32_t, uint32_t, int32_t, nth_set(x, y, z))

EMU_EMITTER(emu_fns)
{
    return emu_emit_ternary(emit, insn, (struct emu_pair)EMU_PAIR(fns), PTX_B32, PTX_B32, PTX_U32, PTX_S32);
}

/* --- bfe, bfi: position and length are the low 8 bits of their operands in the 32-bit forms. The manual says
   so of all, but an H200 (driver 13.0, 2026-11-30) takes all 32 bits in the 64-bit forms. */
static inline uint32_t low_ones(uint32_t count)
{
    return count > 31 ? UINT32_MAX : (1u << (count & 31)) - 1;
}

static inline uint64_t low_ones_64(uint32_t count)
{
    return count > 63 ? UINT64_MAX : (UINT64_C(1) << (count & 63)) - 1;
}

static inline uint32_t smaller(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

static inline uint32_t extract(uint32_t a, uint32_t b, uint32_t c, bool is_signed)
{
    const uint32_t pos = b & 0xff, len = c & 0xff;
    const uint32_t shifted = pos > 31 ? 0 : a >> (pos & 31);
    const uint32_t kept = low_ones(smaller(len, pos > 31 ? 0 : 32 - pos));
    /* Beyond the field: the sign, read at pos + len - 1 or at the top. */
    const uint32_t sign = a >> smaller(pos + len - 1, 31) & 1;
    const uint32_t fill = is_signed && len && sign ? ~kept : 0;
    return (shifted & kept) | fill;
}

static inline uint64_t extract_64(uint64_t a, uint32_t b, uint32_t c, bool is_signed)
{
    const uint32_t pos = smaller(b, 64), len = smaller(c, 64);
    const uint64_t shifted = pos > 63 ? 0 : a >> (pos & 63);
    const uint64_t kept = low_ones_64(smaller(len, 64 - pos));
    const uint64_t sign = a >> smaller(pos + len - 1, 63) & 1;
    const uint64_t fill = is_signed && len && sign ? ~kept : 0;
    return (shifted & kept) | fill;
}

EMU_TERNARY(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, extract(x, y, z, false))
EMU_TERNARY(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, extract(x, y, z, true))
EMU_TERNARY(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, extract_64(x, y, z, false))
EMU_TERNARY(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, extract_64(x, y, z, true))

EMU_EMITTER(emu_bfe)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(bfe_u32), EMU_PAIR(bfe_u64)},
                                                {EMU_PAIR(bfe_s32), EMU_PAIR(bfe_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_ternary(emit, insn, pairs[emu_is_signed(type)][is_64(type)], type, type, PTX_U32,
                            PTX_U32);
}

static inline uint32_t low_byte(uint32_t x)
{
    return x & 0xff;
}

static inline uint32_t at_most_64(uint32_t x)
{
    return smaller(x, 64);
}

/* The fourth source row is in imm. */
#define BFI(NAME, T, BITS, LIMIT, LOW_ONES)                                                        \
    static inline T NAME##_one(T a, T b, uint32_t c, uint32_t e)                                   \
    {                                                                                              \
        const uint32_t pos = LIMIT(c);                                                             \
        const T field = pos > BITS - 1 ? 0 : (T)(LOW_ONES(LIMIT(e)) << (pos & (BITS - 1)));        \
        return (T)((b & ~field) | ((a << (pos & (BITS - 1))) & field));                            \
    }                                                                                              \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op)      \
    {                                                                                              \
        T *d = EMU_ROW(T, warp, op->d);                                                            \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);                        \
        const uint32_t *c = EMU_ROW(uint32_t, warp, op->c), *e = EMU_ROW(uint32_t, warp, op->imm); \
        const uint32_t *on = warp->lane_mask;                                                      \
        EMU_EACH_LANE(i)                                                                           \
        {                                                                                          \
            const T r = NAME##_one(a[i], b[i], c[i], e[i]);                                        \
            d[i] = on[i] ? r : d[i];                                                               \
        }                                                                                          \
        return op + 1;                                                                             \
    }                                                                                              \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)        \
    {                                                                                              \
        T *d = EMU_ROW(T, warp, op->d);                                                            \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);                        \
        const uint32_t *c = EMU_ROW(uint32_t, warp, op->c), *e = EMU_ROW(uint32_t, warp, op->imm); \
        EMU_EACH_LANE(i)                                                                           \
        d[i] = NAME##_one(a[i], b[i], c[i], e[i]);                                                 \
        return op + 1;                                                                             \
    }
BFI(bfi_b32, uint32_t, 32, low_byte, low_ones)
BFI(bfi_b64, uint64_t, 64, at_most_64, low_ones_64)
#undef BFI

EMU_EMITTER(emu_bfi)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(bfi_b32), EMU_PAIR(bfi_b64)};
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t pos = emu_source(emit, &insn->operands[3], PTX_U32);
    const uint32_t len = emu_source(emit, &insn->operands[4], PTX_U32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    emu_push_pair(emit, pairs[is_64(type)], d, a, b, pos)->imm = len;
    return CLAB_OK;
}

/* --- szext: keeps b low bits, extends by zero or sign. .wrap takes b modulo 32, .clamp treats b > 31 as 32.
 */
static inline uint32_t extended(uint32_t a, uint32_t b, bool is_signed, bool clamp)
{
    const uint32_t width = b & 31;
    const bool whole = clamp && b > 31;
    const uint32_t high = whole ? 0 : UINT32_MAX << width;
    const bool fill = is_signed && width && !whole && (a >> ((width - 1) & 31) & 1);
    return (a & ~high) | (fill ? high : 0);
}

EMU_BINARY(szext_clamp_u32, uint32_t, uint32_t, uint32_t, extended(x, y, false, true))
EMU_BINARY(szext_clamp_s32, uint32_t, uint32_t, uint32_t, extended(x, y, true, true))
EMU_BINARY(szext_wrap_u32, uint32_t, uint32_t, uint32_t, extended(x, y, false, false))
EMU_BINARY(szext_wrap_s32, uint32_t, uint32_t, uint32_t, extended(x, y, true, false))

EMU_EMITTER(emu_szext)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(szext_clamp_u32), EMU_PAIR(szext_clamp_s32)},
                                                {EMU_PAIR(szext_wrap_u32), EMU_PAIR(szext_wrap_s32)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[ptx_has(insn, PTX_MOD_WRAP)][emu_is_signed(type)], type, type,
                           PTX_U32);
}

/* --- bmsk: b ones from bit a up. */
static inline uint32_t ones_from(uint32_t a, uint32_t b, bool clamp)
{
    const uint32_t pos = a & 31, len = b & 31, end = pos + len;
    const bool past = clamp && a > 31, wide = clamp && b > 31;
    const uint32_t from = past ? 0 : UINT32_MAX << pos;
    const uint32_t after = end > 31 || past || wide ? 0 : len ? UINT32_MAX << (end & 31) : UINT32_MAX;
    return from & ~after;
}

EMU_BINARY(bmsk_clamp, uint32_t, uint32_t, uint32_t, ones_from(x, y, true))
EMU_BINARY(bmsk_wrap, uint32_t, uint32_t, uint32_t, ones_from(x, y, false))

EMU_EMITTER(emu_bmsk)
{
    static const struct emu_pair pairs[2] = {EMU_PAIR(bmsk_clamp), EMU_PAIR(bmsk_wrap)};
    return emu_emit_binary(emit, insn, pairs[ptx_has(insn, PTX_MOD_WRAP)], PTX_B32, PTX_U32, PTX_U32);
}

/* --- dp4a, dp2a: products of bytes with bytes, or of halves with the low or high two bytes, added to c. */
static inline int32_t byte_of(uint32_t x, unsigned k, bool is_signed)
{
    const uint32_t byte = x >> (8 * k) & 0xff;
    return is_signed ? (int8_t)byte : (int32_t)byte;
}

static inline int32_t half_of(uint32_t x, unsigned k, bool is_signed)
{
    const uint32_t half = x >> (16 * k) & 0xffff;
    return is_signed ? (int16_t)half : (int32_t)half;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
    int32_t sum = 0;
    for (unsigned k = 0; k < 4; k++)
        sum += byte_of(a, k, sa) * byte_of(b, k, sb);
    return c + (uint32_t)sum;
}

static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, unsigned at)
{
    return c + (uint32_t)(half_of(a, 0, sa) * byte_of(b, at, sb)) +
           (uint32_t)(half_of(a, 1, sa) * byte_of(b, at + 1, sb));
}

EMU_TERNARY(dp4a_uu, uint32_t, uint32_t, uint32_t, uint32_t, dot4(x, y, z, false, false))
EMU_TERNARY(dp4a_us, uint32_t, uint32_t, uint32_t, uint32_t, dot4(x, y, z, false, true))
EMU_TERNARY(dp4a_su, uint32_t, uint32_t, uint32_t, uint32_t, dot4(x, y, z, true, false))
EMU_TERNARY(dp4a_ss, uint32_t, uint32_t, uint32_t, uint32_t, dot4(x, y, z, true, true))
EMU_TERNARY(dp2a_lo_uu, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, false, false, 0))
EMU_TERNARY(dp2a_lo_us, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, false, true, 0))
EMU_TERNARY(dp2a_lo_su, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, true, false, 0))
EMU_TERNARY(dp2a_lo_ss, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, true, true, 0))
EMU_TERNARY(dp2a_hi_uu, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, false, false, 2))
EMU_TERNARY(dp2a_hi_us, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, false, true, 2))
EMU_TERNARY(dp2a_hi_su, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, true, false, 2))
EMU_TERNARY(dp2a_hi_ss, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, true, true, 2))

/* Types: of a, then of b; c and d are signed when either is, which changes no bit. */
EMU_EMITTER(emu_dp4a)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(dp4a_uu), EMU_PAIR(dp4a_us)},
                                                {EMU_PAIR(dp4a_su), EMU_PAIR(dp4a_ss)}};
    return emu_emit_ternary(emit, insn,
                            pairs[emu_is_signed(emu_type(insn, 0))][emu_is_signed(emu_type(insn, 1))],
                            PTX_B32, PTX_B32, PTX_B32, PTX_B32);
}

EMU_EMITTER(emu_dp2a)
{
    static const struct emu_pair pairs[2][2][2] = {
        {{EMU_PAIR(dp2a_lo_uu), EMU_PAIR(dp2a_lo_us)}, {EMU_PAIR(dp2a_lo_su), EMU_PAIR(dp2a_lo_ss)}},
        {{EMU_PAIR(dp2a_hi_uu), EMU_PAIR(dp2a_hi_us)}, {EMU_PAIR(dp2a_hi_su), EMU_PAIR(dp2a_hi_ss)}}};
    const bool sa = emu_is_signed(emu_type(insn, 0)), sb = emu_is_signed(emu_type(insn, 1));
    return emu_emit_ternary(emit, insn, pairs[ptx_has(insn, PTX_MOD_HI)][sa][sb], PTX_B32, PTX_B32, PTX_B32,
                            PTX_B32);
}
