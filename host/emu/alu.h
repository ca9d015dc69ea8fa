/* What the arithmetic chapters (ops_int.c, ops_float.c, …) share: pairs of handlers, emitters of the usual
   operand shapes, and the float rules of PTX ISA 9.0 "Floating Point Instructions" (canonical NaN, flush to
   zero, saturation).

   A NaN result of an f32 operation is 7fffffff whatever the payloads of its inputs. */
#ifndef CLAB_EMU_ALU_H
#define CLAB_EMU_ALU_H

#include <string.h>

#include "emu/emit.h"
#include "emu/lanes.h"

struct emu_pair {
    emu_handler *full, *masked;
};
#define EMU_PAIR(NAME)             \
    {                              \
        NAME##_full, NAME##_masked \
    }

/* A static pair is also needed where the table is indexed by type and a cell may be empty: {NULL, NULL}. */
#define EMU_NO_PAIR \
    {               \
        NULL, NULL  \
    }

/* 0, 1, 2, 3 for lanes of 8, 16, 32, 64 bits. */
static inline unsigned emu_size_index(enum ptx_type type)
{
    switch (emu_lane_bytes(type)) {
    case 1:
        return 0;
    case 2:
        return 1;
    case 4:
        return 2;
    default:
        return 3;
    }
}

static inline bool emu_is_signed(enum ptx_type type)
{
    return ptx_types[type].class == PTX_CLASS_SIGNED;
}

static inline enum ptx_type emu_type(const struct ptx_insn *insn, unsigned index)
{
    return index < insn->n_types ? (enum ptx_type)insn->types[index] : PTX_NONE;
}

/* The last type written: the operand type of most instructions. */
static inline enum ptx_type emu_last_type(const struct ptx_insn *insn)
{
    return insn->n_types ? (enum ptx_type)insn->types[insn->n_types - 1] : PTX_NONE;
}

static inline struct emu_op *emu_push_pair(struct emu_emit *emit, struct emu_pair pair, uint32_t d,
                                           uint32_t a, uint32_t b, uint32_t c)
{
    struct emu_op *op = emu_push(emit, pair.full, pair.masked);
    op->d = d;
    op->a = a;
    op->b = b;
    op->c = c;
    return op;
}

/* d, a / d, a, b / d, a, b, c with the types given. */
static inline clab_status emu_emit_unary(struct emu_emit *emit, const struct ptx_insn *insn,
                                         struct emu_pair pair, enum ptx_type td, enum ptx_type ta)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], ta);
    const uint32_t d = emu_dest(emit, &insn->operands[0], td);
    emu_push_pair(emit, pair, d, a, EMU_NO_ROW, EMU_NO_ROW);
    return CLAB_OK;
}

static inline clab_status emu_emit_binary(struct emu_emit *emit, const struct ptx_insn *insn,
                                          struct emu_pair pair, enum ptx_type td, enum ptx_type ta,
                                          enum ptx_type tb)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], ta);
    const uint32_t b = emu_source(emit, &insn->operands[2], tb);
    const uint32_t d = emu_dest(emit, &insn->operands[0], td);
    emu_push_pair(emit, pair, d, a, b, EMU_NO_ROW);
    return CLAB_OK;
}

static inline clab_status emu_emit_ternary(struct emu_emit *emit, const struct ptx_insn *insn,
                                           struct emu_pair pair, enum ptx_type td, enum ptx_type ta,
                                           enum ptx_type tb, enum ptx_type tc)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], ta);
    const uint32_t b = emu_source(emit, &insn->operands[2], tb);
    const uint32_t c = emu_source(emit, &insn->operands[3], tc);
    const uint32_t d = emu_dest(emit, &insn->operands[0], td);
    emu_push_pair(emit, pair, d, a, b, c);
    return CLAB_OK;
}

/* --- predicates: a mask word with bit i for lane i. */
static const uint32_t emu_lane_bit[EMU_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

/* Writes the executing lanes' bits of a predicate word. */
static inline void emu_pred_write(struct emu_warp *warp, uint32_t offset, uint32_t mask)
{
    uint32_t *word = &EMU_PRED(warp, offset);
    *word = (mask & warp->exec) | (*word & ~warp->exec);
}

/* --- bits and floats */
static inline uint32_t emu_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float emu_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t emu_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double emu_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define EMU_NAN_F32 UINT32_C(0x7fffffff)
#define EMU_NAN_F64 UINT64_C(0x7fffffffffffffff)
#define EMU_NAN_F16 UINT32_C(0x7fff) /* of bf16 too */

static inline float emu_canon(float r)
{
    return r == r ? r : emu_bits_f32(EMU_NAN_F32);
}

/* .ftz: subnormal to a zero of the same sign. */
static inline float emu_ftz(float x)
{
    const uint32_t u = emu_f32_bits(x);
    return (u & UINT32_C(0x7f800000)) ? x : emu_bits_f32(u & UINT32_C(0x80000000));
}

/* .sat: clamp to [0, 1]; NaN and -0 become +0. */
static inline float emu_sat(float x)
{
    const float low = x > 0.0f ? x : 0.0f;
    return low < 1.0f ? low : 1.0f;
}

static inline double emu_sat_f64(double x)
{
    const double low = x > 0.0 ? x : 0.0;
    return low < 1.0 ? low : 1.0;
}

#endif
