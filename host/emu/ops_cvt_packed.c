/* cvt to and from packed f16, bf16, tf32, f8, f6, f4 and scale formats, cvt.rs, cvt.pack. PTX ISA 9.0, "cvt",
   "cvt.pack". Two sources: the first goes to the upper half. */
#include "emu/alu.h"
#include "emu/format.h"
#include "emu/half.h"
#include "emu/round.h"

EMU_UNARY(relu_f32, float, float, x < 0.0f || x == 0.0f ? 0.0f : x)

/* Operand k as f32, negative numbers made +0 for .relu. */
static uint32_t f32_source(struct emu_emit *emit, const struct ptx_insn *insn,
                           const struct ptx_operand *operand)
{
    const uint32_t row = emu_source(emit, operand, PTX_F32);
    if (!ptx_has(insn, PTX_MOD_RELU))
        return row;
    const uint32_t r = emu_scratch(emit, PTX_F32);
    emu_push_pair(emit, (struct emu_pair)EMU_PAIR(relu_f32), r, row, EMU_NO_ROW, EMU_NO_ROW);
    return r;
}

/* --- f16x2, bf16x2 from two f32. u8[0]: mode, u8[1]: .satfinite. */
EMU_BINARY(f16x2, uint32_t, float, float, emu_f32_to_f16(x) << 16 | emu_f32_to_f16(y))
EMU_BINARY(bf16x2, uint32_t, float, float, emu_f32_to_bf16(x) << 16 | emu_f32_to_bf16(y))
EMU_BINARY(f16x2_mode, uint32_t, float, float,
           emu_format_encode(x, &emu_f16, op->u8[0], op->u8[1], 0, 0) << 16 |
               emu_format_encode(y, &emu_f16, op->u8[0], op->u8[1], 0, 0))
EMU_BINARY(bf16x2_mode, uint32_t, float, float,
           emu_format_encode(x, &emu_bf16, op->u8[0], op->u8[1], 0, 0) << 16 |
               emu_format_encode(y, &emu_bf16, op->u8[0], op->u8[1], 0, 0))

EMU_EMITTER(emu_cvt_pack_half)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(f16x2), EMU_PAIR(f16x2_mode)},
                                                {EMU_PAIR(bf16x2), EMU_PAIR(bf16x2_mode)}};
    const enum ptx_type to = emu_type(insn, 0);
    const enum emu_round mode = emu_round_of(insn);
    const bool finite = ptx_has(insn, PTX_MOD_SATFINITE);
    const uint32_t a = f32_source(emit, insn, &insn->operands[1]);
    const uint32_t b = f32_source(emit, insn, &insn->operands[2]);
    const uint32_t d = emu_dest(emit, &insn->operands[0], to);
    struct emu_op *op =
        emu_push_pair(emit, pairs[to == PTX_BF16X2][mode != EMU_RN || finite], d, a, b, EMU_NO_ROW);
    op->u8[0] = (uint8_t)mode;
    op->u8[1] = finite;
    return CLAB_OK;
}

/* --- tf32: f32 with ten digits after the point, the other thirteen zero. As an H200 (driver 13.0,
   2026-11-30) does it: .rn and .rz make a NaN 7fffe000; .rna cuts its payload, and .rna.satfinite then takes
   one unit off infinities and NaNs alike. imm: what is added before the digits are cut (0 rz, 0xfff and the
   last digit kept rn). u8[0]: rn; u8[1]: .satfinite. */
static inline uint32_t tf32(uint32_t u, uint32_t add, uint32_t odd, bool finite)
{
    const uint32_t magnitude = u & UINT32_C(0x7fffffff), sign = u & UINT32_C(0x80000000);
    const uint32_t rounded = (magnitude + add + (magnitude >> 13 & odd)) & ~UINT32_C(0x1fff);
    const uint32_t number = finite && rounded > UINT32_C(0x7f7fe000) ? UINT32_C(0x7f7fe000) : rounded;
    const uint32_t infinity = finite ? UINT32_C(0x7f7fe000) : magnitude;
    const uint32_t r = magnitude == UINT32_C(0x7f800000) ? infinity : number;
    return magnitude > UINT32_C(0x7f800000) ? UINT32_C(0x7fffe000) : r | sign;
}

static inline uint32_t tf32_away(uint32_t u, bool finite)
{
    const uint32_t magnitude = u & UINT32_C(0x7fffffff), sign = u & UINT32_C(0x80000000);
    const uint32_t added = magnitude < UINT32_C(0x7f800000) ? magnitude + 0x1000 : magnitude;
    const uint32_t cut = added & ~UINT32_C(0x1fff);
    return sign | (finite && cut >= UINT32_C(0x7f800000) ? cut - 0x2000 : cut);
}
EMU_UNARY(tf32, uint32_t, uint32_t, tf32(x, (uint32_t)op->imm, op->u8[0], op->u8[1]))
EMU_UNARY(tf32_away, uint32_t, uint32_t, tf32_away(x, op->u8[1]))

EMU_EMITTER(emu_cvt_tf32)
{
    const bool to_nearest = ptx_has(insn, PTX_MOD_RN), away = ptx_has(insn, PTX_MOD_RNA);
    const uint32_t a = f32_source(emit, insn, &insn->operands[1]);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op =
        emu_push_pair(emit, away ? (struct emu_pair)EMU_PAIR(tf32_away) : (struct emu_pair)EMU_PAIR(tf32), d,
                      a, EMU_NO_ROW, EMU_NO_ROW);
    op->imm = to_nearest ? 0xfff : 0;
    op->u8[0] = to_nearest;
    op->u8[1] = ptx_has(insn, PTX_MOD_SATFINITE);
    return CLAB_OK;
}

/* --- pairs of f8, f6, f4 from f32 and from f16x2, always .rn.satfinite. The format is op->extra, the bits of
   an element in the destination u8[0]. */
static inline uint32_t pair_of(double high, double low, const struct emu_op *op)
{
    const struct emu_format *format = op->extra;
    return emu_format_encode(high, format, EMU_RN, true, 0, 0) << op->u8[0] |
           emu_format_encode(low, format, EMU_RN, true, 0, 0);
}
EMU_BINARY(narrow_16, uint16_t, float, float, pair_of(x, y, op))
EMU_BINARY(narrow_8, uint8_t, float, float, pair_of(x, y, op))

EMU_UNARY(high_f16, float, uint32_t, emu_f16_to_f32(x >> 16))
EMU_UNARY(low_f16, float, uint32_t, emu_f16_to_f32(x & 0xffff))

static clab_status to_small(struct emu_emit *emit, const struct ptx_insn *insn)
{
    const enum ptx_type to = emu_type(insn, 0), from = emu_type(insn, 1);
    const bool is_f4 = to == PTX_E2M1X2;
    uint32_t a, b;
    if (from == PTX_F16X2) {
        const uint32_t halves = emu_source(emit, &insn->operands[1], PTX_F16X2);
        a = emu_scratch(emit, PTX_F32);
        b = emu_scratch(emit, PTX_F32);
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(high_f16), a, halves, EMU_NO_ROW, EMU_NO_ROW);
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(low_f16), b, halves, EMU_NO_ROW, EMU_NO_ROW);
        if (ptx_has(insn, PTX_MOD_RELU)) {
            emu_push_pair(emit, (struct emu_pair)EMU_PAIR(relu_f32), a, a, EMU_NO_ROW, EMU_NO_ROW);
            emu_push_pair(emit, (struct emu_pair)EMU_PAIR(relu_f32), b, b, EMU_NO_ROW, EMU_NO_ROW);
        }
    } else {
        a = f32_source(emit, insn, &insn->operands[1]);
        b = f32_source(emit, insn, &insn->operands[2]);
    }
    const uint32_t d = emu_dest(emit, &insn->operands[0], is_f4 ? PTX_B8 : PTX_B16);
    struct emu_op *op = emu_push_pair(
        emit, is_f4 ? (struct emu_pair)EMU_PAIR(narrow_8) : (struct emu_pair)EMU_PAIR(narrow_16), d, a, b,
        EMU_NO_ROW);
    op->extra = emu_format_of(to);
    op->u8[0] = is_f4 ? 4 : 8;
    return CLAB_OK;
}

EMU_EMITTER(emu_cvt_to_f8)
{
    return to_small(emit, insn);
}

EMU_EMITTER(emu_cvt_to_f6)
{
    return to_small(emit, insn);
}

EMU_EMITTER(emu_cvt_to_f4)
{
    return to_small(emit, insn);
}

/* --- and back to f16x2, which is exact. u8[0]: bits of an element's slot, u8[1]: .relu. */
static inline uint32_t f16_of(uint32_t code, const struct emu_op *op)
{
    const struct emu_format *format = op->extra;
    const uint32_t mask = format->sign * 2 - 1;
    const uint32_t h =
        emu_format_encode(emu_format_decode(code & mask, format), &emu_f16, EMU_RN, false, 0, 0);
    return op->u8[1] && (h & 0x8000) ? 0 : h;
}
EMU_UNARY(widen_16, uint32_t, uint16_t, f16_of((uint32_t)x >> op->u8[0], op) << 16 | f16_of(x, op))
EMU_UNARY(widen_8, uint32_t, uint8_t, f16_of((uint32_t)x >> op->u8[0], op) << 16 | f16_of(x, op))

static clab_status from_small(struct emu_emit *emit, const struct ptx_insn *insn)
{
    const enum ptx_type from = emu_type(insn, 1);
    const bool is_f4 = from == PTX_E2M1X2;
    const uint32_t a = emu_source(emit, &insn->operands[1], is_f4 ? PTX_B8 : PTX_B16);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_F16X2);
    struct emu_op *op =
        emu_push_pair(emit, is_f4 ? (struct emu_pair)EMU_PAIR(widen_8) : (struct emu_pair)EMU_PAIR(widen_16),
                      d, a, EMU_NO_ROW, EMU_NO_ROW);
    op->extra = emu_format_of(from);
    op->u8[0] = is_f4 ? 4 : 8;
    op->u8[1] = ptx_has(insn, PTX_MOD_RELU);
    return CLAB_OK;
}

EMU_EMITTER(emu_cvt_from_f8)
{
    return from_small(emit, insn);
}

EMU_EMITTER(emu_cvt_from_f6)
{
    return from_small(emit, insn);
}

EMU_EMITTER(emu_cvt_from_f4)
{
    return from_small(emit, insn);
}

/* --- ue8m0: the exponent alone, of the magnitude. .rp rounds up when the mantissa is not 0 (from 2^-127 on,
   which is code 0); .satfinite keeps infinity and overflow at the largest power; NaN is ff. UNVERIFIED: on
   hardware; CUDA 13.0's cuda_fp8.hpp emulates it so on the host. u8[0]: .rp, u8[1]: .satfinite. */
static inline uint32_t ue8m0(float x, const struct emu_op *op)
{
    const uint32_t magnitude = emu_f32_bits(x) & UINT32_C(0x7fffffff);
    if (magnitude > UINT32_C(0x7f800000))
        return 0xff;
    uint32_t code = magnitude >> 23;
    const bool fraction = magnitude & UINT32_C(0x007fffff);
    if (op->u8[0] && fraction && magnitude > UINT32_C(0x00400000) && magnitude < UINT32_C(0x7f800000))
        code++;
    return op->u8[1] && code == 0xff ? 0xfe : code;
}

static inline uint32_t bf16_of_ue8m0(uint32_t code)
{
    return code == 0xff ? EMU_NAN_F16 : code == 0 ? 0x0040 : code << 7;
}

EMU_BINARY(ue8m0x2_f32, uint16_t, float, float, ue8m0(x, op) << 8 | ue8m0(y, op))
EMU_UNARY(ue8m0x2_bf16x2, uint16_t, uint32_t,
          ue8m0(emu_bf16_to_f32(x >> 16), op) << 8 | ue8m0(emu_bf16_to_f32(x & 0xffff), op))
EMU_UNARY(bf16x2_ue8m0x2, uint32_t, uint16_t, bf16_of_ue8m0((uint32_t)x >> 8) << 16 | bf16_of_ue8m0(x & 0xff))

EMU_EMITTER(emu_cvt_to_ue8m0)
{
    const bool packed = emu_type(insn, 1) == PTX_BF16X2;
    const uint32_t a = emu_source(emit, &insn->operands[1], packed ? PTX_BF16X2 : PTX_F32);
    const uint32_t b = packed ? EMU_NO_ROW : emu_source(emit, &insn->operands[2], PTX_F32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B16);
    struct emu_op *op = emu_push_pair(
        emit, packed ? (struct emu_pair)EMU_PAIR(ue8m0x2_bf16x2) : (struct emu_pair)EMU_PAIR(ue8m0x2_f32), d,
        a, b, EMU_NO_ROW);
    op->u8[0] = ptx_has(insn, PTX_MOD_RP);
    op->u8[1] = ptx_has(insn, PTX_MOD_SATFINITE);
    return CLAB_OK;
}

EMU_EMITTER(emu_cvt_from_ue8m0)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B16);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_BF16X2);
    emu_push_pair(emit, (struct emu_pair)EMU_PAIR(bf16x2_ue8m0x2), d, a, EMU_NO_ROW, EMU_NO_ROW);
    return CLAB_OK;
}

/* --- cvt.rs: random bits are added to the digits below the last place, and the sum is cut.
   UNVERIFIED: PTX ISA 9.0, "cvt", .rs, says which bits of rbits belong to which element, not how many digits
   of an f8, f6 or f4 element meet them, nor what happens to subnormals. Here the topmost digits below the
   last place do. One operation per element. a: element, b: rbits; imm: shift of the element in d, shift of
   its random bits in rbits (byte 1); u8[0]: how many random bits, u8[1]: .satfinite, u8[2]: the first element
   (clears the rest). */
static const struct emu_op *stochastic(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_format *format = op->extra;
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const float *a = EMU_ROW(float, warp, op->a);
    const uint32_t *rbits = EMU_ROW(uint32_t, warp, op->b);
    const unsigned shift = op->imm & 0xff, random_shift = op->imm >> 8 & 0xff;
    const uint32_t mask = (UINT32_C(1) << op->u8[0]) - 1;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint32_t random = rbits[i] >> random_shift & mask;
        const uint32_t code = emu_format_encode(a[i], format, EMU_RS, op->u8[1], random, op->u8[0]);
        d[i] = (op->u8[2] ? 0 : d[i]) | code << shift;
    }
    return op + 1;
}

EMU_UNARY(copy_32, uint32_t, uint32_t, x)
EMU_UNARY(low_16, uint16_t, uint32_t, x)

EMU_EMITTER(emu_cvt_rs)
{
    const enum ptx_type to = emu_type(insn, 0);
    const bool four = insn->operands[1].kind == PTX_OPERAND_VECTOR;
    const bool is_f4 = to == PTX_E2M1X4;
    const unsigned n = four ? 4 : 2, slot = four ? (is_f4 ? 4 : 8) : 16;
    if (four && insn->operands[1].n_elements != 4)
        return emu_unsupported(emit, "a vector of %u elements in cvt.rs", insn->operands[1].n_elements);
    uint32_t rows[4];
    for (unsigned i = 0; i < n; i++)
        rows[i] = f32_source(emit, insn, four ? &insn->operands[1].elements[i] : &insn->operands[1 + i]);
    const uint32_t rbits = emu_source(emit, &insn->operands[four ? 2 : 3], PTX_B32);
    const uint32_t all = emu_scratch(emit, PTX_B32);
    for (unsigned i = 0; i < n; i++) {
        /* The upper elements use the upper half of rbits; f4 elements a byte each. */
        unsigned at = i < n / 2 ? 16 : 0, count = to == PTX_F16X2 ? 13 : 16;
        if (is_f4) {
            at = (i % 2 ? 0u : 16u) + (i < 2 ? 8u : 0u);
            count = 8;
        }
        struct emu_op *op = emu_push(emit, stochastic, stochastic);
        op->d = all;
        op->a = rows[i];
        op->b = rbits;
        op->extra = emu_format_of(to);
        op->imm = (uint64_t)at << 8 | (n - 1 - i) * slot;
        op->u8[0] = (uint8_t)count;
        op->u8[1] = ptx_has(insn, PTX_MOD_SATFINITE);
        op->u8[2] = i == 0;
    }
    const uint32_t d = emu_dest(emit, &insn->operands[0], is_f4 ? PTX_B16 : PTX_B32);
    emu_push_pair(emit, is_f4 ? (struct emu_pair)EMU_PAIR(low_16) : (struct emu_pair)EMU_PAIR(copy_32), d,
                  all, EMU_NO_ROW, EMU_NO_ROW);
    return CLAB_OK;
}

/* --- cvt.pack: a and b clamped and side by side, above c shifted up by as much. u8[0]: bits, u8[1]: signed.
 */
static inline uint32_t clamped(int32_t x, const struct emu_op *op)
{
    const int32_t high = (int32_t)((UINT32_C(1) << (op->u8[0] - op->u8[1])) - 1);
    const int32_t low = op->u8[1] ? -high - 1 : 0;
    const int32_t r = x < low ? low : x > high ? high : x;
    return (uint32_t)r & ((UINT32_C(1) << op->u8[0]) - 1);
}

EMU_BINARY(pack_2, uint32_t, int32_t, int32_t, clamped(x, op) << op->u8[0] | clamped(y, op))
EMU_TERNARY(pack_3, uint32_t, int32_t, int32_t, uint32_t,
            z << (2 * op->u8[0]) | clamped(x, op) << op->u8[0] | clamped(y, op))

EMU_EMITTER(emu_cvt_pack)
{
    const enum ptx_type type = emu_type(insn, 0);
    const bool three = insn->n_operands > 3;
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_S32);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_S32);
    const uint32_t c = three ? emu_source(emit, &insn->operands[3], PTX_B32) : EMU_NO_ROW;
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op = emu_push_pair(
        emit, three ? (struct emu_pair)EMU_PAIR(pack_3) : (struct emu_pair)EMU_PAIR(pack_2), d, a, b, c);
    op->u8[0] = (uint8_t)ptx_types[type].bits;
    op->u8[1] = emu_is_signed(type);
    return CLAB_OK;
}
