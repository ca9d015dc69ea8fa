/* Logic and shifts. PTX ISA 9.0, "Logic and Shift Instructions": and, or, xor, not, cnot, lop3, shf, shl,
   shr; and prmt from "Data Movement". Shifts clamp: an amount of the width or more gives 0, or the sign. */
#include "emu/alu.h"

EMU_BINARY(and_16, uint16_t, uint16_t, uint16_t, x &y)
EMU_BINARY(and_32, uint32_t, uint32_t, uint32_t, x &y)
EMU_BINARY(and_64, uint64_t, uint64_t, uint64_t, x &y)
EMU_BINARY(or_16, uint16_t, uint16_t, uint16_t, x | y)
EMU_BINARY(or_32, uint32_t, uint32_t, uint32_t, x | y)
EMU_BINARY(or_64, uint64_t, uint64_t, uint64_t, x | y)
EMU_BINARY(xor_16, uint16_t, uint16_t, uint16_t, x ^ y)
EMU_BINARY(xor_32, uint32_t, uint32_t, uint32_t, x ^ y)
EMU_BINARY(xor_64, uint64_t, uint64_t, uint64_t, x ^ y)
EMU_UNARY(not_16, uint16_t, uint16_t, ~x)
EMU_UNARY(not_32, uint32_t, uint32_t, ~x)
EMU_UNARY(not_64, uint64_t, uint64_t, ~x)
EMU_UNARY(cnot_16, uint16_t, uint16_t, x == 0)
EMU_UNARY(cnot_32, uint32_t, uint32_t, x == 0)
EMU_UNARY(cnot_64, uint64_t, uint64_t, x == 0)

/* Predicates: whole words. */
#define PRED_OP(NAME, EXPR)                                                                   \
    static const struct emu_op *NAME##_full(struct emu_warp *warp, const struct emu_op *op)   \
    {                                                                                         \
        const uint32_t x = EMU_PRED(warp, op->a), y = EMU_PRED(warp, op->b);                  \
        (void)y;                                                                              \
        EMU_PRED(warp, op->d) = EXPR;                                                         \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        const uint32_t x = EMU_PRED(warp, op->a), y = EMU_PRED(warp, op->b);                  \
        (void)y;                                                                              \
        emu_pred_write(warp, op->d, EXPR);                                                    \
        return op + 1;                                                                        \
    }
PRED_OP(and_pred, (x & y))
PRED_OP(or_pred, (x | y))
PRED_OP(xor_pred, (x ^ y))
PRED_OP(not_pred, ~x)
#undef PRED_OP

static clab_status logic(struct emu_emit *emit, const struct ptx_insn *insn, const struct emu_pair pairs[4])
{
    const enum ptx_type type = emu_last_type(insn);
    if (type != PTX_PRED)
        return emu_emit_binary(emit, insn, pairs[emu_size_index(type)], type, type, type);
    const uint32_t a = emu_pred_source(emit, &insn->operands[1]);
    const uint32_t b = emu_pred_source(emit, &insn->operands[2]);
    const uint32_t d = emu_pred_dest(emit, &insn->operands[0]);
    emu_push_pair(emit, pairs[0], d, a, b, EMU_NO_ROW);
    return CLAB_OK;
}

EMU_EMITTER(emu_and)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(and_pred), EMU_PAIR(and_16), EMU_PAIR(and_32),
                                            EMU_PAIR(and_64)};
    return logic(emit, insn, pairs);
}

EMU_EMITTER(emu_or)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(or_pred), EMU_PAIR(or_16), EMU_PAIR(or_32),
                                            EMU_PAIR(or_64)};
    return logic(emit, insn, pairs);
}

EMU_EMITTER(emu_xor)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(xor_pred), EMU_PAIR(xor_16), EMU_PAIR(xor_32),
                                            EMU_PAIR(xor_64)};
    return logic(emit, insn, pairs);
}

EMU_EMITTER(emu_not)
{
    static const struct emu_pair pairs[] = {EMU_PAIR(not_pred), EMU_PAIR(not_16), EMU_PAIR(not_32),
                                            EMU_PAIR(not_64)};
    const enum ptx_type type = emu_last_type(insn);
    if (type != PTX_PRED)
        return emu_emit_unary(emit, insn, pairs[emu_size_index(type)], type, type);
    const uint32_t a = emu_pred_source(emit, &insn->operands[1]);
    const uint32_t d = emu_pred_dest(emit, &insn->operands[0]);
    emu_push_pair(emit, pairs[0], d, a, a, EMU_NO_ROW);
    return CLAB_OK;
}

EMU_EMITTER(emu_cnot)
{
    static const struct emu_pair pairs[] = {EMU_NO_PAIR, EMU_PAIR(cnot_16), EMU_PAIR(cnot_32),
                                            EMU_PAIR(cnot_64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_unary(emit, insn, pairs[emu_size_index(type)], type, type);
}

/* --- lop3: bit (x y z) of the table, x the high bit of the index; a tree of seven choices, the table's bits
   as masks. op->imm: the table. */
static inline uint32_t choose(uint32_t select, uint32_t one, uint32_t zero)
{
    return zero ^ (select & (one ^ zero));
}

static inline uint32_t table_mask(uint64_t table, unsigned bit)
{
    return 0u - (uint32_t)(table >> bit & 1);
}

#define LOP3_ROWS(WRITE)                                                                                  \
    const uint32_t t0 = table_mask(op->imm, 0), t1 = table_mask(op->imm, 1), t2 = table_mask(op->imm, 2); \
    const uint32_t t3 = table_mask(op->imm, 3), t4 = table_mask(op->imm, 4), t5 = table_mask(op->imm, 5); \
    const uint32_t t6 = table_mask(op->imm, 6), t7 = table_mask(op->imm, 7);                              \
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);                                                         \
    const uint32_t *a = EMU_ROW(uint32_t, warp, op->a), *b = EMU_ROW(uint32_t, warp, op->b);              \
    const uint32_t *c = EMU_ROW(uint32_t, warp, op->c);                                                   \
    EMU_EACH_LANE(i)                                                                                      \
    {                                                                                                     \
        const uint32_t x = a[i], y = b[i], z = c[i];                                                      \
        const uint32_t high = choose(y, choose(z, t7, t6), choose(z, t5, t4));                            \
        const uint32_t low = choose(y, choose(z, t3, t2), choose(z, t1, t0));                             \
        const uint32_t r = choose(x, high, low);                                                          \
        WRITE;                                                                                            \
    }

static const struct emu_op *lop3_full(struct emu_warp *warp, const struct emu_op *op)
{
    LOP3_ROWS(d[i] = r)
    return op + 1;
}

static const struct emu_op *lop3_masked(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t *on = warp->lane_mask;
    LOP3_ROWS(d[i] = on[i] ? r : d[i])
    return op + 1;
}
#undef LOP3_ROWS

/* The predicate of lop3.or and lop3.and: (row a is not 0) and or or the predicate b. u8[0]: or. */
static const struct emu_op *lop3_pred(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t *a = EMU_ROW(uint32_t, warp, op->a);
    uint32_t mask = 0;
    EMU_EACH_LANE(i)
    mask |= a[i] ? emu_lane_bit[i] : 0;
    const uint32_t q = EMU_PRED(warp, op->b);
    emu_pred_write(warp, op->d, op->u8[0] ? mask | q : mask & q);
    return op + 1;
}

/* lop3.b32 d, a, b, c, table, and lop3.BoolOp.b32 d|p, a, b, c, table, q. */
EMU_EMITTER(emu_lop3)
{
    const bool with_pred = insn->operands[0].kind == PTX_OPERAND_PAIR;
    const struct ptx_operand *to = with_pred ? &insn->operands[0].elements[0] : &insn->operands[0];
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B32);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_B32);
    const uint32_t c = emu_source(emit, &insn->operands[3], PTX_B32);
    const uint32_t q = with_pred ? emu_pred_source(emit, &insn->operands[5]) : EMU_NO_ROW;
    const uint32_t d = with_pred ? emu_scratch(emit, PTX_B32) : emu_dest(emit, to, PTX_B32);
    emu_push_pair(emit, (struct emu_pair)EMU_PAIR(lop3), d, a, b, c)->imm = insn->operands[4].imm & 0xff;
    if (!with_pred)
        return CLAB_OK;
    /* The row goes through a scratch, so that the predicate is there before d may overwrite a source; both
       are guarded by a predicate that only the last operation may change. */
    const uint32_t out = emu_dest(emit, to, PTX_B32);
    struct emu_op *op = emu_push_pair(emit, (struct emu_pair)EMU_PAIR(or_32), out, d, d, EMU_NO_ROW);
    const uint32_t p = emu_pred_dest(emit, &insn->operands[0].elements[1]);
    op = emu_push(emit, lop3_pred, lop3_pred);
    op->d = p;
    op->a = d;
    op->b = q;
    op->u8[0] = ptx_has(insn, PTX_MOD_OR);
    return CLAB_OK;
}

/* --- shl, shr: the amount is a u32. */
EMU_BINARY(shl_16, uint16_t, uint16_t, uint32_t, y > 15 ? 0 : (uint32_t)x << (y & 15))
EMU_BINARY(shl_32, uint32_t, uint32_t, uint32_t, y > 31 ? 0 : x << (y & 31))
EMU_BINARY(shl_64, uint64_t, uint64_t, uint32_t, y > 63 ? 0 : x << (y & 63))
EMU_BINARY(shr_u16, uint16_t, uint16_t, uint32_t, y > 15 ? 0 : x >> (y & 15))
EMU_BINARY(shr_u32, uint32_t, uint32_t, uint32_t, y > 31 ? 0 : x >> (y & 31))
EMU_BINARY(shr_u64, uint64_t, uint64_t, uint32_t, y > 63 ? 0 : x >> (y & 63))
EMU_BINARY(shr_s16, int16_t, int16_t, uint32_t, x >> (y > 15 ? 15 : y))
EMU_BINARY(shr_s32, int32_t, int32_t, uint32_t, x >> (y > 31 ? 31 : y))
EMU_BINARY(shr_s64, int64_t, int64_t, uint32_t, x >> (y > 63 ? 63 : y))

EMU_EMITTER(emu_shl)
{
    static const struct emu_pair pairs[] = {EMU_NO_PAIR, EMU_PAIR(shl_16), EMU_PAIR(shl_32),
                                            EMU_PAIR(shl_64)};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[emu_size_index(type)], type, type, PTX_U32);
}

EMU_EMITTER(emu_shr)
{
    static const struct emu_pair pairs[2][4] = {
        {EMU_NO_PAIR, EMU_PAIR(shr_u16), EMU_PAIR(shr_u32), EMU_PAIR(shr_u64)},
        {EMU_NO_PAIR, EMU_PAIR(shr_s16), EMU_PAIR(shr_s32), EMU_PAIR(shr_s64)}};
    const enum ptx_type type = emu_last_type(insn);
    return emu_emit_binary(emit, insn, pairs[emu_is_signed(type)][emu_size_index(type)], type, type, PTX_U32);
}

/* --- shf: b:a as 64 bits, shifted; .l keeps the high word, .r the low word. */
static inline uint64_t joined(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static inline uint32_t at_most_32(uint32_t x)
{
    return x < 32 ? x : 32;
}

EMU_TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, (joined(y, x) << (z & 31)) >> 32)
EMU_TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, (joined(y, x) << at_most_32(z)) >> 32)
EMU_TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, joined(y, x) >> (z & 31))
EMU_TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, joined(y, x) >> at_most_32(z))

EMU_EMITTER(emu_shf)
{
    static const struct emu_pair pairs[2][2] = {{EMU_PAIR(shf_l_wrap), EMU_PAIR(shf_l_clamp)},
                                                {EMU_PAIR(shf_r_wrap), EMU_PAIR(shf_r_clamp)}};
    return emu_emit_ternary(emit, insn, pairs[ptx_has(insn, PTX_MOD_R)][ptx_has(insn, PTX_MOD_CLAMP)],
                            PTX_B32, PTX_B32, PTX_B32, PTX_U32);
}

/* --- prmt: four bytes out of the eight of b:a, each chosen by a nibble of the selector; bit 3 of the nibble
   replicates the byte's sign instead. */
static inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t bytes = joined(b, a);
    uint32_t r = 0;
    for (unsigned k = 0; k < 4; k++) {
        const uint32_t nibble = selector >> (4 * k) & 15;
        const uint32_t byte = (uint32_t)(bytes >> (8 * (nibble & 7))) & 0xff;
        const uint32_t sign = byte & 0x80 ? 0xff : 0;
        r |= (nibble & 8 ? sign : byte) << (8 * k);
    }
    return r;
}

EMU_TERNARY(prmt, uint32_t, uint32_t, uint32_t, uint32_t, permuted(x, y, z))
/* The modes: bits 1:0 of c choose one of four selectors, 16 bits each in op->imm. */
EMU_TERNARY(prmt_mode, uint32_t, uint32_t, uint32_t, uint32_t,
            permuted(x, y, (uint32_t)(op->imm >> (16 * (z & 3))) & 0xffff))

EMU_EMITTER(emu_prmt)
{
    static const struct {
        enum ptx_mod mod;
        uint64_t selectors; /* for c = 3, 2, 1, 0 from the top */
    } modes[] = {{PTX_MOD_F4E, UINT64_C(0x6543543243213210)}, {PTX_MOD_B4E, UINT64_C(0x0123701267015670)},
                 {PTX_MOD_RC8, UINT64_C(0x3333222211110000)}, {PTX_MOD_ECL, UINT64_C(0x3333322232113210)},
                 {PTX_MOD_ECR, UINT64_C(0x3210221011100000)}, {PTX_MOD_RC16, UINT64_C(0x3232101032321010)}};
    struct emu_pair pair = EMU_PAIR(prmt);
    uint64_t selectors = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (ptx_has(insn, modes[i].mod)) {
            pair = (struct emu_pair)EMU_PAIR(prmt_mode);
            selectors = modes[i].selectors;
        }
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B32);
    const uint32_t b = emu_source(emit, &insn->operands[2], PTX_B32);
    const uint32_t c = emu_source(emit, &insn->operands[3], PTX_B32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    emu_push_pair(emit, pair, d, a, b, c)->imm = selectors;
    return CLAB_OK;
}
