/* mma.sync and mma.sp.sync: D = A * B + C over the registers of a warp. PTX ISA 9.0, "Matrix
   multiply-accumulate operation using mma instruction", "… using mma.sp instruction with sparse matrix A".
   All element types; wmma is ops_wmma.c.

   Fragments (group g = lane / 4, thread t = lane mod 4, e elements in a 32-bit register): register r of A
   holds rows g + 8 * (r mod 2) (g for m8) and columns 4 e (r / 2) + e t up (4 e r + e t for m8); register r
   of B holds rows 4 e r + e t up of column g; elements 2 h and 2 h + 1 of C and D are row g + 8 h, columns 2
   t and 2 t + 1. .m8n8k4 of f16 has layouts of its own.

   A sparse A holds half of its columns, laid out as a dense matrix of half the width. The metadata names
   their places, two bits each: of every four elements two (for 4-bit types: of every four pairs two pairs,
   for tf32: four bits for one of every two). In a group of four lanes one, two or four lanes hold them, first
   those of row g, then those of row g + 8, then both again for the next columns; the selector names the lane
   or pair. Places that the manual calls invalid are taken as they come.

   Block scaling ("Block scaling for mma.sync"; sm_120 and up, UNVERIFIED on hardware, the sums too): A's rows
   and B's columns are cut into one, two or four parts along k, each with a scale in one byte. Of row m of A
   lane 4 * (m mod 8) + 2 * thread-id + m / 8 holds them, of column n of B lane 4 n + thread-id, from byte
   byte-id up. */
#include "emu/collective.h"
#include "emu/product.h"

#define MAX_M 16
#define MAX_N 8
#define MAX_F 128 /* k of float products, dense */

struct mma {
    unsigned m, n, k;
    unsigned a_k; /* columns that A holds: k, or half of it */
    enum emu_element a_type, b_type;
    bool c_f16, d_f16; /* else f32 */
    bool a_col, b_col; /* .m8n8k4 of f16 */
    bool satfinite, xor;
    bool sparse;
    uint8_t mode, selector;
    uint32_t a[8], b[4], c[8], d[8]; /* rows */
    uint32_t metadata;               /* row */
    struct scale {
        uint32_t data, byte_id, thread_id; /* rows */
    } a_scale, b_scale;
    unsigned scale_parts; /* 0: no scaling */
    bool scale_e4m3;      /* ue4m3, else ue8m0 */
};

/* Where element j of register r of a lane is in A (row, column) and in B (row). */
static unsigned a_row(const struct mma *x, unsigned lane, unsigned r)
{
    return lane / 4 + (x->m == 16 ? 8 * (r % 2) : 0);
}

static unsigned a_column(const struct mma *x, unsigned lane, unsigned r, unsigned e, unsigned j)
{
    return 4 * e * (x->m == 16 ? r / 2 : r) + e * (lane % 4) + j;
}

static unsigned b_row(unsigned lane, unsigned r, unsigned e, unsigned j)
{
    return 4 * e * r + e * (lane % 4) + j;
}

/* Registers of A and B that hold the matrices, e elements each. */
static unsigned a_registers(const struct mma *x, unsigned e)
{
    return x->m * x->a_k / (EMU_LANES * e);
}

static unsigned b_registers(const struct mma *x, unsigned e)
{
    return x->n * x->k / (EMU_LANES * e);
}

static uint32_t word_of(struct emu_warp *warp, uint32_t row, unsigned lane)
{
    return EMU_ROW(uint32_t, warp, row)[lane];
}

/* Element i of C of a lane, f32 or packed f16. */
static float c_element(struct emu_warp *warp, const struct mma *x, unsigned lane, unsigned i)
{
    if (x->c_f16)
        return emu_f16_to_f32(word_of(warp, x->c[i / 2], lane) >> (16 * (i % 2)) & 0xffff);
    return EMU_ROW(float, warp, x->c[i])[lane];
}

static void d_element(struct emu_warp *warp, const struct mma *x, unsigned lane, unsigned i, float value)
{
    if (!(warp->exec >> lane & 1))
        return;
    if (!x->d_f16) {
        EMU_ROW(float, warp, x->d[i])[lane] = emu_canon(value);
        return;
    }
    uint32_t *d = &EMU_ROW(uint32_t, warp, x->d[i / 2])[lane];
    const uint32_t half = emu_f32_to_f16(value);
    *d = i % 2 ? (*d & 0xffff) | half << 16 : (*d & 0xffff0000u) | half;
}

/* The column of the dense A where column `column` of the sparse one stands. */
static unsigned dense_column(struct emu_warp *warp, const struct mma *x, unsigned row, unsigned column)
{
    const bool single = x->a_type == EMU_ELEMENT_TF32; /* one of two, in four bits */
    const bool pairs = emu_element_bits(x->a_type) == 4;
    const unsigned step = pairs ? column / 2 : column; /* of the metadata */
    const unsigned bits = single ? 4 : 2;
    const unsigned row_bits = (pairs ? x->a_k / 2 : x->a_k) * bits; /* of one row */
    /* What the four lanes' register of one row needs. */
    const unsigned word_bits = emu_element_bits(x->a_type) < 16 ? 32 : 16;
    const unsigned at = step * bits;
    /* Blocks of word_bits, those of the two rows alternating. */
    const unsigned block = at / word_bits * 2 + row / 8;
    const unsigned bit = block * word_bits + at % word_bits;
    const unsigned holders = row_bits * 2 / 32; /* 1, 2 or 4 lanes */
    const unsigned lane = row % 8 * 4 + (x->selector * holders & 3) + bit / 32;
    const unsigned place = word_of(warp, x->metadata, lane) >> bit % 32 & 3;
    if (single) /* 0b1110 the second, 0b0100 the first */
        return column * 2 + (place >> 1);
    return pairs ? step / 2 * 8 + place * 2 + column % 2 : step / 2 * 4 + place;
}

static double scale_of(struct emu_warp *warp, const struct mma *x, const struct scale *scale, unsigned lane,
                       unsigned part)
{
    const unsigned byte = EMU_ROW(uint16_t, warp, scale->byte_id)[lane] + part;
    const uint32_t code = word_of(warp, scale->data, lane) >> (8 * (byte & 3)) & 0xff;
    if (x->scale_e4m3)
        return emu_format_decode(code & 0x7f, &emu_e4m3);
    return code == 0xff ? emu_bits_f64(EMU_NAN_F64) : emu_power_of_two((int)code - 127);
}

/* Multiplies A and B by their scales. place: of A's columns in the dense matrix, NULL when it is dense. */
static void apply_scales(struct emu_warp *warp, const struct mma *x, double a[MAX_M][MAX_F],
                         double b[MAX_N][MAX_F], unsigned place[MAX_M][MAX_F / 2])
{
    const unsigned part = x->k / x->scale_parts;
    for (unsigned row = 0; row < MAX_M; row++) {
        const unsigned quad = 4 * (row % 8);
        const unsigned thread = EMU_ROW(uint16_t, warp, x->a_scale.thread_id)[quad] & 1;
        for (unsigned k = 0; k < x->a_k; k++)
            a[row][k] *= scale_of(warp, x, &x->a_scale, quad + 2 * thread + row / 8,
                                  (x->sparse ? place[row][k] : k) / part);
    }
    for (unsigned column = 0; column < MAX_N; column++) {
        const unsigned thread = EMU_ROW(uint16_t, warp, x->b_scale.thread_id)[4 * column] & 3;
        for (unsigned k = 0; k < x->k; k++)
            b[column][k] *= scale_of(warp, x, &x->b_scale, 4 * column + thread, k / part);
    }
}

static const struct emu_op *mma_float(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    double a[MAX_M][MAX_F], b[MAX_N][MAX_F];
    float c[EMU_LANES][4];
    const unsigned e = 32 / emu_element_bits(x->a_type), n_c = x->m == 16 ? 4 : 2;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < a_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                a[a_row(x, lane, r)][a_column(x, lane, r, e, j)] =
                    emu_float_element(x->a_type, word_of(warp, x->a[r], lane), j);
        for (unsigned r = 0; r < b_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                b[lane / 4][b_row(lane, r, e, j)] =
                    emu_float_element(x->b_type, word_of(warp, x->b[r], lane), j);
        for (unsigned i = 0; i < n_c; i++)
            c[lane][i] = c_element(warp, x, lane, i);
    }
    unsigned place[MAX_M][MAX_F / 2];
    for (unsigned row = 0; row < MAX_M && x->sparse; row++)
        for (unsigned k = 0; k < x->a_k; k++)
            place[row][k] = dense_column(warp, x, row, k);
    if (x->scale_parts)
        apply_scales(warp, x, a, b, place);
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < n_c; i++) {
            const unsigned row = lane / 4 + 8 * (i / 2);
            const double *column = b[lane % 4 * 2 + i % 2];
            double met[MAX_F];
            for (unsigned k = 0; k < x->a_k && x->sparse; k++)
                met[k] = column[place[row][k]];
            const double *with = x->sparse ? met : column;
            d_element(warp, x, lane, i,
                      x->scale_parts ? emu_cut_f32(emu_tensor_sum(c[lane][i], a[row], with, x->a_k))
                                     : emu_dot(x->a_type, x->d_f16, c[lane][i], a[row], with, x->a_k));
        }
    return op + 1;
}

/* --- .m8n8k4 of f16: four products at once, each by the lanes 4q to 4q + 3 and 16 more. An H200's driver
   compiles it to f32 fma and adds C at the end; with an f16 D and A by columns it adds two pairs to C. */
static float fma_chain(float c, const float *a, const float *b)
{
    float sum = 0;
    for (unsigned k = 0; k < 4; k++)
        sum = emu_fma_f32(a[k], b[k], sum);
    return sum + c;
}

static float fma_pairs(float c, const float *a, const float *b)
{
    const float low = emu_fma_f32(a[1], b[1], a[0] * b[0]), high = emu_fma_f32(a[3], b[3], a[2] * b[2]);
    return c + high + low;
}

static const struct emu_op *mma_m8n8k4(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    float a[4][8][4], b[4][8][4]; /* b by column */
    float c[EMU_LANES][8];
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        const unsigned q = lane % 16 / 4, outer = lane % 4, high = lane < 16 ? 0 : 4;
        for (unsigned i = 0; i < 4; i++) {
            const float av =
                (float)emu_float_element(EMU_ELEMENT_F16, word_of(warp, x->a[i / 2], lane), i % 2);
            const float bv =
                (float)emu_float_element(EMU_ELEMENT_F16, word_of(warp, x->b[i / 2], lane), i % 2);
            if (x->a_col)
                a[q][i + high][outer] = av;
            else
                a[q][outer + high][i] = av;
            if (x->b_col)
                b[q][outer + high][i] = bv;
            else
                b[q][i + high][outer] = bv;
        }
        for (unsigned i = 0; i < 8; i++)
            c[lane][i] = c_element(warp, x, lane, i);
    }
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        const unsigned q = lane % 16 / 4, high = lane < 16 ? 0 : 4;
        for (unsigned i = 0; i < 8; i++) {
            /* f16 accumulators are a row of eight; f32 ones are spread over two rows, as are mixed ones (C
               f16, D f32: each in its own layout, which the register numbers of C and D tell apart). */
            const unsigned row = x->d_f16 ? lane % 4 + high : (lane & 1) + (i & 2) + high;
            const unsigned column = x->d_f16 ? i : (i & 4) + (lane & 2) + (i & 1);
            float start = c[lane][i];
            if (x->c_f16 && !x->d_f16) {
                const unsigned owner = 4 * q + row % 4 + (row < 4 ? 0 : 16);
                start = c[owner][column];
            }
            d_element(warp, x, lane, i,
                      x->d_f16 && x->a_col ? fma_pairs(start, a[q][row], b[q][column])
                                           : fma_chain(start, a[q][row], b[q][column]));
        }
    }
    return op + 1;
}

/* --- Integers of 8, 4 and 1 bits: exact. The products of 1-bit elements are their and, or their xor. */
static const struct emu_op *mma_int(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    int32_t a[MAX_M][EMU_MAX_K], b[MAX_N][EMU_MAX_K], c[EMU_LANES][4];
    const unsigned e = 32 / emu_element_bits(x->a_type), n_c = x->m == 16 ? 4 : 2;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < a_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                a[a_row(x, lane, r)][a_column(x, lane, r, e, j)] =
                    emu_int_element(x->a_type, word_of(warp, x->a[r], lane), j);
        for (unsigned r = 0; r < b_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                b[lane / 4][b_row(lane, r, e, j)] =
                    emu_int_element(x->b_type, word_of(warp, x->b[r], lane), j);
        for (unsigned i = 0; i < n_c; i++)
            c[lane][i] = (int32_t)word_of(warp, x->c[i], lane);
    }
    unsigned place[MAX_M][EMU_MAX_K / 2];
    for (unsigned row = 0; row < MAX_M && x->sparse; row++)
        for (unsigned k = 0; k < x->a_k; k++)
            place[row][k] = dense_column(warp, x, row, k);
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < n_c && (warp->exec >> lane & 1); i++) {
            const unsigned row = lane / 4 + 8 * (i / 2);
            const int32_t *column = b[lane % 4 * 2 + i % 2];
            int32_t met[EMU_MAX_K], sum = c[lane][i];
            for (unsigned k = 0; k < x->a_k; k++)
                met[k] = x->xor ? a[row][k] ^ column[k] : x->sparse ? column[place[row][k]] : column[k];
            if (x->xor)
                for (unsigned k = 0; k < x->a_k; k++)
                    sum = (int32_t)((uint32_t)sum + (uint32_t)met[k]);
            EMU_ROW(uint32_t, warp, x->d[i])
            [lane] = x->xor ? (uint32_t)sum : emu_int_dot(x->satfinite, sum, a[row], met, x->a_k);
        }
    return op + 1;
}

/* --- f64: a chain of fma in the order of k. */
static const struct emu_op *mma_f64(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    double a[MAX_M][16], b[MAX_N][16], c[EMU_LANES][4];
    const unsigned n_c = x->m == 16 ? 4 : 2;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < a_registers(x, 1); r++)
            a[a_row(x, lane, r)][a_column(x, lane, r, 1, 0)] = EMU_ROW(double, warp, x->a[r])[lane];
        for (unsigned r = 0; r < b_registers(x, 1); r++)
            b[lane / 4][b_row(lane, r, 1, 0)] = EMU_ROW(double, warp, x->b[r])[lane];
        for (unsigned i = 0; i < n_c; i++)
            c[lane][i] = EMU_ROW(double, warp, x->c[i])[lane];
    }
    const uint64_t old = emu_round_enter(x->mode);
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < n_c && (warp->exec >> lane & 1); i++) {
            double sum = c[lane][i];
            for (unsigned k = 0; k < x->k; k++)
                sum = emu_product_fma(a[lane / 4 + 8 * (i / 2)][k], b[lane % 4 * 2 + i % 2][k], sum);
            EMU_ROW(double, warp, x->d[i])[lane] = sum;
        }
    emu_round_leave(old);
    return op + 1;
}

/* --- decoding. */
/* Layouts of .m8n8k4 of f16, in the order written: of A, then of B. */
static void layouts_of(const struct ptx_insn *insn, struct mma *x)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < insn->n_mods; i++)
        if (insn->mods[i] == PTX_MOD_ROW || insn->mods[i] == PTX_MOD_COL) {
            *(seen++ ? &x->b_col : &x->a_col) = insn->mods[i] == PTX_MOD_COL;
        }
}

/* scale-a-data, {byte-id-a, thread-id-a}, scale-b-data, {byte-id-b, thread-id-b}: from operand `at` on. */
static bool scales_of(struct emu_emit *emit, const struct ptx_insn *insn, unsigned at, struct mma *x)
{
    struct scale *scales[] = {&x->a_scale, &x->b_scale};
    for (unsigned i = 0; i < 2; i++) {
        uint32_t ids[2];
        if (at + 2 > insn->n_operands)
            return false;
        scales[i]->data = emu_source(emit, &insn->operands[at++], PTX_B32);
        if (!emu_rows_of(emit, &insn->operands[at++], 2, PTX_U16, false, ids))
            return false;
        scales[i]->byte_id = ids[0];
        scales[i]->thread_id = ids[1];
    }
    return true;
}

EMU_EMITTER(emu_mma)
{
    struct mma *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return CLAB_NO_MEMORY;
    /* Types: of D, A, B, C. */
    unsigned mnk[3];
    if (insn->n_types < 4 || !emu_shape_of(insn, mnk) || !emu_element_of(emu_type(insn, 1), &x->a_type) ||
        !emu_element_of(emu_type(insn, 2), &x->b_type))
        return emu_unsupported(emit, "this shape or type of mma");
    x->m = mnk[0];
    x->n = mnk[1];
    x->k = mnk[2];
    const enum ptx_type d_type = emu_type(insn, 0), c_type = emu_type(insn, 3);
    x->d_f16 = d_type == PTX_F16;
    x->c_f16 = c_type == PTX_F16;
    x->satfinite = ptx_has(insn, PTX_MOD_SATFINITE);
    x->xor = ptx_has(insn, PTX_MOD_XOR);
    x->mode = (uint8_t)emu_round_of(insn);
    x->sparse = ptx_has(insn, PTX_MOD_SP) || ptx_has(insn, PTX_MOD_SP__ORDERED_METADATA);
    x->a_k = x->sparse ? x->k / 2 : x->k;
    layouts_of(insn, x);
    const bool fours = ptx_has(insn, PTX_MOD_KIND__MXF4) || ptx_has(insn, PTX_MOD_KIND__MXF4NVF4);
    if (fours)
        x->a_type = x->b_type = EMU_ELEMENT_E2M1_PACKED;
    if (ptx_has(insn, PTX_MOD_BLOCK_SCALE))
        x->scale_parts = ptx_has(insn, PTX_MOD_SCALE_VEC__4X) ? 4 : fours ? 2 : 1;
    x->scale_e4m3 = insn->n_types > 4 && emu_type(insn, 4) == PTX_UE4M3;
    const bool f64 = x->a_type == EMU_ELEMENT_F64, is_int = emu_element_is_int(x->a_type);
    const bool quads = x->k == 4 && x->m == 8 && x->a_type == EMU_ELEMENT_F16;
    const enum ptx_type word = f64 ? PTX_F64 : PTX_B32;
    const unsigned e = f64 ? 1 : 32 / emu_element_bits(x->a_type);
    const unsigned n_c = quads ? 8 : x->m == 16 ? 4 : 2;
    const unsigned n_a = quads ? 2 : a_registers(x, e), n_b = quads ? 2 : b_registers(x, e);
    if (x->m > MAX_M || x->n != MAX_N || x->k > (is_int ? EMU_MAX_K : MAX_F) || n_a > 8 || n_b > 4 ||
        !emu_rows_of(emit, &insn->operands[1], n_a, word, false, x->a) ||
        !emu_rows_of(emit, &insn->operands[2], n_b, word, false, x->b) ||
        !emu_rows_of(emit, &insn->operands[3], x->c_f16 ? n_c / 2 : n_c, word, false, x->c))
        return emu_unsupported(emit, "an mma operand whose number of registers does not fit its shape");
    if (x->sparse) {
        if (insn->n_operands < 6)
            return emu_unsupported(emit, "mma.sp without metadata and selector");
        x->metadata = emu_source(emit, &insn->operands[4], PTX_B32);
        x->selector = (uint8_t)(insn->operands[5].imm & 3);
    }
    if (x->scale_parts && !scales_of(emit, insn, x->sparse ? 6 : 4, x))
        return emu_unsupported(emit, "these scales of mma");
    if (!emu_rows_of(emit, &insn->operands[0], x->d_f16 ? n_c / 2 : n_c, word, true, x->d))
        return emu_unsupported(emit, "an mma result whose number of registers does not fit its shape");
    emu_handler *handler = f64 ? mma_f64 : is_int ? mma_int : quads ? mma_m8n8k4 : mma_float;
    emu_push(emit, handler, handler)->extra = x;
    return CLAB_OK;
}
