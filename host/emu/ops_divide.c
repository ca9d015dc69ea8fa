/* Division, reciprocal and square root. PTX ISA 9.0: div and rem (integer), div, rcp, sqrt, rsqrt (floating
   point).

   Rounded forms are IEEE's. Approximate forms are computed to within half a unit in the last place, or one
   for rsqrt, which the manual's bounds (div.approx and div.full 2 ulp, rcp and sqrt 1 ulp and 2^-23, rsqrt
   2^-22.9) contain; the special values are the manual's. They are not the bits that the hardware gives. */
#include <math.h>

#include "emu/alu.h"
#include "emu/round.h"

/* --- integer division. A divisor of 0 is undefined in the manual: quotient and remainder are all ones on an
   H200 (driver 13.0, 2026-11-30). The least value divided by -1 wraps. */
#define SIGNED_DIVISION(NAME, T, U)                                         \
    static inline T NAME##_quotient(T x, T y)                               \
    {                                                                       \
        return (T)(y == 0 ? (T)-1 : y == -1 ? (T)(0u - (U)x) : (T)(x / y)); \
    }                                                                       \
    static inline T NAME##_remainder(T x, T y)                              \
    {                                                                       \
        return (T)(y == 0 ? (T)-1 : y == -1 ? (T)0 : (T)(x % y));           \
    }
SIGNED_DIVISION(s16, int16_t, uint16_t)
SIGNED_DIVISION(s32, int32_t, uint32_t)
SIGNED_DIVISION(s64, int64_t, uint64_t)
#undef SIGNED_DIVISION

EMU_BINARY(div_u16, uint16_t, uint16_t, uint16_t, y ? x / y : UINT16_MAX)
EMU_BINARY(div_u32, uint32_t, uint32_t, uint32_t, y ? x / y : UINT32_MAX)
EMU_BINARY(div_u64, uint64_t, uint64_t, uint64_t, y ? x / y : UINT64_MAX)
EMU_BINARY(div_s16, int16_t, int16_t, int16_t, s16_quotient(x, y))
EMU_BINARY(div_s32, int32_t, int32_t, int32_t, s32_quotient(x, y))
EMU_BINARY(div_s64, int64_t, int64_t, int64_t, s64_quotient(x, y))
EMU_BINARY(rem_u16, uint16_t, uint16_t, uint16_t, y ? x % y : UINT16_MAX)
EMU_BINARY(rem_u32, uint32_t, uint32_t, uint32_t, y ? x % y : UINT32_MAX)
EMU_BINARY(rem_u64, uint64_t, uint64_t, uint64_t, y ? x % y : UINT64_MAX)
EMU_BINARY(rem_s16, int16_t, int16_t, int16_t, s16_remainder(x, y))
EMU_BINARY(rem_s32, int32_t, int32_t, int32_t, s32_remainder(x, y))
EMU_BINARY(rem_s64, int64_t, int64_t, int64_t, s64_remainder(x, y))

EMU_EMITTER(emu_div_int)
{
    static const struct emu_pair pairs[2][4] = {
        {EMU_NO_PAIR, EMU_PAIR(div_u16), EMU_PAIR(div_u32), EMU_PAIR(div_u64)},
        {EMU_NO_PAIR, EMU_PAIR(div_s16), EMU_PAIR(div_s32), EMU_PAIR(div_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[emu_is_signed(type)][emu_size_index(type)], type, type, type);
}

EMU_EMITTER(emu_rem)
{
    static const struct emu_pair pairs[2][4] = {
        {EMU_NO_PAIR, EMU_PAIR(rem_u16), EMU_PAIR(rem_u32), EMU_PAIR(rem_u64)},
        {EMU_NO_PAIR, EMU_PAIR(rem_s16), EMU_PAIR(rem_s32), EMU_PAIR(rem_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[emu_is_signed(type)][emu_size_index(type)], type, type, type);
}

/* --- floating point. */
static inline double quiet(double x)
{
    return emu_bits_f64(emu_f64_bits(x) | UINT64_C(0x0008000000000000));
}

static inline double nan2(double x, double y, double r)
{
    const double passed = x != x ? quiet(x) : y != y ? quiet(y) : emu_bits_f64(UINT64_C(0xfff8000000000000));
    return r == r ? r : passed;
}

/* div.approx: 2^126 < |y| < 2^128 gives 0, or NaN for an infinite x. */
static inline float div_approx(float x, float y)
{
    const float magnitude = emu_bits_f32(emu_f32_bits(y) & UINT32_C(0x7fffffff));
    const bool large = magnitude > 0x1p126f && magnitude <= 0x1.fffffep127f;
    return large ? x * 0.0f : x / y;
}

/* The f64 approximations read and write the upper word only; subnormals are flushed. */
static inline double upper(double x)
{
    const uint64_t u = emu_f64_bits(x) & UINT64_C(0xffffffff00000000);
    const uint64_t sign = u & UINT64_C(0x8000000000000000);
    return emu_bits_f64(u & UINT64_C(0x7ff0000000000000) ? u : sign);
}

/* .ftz: a quotient is flushed when it is tiny with unbounded exponents (see ops_float.c): scaled is 2^24
 * times it. */
static inline float flush_if_tiny(float r, float scaled)
{
    const float magnitude = emu_bits_f32(emu_f32_bits(scaled) & UINT32_C(0x7fffffff));
    return magnitude < 0x1p-102f ? emu_bits_f32(emu_f32_bits(r) & UINT32_C(0x80000000)) : emu_canon(r);
}

static inline float div_ftz(float x, float y)
{
    const float fx = emu_ftz(x), fy = emu_ftz(y);
    return flush_if_tiny(fx / fy, fx * 0x1p24f / fy);
}

static inline float rcp_ftz(float x)
{
    const float fx = emu_ftz(x);
    return flush_if_tiny(1.0f / fx, 0x1p24f / fx);
}

EMU_BINARY(div_f32, float, float, float, emu_canon(x / y))
EMU_BINARY(div_ftz_f32, float, float, float, div_ftz(x, y))
EMU_BINARY(div_approx_f32, float, float, float, emu_canon(div_approx(x, y)))
EMU_BINARY(div_approx_ftz_f32, float, float, float, emu_ftz(emu_canon(div_approx(emu_ftz(x), emu_ftz(y)))))
EMU_BINARY(div_f64, double, double, double, nan2(x, y, x / y))
EMU_UNARY(rcp_f32, float, float, emu_canon(1.0f / x))
EMU_UNARY(rcp_ftz_f32, float, float, rcp_ftz(x))
EMU_UNARY(rcp_f64, double, double, nan2(x, x, 1.0 / x))
EMU_UNARY(rcp_approx_f64, double, double, upper(nan2(x, x, 1.0 / upper(x))))
EMU_UNARY(sqrt_f32, float, float, emu_canon(__builtin_sqrtf(x)))
EMU_UNARY(sqrt_ftz_f32, float, float, emu_ftz(emu_canon(__builtin_sqrtf(emu_ftz(x)))))
EMU_UNARY(sqrt_f64, double, double, nan2(x, x, __builtin_sqrt(x)))
EMU_UNARY(rsqrt_f32, float, float, emu_canon((float)(1.0 / __builtin_sqrt((double)x))))
EMU_UNARY(rsqrt_ftz_f32, float, float, emu_ftz(emu_canon((float)(1.0 / __builtin_sqrt((double)emu_ftz(x))))))
EMU_UNARY(rsqrt_f64, double, double, nan2(x, x, 1.0 / __builtin_sqrt(x)))
EMU_UNARY(rsqrt_approx_f64, double, double, upper(nan2(x, x, 1.0 / __builtin_sqrt(upper(x)))))
EMU_ROUNDED(div_f32)
EMU_ROUNDED(div_ftz_f32)
EMU_ROUNDED(div_f64)
EMU_ROUNDED(rcp_f32)
EMU_ROUNDED(rcp_ftz_f32)
EMU_ROUNDED(rcp_f64)
EMU_ROUNDED(sqrt_f32)
EMU_ROUNDED(sqrt_ftz_f32)
EMU_ROUNDED(sqrt_f64)

struct by_type {
    struct emu_pair f32[2], f32_mode[2], f64, f64_mode; /* [.ftz] */
};

static clab_status operate(struct emu_emit *emit, const struct ptx_insn *insn, const struct by_type *by_type,
                           unsigned n_rows)
{
    const enum ptx_type type = emu_last_type(insn);
    const enum emu_round mode = emu_round_of(insn);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ) && type == PTX_F32;
    uint32_t rows[2] = {EMU_NO_ROW, EMU_NO_ROW};
    for (unsigned i = 0; i < n_rows; i++)
        rows[i] = emu_source(emit, &insn->operands[1 + i], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    struct emu_pair pair;
    if (type == PTX_F64)
        pair = mode == EMU_RN ? by_type->f64 : by_type->f64_mode;
    else
        pair = mode == EMU_RN ? by_type->f32[ftz] : by_type->f32_mode[ftz];
    emu_push_pair(emit, pair, d, rows[0], rows[1], EMU_NO_ROW)->u8[0] = (uint8_t)mode;
    return CLAB_OK;
}

EMU_EMITTER(emu_div_float)
{
    static const struct by_type rounded = {{EMU_PAIR(div_f32), EMU_PAIR(div_ftz_f32)},
                                           {EMU_PAIR(div_f32_rounded), EMU_PAIR(div_ftz_f32_rounded)},
                                           EMU_PAIR(div_f64),
                                           EMU_PAIR(div_f64_rounded)};
    static const struct by_type approx = {{EMU_PAIR(div_approx_f32), EMU_PAIR(div_approx_ftz_f32)},
                                          {EMU_NO_PAIR, EMU_NO_PAIR},
                                          EMU_NO_PAIR,
                                          EMU_NO_PAIR};
    return operate(emit, insn, ptx_has(insn, PTX_MOD_APPROX) ? &approx : &rounded, 2);
}

EMU_EMITTER(emu_rcp)
{
    static const struct by_type rounded = {{EMU_PAIR(rcp_f32), EMU_PAIR(rcp_ftz_f32)},
                                           {EMU_PAIR(rcp_f32_rounded), EMU_PAIR(rcp_ftz_f32_rounded)},
                                           EMU_PAIR(rcp_f64),
                                           EMU_PAIR(rcp_f64_rounded)};
    static const struct by_type approx = {{EMU_PAIR(rcp_f32), EMU_PAIR(rcp_ftz_f32)},
                                          {EMU_NO_PAIR, EMU_NO_PAIR},
                                          EMU_PAIR(rcp_approx_f64),
                                          EMU_NO_PAIR};
    return operate(emit, insn, ptx_has(insn, PTX_MOD_APPROX) ? &approx : &rounded, 1);
}

EMU_EMITTER(emu_sqrt)
{
    static const struct by_type by_type = {{EMU_PAIR(sqrt_f32), EMU_PAIR(sqrt_ftz_f32)},
                                           {EMU_PAIR(sqrt_f32_rounded), EMU_PAIR(sqrt_ftz_f32_rounded)},
                                           EMU_PAIR(sqrt_f64),
                                           EMU_PAIR(sqrt_f64_rounded)};
    return operate(emit, insn, &by_type, 1);
}

/* rsqrt.approx.f64 is close to exact; rsqrt.approx.ftz.f64 is the gross one. */
EMU_EMITTER(emu_rsqrt)
{
    static const struct by_type fine = {{EMU_PAIR(rsqrt_f32), EMU_PAIR(rsqrt_ftz_f32)},
                                        {EMU_NO_PAIR, EMU_NO_PAIR},
                                        EMU_PAIR(rsqrt_f64),
                                        EMU_NO_PAIR};
    static const struct by_type gross = {{EMU_PAIR(rsqrt_f32), EMU_PAIR(rsqrt_ftz_f32)},
                                         {EMU_NO_PAIR, EMU_NO_PAIR},
                                         EMU_PAIR(rsqrt_approx_f64),
                                         EMU_NO_PAIR};
    return operate(emit, insn, ptx_has(insn, PTX_MOD_FTZ) ? &gross : &fine, 1);
}
