/* f16, f16x2, bf16, bf16x2: add, sub, mul, fma, neg, abs, min, max. PTX ISA 9.0, "Half Precision Floating
   Point Instructions". Conversions are in ops_cvt.c, comparisons in ops_compare.c, tanh and ex2 in
   ops_approx.c.

   Sums, differences and products of halves are rounded once: f32 has more than twice the digits of f16 and
   bf16 (and two more), so that rounding to f32 first changes nothing. fma needs round to odd in between. NaN
   is 7fff. */
#include "emu/alu.h"
#include "emu/half.h"

/* x * y is exact in f64 for both formats; the sum is rounded to odd twice, then to nearest. */
static inline float fma_odd(float x, float y, float z)
{
    const double p = (double)x * y;
    const double s = p + z;
    return emu_odd_f32(emu_to_odd(s, emu_sum_error(p, z, s)));
}

#define F16(x)     emu_f16_to_f32(x)
#define BF16(x)    emu_bf16_to_f32(x)
#define TO_F16(x)  emu_f32_to_f16(x)
#define TO_BF16(x) emu_f32_to_bf16(x)

#define LOW(x)  ((x)&0xffffu)
#define HIGH(x) ((x) >> 16)

/* A function of one, two or three halves (as uint32_t) becomes a pair of handlers for 16-bit rows and one for
   packed rows: NAME, NAME_x2. */
#define HALF1(NAME, FN)                        \
    EMU_UNARY(NAME, uint16_t, uint16_t, FN(x)) \
    EMU_UNARY(NAME##_x2, uint32_t, uint32_t, FN(LOW(x)) | FN(HIGH(x)) << 16)
#define HALF2(NAME, FN)                                      \
    EMU_BINARY(NAME, uint16_t, uint16_t, uint16_t, FN(x, y)) \
    EMU_BINARY(NAME##_x2, uint32_t, uint32_t, uint32_t, FN(LOW(x), LOW(y)) | FN(HIGH(x), HIGH(y)) << 16)
#define HALF3(NAME, FN)                                                    \
    EMU_TERNARY(NAME, uint16_t, uint16_t, uint16_t, uint16_t, FN(x, y, z)) \
    EMU_TERNARY(NAME##_x2, uint32_t, uint32_t, uint32_t, uint32_t,         \
                FN(LOW(x), LOW(y), LOW(z)) | FN(HIGH(x), HIGH(y), HIGH(z)) << 16)

static inline uint32_t f16_add(uint32_t x, uint32_t y)
{
    return TO_F16(F16(x) + F16(y));
}

static inline uint32_t f16_sub(uint32_t x, uint32_t y)
{
    return TO_F16(F16(x) - F16(y));
}

static inline uint32_t f16_mul(uint32_t x, uint32_t y)
{
    return TO_F16(F16(x) * F16(y));
}

static inline uint32_t f16_fma(uint32_t x, uint32_t y, uint32_t z)
{
    return TO_F16(fma_odd(F16(x), F16(y), F16(z)));
}

static inline uint32_t bf16_add(uint32_t x, uint32_t y)
{
    return TO_BF16(BF16(x) + BF16(y));
}

static inline uint32_t bf16_sub(uint32_t x, uint32_t y)
{
    return TO_BF16(BF16(x) - BF16(y));
}

static inline uint32_t bf16_mul(uint32_t x, uint32_t y)
{
    return TO_BF16(BF16(x) * BF16(y));
}

static inline uint32_t bf16_fma(uint32_t x, uint32_t y, uint32_t z)
{
    return TO_BF16(fma_odd(BF16(x), BF16(y), BF16(z)));
}

/* .ftz: tiny as if exponents were unbounded, as in ops_float.c: below 2^-14 by more than half a unit. The
   sources have been flushed. */
static inline uint32_t f16_flushed(float exact)
{
    const uint32_t h = TO_F16(exact);
    const float magnitude = emu_bits_f32(emu_f32_bits(exact) & UINT32_C(0x7fffffff));
    return magnitude < 0x1.ffep-15f ? h & 0x8000u : h;
}

static inline uint32_t f16_mul_ftz(uint32_t x, uint32_t y)
{
    return f16_flushed(F16(x) * F16(y));
}

static inline uint32_t f16_fma_ftz(uint32_t x, uint32_t y, uint32_t z)
{
    return f16_flushed(fma_odd(F16(x), F16(y), F16(z)));
}

HALF2(mul_ftz_f16, f16_mul_ftz)
HALF3(fma_ftz_f16, f16_fma_ftz)
HALF2(add_f16, f16_add)
HALF2(sub_f16, f16_sub)
HALF2(mul_f16, f16_mul)
HALF3(fma_f16, f16_fma)
HALF2(add_bf16, bf16_add)
HALF2(sub_bf16, bf16_sub)
HALF2(mul_bf16, bf16_mul)
HALF3(fma_bf16, bf16_fma)

/* --- on results and sources, in the number's own format. */
static inline bool f16_is_nan(uint32_t h)
{
    return (h & 0x7fff) > 0x7c00;
}

static inline bool bf16_is_nan(uint32_t h)
{
    return (h & 0x7fff) > 0x7f80;
}

static inline uint32_t f16_ftz(uint32_t h)
{
    return h & 0x7c00 ? h : h & 0x8000;
}

static inline uint32_t f16_sat(uint32_t h)
{
    return h & 0x8000 || f16_is_nan(h) ? 0 : h > 0x3c00 ? 0x3c00 : h;
}

static inline uint32_t f16_relu(uint32_t h)
{
    return f16_is_nan(h) ? EMU_NAN_F16 : h & 0x8000 ? 0 : h;
}

static inline uint32_t bf16_relu(uint32_t h)
{
    return bf16_is_nan(h) ? EMU_NAN_F16 : h & 0x8000 ? 0 : h;
}

static inline uint32_t f16_neg(uint32_t h)
{
    return f16_is_nan(h) ? EMU_NAN_F16 : h ^ 0x8000;
}

static inline uint32_t bf16_neg(uint32_t h)
{
    return bf16_is_nan(h) ? EMU_NAN_F16 : h ^ 0x8000;
}

static inline uint32_t f16_abs(uint32_t h)
{
    return f16_is_nan(h) ? EMU_NAN_F16 : h & 0x7fff;
}

static inline uint32_t bf16_abs(uint32_t h)
{
    return bf16_is_nan(h) ? EMU_NAN_F16 : h & 0x7fff;
}

HALF1(ftz_f16, f16_ftz)
HALF1(sat_f16, f16_sat)
HALF1(relu_f16, f16_relu)
HALF1(relu_bf16, bf16_relu)
HALF1(neg_f16, f16_neg)
HALF1(neg_bf16, bf16_neg)
HALF1(abs_f16, f16_abs)
HALF1(abs_bf16, bf16_abs)

/* .oob: z is the result, which is 0 where x or y is the NaN that tensor copies fill with out of bounds.
   It is fff7 in both formats: found on an H200 (driver 13.0, 2026-11-30) by trying all. */
static inline uint32_t oob(uint32_t x, uint32_t y, uint32_t z)
{
    return x == 0xfff7 || y == 0xfff7 ? 0 : z;
}
HALF3(oob, oob)

/* --- min, max. Halves of either format order like sign-and-magnitude integers; -0 is less than +0. */
static inline int32_t order(uint32_t h)
{
    const int32_t magnitude = (int32_t)(h & 0x7fff);
    return h & 0x8000 ? ~magnitude : magnitude;
}

static inline uint32_t choose(uint32_t x, uint32_t y, bool take_x, bool nan_x, bool nan_y, bool nan)
{
    const uint32_t number = nan_x ? y : nan_y ? x : take_x ? x : y;
    return (nan_x && nan_y) || (nan && (nan_x || nan_y)) ? EMU_NAN_F16 : number;
}

static inline uint32_t xorsign(uint32_t x, uint32_t y, uint32_t r)
{
    return (r & 0x7fff) == EMU_NAN_F16 ? r : (r & 0x7fff) | ((x ^ y) & 0x8000);
}

/* The eight forms of one format: min or max, .NaN, .xorsign.abs. */
#define EXTREMES(FORMAT)                                                                         \
    static inline uint32_t FORMAT##_min(uint32_t x, uint32_t y)                                  \
    {                                                                                            \
        return choose(x, y, order(x) < order(y), FORMAT##_is_nan(x), FORMAT##_is_nan(y), false); \
    }                                                                                            \
    static inline uint32_t FORMAT##_max(uint32_t x, uint32_t y)                                  \
    {                                                                                            \
        return choose(x, y, order(x) > order(y), FORMAT##_is_nan(x), FORMAT##_is_nan(y), false); \
    }                                                                                            \
    static inline uint32_t FORMAT##_min_nan(uint32_t x, uint32_t y)                              \
    {                                                                                            \
        return choose(x, y, order(x) < order(y), FORMAT##_is_nan(x), FORMAT##_is_nan(y), true);  \
    }                                                                                            \
    static inline uint32_t FORMAT##_max_nan(uint32_t x, uint32_t y)                              \
    {                                                                                            \
        return choose(x, y, order(x) > order(y), FORMAT##_is_nan(x), FORMAT##_is_nan(y), true);  \
    }                                                                                            \
    static inline uint32_t FORMAT##_min_xor(uint32_t x, uint32_t y)                              \
    {                                                                                            \
        return xorsign(x, y, FORMAT##_min(x & 0x7fff, y & 0x7fff));                              \
    }                                                                                            \
    static inline uint32_t FORMAT##_max_xor(uint32_t x, uint32_t y)                              \
    {                                                                                            \
        return xorsign(x, y, FORMAT##_max(x & 0x7fff, y & 0x7fff));                              \
    }                                                                                            \
    static inline uint32_t FORMAT##_min_xor_nan(uint32_t x, uint32_t y)                          \
    {                                                                                            \
        return xorsign(x, y, FORMAT##_min_nan(x & 0x7fff, y & 0x7fff));                          \
    }                                                                                            \
    static inline uint32_t FORMAT##_max_xor_nan(uint32_t x, uint32_t y)                          \
    {                                                                                            \
        return xorsign(x, y, FORMAT##_max_nan(x & 0x7fff, y & 0x7fff));                          \
    }                                                                                            \
    HALF2(min_##FORMAT, FORMAT##_min)                                                            \
    HALF2(max_##FORMAT, FORMAT##_max)                                                            \
    HALF2(min_nan_##FORMAT, FORMAT##_min_nan)                                                    \
    HALF2(max_nan_##FORMAT, FORMAT##_max_nan)                                                    \
    HALF2(min_xor_##FORMAT, FORMAT##_min_xor)                                                    \
    HALF2(max_xor_##FORMAT, FORMAT##_max_xor)                                                    \
    HALF2(min_xor_nan_##FORMAT, FORMAT##_min_xor_nan)                                            \
    HALF2(max_xor_nan_##FORMAT, FORMAT##_max_xor_nan)
EXTREMES(f16)
EXTREMES(bf16)
#undef EXTREMES
#undef HALF1
#undef HALF2
#undef HALF3
#undef F16
#undef BF16
#undef TO_F16
#undef TO_BF16
#undef LOW
#undef HIGH

/* [bf16][packed] */
#define FORMS(F16_NAME, BF16_NAME)                        \
    {                                                     \
        {EMU_PAIR(F16_NAME), EMU_PAIR(F16_NAME##_x2)},    \
        {                                                 \
            EMU_PAIR(BF16_NAME), EMU_PAIR(BF16_NAME##_x2) \
        }                                                 \
    }

static bool is_bf16(enum ptx_type type)
{
    return type == PTX_BF16 || type == PTX_BF16X2;
}

static bool is_packed(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

static struct emu_pair form(const struct emu_pair forms[2][2], enum ptx_type type)
{
    return forms[is_bf16(type)][is_packed(type)];
}

static const struct emu_pair ftz_forms[2][2] = FORMS(ftz_f16, ftz_f16);
static const struct emu_pair sat_forms[2][2] = FORMS(sat_f16, sat_f16);
static const struct emu_pair relu_forms[2][2] = FORMS(relu_f16, relu_bf16);
static const struct emu_pair oob_forms[2][2] = FORMS(oob, oob);

/* d = pair(sources), with .ftz around (f16 only), then .sat, .relu, .oob. */
static clab_status operate(struct emu_emit *emit, const struct ptx_insn *insn,
                           const struct emu_pair forms[2][2], unsigned n)
{
    const enum ptx_type type = emu_last_type(insn);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ), zero_oob = ptx_has(insn, PTX_MOD_OOB);
    uint32_t rows[3] = {EMU_NO_ROW, EMU_NO_ROW, EMU_NO_ROW};
    for (unsigned i = 0; i < n; i++) {
        rows[i] = emu_source(emit, &insn->operands[1 + i], type);
        if (ftz) {
            const uint32_t flushed = emu_scratch(emit, type);
            emu_push_pair(emit, form(ftz_forms, type), flushed, rows[i], EMU_NO_ROW, EMU_NO_ROW);
            rows[i] = flushed;
        }
    }
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    /* .oob looks at the sources once more, which d may overwrite. */
    const uint32_t r = zero_oob ? emu_scratch(emit, type) : d;
    emu_push_pair(emit, form(forms, type), r, rows[0], rows[1], rows[2]);
    if (ftz)
        emu_push_pair(emit, form(ftz_forms, type), r, r, EMU_NO_ROW, EMU_NO_ROW);
    if (ptx_has(insn, PTX_MOD_SAT))
        emu_push_pair(emit, form(sat_forms, type), r, r, EMU_NO_ROW, EMU_NO_ROW);
    if (ptx_has(insn, PTX_MOD_RELU))
        emu_push_pair(emit, form(relu_forms, type), r, r, EMU_NO_ROW, EMU_NO_ROW);
    if (zero_oob)
        emu_push_pair(emit, form(oob_forms, type), d, rows[0], rows[1], r);
    return CLAB_OK;
}

EMU_EMITTER(emu_add_half)
{
    static const struct emu_pair forms[2][2] = FORMS(add_f16, add_bf16);
    return operate(emit, insn, forms, 2);
}

EMU_EMITTER(emu_sub_half)
{
    static const struct emu_pair forms[2][2] = FORMS(sub_f16, sub_bf16);
    return operate(emit, insn, forms, 2);
}

EMU_EMITTER(emu_mul_half)
{
    static const struct emu_pair forms[2][2] = FORMS(mul_f16, mul_bf16);
    static const struct emu_pair flushing[2][2] = FORMS(mul_ftz_f16, mul_bf16);
    return operate(emit, insn, ptx_has(insn, PTX_MOD_FTZ) ? flushing : forms, 2);
}

EMU_EMITTER(emu_fma_half)
{
    static const struct emu_pair forms[2][2] = FORMS(fma_f16, fma_bf16);
    static const struct emu_pair flushing[2][2] = FORMS(fma_ftz_f16, fma_bf16);
    return operate(emit, insn, ptx_has(insn, PTX_MOD_FTZ) ? flushing : forms, 3);
}

EMU_EMITTER(emu_neg_half)
{
    static const struct emu_pair forms[2][2] = FORMS(neg_f16, neg_bf16);
    return operate(emit, insn, forms, 1);
}

EMU_EMITTER(emu_abs_half)
{
    static const struct emu_pair forms[2][2] = FORMS(abs_f16, abs_bf16);
    return operate(emit, insn, forms, 1);
}

EMU_EMITTER(emu_min_half)
{
    static const struct emu_pair forms[2][2][2][2] = {
        {FORMS(min_f16, min_bf16), FORMS(min_nan_f16, min_nan_bf16)},
        {FORMS(min_xor_f16, min_xor_bf16), FORMS(min_xor_nan_f16, min_xor_nan_bf16)}};
    return operate(emit, insn, forms[ptx_has(insn, PTX_MOD_XORSIGN)][ptx_has(insn, PTX_MOD_NAN)], 2);
}

EMU_EMITTER(emu_max_half)
{
    static const struct emu_pair forms[2][2][2][2] = {
        {FORMS(max_f16, max_bf16), FORMS(max_nan_f16, max_nan_bf16)},
        {FORMS(max_xor_f16, max_xor_bf16), FORMS(max_xor_nan_f16, max_xor_nan_bf16)}};
    return operate(emit, insn, forms[ptx_has(insn, PTX_MOD_XORSIGN)][ptx_has(insn, PTX_MOD_NAN)], 2);
}
