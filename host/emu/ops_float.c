/* f32 and f64: add, sub, mul, fma, mad, abs, neg, copysign, testp; packed f32x2; mixed precision (f32 with
   f16 or bf16 operands). PTX ISA 9.0, "Floating Point Instructions", "Mixed Precision Floating Point
   Instructions". min and max are in ops_minmax.c, division and roots in ops_divide.c.

   .ftz flushes the sources and the result. .sat is an operation of its own, after the other. */
#include "emu/alu.h"
#include "emu/half.h"
#include "emu/round.h"

/* --- f32. .ftz makes a result zero when it is tiny as if exponents were unbounded: (1 - 2^-24) * 2^-126 is
   flushed although it would round to 2^-126 (H200, driver 13.0, 2026-11-30). So products are looked at once
   more, 2^24 times as large; sums are exact where it matters. A scaled product that overflows does so for a
   result that is not small. */
static inline float flush_if_tiny(float r, float scaled)
{
    const float magnitude = emu_bits_f32(emu_f32_bits(scaled) & UINT32_C(0x7fffffff));
    const bool small = (emu_f32_bits(r) & UINT32_C(0x7fffffff)) <= UINT32_C(0x00800000);
    return small && magnitude < 0x1p-102f ? emu_bits_f32(emu_f32_bits(r) & UINT32_C(0x80000000))
                                          : emu_canon(r);
}

static inline float mul_ftz(float x, float y)
{
    const float fx = emu_ftz(x), fy = emu_ftz(y);
    return flush_if_tiny(fx * fy, fx * 0x1p24f * fy);
}

static inline float fma_ftz(float x, float y, float z)
{
    const float fx = emu_ftz(x), fy = emu_ftz(y), fz = emu_ftz(z);
    return flush_if_tiny(emu_fma_f32(fx, fy, fz), emu_fma_f32(fx * 0x1p24f, fy, fz * 0x1p24f));
}

/* In a directed mode the C library's fma is asked, where the processor has none: it obeys the mode. */
static inline float fma_ftz_mode(float x, float y, float z)
{
    const float fx = emu_ftz(x), fy = emu_ftz(y), fz = emu_ftz(z);
    return flush_if_tiny(__builtin_fmaf(fx, fy, fz), __builtin_fmaf(fx * 0x1p24f, fy, fz * 0x1p24f));
}

EMU_BINARY(add_f32, float, float, float, emu_canon(x + y))
EMU_BINARY(sub_f32, float, float, float, emu_canon(x - y))
EMU_BINARY(mul_f32, float, float, float, emu_canon(x *y))
EMU_TERNARY(fma_f32, float, float, float, float, emu_canon(emu_fma_f32(x, y, z)))
EMU_TERNARY(fma_mode_f32, float, float, float, float, emu_canon(__builtin_fmaf(x, y, z)))
EMU_BINARY(add_ftz_f32, float, float, float, emu_ftz(emu_canon(emu_ftz(x) + emu_ftz(y))))
EMU_BINARY(sub_ftz_f32, float, float, float, emu_ftz(emu_canon(emu_ftz(x) - emu_ftz(y))))
EMU_BINARY(mul_ftz_f32, float, float, float, mul_ftz(x, y))
EMU_TERNARY(fma_ftz_f32, float, float, float, float, fma_ftz(x, y, z))
EMU_TERNARY(fma_ftz_mode_f32, float, float, float, float, fma_ftz_mode(x, y, z))
EMU_ROUNDED(add_f32)
EMU_ROUNDED(sub_f32)
EMU_ROUNDED(mul_f32)
EMU_ROUNDED(fma_mode_f32)
EMU_ROUNDED(add_ftz_f32)
EMU_ROUNDED(sub_ftz_f32)
EMU_ROUNDED(mul_ftz_f32)
EMU_ROUNDED(fma_ftz_mode_f32)

EMU_UNARY(ftz_f32, float, float, emu_ftz(x))
EMU_UNARY(sat_f32, float, float, emu_sat(x))

/* --- f64: a NaN source is passed on, made quiet; a new NaN is fff8000000000000. Of several NaNs add, sub and
   mul take the second, fma the second, else the third, else the first (H200, driver 13.0, 2026-11-30). */
static inline double quiet(double x)
{
    return emu_bits_f64(emu_f64_bits(x) | UINT64_C(0x0008000000000000));
}

static inline double nan2(double first, double second, double r)
{
    const double made = emu_bits_f64(UINT64_C(0xfff8000000000000));
    const double passed = first != first ? quiet(first) : second != second ? quiet(second) : made;
    return r == r ? r : passed;
}

static inline double nan3(double first, double second, double third, double r)
{
    return first != first && r != r ? quiet(first) : nan2(second, third, r);
}

EMU_BINARY(add_f64, double, double, double, nan2(y, x, x + y))
EMU_BINARY(sub_f64, double, double, double, nan2(y, x, x - y))
EMU_BINARY(mul_f64, double, double, double, nan2(y, x, x *y))
EMU_TERNARY(fma_f64, double, double, double, double, nan3(y, z, x, __builtin_fma(x, y, z)))
EMU_ROUNDED(add_f64)
EMU_ROUNDED(sub_f64)
EMU_ROUNDED(mul_f64)
EMU_ROUNDED(fma_f64)

/* --- f32x2: a row is 64 floats. */
#define X2_LANES (2 * EMU_LANES)
#define X2(NAME, EXPR)                                                                        \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        float *d = EMU_ROW(float, warp, op->d);                                               \
        const float *a = EMU_ROW(float, warp, op->a), *b = EMU_ROW(float, warp, op->b);       \
        const float *c = EMU_ROW(float, warp, op->c);                                         \
        EMU_VECTORIZE for (unsigned i = 0; i < X2_LANES; i++)                                 \
        {                                                                                     \
            const float x = a[i], y = b[i], z = c[i];                                         \
            (void)y;                                                                          \
            (void)z;                                                                          \
            d[i] = EXPR;                                                                      \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        float *d = EMU_ROW(float, warp, op->d);                                               \
        const float *a = EMU_ROW(float, warp, op->a), *b = EMU_ROW(float, warp, op->b);       \
        const float *c = EMU_ROW(float, warp, op->c);                                         \
        const uint32_t *on = warp->lane_mask;                                                 \
        for (unsigned i = 0; i < X2_LANES; i++) {                                             \
            const float x = a[i], y = b[i], z = c[i];                                         \
            (void)y;                                                                          \
            (void)z;                                                                          \
            const float r = EXPR;                                                             \
            d[i] = on[i / 2] ? r : d[i];                                                      \
        }                                                                                     \
        return op + 1;                                                                        \
    }
X2(add_f32x2, emu_canon(x + y))
X2(sub_f32x2, emu_canon(x - y))
X2(mul_f32x2, emu_canon(x *y))
X2(fma_f32x2, emu_canon(emu_fma_f32(x, y, z)))
X2(fma_mode_f32x2, emu_canon(__builtin_fmaf(x, y, z)))
X2(add_ftz_f32x2, emu_ftz(emu_canon(emu_ftz(x) + emu_ftz(y))))
X2(sub_ftz_f32x2, emu_ftz(emu_canon(emu_ftz(x) - emu_ftz(y))))
X2(mul_ftz_f32x2, mul_ftz(x, y))
X2(fma_ftz_f32x2, fma_ftz(x, y, z))
X2(fma_ftz_mode_f32x2, fma_ftz_mode(x, y, z))
#undef X2
EMU_ROUNDED(add_ftz_f32x2)
EMU_ROUNDED(sub_ftz_f32x2)
EMU_ROUNDED(mul_ftz_f32x2)
EMU_ROUNDED(fma_ftz_mode_f32x2)
EMU_ROUNDED(add_f32x2)
EMU_ROUNDED(sub_f32x2)
EMU_ROUNDED(mul_f32x2)
EMU_ROUNDED(fma_mode_f32x2)

/* The handlers of one instruction: [.ftz][in a rounding mode]. */
struct by_type {
    struct emu_pair f32[2][2], x2[2][2], f64[2];
};

#define BY_TYPE(NAME, MODE)                                                             \
    {                                                                                   \
        {{EMU_PAIR(NAME##_f32), EMU_PAIR(NAME##MODE##_f32_rounded)},                    \
         {EMU_PAIR(NAME##_ftz_f32), EMU_PAIR(NAME##_ftz##MODE##_f32_rounded)}},         \
            {{EMU_PAIR(NAME##_f32x2), EMU_PAIR(NAME##MODE##_f32x2_rounded)},            \
             {EMU_PAIR(NAME##_ftz_f32x2), EMU_PAIR(NAME##_ftz##MODE##_f32x2_rounded)}}, \
        {                                                                               \
            EMU_PAIR(NAME##_f64), EMU_PAIR(NAME##_f64_rounded)                          \
        }                                                                               \
    }
static const struct by_type add_by_type = BY_TYPE(add, ), sub_by_type = BY_TYPE(sub, ),
                            mul_by_type = BY_TYPE(mul, ), fma_by_type = BY_TYPE(fma, _mode);
#undef BY_TYPE

/* Pushes d = pair(rows…) with the rounding mode and the saturation that the instruction names. */
static void operate(struct emu_emit *emit, const struct ptx_insn *insn, const struct by_type *by_type,
                    enum ptx_type type, uint32_t d, const uint32_t rows[3], unsigned n_rows)
{
    const enum emu_round mode = emu_round_of(insn);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ), directed = mode != EMU_RN;
    const struct emu_pair pair = type == PTX_F64     ? by_type->f64[directed]
                                 : type == PTX_F32X2 ? by_type->x2[ftz][directed]
                                                     : by_type->f32[ftz][directed];
    /* f32x2 handlers read three rows whatever they need. */
    emu_push_pair(emit, pair, d, rows[0], rows[1], n_rows > 2 ? rows[2] : rows[1])->u8[0] = (uint8_t)mode;
    if (ptx_has(insn, PTX_MOD_SAT))
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(sat_f32), d, d, EMU_NO_ROW, EMU_NO_ROW);
}

static clab_status arithmetic(struct emu_emit *emit, const struct ptx_insn *insn,
                              const struct by_type *by_type, unsigned n_rows)
{
    const enum ptx_type type = emu_last_type(insn);
    uint32_t rows[3] = {0};
    for (unsigned i = 0; i < n_rows; i++)
        rows[i] = emu_source(emit, &insn->operands[1 + i], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    operate(emit, insn, by_type, type, d, rows, n_rows);
    return CLAB_OK;
}

EMU_EMITTER(emu_add_float)
{
    return arithmetic(emit, insn, &add_by_type, 2);
}

EMU_EMITTER(emu_sub_float)
{
    return arithmetic(emit, insn, &sub_by_type, 2);
}

EMU_EMITTER(emu_mul_float)
{
    return arithmetic(emit, insn, &mul_by_type, 2);
}

EMU_EMITTER(emu_fma_float)
{
    return arithmetic(emit, insn, &fma_by_type, 3);
}

/* On sm_20 and later mad.f32 and mad.f64 are fma. */
EMU_EMITTER(emu_mad_float)
{
    return arithmetic(emit, insn, &fma_by_type, 3);
}

/* --- mixed precision: the last source is f32, those before it are f16 or bf16, widened exactly. */
EMU_UNARY(widen_f16, float, uint16_t, emu_f16_to_f32(x))
EMU_UNARY(widen_bf16, float, uint16_t, emu_bf16_to_f32(x))

static clab_status mixed(struct emu_emit *emit, const struct ptx_insn *insn, const struct by_type *by_type,
                         unsigned n_rows)
{
    const enum ptx_type narrow = emu_type(insn, 1);
    const struct emu_pair widen =
        narrow == PTX_F16 ? (struct emu_pair)EMU_PAIR(widen_f16) : (struct emu_pair)EMU_PAIR(widen_bf16);
    uint32_t rows[3] = {0};
    for (unsigned i = 0; i + 1 < n_rows; i++) {
        const uint32_t half = emu_source(emit, &insn->operands[1 + i], narrow);
        rows[i] = emu_scratch(emit, PTX_F32);
        emu_push_pair(emit, widen, rows[i], half, EMU_NO_ROW, EMU_NO_ROW);
    }
    rows[n_rows - 1] = emu_source(emit, &insn->operands[n_rows], PTX_F32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_F32);
    operate(emit, insn, by_type, PTX_F32, d, rows, n_rows);
    return CLAB_OK;
}

EMU_EMITTER(emu_add_mixed)
{
    return mixed(emit, insn, &add_by_type, 2);
}

EMU_EMITTER(emu_sub_mixed)
{
    return mixed(emit, insn, &sub_by_type, 2);
}

EMU_EMITTER(emu_fma_mixed)
{
    return mixed(emit, insn, &fma_by_type, 3);
}

/* --- abs, neg. A NaN comes out canonical (f32), or quiet with its sign (f64). */
EMU_UNARY(abs_f32, float, float, emu_canon(emu_bits_f32(emu_f32_bits(x) & UINT32_C(0x7fffffff))))
EMU_UNARY(neg_f32, float, float, emu_canon(emu_bits_f32(emu_f32_bits(x) ^ UINT32_C(0x80000000))))
EMU_UNARY(abs_f64, double, double,
          x == x ? emu_bits_f64(emu_f64_bits(x) & UINT64_C(0x7fffffffffffffff)) : quiet(x))
EMU_UNARY(neg_f64, double, double,
          x == x ? emu_bits_f64(emu_f64_bits(x) ^ UINT64_C(0x8000000000000000)) : quiet(x))

static clab_status sign(struct emu_emit *emit, const struct ptx_insn *insn, struct emu_pair f32,
                        struct emu_pair f64)
{
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    emu_push_pair(emit, type == PTX_F64 ? f64 : f32, d, a, EMU_NO_ROW, EMU_NO_ROW);
    if (ptx_has(insn, PTX_MOD_FTZ))
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(ftz_f32), d, d, EMU_NO_ROW, EMU_NO_ROW);
    return CLAB_OK;
}

EMU_EMITTER(emu_abs_float)
{
    return sign(emit, insn, (struct emu_pair)EMU_PAIR(abs_f32), (struct emu_pair)EMU_PAIR(abs_f64));
}

EMU_EMITTER(emu_neg_float)
{
    return sign(emit, insn, (struct emu_pair)EMU_PAIR(neg_f32), (struct emu_pair)EMU_PAIR(neg_f64));
}

/* --- copysign: the sign of a on b, bit for bit. */
EMU_BINARY(copysign_f32, uint32_t, uint32_t, uint32_t,
           (x & UINT32_C(0x80000000)) | (y & UINT32_C(0x7fffffff)))
EMU_BINARY(copysign_f64, uint64_t, uint64_t, uint64_t,
           (x & UINT64_C(0x8000000000000000)) | (y & UINT64_C(0x7fffffffffffffff)))

EMU_EMITTER(emu_copysign)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(copysign_f32), EMU_PAIR(copysign_f64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[type == PTX_F64], type, type, type);
}

/* --- testp: by magnitude. Zeros are normal. */
enum testp_class { FINITE, INFINITE, NUMBER, NOT_A_NUMBER, NORMAL, SUBNORMAL };

#define TESTP(NAME, T, SIGN, INF, LEAST_NORMAL)                                      \
    static const struct emu_op *NAME(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                \
        const T *a = EMU_ROW(T, warp, op->a);                                        \
        uint32_t mask = 0;                                                           \
        for (unsigned i = 0; i < EMU_LANES; i++) {                                   \
            const T m = a[i] & ~SIGN;                                                \
            bool is = false;                                                         \
            switch ((enum testp_class)op->u8[0]) {                                   \
            case FINITE:                                                             \
                is = m < INF;                                                        \
                break;                                                               \
            case INFINITE:                                                           \
                is = m == INF;                                                       \
                break;                                                               \
            case NUMBER:                                                             \
                is = m <= INF;                                                       \
                break;                                                               \
            case NOT_A_NUMBER:                                                       \
                is = m > INF;                                                        \
                break;                                                               \
            case NORMAL:                                                             \
                is = m == 0 || (m >= LEAST_NORMAL && m < INF);                       \
                break;                                                               \
            case SUBNORMAL:                                                          \
                is = m && m < LEAST_NORMAL;                                          \
                break;                                                               \
            }                                                                        \
            mask |= is ? emu_lane_bit[i] : 0;                                        \
        }                                                                            \
        emu_pred_write(warp, op->d, mask);                                           \
        return op + 1;                                                               \
    }
TESTP(testp_f32, uint32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000), UINT32_C(0x00800000))
TESTP(testp_f64, uint64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000),
      UINT64_C(0x0010000000000000))
#undef TESTP

EMU_EMITTER(emu_testp)
{
    static const struct {
        enum ptx_mod mod;
        enum testp_class class;
    } classes[] = {{PTX_MOD_FINITE, FINITE}, {PTX_MOD_INFINITE, INFINITE},
                   {PTX_MOD_NUMBER, NUMBER}, {PTX_MOD_NOTANUMBER, NOT_A_NUMBER},
                   {PTX_MOD_NORMAL, NORMAL}, {PTX_MOD_SUBNORMAL, SUBNORMAL}};
    const enum ptx_type type = emu_last_type(insn);
    enum testp_class class = FINITE;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (ptx_has(insn, classes[i].mod))
            class = classes[i].class;
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t p = emu_pred_dest(emit, &insn->operands[0]);
    emu_handler *handler = type == PTX_F64 ? testp_f64 : testp_f32;
    struct emu_op *op = emu_push(emit, handler, handler);
    op->d = p;
    op->a = a;
    op->u8[0] = (uint8_t) class;
    return CLAB_OK;
}
