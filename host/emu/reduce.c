/* Reductions on memory chosen at run time: for asynchronous and vector forms, where an element is not worth a
   handler of its own (reduce.h; the scalar atom and red are in ops_atomic.c). */
#include "emu/reduce.h"

#include <stddef.h>

typedef uint16_t cell16 __attribute__((may_alias));
typedef uint32_t cell32 __attribute__((may_alias));
typedef uint64_t cell64 __attribute__((may_alias));

#define X(id, bits, expression)                                                                              \
    static uint64_t apply_##id(void *at, uint64_t value)                                                     \
    {                                                                                                        \
        cell##bits *cell = at;                                                                               \
        const uint##bits##_t b = (uint##bits##_t)value;                                                      \
        uint##bits##_t a = __atomic_load_n(cell, __ATOMIC_RELAXED);                                          \
        while (!__atomic_compare_exchange_n(cell, &a, (uint##bits##_t)(expression), false, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_RELAXED)) {                                             \
        }                                                                                                    \
        return a;                                                                                            \
    }
EMU_REDUCTIONS(X)
#undef X

static uint64_t (*const appliers[])(void *, uint64_t) = {
#define X(id, bits, expression) apply_##id,
    EMU_REDUCTIONS(X)
#undef X
};
static const uint8_t element_bytes[] = {
#define X(id, bits, expression) bits / 8,
    EMU_REDUCTIONS(X)
#undef X
};

uint64_t emu_reduce_atomic(enum emu_reduction reduction, void *at, uint64_t value)
{
    return appliers[reduction](at, value);
}

unsigned emu_reduction_bytes(enum emu_reduction reduction)
{
    return element_bytes[reduction];
}

enum emu_reduction emu_reduction_of(const struct ptx_insn *insn, enum ptx_type type)
{
    const bool wide = ptx_types[type].bits == 64;
    if (ptx_has(insn, PTX_MOD_AND)) {
        return wide ? EMU_REDUCE_and_64 : EMU_REDUCE_and_32;
    }
    if (ptx_has(insn, PTX_MOD_OR)) {
        return wide ? EMU_REDUCE_or_64 : EMU_REDUCE_or_32;
    }
    if (ptx_has(insn, PTX_MOD_XOR)) {
        return wide ? EMU_REDUCE_xor_64 : EMU_REDUCE_xor_32;
    }
    if (ptx_has(insn, PTX_MOD_EXCH)) {
        return wide ? EMU_REDUCE_exch_64 : EMU_REDUCE_exch_32;
    }
    if (ptx_has(insn, PTX_MOD_INC)) {
        return EMU_REDUCE_inc_32;
    }
    if (ptx_has(insn, PTX_MOD_DEC)) {
        return EMU_REDUCE_dec_32;
    }
    const int kind = ptx_has(insn, PTX_MOD_ADD)   ? 0
                     : ptx_has(insn, PTX_MOD_MIN) ? 1
                     : ptx_has(insn, PTX_MOD_MAX) ? 2
                                                  : 3;
    if (kind == 3) {
        return EMU_REDUCE_COUNT;
    }
    const enum emu_reduction none = EMU_REDUCE_COUNT;
#define OF(add, min, max) (kind == 0 ? (add) : kind == 1 ? (min) : (max))
    switch (type) {
    case PTX_U32:
        return OF(EMU_REDUCE_add_32, EMU_REDUCE_min_u32, EMU_REDUCE_max_u32);
    case PTX_S32:
        return OF(EMU_REDUCE_add_32, EMU_REDUCE_min_s32, EMU_REDUCE_max_s32);
    case PTX_U64:
        return OF(EMU_REDUCE_add_64, EMU_REDUCE_min_u64, EMU_REDUCE_max_u64);
    case PTX_S64:
        return OF(EMU_REDUCE_add_64, EMU_REDUCE_min_s64, EMU_REDUCE_max_s64);
    case PTX_F32:
        return OF(EMU_REDUCE_add_f32, none, none);
    case PTX_F64:
        return OF(EMU_REDUCE_add_f64, none, none);
    case PTX_F16:
        return OF(EMU_REDUCE_add_f16, EMU_REDUCE_min_f16, EMU_REDUCE_max_f16);
    case PTX_BF16:
        return OF(EMU_REDUCE_add_bf16, EMU_REDUCE_min_bf16, EMU_REDUCE_max_bf16);
    case PTX_F16X2:
        return OF(EMU_REDUCE_add_f16x2, EMU_REDUCE_min_f16x2, EMU_REDUCE_max_f16x2);
    case PTX_BF16X2:
        return OF(EMU_REDUCE_add_bf16x2, EMU_REDUCE_min_bf16x2, EMU_REDUCE_max_bf16x2);
    default:
        return none;
    }
#undef OF
}
