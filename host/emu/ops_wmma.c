/* wmma.load, wmma.store, wmma.mma: matrices between memory and the registers of a warp, and their product.
   PTX ISA 9.0, "Matrix multiply-accumulate operations using wmma instructions".

   The manual leaves open which lane holds which elements. Here it is as on an H200 (driver 13.0,
   tests/conformance/matrix.forms): as in mma (ops_mma.c), of which a wmma product consists. UNVERIFIED on
   other architectures. Sums are those of the mma (product.h). */
#include "emu/access.h"
#include "emu/collective.h"
#include "emu/fault.h"
#include "emu/place.h"
#include "emu/product.h"

#define MAX_REGISTERS 8
#define MAX_ROWS      32

enum part { PART_A, PART_B, PART_C };

/* One matrix in registers. */
struct matrix {
    enum part part;
    unsigned rows, columns;
    unsigned element_bits;
    unsigned count; /* registers */
    uint32_t registers[MAX_REGISTERS];
    bool col;        /* its layout in memory */
    bool transposed; /* see place_of */
};

struct transfer {
    struct matrix matrix;
    uint32_t stride; /* row of 32-bit lanes, in elements; EMU_NO_ROW: dense */
};

struct product {
    struct matrix a, b, c, d;
    enum emu_element a_type, b_type;
    unsigned m, n, k;
    bool c_f16, d_f16, satfinite, xor;
    uint8_t mode;
};

static unsigned per_register(const struct matrix *x)
{
    return x->element_bits >= 32 ? 1 : 32 / x->element_bits;
}

/* Registers that hold a matrix once: the first ones; f16 has more, which repeat them. */
static unsigned unique_of(const struct matrix *x)
{
    return x->rows * x->columns / (EMU_LANES * per_register(x));
}

/* The row and column of element j of register r of a lane. A is cut into blocks of 16 rows (8 where it has
   no more), B and C into blocks of 8 columns, C's into 16 rows too. */
static void place_upright(enum part part, unsigned rows, unsigned columns, unsigned e, unsigned lane,
                          unsigned at, unsigned j, unsigned *out_row, unsigned *out_column)
{
    const unsigned g = lane / 4, t = lane % 4;
    switch (part) {
    case PART_A: {
        const unsigned halves = rows >= 16 ? 2 : 1;
        const unsigned wide = columns / (4 * e); /* registers along a row */
        const unsigned block = at / (halves * wide), in = at % (halves * wide);
        *out_row = 16 * block + g + 8 * (in % halves);
        *out_column = 4 * e * (in / halves) + e * t + j;
        break;
    }
    case PART_B: {
        const unsigned high = rows / (4 * e); /* registers along a column */
        *out_row = 4 * e * (at % high) + e * t + j;
        *out_column = 8 * (at / high) + g;
        break;
    }
    default: {
        const unsigned i = e == 2 ? 2 * at + j : at; /* elements 2 h and 2 h + 1 are a row's */
        const unsigned halves = rows >= 16 ? 2 : 1;
        const unsigned tile = i / (2 * halves), in = i % (2 * halves);
        const unsigned across = columns / 8;
        *out_row = 16 * (tile / across) + g + 8 * (in / 2);
        *out_column = 8 * (tile % across) + 2 * t + in % 2;
        break;
    }
    }
}

/* The same for any shape: .m8n32k16 is the transposed product of .m32n8k16. */
static void place_of(const struct matrix *x, unsigned lane, unsigned r, unsigned j, unsigned *out_row,
                     unsigned *out_column)
{
    const unsigned e = per_register(x), unique = unique_of(x), at = r % (unique ? unique : 1);
    if (x->transposed)
        place_upright(x->part == PART_A   ? PART_B
                      : x->part == PART_B ? PART_A
                                          : PART_C,
                      x->columns, x->rows, e, lane, at, j, out_column, out_row);
    else
        place_upright(x->part, x->rows, x->columns, e, lane, at, j, out_row, out_column);
}

/* --- wmma.load, wmma.store */

/* The address of the matrix as the executing lanes give it: the manual wants it the same in all. */
static uint64_t address_of(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                           enum emu_reach *out_reach)
{
    *out_reach = op->u8[1] ? EMU_REACH_GLOBAL : EMU_REACH_SHARED_CTA;
    switch ((enum emu_place_kind)op->u8[0]) {
    case EMU_AT_SHARED:
        return (uint32_t)(EMU_ROW(uint32_t, warp, op->a)[lane] + op->imm);
    case EMU_AT_KNOWN_SHARED:
        return (warp->cta->rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST + op->imm;
    default:
        if (!op->u8[1])
            *out_reach = EMU_REACH_GENERIC;
        return EMU_ROW(uint64_t, warp, op->a)[lane] + op->imm;
    }
}

/* The bits at element (row, column) of a lane's matrix in memory: where its byte is, and its bit there. */
static unsigned char *element_at(struct emu_warp *warp, const struct emu_op *op, unsigned lane, unsigned row,
                                 unsigned column, enum emu_access_mode mode, unsigned *out_bit)
{
    const struct transfer *x = op->extra;
    const struct matrix *m = &x->matrix;
    const uint64_t dense = m->col ? m->rows : m->columns;
    const uint64_t stride = x->stride == EMU_NO_ROW ? dense : EMU_ROW(uint32_t, warp, x->stride)[lane];
    const uint64_t index = m->col ? column * stride + row : row * stride + column;
    enum emu_reach reach;
    const uint64_t address = address_of(warp, op, lane, &reach);
    const unsigned bytes = m->element_bits < 8 ? 1 : m->element_bits / 8;
    enum clab_space_id space;
    *out_bit = (unsigned)(index * m->element_bits % 8);
    unsigned char *at = emu_access_range(warp, op, lane, reach, address + index * m->element_bits / 8, bytes,
                                         bytes, mode, &space);
    if (at) {
        emu_access_count(warp, space, (unsigned)__builtin_ctz(bytes), mode, 1);
        emu_access_tell(warp, op, lane, space, at, bytes, mode);
    }
    return at;
}

static const struct emu_op *load(struct emu_warp *warp, const struct emu_op *op)
{
    const struct transfer *x = op->extra;
    const struct matrix *m = &x->matrix;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    const unsigned e = per_register(m), bytes = m->element_bits < 8 ? 1 : m->element_bits / 8;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned r = 0; r < m->count; r++) {
            uint64_t word = 0;
            for (unsigned j = 0; j < e; j++) {
                unsigned row, column, bit;
                uint64_t value = 0;
                place_of(m, lane, r, j, &row, &column);
                const unsigned char *from = element_at(warp, op, lane, row, column, EMU_LOAD, &bit);
                if (!from)
                    return NULL;
                memcpy(&value, from, bytes);
                if (m->element_bits < 8)
                    value = value >> bit & ((1u << m->element_bits) - 1);
                word |= value << (j * m->element_bits);
            }
            if (m->element_bits == 64)
                EMU_ROW(uint64_t, warp, m->registers[r])[lane] = word;
            else
                EMU_ROW(uint32_t, warp, m->registers[r])[lane] = (uint32_t)word;
        }
    }
    return op + 1;
}

/* D has no elements of less than a byte. */
static const struct emu_op *store(struct emu_warp *warp, const struct emu_op *op)
{
    const struct transfer *x = op->extra;
    const struct matrix *m = &x->matrix;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned r = 0; r < m->count; r++) {
            uint64_t word = EMU_ROW(uint32_t, warp, m->registers[r])[lane];
            if (m->element_bits == 64)
                word = EMU_ROW(uint64_t, warp, m->registers[r])[lane];
            for (unsigned j = 0; j < per_register(m); j++) {
                unsigned row, column, bit;
                const uint64_t value = word >> (j * m->element_bits % 64);
                place_of(m, lane, r, j, &row, &column);
                unsigned char *to = element_at(warp, op, lane, row, column, EMU_STORE, &bit);
                if (!to)
                    return NULL;
                memcpy(to, &value, m->element_bits / 8);
            }
        }
    }
    emu_progress(warp);
    return op + 1;
}

/* --- wmma.mma */

static uint64_t bits_at(struct emu_warp *warp, const struct matrix *x, unsigned lane, unsigned r, unsigned j)
{
    if (x->element_bits == 64)
        return EMU_ROW(uint64_t, warp, x->registers[r])[lane];
    return EMU_ROW(uint32_t, warp, x->registers[r])[lane] >> (j * x->element_bits % 32);
}

/* An element of A or B as a number. */
static double number_of(enum emu_element type, uint64_t bits)
{
    if (type == EMU_ELEMENT_F64)
        return emu_bits_f64(bits);
    if (emu_element_is_int(type))
        return (double)emu_int_element(type, (uint32_t)bits, 0);
    return emu_float_element(type, (uint32_t)bits, 0);
}

/* Element (row, column) of A * B + C in the bits of D's type. Integers are exact in a double: the sums of
   products stay below 2^31. */
static uint64_t element_of_d(const struct product *x, uint64_t c, const double *a, const double *b)
{
    if (x->a_type == EMU_ELEMENT_F64) {
        double sum = emu_bits_f64(c);
        for (unsigned k = 0; k < x->k; k++)
            sum = emu_product_fma(a[k], b[k], sum);
        return emu_f64_bits(sum);
    }
    if (emu_element_is_int(x->a_type)) {
        int64_t sum = (int32_t)(uint32_t)c;
        for (unsigned k = 0; k < x->k; k++)
            sum += x->xor ? (int64_t)(a[k] != b[k]) : (int64_t)(a[k] * b[k]);
        if (x->satfinite)
            sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
        return (uint32_t)sum;
    }
    const float start = x->c_f16 ? emu_f16_to_f32((uint32_t)c & 0xffff) : emu_bits_f32((uint32_t)c);
    if (x->a_type == EMU_ELEMENT_TF32) { /* in two steps, as an H200's driver compiles it */
        const float half = emu_dot(x->a_type, false, start, a, b, x->k / 2);
        return emu_f32_bits(emu_canon(emu_dot(x->a_type, false, half, a + x->k / 2, b + x->k / 2, x->k / 2)));
    }
    /* From an f32 C an f16 D is rounded twice. */
    const float d = emu_dot(x->a_type, x->d_f16 && x->c_f16, start, a, b, x->k);
    return x->d_f16 ? emu_f32_to_f16(d) : emu_f32_bits(emu_canon(d));
}

static const struct emu_op *multiply(struct emu_warp *warp, const struct emu_op *op)
{
    const struct product *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    double a[MAX_ROWS][EMU_MAX_K / 2], b[MAX_ROWS][EMU_MAX_K / 2];
    unsigned row, column;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < unique_of(&x->a); r++)
            for (unsigned j = 0; j < per_register(&x->a); j++) {
                place_of(&x->a, lane, r, j, &row, &column);
                a[row][column] = number_of(x->a_type, bits_at(warp, &x->a, lane, r, j));
            }
        for (unsigned r = 0; r < unique_of(&x->b); r++)
            for (unsigned j = 0; j < per_register(&x->b); j++) {
                place_of(&x->b, lane, r, j, &row, &column);
                b[column][row] = number_of(x->b_type, bits_at(warp, &x->b, lane, r, j));
            }
    }
    uint64_t c[MAX_ROWS][MAX_ROWS];
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned r = 0; r < x->c.count; r++)
            for (unsigned j = 0; j < per_register(&x->c); j++) {
                place_of(&x->c, lane, r, j, &row, &column);
                c[row][column] = bits_at(warp, &x->c, lane, r, j);
            }
    const uint64_t old = emu_round_enter(x->mode);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned r = 0; r < x->d.count; r++) {
            uint64_t word = 0;
            for (unsigned j = 0; j < per_register(&x->d); j++) {
                place_of(&x->d, lane, r, j, &row, &column);
                word |= element_of_d(x, c[row][column], a[row], b[column]) << (j * x->d.element_bits % 64);
            }
            if (x->d.element_bits == 64)
                EMU_ROW(uint64_t, warp, x->d.registers[r])[lane] = word;
            else
                EMU_ROW(uint32_t, warp, x->d.registers[r])[lane] = (uint32_t)word;
        }
    }
    emu_round_leave(old);
    return op + 1;
}

/* --- decoding. */

/* The registers of a matrix of `type`; false when their number is not the manual's (f16's A and B have each
   element twice). */
static bool matrix_of(struct emu_emit *emit, const struct ptx_operand *operand, enum part part,
                      const unsigned mnk[3], enum ptx_type type, bool written, struct matrix *out)
{
    out->part = part;
    out->rows = part == PART_B ? mnk[2] : mnk[0];
    out->columns = part == PART_A ? mnk[2] : mnk[1];
    out->element_bits = ptx_types[type].bits;
    if (type == PTX_TF32)
        out->element_bits = 32;
    out->transposed = mnk[0] == 8 && mnk[1] == 32;
    out->count = operand->kind == PTX_OPERAND_VECTOR ? operand->n_elements : 1;
    const unsigned unique = unique_of(out);
    if (out->count > MAX_REGISTERS || unique == 0 || out->count % unique != 0)
        return false;
    return emu_rows_of(emit, operand, out->count, out->element_bits == 64 ? PTX_B64 : PTX_B32, written,
                       out->registers);
}

static clab_status transfer_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool stores)
{
    struct transfer *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return CLAB_NO_MEMORY;
    unsigned mnk[3];
    const struct ptx_operand *value = &insn->operands[stores ? 1 : 0];
    const struct ptx_operand *at = &insn->operands[stores ? 0 : 1];
    const enum part part = ptx_has(insn, PTX_MOD_A) ? PART_A : ptx_has(insn, PTX_MOD_B) ? PART_B : PART_C;
    if (!emu_shape_of(insn, mnk))
        return emu_unsupported(emit, "this shape of wmma");
    x->stride = EMU_NO_ROW;
    if (insn->n_operands > 2)
        x->stride = emu_source(emit, &insn->operands[2], PTX_U32);
    const enum ptx_space space = insn->n_spaces ? (enum ptx_space)insn->spaces[0] : PTX_SPACE_NONE;
    const bool global = space == PTX_SPACE_GLOBAL;
    uint32_t row;
    uint64_t imm;
    enum emu_place_kind place;
    if (global) { /* 64-bit lanes, whatever is written in the brackets */
        int64_t offset = 0;
        row = emu_address(emit, at, &offset);
        imm = (uint64_t)offset;
        place = EMU_AT_GENERIC;
    } else {
        const struct emu_place_address address = emu_place_address(emit, at, space);
        row = address.row;
        imm = address.imm;
        place = address.place;
    }
    if (!matrix_of(emit, value, part, mnk, emu_type(insn, 0), !stores, &x->matrix))
        return emu_unsupported(emit, "a wmma operand whose number of registers does not fit its shape");
    x->matrix.col = ptx_has(insn, PTX_MOD_COL);
    emu_handler *handler = stores ? store : load;
    struct emu_op *op = emu_push(emit, handler, handler);
    op->a = row;
    op->imm = imm;
    op->u8[0] = (uint8_t)place;
    op->u8[1] = global;
    op->extra = x;
    return CLAB_OK;
}

EMU_EMITTER(emu_wmma_load)
{
    return transfer_emit(emit, insn, false);
}

EMU_EMITTER(emu_wmma_store)
{
    return transfer_emit(emit, insn, true);
}

EMU_EMITTER(emu_wmma_mma)
{
    struct product *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return CLAB_NO_MEMORY;
    unsigned mnk[3];
    /* Types: of D and C for f16; of D, A, B, C for the others. */
    const bool f16 = insn->n_types == 2;
    const enum ptx_type a_type = f16 ? PTX_F16 : emu_type(insn, 1),
                        b_type = f16 ? PTX_F16 : emu_type(insn, 2);
    const enum ptx_type d_type = emu_type(insn, 0), c_type = emu_type(insn, f16 ? 1 : 3);
    if (!emu_shape_of(insn, mnk) || !emu_element_of(a_type, &x->a_type) ||
        !emu_element_of(b_type, &x->b_type) || mnk[2] > EMU_MAX_K / 2)
        return emu_unsupported(emit, "this shape or type of wmma");
    x->m = mnk[0];
    x->n = mnk[1];
    x->k = mnk[2];
    x->c_f16 = c_type == PTX_F16;
    x->d_f16 = d_type == PTX_F16;
    x->satfinite = ptx_has(insn, PTX_MOD_SATFINITE);
    x->xor = ptx_has(insn, PTX_MOD_XOR);
    x->mode = (uint8_t)emu_round_of(insn);
    if (!matrix_of(emit, &insn->operands[1], PART_A, mnk, a_type, false, &x->a) ||
        !matrix_of(emit, &insn->operands[2], PART_B, mnk, b_type, false, &x->b) ||
        !matrix_of(emit, &insn->operands[3], PART_C, mnk, c_type, false, &x->c) ||
        !matrix_of(emit, &insn->operands[0], PART_C, mnk, d_type, true, &x->d))
        return emu_unsupported(emit, "a wmma operand whose number of registers does not fit its shape");
    emu_push(emit, multiply, multiply)->extra = x;
    return CLAB_OK;
}
