/* f32 and f64: add, sub, mul, fma, mad, abs, neg, copysign, testp; packed f32x2; mixed precision (f32 with f16 or bf16
   operands). PTX ISA 9.0, "Floating Point Instructions", "Mixed Precision Floating Point Instructions". min and max are
   in ops_minmax.c, division and roots in ops_divide.c.

   .ftz flushes the sources and the result. Rounding .rn with and without .ftz has handlers of its own; the rarer forms
   are built of several operations (flush, operate in the rounding mode, flush, saturate). */
#include "emu/alu.h"
#include "emu/half.h"
#include "emu/round.h"

/* --- f32 */
EMU_BINARY(add_f32, float, float, float, emu_canon(x + y))
EMU_BINARY(sub_f32, float, float, float, emu_canon(x - y))
EMU_BINARY(mul_f32, float, float, float, emu_canon(x *y))
EMU_TERNARY(fma_f32, float, float, float, float, emu_canon(emu_fma_f32(x, y, z)))
EMU_BINARY(add_ftz_f32, float, float, float, emu_ftz(emu_canon(emu_ftz(x) + emu_ftz(y))))
EMU_BINARY(sub_ftz_f32, float, float, float, emu_ftz(emu_canon(emu_ftz(x) - emu_ftz(y))))
EMU_BINARY(mul_ftz_f32, float, float, float, emu_ftz(emu_canon(emu_ftz(x) * emu_ftz(y))))
EMU_TERNARY(fma_ftz_f32, float, float, float, float, emu_ftz(emu_canon(emu_fma_f32(emu_ftz(x), emu_ftz(y), emu_ftz(z)))))
/* In a directed mode the C library's fma is asked, where the processor has none: it obeys the mode. */
EMU_TERNARY(fma_mode_f32, float, float, float, float, emu_canon(__builtin_fmaf(x, y, z)))
EMU_ROUNDED(add_f32)
EMU_ROUNDED(sub_f32)
EMU_ROUNDED(mul_f32)
EMU_ROUNDED(fma_mode_f32)

EMU_UNARY(ftz_f32, float, float, emu_ftz(x))
EMU_UNARY(sat_f32, float, float, emu_sat(x))

/* --- f64: NaNs as IEEE hardware passes them on: the first NaN source, made quiet; a new one is the default NaN. */
static inline double quiet(double x)
{
    return emu_bits_f64(emu_f64_bits(x) | UINT64_C(0x0008000000000000));
}

static inline double nan2(double x, double y, double r)
{
    const double passed = x != x ? quiet(x) : y != y ? quiet(y) : emu_bits_f64(UINT64_C(0xfff8000000000000));
    return r == r ? r : passed;
}

static inline double nan3(double x, double y, double z, double r)
{
    const double passed = x != x ? quiet(x)
                          : y != y ? quiet(y)
                          : z != z ? quiet(z)
                                   : emu_bits_f64(UINT64_C(0xfff8000000000000));
    return r == r ? r : passed;
}

EMU_BINARY(add_f64, double, double, double, nan2(x, y, x + y))
EMU_BINARY(sub_f64, double, double, double, nan2(x, y, x - y))
EMU_BINARY(mul_f64, double, double, double, nan2(x, y, x *y))
EMU_TERNARY(fma_f64, double, double, double, double, nan3(x, y, z, __builtin_fma(x, y, z)))
EMU_ROUNDED(add_f64)
EMU_ROUNDED(sub_f64)
EMU_ROUNDED(mul_f64)
EMU_ROUNDED(fma_f64)

/* --- f32x2: a row is 64 floats. */
#define X2_LANES (2 * EMU_LANES)
#define X2(NAME, EXPR)                                                                                                \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)                           \
    {                                                                                                                 \
        float *d = EMU_ROW(float, warp, op->d);                                                                       \
        const float *a = EMU_ROW(float, warp, op->a), *b = EMU_ROW(float, warp, op->b);                               \
        const float *c = EMU_ROW(float, warp, op->c);                                                                 \
        EMU_VECTORIZE for (unsigned i = 0; i < X2_LANES; i++)                                                         \
        {                                                                                                             \
            const float x = a[i], y = b[i], z = c[i];                                                                 \
            (void)y;                                                                                                  \
            (void)z;                                                                                                  \
            d[i] = EXPR;                                                                                              \
        }                                                                                                             \
        return op + 1;                                                                                                \
    }                                                                                                                 \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op)                         \
    {                                                                                                                 \
        float *d = EMU_ROW(float, warp, op->d);                                                                       \
        const float *a = EMU_ROW(float, warp, op->a), *b = EMU_ROW(float, warp, op->b);                               \
        const float *c = EMU_ROW(float, warp, op->c);                                                                 \
        const uint32_t *on = warp->lane_mask;                                                                         \
        for (unsigned i = 0; i < X2_LANES; i++) {                                                                     \
            const float x = a[i], y = b[i], z = c[i];                                                                 \
            (void)y;                                                                                                  \
            (void)z;                                                                                                  \
            const float r = EXPR;                                                                                     \
            d[i] = on[i / 2] ? r : d[i];                                                                              \
        }                                                                                                             \
        return op + 1;                                                                                                \
    }
X2(add_f32x2, emu_canon(x + y))
X2(sub_f32x2, emu_canon(x - y))
X2(mul_f32x2, emu_canon(x *y))
X2(fma_f32x2, emu_canon(emu_fma_f32(x, y, z)))
X2(fma_mode_f32x2, emu_canon(__builtin_fmaf(x, y, z)))
X2(ftz_f32x2, emu_ftz(x))
#undef X2
EMU_ROUNDED(add_f32x2)
EMU_ROUNDED(sub_f32x2)
EMU_ROUNDED(mul_f32x2)
EMU_ROUNDED(fma_mode_f32x2)

/* The handlers of one instruction by type: nearest, nearest with ftz (f32), in a mode. */
struct by_type {
    struct emu_pair f32, f32_ftz, f32_mode, f64, f64_mode, x2, x2_mode;
};

static const struct by_type add_by_type = {EMU_PAIR(add_f32),         EMU_PAIR(add_ftz_f32),
                                           EMU_PAIR(add_f32_rounded), EMU_PAIR(add_f64),
                                           EMU_PAIR(add_f64_rounded), EMU_PAIR(add_f32x2),
                                           EMU_PAIR(add_f32x2_rounded)};
static const struct by_type sub_by_type = {EMU_PAIR(sub_f32),         EMU_PAIR(sub_ftz_f32),
                                           EMU_PAIR(sub_f32_rounded), EMU_PAIR(sub_f64),
                                           EMU_PAIR(sub_f64_rounded), EMU_PAIR(sub_f32x2),
                                           EMU_PAIR(sub_f32x2_rounded)};
static const struct by_type mul_by_type = {EMU_PAIR(mul_f32),         EMU_PAIR(mul_ftz_f32),
                                           EMU_PAIR(mul_f32_rounded), EMU_PAIR(mul_f64),
                                           EMU_PAIR(mul_f64_rounded), EMU_PAIR(mul_f32x2),
                                           EMU_PAIR(mul_f32x2_rounded)};
static const struct by_type fma_by_type = {EMU_PAIR(fma_f32),
                                           EMU_PAIR(fma_ftz_f32),
                                           EMU_PAIR(fma_mode_f32_rounded),
                                           EMU_PAIR(fma_f64),
                                           EMU_PAIR(fma_f64_rounded),
                                           EMU_PAIR(fma_f32x2),
                                           EMU_PAIR(fma_mode_f32x2_rounded)};

static void in_place(struct emu_emit *emit, struct emu_pair pair, uint32_t row)
{
    emu_push_pair(emit, pair, row, row, row, row);
}

/* Pushes d = pair(rows…), with the flush, the rounding mode and the saturation that the instruction names. */
static void operate(struct emu_emit *emit, const struct ptx_insn *insn, const struct by_type *by_type,
                    enum ptx_type type, uint32_t d, uint32_t rows[3], unsigned n_rows)
{
    const enum emu_round mode = emu_round_of(insn);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ);
    const struct emu_pair flush = type == PTX_F32X2 ? (struct emu_pair)EMU_PAIR(ftz_f32x2)
                                                    : (struct emu_pair)EMU_PAIR(ftz_f32);
    struct emu_pair pair;
    bool around = ftz;
    switch (type) {
    case PTX_F64:
        pair = mode == EMU_RN ? by_type->f64 : by_type->f64_mode;
        break;
    case PTX_F32X2:
        pair = mode == EMU_RN ? by_type->x2 : by_type->x2_mode;
        break;
    default:
        pair = mode != EMU_RN ? by_type->f32_mode : ftz ? by_type->f32_ftz : by_type->f32;
        around = ftz && mode != EMU_RN;
    }
    for (unsigned i = 0; around && i < n_rows; i++) {
        const uint32_t flushed = emu_scratch(emit, type);
        emu_push_pair(emit, flush, flushed, rows[i], rows[i], rows[i]);
        rows[i] = flushed;
    }
    /* f32x2 handlers read three rows whatever they need. */
    emu_push_pair(emit, pair, d, rows[0], rows[1], n_rows > 2 ? rows[2] : rows[1])->u8[0] = (uint8_t)mode;
    if (around)
        in_place(emit, flush, d);
    if (ptx_has(insn, PTX_MOD_SAT))
        in_place(emit, (struct emu_pair)EMU_PAIR(sat_f32), d);
}

static clab_status arithmetic(struct emu_emit *emit, const struct ptx_insn *insn, const struct by_type *by_type,
                              unsigned n_rows)
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
    const struct emu_pair widen = narrow == PTX_F16 ? (struct emu_pair)EMU_PAIR(widen_f16)
                                                    : (struct emu_pair)EMU_PAIR(widen_bf16);
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

/* --- abs, neg. A NaN of f32 comes out canonical. */
EMU_UNARY(abs_f32, float, float, emu_canon(emu_bits_f32(emu_f32_bits(x) & UINT32_C(0x7fffffff))))
EMU_UNARY(neg_f32, float, float, emu_canon(emu_bits_f32(emu_f32_bits(x) ^ UINT32_C(0x80000000))))
EMU_UNARY(abs_f64, uint64_t, uint64_t, x &UINT64_C(0x7fffffffffffffff))
EMU_UNARY(neg_f64, uint64_t, uint64_t, x ^ UINT64_C(0x8000000000000000))

static clab_status sign(struct emu_emit *emit, const struct ptx_insn *insn, struct emu_pair f32, struct emu_pair f64)
{
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    emu_push_pair(emit, type == PTX_F64 ? f64 : f32, d, a, EMU_NO_ROW, EMU_NO_ROW);
    if (ptx_has(insn, PTX_MOD_FTZ))
        in_place(emit, (struct emu_pair)EMU_PAIR(ftz_f32), d);
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
EMU_BINARY(copysign_f32, uint32_t, uint32_t, uint32_t, (x & UINT32_C(0x80000000)) | (y & UINT32_C(0x7fffffff)))
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

#define TESTP(NAME, T, SIGN, INF, LEAST_NORMAL)                                                                       \
    static const struct emu_op *NAME(struct emu_warp *warp, const struct emu_op *op)                                  \
    {                                                                                                                 \
        const T *a = EMU_ROW(T, warp, op->a);                                                                         \
        uint32_t mask = 0;                                                                                            \
        for (unsigned i = 0; i < EMU_LANES; i++) {                                                                    \
            const T m = a[i] & ~SIGN;                                                                                 \
            bool is = false;                                                                                          \
            switch ((enum testp_class)op->u8[0]) {                                                                    \
            case FINITE:                                                                                              \
                is = m < INF;                                                                                         \
                break;                                                                                                \
            case INFINITE:                                                                                            \
                is = m == INF;                                                                                        \
                break;                                                                                                \
            case NUMBER:                                                                                              \
                is = m <= INF;                                                                                        \
                break;                                                                                                \
            case NOT_A_NUMBER:                                                                                        \
                is = m > INF;                                                                                         \
                break;                                                                                                \
            case NORMAL:                                                                                              \
                is = m == 0 || (m >= LEAST_NORMAL && m < INF);                                                        \
                break;                                                                                                \
            case SUBNORMAL:                                                                                           \
                is = m && m < LEAST_NORMAL;                                                                           \
                break;                                                                                                \
            }                                                                                                         \
            mask |= is ? emu_lane_bit[i] : 0;                                                                         \
        }                                                                                                             \
        emu_pred_write(warp, op->d, mask);                                                                            \
        return op + 1;                                                                                                \
    }
TESTP(testp_f32, uint32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000), UINT32_C(0x00800000))
TESTP(testp_f64, uint64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000), UINT64_C(0x0010000000000000))
#undef TESTP

EMU_EMITTER(emu_testp)
{
    static const struct {
        enum ptx_mod mod;
        enum testp_class class;
    } classes[] = {{PTX_MOD_FINITE, FINITE}, {PTX_MOD_INFINITE, INFINITE}, {PTX_MOD_NUMBER, NUMBER},
                   {PTX_MOD_NOTANUMBER, NOT_A_NUMBER}, {PTX_MOD_NORMAL, NORMAL}, {PTX_MOD_SUBNORMAL, SUBNORMAL}};
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
    op->u8[0] = (uint8_t)class;
    return CLAB_OK;
}
