/* The video instructions. PTX ISA 9.0, "Video Instructions": scalar (vadd, vsub, vabsdiff, vmin, vmax, vshl,
   vshr, vmad, vset) and SIMD ones of two halves or four bytes (vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2,
   vset2 and their fours).

   Parts are selected and extended, the operation gives a wider result, which is saturated, then combined with
   c or merged into it, as in the manual's pseudo code. No recent GPU has the scalar ones; where the driver's
   compiler (13.0, on an H200: tests/conformance/video.forms) departs from the manual, this file goes with it:
   - .sat of vadd, vsub and vabsdiff to .u32 has no upper limit: the sum wraps;
   - .sat of a merged part: shifts are limited to 32 bits only; of the others a negative result, too, becomes
     the part's largest number;
   - merging into .h1 takes the upper half of the result;
   - .min and .max compare, in 64 bits, sums and saturated shifts as numbers of 32 bits with a sign, others as
   they are; to .u32 without a sign; with vset by a's type;
   - vmad multiplies, and extends c, as if all were .s32 (parts of .u32 are zero-extended). */
#include "emu/alu.h"

enum operation { ADD, SUB, ABSDIFF, MIN, MAX, SHL, SHR, SET, AVERAGE, MAD };
enum second { NO_SECOND, SECOND_ADD, SECOND_MIN, SECOND_MAX };
enum compare { EQ, NE, LT, LE, GT, GE };

struct video {
    enum operation operation;
    enum second second;
    enum compare compare;
    bool a_signed, b_signed, d_signed;
    bool saturates, clamps;              /* clamps: .clamp, else .wrap */
    bool merges;                         /* scalar: into c */
    uint8_t a_part, b_part, d_part;      /* scalar: PTX_SELECT_*, PTX_COMPONENT_NONE */
    bool negates_product, negates_c, po; /* vmad */
    uint8_t shift;                       /* vmad */
    unsigned count;                      /* SIMD: elements, 2 or 4 */
    uint8_t a_pick[4], b_pick[4];        /* SIMD: element of {b, a}, by element of the result */
    uint8_t mask;                        /* SIMD */
};

static int64_t extended(uint32_t x, unsigned bits, bool is_signed)
{
    const uint32_t low = bits == 32 ? x : x & ((UINT32_C(1) << bits) - 1);
    if (is_signed && low >> (bits - 1) & 1)
        return (int64_t)low - (INT64_C(1) << bits);
    return (int64_t)low;
}

static unsigned part_bits(uint8_t part)
{
    return part == PTX_COMPONENT_NONE ? 32 : part >= PTX_SELECT_H0 ? 16 : 8;
}

static unsigned part_shift(uint8_t part)
{
    return part == PTX_COMPONENT_NONE ? 0
           : part >= PTX_SELECT_H0    ? 16u * (part - PTX_SELECT_H0)
                                      : 8u * (part - PTX_SELECT_B0);
}

static int64_t part_of(uint32_t x, uint8_t part, bool is_signed)
{
    return extended(x >> part_shift(part), part_bits(part), is_signed);
}

static int64_t clamped(int64_t x, unsigned bits, bool is_signed)
{
    const int64_t top = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    const int64_t bottom = is_signed ? -top - 1 : 0;
    return x < bottom ? bottom : x > top ? top : x;
}

static bool compared(enum compare how, int64_t a, int64_t b)
{
    switch (how) {
    case EQ:
        return a == b;
    case NE:
        return a != b;
    case LT:
        return a < b;
    case LE:
        return a <= b;
    case GT:
        return a > b;
    default:
        return a >= b;
    }
}

static int64_t operated(const struct video *x, int64_t a, int64_t b)
{
    switch (x->operation) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case ABSDIFF:
        return a < b ? b - a : a - b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a < b ? b : a;
    case SHL:
    case SHR: {
        const unsigned by = x->clamps ? (unsigned)(b > 32 ? 32 : b) : (unsigned)b & 31;
        return x->operation == SHL ? (int64_t)((uint64_t)a << by) : a >> by;
    }
    case AVERAGE:
        return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    default:
        return compared(x->compare, a, b);
    }
}

/* .sat of the scalar instructions other than vmad. */
static int64_t saturated(const struct video *x, int64_t t, unsigned bits)
{
    const bool shifts = x->operation == SHL || x->operation == SHR;
    if (shifts) /* 34 bits */
        return clamped((int64_t)((uint64_t)t << 30) >> 30, 32, x->d_signed);
    const bool sums = x->operation == ADD || x->operation == SUB || x->operation == ABSDIFF;
    if (bits == 32)
        return sums && !x->d_signed ? (t < 0 ? 0 : t) : clamped(t, 32, x->d_signed);
    return t < 0 ? clamped(INT64_MAX, bits, x->d_signed) : clamped(t, bits, x->d_signed);
}

static uint32_t scalar(const struct video *x, uint32_t a, uint32_t b, uint32_t c)
{
    int64_t t = operated(x, part_of(a, x->a_part, x->a_signed), part_of(b, x->b_part, x->b_signed));
    const unsigned bits = part_bits(x->d_part), shift = part_shift(x->d_part);
    if (x->saturates)
        t = saturated(x, t, bits);
    if (x->merges) {
        const uint32_t mask = ((UINT32_C(1) << bits) - 1) << shift;
        const uint32_t placed = x->d_part == PTX_SELECT_H1 ? (uint32_t)t : (uint32_t)t << shift;
        return (placed & mask) | (c & ~mask);
    }
    const bool as_signed = x->operation == SET ? x->a_signed : x->d_signed;
    const bool shifts = x->operation == SHL || x->operation == SHR;
    const bool narrow = x->operation == ADD || x->operation == SUB || (shifts && x->saturates);
    const int64_t one = narrow ? extended((uint32_t)t, 32, true) : t, other = extended(c, 32, as_signed);
    const bool less = as_signed ? one < other : (uint64_t)one < (uint64_t)other;
    switch (x->second) {
    case SECOND_ADD:
        return (uint32_t)t + c;
    case SECOND_MIN:
        return less ? (uint32_t)t : c;
    case SECOND_MAX:
        return less ? c : (uint32_t)t;
    default:
        return (uint32_t)t;
    }
}

/* (a * b) + c of vmad, the product or c negated, shifted. Its signs decide, not those of the result. */
static uint32_t multiplied(const struct video *x, uint32_t a, uint32_t b, uint32_t c)
{
    const bool is_signed = x->a_signed || x->b_signed || x->negates_product || x->negates_c;
    const int64_t af = (int32_t)part_of(a, x->a_part, x->a_signed);
    const int64_t bf = (int32_t)part_of(b, x->b_part, x->b_signed);
    const int64_t cf = extended(x->negates_c ? ~c : c, 32, true);
    const uint64_t product = (uint64_t)(x->negates_product ? ~(af * bf) : af * bf);
    const uint64_t sum = product + (uint64_t)cf + (x->po || x->negates_product || x->negates_c);
    const int64_t t = is_signed ? (int64_t)sum >> x->shift : (int64_t)(sum >> x->shift);
    return (uint32_t)(x->saturates ? clamped(t, 32, is_signed) : t);
}

static uint32_t simd(const struct video *x, uint32_t a, uint32_t b, uint32_t c)
{
    const unsigned bits = 32 / x->count;
    const uint32_t element = (UINT32_C(1) << bits) - 1;
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t d = x->second ? c : 0;
    for (unsigned i = 0; i < x->count; i++) {
        int64_t t = operated(x, extended((uint32_t)(both >> bits * x->a_pick[i]), bits, x->a_signed),
                             extended((uint32_t)(both >> bits * x->b_pick[i]), bits, x->b_signed));
        if (x->saturates)
            t = clamped(t, bits, x->d_signed);
        const bool on = x->mask >> i & 1;
        if (x->second)
            d += on ? (uint32_t)t : 0;
        else
            d |= (on ? (uint32_t)t & element : c >> bits * i & element) << bits * i;
    }
    return d;
}

typedef uint32_t video_lane(const struct video *x, uint32_t a, uint32_t b, uint32_t c);

static inline const struct emu_op *each_lane(struct emu_warp *warp, const struct emu_op *op, video_lane *lane)
{
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    const uint32_t *a = EMU_ROW(uint32_t, warp, op->a), *b = EMU_ROW(uint32_t, warp, op->b);
    const uint32_t *c = EMU_ROW(uint32_t, warp, op->c);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        d[i] = lane(op->extra, a[i], b[i], c[i]);
    }
    return op + 1;
}

static const struct emu_op *scalar_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_lane(warp, op, scalar);
}

static const struct emu_op *multiplied_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_lane(warp, op, multiplied);
}

static const struct emu_op *simd_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_lane(warp, op, simd);
}

/* --- decoding. */
static enum operation operation_of(const char *section)
{
    static const struct {
        const char *name;
        enum operation operation;
    } names[] = {{"vadd", ADD}, {"vsub", SUB}, {"vabsdiff", ABSDIFF}, {"vmin", MIN},      {"vmax", MAX},
                 {"vshl", SHL}, {"vshr", SHR}, {"vset", SET},         {"vavrg", AVERAGE}, {"vmad", MAD}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(section, names[i].name, strlen(names[i].name)) == 0)
            return names[i].operation;
    return MAD;
}

static enum compare compare_of(const struct ptx_insn *insn)
{
    static const enum ptx_mod mods[] = {PTX_MOD_EQ, PTX_MOD_NE, PTX_MOD_LT, PTX_MOD_LE, PTX_MOD_GT};
    unsigned i = 0;
    while (i < sizeof mods / sizeof *mods && !ptx_has(insn, mods[i]))
        i++;
    return (enum compare)i;
}

/* What the scalar and the SIMD instructions share. vset has no type of the result, which is u32. */
static struct video *video_new(struct emu_emit *emit, const struct ptx_insn *insn)
{
    struct video *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return NULL;
    x->operation = operation_of(ptx_rows[insn->row].section);
    const unsigned sources = x->operation == SET ? 0 : 1;
    x->d_signed = x->operation != SET && emu_type(insn, 0) == PTX_S32;
    x->a_signed = emu_type(insn, sources) == PTX_S32;
    x->b_signed = emu_type(insn, sources + 1) == PTX_S32;
    x->saturates = ptx_has(insn, PTX_MOD_SAT);
    x->clamps = ptx_has(insn, PTX_MOD_CLAMP);
    x->compare = compare_of(insn);
    x->second = ptx_has(insn, PTX_MOD_ADD)   ? SECOND_ADD
                : ptx_has(insn, PTX_MOD_MIN) ? SECOND_MIN
                : ptx_has(insn, PTX_MOD_MAX) ? SECOND_MAX
                                             : NO_SECOND;
    return x;
}

static void video_push(struct emu_emit *emit, const struct ptx_insn *insn, emu_handler *handler,
                       const struct video *x)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B32);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_B32);
    const uint32_t c = insn->n_operands > 3 ? emu_source(emit, &insn->operands[3], PTX_B32) : a;
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op = emu_push(emit, handler, handler);
    op->a = a;
    op->b = b;
    op->c = c;
    op->d = d;
    op->extra = x;
}

EMU_EMITTER(emu_video)
{
    struct video *x = video_new(emit, insn);
    if (!x)
        return CLAB_NO_MEMORY;
    const struct ptx_operand *o = insn->operands;
    x->d_part = o[0].component;
    x->a_part = o[1].component;
    x->b_part = o[2].component;
    x->merges = x->d_part != PTX_COMPONENT_NONE;
    if (x->operation == MAD) {
        x->negates_product = o[1].negated != o[2].negated;
        x->negates_c = o[3].negated;
        x->po = ptx_has(insn, PTX_MOD_PO);
        x->shift = ptx_has(insn, PTX_MOD_SHR7) ? 7 : ptx_has(insn, PTX_MOD_SHR15) ? 15 : 0;
    }
    video_push(emit, insn, x->operation == MAD ? multiplied_any : scalar_any, x);
    return CLAB_OK;
}

/* Element i of a selector, or its default. */
static uint8_t picked(const struct ptx_operand *operand, unsigned i, unsigned first)
{
    if (operand->component == PTX_COMPONENT_NONE)
        return (uint8_t)(first + i);
    return (uint8_t)(operand->imm >> 4 * i & 15);
}

static uint8_t mask_of(const struct ptx_operand *operand, unsigned count)
{
    if (operand->component == PTX_COMPONENT_NONE)
        return (uint8_t)((1u << count) - 1);
    if (operand->component < PTX_SELECT_HALVES) /* one part */
        return (uint8_t)(1u << (operand->component - (count == 2 ? PTX_SELECT_H0 : PTX_SELECT_B0)));
    uint8_t mask = 0;
    for (unsigned i = 0; i < operand->imm >> 16; i++)
        mask |= (uint8_t)(1u << (operand->imm >> 4 * i & 15));
    return mask;
}

EMU_EMITTER(emu_video_simd)
{
    struct video *x = video_new(emit, insn);
    if (!x)
        return CLAB_NO_MEMORY;
    const char *section = ptx_rows[insn->row].section;
    x->count = section[strlen(section) - 1] == '2' ? 2 : 4;
    for (unsigned i = 0; i < x->count; i++) {
        x->a_pick[i] = picked(&insn->operands[1], i, 0);
        x->b_pick[i] = picked(&insn->operands[2], i, x->count);
    }
    x->mask = mask_of(&insn->operands[0], x->count);
    video_push(emit, insn, simd_any, x);
    return CLAB_OK;
}
