/* Approximate functions: sin, cos, lg2, ex2, tanh on f32, ex2 and tanh on f16 and bf16. PTX ISA 9.0, the
   sections of those names.

   Each is a polynomial in f64, so that lane loops vectorise, rounded to f32: the error is about half a unit
   in the last place, inside the manual's bounds; the bits are not those of the hardware. sin and cos follow
   the hardware in one point: the argument is multiplied by 1/(2 pi) in f32 first, so that large arguments
   lose the same digits. */
#include "emu/alu.h"
#include "emu/half.h"

/* Nearest integer, as a double, of |x| < 2^51: adding 1.5 * 2^52 leaves it in the low bits. */
#define TO_INTEGER 0x1.8p52

static inline double power_of_two(double n)
{
    /* n is an integer within +-1000. */
    const int64_t exponent = (int64_t)(emu_f64_bits(n + TO_INTEGER) - emu_f64_bits(TO_INTEGER)) + 1023;
    return emu_bits_f64((uint64_t)exponent << 52);
}

static inline double exp2_f64(double x)
{
    const double low = x < -300.0 ? -300.0 : x;
    const double clamped = low > 300.0 ? 300.0 : low;
    const double n = (clamped + TO_INTEGER) - TO_INTEGER;
    const double t = (clamped - n) * 0x1.62e42fefa39efp-1; /* times ln 2 */
    double p = 1.0 / 362880;
    p = p * t + 1.0 / 40320;
    p = p * t + 1.0 / 5040;
    p = p * t + 1.0 / 720;
    p = p * t + 1.0 / 120;
    p = p * t + 1.0 / 24;
    p = p * t + 1.0 / 6;
    p = p * t + 0.5;
    p = p * t + 1.0;
    p = p * t + 1.0;
    return p * power_of_two(n);
}

static inline float ex2(float x)
{
    return x == x ? (float)exp2_f64(x) : emu_bits_f32(EMU_NAN_F32);
}

/* log2 x = e + log2 m, m in [sqrt 1/2, sqrt 2); log2 m = 2/ln 2 * artanh((m - 1) / (m + 1)). */
static inline float lg2(float x)
{
    const double wide = x;
    const uint64_t u = emu_f64_bits(wide);
    const uint64_t above = u - UINT64_C(0x3fe6a09e667f3bcd);
    const int64_t exponent = (int64_t)above >> 52;
    const double m = emu_bits_f64(u - ((uint64_t)exponent << 52));
    const double s = (m - 1.0) / (m + 1.0);
    const double q = s * s;
    double p = 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    const double e = emu_bits_f64((uint64_t)(exponent + (int64_t)emu_f64_bits(TO_INTEGER))) - TO_INTEGER;
    const float r = (float)(e + p * s * 0x1.71547652b82fep+1); /* 2 / ln 2 */
    const float special = x == 0.0f ? emu_bits_f32(UINT32_C(0xff800000)) : emu_bits_f32(EMU_NAN_F32);
    const float positive = x > 0x1.fffffep127f ? x : r;
    return x > 0.0f ? positive : special;
}

/* sin(2 pi r) for |r| <= 1/4. */
static inline double sine_of_turns(double r)
{
    const double t = r * 0x1.921fb54442d18p+2;
    const double q = t * t;
    double p = -1.0 / 1307674368000.0;
    p = p * q + 1.0 / 6227020800.0;
    p = p * q - 1.0 / 39916800.0;
    p = p * q + 1.0 / 362880;
    p = p * q - 1.0 / 5040;
    p = p * q + 1.0 / 120;
    p = p * q - 1.0 / 6;
    p = p * q + 1.0;
    return p * t;
}

/* The fraction of a turn, in [-1/2, 1/2]; f32 numbers from 2^24 on are whole turns. */
static inline double turns(float x)
{
    const float t = x * 0x1.45f306p-3f; /* 1 / (2 pi) */
    const float magnitude = emu_bits_f32(emu_f32_bits(t) & UINT32_C(0x7fffffff));
    const double wide = magnitude < 0x1p24f ? t : 0.0f;
    return wide - ((wide + TO_INTEGER) - TO_INTEGER);
}

static inline double positive(double x)
{
    return emu_bits_f64(emu_f64_bits(x) & UINT64_C(0x7fffffffffffffff));
}

static inline float sine(float x)
{
    const double r = turns(x);
    const double mirrored = r > 0.25 ? 0.5 - r : r < -0.25 ? -0.5 - r : r;
    const float s = (float)sine_of_turns(mirrored);
    const float signed_zero = x == 0.0f ? x : s;
    return x - x == 0.0f ? signed_zero : emu_bits_f32(EMU_NAN_F32);
}

static inline float cosine(float x)
{
    const float c = (float)sine_of_turns(0.25 - positive(turns(x)));
    return x - x == 0.0f ? c : emu_bits_f32(EMU_NAN_F32);
}

/* (e - 1) / (e + 1) with e = exp 2x; near 0, where e - 1 cancels, x - x^3/3. */
static inline float tanh_approx(float x)
{
    const double wide = x;
    const double low = wide < -20.0 ? -20.0 : wide;
    const double t = low > 20.0 ? 20.0 : low;
    const double e = exp2_f64(t * 0x1.71547652b82fep+1);
    const double large = (e - 1.0) / (e + 1.0);
    const double small = wide * (1.0 - wide * wide * (1.0 / 3)); /* -0 stays -0 */
    const double r = positive(wide) < 0x1p-10 ? small : large;
    return x == x ? (float)r : emu_bits_f32(EMU_NAN_F32);
}

EMU_UNARY(sin_f32, float, float, sine(x))
EMU_UNARY(cos_f32, float, float, cosine(x))
EMU_UNARY(lg2_f32, float, float, lg2(x))
EMU_UNARY(ex2_f32, float, float, ex2(x))
EMU_UNARY(sin_ftz_f32, float, float, emu_ftz(sine(emu_ftz(x))))
EMU_UNARY(cos_ftz_f32, float, float, emu_ftz(cosine(emu_ftz(x))))
EMU_UNARY(lg2_ftz_f32, float, float, emu_ftz(lg2(emu_ftz(x))))
EMU_UNARY(ex2_ftz_f32, float, float, emu_ftz(ex2(emu_ftz(x))))
EMU_UNARY(tanh_f32, float, float, tanh_approx(x))

/* Halves: in f32, rounded. .ftz is only on ex2 of bf16, whose subnormals are those of f32. */
static inline uint32_t ex2_half(uint32_t h)
{
    return emu_f32_to_f16(ex2(emu_f16_to_f32(h)));
}

static inline uint32_t ex2_bhalf(uint32_t h)
{
    return emu_f32_to_bf16(emu_ftz(ex2(emu_ftz(emu_bf16_to_f32(h)))));
}

static inline uint32_t tanh_half(uint32_t h)
{
    return emu_f32_to_f16(tanh_approx(emu_f16_to_f32(h)));
}

static inline uint32_t tanh_bhalf(uint32_t h)
{
    return emu_f32_to_bf16(tanh_approx(emu_bf16_to_f32(h)));
}

EMU_UNARY(ex2_f16, uint16_t, uint16_t, ex2_half(x))
EMU_UNARY(ex2_bf16, uint16_t, uint16_t, ex2_bhalf(x))
EMU_UNARY(tanh_f16, uint16_t, uint16_t, tanh_half(x))
EMU_UNARY(tanh_bf16, uint16_t, uint16_t, tanh_bhalf(x))
EMU_UNARY(ex2_f16x2, uint32_t, uint32_t, ex2_half(x & 0xffff) | ex2_half(x >> 16) << 16)
EMU_UNARY(ex2_bf16x2, uint32_t, uint32_t, ex2_bhalf(x & 0xffff) | ex2_bhalf(x >> 16) << 16)
EMU_UNARY(tanh_f16x2, uint32_t, uint32_t, tanh_half(x & 0xffff) | tanh_half(x >> 16) << 16)
EMU_UNARY(tanh_bf16x2, uint32_t, uint32_t, tanh_bhalf(x & 0xffff) | tanh_bhalf(x >> 16) << 16)

static clab_status emit_f32(struct emu_emit *emit, const struct ptx_insn *insn, struct emu_pair plain,
                            struct emu_pair flushing)
{
    return emu_emit_unary(emit, insn, ptx_has(insn, PTX_MOD_FTZ) ? flushing : plain, PTX_F32, PTX_F32);
}

EMU_EMITTER(emu_sin)
{
    return emit_f32(emit, insn, (struct emu_pair)EMU_PAIR(sin_f32), (struct emu_pair)EMU_PAIR(sin_ftz_f32));
}

EMU_EMITTER(emu_cos)
{
    return emit_f32(emit, insn, (struct emu_pair)EMU_PAIR(cos_f32), (struct emu_pair)EMU_PAIR(cos_ftz_f32));
}

EMU_EMITTER(emu_lg2)
{
    return emit_f32(emit, insn, (struct emu_pair)EMU_PAIR(lg2_f32), (struct emu_pair)EMU_PAIR(lg2_ftz_f32));
}

EMU_EMITTER(emu_ex2)
{
    const enum ptx_type type = emu_last_type(insn);
    switch (type) {
    case PTX_F16:
        return emu_emit_unary(emit, insn, (struct emu_pair)EMU_PAIR(ex2_f16), type, type);
    case PTX_F16X2:
        return emu_emit_unary(emit, insn, (struct emu_pair)EMU_PAIR(ex2_f16x2), type, type);
    case PTX_BF16:
        return emu_emit_unary(emit, insn, (struct emu_pair)EMU_PAIR(ex2_bf16), type, type);
    case PTX_BF16X2:
        return emu_emit_unary(emit, insn, (struct emu_pair)EMU_PAIR(ex2_bf16x2), type, type);
    default:
        return emit_f32(emit, insn, (struct emu_pair)EMU_PAIR(ex2_f32),
                        (struct emu_pair)EMU_PAIR(ex2_ftz_f32));
    }
}

EMU_EMITTER(emu_tanh)
{
    const enum ptx_type type = emu_last_type(insn);
    struct emu_pair pair = EMU_PAIR(tanh_f32);
    if (type == PTX_F16)
        pair = (struct emu_pair)EMU_PAIR(tanh_f16);
    else if (type == PTX_F16X2)
        pair = (struct emu_pair)EMU_PAIR(tanh_f16x2);
    else if (type == PTX_BF16)
        pair = (struct emu_pair)EMU_PAIR(tanh_bf16);
    else if (type == PTX_BF16X2)
        pair = (struct emu_pair)EMU_PAIR(tanh_bf16x2);
    return emu_emit_unary(emit, insn, pair, type, type);
}
