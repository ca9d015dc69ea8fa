/* mma.sync: D = A * B + C over the registers of a warp. PTX ISA 9.0, "Matrix multiply-accumulate operation
   using mma instruction". Element types f16, bf16, tf32, e4m3, e5m2, f64, s8, u8. Leaves out .sp, block
   scaling, s4, u4, b1 and wmma, which have no handler.

   Fragments (group g = lane / 4, thread t = lane mod 4, e elements in a 32-bit register): register r of A
   holds rows g + 8 * (r mod 2) (g for m8) and columns 4 e (r / 2) + e t up (4 e r + e t for m8); register r
   of B holds rows 4 e r + e t up of column g; elements 2 h and 2 h + 1 of C and D are row g + 8 h, columns 2
   t and 2 t + 1. .m8n8k4 of f16 has layouts of its own. */
#include "emu/alu.h"
#include "emu/collective.h"
#include "emu/format.h"
#include "emu/half.h"
#include "emu/round.h"
#include "emu/tensor_sum.h"

#define MAX_M 16
#define MAX_N 8
#define MAX_K 32

enum element { F16, BF16, TF32, E4M3, E5M2, S8, U8, F64 };

struct mma {
    unsigned m, n, k;
    enum element a_type, b_type;
    bool c_f16, d_f16; /* else f32 */
    bool a_col, b_col; /* .m8n8k4 of f16 */
    bool satfinite;
    uint8_t mode;
    uint32_t a[8], b[4], c[8], d[8]; /* rows */
};

static unsigned bits_of(enum element type)
{
    switch (type) {
    case F16:
    case BF16:
        return 16;
    case TF32:
        return 32;
    case F64:
        return 64;
    default:
        return 8;
    }
}

/* Element j of a register. */
static double float_element(enum element type, uint32_t word, unsigned j)
{
    switch (type) {
    case F16:
        return (double)emu_f16_to_f32(word >> (16 * j) & 0xffff);
    case BF16:
        return (double)emu_bf16_to_f32(word >> (16 * j) & 0xffff);
    case TF32:
        return (double)emu_bits_f32(word & ~UINT32_C(0x1fff));
    case E4M3:
        return emu_format_decode(word >> (8 * j) & 0xff, &emu_e4m3);
    default:
        return emu_format_decode(word >> (8 * j) & 0xff, &emu_e5m2);
    }
}

static int32_t int_element(enum element type, uint32_t word, unsigned j)
{
    const uint32_t byte = word >> (8 * j) & 0xff;
    return type == S8 ? (int8_t)byte : (int32_t)byte;
}

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
    return x->m * x->k / (EMU_LANES * e);
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

static double to_type_of_d(const struct mma *x, double sum)
{
    if (x->d_f16)
        return (double)emu_f16_to_f32(emu_format_encode(sum, &emu_f16, EMU_RN, false, 0, 0));
    return (double)emu_cut_f32(sum);
}

/* One element of D. f8 factors are made f16 and added by halves, as an H200's driver compiles them: of every
   four, the first two in one sum, the last two in the next; C is added at the end. */
static float dot(const struct mma *x, float c, const double *a, const double *b)
{
    if (x->a_type != E4M3 && x->a_type != E5M2)
        return (float)to_type_of_d(x, emu_tensor_sum(c, a, b, x->k));
    double sum = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        double pa[MAX_K / 2], pb[MAX_K / 2];
        for (unsigned i = 0; i < x->k / 2; i++) {
            const unsigned from = i / 2 * 4 + 2 * pass + i % 2;
            pa[i] = a[from];
            pb[i] = b[from];
        }
        sum = to_type_of_d(x, emu_tensor_sum((float)sum, pa, pb, x->k / 2));
    }
    return (float)sum + c;
}

static const struct emu_op *mma_float(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    double a[MAX_M][MAX_K], b[MAX_N][MAX_K];
    float c[EMU_LANES][4];
    const unsigned e = 32 / bits_of(x->a_type), n_c = x->m == 16 ? 4 : 2;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < a_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                a[a_row(x, lane, r)][a_column(x, lane, r, e, j)] =
                    float_element(x->a_type, word_of(warp, x->a[r], lane), j);
        for (unsigned r = 0; r < b_registers(x, e); r++)
            for (unsigned j = 0; j < e; j++)
                b[lane / 4][b_row(lane, r, e, j)] = float_element(x->b_type, word_of(warp, x->b[r], lane), j);
        for (unsigned i = 0; i < n_c; i++)
            c[lane][i] = c_element(warp, x, lane, i);
    }
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < n_c; i++)
            d_element(warp, x, lane, i,
                      dot(x, c[lane][i], a[lane / 4 + 8 * (i / 2)], b[lane % 4 * 2 + i % 2]));
    return op + 1;
}

/* --- .m8n8k4 of f16: four products at once, each by the lanes 4q to 4q + 3 and 16 more. An H200's driver
   compiles it to f32 fma and adds C at the end. */
static float fma_chain(float c, const float *a, const float *b)
{
    float sum = 0;
    for (unsigned k = 0; k < 4; k++)
        sum = emu_fma_f32(a[k], b[k], sum);
    return sum + c;
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
            const float av = (float)float_element(F16, word_of(warp, x->a[i / 2], lane), i % 2);
            const float bv = (float)float_element(F16, word_of(warp, x->b[i / 2], lane), i % 2);
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
            d_element(warp, x, lane, i, fma_chain(start, a[q][row], b[q][column]));
        }
    }
    return op + 1;
}

/* --- s8, u8: exact, the sum wraps or, with .satfinite, is clamped. */
static const struct emu_op *mma_int(struct emu_warp *warp, const struct emu_op *op)
{
    const struct mma *x = op->extra;
    if (!emu_converged(warp, op, EMU_ALL))
        return NULL;
    int32_t a[MAX_M][MAX_K], b[MAX_N][MAX_K], c[EMU_LANES][4];
    const unsigned n_c = x->m == 16 ? 4 : 2;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        for (unsigned r = 0; r < a_registers(x, 4); r++)
            for (unsigned j = 0; j < 4; j++)
                a[a_row(x, lane, r)][a_column(x, lane, r, 4, j)] =
                    int_element(x->a_type, word_of(warp, x->a[r], lane), j);
        for (unsigned r = 0; r < b_registers(x, 4); r++)
            for (unsigned j = 0; j < 4; j++)
                b[lane / 4][b_row(lane, r, 4, j)] = int_element(x->b_type, word_of(warp, x->b[r], lane), j);
        for (unsigned i = 0; i < n_c; i++)
            c[lane][i] = (int32_t)word_of(warp, x->c[i], lane);
    }
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < n_c && (warp->exec >> lane & 1); i++) {
            int64_t sum = c[lane][i];
            for (unsigned k = 0; k < x->k; k++)
                sum += a[lane / 4 + 8 * (i / 2)][k] * b[lane % 4 * 2 + i % 2][k];
            if (x->satfinite)
                sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
            EMU_ROW(uint32_t, warp, x->d[i])[lane] = (uint32_t)sum;
        }
    return op + 1;
}

/* --- f64: a chain of fma in the order of k; NaNs as in ops_float.c. */
static double fma_f64(double x, double y, double z)
{
    const double r = __builtin_fma(x, y, z);
    const double nan = y != y ? y : z != z ? z : x != x ? x : emu_bits_f64(UINT64_C(0xfff8000000000000));
    return r == r ? r : emu_bits_f64(emu_f64_bits(nan) | UINT64_C(0x0008000000000000));
}

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
                sum = fma_f64(a[lane / 4 + 8 * (i / 2)][k], b[lane % 4 * 2 + i % 2][k], sum);
            EMU_ROW(double, warp, x->d[i])[lane] = sum;
        }
    emu_round_leave(old);
    return op + 1;
}

/* --- decoding. */
static bool element_of(enum ptx_type type, enum element *out)
{
    static const struct {
        enum ptx_type type;
        enum element element;
    } elements[] = {{PTX_F16, F16},   {PTX_BF16, BF16}, {PTX_TF32, TF32}, {PTX_E4M3, E4M3},
                    {PTX_E5M2, E5M2}, {PTX_S8, S8},     {PTX_U8, U8},     {PTX_F64, F64}};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].type == type) {
            *out = elements[i].element;
            return true;
        }
    return false;
}

static bool shape_of(const struct ptx_insn *insn, struct mma *x)
{
    static const struct {
        enum ptx_mod mod;
        uint8_t m, n, k;
    } shapes[] = {{PTX_MOD_M8N8K4, 8, 8, 4},   {PTX_MOD_M8N8K16, 8, 8, 16},   {PTX_MOD_M16N8K4, 16, 8, 4},
                  {PTX_MOD_M16N8K8, 16, 8, 8}, {PTX_MOD_M16N8K16, 16, 8, 16}, {PTX_MOD_M16N8K32, 16, 8, 32}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (ptx_has(insn, shapes[i].mod)) {
            x->m = shapes[i].m;
            x->n = shapes[i].n;
            x->k = shapes[i].k;
            return true;
        }
    return false;
}

/* The rows of operand `k`, a vector of `count` registers (or one register). */
static bool rows_of(struct emu_emit *emit, const struct ptx_operand *operand, unsigned count,
                    enum ptx_type type, bool written, uint32_t *out_rows)
{
    const bool is_vector = operand->kind == PTX_OPERAND_VECTOR;
    if ((is_vector ? operand->n_elements : 1) != count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_operand *part = is_vector ? &operand->elements[i] : operand;
        out_rows[i] = written ? emu_dest(emit, part, type) : emu_source(emit, part, type);
    }
    return true;
}

/* Layouts of .m8n8k4 of f16, in the order written: of A, then of B. */
static void layouts_of(const struct ptx_insn *insn, struct mma *x)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < insn->n_mods; i++)
        if (insn->mods[i] == PTX_MOD_ROW || insn->mods[i] == PTX_MOD_COL) {
            *(seen++ ? &x->b_col : &x->a_col) = insn->mods[i] == PTX_MOD_COL;
        }
}

EMU_EMITTER(emu_mma)
{
    struct mma *x = emu_emit_alloc(emit, sizeof *x);
    if (!x)
        return CLAB_NO_MEMORY;
    /* Types: of D, A, B, C. */
    if (insn->n_types < 4 || !shape_of(insn, x) || !element_of(emu_type(insn, 1), &x->a_type) ||
        !element_of(emu_type(insn, 2), &x->b_type))
        return emu_unsupported(emit, "this shape or type of mma");
    const enum ptx_type d_type = emu_type(insn, 0), c_type = emu_type(insn, 3);
    x->d_f16 = d_type == PTX_F16;
    x->c_f16 = c_type == PTX_F16;
    x->satfinite = ptx_has(insn, PTX_MOD_SATFINITE);
    x->mode = (uint8_t)emu_round_of(insn);
    layouts_of(insn, x);
    const bool quads = x->k == 4 && x->m == 8 && x->a_type == F16;
    const enum ptx_type word = x->a_type == F64 ? PTX_F64 : PTX_B32;
    const unsigned e = x->a_type == F64 ? 1 : 32 / bits_of(x->a_type);
    const unsigned n_c = quads ? 8 : x->m == 16 ? 4 : 2;
    const unsigned n_a = quads ? 2 : a_registers(x, e), n_b = quads ? 2 : b_registers(x, e);
    if (n_a > 8 || n_b > 4 || !rows_of(emit, &insn->operands[1], n_a, word, false, x->a) ||
        !rows_of(emit, &insn->operands[2], n_b, word, false, x->b) ||
        !rows_of(emit, &insn->operands[3], x->c_f16 ? n_c / 2 : n_c, word, false, x->c) ||
        !rows_of(emit, &insn->operands[0], x->d_f16 ? n_c / 2 : n_c, word, true, x->d))
        return emu_unsupported(emit, "an mma operand whose number of registers does not fit its shape");
    emu_handler *handler = x->a_type == F64                     ? mma_f64
                           : x->a_type == S8 || x->a_type == U8 ? mma_int
                           : quads                              ? mma_m8n8k4
                                                                : mma_float;
    emu_push(emit, handler, handler)->extra = x;
    return CLAB_OK;
}
