/* ld, ldu, ld.global.nc, st, in every space, width and vector length; prefetches and the other hints about
   caches. PTX ISA 9.0, "Data Movement and Conversion Instructions: ld, ld.global.nc, ldu, st, st.bulk,
   prefetch, prefetchu, applypriority, discard, createpolicy".

   A handler has two halves. access.h finds the host memory of the 32 lanes; the other half moves lanes
   between it and rows, in one of three shapes, and is made here for every element width and vector length.
   The frequent accesses (scalars and 16-byte vectors of global and shared memory) have both halves in one
   function.

   Cache operators, eviction priorities, prefetch sizes and policies change nothing that a program can see,
   and are accepted and ignored. .relaxed and .volatile are plain accesses of the host (every row is one
   instruction of the host or a row of aligned elements); .acquire and .release add a host fence, which x86-64
   does not need. */
#include "emu/access_row.h"
#include "emu/fragment.h"
#include "emu/lanes.h"
#include "emu/place.h"

#include <math.h>
#include <string.h>

/* Widths of elements. Memory may hold objects of any type. */
typedef uint8_t m8 __attribute__((may_alias));
typedef uint16_t m16 __attribute__((may_alias));
typedef uint32_t m32 __attribute__((may_alias));
typedef uint64_t m64 __attribute__((may_alias));
typedef struct __attribute__((may_alias)) {
    uint64_t word[2];
} m128;

/* The first half for every place, by u8[0]. Not inlined: one copy for all widths. */
#define RESOLVER(NAME, MODE, FULL)                                                                           \
    static __attribute__((noinline)) enum emu_lanes_kind NAME(                                               \
        struct emu_warp *warp, const struct emu_op *op, unsigned size, struct emu_lanes *out)                \
    {                                                                                                        \
        switch ((enum emu_place_kind)op->u8[0]) {                                                            \
        case EMU_AT_GLOBAL:                                                                                  \
            return emu_access_device(warp, op, EMU_REACH_GLOBAL, size, MODE, FULL, out);                     \
        case EMU_AT_CONST:                                                                                   \
            return emu_access_device(warp, op, EMU_REACH_CONST, size, MODE, FULL, out);                      \
        case EMU_AT_PARAM:                                                                                   \
            if (EMU_ROW(uint64_t, warp, op->a)[__builtin_ctz(warp->exec)] < EMU_WINDOW_BYTES) {              \
                return emu_access_local(warp, op, EMU_ROW(uint64_t, warp, op->a), op->imm, size, MODE, FULL, \
                                        out);                                                                \
            }                                                                                                \
            return emu_access_device(warp, op, EMU_REACH_PARAM, size, MODE, FULL, out);                      \
        case EMU_AT_LOCAL:                                                                                   \
            return emu_access_local(warp, op, EMU_ROW(uint64_t, warp, op->a), op->imm, size, MODE, FULL,     \
                                    out);                                                                    \
        case EMU_AT_SHARED:                                                                                  \
            return emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, MODE, FULL, out);                 \
        case EMU_AT_CLUSTER:                                                                                 \
            return emu_access_shared(warp, op, EMU_REACH_SHARED_CLUSTER, size, MODE, FULL, out);             \
        case EMU_AT_GENERIC:                                                                                 \
            return emu_access_generic(warp, op, size, MODE, FULL, out);                                      \
        case EMU_AT_KNOWN_GLOBAL:                                                                            \
            return emu_known_one(warp, op, EMU_REACH_GLOBAL, op->imm, size, MODE, out);                      \
        case EMU_AT_KNOWN_CONST:                                                                             \
            return emu_known_one(warp, op, EMU_REACH_CONST, op->imm, size, MODE, out);                       \
        case EMU_AT_KNOWN_SHARED:                                                                            \
            return emu_known_shared(warp, op, size, MODE, out);                                              \
        case EMU_AT_KNOWN_LOCAL:                                                                             \
            return emu_known_local(warp, op, size, MODE, out);                                               \
        case EMU_AT_KNOWN_PARAM:                                                                             \
            return emu_known_param(warp, op, size, MODE, out);                                               \
        case EMU_AT_COUNT:                                                                                   \
            break;                                                                                           \
        }                                                                                                    \
        __builtin_unreachable();                                                                             \
    }
RESOLVER(resolve_load_full, EMU_LOAD, true)
RESOLVER(resolve_load_masked, EMU_LOAD, false)
RESOLVER(resolve_store_full, EMU_STORE, true)
RESOLVER(resolve_store_masked, EMU_STORE, false)
#undef RESOLVER

/* --- the second half: n elements of T for each lane. Rows of a vector are in op->extra, of a scalar in op->d
   (load) and op->b (store). `n` is a constant wherever these are used. */

#define MOVE_FULL(T, n, AT)                 \
    for (unsigned k = 0; k < (n); k++) {    \
        T *row = EMU_ROW(T, warp, rows[k]); \
        EMU_EACH_LANE(i)                    \
        {                                   \
            AT;                             \
        }                                   \
    }
#define MOVE_LANES(T, n, AT)                       \
    for (unsigned k = 0; k < (n); k++) {           \
        T *row = EMU_ROW(T, warp, rows[k]);        \
        EMU_UNROLL                                 \
        for (unsigned i = 0; i < EMU_LANES; i++) { \
            AT;                                    \
        }                                          \
    }
/* A lane at a time, without touching memory of the others. */
#define MOVE_MASKED(T, n, AT)                                      \
    for (unsigned k = 0; k < (n); k++) {                           \
        T *row = EMU_ROW(T, warp, rows[k]);                        \
        for (uint32_t left = warp->exec; left; left &= left - 1) { \
            const unsigned i = (unsigned)__builtin_ctz(left);      \
            AT;                                                    \
        }                                                          \
    }
/* The same where masked vector moves exist: a plain loop with a condition, which gcc then vectorises. */
#if defined(__AVX2__) && !defined(__clang__)
#define MOVE_MASKED_ROW(T, n, AT)             \
    for (unsigned k = 0; k < (n); k++) {      \
        T *row = EMU_ROW(T, warp, rows[k]);   \
        const uint32_t *on = warp->lane_mask; \
        EMU_EACH_LANE(i)                      \
        {                                     \
            if (on[i]) {                      \
                AT;                           \
            }                                 \
        }                                     \
    }
#else
#define MOVE_MASKED_ROW MOVE_MASKED
#endif

#define LOAD(NAME, T, n, RESOLVE_FULL, RESOLVE_MASKED)                                        \
    static const struct emu_op *__attribute__((noinline))                                     \
    NAME##_full(struct emu_warp *warp, const struct emu_op *op)                               \
    {                                                                                         \
        const uint32_t *rows = (n) == 1 ? &op->d : op->extra;                                 \
        struct emu_lanes access;                                                              \
        switch (RESOLVE_FULL) {                                                               \
        case EMU_LANES_FAULT:                                                                 \
            return NULL;                                                                      \
        case EMU_LANES_ROW: {                                                                 \
            const T *at = (const T *)(const void *)access.at;                                 \
            MOVE_FULL(T, n, row[i] = at[i * (n) + k])                                         \
            break;                                                                            \
        }                                                                                     \
        case EMU_LANES_ONE: {                                                                 \
            const T *at = (const T *)(const void *)access.at;                                 \
            MOVE_FULL(T, n, row[i] = at[k])                                                   \
            break;                                                                            \
        }                                                                                     \
        case EMU_LANES_EACH:                                                                  \
            MOVE_LANES(T, n, row[i] = ((const T *)(const void *)access.lane[i])[k])           \
            break;                                                                            \
        }                                                                                     \
        return op + 1;                                                                        \
    }                                                                                         \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                         \
        const uint32_t *rows = (n) == 1 ? &op->d : op->extra;                                 \
        struct emu_lanes access;                                                              \
        switch (RESOLVE_MASKED) {                                                             \
        case EMU_LANES_FAULT:                                                                 \
            return NULL;                                                                      \
        case EMU_LANES_ROW: {                                                                 \
            const uintptr_t at = (uintptr_t)access.at;                                        \
            MOVE_MASKED_ROW(T, n, row[i] = ((const T *)at)[i * (n) + k])                      \
            break;                                                                            \
        }                                                                                     \
        case EMU_LANES_ONE: {                                                                 \
            const T *at = (const T *)(const void *)access.at;                                 \
            MOVE_MASKED(T, n, row[i] = at[k])                                                 \
            break;                                                                            \
        }                                                                                     \
        case EMU_LANES_EACH:                                                                  \
            MOVE_MASKED(T, n, row[i] = ((const T *)(const void *)access.lane[i])[k])          \
            break;                                                                            \
        }                                                                                     \
        return op + 1;                                                                        \
    }

/* Of lanes that store to one address the lowest wins: PTX leaves the choice open ("st"), an H200 does this.
   So a row of pointers is stored from the highest lane down. */
#define STORE(NAME, T, n, RESOLVE_FULL, RESOLVE_MASKED)                                                 \
    static const struct emu_op *__attribute__((noinline))                                               \
    NAME##_full(struct emu_warp *warp, const struct emu_op *op)                                         \
    {                                                                                                   \
        const uint32_t *rows = (n) == 1 ? &op->b : op->extra;                                           \
        struct emu_lanes access;                                                                        \
        switch (RESOLVE_FULL) {                                                                         \
        case EMU_LANES_FAULT:                                                                           \
            return NULL;                                                                                \
        case EMU_LANES_ROW: {                                                                           \
            T *at = (T *)(void *)access.at;                                                             \
            MOVE_FULL(T, n, at[i * (n) + k] = row[i])                                                   \
            break;                                                                                      \
        }                                                                                               \
        case EMU_LANES_ONE: {                                                                           \
            T *at = (T *)(void *)access.at;                                                             \
            for (unsigned k = 0; k < (n); k++) {                                                        \
                at[k] = EMU_ROW(T, warp, rows[k])[0];                                                   \
            }                                                                                           \
            break;                                                                                      \
        }                                                                                               \
        case EMU_LANES_EACH:                                                                            \
            EMU_UNROLL                                                                                  \
            for (unsigned i = EMU_LANES; i-- > 0;) {                                                    \
                for (unsigned k = 0; k < (n); k++) {                                                    \
                    ((T *)(void *)access.lane[i])[k] = EMU_ROW(T, warp, rows[k])[i];                    \
                }                                                                                       \
            }                                                                                           \
            break;                                                                                      \
        }                                                                                               \
        emu_progress(warp);                                                                             \
        return op + 1;                                                                                  \
    }                                                                                                   \
    static const struct emu_op *NAME##_masked(struct emu_warp *warp, const struct emu_op *op)           \
    {                                                                                                   \
        const uint32_t *rows = (n) == 1 ? &op->b : op->extra;                                           \
        struct emu_lanes access;                                                                        \
        switch (RESOLVE_MASKED) {                                                                       \
        case EMU_LANES_FAULT:                                                                           \
            return NULL;                                                                                \
        case EMU_LANES_ROW: {                                                                           \
            const uintptr_t at = (uintptr_t)access.at;                                                  \
            MOVE_MASKED_ROW(T, n, ((T *)at)[i * (n) + k] = row[i])                                      \
            break;                                                                                      \
        }                                                                                               \
        case EMU_LANES_ONE: {                                                                           \
            T *at = (T *)(void *)access.at;                                                             \
            const unsigned first = (unsigned)__builtin_ctz(warp->exec);                                 \
            for (unsigned k = 0; k < (n); k++) {                                                        \
                at[k] = EMU_ROW(T, warp, rows[k])[first];                                               \
            }                                                                                           \
            break;                                                                                      \
        }                                                                                               \
        case EMU_LANES_EACH:                                                                            \
            for (uint32_t left = warp->exec; left; left ^= UINT32_C(1) << (31 - __builtin_clz(left))) { \
                const unsigned i = 31 - (unsigned)__builtin_clz(left);                                  \
                for (unsigned k = 0; k < (n); k++) {                                                    \
                    ((T *)(void *)access.lane[i])[k] = EMU_ROW(T, warp, rows[k])[i];                    \
                }                                                                                       \
            }                                                                                           \
            break;                                                                                      \
        }                                                                                               \
        emu_progress(warp);                                                                             \
        return op + 1;                                                                                  \
    }

#define ANY_LOAD(NAME, T, n, size) \
    LOAD(NAME, T, n, resolve_load_full(warp, op, size, &access), resolve_load_masked(warp, op, size, &access))
#define ANY_STORE(NAME, T, n, size)                                \
    STORE(NAME, T, n, resolve_store_full(warp, op, size, &access), \
          resolve_store_masked(warp, op, size, &access))
#define ANY(T, n, size)                  \
    ANY_LOAD(load_##T##_##n, T, n, size) \
    ANY_STORE(store_##T##_##n, T, n, size)
ANY(m8, 1, 0)
ANY(m8, 2, 1)
ANY(m8, 4, 2)
ANY(m8, 8, 3)
ANY(m16, 1, 1)
ANY(m16, 2, 2)
ANY(m16, 4, 3)
ANY(m16, 8, 4)
ANY(m32, 1, 2)
ANY(m32, 2, 3)
ANY(m32, 4, 4)
ANY(m32, 8, 5)
ANY(m64, 1, 3)
ANY(m64, 2, 4)
ANY(m64, 4, 5)
ANY(m128, 1, 4)
ANY(m128, 2, 5)

/* The frequent ones in one piece, with a way round for whole warps on consecutive elements (access_row.h). */
#define LOAD_ROW(NAME, T, n, AT)                                                           \
    static const struct emu_op *NAME##_row(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                      \
        const uint32_t *rows = (n) == 1 ? &op->d : op->extra;                              \
        unsigned char *place;                                                              \
        if (!(AT)) {                                                                       \
            return NAME##_full(warp, op);                                                  \
        }                                                                                  \
        const T *at = (const T *)(const void *)place;                                      \
        MOVE_FULL(T, n, row[i] = at[i * (n) + k])                                          \
        return op + 1;                                                                     \
    }
#define STORE_ROW(NAME, T, n, AT)                                                          \
    static const struct emu_op *NAME##_row(struct emu_warp *warp, const struct emu_op *op) \
    {                                                                                      \
        const uint32_t *rows = (n) == 1 ? &op->b : op->extra;                              \
        unsigned char *place;                                                              \
        if (!(AT)) {                                                                       \
            return NAME##_full(warp, op);                                                  \
        }                                                                                  \
        T *at = (T *)(void *)place;                                                        \
        MOVE_FULL(T, n, at[i * (n) + k] = row[i])                                          \
        emu_progress(warp);                                                                \
        return op + 1;                                                                     \
    }
#define GLOBAL(T, n, size)                                                                  \
    LOAD(load_global_##T##_##n, T, n,                                                       \
         emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_LOAD, true, &access),      \
         emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_LOAD, false, &access))     \
    STORE(store_global_##T##_##n, T, n,                                                     \
          emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_STORE, true, &access),    \
          emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_STORE, false, &access))   \
    LOAD_ROW(load_global_##T##_##n, T, n, emu_row_global(warp, op, size, EMU_LOAD, &place)) \
    STORE_ROW(store_global_##T##_##n, T, n, emu_row_global(warp, op, size, EMU_STORE, &place))
#define SHARED(T, n, size)                                                                    \
    LOAD(load_shared_##T##_##n, T, n,                                                         \
         emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_LOAD, true, &access),    \
         emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_LOAD, false, &access))   \
    STORE(store_shared_##T##_##n, T, n,                                                       \
          emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_STORE, true, &access),  \
          emu_access_shared(warp, op, EMU_REACH_SHARED_CTA, size, EMU_STORE, false, &access)) \
    LOAD_ROW(load_shared_##T##_##n, T, n, emu_row_shared(warp, op, size, EMU_LOAD, &place))   \
    STORE_ROW(store_shared_##T##_##n, T, n, emu_row_shared(warp, op, size, EMU_STORE, &place))
GLOBAL(m32, 1, 2)
GLOBAL(m64, 1, 3)
GLOBAL(m32, 4, 4)
SHARED(m32, 1, 2)
SHARED(m64, 1, 3)
SHARED(m32, 4, 4)

struct pair {
    emu_handler *full, *masked;
};

#define ROW(T, n)                                            \
    {                                                        \
        {load_##T##_##n##_full, load_##T##_##n##_masked},    \
        {                                                    \
            store_##T##_##n##_full, store_##T##_##n##_masked \
        }                                                    \
    }
#define NONE           \
    {                  \
        {NULL, NULL},  \
        {              \
            NULL, NULL \
        }              \
    }
/* By element size (1, 2, 4, 8, 16 bytes), vector length (1, 2, 4, 8), and load or store. */
static const struct pair any_handlers[5][4][2] = {
    {ROW(m8, 1), ROW(m8, 2), ROW(m8, 4), ROW(m8, 8)},
    {ROW(m16, 1), ROW(m16, 2), ROW(m16, 4), ROW(m16, 8)},
    {ROW(m32, 1), ROW(m32, 2), ROW(m32, 4), ROW(m32, 8)},
    {ROW(m64, 1), ROW(m64, 2), ROW(m64, 4), NONE},
    {ROW(m128, 1), ROW(m128, 2), NONE, NONE},
};
#undef ROW
#undef NONE

static struct pair handlers_of(enum emu_place_kind place, unsigned element_size, unsigned length_log,
                               bool store)
{
    const struct pair global[2][3] = {
        {{load_global_m32_1_row, load_global_m32_1_masked},
         {load_global_m64_1_row, load_global_m64_1_masked},
         {load_global_m32_4_row, load_global_m32_4_masked}},
        {{store_global_m32_1_row, store_global_m32_1_masked},
         {store_global_m64_1_row, store_global_m64_1_masked},
         {store_global_m32_4_row, store_global_m32_4_masked}},
    };
    const struct pair shared[2][3] = {
        {{load_shared_m32_1_row, load_shared_m32_1_masked},
         {load_shared_m64_1_row, load_shared_m64_1_masked},
         {load_shared_m32_4_row, load_shared_m32_4_masked}},
        {{store_shared_m32_1_row, store_shared_m32_1_masked},
         {store_shared_m64_1_row, store_shared_m64_1_masked},
         {store_shared_m32_4_row, store_shared_m32_4_masked}},
    };
    const int frequent = element_size == 2 && length_log == 0   ? 0
                         : element_size == 3 && length_log == 0 ? 1
                         : element_size == 2 && length_log == 2 ? 2
                                                                : -1;
    if (frequent >= 0 && place == EMU_AT_GLOBAL) {
        return global[store][frequent];
    }
    if (frequent >= 0 && place == EMU_AT_SHARED) {
        return shared[store][frequent];
    }
    return any_handlers[element_size][length_log][store];
}

/* --- decoding */

#if defined(__x86_64__)
#define HOST_NEEDS_FENCES false
#else
#define HOST_NEEDS_FENCES true
#endif

static const struct emu_op *fence_any(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return op + 1;
}

static unsigned length_log_of(const struct ptx_insn *insn)
{
    return ptx_has(insn, PTX_MOD_V2) ? 1 : ptx_has(insn, PTX_MOD_V4) ? 2 : ptx_has(insn, PTX_MOD_V8) ? 3 : 0;
}

static clab_status access_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool store)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const struct ptx_operand *value = &insn->operands[store ? 1 : 0];
    const unsigned length_log = length_log_of(insn);
    const unsigned length = 1u << length_log;
    const unsigned element_size = (unsigned)__builtin_ctz(emu_lane_bytes(type));
    const struct emu_place_address address =
        emu_place_address(emit, &insn->operands[store ? 0 : 1], emu_space_of(insn));
    const struct pair pair = handlers_of(address.place, element_size, length_log, store);
    if (!pair.full) {
        return emu_unsupported(emit, "vectors of more than 32 bytes");
    }
    uint32_t row = 0, *rows = NULL;
    if (length == 1) {
        row = store ? emu_source(emit, value, type) : emu_dest(emit, value, type);
    } else {
        rows = emu_emit_alloc(emit, length * sizeof *rows);
        if (!rows || value->kind != PTX_OPERAND_VECTOR || value->n_elements != length) {
            return emu_unsupported(emit, "a vector operand that is not written {…}");
        }
        for (unsigned k = 0; k < length; k++) {
            rows[k] = store ? emu_source(emit, &value->elements[k], type)
                            : emu_dest(emit, &value->elements[k], type);
        }
    }
    if (HOST_NEEDS_FENCES && store && ptx_has(insn, PTX_MOD_RELEASE)) {
        emu_push(emit, fence_any, NULL);
    }
    struct emu_op *op = emu_push(emit, pair.full, pair.masked);
    op->a = address.row;
    op->imm = address.imm;
    op->u8[0] = (uint8_t)address.place;
    op->extra = rows;
    if (store) {
        op->b = row;
    } else {
        op->d = row;
    }
    if (HOST_NEEDS_FENCES && !store && ptx_has(insn, PTX_MOD_ACQUIRE)) {
        emu_push(emit, fence_any, NULL);
    }
    if (EMU_HOOKS && (ptx_has(insn, PTX_MOD_VOLATILE) || ptx_has(insn, PTX_MOD_RELAXED) ||
                      ptx_has(insn, PTX_MOD_ACQUIRE) || ptx_has(insn, PTX_MOD_RELEASE))) {
        emu_push_unguarded(emit, emu_give_way, NULL);
    }
    return CLAB_OK;
}

EMU_EMITTER(emu_ld)
{
    return access_emit(emit, insn, false);
}

EMU_EMITTER(emu_st)
{
    return access_emit(emit, insn, true);
}

/* --- hints. An address in a prefetch may be anything: the hardware drops those it cannot translate. */

static const struct emu_op *nothing(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    return op + 1;
}

EMU_EMITTER(emu_prefetch)
{
    (void)insn;
    emu_push(emit, nothing, NULL);
    return CLAB_OK;
}

/* discard and applypriority fault where nothing is, and take any alignment (H200, driver 13.0, 2026-11-30;
   tests/emu/faults_h200.txt). discard makes the bytes indeterminate; they keep their value here, which is one
   of the outcomes that PTX allows. */
static const struct emu_op *touch_any(struct emu_warp *warp, const struct emu_op *op)
{
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        enum clab_space_id space;
        if (!emu_access_range(warp, op, lane, EMU_REACH_GLOBAL,
                              EMU_ROW(uint64_t, warp, op->a)[lane] + op->imm, 1, 1, EMU_LOAD, &space)) {
            return NULL;
        }
    }
    return op + 1;
}

EMU_EMITTER(emu_discard)
{
    int64_t offset;
    const uint32_t row = emu_address(emit, &insn->operands[0], &offset);
    struct emu_op *op = emu_push(emit, touch_any, touch_any);
    op->a = row;
    op->imm = (uint64_t)offset;
    return CLAB_OK;
}

/* A policy is opaque to programs, and only .L2::cache_hint operands read it, which are ignored; its bits are
   an H200's (NVIDIA H200, driver 13.0, 2026-12-01): the priority of the fraction, that of the rest, and the
   fraction in sixteenths, rounded up, less one.

   Of a range: blocks of 4 KiB or of the smallest power of two with which 128 hold the whole; how many of them
   the primary size touches, 127 at most; the first one's number. UNVERIFIED: the first one's number, which
   was 0 wherever an H200 was asked, a primary size of more than 64 blocks and a whole of 0 bytes (PTX
   ISA 9.0, "createpolicy"; as the instructions that ptxas 13.0 makes of it compute them). */
#define POLICY_BASE 0x10
#define RANGE_BASE  0x18

static inline uint64_t sixteenths(float fraction)
{
    const float many = ceilf(fraction * 16);
    return (uint64_t)(many >= 16 ? 15 : many >= 1 ? (int)many - 1 : 0) << 52;
}

static inline uint64_t range_policy(uint64_t at, uint32_t primary, uint32_t whole, uint64_t top)
{
    const int bits = whole ? (int)ceilf((float)log2((double)(float)whole)) : 0;
    const int shift = bits - 7 > 12 ? bits - 7 : 12;
    const uint64_t end = at + (uint32_t)(primary - 1 + (UINT32_C(1) << shift));
    const uint64_t first = at >> shift, blocks = (end >> shift) - first;
    return whole == 0 ? (uint64_t)RANGE_BASE << 56
                      : top << 56 | (uint64_t)(shift - 12) << 52 | (first & 127) << 44 |
                            (blocks < 127 ? blocks : 127) << 37;
}

EMU_UNARY(policy_fraction, uint64_t, float, op->imm | sixteenths(x))
EMU_TERNARY(policy_range, uint64_t, uint64_t, uint32_t, uint32_t, range_policy(x + op->imm, y, z, op->u8[0]))
EMU_UNARY(policy_access, uint64_t, uint64_t, x)

static unsigned priority(unsigned mod)
{
    switch (mod) {
    case PTX_MOD_L2__EVICT_FIRST:
        return 1;
    case PTX_MOD_L2__EVICT_LAST:
        return 2;
    case PTX_MOD_L2__EVICT_NORMAL:
        return 3;
    default:
        return 0; /* L2::evict_unchanged */
    }
}

static bool is_priority(unsigned mod)
{
    return mod == PTX_MOD_L2__EVICT_FIRST || mod == PTX_MOD_L2__EVICT_LAST ||
           mod == PTX_MOD_L2__EVICT_NORMAL || mod == PTX_MOD_L2__EVICT_UNCHANGED;
}

EMU_EMITTER(emu_createpolicy)
{
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B64);
    unsigned bits = 0, found = 0;
    for (unsigned i = 0; i < insn->n_mods; i++)
        if (is_priority(insn->mods[i]))
            bits |= priority(insn->mods[i]) << (found++ == 0 ? 1 : 0);
    uint32_t a;
    struct emu_op *op;
    if (insn->row == PTX_CREATEPOLICY_CVT) {
        a = emu_source(emit, &insn->operands[1], PTX_U64);
        op = emu_push(emit, policy_access_full, policy_access_masked);
    } else if (insn->row == PTX_CREATEPOLICY_FRAC) {
        a = insn->n_operands > 1 ? emu_source(emit, &insn->operands[1], PTX_F32)
                                 : emu_constant(emit, PTX_F32, 0x3f800000);
        op = emu_push(emit, policy_fraction_full, policy_fraction_masked);
        op->imm = (uint64_t)(POLICY_BASE | bits) << 56;
    } else {
        int64_t offset = 0;
        a = emu_address(emit, &insn->operands[1], &offset);
        const uint32_t primary = emu_source(emit, &insn->operands[2], PTX_U32);
        const uint32_t whole = emu_source(emit, &insn->operands[3], PTX_U32);
        op = emu_push(emit, policy_range_full, policy_range_masked);
        op->imm = (uint64_t)offset;
        op->u8[0] = (uint8_t)(RANGE_BASE | bits);
        op->b = primary;
        op->c = whole;
    }
    op->a = a;
    op->d = d;
    return CLAB_OK;
}
