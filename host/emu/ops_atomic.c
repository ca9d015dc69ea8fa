/* atom and red: every operation, type and scope, on global and shared memory. PTX ISA 9.0, "Parallel
   Synchronization and Communication Instructions: atom, red".

   The lanes of a warp take effect in the order of their numbers. Global memory is changed by atomic
   instructions of the host, since clusters run on several host threads, all sequentially consistent, which is
   at least every .sem and .scope; shared memory belongs to one host thread and is changed by plain ones. When
   all lanes name one address, the whole warp is combined first and memory is changed once: the outcome of
   those lanes following each other without anybody between.

   128-bit operations on global memory: one host instruction on x86-64; elsewhere a lock that only they take.
   Leaves out nothing of the table; multimem.* are rows without a handler. */
#include "emu/fragment.h"
#include "emu/place.h"
#include "emu/reduce.h"

#include <string.h>

#if !defined(__x86_64__)
#include <stdatomic.h>
#endif

typedef uint16_t cell16 __attribute__((may_alias));
typedef uint32_t cell32 __attribute__((may_alias));
typedef uint64_t cell64 __attribute__((may_alias));

/* The address half, as in ops_memory.c. Handlers here serve both masks; lane_mask is not kept while all lanes
 * run. */
static __attribute__((noinline)) enum emu_lanes_kind resolve(struct emu_warp *warp, const struct emu_op *op,
                                                             unsigned size, struct emu_lanes *out)
{
    const bool full = warp->exec == EMU_ALL;
    switch ((enum emu_place_kind)op->u8[0]) {
    case EMU_AT_GLOBAL:
        return full ? emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_ATOMIC, true, out)
                    : emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_ATOMIC, false, out);
    case EMU_AT_SHARED:
        return full ? emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_ATOMIC, true, out)
                    : emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_ATOMIC, false, out);
    case EMU_AT_CLUSTER:
        return full ? emu_access_shared(warp, op, EMU_REACH_SHARED_CLUSTER, size, EMU_ATOMIC, true, out)
                    : emu_access_shared(warp, op, EMU_REACH_SHARED_CLUSTER, size, EMU_ATOMIC, false, out);
    case EMU_AT_KNOWN_GLOBAL:
        return emu_known_one(warp, op, EMU_REACH_GLOBAL, op->imm, size, EMU_ATOMIC, out);
    case EMU_AT_KNOWN_SHARED:
        return emu_known_shared(warp, op, size, EMU_ATOMIC, out);
    default:
        return full ? emu_access_generic(warp, op, size, EMU_ATOMIC, true, out)
                    : emu_access_generic(warp, op, size, EMU_ATOMIC, false, out);
    }
}

static inline unsigned char *pointer_of(const struct emu_lanes *access, enum emu_lanes_kind kind,
                                        unsigned lane, unsigned bytes)
{
    return kind == EMU_LANES_ROW ? (unsigned char *)((uintptr_t)access->at + (uintptr_t)lane * bytes)
                                 : access->lane[lane];
}

static const struct emu_op *finish(struct emu_warp *warp, const struct emu_op *op)
{
    emu_progress(warp);
    return op + 1;
}

/* One handler for each reduction of reduce.h, for any mask; a: what memory held, b: the lane's operand. */
#define X(id, bits, expression)                                                                             \
    static const struct emu_op *atom_##id(struct emu_warp *warp, const struct emu_op *op)                   \
    {                                                                                                       \
        struct emu_lanes access;                                                                            \
        const enum emu_lanes_kind kind = resolve(warp, op, (unsigned)__builtin_ctz(bits / 8), &access);     \
        if (kind == EMU_LANES_FAULT) {                                                                      \
            return NULL;                                                                                    \
        }                                                                                                   \
        const uint##bits##_t *row = EMU_ROW(uint##bits##_t, warp, op->b);                                   \
        uint##bits##_t old[EMU_LANES];                                                                      \
        if (kind == EMU_LANES_ONE) {                                                                        \
            cell##bits *cell = (cell##bits *)(void *)access.at;                                             \
            uint##bits##_t before = access.shared ? *cell : __atomic_load_n(cell, __ATOMIC_RELAXED), a;     \
            do {                                                                                            \
                a = before;                                                                                 \
                for (uint32_t left = warp->exec; left; left &= left - 1) {                                  \
                    const unsigned lane = (unsigned)__builtin_ctz(left);                                    \
                    const uint##bits##_t b = row[lane];                                                     \
                    old[lane] = a;                                                                          \
                    a = (uint##bits##_t)(expression);                                                       \
                }                                                                                           \
                if (access.shared) {                                                                        \
                    *cell = a;                                                                              \
                    break;                                                                                  \
                }                                                                                           \
            } while (                                                                                       \
                !__atomic_compare_exchange_n(cell, &before, a, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
        } else {                                                                                            \
            for (uint32_t left = warp->exec; left; left &= left - 1) {                                      \
                const unsigned lane = (unsigned)__builtin_ctz(left);                                        \
                cell##bits *cell = (cell##bits *)(void *)pointer_of(&access, kind, lane, bits / 8);         \
                const uint##bits##_t b = row[lane];                                                         \
                uint##bits##_t a;                                                                           \
                if (access.shared) {                                                                        \
                    a = *cell;                                                                              \
                    *cell = (uint##bits##_t)(expression);                                                   \
                } else {                                                                                    \
                    a = __atomic_load_n(cell, __ATOMIC_RELAXED);                                            \
                    while (!__atomic_compare_exchange_n(cell, &a, (uint##bits##_t)(expression), false,      \
                                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {              \
                    }                                                                                       \
                }                                                                                           \
                old[lane] = a;                                                                              \
            }                                                                                               \
        }                                                                                                   \
        if (op->d != EMU_NO_ROW) {                                                                          \
            uint##bits##_t *d = EMU_ROW(uint##bits##_t, warp, op->d);                                       \
            for (uint32_t left = warp->exec; left; left &= left - 1) {                                      \
                const unsigned lane = (unsigned)__builtin_ctz(left);                                        \
                d[lane] = old[lane];                                                                        \
            }                                                                                               \
        }                                                                                                   \
        return finish(warp, op);                                                                            \
    }
EMU_REDUCTIONS(X)
#undef X

/* Floating-point addition by generic addresses: how it treats subnormals and NaNs depends on where each
 * lane's memory is. */
#define GENERIC_ADD(type, bits, in_shared, in_global)                                                     \
    static const struct emu_op *atom_add_##type##_generic(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                                     \
        const uint32_t shared = lanes_in_shared(warp, op);                                                \
        if (shared == warp->exec || !shared) {                                                            \
            return shared ? atom_##in_shared(warp, op) : atom_##in_global(warp, op);                      \
        }                                                                                                 \
        struct emu_lanes access;                                                                          \
        if (resolve(warp, op, (unsigned)__builtin_ctz(bits / 8), &access) == EMU_LANES_FAULT) {           \
            return NULL;                                                                                  \
        }                                                                                                 \
        const uint##bits##_t *row = EMU_ROW(uint##bits##_t, warp, op->b);                                 \
        for (uint32_t left = warp->exec; left;                                                            \
             left &= left - 1) { /* in different spaces: a pointer per lane */                            \
            const unsigned lane = (unsigned)__builtin_ctz(left);                                          \
            const enum emu_reduction add =                                                                \
                shared >> lane & 1 ? EMU_REDUCE_##in_shared : EMU_REDUCE_##in_global;                     \
            const uint64_t old = emu_reduce_atomic(add, access.lane[lane], row[lane]);                    \
            if (op->d != EMU_NO_ROW) {                                                                    \
                EMU_ROW(uint##bits##_t, warp, op->d)[lane] = (uint##bits##_t)old;                         \
            }                                                                                             \
        }                                                                                                 \
        return finish(warp, op);                                                                          \
    }

/* The executing lanes whose generic addresses are in shared memory. */
static uint32_t lanes_in_shared(const struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_space *space = emu_warp_space(warp);
    const uint64_t *addresses = EMU_ROW(uint64_t, warp, op->a);
    uint32_t shared = 0;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        shared |= (uint32_t)(emu_space_classify(space, addresses[lane] + op->imm) == EMU_ADDRESS_SHARED)
                  << lane;
    }
    return shared;
}

GENERIC_ADD(f32, 32, add_f32, add_f32_ftz)
GENERIC_ADD(f64, 64, add_f64_quiet, add_f64)
#undef GENERIC_ADD

/* cas: b is compared with, c is stored. Only a store that happened is progress, so that a spinning lock is
 * seen as such. */
#define CAS(bits)                                                                                          \
    static const struct emu_op *atom_cas_##bits(struct emu_warp *warp, const struct emu_op *op)            \
    {                                                                                                      \
        struct emu_lanes access;                                                                           \
        const enum emu_lanes_kind kind = resolve(warp, op, (unsigned)__builtin_ctz(bits / 8), &access);    \
        if (kind == EMU_LANES_FAULT) {                                                                     \
            return NULL;                                                                                   \
        }                                                                                                  \
        const uint##bits##_t *b = EMU_ROW(uint##bits##_t, warp, op->b),                                    \
                             *c = EMU_ROW(uint##bits##_t, warp, op->c);                                    \
        uint##bits##_t *d = EMU_ROW(uint##bits##_t, warp, op->d);                                          \
        bool changed = false;                                                                              \
        for (uint32_t left = warp->exec; left; left &= left - 1) {                                         \
            const unsigned lane = (unsigned)__builtin_ctz(left);                                           \
            cell##bits *cell =                                                                             \
                (cell##bits *)(void *)(kind == EMU_LANES_ONE ? access.at                                   \
                                                             : pointer_of(&access, kind, lane, bits / 8)); \
            uint##bits##_t expected = b[lane];                                                             \
            changed |= __atomic_compare_exchange_n(cell, &expected, c[lane], false, __ATOMIC_SEQ_CST,      \
                                                   __ATOMIC_SEQ_CST) &&                                    \
                       b[lane] != c[lane];                                                                 \
            d[lane] = expected;                                                                            \
        }                                                                                                  \
        return changed ? finish(warp, op) : op + 1;                                                        \
    }
CAS(16)
CAS(32)
CAS(64)
#undef CAS

/* --- 128 bits */

struct wide {
    uint64_t low, high;
};

/* Stores `value` when *at equals *expected; *expected becomes what was there. */
static bool compare_exchange_128(void *at, struct wide *expected, struct wide value)
{
#if defined(__x86_64__)
    bool equal;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(equal), "+m"(*(struct wide *)at), "+a"(expected->low), "+d"(expected->high)
                     : "b"(value.low), "c"(value.high)
                     : "memory");
    return equal;
#else
    static atomic_flag lock = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&lock)) {
    }
    struct wide old;
    memcpy(&old, at, sizeof old);
    const bool equal = old.low == expected->low && old.high == expected->high;
    if (equal) {
        memcpy(at, &value, sizeof value);
    }
    *expected = old;
    atomic_flag_clear(&lock);
    return equal;
#endif
}

/* exch and cas; op->c: what is stored by cas, EMU_NO_ROW for exch. */
static const struct emu_op *atom_128(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_lanes access;
    const enum emu_lanes_kind kind = resolve(warp, op, 4, &access);
    if (kind == EMU_LANES_FAULT) {
        return NULL;
    }
    const struct wide *b = EMU_ROW(struct wide, warp, op->b);
    const struct wide *c = op->c == EMU_NO_ROW ? NULL : EMU_ROW(struct wide, warp, op->c);
    struct wide *d = EMU_ROW(struct wide, warp, op->d);
    bool changed = false;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        void *at = kind == EMU_LANES_ONE ? access.at : pointer_of(&access, kind, lane, 16);
        struct wide old;
        if (c) {
            old = b[lane];
            changed |= compare_exchange_128(at, &old, c[lane]);
        } else {
            memcpy(&old, at, sizeof old);
            while (!compare_exchange_128(at, &old, b[lane])) {
            }
            changed = true;
        }
        d[lane] = old;
    }
    return changed ? finish(warp, op) : op + 1;
}

/* --- vectors: each element is an atomic operation of its own */

struct vector {
    enum emu_reduction reduction;
    uint32_t n, bytes; /* elements, and bytes of one */
    bool has_result;
    uint32_t b[8], d[8];
};

static const struct emu_op *atom_vector(struct emu_warp *warp, const struct emu_op *op)
{
    const struct vector *vector = op->extra;
    struct emu_lanes access;
    const unsigned total = vector->n * vector->bytes;
    const enum emu_lanes_kind kind = resolve(warp, op, (unsigned)__builtin_ctz(total), &access);
    if (kind == EMU_LANES_FAULT) {
        return NULL;
    }
    if (access.shared) {
        emu_fault_kind_set(warp, EMU_FAULT_INVALID_ADDRESS_SPACE);
        return emu_fault(warp, op, (unsigned)__builtin_ctz(warp->exec), CLAB_FAULT, "generic", 0,
                         "atomic operation on a vector in shared memory; PTX has it for global memory only");
    }
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        unsigned char *at = kind == EMU_LANES_ONE ? access.at : pointer_of(&access, kind, lane, total);
        for (unsigned k = 0; k < vector->n; k++) {
            const unsigned bytes = vector->bytes;
            uint64_t value = bytes == 2 ? EMU_ROW(uint16_t, warp, vector->b[k])[lane]
                                        : EMU_ROW(uint32_t, warp, vector->b[k])[lane];
            value = emu_reduce_atomic(vector->reduction, at + k * bytes, value);
            if (vector->has_result && bytes == 2) {
                EMU_ROW(uint16_t, warp, vector->d[k])[lane] = (uint16_t)value;
            } else if (vector->has_result) {
                EMU_ROW(uint32_t, warp, vector->d[k])[lane] = (uint32_t)value;
            }
        }
    }
    return finish(warp, op);
}

/* --- decoding */

static emu_handler *const handlers[EMU_REDUCE_COUNT] = {
#define X(id, bits, expression) atom_##id,
    EMU_REDUCTIONS(X)
#undef X
};

static clab_status vector_emit(struct emu_emit *emit, const struct ptx_operand *result,
                               const struct ptx_operand *value, enum ptx_type type,
                               enum emu_reduction reduction, struct emu_place_address address)
{
    struct vector *vector = emu_emit_alloc(emit, sizeof *vector);
    if (!vector || value->n_elements > 8 ||
        (result && result->kind == PTX_OPERAND_VECTOR && result->n_elements != value->n_elements)) {
        return emu_unsupported(emit, "this vector operand");
    }
    vector->reduction = reduction;
    vector->n = value->n_elements;
    vector->bytes = emu_reduction_bytes(reduction);
    vector->has_result = result && result->kind == PTX_OPERAND_VECTOR;
    for (unsigned k = 0; k < vector->n; k++) {
        vector->b[k] = emu_source(emit, &value->elements[k], type);
    }
    for (unsigned k = 0; k < vector->n && vector->has_result; k++) {
        vector->d[k] = emu_dest(emit, &result->elements[k], type);
    }
    struct emu_op *op = emu_push(emit, atom_vector, atom_vector);
    op->a = address.row;
    op->imm = address.imm;
    op->u8[0] = (uint8_t)address.place;
    op->extra = vector;
    return CLAB_OK;
}

/* result NULL for red. */
static clab_status atomic_emit(struct emu_emit *emit, const struct ptx_insn *insn,
                               const struct ptx_operand *result, const struct ptx_operand *where,
                               const struct ptx_operand *value, const struct ptx_operand *other)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const enum ptx_space space = emu_space_of(insn);
    const struct emu_place_address address = emu_place_address(emit, where, space);
    const bool cas = ptx_has(insn, PTX_MOD_CAS), wide = ptx_types[type].bits == 128;
    enum emu_reduction reduction = emu_reduction_of(insn, type);
    const bool global = address.place == EMU_AT_GLOBAL || address.place == EMU_AT_KNOWN_GLOBAL;
    const bool by_lane = (reduction == EMU_REDUCE_add_f32 || reduction == EMU_REDUCE_add_f64) &&
                         address.place == EMU_AT_GENERIC;
    if (reduction == EMU_REDUCE_add_f32 && (global || value->kind == PTX_OPERAND_VECTOR)) {
        reduction = EMU_REDUCE_add_f32_ftz;
    } else if (reduction == EMU_REDUCE_add_f64 && !global) {
        reduction = EMU_REDUCE_add_f64_quiet;
    }
    if (!cas && !wide && reduction == EMU_REDUCE_COUNT) {
        return emu_unsupported(emit, "this operation of atom or red on .%s", ptx_types[type].text);
    }
    if (value->kind == PTX_OPERAND_VECTOR) {
        return vector_emit(emit, result, value, type, reduction, address);
    }
    const uint32_t b = emu_source(emit, value, type);
    const uint32_t c = cas ? emu_source(emit, other, type) : EMU_NO_ROW;
    const bool wanted = result && (result->kind != PTX_OPERAND_SINK || cas || wide);
    const uint32_t d = wanted ? emu_dest(emit, result, type) : EMU_NO_ROW;
    emu_handler *handler = NULL;
    if (wide) {
        handler = atom_128;
    } else if (by_lane) {
        handler = type == PTX_F32 ? atom_add_f32_generic : atom_add_f64_generic;
    } else if (!cas) {
        handler = handlers[reduction];
    } else {
        handler = ptx_types[type].bits == 16   ? atom_cas_16
                  : ptx_types[type].bits == 32 ? atom_cas_32
                                               : atom_cas_64;
    }
    struct emu_op *op = emu_push(emit, handler, handler);
    op->d = d;
    op->a = address.row;
    op->b = b;
    op->c = c;
    op->imm = address.imm;
    op->u8[0] = (uint8_t)address.place;
    if (EMU_HOOKS) {
        emu_push_unguarded(emit, emu_give_way, NULL);
    }
    return CLAB_OK;
}

EMU_EMITTER(emu_atom)
{
    return atomic_emit(emit, insn, &insn->operands[0], &insn->operands[1], &insn->operands[2],
                       insn->n_operands > 3 ? &insn->operands[3] : NULL);
}

EMU_EMITTER(emu_red)
{
    return atomic_emit(emit, insn, NULL, &insn->operands[0], &insn->operands[1], NULL);
}
