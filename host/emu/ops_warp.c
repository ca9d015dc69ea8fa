/* shfl.sync, vote.sync, match.sync, redux.sync, elect.sync, activemask, bar.warp.sync. PTX ISA 9.0, 9.7.9.6
   and 9.7.13.2 to 9.7.13.12. Compiled per set. Leaves out: the forms without .sync, which no target here has.
 */
#include <string.h>

#include "emu/collective.h"
#include "emu/emitting.h"
#include "emu/hook.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Fields: a value row (or predicate word), b and c further rows, d destination, extra the member row and the
   second destination; u8[0] mode. */
struct collective {
    uint32_t members; /* row, or EMU_NO_ROW: mask */
    uint32_t mask;
    uint32_t pred; /* destination predicate word, or EMU_NO_ROW */
    /* shfl whose lanes all know their source while decoding: */
    uint32_t source[EMU_LANES];
    uint32_t inside;     /* lanes whose source is in range */
    uint32_t from[4][2]; /* of 8 lanes: the first of the 8 in which their sources are, and of another 8 … */
    uint32_t other[EMU_LANES]; /* … all ones for those that have it there */
};

enum mode {
    SHFL_UP,
    SHFL_DOWN,
    SHFL_BFLY,
    SHFL_IDX,
    VOTE_ALL,
    VOTE_ANY,
    VOTE_UNI,
    VOTE_BALLOT,
    MATCH_ANY,
    MATCH_ALL,
    REDUX_ADD,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR,
    REDUX_MIN_U,
    REDUX_MAX_U,
    REDUX_MIN_S,
    REDUX_MAX_S,
    REDUX_MIN_F, /* + 1 .abs, + 2 .NaN */
    REDUX_MAX_F = REDUX_MIN_F + 4,
    ELECT = REDUX_MAX_F + 4,
    WARP_SYNC
};

static const uint32_t *member_row(struct emu_warp *warp, const struct collective *x)
{
    return x->members == EMU_NO_ROW ? NULL : EMU_ROW(uint32_t, warp, x->members);
}

static void put_value(struct emu_warp *warp, uint32_t row, const struct emu_got *got)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, row);
    if (warp->exec == EMU_ALL) {
        memcpy(d, got->value, sizeof got->value);
        return;
    }
    const uint32_t *on = warp->lane_mask;
    EMU_EACH_LANE(i)
    {
        d[i] = on[i] ? got->value[i] : d[i];
    }
}

static void put_pred(struct emu_warp *warp, uint32_t word, uint32_t value)
{
    EMU_PRED(warp, word) = (EMU_PRED(warp, word) & ~warp->exec) | (value & warp->exec);
}

/* --- shfl.sync: lane arithmetic as the manual's pseudocode. A source lane that does not take part gives what
   its register holds (undefined in the manual). */
static void shfl_sources(uint8_t mode, const uint32_t *b, const uint32_t *c, uint32_t source[EMU_LANES],
                         uint32_t *out_inside)
{
    uint32_t inside[EMU_LANES], all = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        const uint32_t by = b[i] & 31, clamp = c[i] & 31, segment = c[i] >> 8 & 31;
        const uint32_t most = (i & segment) | (clamp & ~segment & 31), least = i & segment;
        const uint32_t j = mode == SHFL_UP     ? i - by
                           : mode == SHFL_DOWN ? i + by
                           : mode == SHFL_BFLY ? (i ^ by)
                                               : (least | (by & ~segment & 31));
        const uint32_t in_range = mode == SHFL_UP ? (int32_t)j >= (int32_t)most : (int32_t)j <= (int32_t)most;
        source[i] = (in_range ? j : i) & 31;
        inside[i] = in_range;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        all |= inside[i] << i;
    }
    *out_inside = all;
}

static void shfl_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                         struct emu_got *out)
{
    uint32_t source[EMU_LANES];
    (void)participants;
    shfl_sources(op->u8[0], in->b, in->c, source, &out->pred);
    for (unsigned i = 0; i < EMU_LANES; i++) {
        out->value[i] = in->a[source[i]];
    }
}

/* Lanes whose sources are known take them; d may be a. */
static void shfl_known(uint32_t *d, const uint32_t *a, const struct collective *x)
{
#if defined(__AVX512F__)
    const __m512i low = _mm512_loadu_si512(a), high = _mm512_loadu_si512(a + 16);
    const __m512i of_low = _mm512_loadu_si512(x->source), of_high = _mm512_loadu_si512(x->source + 16);
    _mm512_storeu_si512(d, _mm512_permutex2var_epi32(low, of_low, high));
    _mm512_storeu_si512(d + 16, _mm512_permutex2var_epi32(low, of_high, high));
#elif defined(__AVX2__)
    __m256i value[4];
    for (unsigned k = 0; k < 4; k++) {
        const __m256i source = _mm256_loadu_si256((const __m256i *)(const void *)(x->source + 8 * k));
        const __m256i other = _mm256_loadu_si256((const __m256i *)(const void *)(x->other + 8 * k));
        const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)(a + x->from[k][0]));
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(a + x->from[k][1]));
        value[k] = _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(first, source),
                                      _mm256_permutevar8x32_epi32(second, source), other);
    }
    for (unsigned k = 0; k < 4; k++) {
        _mm256_storeu_si256((__m256i *)(void *)(d + 8 * k), value[k]);
    }
#else
    uint32_t value[EMU_LANES];
    for (unsigned i = 0; i < EMU_LANES; i++) {
        value[i] = a[x->source[i]];
    }
    memcpy(d, value, sizeof value);
#endif
}

/* Finds the sources while decoding; false when that cannot be, or lanes of one eight have theirs in three. */
static bool shfl_know(struct collective *x, uint8_t mode, const struct ptx_operand *b,
                      const struct ptx_operand *c)
{
    uint32_t by[EMU_LANES], clamp[EMU_LANES];
    if (!x || x->members != EMU_NO_ROW || b->kind != PTX_OPERAND_INT || c->kind != PTX_OPERAND_INT) {
        return false;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        by[i] = (uint32_t)b->imm;
        clamp[i] = (uint32_t)c->imm;
    }
    shfl_sources(mode, by, clamp, x->source, &x->inside);
    for (unsigned k = 0; k < 4; k++) {
        const uint32_t *source = x->source + (size_t)8 * k;
        x->from[k][0] = x->from[k][1] = source[0] / 8 * 8;
        for (unsigned i = 0; i < 8; i++) {
            if (source[i] / 8 * 8 != x->from[k][0]) {
                if (x->from[k][1] != x->from[k][0] && x->from[k][1] != source[i] / 8 * 8) {
                    return false;
                }
                x->from[k][1] = source[i] / 8 * 8;
                x->other[8 * k + i] = EMU_ALL;
            }
        }
    }
    return true;
}

static const struct emu_op *shfl(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    const struct emu_brought in = {.a = EMU_ROW(uint32_t, warp, op->a),
                                   .b = EMU_ROW(uint32_t, warp, op->b),
                                   .c = EMU_ROW(uint32_t, warp, op->c)};
    struct emu_got got;
    if (!emu_collective(warp, op, member_row(warp, x), x->mask, &in, shfl_compute, &got)) {
        return NULL;
    }
    put_value(warp, op->d, &got);
    if (x->pred != EMU_NO_ROW) {
        put_pred(warp, x->pred, got.pred);
    }
    return op + 1;
}

/* The most frequent shuffle: sources known, all 32 lanes together. */
static const struct emu_op *shfl_whole(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    if (warp->fragment->wake != EMU_WAKE_NONE) { /* some of the lanes were waited for: the value is there */
        return shfl(warp, op);
    }
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_COLLECTIVE, .lanes = EMU_ALL, .value = x->mask});
    shfl_known(EMU_ROW(uint32_t, warp, op->d), EMU_ROW(uint32_t, warp, op->a), x);
    if (x->pred != EMU_NO_ROW) {
        EMU_PRED(warp, x->pred) = x->inside;
    }
    return op + 1;
}

static struct collective *members_of(struct emu_emit *emit, const struct ptx_operand *operand)
{
    struct collective *x = emu_emit_alloc(emit, sizeof *x);
    if (x) {
        const bool known = operand->kind == PTX_OPERAND_INT;
        *x = (struct collective){.members = known ? EMU_NO_ROW : emu_source(emit, operand, PTX_B32),
                                 .mask = known ? (uint32_t)operand->imm : 0,
                                 .pred = EMU_NO_ROW};
    }
    return x;
}

/* d or d|p */
static uint32_t pair_dest(struct emu_emit *emit, const struct ptx_operand *operand, struct collective *x)
{
    if (operand->kind != PTX_OPERAND_PAIR) {
        return emu_dest(emit, operand, PTX_B32);
    }
    if (x) {
        x->pred = emu_pred_dest(emit, &operand->elements[1]);
    }
    return emu_dest(emit, &operand->elements[0], PTX_B32);
}

EMU_EMITTER(emu_shfl)
{
    emu_guard_branch(emit);
    struct collective *x = members_of(emit, &insn->operands[4]);
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B32);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_U32);
    const uint32_t c = emu_source(emit, &insn->operands[3], PTX_U32);
    const uint32_t d = pair_dest(emit, &insn->operands[0], x);
    const uint8_t mode = ptx_has(insn, PTX_MOD_UP)     ? SHFL_UP
                         : ptx_has(insn, PTX_MOD_DOWN) ? SHFL_DOWN
                         : ptx_has(insn, PTX_MOD_BFLY) ? SHFL_BFLY
                                                       : SHFL_IDX;
    const bool known = shfl_know(x, mode, &insn->operands[2], &insn->operands[3]);
    struct emu_op *op = emu_push_unguarded(emit, known ? shfl_whole : shfl, shfl);
    op->a = a;
    op->b = b;
    op->c = c;
    op->d = d;
    op->extra = x;
    op->u8[0] = mode;
    return CLAB_OK;
}

/* --- vote.sync. What lanes bring is 0 or all ones. */
static void vote_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                         struct emu_got *out)
{
    uint32_t votes = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        votes |= in->a[i] ? UINT32_C(1) << i : 0;
    }
    votes &= participants;
    bool result = false;
    switch (op->u8[0]) {
    case VOTE_ALL:
        result = votes == participants;
        break;
    case VOTE_ANY:
        result = votes != 0;
        break;
    case VOTE_UNI:
        result = votes == 0 || votes == participants;
        break;
    default:
        break;
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        out->value[i] = votes;
    }
    out->pred = result ? EMU_ALL : 0;
}

static const struct emu_op *vote(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    const uint32_t word = EMU_PRED(warp, op->a);
    uint32_t brought[EMU_LANES];
    EMU_EACH_LANE(i)
    {
        brought[i] = word >> i & 1;
    }
    const struct emu_brought in = {.a = brought};
    struct emu_got got;
    if (!emu_collective(warp, op, member_row(warp, x), x->mask, &in, vote_compute, &got)) {
        return NULL;
    }
    if (op->u8[0] == VOTE_BALLOT) {
        put_value(warp, op->d, &got);
    } else {
        put_pred(warp, op->d, got.pred);
    }
    return op + 1;
}

/* All 32 lanes together, under a member mask known while decoding. */
static const struct emu_op *vote_whole(struct emu_warp *warp, const struct emu_op *op)
{

    const uint32_t votes = EMU_PRED(warp, op->a);
    if (warp->fragment->wake != EMU_WAKE_NONE) {
        return vote(warp, op);
    }
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_COLLECTIVE,
                                 .lanes = EMU_ALL,
                                 .value = ((const struct collective *)op->extra)->mask});
    if (op->u8[0] == VOTE_BALLOT) {
        uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
        EMU_EACH_LANE(i)
        {
            d[i] = votes;
        }
        return op + 1;
    }
    const bool all = votes == EMU_ALL, none = votes == 0;
    const bool result = op->u8[0] == VOTE_ALL ? all : op->u8[0] == VOTE_ANY ? !none : all || none;
    EMU_PRED(warp, op->d) = result ? EMU_ALL : 0;
    return op + 1;
}

EMU_EMITTER(emu_vote)
{
    emu_guard_branch(emit);
    const bool ballot = ptx_has(insn, PTX_MOD_BALLOT);
    struct collective *x = members_of(emit, &insn->operands[2]);
    const uint32_t a = emu_pred_source(emit, &insn->operands[1]);
    const uint32_t d =
        ballot ? emu_dest(emit, &insn->operands[0], PTX_B32) : emu_pred_dest(emit, &insn->operands[0]);
    const bool known = x && x->members == EMU_NO_ROW;
    struct emu_op *op = emu_push_unguarded(emit, known ? vote_whole : vote, vote);
    op->a = a;
    op->d = d;
    op->extra = x;
    op->u8[0] = ballot                       ? VOTE_BALLOT
                : ptx_has(insn, PTX_MOD_ALL) ? VOTE_ALL
                : ptx_has(insn, PTX_MOD_ANY) ? VOTE_ANY
                                             : VOTE_UNI;
    return CLAB_OK;
}

/* --- match.sync */
static void match_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                          struct emu_got *out)
{
    uint32_t same[EMU_LANES];
    for (unsigned i = 0; i < EMU_LANES; i++) {
        same[i] = 0;
        for (unsigned k = 0; k < EMU_LANES; k++) {
            const bool equal = in->a[i] == in->a[k] && in->a_high[i] == in->a_high[k];
            same[i] |= (equal && (participants >> k & 1)) ? UINT32_C(1) << k : 0;
        }
    }
    const bool all = same[__builtin_ctz(participants)] == participants;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        out->value[i] = op->u8[0] == MATCH_ANY ? same[i] : all ? participants : 0;
    }
    out->pred = all ? EMU_ALL : 0;
}

static const struct emu_op *match(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    uint32_t low[EMU_LANES], high[EMU_LANES];
    if (op->u8[1] == 8) {
        const uint64_t *a = EMU_ROW(uint64_t, warp, op->a);
        for (unsigned i = 0; i < EMU_LANES; i++) {
            low[i] = (uint32_t)a[i];
            high[i] = (uint32_t)(a[i] >> 32);
        }
    } else {
        memcpy(low, EMU_ROW(uint32_t, warp, op->a), sizeof low);
        memset(high, 0, sizeof high);
    }
    const struct emu_brought in = {.a = low, .a_high = high};
    struct emu_got got;
    if (!emu_collective(warp, op, member_row(warp, x), x->mask, &in, match_compute, &got)) {
        return NULL;
    }
    put_value(warp, op->d, &got);
    if (x->pred != EMU_NO_ROW) {
        put_pred(warp, x->pred, got.pred);
    }
    return op + 1;
}

EMU_EMITTER(emu_match)
{
    emu_guard_branch(emit);
    struct collective *x = members_of(emit, &insn->operands[2]);
    const uint32_t a = emu_source(emit, &insn->operands[1], insn->types[0]);
    const uint32_t d = pair_dest(emit, &insn->operands[0], x);
    struct emu_op *op = emu_push_unguarded(emit, match, match);
    op->a = a;
    op->d = d;
    op->extra = x;
    op->u8[0] = ptx_has(insn, PTX_MOD_ANY) ? MATCH_ANY : MATCH_ALL;
    op->u8[1] = (uint8_t)emu_lane_bytes(insn->types[0]);
    return CLAB_OK;
}

/* --- redux.sync */
static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* min and max of f32: without .NaN a NaN loses against a number, with it any NaN gives the canonical NaN; +0
 * > -0. */
static uint32_t redux_float(uint32_t x, uint32_t y, bool max, bool nan)
{
    const bool x_nan = (x & 0x7fffffff) > 0x7f800000, y_nan = (y & 0x7fffffff) > 0x7f800000;
    if (x_nan || y_nan) {
        return (nan || (x_nan && y_nan)) ? UINT32_C(0x7fffffff) : x_nan ? y : x;
    }
    const float a = as_float(x), b = as_float(y);
    const bool x_less = a < b || (a == b && (x >> 31) > (y >> 31));
    return x_less != max ? x : y;
}

static uint32_t redux_two(uint8_t mode, uint32_t x, uint32_t y)
{
    switch (mode) {
    case REDUX_ADD:
        return x + y;
    case REDUX_AND:
        return x & y;
    case REDUX_OR:
        return x | y;
    case REDUX_XOR:
        return x ^ y;
    case REDUX_MIN_U:
        return x < y ? x : y;
    case REDUX_MAX_U:
        return x > y ? x : y;
    case REDUX_MIN_S:
        return (int32_t)x < (int32_t)y ? x : y;
    case REDUX_MAX_S:
        return (int32_t)x > (int32_t)y ? x : y;
    default:
        return redux_float(x, y, mode >= REDUX_MAX_F, (mode - REDUX_MIN_F) & 2);
    }
}

static void redux_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                          struct emu_got *out)
{
    const uint8_t mode = op->u8[0];
    const bool is_float = mode >= REDUX_MIN_F, magnitude = is_float && ((mode - REDUX_MIN_F) & 1);
    const uint32_t keep = magnitude ? UINT32_C(0x7fffffff) : EMU_ALL;
    uint32_t left = participants;
    uint32_t value = in->a[__builtin_ctz(left)] & keep;
    if (is_float && (value & 0x7fffffff) > 0x7f800000) {
        value = UINT32_C(0x7fffffff);
    }
    for (left &= left - 1; left; left &= left - 1) {
        value = redux_two(mode, value, in->a[__builtin_ctz(left)] & keep);
    }
    for (unsigned i = 0; i < EMU_LANES; i++) {
        out->value[i] = value;
    }
    out->pred = 0;
}

static const struct emu_op *redux(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    const struct emu_brought in = {.a = EMU_ROW(uint32_t, warp, op->a)};
    struct emu_got got;
    if (!emu_collective(warp, op, member_row(warp, x), x->mask, &in, redux_compute, &got)) {
        return NULL;
    }
    put_value(warp, op->d, &got);
    return op + 1;
}

static uint8_t redux_mode(const struct ptx_insn *insn)
{
    const bool is_signed = insn->types[0] == PTX_S32;
    if (insn->types[0] == PTX_F32) {
        return (uint8_t)((ptx_has(insn, PTX_MOD_MAX) ? REDUX_MAX_F : REDUX_MIN_F) +
                         (ptx_has(insn, PTX_MOD_ABS) ? 1 : 0) + (ptx_has(insn, PTX_MOD_NAN) ? 2 : 0));
    }
    return ptx_has(insn, PTX_MOD_ADD)   ? REDUX_ADD
           : ptx_has(insn, PTX_MOD_AND) ? REDUX_AND
           : ptx_has(insn, PTX_MOD_OR)  ? REDUX_OR
           : ptx_has(insn, PTX_MOD_XOR) ? REDUX_XOR
           : ptx_has(insn, PTX_MOD_MIN) ? (is_signed ? REDUX_MIN_S : REDUX_MIN_U)
                                        : (is_signed ? REDUX_MAX_S : REDUX_MAX_U);
}

/* redux.sync.f32 is UNVERIFIED (PTX ISA, "redux.sync"): no GPU of its targets was at hand. */
EMU_EMITTER(emu_redux)
{
    emu_guard_branch(emit);
    struct collective *x = members_of(emit, &insn->operands[2]);
    const uint32_t a = emu_source(emit, &insn->operands[1], insn->types[0]);
    const uint32_t d = emu_dest(emit, &insn->operands[0], insn->types[0]);
    struct emu_op *op = emu_push_unguarded(emit, redux, redux);
    op->a = a;
    op->d = d;
    op->extra = x;
    op->u8[0] = redux_mode(insn);
    return CLAB_OK;
}

/* --- elect.sync: the lowest live lane of the mask, as an H200 does for a full mask (driver 13.0,
 * 2026-11-30). */
static void elect_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                          struct emu_got *out)
{
    (void)op;
    (void)in;
    const uint32_t leader = (uint32_t)__builtin_ctz(participants);
    for (unsigned i = 0; i < EMU_LANES; i++) {
        out->value[i] = leader;
    }
    out->pred = UINT32_C(1) << leader;
}

static const struct emu_op *elect(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    const struct emu_brought in = {.a = NULL};
    struct emu_got got;
    if (!emu_collective(warp, op, member_row(warp, x), x->mask, &in, elect_compute, &got)) {
        return NULL;
    }
    put_value(warp, op->d, &got);
    if (x->pred != EMU_NO_ROW) {
        put_pred(warp, x->pred, got.pred);
    }
    return op + 1;
}

EMU_EMITTER(emu_elect)
{
    emu_guard_branch(emit);
    struct collective *x = members_of(emit, &insn->operands[1]);
    const uint32_t d = pair_dest(emit, &insn->operands[0], x);
    struct emu_op *op = emu_push_unguarded(emit, elect, elect);
    op->d = d;
    op->extra = x;
    op->u8[0] = ELECT;
    return CLAB_OK;
}

/* --- bar.warp.sync: nothing but the meeting. */
static void sync_compute(const struct emu_op *op, const struct emu_brought *in, uint32_t participants,
                         struct emu_got *out)
{
    (void)op;
    (void)in;
    (void)participants;
    memset(out, 0, sizeof *out);
}

static const struct emu_op *warp_sync(struct emu_warp *warp, const struct emu_op *op)
{
    const struct collective *x = op->extra;
    if (!EMU_HOOKS && x->members == EMU_NO_ROW && (x->mask & warp->live & ~warp->exec) == 0) {
        return op + 1;
    }
    const struct emu_brought in = {.a = NULL};
    struct emu_got got;
    return emu_collective(warp, op, member_row(warp, x), x->mask, &in, sync_compute, &got) ? op + 1 : NULL;
}

EMU_EMITTER(emu_bar_warp_sync)
{
    emu_guard_branch(emit);
    struct collective *x = members_of(emit, &insn->operands[0]);
    struct emu_op *op = emu_push_unguarded(emit, warp_sync, warp_sync);
    op->extra = x;
    op->u8[0] = WARP_SYNC;
    return CLAB_OK;
}

/* --- activemask: the lanes that execute together now. */
static const struct emu_op *activemask(struct emu_warp *warp, const struct emu_op *op)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t exec = warp->exec;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        d[i] = exec >> i & 1 ? exec : d[i];
    }
    return op + 1;
}

EMU_EMITTER(emu_activemask)
{
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op = emu_push(emit, activemask, activemask);
    op->d = d;
    return CLAB_OK;
}
