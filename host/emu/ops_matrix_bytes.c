/* ldmatrix and stmatrix with 8-bit elements: .m16n16.trans.b8, .m8n16 and .m16n16.trans that unpack 4-bit and
   6-bit elements, .m16n8.trans.b8. PTX ISA 9.0, "Warp-level matrix load instruction: ldmatrix", "… store
   instruction: stmatrix". sm_100 and up.

   UNVERIFIED on hardware: the manual shows the fragments in figures; here they are as CUTLASS's copy traits
   of SM100 describe them (Copy_Traits<SM100_U8x8_LDSM_T> and its kind). With .trans an address is that of a
   column: of .m16n16, lane L (g = L / 4, t = L mod 4) has of columns 4 t to 4 t + 3 the elements of rows g
   and g + 8, register 0 those of the first two columns; of .m16n8, of columns 2 t and 2 t + 1. Element order
   in a register: both columns of row g, then of row g + 8. Without .trans (.m8n16) lane L has elements 4 t to
   4 t + 3 of row g.

   Unpacked elements stand in a byte: of 6 bits the low ones, of 4 bits the bits 5 to 2, as mma with
   .kind::f8f6f4 takes them. */
#include "emu/matrix_rows.h"

#define MAX_ROWS 32

struct bytes {
    uint32_t registers[4];
    unsigned count;   /* registers */
    unsigned columns; /* trans: addresses of a matrix, 16 or 8; 0: not transposed */
    unsigned bits;    /* of an element in memory: 8, 6, 4 */
    unsigned rows;    /* addresses in all */
};

static uint32_t element(const struct bytes *x, const unsigned char *row, unsigned i)
{
    if (x->bits == 8)
        return row[i];
    const unsigned at = i * x->bits;
    const uint32_t two = row[at / 8] | (uint32_t)(at / 8 < 15 ? row[at / 8 + 1] : 0) << 8;
    const uint32_t value = two >> at % 8 & ((1u << x->bits) - 1);
    return x->bits == 4 ? value << 2 : value;
}

/* Address number and element of byte j of register r of a lane. */
static void place_of(const struct bytes *x, unsigned lane, unsigned r, unsigned j, unsigned *out_row,
                     unsigned *out_element)
{
    const unsigned g = lane / 4, t = lane % 4;
    if (!x->columns) {
        *out_row = 8 * r + g;
        *out_element = 4 * t + j;
    } else if (x->columns == 16) {
        *out_row = 16 * (r / 2) + 4 * t + 2 * (r % 2) + j % 2;
        *out_element = g + 8 * (j / 2);
    } else {
        *out_row = 8 * r + 2 * t + j % 2;
        *out_element = g + 8 * (j / 2);
    }
}

static const struct emu_op *load(struct emu_warp *warp, const struct emu_op *op)
{
    const struct bytes *x = op->extra;
    unsigned char *from[MAX_ROWS];
    if (!emu_converged(warp, op, EMU_ALL) || !emu_matrix_rows(warp, op, x->rows, EMU_LOAD, from))
        return NULL;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned r = 0; r < x->count; r++) {
            uint32_t word = 0;
            for (unsigned j = 0; j < 4; j++) {
                unsigned row, i;
                place_of(x, lane, r, j, &row, &i);
                word |= element(x, from[row], i) << (8 * j);
            }
            EMU_ROW(uint32_t, warp, x->registers[r])[lane] = word;
        }
    }
    return op + 1;
}

static const struct emu_op *store(struct emu_warp *warp, const struct emu_op *op)
{
    const struct bytes *x = op->extra;
    unsigned char *to[MAX_ROWS];
    if (!emu_converged(warp, op, EMU_ALL) || !emu_matrix_rows(warp, op, x->rows, EMU_STORE, to))
        return NULL;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        for (unsigned r = 0; r < x->count; r++)
            for (unsigned j = 0; j < 4; j++) {
                unsigned row, i;
                place_of(x, lane, r, j, &row, &i);
                to[row][i] = (unsigned char)(EMU_ROW(uint32_t, warp, x->registers[r])[lane] >> (8 * j));
            }
    }
    emu_progress(warp);
    return op + 1;
}

static clab_status bytes_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool stores)
{
    struct bytes *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return CLAB_NO_MEMORY;
    const struct ptx_operand *value = &insn->operands[stores ? 1 : 0];
    const unsigned matrices = ptx_has(insn, PTX_MOD_X4) ? 4 : ptx_has(insn, PTX_MOD_X2) ? 2 : 1;
    const bool square = ptx_has(insn, PTX_MOD_M16N16);
    x->columns = square ? 16 : ptx_has(insn, PTX_MOD_M16N8) ? 8 : 0;
    x->count = square ? 2 * matrices : matrices;
    x->rows = (square ? 16 : 8) * matrices;
    const enum ptx_type packed = emu_last_type(insn);
    x->bits = packed == PTX_B6X16_P32 ? 6 : packed == PTX_B4X16_P64 ? 4 : 8;
    const enum ptx_space space = insn->n_spaces ? (enum ptx_space)insn->spaces[0] : PTX_SPACE_NONE;
    const struct emu_place_address address = emu_place_address(emit, &insn->operands[stores ? 0 : 1], space);
    const bool is_vector = value->kind == PTX_OPERAND_VECTOR;
    if (x->count > 4 || x->rows > MAX_ROWS || (is_vector ? value->n_elements : 1) != x->count)
        return emu_unsupported(emit, "a vector whose length does not fit the matrices");
    for (unsigned i = 0; i < x->count; i++) {
        const struct ptx_operand *part = is_vector ? &value->elements[i] : value;
        x->registers[i] = stores ? emu_source(emit, part, PTX_B32) : emu_dest(emit, part, PTX_B32);
    }
    emu_handler *handler = stores ? store : load;
    struct emu_op *op = emu_push(emit, handler, handler);
    emu_matrix_place(op, &address);
    op->extra = x;
    return CLAB_OK;
}

EMU_EMITTER(emu_ldmatrix_bytes)
{
    return bytes_emit(emit, insn, false);
}

EMU_EMITTER(emu_stmatrix_bytes)
{
    return bytes_emit(emit, insn, true);
}
