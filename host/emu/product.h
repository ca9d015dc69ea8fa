/* What the matrix products (mma, mma.sp, wmma.mma) share: element types, elements out of registers, and one
   element of D from a row of A and a column of B. PTX ISA 9.0, "Warp Level Matrix Multiply-Accumulate
   Instructions". Orders of addition are those of an H200 (tests/conformance/warp.forms, matrix.forms). */
#ifndef CLAB_EMU_PRODUCT_H
#define CLAB_EMU_PRODUCT_H

#include "emu/alu.h"
#include "emu/format.h"
#include "emu/half.h"
#include "emu/tensor_sum.h"

#define EMU_MAX_K 256 /* of a dense product: .m16n8k256 of b1 */

enum emu_element {
    EMU_ELEMENT_F16,
    EMU_ELEMENT_BF16,
    EMU_ELEMENT_TF32,
    EMU_ELEMENT_E4M3,
    EMU_ELEMENT_E5M2,
    EMU_ELEMENT_E3M2, /* these three in a byte each */
    EMU_ELEMENT_E2M3,
    EMU_ELEMENT_E2M1,
    EMU_ELEMENT_S8,
    EMU_ELEMENT_U8,
    EMU_ELEMENT_S4,
    EMU_ELEMENT_U4,
    EMU_ELEMENT_B1,
    EMU_ELEMENT_F64,
    EMU_ELEMENT_E2M1_PACKED
};

/* False when a type is no element of a matrix. */
static inline bool emu_element_of(enum ptx_type type, enum emu_element *out)
{
    static const uint8_t types[] = {PTX_F16,  PTX_BF16, PTX_TF32, PTX_E4M3, PTX_E5M2, PTX_E3M2, PTX_E2M3,
                                    PTX_E2M1, PTX_S8,   PTX_U8,   PTX_S4,   PTX_U4,   PTX_B1,   PTX_F64};
    for (unsigned i = 0; i < sizeof types; i++)
        if (types[i] == type) {
            *out = (enum emu_element)i;
            return true;
        }
    return false;
}

/* Bits that an element takes in a register. */
static inline unsigned emu_element_bits(enum emu_element type)
{
    static const uint8_t bits[] = {16, 16, 32, 8, 8, 8, 8, 8, 8, 8, 4, 4, 1, 64, 4};
    return bits[type];
}

static inline bool emu_element_is_int(enum emu_element type)
{
    return type >= EMU_ELEMENT_S8 && type <= EMU_ELEMENT_B1;
}

static inline bool emu_element_is_f8(enum emu_element type)
{
    return type >= EMU_ELEMENT_E4M3 && type <= EMU_ELEMENT_E2M1;
}

/* Element j of a register. A 4-bit float in a byte stands in its bits 5 to 2. */
static inline double emu_float_element(enum emu_element type, uint32_t word, unsigned j)
{
    const uint32_t byte = word >> (8 * j & 31) & 0xff;
    switch (type) {
    case EMU_ELEMENT_F16:
        return (double)emu_f16_to_f32(word >> (16 * j) & 0xffff);
    case EMU_ELEMENT_BF16:
        return (double)emu_bf16_to_f32(word >> (16 * j) & 0xffff);
    case EMU_ELEMENT_TF32:
        return (double)emu_bits_f32(word & ~UINT32_C(0x1fff));
    case EMU_ELEMENT_E4M3:
        return emu_format_decode(byte, &emu_e4m3);
    case EMU_ELEMENT_E3M2:
        return emu_format_decode(byte & 0x3f, &emu_e3m2);
    case EMU_ELEMENT_E2M3:
        return emu_format_decode(byte & 0x3f, &emu_e2m3);
    case EMU_ELEMENT_E2M1:
        return emu_format_decode(byte >> 2 & 15, &emu_e2m1);
    case EMU_ELEMENT_E2M1_PACKED:
        return emu_format_decode(word >> (4 * j) & 15, &emu_e2m1);
    default:
        return emu_format_decode(byte, &emu_e5m2);
    }
}

static inline int32_t emu_int_element(enum emu_element type, uint32_t word, unsigned j)
{
    const unsigned bits = emu_element_bits(type);
    const uint32_t value = word >> (bits * j) & ((UINT32_C(1) << bits) - 1);
    const bool is_signed = type == EMU_ELEMENT_S8 || type == EMU_ELEMENT_S4;
    return is_signed && value >> (bits - 1) ? (int32_t)value - (INT32_C(1) << bits) : (int32_t)value;
}

static inline double emu_to_type_of_d(bool f16, double sum)
{
    if (f16)
        return (double)emu_f16_to_f32(emu_format_encode(sum, &emu_f16, EMU_RN, false, 0, 0));
    return (double)emu_cut_f32(sum);
}

/* C + A * B over k elements of a float type. f8 factors are made f16 and added by halves, as an H200's driver
   compiles them: of every four, the first two in one sum, the last two in the next; C is added at the end. */
static inline float emu_dot(enum emu_element type, bool d_f16, float c, const double *a, const double *b,
                            unsigned k)
{
    if (!emu_element_is_f8(type))
        return (float)emu_to_type_of_d(d_f16, emu_tensor_sum(c, a, b, k));
    double sum = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        double pa[EMU_MAX_K / 2], pb[EMU_MAX_K / 2];
        for (unsigned i = 0; i < k / 2; i++) {
            const unsigned from = i / 2 * 4 + 2 * pass + i % 2;
            pa[i] = a[from];
            pb[i] = b[from];
        }
        sum = emu_to_type_of_d(d_f16, emu_tensor_sum((float)sum, pa, pb, k / 2));
    }
    return (float)sum + c;
}

/* The same of integers: exact, the sum wraps or, with .satfinite, is clamped. */
static inline uint32_t emu_int_dot(bool satfinite, int32_t c, const int32_t *a, const int32_t *b, unsigned k)
{
    int64_t sum = c;
    for (unsigned i = 0; i < k; i++)
        sum += a[i] * b[i];
    if (satfinite)
        sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
    return (uint32_t)sum;
}

/* f64: one fma; NaNs as in ops_float.c. */
static inline double emu_product_fma(double x, double y, double z)
{
    const double r = __builtin_fma(x, y, z);
    const double nan = y != y ? y : z != z ? z : x != x ? x : emu_bits_f64(UINT64_C(0xfff8000000000000));
    return r == r ? r : emu_bits_f64(emu_f64_bits(nan) | UINT64_C(0x0008000000000000));
}

/* The rows of an operand that is a vector of `count` registers, or one register. False when it is not. */
static inline bool emu_rows_of(struct emu_emit *emit, const struct ptx_operand *operand, unsigned count,
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

/* The mMnNkK qualifier. False without one. */
static inline bool emu_shape_of(const struct ptx_insn *insn, unsigned out_mnk[3])
{
    for (unsigned i = 0; i < insn->n_mods; i++) {
        const char *at = ptx_mod_text[insn->mods[i]];
        unsigned part = 0;
        for (; part < 3 && *at == "mnk"[part] && at[1] >= '0' && at[1] <= '9'; part++) {
            out_mnk[part] = 0;
            for (at++; *at >= '0' && *at <= '9'; at++)
                out_mnk[part] = out_mnk[part] * 10 + (unsigned)(*at - '0');
        }
        if (part == 3 && !*at)
            return true;
    }
    return false;
}

#endif
