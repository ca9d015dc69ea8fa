/* cvt between integers, f16, bf16, f32 and f64. PTX ISA 9.0, "Data Movement and Conversion: cvt". The packed
   and the alternate formats are in ops_cvt_packed.c.

   A conversion is a chain of simple operations through scratch rows; the common ones are a chain of one. */
#include <math.h>

#include "emu/alu.h"
#include "emu/format.h"
#include "emu/half.h"
#include "emu/round.h"

/* --- the chain. */
struct chain {
    struct emu_pair pairs[8];
    enum ptx_type to[8];
    uint8_t mode[8], flag[8];
    unsigned n;
};

static void step_mode(struct chain *chain, struct emu_pair pair, enum ptx_type to, unsigned mode, bool flag)
{
    chain->pairs[chain->n] = pair;
    chain->to[chain->n] = to;
    chain->mode[chain->n] = (uint8_t)mode;
    chain->flag[chain->n] = flag;
    chain->n++;
}

static void step(struct chain *chain, struct emu_pair pair, enum ptx_type to)
{
    step_mode(chain, pair, to, 0, false);
}

/* d = last(…(first(a))). */
static clab_status push_chain(struct emu_emit *emit, const struct ptx_insn *insn, const struct chain *chain,
                              enum ptx_type from, enum ptx_type to)
{
    uint32_t row = emu_source(emit, &insn->operands[1], from);
    const uint32_t d = emu_dest(emit, &insn->operands[0], to);
    for (unsigned i = 0; i < chain->n; i++) {
        const uint32_t next = i + 1 == chain->n ? d : emu_scratch(emit, chain->to[i]);
        struct emu_op *op = emu_push_pair(emit, chain->pairs[i], next, row, EMU_NO_ROW, EMU_NO_ROW);
        op->u8[0] = chain->mode[i];
        op->u8[1] = chain->flag[i];
        row = next;
    }
    return CLAB_OK;
}

/* --- integer to integer: extended by the source's sign or cut to the destination's size. */
#define RESIZE(FROM, T)                     \
    EMU_UNARY(FROM##_to_8, uint8_t, T, x)   \
    EMU_UNARY(FROM##_to_16, uint16_t, T, x) \
    EMU_UNARY(FROM##_to_32, uint32_t, T, x) \
    EMU_UNARY(FROM##_to_64, uint64_t, T, x)
RESIZE(u8, uint8_t)
RESIZE(u16, uint16_t)
RESIZE(u32, uint32_t)
RESIZE(u64, uint64_t)
RESIZE(s8, int8_t)
RESIZE(s16, int16_t)
RESIZE(s32, int32_t)
#undef RESIZE

#define RESIZED(FROM)                                                                                 \
    {                                                                                                 \
        EMU_PAIR(FROM##_to_8), EMU_PAIR(FROM##_to_16), EMU_PAIR(FROM##_to_32), EMU_PAIR(FROM##_to_64) \
    }
/* [source][log2 of the destination's bytes]; s64 is never extended, so u64 serves. */
static struct emu_pair resize(enum ptx_type from, enum ptx_type to)
{
    static const struct emu_pair pairs[2][4][4] = {{RESIZED(u8), RESIZED(u16), RESIZED(u32), RESIZED(u64)},
                                                   {RESIZED(s8), RESIZED(s16), RESIZED(s32), RESIZED(u64)}};
    return pairs[emu_is_signed(from)][emu_size_index(from)][emu_size_index(to)];
}

/* .sat: from a 64-bit row, clamped to the destination's range. */
#define CLAMP(NAME, T, FROM, LOW, HIGH)                                      \
    EMU_UNARY(NAME##_from_s64, T, int64_t, x<LOW ? LOW : x> HIGH ? HIGH : x) \
    EMU_UNARY(NAME##_from_u64, T, uint64_t, x > (uint64_t)HIGH ? (uint64_t)HIGH : x)
CLAMP(sat_u8, uint8_t, , 0, UINT8_MAX)
CLAMP(sat_s8, int8_t, , INT8_MIN, INT8_MAX)
CLAMP(sat_u16, uint16_t, , 0, UINT16_MAX)
CLAMP(sat_s16, int16_t, , INT16_MIN, INT16_MAX)
CLAMP(sat_u32, uint32_t, , 0, (int64_t)UINT32_MAX)
CLAMP(sat_s32, int32_t, , INT32_MIN, INT32_MAX)
CLAMP(sat_s64, int64_t, , INT64_MIN, INT64_MAX)
#undef CLAMP
EMU_UNARY(sat_u64_from_s64, uint64_t, int64_t, x < 0 ? 0 : x)

/* [source signed][destination signed][size]; u64 to u64 is a copy. */
static const struct emu_pair clamps[2][2][4] = {
    {{EMU_PAIR(sat_u8_from_u64), EMU_PAIR(sat_u16_from_u64), EMU_PAIR(sat_u32_from_u64), EMU_PAIR(u64_to_64)},
     {EMU_PAIR(sat_s8_from_u64), EMU_PAIR(sat_s16_from_u64), EMU_PAIR(sat_s32_from_u64),
      EMU_PAIR(sat_s64_from_u64)}},
    {{EMU_PAIR(sat_u8_from_s64), EMU_PAIR(sat_u16_from_s64), EMU_PAIR(sat_u32_from_s64),
      EMU_PAIR(sat_u64_from_s64)},
     {EMU_PAIR(sat_s8_from_s64), EMU_PAIR(sat_s16_from_s64), EMU_PAIR(sat_s32_from_s64),
      EMU_PAIR(sat_s64_from_s64)}}};

static void step_clamp(struct chain *chain, enum ptx_type from, enum ptx_type to)
{
    if (emu_lane_bytes(from) < 8)
        step(chain, resize(from, PTX_U64), PTX_U64);
    step(chain, clamps[emu_is_signed(from)][emu_is_signed(to)][emu_size_index(to)], to);
}

EMU_EMITTER(emu_cvt_int)
{
    const enum ptx_type to = emu_type(insn, 0), from = emu_type(insn, 1);
    struct chain chain = {.n = 0};
    if (ptx_has(insn, PTX_MOD_SAT))
        step_clamp(&chain, from, to);
    else
        step(&chain, resize(from, to), to);
    return push_chain(emit, insn, &chain, from, to);
}

/* --- float rows on the way. */
EMU_UNARY(ftz_f32, float, float, emu_ftz(x))
EMU_UNARY(sat_f32, float, float, emu_sat(x))
EMU_UNARY(sat_f64, double, double, emu_sat_f64(x))
EMU_UNARY(relu_f32, float, float, x < 0.0f || x == 0.0f ? 0.0f : x)
EMU_UNARY(canon_f32, float, float, emu_canon(x))

/* f16 and bf16 clamp in their own format. */
static inline uint32_t sat_half(uint32_t h, uint32_t one, uint32_t infinity)
{
    return h & 0x8000 || (h & 0x7fff) > infinity ? 0 : h > one ? one : h;
}
EMU_UNARY(sat_f16, uint16_t, uint16_t, sat_half(x, 0x3c00, 0x7c00))
EMU_UNARY(sat_bf16, uint16_t, uint16_t, sat_half(x, 0x3f80, 0x7f80))

static struct emu_pair saturate(enum ptx_type type)
{
    switch (type) {
    case PTX_F16:
        return (struct emu_pair)EMU_PAIR(sat_f16);
    case PTX_BF16:
        return (struct emu_pair)EMU_PAIR(sat_bf16);
    case PTX_F64:
        return (struct emu_pair)EMU_PAIR(sat_f64);
    default:
        return (struct emu_pair)EMU_PAIR(sat_f32);
    }
}

/* --- integer to float. 32-bit sources to f64 are exact. */
/* clang 14 makes -0 of an unsigned 0 when rounding down: the sign is cleared. */
static inline float plus(float x)
{
    return emu_bits_f32(emu_f32_bits(x) & UINT32_C(0x7fffffff));
}

static inline double plus_f64(double x)
{
    return emu_bits_f64(emu_f64_bits(x) & UINT64_C(0x7fffffffffffffff));
}

EMU_UNARY(f32_from_s32, float, int32_t, x)
EMU_UNARY(f32_from_u32, float, uint32_t, plus((float)x))
EMU_UNARY(f32_from_s64, float, int64_t, x)
EMU_UNARY(f32_from_u64, float, uint64_t, plus((float)x))
EMU_UNARY(f64_from_s32, double, int32_t, x)
EMU_UNARY(f64_from_u32, double, uint32_t, plus_f64((double)x))
EMU_UNARY(f64_from_s64, double, int64_t, x)
EMU_UNARY(f64_from_u64, double, uint64_t, plus_f64((double)x))
EMU_ROUNDED(f32_from_s32)
EMU_ROUNDED(f32_from_u32)
EMU_ROUNDED(f32_from_s64)
EMU_ROUNDED(f32_from_u64)
EMU_ROUNDED(f64_from_s64)
EMU_ROUNDED(f64_from_u64)

/* To f16 and bf16: a 64-bit integer is first cut to 53 bits with the last bit sticky, which a double holds
   and which rounds as the integer would. u8[0]: mode. */
static inline double sticky(uint64_t magnitude, bool negative)
{
    const uint64_t cut = magnitude >> 11 | ((magnitude & 0x7ff) != 0);
    const double wide = magnitude >> 53 ? (double)cut * 2048.0 : (double)magnitude;
    return negative ? -wide : wide;
}

static inline double sticky_s64(int64_t x)
{
    return sticky(x < 0 ? 0u - (uint64_t)x : (uint64_t)x, x < 0);
}

EMU_UNARY(f16_from_s64, uint16_t, int64_t, emu_format_encode(sticky_s64(x), &emu_f16, op->u8[0], false, 0, 0))
EMU_UNARY(f16_from_u64, uint16_t, uint64_t,
          emu_format_encode(sticky(x, false), &emu_f16, op->u8[0], false, 0, 0))
EMU_UNARY(bf16_from_s64, uint16_t, int64_t,
          emu_format_encode(sticky_s64(x), &emu_bf16, op->u8[0], false, 0, 0))
EMU_UNARY(bf16_from_u64, uint16_t, uint64_t,
          emu_format_encode(sticky(x, false), &emu_bf16, op->u8[0], false, 0, 0))

EMU_EMITTER(emu_cvt_to_float)
{
    static const struct emu_pair nearest[2][4] = {
        /* [f64][s32 u32 s64 u64] */
        {EMU_PAIR(f32_from_s32), EMU_PAIR(f32_from_u32), EMU_PAIR(f32_from_s64), EMU_PAIR(f32_from_u64)},
        {EMU_PAIR(f64_from_s32), EMU_PAIR(f64_from_u32), EMU_PAIR(f64_from_s64), EMU_PAIR(f64_from_u64)}};
    static const struct emu_pair directed[2][4] = {
        {EMU_PAIR(f32_from_s32_rounded), EMU_PAIR(f32_from_u32_rounded), EMU_PAIR(f32_from_s64_rounded),
         EMU_PAIR(f32_from_u64_rounded)},
        {EMU_PAIR(f64_from_s32), EMU_PAIR(f64_from_u32), EMU_PAIR(f64_from_s64_rounded),
         EMU_PAIR(f64_from_u64_rounded)}};
    static const struct emu_pair halves[2][2] = {{EMU_PAIR(f16_from_u64), EMU_PAIR(f16_from_s64)},
                                                 {EMU_PAIR(bf16_from_u64), EMU_PAIR(bf16_from_s64)}};
    const enum ptx_type to = emu_type(insn, 0), from = emu_type(insn, 1);
    const enum emu_round mode = emu_round_of(insn);
    const bool is_signed = emu_is_signed(from);
    struct chain chain = {.n = 0};
    if (to == PTX_F16 || to == PTX_BF16) {
        if (emu_lane_bytes(from) < 8)
            step(&chain, resize(from, PTX_U64), PTX_U64);
        step_mode(&chain, halves[to == PTX_BF16][is_signed], to, mode, false);
    } else {
        /* 8- and 16-bit sources become s32, which holds both signs. */
        const bool wide = emu_lane_bytes(from) == 8, narrow = emu_lane_bytes(from) < 4;
        if (narrow)
            step(&chain, resize(from, PTX_U32), PTX_U32);
        const unsigned column = (wide ? 2u : 0u) + (is_signed || narrow ? 0u : 1u);
        step_mode(&chain, (mode == EMU_RN ? nearest : directed)[to == PTX_F64][column], to, mode, false);
    }
    if (ptx_has(insn, PTX_MOD_SAT))
        step(&chain, saturate(to), to);
    return push_chain(emit, insn, &chain, from, to);
}

/* --- rounding to an integral number. */
EMU_UNARY(rni_f32, float, float, emu_canon(__builtin_rintf(x)))
EMU_UNARY(rmi_f32, float, float, emu_canon(__builtin_floorf(x)))
EMU_UNARY(rpi_f32, float, float, emu_canon(__builtin_ceilf(x)))
EMU_UNARY(rzi_f32, float, float, emu_canon(__builtin_truncf(x)))

/* A NaN is made quiet here: not every C library does. */
static inline double quiet_or(double x, double r)
{
    return x == x ? r : emu_bits_f64(emu_f64_bits(x) | UINT64_C(0x0008000000000000));
}
EMU_UNARY(rni_f64, double, double, quiet_or(x, __builtin_rint(x)))
EMU_UNARY(rmi_f64, double, double, quiet_or(x, __builtin_floor(x)))
EMU_UNARY(rpi_f64, double, double, quiet_or(x, __builtin_ceil(x)))
EMU_UNARY(rzi_f64, double, double, quiet_or(x, __builtin_trunc(x)))

/* The integral rounding that the instruction names; false when it names none. */
static bool integral(const struct ptx_insn *insn, bool is_f64, struct emu_pair *out_pair)
{
    static const struct {
        enum ptx_mod mod;
        struct emu_pair f32, f64;
    } modes[] = {{PTX_MOD_RNI, EMU_PAIR(rni_f32), EMU_PAIR(rni_f64)},
                 {PTX_MOD_RMI, EMU_PAIR(rmi_f32), EMU_PAIR(rmi_f64)},
                 {PTX_MOD_RPI, EMU_PAIR(rpi_f32), EMU_PAIR(rpi_f64)},
                 {PTX_MOD_RZI, EMU_PAIR(rzi_f32), EMU_PAIR(rzi_f64)}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (ptx_has(insn, modes[i].mod)) {
            *out_pair = is_f64 ? modes[i].f64 : modes[i].f32;
            return true;
        }
    return false;
}

/* --- integral float to integer: clamped; a NaN gives 0 from f32 and narrower to 32 bits and fewer, else the
   sign bit alone (PTX ISA 9.0, cvt). The selects keep every C conversion in range. */
#define TO_INT(NAME, T, F, LOW, HIGH, LEAST, GREATEST, NAN_VALUE, CONVERT) \
    static inline T NAME##_one(F x)                                        \
    {                                                                      \
        const bool in = x >= LOW && x < HIGH;                              \
        const F safe = in ? x : 0;                                         \
        const T clamped = x > 0 ? GREATEST : LEAST;                        \
        const T number = in ? CONVERT : clamped;                           \
        return x == x ? number : NAN_VALUE;                                \
    }                                                                      \
    EMU_UNARY(NAME, T, F, NAME##_one(x))

/* Halves of the unsigned range, for processors that convert to signed integers only. */
#define SPLIT_32 \
    (safe >= 0x1p31f ? (uint32_t)(int32_t)(safe - 0x1p31f) + UINT32_C(0x80000000) : (uint32_t)(int32_t)safe)
#define SPLIT_64                                                                          \
    (safe >= 0x1p63f ? (uint64_t)(int64_t)(safe - 0x1p63f) + UINT64_C(0x8000000000000000) \
                     : (uint64_t)(int64_t)safe)
TO_INT(s32_from_f32, int32_t, float, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX, 0, (int32_t)safe)
TO_INT(u32_from_f32, uint32_t, float, 0.0f, 0x1p32f, 0, UINT32_MAX, 0, SPLIT_32)
TO_INT(s64_from_f32, int64_t, float, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX, INT64_MIN, (int64_t)safe)
TO_INT(u64_from_f32, uint64_t, float, 0.0f, 0x1p64f, 0, UINT64_MAX, UINT64_C(0x8000000000000000), SPLIT_64)
TO_INT(s32_from_f64, int32_t, double, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX, INT32_MIN, (int32_t)safe)
TO_INT(u32_from_f64, uint32_t, double, 0.0, 0x1p32, 0, UINT32_MAX, UINT32_C(0x80000000),
       (uint32_t)(int64_t)safe)
TO_INT(s64_from_f64, int64_t, double, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX, INT64_MIN, (int64_t)safe)
TO_INT(u64_from_f64, uint64_t, double, 0.0, 0x1p64, 0, UINT64_MAX, UINT64_C(0x8000000000000000), SPLIT_64)
TO_INT(s16_from_f64, int16_t, double, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX, INT16_MIN, (int16_t)safe)
TO_INT(u16_from_f64, uint16_t, double, 0.0, 0x1p16, 0, UINT16_MAX, 0x8000, (uint16_t)safe)
TO_INT(s8_from_f64, int8_t, double, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX, INT8_MIN, (int8_t)safe)
TO_INT(u8_from_f64, uint8_t, double, 0.0, 0x1p8, 0, UINT8_MAX, 0x80, (uint8_t)safe)
#undef TO_INT
#undef SPLIT_32
#undef SPLIT_64

EMU_UNARY(widen_f16, float, uint16_t, emu_f16_to_f32(x))
EMU_UNARY(widen_bf16, float, uint16_t, emu_bf16_to_f32(x))

/* Steps from f16 and bf16 to f32; returns the type of the row. */
static enum ptx_type step_widen(struct chain *chain, enum ptx_type from)
{
    if (from != PTX_F16 && from != PTX_BF16)
        return from;
    step(chain,
         from == PTX_F16 ? (struct emu_pair)EMU_PAIR(widen_f16) : (struct emu_pair)EMU_PAIR(widen_bf16),
         PTX_F32);
    return PTX_F32;
}

EMU_EMITTER(emu_cvt_to_int)
{
    static const struct emu_pair pairs[2][4] = {
        /* [f64][s32 u32 s64 u64] */
        {EMU_PAIR(s32_from_f32), EMU_PAIR(u32_from_f32), EMU_PAIR(s64_from_f32), EMU_PAIR(u64_from_f32)},
        {EMU_PAIR(s32_from_f64), EMU_PAIR(u32_from_f64), EMU_PAIR(s64_from_f64), EMU_PAIR(u64_from_f64)}};
    static const struct emu_pair narrow_f64[2][2] = {{EMU_PAIR(u8_from_f64), EMU_PAIR(u16_from_f64)},
                                                     {EMU_PAIR(s8_from_f64), EMU_PAIR(s16_from_f64)}};
    const enum ptx_type to = emu_type(insn, 0), from = emu_type(insn, 1);
    struct chain chain = {.n = 0};
    const enum ptx_type wide = step_widen(&chain, from);
    if (ptx_has(insn, PTX_MOD_FTZ))
        step(&chain, (struct emu_pair)EMU_PAIR(ftz_f32), PTX_F32);
    /* Truncation is what the C conversion does. */
    struct emu_pair round = EMU_NO_PAIR;
    if (!ptx_has(insn, PTX_MOD_RZI) && integral(insn, wide == PTX_F64, &round))
        step(&chain, round, wide);
    const bool is_signed = emu_is_signed(to), narrow = emu_lane_bytes(to) < 4;
    if (wide == PTX_F64 && narrow) {
        step(&chain, narrow_f64[is_signed][emu_lane_bytes(to) == 2], to);
        return push_chain(emit, insn, &chain, from, to);
    }
    const enum ptx_type middle = narrow ? (is_signed ? PTX_S32 : PTX_U32) : to;
    step(&chain, pairs[wide == PTX_F64][(emu_lane_bytes(to) == 8 ? 2u : 0u) + !is_signed], middle);
    if (narrow)
        step_clamp(&chain, middle, to);
    return push_chain(emit, insn, &chain, from, to);
}

/* --- float to float. What a NaN becomes was seen on an H200 (driver 13.0, 2026-11-30): it is passed on, made
   quiet and cut or extended, by conversions from and to f64 and from bf16; it becomes canonical in all others
   and by .ftz; without any modifier cvt.f32.f32 copies. */
static inline double f64_of(float x)
{
    const uint64_t nan = (uint64_t)(emu_f32_bits(x) & UINT32_C(0x80000000)) << 32 |
                         UINT64_C(0x7ff8000000000000) |
                         (uint64_t)(emu_f32_bits(x) & UINT32_C(0x007fffff)) << 29;
    return x == x ? (double)x : emu_bits_f64(nan);
}

/* The upper part of a NaN, in a format of `bits` bits with `mantissa` after the point. */
static inline uint32_t cut_nan(double x, unsigned bits, unsigned mantissa)
{
    const uint64_t u = emu_f64_bits(x) | UINT64_C(0x0008000000000000);
    const uint32_t all = (uint32_t)((UINT64_C(1) << (bits - 1)) - 1);
    const uint32_t payload = (uint32_t)(u >> (52 - mantissa)) & ((UINT32_C(1) << mantissa) - 1);
    return (uint32_t)(u >> 63) << (bits - 1) | (all & ~((UINT32_C(1) << mantissa) - 1)) | payload;
}

static inline float f32_of(double x)
{
    return x == x ? (float)x : emu_bits_f32(cut_nan(x, 32, 23));
}

/* .ftz asks whether the result would be tiny with unbounded exponents, as in ops_float.c. */
static inline float f32_ftz_of(double x)
{
    const uint32_t scaled = emu_f32_bits((float)(x * 0x1p64)) & UINT32_C(0x7fffffff);
    const float r = f32_of(x);
    return emu_bits_f32(scaled) < 0x1p-62f ? emu_bits_f32(emu_f32_bits(r) & UINT32_C(0x80000000)) : r;
}

EMU_UNARY(f64_from_f32, double, float, f64_of(x))
EMU_UNARY(f32_from_f64, float, double, f32_of(x))
EMU_UNARY(f32_ftz_from_f64, float, double, f32_ftz_of(x))
EMU_ROUNDED(f32_from_f64)
EMU_ROUNDED(f32_ftz_from_f64)
EMU_UNARY(f16_from_f32, uint16_t, float, emu_f32_to_f16(x))
EMU_UNARY(bf16_from_f32, uint16_t, float, emu_f32_to_bf16(x))
/* u8[0]: mode, u8[1]: .satfinite. */
EMU_UNARY(f16_from_f32_mode, uint16_t, float, emu_format_encode(x, &emu_f16, op->u8[0], op->u8[1], 0, 0))
EMU_UNARY(bf16_from_f32_mode, uint16_t, float, emu_format_encode(x, &emu_bf16, op->u8[0], op->u8[1], 0, 0))
EMU_UNARY(f16_from_f64_mode, uint16_t, double,
          x == x ? emu_format_encode(x, &emu_f16, op->u8[0], false, 0, 0) : cut_nan(x, 16, 10))
EMU_UNARY(bf16_from_f64_mode, uint16_t, double,
          x == x ? emu_format_encode(x, &emu_bf16, op->u8[0], false, 0, 0) : cut_nan(x, 16, 7))
EMU_UNARY(copy_32, uint32_t, uint32_t, x)
EMU_UNARY(copy_64, uint64_t, uint64_t, x)

static void step_to_half(struct chain *chain, enum ptx_type to, bool from_f64, unsigned mode, bool finite)
{
    static const struct emu_pair pairs[2][3] = {
        {EMU_PAIR(f16_from_f32), EMU_PAIR(f16_from_f32_mode), EMU_PAIR(f16_from_f64_mode)},
        {EMU_PAIR(bf16_from_f32), EMU_PAIR(bf16_from_f32_mode), EMU_PAIR(bf16_from_f64_mode)}};
    const unsigned column = from_f64 ? 2 : mode != EMU_RN || finite;
    step_mode(chain, pairs[to == PTX_BF16][column], to, mode, finite);
}

EMU_EMITTER(emu_cvt_float)
{
    static const struct emu_pair to_f32[2][2] = {
        {EMU_PAIR(f32_from_f64), EMU_PAIR(f32_from_f64_rounded)},
        {EMU_PAIR(f32_ftz_from_f64), EMU_PAIR(f32_ftz_from_f64_rounded)}};
    const enum ptx_type to = emu_type(insn, 0), from = emu_type(insn, 1);
    const enum emu_round mode = emu_round_of(insn);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ), sat = ptx_has(insn, PTX_MOD_SAT);
    struct chain chain = {.n = 0};
    struct emu_pair round = EMU_NO_PAIR;
    const bool rounds = integral(insn, from == PTX_F64, &round);
    const bool plain = from == to && !rounds && !ftz && !sat;
    const enum ptx_type wide = step_widen(&chain, from);
    /* .ftz does nothing to f32 sources of f16 (H200, as above). */
    if (ftz && from == PTX_F32 && to != PTX_F16) {
        step(&chain, (struct emu_pair)EMU_PAIR(ftz_f32), PTX_F32);
        step(&chain, (struct emu_pair)EMU_PAIR(canon_f32), PTX_F32);
    }
    if (rounds)
        step(&chain, round, wide);
    if (ptx_has(insn, PTX_MOD_RELU))
        step(&chain, (struct emu_pair)EMU_PAIR(relu_f32), PTX_F32);
    if (to == PTX_F16 || to == PTX_BF16) {
        step_to_half(&chain, to, wide == PTX_F64, mode, ptx_has(insn, PTX_MOD_SATFINITE));
    } else if (to == PTX_F64) {
        if (wide == PTX_F32)
            step(&chain, (struct emu_pair)EMU_PAIR(f64_from_f32), PTX_F64);
        else if (plain)
            step(&chain, (struct emu_pair)EMU_PAIR(copy_64), PTX_F64);
    } else if (wide == PTX_F64) {
        step_mode(&chain, to_f32[ftz][mode != EMU_RN], PTX_F32, mode, false);
    } else if (plain) {
        step(&chain, (struct emu_pair)EMU_PAIR(copy_32), PTX_F32);
    } else if (from == PTX_F16 || ftz) {
        step(&chain, (struct emu_pair)EMU_PAIR(canon_f32), PTX_F32);
        if (ftz)
            step(&chain, (struct emu_pair)EMU_PAIR(ftz_f32), PTX_F32);
    }
    if (sat)
        step(&chain, saturate(to), to);
    return push_chain(emit, insn, &chain, from, to);
}
