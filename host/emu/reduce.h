/* The functions that atom, red, red.async, multimem-free bulk reductions and their vector forms combine
   memory with: old and operand in, new value out, as bits. PTX ISA 9.0, "atom", "red", "red.async",
   "cp.reduce.async.bulk".

   Adding f32 by atom and red flushes subnormal inputs and results to zero of the same sign on global memory,
   and does not on shared memory, the CTA's own or another's, whatever the kind of address; bulk reductions
   flush nothing (measured on an H200). */
#ifndef CLAB_EMU_REDUCE_H
#define CLAB_EMU_REDUCE_H

#include <stdint.h>

#include "emu/half.h"
#include "ptx/ptx.h"

static inline uint32_t emu_reduce_add_f32(uint32_t a, uint32_t b)
{
    return emu_f32_bits(emu_canon(emu_bits_f32(a) + emu_bits_f32(b)));
}
static inline uint32_t emu_reduce_add_f32_ftz(uint32_t a, uint32_t b)
{
    return emu_f32_bits(emu_ftz(emu_canon(emu_ftz(emu_bits_f32(a)) + emu_ftz(emu_bits_f32(b)))));
}
/* On global memory a NaN comes back as it is, the operand's rather than the memory's; on shared memory quiet,
   the memory's rather than the operand's. An invalid sum is fff8000000000000. (Measured on an H200.) */
static inline uint64_t emu_reduce_add_f64(uint64_t a, uint64_t b)
{
    const double x = emu_bits_f64(a), y = emu_bits_f64(b), r = x + y;
    return y != y ? b : x != x ? a : r != r ? UINT64_C(0xfff8000000000000) : emu_f64_bits(r);
}
static inline uint64_t emu_reduce_add_f64_quiet(uint64_t a, uint64_t b)
{
    const double x = emu_bits_f64(a);
    const uint64_t r = x != x ? a : emu_reduce_add_f64(a, b);
    return emu_bits_f64(r) != emu_bits_f64(r) ? r | UINT64_C(1) << 51 : r;
}
/* Sums of two halves are exact in f32 when their exponents are near, and rounding twice does no harm: f32 has
   more than twice the digits of f16 and of bf16, plus two. */
static inline uint16_t emu_reduce_add_f16(uint16_t a, uint16_t b)
{
    return (uint16_t)emu_f32_to_f16(emu_f16_to_f32(a) + emu_f16_to_f32(b));
}
static inline uint16_t emu_reduce_add_bf16(uint16_t a, uint16_t b)
{
    return (uint16_t)emu_f32_to_bf16(emu_bf16_to_f32(a) + emu_bf16_to_f32(b));
}
/* -0 is below +0; of a number and a NaN the number; of two NaNs the canonical one. */
static inline uint16_t emu_reduce_order_half(uint16_t a, uint16_t b, uint16_t infinity, int want_max)
{
    const int a_nan = (a & 0x7fff) > infinity, b_nan = (b & 0x7fff) > infinity;
    const int32_t x = a & 0x8000 ? -(int32_t)(a & 0x7fff) - 1 : a,
                  y = b & 0x8000 ? -(int32_t)(b & 0x7fff) - 1 : b;
    if (a_nan || b_nan) {
        return (uint16_t)(a_nan && b_nan ? EMU_NAN_F16 : a_nan ? b : a);
    }
    return (x < y) == !want_max ? a : b;
}
static inline uint16_t emu_reduce_min_f16(uint16_t a, uint16_t b)
{
    return emu_reduce_order_half(a, b, 0x7c00, 0);
}
static inline uint16_t emu_reduce_max_f16(uint16_t a, uint16_t b)
{
    return emu_reduce_order_half(a, b, 0x7c00, 1);
}
static inline uint16_t emu_reduce_min_bf16(uint16_t a, uint16_t b)
{
    return emu_reduce_order_half(a, b, 0x7f80, 0);
}
static inline uint16_t emu_reduce_max_bf16(uint16_t a, uint16_t b)
{
    return emu_reduce_order_half(a, b, 0x7f80, 1);
}

/* X(id, bits of memory, expression over old a and operand b). A x2 form applies to both halves. */
#define EMU_HALVES(f, a, b)                                                                                \
    (uint32_t)(f((uint16_t)(a), (uint16_t)(b)) | (uint32_t)f((uint16_t)((a) >> 16), (uint16_t)((b) >> 16)) \
                                                     << 16)
#define EMU_REDUCTIONS(X)                                    \
    X(add_32, 32, a + b)                                     \
    X(add_64, 64, a + b)                                     \
    X(add_f32, 32, emu_reduce_add_f32(a, b))                 \
    X(add_f32_ftz, 32, emu_reduce_add_f32_ftz(a, b))         \
    X(add_f64, 64, emu_reduce_add_f64(a, b))                 \
    X(add_f64_quiet, 64, emu_reduce_add_f64_quiet(a, b))     \
    X(add_f16, 16, emu_reduce_add_f16(a, b))                 \
    X(add_bf16, 16, emu_reduce_add_bf16(a, b))               \
    X(add_f16x2, 32, EMU_HALVES(emu_reduce_add_f16, a, b))   \
    X(add_bf16x2, 32, EMU_HALVES(emu_reduce_add_bf16, a, b)) \
    X(min_f16, 16, emu_reduce_min_f16(a, b))                 \
    X(min_bf16, 16, emu_reduce_min_bf16(a, b))               \
    X(max_f16, 16, emu_reduce_max_f16(a, b))                 \
    X(max_bf16, 16, emu_reduce_max_bf16(a, b))               \
    X(min_f16x2, 32, EMU_HALVES(emu_reduce_min_f16, a, b))   \
    X(min_bf16x2, 32, EMU_HALVES(emu_reduce_min_bf16, a, b)) \
    X(max_f16x2, 32, EMU_HALVES(emu_reduce_max_f16, a, b))   \
    X(max_bf16x2, 32, EMU_HALVES(emu_reduce_max_bf16, a, b)) \
    X(inc_32, 32, a >= b ? 0 : a + 1)                        \
    X(dec_32, 32, a == 0 || a > b ? b : a - 1)               \
    X(min_u32, 32, a < b ? a : b)                            \
    X(max_u32, 32, a > b ? a : b)                            \
    X(min_s32, 32, (int32_t)a < (int32_t)b ? a : b)          \
    X(max_s32, 32, (int32_t)a > (int32_t)b ? a : b)          \
    X(min_u64, 64, a < b ? a : b)                            \
    X(max_u64, 64, a > b ? a : b)                            \
    X(min_s64, 64, (int64_t)a < (int64_t)b ? a : b)          \
    X(max_s64, 64, (int64_t)a > (int64_t)b ? a : b)          \
    X(and_32, 32, a &b)                                      \
    X(or_32, 32, a | b)                                      \
    X(xor_32, 32, a ^ b)                                     \
    X(exch_32, 32, ((void)a, b))                             \
    X(and_64, 64, a &b)                                      \
    X(or_64, 64, a | b)                                      \
    X(xor_64, 64, a ^ b)                                     \
    X(exch_64, 64, ((void)a, b))

enum emu_reduction {
#define X(id, bits, expression) EMU_REDUCE_##id,
    EMU_REDUCTIONS(X)
#undef X
        EMU_REDUCE_COUNT
};

/* The reduction that an instruction's .op and the type name; EMU_REDUCE_COUNT for none. f32: the flushing
 * one. */
enum emu_reduction emu_reduction_of(const struct ptx_insn *insn, enum ptx_type type);
/* Bytes of one element: 2, 4 or 8. */
unsigned emu_reduction_bytes(enum emu_reduction reduction);
/* *at = reduction(*at, value), atomically for host threads; value in the low bytes. Returns the old value. */
uint64_t emu_reduce_atomic(enum emu_reduction reduction, void *at, uint64_t value);

#endif
