/* ldmatrix, stmatrix, movmatrix with 8x8 matrices of 16-bit elements. PTX ISA 9.0, "Warp-level matrix load
   instruction", "store", "transpose". The shapes of
   8-bit elements: ops_matrix_bytes.c.

   A matrix is eight rows of 16 bytes; lanes 8m to 8m + 7 give the addresses of the rows of matrix m. Lane L
   holds the elements 2 * (L mod 4) and one more of row L / 4; with .trans those of column L / 4. */
#include "emu/matrix_rows.h"

#define ROWS 8

struct matrices {
    uint32_t rows[4];
    unsigned count;
    bool trans;
};

/* Waits for all live lanes. */
static bool converged(struct emu_warp *warp, const struct emu_op *op)
{
    return emu_converged(warp, op, EMU_ALL);
}

/* Byte offset in row `row` of element j (0, 1) of a lane's pair, and that row. */
static unsigned element(unsigned lane, unsigned j, bool trans, unsigned *out_row)
{
    *out_row = trans ? lane % 4 * 2 + j : lane / 4;
    return 2 * (trans ? lane / 4 : lane % 4 * 2 + j);
}

static const struct emu_op *ldmatrix(struct emu_warp *warp, const struct emu_op *op)
{
    const struct matrices *x = op->extra;
    unsigned char *from[4 * ROWS];
    if (!converged(warp, op) || !emu_matrix_rows(warp, op, ROWS * x->count, EMU_LOAD, from))
        return NULL;
    for (unsigned m = 0; m < x->count; m++) {
        uint32_t *d = EMU_ROW(uint32_t, warp, x->rows[m]);
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
            uint32_t value = 0;
            for (unsigned j = 0; j < 2; j++) {
                unsigned row;
                uint16_t half;
                const unsigned at = element(lane, j, x->trans, &row);
                memcpy(&half, from[ROWS * m + row] + at, sizeof half);
                value |= (uint32_t)half << (16 * j);
            }
            if (warp->exec >> lane & 1)
                d[lane] = value;
        }
    }
    return op + 1;
}

static const struct emu_op *stmatrix(struct emu_warp *warp, const struct emu_op *op)
{
    const struct matrices *x = op->extra;
    unsigned char *to[4 * ROWS];
    if (!converged(warp, op) || !emu_matrix_rows(warp, op, ROWS * x->count, EMU_STORE, to))
        return NULL;
    for (unsigned m = 0; m < x->count; m++) {
        const uint32_t *a = EMU_ROW(uint32_t, warp, x->rows[m]);
        for (unsigned lane = 0; lane < EMU_LANES; lane++)
            for (unsigned j = 0; j < 2 && (warp->exec >> lane & 1); j++) {
                unsigned row;
                const uint16_t half = (uint16_t)(a[lane] >> (16 * j));
                const unsigned at = element(lane, j, x->trans, &row);
                memcpy(to[ROWS * m + row] + at, &half, sizeof half);
            }
    }
    emu_progress(warp);
    return op + 1;
}

static clab_status matrix_access(struct emu_emit *emit, const struct ptx_insn *insn, bool store)
{
    struct matrices *x = emu_emit_alloc(emit, sizeof *x);
    const struct ptx_operand *value = &insn->operands[store ? 1 : 0];
    const unsigned count = ptx_has(insn, PTX_MOD_X4) ? 4 : ptx_has(insn, PTX_MOD_X2) ? 2 : 1;
    const bool is_vector = value->kind == PTX_OPERAND_VECTOR;
    if (!x || (is_vector ? value->n_elements : 1) != count)
        return emu_unsupported(emit, "a vector whose length is not that of .x%u", count);
    const enum ptx_space space = insn->n_spaces ? (enum ptx_space)insn->spaces[0] : PTX_SPACE_NONE;
    const struct emu_place_address address = emu_place_address(emit, &insn->operands[store ? 0 : 1], space);
    x->count = count;
    x->trans = ptx_has(insn, PTX_MOD_TRANS);
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *part = is_vector ? &value->elements[i] : value;
        x->rows[i] = store ? emu_source(emit, part, PTX_B32) : emu_dest(emit, part, PTX_B32);
    }
    emu_handler *handler = store ? stmatrix : ldmatrix;
    struct emu_op *op = emu_push(emit, handler, handler);
    emu_matrix_place(op, &address);
    op->extra = x;
    return CLAB_OK;
}

EMU_EMITTER(emu_ldmatrix)
{
    return matrix_access(emit, insn, false);
}

EMU_EMITTER(emu_stmatrix)
{
    return matrix_access(emit, insn, true);
}

/* movmatrix.trans: the transposed matrix, straight from register to register. */
static const struct emu_op *movmatrix(struct emu_warp *warp, const struct emu_op *op)
{
    if (!converged(warp, op))
        return NULL;
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    uint32_t a[EMU_LANES];
    memcpy(a, EMU_ROW(uint32_t, warp, op->a), sizeof a);
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        uint32_t value = 0;
        for (unsigned j = 0; j < 2; j++) {
            const unsigned row = lane % 4 * 2 + j, column = lane / 4;
            value |= (a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff) << (16 * j);
        }
        if (warp->exec >> lane & 1)
            d[lane] = value;
    }
    return op + 1;
}

EMU_EMITTER(emu_movmatrix)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B32);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op = emu_push(emit, movmatrix, movmatrix);
    op->d = d;
    op->a = a;
    return CLAB_OK;
}
