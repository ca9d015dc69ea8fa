/* mov: copies, predicates, and packing and unpacking of vectors. PTX ISA 9.0, "Data Movement: mov". Special
   registers and addresses are rows that emu_source provides. */
#include "emu/alu.h"

struct wide {
    uint64_t low, high;
};

/* UBSan: rows are 64-byte aligned. */
EMU_UNARY(mov_8, uint8_t, uint8_t, x)
EMU_UNARY(mov_16, uint16_t, uint16_t, x)
EMU_UNARY(mov_32, uint32_t, uint32_t, x)
EMU_UNARY(mov_64, uint64_t, uint64_t, x)

static const struct emu_op *mov_128_full(struct emu_warp *warp, const struct emu_op *op)
{
    memmove(EMU_ROW(unsigned char, warp, op->d), EMU_ROW(unsigned char, warp, op->a),
            EMU_LANES * sizeof(struct wide));
    return op + 1;
}

static const struct emu_op *mov_128_masked(struct emu_warp *warp, const struct emu_op *op)
{
    struct wide *d = EMU_ROW(struct wide, warp, op->d);
    const struct wide *a = EMU_ROW(struct wide, warp, op->a);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (warp->lane_mask[i])
            d[i] = a[i];
    return op + 1;
}

static const struct emu_op *mov_pred_full(struct emu_warp *warp, const struct emu_op *op)
{
    EMU_PRED(warp, op->d) = EMU_PRED(warp, op->a);
    return op + 1;
}

static const struct emu_op *mov_pred_masked(struct emu_warp *warp, const struct emu_op *op)
{
    emu_pred_write(warp, op->d, EMU_PRED(warp, op->a));
    return op + 1;
}

static struct emu_pair mov_of(enum ptx_type type)
{
    switch (emu_lane_bytes(type)) {
    case 1:
        return (struct emu_pair)EMU_PAIR(mov_8);
    case 2:
        return (struct emu_pair)EMU_PAIR(mov_16);
    case 4:
        return (struct emu_pair)EMU_PAIR(mov_32);
    case 8:
        return (struct emu_pair)EMU_PAIR(mov_64);
    default:
        return (struct emu_pair)EMU_PAIR(mov_128);
    }
}

/* --- the common pairs of halves get a loop that vectorises … */
EMU_BINARY(pack_2x16, uint32_t, uint16_t, uint16_t, (uint32_t)y << 16 | x)
EMU_BINARY(pack_2x32, uint64_t, uint32_t, uint32_t, (uint64_t)y << 32 | x)
EMU_UNARY(low_16_of_32, uint16_t, uint32_t, x)
EMU_UNARY(high_16_of_32, uint16_t, uint32_t, x >> 16)
EMU_UNARY(low_32_of_64, uint32_t, uint64_t, x)
EMU_UNARY(high_32_of_64, uint32_t, uint64_t, x >> 32)

/* … the others copy bytes. pack: element `imm >> 32` of lanes of d (its bytes: u8[0]) from row a (its bytes:
   u8[1]); unpack the other way round. imm: byte offset of the element in the packed lane. */
static const struct emu_op *insert(struct emu_warp *warp, const struct emu_op *op)
{
    unsigned char *d = EMU_ROW(unsigned char, warp, op->d);
    const unsigned char *a = EMU_ROW(unsigned char, warp, op->a);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (warp->exec >> i & 1)
            memcpy(d + i * op->u8[0] + op->imm, a + i * op->u8[1], op->u8[1]);
    return op + 1;
}

static const struct emu_op *extract(struct emu_warp *warp, const struct emu_op *op)
{
    unsigned char *d = EMU_ROW(unsigned char, warp, op->d);
    const unsigned char *a = EMU_ROW(unsigned char, warp, op->a);
    for (unsigned i = 0; i < EMU_LANES; i++)
        if (warp->exec >> i & 1)
            memcpy(d + i * op->u8[1], a + i * op->u8[0] + op->imm, op->u8[1]);
    return op + 1;
}

/* mov.bN d, {a, b, …}: a is the least significant. mov.b128 takes %tid and its kind whole, as ptxas 13.0
 * does. */
static clab_status pack(struct emu_emit *emit, const struct ptx_insn *insn, enum ptx_type type)
{
    const struct ptx_operand *from = &insn->operands[1];
    const bool is_special = from->kind == PTX_OPERAND_SREG;
    const unsigned total = emu_lane_bytes(type), n = is_special ? 4 : from->n_elements;
    if (n < 2 || total % n != 0 || n > 16)
        return emu_unsupported(emit, "a vector of %u elements in a mov.%s", n, ptx_types[type].text);
    const enum ptx_type element = emu_bits_type(total / n);
    uint32_t rows[16];
    for (unsigned i = 0; i < n; i++) {
        struct ptx_operand part = is_special ? *from : from->elements[i];
        part.component = is_special ? (uint8_t)i : part.component;
        rows[i] = emu_source(emit, &part, element);
    }
    const uint32_t d = emu_dest(emit, &insn->operands[0], type);
    if (n == 2 && total == 4) {
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(pack_2x16), d, rows[0], rows[1], EMU_NO_ROW);
        return CLAB_OK;
    }
    if (n == 2 && total == 8) {
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(pack_2x32), d, rows[0], rows[1], EMU_NO_ROW);
        return CLAB_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        struct emu_op *op = emu_push(emit, insert, insert);
        op->d = d;
        op->a = rows[i];
        op->imm = i * (total / n);
        op->u8[0] = (uint8_t)total;
        op->u8[1] = (uint8_t)(total / n);
    }
    return CLAB_OK;
}

/* mov.bN {a, b, …}, d; an element may be `_`. */
static clab_status unpack(struct emu_emit *emit, const struct ptx_insn *insn, enum ptx_type type)
{
    const struct ptx_operand *to = &insn->operands[0];
    const unsigned total = emu_lane_bytes(type), n = to->n_elements;
    if (n < 2 || total % n != 0 || n > 16)
        return emu_unsupported(emit, "a vector of %u elements in a mov.%s", n, ptx_types[type].text);
    static const struct emu_pair of_32[] = {EMU_PAIR(low_16_of_32), EMU_PAIR(high_16_of_32)};
    static const struct emu_pair of_64[] = {EMU_PAIR(low_32_of_64), EMU_PAIR(high_32_of_64)};
    const enum ptx_type element = emu_bits_type(total / n);
    const uint32_t a = emu_source(emit, &insn->operands[1], type);
    for (unsigned i = 0; i < n; i++) {
        if (to->elements[i].kind == PTX_OPERAND_SINK)
            continue;
        const uint32_t d = emu_dest(emit, &to->elements[i], element);
        if (n == 2 && (total == 4 || total == 8)) {
            emu_push_pair(emit, total == 4 ? of_32[i] : of_64[i], d, a, EMU_NO_ROW, EMU_NO_ROW);
            continue;
        }
        struct emu_op *op = emu_push(emit, extract, extract);
        op->d = d;
        op->a = a;
        op->imm = i * (total / n);
        op->u8[0] = (uint8_t)total;
        op->u8[1] = (uint8_t)(total / n);
    }
    return CLAB_OK;
}

/* mov.v2 and mov.v4: element by element; the source is a vector, or a special register whose components are
   taken in turn. Sources are copied first, since an element may be written before another element reads it.
 */
static clab_status vector(struct emu_emit *emit, const struct ptx_insn *insn, enum ptx_type type)
{
    const struct ptx_operand *to = &insn->operands[0], *from = &insn->operands[1];
    const unsigned n = to->n_elements;
    if (n < 1 || n > 16 || (from->kind == PTX_OPERAND_VECTOR && from->n_elements != n))
        return emu_unsupported(emit, "this vector mov");
    uint32_t rows[16];
    for (unsigned i = 0; i < n; i++) {
        struct ptx_operand component = from->kind == PTX_OPERAND_VECTOR ? from->elements[i] : *from;
        if (component.kind == PTX_OPERAND_SREG && from->kind != PTX_OPERAND_VECTOR)
            component.component = (uint8_t)i;
        rows[i] = emu_source(emit, &component, type);
        if (component.kind == PTX_OPERAND_REG) {
            const uint32_t copy = emu_scratch(emit, type);
            emu_push_pair(emit, mov_of(type), copy, rows[i], EMU_NO_ROW, EMU_NO_ROW);
            rows[i] = copy;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (to->elements[i].kind == PTX_OPERAND_SINK)
            continue;
        const uint32_t d = emu_dest(emit, &to->elements[i], type);
        emu_push_pair(emit, mov_of(type), d, rows[i], EMU_NO_ROW, EMU_NO_ROW);
    }
    return CLAB_OK;
}

EMU_EMITTER(emu_mov)
{
    const enum ptx_type type = emu_last_type(insn);
    const bool to_vector = insn->operands[0].kind == PTX_OPERAND_VECTOR;
    if (ptx_has(insn, PTX_MOD_V2) || ptx_has(insn, PTX_MOD_V4))
        return vector(emit, insn, type);
    if (to_vector)
        return unpack(emit, insn, type);
    if (insn->operands[1].kind == PTX_OPERAND_VECTOR ||
        (insn->operands[1].kind == PTX_OPERAND_SREG && type == PTX_B128))
        return pack(emit, insn, type);
    if (type == PTX_PRED) {
        const uint32_t a = emu_pred_source(emit, &insn->operands[1]);
        const uint32_t d = emu_pred_dest(emit, &insn->operands[0]);
        emu_push_pair(emit, (struct emu_pair)EMU_PAIR(mov_pred), d, a, EMU_NO_ROW, EMU_NO_ROW);
        return CLAB_OK;
    }
    return emu_emit_unary(emit, insn, mov_of(type), type, type);
}
