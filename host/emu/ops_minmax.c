/* min and max of f32 and f64, with two or three sources. PTX ISA 9.0, "Floating Point Instructions: min,
   max".

   -0 is less than +0. A NaN source gives the other source; two NaNs, or one with .NaN, give the canonical NaN
   (f32). .xorsign.abs compares magnitudes and gives the result the product's sign; .abs (three sources) drops
   the signs. */
#include "emu/alu.h"

static inline float magnitude(float x)
{
    return emu_bits_f32(emu_f32_bits(x) & UINT32_C(0x7fffffff));
}

/* Equal numbers differ in the sign of zero at most: or keeps the minus, and keeps the plus. */
static inline float min_number(float x, float y)
{
    const float unequal = x < y ? x : y;
    const float r = x == y ? emu_bits_f32(emu_f32_bits(x) | emu_f32_bits(y)) : unequal;
    return x != x ? y : y != y ? x : r;
}

static inline float max_number(float x, float y)
{
    const float unequal = x > y ? x : y;
    const float r = x == y ? emu_bits_f32(emu_f32_bits(x) & emu_f32_bits(y)) : unequal;
    return x != x ? y : y != y ? x : r;
}

static inline float or_nan(float x, float y, float r)
{
    return x != x || y != y ? emu_bits_f32(EMU_NAN_F32) : r;
}

static inline float with_xorsign(float x, float y, float r)
{
    const uint32_t sign = (emu_f32_bits(x) ^ emu_f32_bits(y)) & UINT32_C(0x80000000);
    return r != r ? emu_bits_f32(EMU_NAN_F32) : emu_bits_f32((emu_f32_bits(r) & UINT32_C(0x7fffffff)) | sign);
}

static inline double min_f64(double x, double y)
{
    const double unequal = x < y ? x : y;
    const double r = x == y ? emu_bits_f64(emu_f64_bits(x) | emu_f64_bits(y)) : unequal;
    return x != x ? y : y != y ? x : r;
}

static inline double max_f64(double x, double y)
{
    const double unequal = x > y ? x : y;
    const double r = x == y ? emu_bits_f64(emu_f64_bits(x) & emu_f64_bits(y)) : unequal;
    return x != x ? y : y != y ? x : r;
}

/* Of two NaNs the second, made quiet (H200, driver 13.0, 2026-11-30). */
static inline double second_nan(double y, double r)
{
    return r == r ? r : emu_bits_f64(emu_f64_bits(y) | UINT64_C(0x0008000000000000));
}

EMU_BINARY(min_f32, float, float, float, emu_canon(min_number(x, y)))
EMU_BINARY(max_f32, float, float, float, emu_canon(max_number(x, y)))
EMU_BINARY(min_nan_f32, float, float, float, or_nan(x, y, min_number(x, y)))
EMU_BINARY(max_nan_f32, float, float, float, or_nan(x, y, max_number(x, y)))
EMU_BINARY(min_xor_f32, float, float, float, with_xorsign(x, y, min_number(magnitude(x), magnitude(y))))
EMU_BINARY(max_xor_f32, float, float, float, with_xorsign(x, y, max_number(magnitude(x), magnitude(y))))
EMU_BINARY(min_xor_nan_f32, float, float, float,
           or_nan(x, y, with_xorsign(x, y, min_number(magnitude(x), magnitude(y)))))
EMU_BINARY(max_xor_nan_f32, float, float, float,
           or_nan(x, y, with_xorsign(x, y, max_number(magnitude(x), magnitude(y)))))
EMU_BINARY(min_f64, double, double, double, second_nan(y, min_f64(x, y)))
EMU_BINARY(max_f64, double, double, double, second_nan(y, max_f64(x, y)))
EMU_UNARY(abs_f32, float, float, magnitude(x))
EMU_UNARY(ftz_f32, float, float, emu_ftz(x))

struct extremes {
    struct emu_pair f64, f32[2][2]; /* [.xorsign.abs][.NaN] */
};

static void in_place(struct emu_emit *emit, struct emu_pair pair, uint32_t *row, bool *is_scratch)
{
    if (!*is_scratch) {
        const uint32_t copy = emu_scratch(emit, PTX_F32);
        emu_push_pair(emit, pair, copy, *row, EMU_NO_ROW, EMU_NO_ROW);
        *row = copy;
        *is_scratch = true;
    } else {
        emu_push_pair(emit, pair, *row, *row, EMU_NO_ROW, EMU_NO_ROW);
    }
}

static clab_status extreme(struct emu_emit *emit, const struct ptx_insn *insn,
                           const struct extremes *extremes)
{
    const enum ptx_type type = emu_last_type(insn);
    if (type == PTX_F64)
        return emu_emit_binary(emit, insn, extremes->f64, type, type, type);

    const unsigned n = insn->n_operands - 1 > 2 ? 3 : 2;
    const bool xorsign = ptx_has(insn, PTX_MOD_XORSIGN);
    uint32_t rows[3] = {0};
    bool is_scratch[3] = {false, false, false};
    for (unsigned i = 0; i < n; i++)
        rows[i] = emu_source(emit, &insn->operands[1 + i], type);
    for (unsigned i = 0; i < n; i++) {
        if (ptx_has(insn, PTX_MOD_FTZ))
            in_place(emit, (struct emu_pair)EMU_PAIR(ftz_f32), &rows[i], &is_scratch[i]);
        if (ptx_has(insn, PTX_MOD_ABS) && !xorsign)
            in_place(emit, (struct emu_pair)EMU_PAIR(abs_f32), &rows[i], &is_scratch[i]);
    }
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    const struct emu_pair pair = extremes->f32[xorsign][ptx_has(insn, PTX_MOD_NAN)];
    uint32_t first = d;
    if (n == 3)
        first = emu_scratch(emit, type);
    emu_push_pair(emit, pair, first, rows[0], rows[1], EMU_NO_ROW);
    if (n == 3)
        emu_push_pair(emit, pair, d, first, rows[2], EMU_NO_ROW);
    return CLAB_OK;
}

EMU_EMITTER(emu_min_float)
{
    static const struct extremes extremes = {
        EMU_PAIR(min_f64),
        {{EMU_PAIR(min_f32), EMU_PAIR(min_nan_f32)}, {EMU_PAIR(min_xor_f32), EMU_PAIR(min_xor_nan_f32)}}};
    return extreme(emit, insn, &extremes);
}

EMU_EMITTER(emu_max_float)
{
    static const struct extremes extremes = {
        EMU_PAIR(max_f64),
        {{EMU_PAIR(max_f32), EMU_PAIR(max_nan_f32)}, {EMU_PAIR(max_xor_f32), EMU_PAIR(max_xor_nan_f32)}}};
    return extreme(emit, insn, &extremes);
}
