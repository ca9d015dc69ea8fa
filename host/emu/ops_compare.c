/* Comparison and selection: setp, set, selp, slct, on integers, f32, f64, f16, bf16 and their pairs. PTX
   ISA 9.0, "Comparison and Selection Instructions" and "Half Precision Comparison Instructions".

   A comparison makes a mask. There are handlers for few operators; the others are those with the operands
   exchanged (gt, ge) or with the mask inverted (the unordered ones: ltu is not ge). f16 and bf16 are widened
   to f32 first, which is exact. */
#include "emu/alu.h"
#include "emu/half.h"

#if defined(__AVX2__)
#include <immintrin.h>
/* Signs of 32 bytes of lanes, so many bits: two instructions for what else is a chain of seven. */
#define SIGNS(T, v)                                                      \
    (sizeof(T) == 4 ? (uint32_t)_mm256_movemask_ps((__m256)(__m256i)(v)) \
                    : (uint32_t)_mm256_movemask_pd((__m256d)(__m256i)(v)))
/* EXPR is one for scalars and for vectors. */
#define COMPARE_MASK(NAME, T, EXPR)                                                        \
    static inline uint32_t NAME##_mask(struct emu_warp *warp, const struct emu_op *op)     \
    {                                                                                      \
        typedef T vector __attribute__((vector_size(32), aligned(32), may_alias));         \
        const vector *a = EMU_ROW(vector, warp, op->a), *b = EMU_ROW(vector, warp, op->b); \
        uint32_t mask = 0;                                                                 \
        for (unsigned k = 0; k < sizeof(T); k++) {                                         \
            const vector x = a[k], y = b[k];                                               \
            mask |= SIGNS(T, EXPR) << (32 / sizeof(T) * k);                                \
        }                                                                                  \
        return mask ^ (0u - op->u8[0]);                                                    \
    }
#else
#define COMPARE_MASK LANES_MASK
#endif

/* u8[0]: invert the mask. */
#define LANES_MASK(NAME, T, EXPR)                                                      \
    static inline uint32_t NAME##_mask(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                  \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);            \
        uint32_t mask = 0;                                                             \
        EMU_EACH_LANE(i)                                                               \
        {                                                                              \
            const T x = a[i], y = b[i];                                                \
            mask |= (EXPR) ? emu_lane_bit[i] : 0;                                      \
        }                                                                              \
        return mask ^ (0u - op->u8[0]);                                                \
    }
#define COMPARE_WITH(MASK, NAME, T, EXPR)                                                     \
    MASK(NAME, T, EXPR)                                                                       \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        EMU_PRED(warp, op->d) = NAME##_mask(warp, op);                                        \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        emu_pred_write(warp, op->d, NAME##_mask(warp, op));                                   \
        return op + 1;                                                                        \
    }
#define COMPARE(NAME, T, EXPR)    COMPARE_WITH(COMPARE_MASK, NAME, T, EXPR)
#define COMPARE_16(NAME, T, EXPR) COMPARE_WITH(LANES_MASK, NAME, T, EXPR)
COMPARE_16(eq_16, uint16_t, x == y)
COMPARE(eq_32, uint32_t, x == y)
COMPARE(eq_64, uint64_t, x == y)
COMPARE_16(lt_u16, uint16_t, x < y)
COMPARE(lt_u32, uint32_t, x < y)
COMPARE(lt_u64, uint64_t, x < y)
COMPARE_16(lt_s16, int16_t, x < y)
COMPARE(lt_s32, int32_t, x < y)
COMPARE(lt_s64, int64_t, x < y)
COMPARE(eq_f32, float, x == y)
COMPARE(ne_f32, float, (x < y) | (x > y))
COMPARE(lt_f32, float, x < y)
COMPARE(le_f32, float, x <= y)
COMPARE(num_f32, float, (x == x) & (y == y))
COMPARE(eq_f64, double, x == y)
COMPARE(ne_f64, double, (x < y) | (x > y))
COMPARE(lt_f64, double, x < y)
COMPARE(le_f64, double, x <= y)
COMPARE(num_f64, double, (x == x) & (y == y))
#undef COMPARE
#undef COMPARE_16
#undef COMPARE_WITH
#undef COMPARE_MASK
#undef LANES_MASK
#undef SIGNS

enum relation { EQ, NE, LT, LE, NUM };
struct comparison {
    enum ptx_mod mod;
    enum relation relation;
    bool exchanged, inverted;
};

/* Of ordered types; NUM is never asked of integers. */
static const struct comparison comparisons[] = {
    {PTX_MOD_EQ, EQ, false, false}, {PTX_MOD_NE, NE, false, false},   {PTX_MOD_LT, LT, false, false},
    {PTX_MOD_LE, LE, false, false}, {PTX_MOD_GT, LT, true, false},    {PTX_MOD_GE, LE, true, false},
    {PTX_MOD_LO, LT, false, false}, {PTX_MOD_LS, LE, false, false},   {PTX_MOD_HI, LT, true, false},
    {PTX_MOD_HS, LE, true, false},  {PTX_MOD_EQU, NE, false, true},   {PTX_MOD_NEU, EQ, false, true},
    {PTX_MOD_LTU, LE, true, true},  {PTX_MOD_LEU, LT, true, true},    {PTX_MOD_GTU, LE, false, true},
    {PTX_MOD_GEU, LT, false, true}, {PTX_MOD_NUM, NUM, false, false}, {PTX_MOD_CMP_NAN, NUM, false, true}};

static struct comparison comparison_of(const struct ptx_insn *insn)
{
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (ptx_has(insn, comparisons[i].mod))
            return comparisons[i];
    return comparisons[0];
}

/* Pushes mask word p = a <relation> b. */
static void compare(struct emu_emit *emit, struct comparison comparison, enum ptx_type type, uint32_t p,
                    uint32_t a, uint32_t b)
{
    static const struct emu_pair floats[2][5] = {
        {EMU_PAIR(eq_f32), EMU_PAIR(ne_f32), EMU_PAIR(lt_f32), EMU_PAIR(le_f32), EMU_PAIR(num_f32)},
        {EMU_PAIR(eq_f64), EMU_PAIR(ne_f64), EMU_PAIR(lt_f64), EMU_PAIR(le_f64), EMU_PAIR(num_f64)}};
    static const struct emu_pair equal[4] = {EMU_NO_PAIR, EMU_PAIR(eq_16), EMU_PAIR(eq_32), EMU_PAIR(eq_64)};
    static const struct emu_pair less[2][4] = {
        {EMU_NO_PAIR, EMU_PAIR(lt_u16), EMU_PAIR(lt_u32), EMU_PAIR(lt_u64)},
        {EMU_NO_PAIR, EMU_PAIR(lt_s16), EMU_PAIR(lt_s32), EMU_PAIR(lt_s64)}};
    struct emu_pair pair;
    if (ptx_types[type].class == PTX_CLASS_FLOAT) {
        pair = floats[type == PTX_F64][comparison.relation];
    } else if (comparison.relation == EQ || comparison.relation == NE) {
        pair = equal[emu_size_index(type)];
        comparison.inverted ^= comparison.relation == NE;
    } else {
        /* a <= b is not b < a. */
        pair = less[emu_is_signed(type)][emu_size_index(type)];
        comparison.exchanged ^= comparison.relation == LE;
        comparison.inverted ^= comparison.relation == LE;
    }
    struct emu_op *op =
        emu_push_pair(emit, pair, p, comparison.exchanged ? b : a, comparison.exchanged ? a : b, EMU_NO_ROW);
    op->u8[0] = comparison.inverted;
}

/* --- setp's second half: p = a BoolOp c, q = b BoolOp c, written together because either may be the guard or
   c. imm: low word q (EMU_NO_ROW none), high word c (EMU_NO_ROW none). u8[0]: BoolOp; u8[1]: q is from not b.
 */
enum bool_op { AND, OR, XOR };

static inline uint32_t combine(uint32_t mask, uint32_t c, unsigned bool_op)
{
    return bool_op == AND ? mask & c : bool_op == OR ? mask | c : mask ^ c;
}

static const struct emu_op *setp_finish(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t q_word = (uint32_t)op->imm, c_word = (uint32_t)(op->imm >> 32);
    uint32_t p = EMU_PRED(warp, op->a), q = EMU_PRED(warp, op->b);
    if (op->u8[1])
        q = ~q;
    if (c_word != EMU_NO_ROW) {
        const uint32_t c = EMU_PRED(warp, c_word);
        p = combine(p, c, op->u8[0]);
        q = combine(q, c, op->u8[0]);
    }
    emu_pred_write(warp, op->d, p);
    if (q_word != EMU_NO_ROW)
        emu_pred_write(warp, q_word, q);
    return op + 1;
}

static enum bool_op bool_op_of(const struct ptx_insn *insn)
{
    return ptx_has(insn, PTX_MOD_OR) ? OR : ptx_has(insn, PTX_MOD_XOR) ? XOR : AND;
}

/* Operands p{|q}, a, b{, c}. low, high: the masks that p and q come from (the same: q is the inverse). */
static clab_status finish(struct emu_emit *emit, const struct ptx_insn *insn, uint32_t low, uint32_t high)
{
    const struct ptx_operand *to = &insn->operands[0];
    const bool paired = to->kind == PTX_OPERAND_PAIR;
    const uint32_t c = insn->n_operands > 3 ? emu_pred_source(emit, &insn->operands[3]) : EMU_NO_ROW;
    const uint32_t p = emu_pred_dest(emit, paired ? &to->elements[0] : to);
    const uint32_t q = paired ? emu_pred_dest(emit, &to->elements[1]) : EMU_NO_ROW;
    struct emu_op *op = emu_push(emit, setp_finish, setp_finish);
    op->d = p;
    op->a = low;
    op->b = high;
    op->imm = (uint64_t)c << 32 | q;
    op->u8[0] = (uint8_t)bool_op_of(insn);
    op->u8[1] = low == high;
    return CLAB_OK;
}

EMU_UNARY(ftz_f32, float, float, emu_ftz(x))
EMU_UNARY(widen_f16, float, uint16_t, emu_f16_to_f32(x))
EMU_UNARY(widen_bf16, float, uint16_t, emu_bf16_to_f32(x))
EMU_UNARY(widen_f16_low, float, uint32_t, emu_f16_to_f32(x & 0xffff))
EMU_UNARY(widen_f16_high, float, uint32_t, emu_f16_to_f32(x >> 16))
EMU_UNARY(widen_bf16_low, float, uint32_t, emu_bf16_to_f32(x & 0xffff))
EMU_UNARY(widen_bf16_high, float, uint32_t, emu_bf16_to_f32(x >> 16))
/* .ftz on f16, before it is widened. */
static inline uint32_t ftz_half(uint32_t h)
{
    return h & 0x7c00 ? h : h & 0x8000;
}
EMU_UNARY(ftz_f16, uint16_t, uint16_t, ftz_half(x))
EMU_UNARY(ftz_f16x2, uint32_t, uint32_t, ftz_half(x & 0xffff) | ftz_half(x >> 16) << 16)

static uint32_t through(struct emu_emit *emit, struct emu_pair pair, enum ptx_type to, uint32_t row)
{
    const uint32_t r = emu_scratch(emit, to);
    emu_push_pair(emit, pair, r, row, EMU_NO_ROW, EMU_NO_ROW);
    return r;
}

/* Operand k as a row that compare can take, and as a second one for the high half of a pair. */
static void comparable(struct emu_emit *emit, const struct ptx_insn *insn, unsigned k, enum ptx_type type,
                       uint32_t *out_row, uint32_t *out_high)
{
    uint32_t row = emu_source(emit, &insn->operands[k], type);
    const bool ftz = ptx_has(insn, PTX_MOD_FTZ);
    switch (type) {
    case PTX_F16:
        if (ftz)
            row = through(emit, (struct emu_pair)EMU_PAIR(ftz_f16), PTX_F16, row);
        row = through(emit, (struct emu_pair)EMU_PAIR(widen_f16), PTX_F32, row);
        break;
    case PTX_BF16:
        row = through(emit, (struct emu_pair)EMU_PAIR(widen_bf16), PTX_F32, row);
        break;
    case PTX_F16X2:
        if (ftz)
            row = through(emit, (struct emu_pair)EMU_PAIR(ftz_f16x2), PTX_F16X2, row);
        *out_high = through(emit, (struct emu_pair)EMU_PAIR(widen_f16_high), PTX_F32, row);
        row = through(emit, (struct emu_pair)EMU_PAIR(widen_f16_low), PTX_F32, row);
        break;
    case PTX_BF16X2:
        *out_high = through(emit, (struct emu_pair)EMU_PAIR(widen_bf16_high), PTX_F32, row);
        row = through(emit, (struct emu_pair)EMU_PAIR(widen_bf16_low), PTX_F32, row);
        break;
    case PTX_F32:
        if (ftz)
            row = through(emit, (struct emu_pair)EMU_PAIR(ftz_f32), PTX_F32, row);
        break;
    default:
        break;
    }
    *out_row = row;
}

static bool is_pair_type(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

/* The type in which operands of `type` are compared. */
static enum ptx_type compared_as(enum ptx_type type)
{
    switch (type) {
    case PTX_F16:
    case PTX_BF16:
    case PTX_F16X2:
    case PTX_BF16X2:
        return PTX_F32;
    default:
        return type;
    }
}

static clab_status setp(struct emu_emit *emit, const struct ptx_insn *insn)
{
    const enum ptx_type type = emu_last_type(insn);
    const struct comparison comparison = comparison_of(insn);
    uint32_t a, b, a_high = 0, b_high = 0;
    comparable(emit, insn, 1, type, &a, &a_high);
    comparable(emit, insn, 2, type, &b, &b_high);
    if (insn->n_operands == 3 && insn->operands[0].kind != PTX_OPERAND_PAIR) {
        compare(emit, comparison, compared_as(type), emu_pred_dest(emit, &insn->operands[0]), a, b);
        return CLAB_OK;
    }
    const uint32_t low = emu_scratch_pred(emit);
    compare(emit, comparison, compared_as(type), low, a, b);
    uint32_t high = low;
    if (is_pair_type(type)) {
        high = emu_scratch_pred(emit);
        compare(emit, comparison, PTX_F32, high, a_high, b_high);
    }
    return finish(emit, insn, low, high);
}

EMU_EMITTER(emu_setp_int)
{
    return setp(emit, insn);
}

EMU_EMITTER(emu_setp_float)
{
    return setp(emit, insn);
}

EMU_EMITTER(emu_setp_half)
{
    return setp(emit, insn);
}

/* --- selection by a predicate word (op->c): selp; and set's result, all lanes of whose rows are constants.
 */
#define SELECT(NAME, T)                                                                       \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        T *d = EMU_ROW(T, warp, op->d);                                                       \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);                   \
        const uint32_t p = EMU_PRED(warp, op->c);                                             \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const T x = a[i], y = b[i];                                                       \
            d[i] = p & emu_lane_bit[i] ? x : y;                                               \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        T *d = EMU_ROW(T, warp, op->d);                                                       \
        const T *a = EMU_ROW(T, warp, op->a), *b = EMU_ROW(T, warp, op->b);                   \
        const uint32_t p = EMU_PRED(warp, op->c);                                             \
        const uint32_t *on = warp->lane_mask;                                                 \
        EMU_EACH_LANE(i)                                                                      \
        {                                                                                     \
            const T x = a[i], y = b[i];                                                       \
            const T r = p & emu_lane_bit[i] ? x : y;                                          \
            d[i] = on[i] ? r : d[i];                                                          \
        }                                                                                     \
        return op + 1;                                                                        \
    }
SELECT(select_16, uint16_t)
SELECT(select_32, uint32_t)
SELECT(select_64, uint64_t)
#undef SELECT

static const struct emu_pair selects[] = {EMU_NO_PAIR, EMU_PAIR(select_16), EMU_PAIR(select_32),
                                          EMU_PAIR(select_64)};

EMU_EMITTER(emu_selp)
{
    const enum ptx_type type = emu_last_type(insn);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    const uint32_t p = emu_pred_source(emit, &insn->operands[3]);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    emu_push_pair(emit, selects[emu_size_index(type)], d, a, b, p);
    return CLAB_OK;
}

/* --- set: all ones or 1.0 where the comparison (BoolOp c) holds, else 0. Types: result, then operands. */
static uint64_t true_value(enum ptx_type type)
{
    switch (type) {
    case PTX_F32:
        return UINT64_C(0x3f800000);
    case PTX_F16:
        return 0x3c00;
    case PTX_BF16:
        return 0x3f80;
    default:
        return UINT64_MAX;
    }
}

/* {!}c of the set instructions, combined with each mask into a new scratch word. */
static uint32_t with_bool_op(struct emu_emit *emit, const struct ptx_insn *insn, uint32_t mask)
{
    if (insn->n_operands < 4)
        return mask;
    const uint32_t c = emu_pred_source(emit, &insn->operands[3]);
    const uint32_t r = emu_scratch_pred(emit);
    struct emu_op *op = emu_push(emit, setp_finish, setp_finish);
    op->d = r;
    op->a = op->b = mask;
    op->imm = (uint64_t)c << 32 | EMU_NO_ROW;
    op->u8[0] = (uint8_t)bool_op_of(insn);
    return r;
}

/* Both halves: op->imm or 0 each, by the predicate words a (low) and b (high). */
static const struct emu_op *pack_halves(struct emu_warp *warp, const struct emu_op *op)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t low = EMU_PRED(warp, op->a), high = EMU_PRED(warp, op->b);
    const uint32_t one = (uint32_t)op->imm;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint32_t r = (low >> i & 1 ? one : 0) | (high >> i & 1 ? one << 16 : 0);
        d[i] = warp->exec >> i & 1 ? r : d[i];
    }
    return op + 1;
}

static clab_status set(struct emu_emit *emit, const struct ptx_insn *insn)
{
    const enum ptx_type to = emu_type(insn, 0), type = emu_type(insn, 1);
    const struct comparison comparison = comparison_of(insn);
    uint32_t a, b, a_high = 0, b_high = 0;
    comparable(emit, insn, 1, type, &a, &a_high);
    comparable(emit, insn, 2, type, &b, &b_high);
    uint32_t mask = emu_scratch_pred(emit);
    compare(emit, comparison, compared_as(type), mask, a, b);
    mask = with_bool_op(emit, insn, mask);
    if (!is_pair_type(type)) {
        const uint32_t one = emu_constant(emit, to, true_value(to)), zero = emu_constant(emit, to, 0);
        const uint32_t d = emu_dest(emit, &insn->operands[0], to);
        emu_push_pair(emit, selects[emu_size_index(to)], d, one, zero, mask);
        return CLAB_OK;
    }
    /* Halves side by side: 1.0 each for a float result, ffff for .u32 and .s32. */
    uint32_t high = emu_scratch_pred(emit);
    compare(emit, comparison, PTX_F32, high, a_high, b_high);
    high = with_bool_op(emit, insn, high);
    const uint32_t d = emu_dest(emit, &insn->operands[0], to);
    struct emu_op *op = emu_push(emit, pack_halves, pack_halves);
    op->d = d;
    op->a = mask;
    op->b = high;
    op->imm = to == PTX_F16X2 ? 0x3c00 : to == PTX_BF16X2 ? 0x3f80 : 0xffff;
    return CLAB_OK;
}

EMU_EMITTER(emu_set)
{
    return set(emit, insn);
}

EMU_EMITTER(emu_set_half)
{
    return set(emit, insn);
}

/* --- slct: a where c >= 0 (-0 is; NaN is not), else b. */
EMU_TERNARY(slct_s32_16, uint16_t, uint16_t, uint16_t, int32_t, z >= 0 ? x : y)
EMU_TERNARY(slct_s32_32, uint32_t, uint32_t, uint32_t, int32_t, z >= 0 ? x : y)
EMU_TERNARY(slct_s32_64, uint64_t, uint64_t, uint64_t, int32_t, z >= 0 ? x : y)
EMU_TERNARY(slct_f32_16, uint16_t, uint16_t, uint16_t, float, z >= 0 ? x : y)
EMU_TERNARY(slct_f32_32, uint32_t, uint32_t, uint32_t, float, z >= 0 ? x : y)
EMU_TERNARY(slct_f32_64, uint64_t, uint64_t, uint64_t, float, z >= 0 ? x : y)

EMU_EMITTER(emu_slct)
{
    static const struct emu_pair pairs[2][4] = {
        {EMU_NO_PAIR, EMU_PAIR(slct_s32_16), EMU_PAIR(slct_s32_32), EMU_PAIR(slct_s32_64)},
        {EMU_NO_PAIR, EMU_PAIR(slct_f32_16), EMU_PAIR(slct_f32_32), EMU_PAIR(slct_f32_64)}};
    const enum ptx_type type = emu_type(insn, 0), selector = emu_type(insn, 1);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    const uint32_t b = emu_source(emit, &insn->operands[2], type);
    uint32_t c = emu_source(emit, &insn->operands[3], selector);
    if (ptx_has(insn, PTX_MOD_FTZ))
        c = through(emit, (struct emu_pair)EMU_PAIR(ftz_f32), PTX_F32, c);
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    emu_push_pair(emit, pairs[selector == PTX_F32][emu_size_index(type)], d, a, b, c);
    return CLAB_OK;
}
