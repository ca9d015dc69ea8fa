/* Decoding of the tensor copies, and tensormap.replace, tensormap.cp_fenceproxy. PTX ISA 9.0,
   "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "tensormap.replace", "tensormap.cp_fenceproxy". What
   the copies do: tma.c.

   tensormap.replace changes the bits that ptxas 13.0 changes (tensor_map.h has the layout). A changed map is
   used by the next copy whether or not a tensormap proxy fence follows, which is one of the orders that may
   happen. */
#include <string.h>

#include "emu/tma.h"

static const struct emu_op *tensor_any(struct emu_warp *warp, const struct emu_op *op)
{
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        if (!emu_tensor_issue(warp, op, (unsigned)__builtin_ctz(left), op->extra)) {
            return NULL;
        }
    }
    emu_progress(warp);
    return op + 1;
}

static uint32_t rank_of(const struct ptx_insn *insn)
{
    static const enum ptx_mod ranks[] = {PTX_MOD_1D, PTX_MOD_2D, PTX_MOD_3D, PTX_MOD_4D, PTX_MOD_5D};
    for (uint32_t i = 0; i < 5; i++) {
        if (ptx_has(insn, ranks[i])) {
            return i + 1;
        }
    }
    return 0;
}

/* The types of a reduction's elements, as PTX types. The .ftz types flush, and sums of tf32 are those of
   f32, not rounded to tf32 (measured on an H200). */
static enum ptx_type type_of(enum emu_tensor_type type)
{
    static const uint8_t types[EMU_TENSOR_TYPE_COUNT] = {
        PTX_NONE, PTX_NONE, PTX_U32, PTX_S32, PTX_U64, PTX_S64,  PTX_F16,  PTX_F32,
        PTX_F64,  PTX_BF16, PTX_F32, PTX_F32, PTX_F32, PTX_NONE, PTX_NONE, PTX_NONE,
    };
    return (enum ptx_type)types[type];
}

/* Which operations exist for an element type; of the others an H200 makes an illegal instruction
   (tests/emu/tensor, driver 13.0, 2026-11-30). */
static bool reduction_exists(const struct ptx_insn *insn, enum emu_tensor_type type)
{
    if (ptx_has(insn, PTX_MOD_INC) || ptx_has(insn, PTX_MOD_DEC)) {
        return type == EMU_TENSOR_U32;
    }
    if (ptx_has(insn, PTX_MOD_AND) || ptx_has(insn, PTX_MOD_OR) || ptx_has(insn, PTX_MOD_XOR)) {
        return type == EMU_TENSOR_U32 || type == EMU_TENSOR_S32 || type == EMU_TENSOR_U64;
    }
    return type_of(type) != PTX_NONE && !(ptx_has(insn, PTX_MOD_ADD) && type == EMU_TENSOR_S64);
}

static void reductions_fill(const struct ptx_insn *insn, struct emu_tensor_plan *plan)
{
    for (unsigned i = 0; i < EMU_TENSOR_TYPE_COUNT; i++) {
        const enum emu_tensor_type type = (enum emu_tensor_type)i;
        enum emu_reduction reduction =
            reduction_exists(insn, type) ? emu_reduction_of(insn, type_of(type)) : EMU_REDUCE_COUNT;
        if (reduction == EMU_REDUCE_add_f32 && (type == EMU_TENSOR_F32_FTZ || type == EMU_TENSOR_TF32_FTZ)) {
            reduction = EMU_REDUCE_add_f32_ftz;
        }
        plan->reductions[i] = (uint8_t)reduction;
    }
}

/* [map, {coordinates}] */
static bool tensor_operand(struct emu_emit *emit, const struct ptx_operand *operand,
                           struct emu_tensor_plan *plan)
{
    int64_t offset = 0;
    if (operand->n_elements < 2 || operand->elements[1].kind != PTX_OPERAND_VECTOR ||
        operand->elements[1].n_elements > EMU_TENSOR_MAX_RANK) {
        return false;
    }
    plan->map_row = emu_address(emit, operand, &offset);
    plan->map_imm = (uint64_t)offset;
    const struct ptx_operand *coords = &operand->elements[1];
    plan->n_coords = coords->n_elements;
    for (uint32_t k = 0; k < coords->n_elements; k++) {
        plan->coord_rows[k] = emu_source(emit, &coords->elements[k], PTX_S32);
    }
    return plan->n_coords == (plan->mode == EMU_TENSOR_FOUR_ROWS ? 5 : plan->rank);
}

static enum emu_tensor_mode mode_of(const struct ptx_insn *insn)
{
    static const struct {
        enum ptx_mod mod;
        enum emu_tensor_mode mode;
    } modes[] = {
        {PTX_MOD_IM2COL, EMU_TENSOR_IM2COL},           {PTX_MOD_IM2COL_NO_OFFS, EMU_TENSOR_IM2COL},
        {PTX_MOD_IM2COL__W, EMU_TENSOR_IM2COL_W},      {PTX_MOD_IM2COL__W__128, EMU_TENSOR_IM2COL_W128},
        {PTX_MOD_TILE__GATHER4, EMU_TENSOR_FOUR_ROWS}, {PTX_MOD_TILE__SCATTER4, EMU_TENSOR_FOUR_ROWS}};
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (ptx_has(insn, modes[i].mod)) {
            return modes[i].mode;
        }
    }
    return EMU_TENSOR_TILE;
}

static clab_status tensor_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool reduces)
{
    struct emu_tensor_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    const enum ptx_space to = (enum ptx_space)insn->spaces[0], from = (enum ptx_space)insn->spaces[1];
    const struct ptx_operand *operands = insn->operands;
    const bool load = to != PTX_SPACE_GLOBAL;
    plan->direction = load ? EMU_TENSOR_LOAD : reduces ? EMU_TENSOR_REDUCE : EMU_TENSOR_STORE;
    plan->rank = rank_of(insn);
    plan->mode = mode_of(insn);
    plan->pair = ptx_has(insn, PTX_MOD_CTA_GROUP__2);
    plan->mask_row = EMU_NO_ROW;
    reductions_fill(insn, plan);
    if (load) {
        plan->shared = emu_window_operand(emit, &operands[0], emu_window_reach(to));
        plan->mbarrier = emu_window_operand(emit, &operands[2], emu_window_reach(to));
    } else {
        plan->shared = emu_window_operand(emit, &operands[1], emu_window_reach(from));
    }
    if (!tensor_operand(emit, &operands[load ? 1 : 0], plan)) {
        return emu_unsupported(emit, "this tensor operand");
    }
    uint32_t next = load ? 3 : 2;
    if (load && plan->mode != EMU_TENSOR_TILE && plan->mode != EMU_TENSOR_FOUR_ROWS) {
        const struct ptx_operand *offsets = next < insn->n_operands ? &operands[next++] : NULL;
        if (!offsets || offsets->kind != PTX_OPERAND_VECTOR || plan->rank < 3 ||
            offsets->n_elements != (plan->mode == EMU_TENSOR_IM2COL ? plan->rank - 2 : 2)) {
            return emu_unsupported(emit, "these im2col offsets");
        }
        plan->n_offsets = offsets->n_elements;
        for (uint32_t k = 0; k < plan->n_offsets; k++) {
            plan->offset_rows[k] = emu_source(emit, &offsets->elements[k], PTX_B16);
        }
    }
    if (ptx_has(insn, PTX_MOD_MULTICAST__CLUSTER)) {
        plan->mask_row = emu_source(emit, &operands[next], PTX_B16);
    }
    emu_push(emit, tensor_any, tensor_any)->extra = plan;
    return CLAB_OK;
}

EMU_EMITTER(emu_cp_async_bulk_tensor)
{
    return tensor_emit(emit, insn, false);
}

EMU_EMITTER(emu_cp_reduce_async_bulk_tensor)
{
    return tensor_emit(emit, insn, true);
}

/* --- tensormap.replace */

struct replace_plan {
    enum emu_reach reach;
    uint32_t row; /* of the map's address, 64-bit lanes */
    uint64_t imm;
    enum ptx_mod field;
    uint32_t ordinal;
    bool wide;          /* value_row has 64-bit lanes */
    uint32_t value_row; /* EMU_NO_ROW: `value` */
    uint32_t value;
};

static void bits_set(uint32_t *word, unsigned shift, unsigned bits, uint32_t value)
{
    const uint32_t mask = ((UINT32_C(1) << bits) - 1) << shift;
    *word = (*word & ~mask) | (value << shift & mask);
}

/* The changes of word 2. */
static void replace_mode(uint32_t *flags, enum ptx_mod field, uint32_t value)
{
    switch (field) {
    case PTX_MOD_RANK:
        bits_set(flags, 4, 3, value);
        break;
    case PTX_MOD_ELEMTYPE: /* 11 and 12, the tf32 types, are f32's codes and bit 16; 13 and up the packed
                              types */
        bits_set(flags, 7, 4, value == 11 || value == 12 ? value - 4 : value > 12 ? value - 2 : value);
        *flags |= value == 11 || value == 12 ? UINT32_C(1) << 16 : 0;
        break;
    case PTX_MOD_INTERLEAVE_LAYOUT:
        bits_set(flags, 11, 2, value);
        break;
    case PTX_MOD_SWIZZLE_MODE:
        bits_set(flags, 13, 2, value & 3);
        bits_set(flags, 22, 1, value == 4);
        break;
    case PTX_MOD_SWIZZLE_ATOMICITY:
        bits_set(flags, 19, 3, value);
        break;
    default:
        bits_set(flags, 15, 1, value);
        break;
    }
}

static void replace(unsigned char *map, enum ptx_mod field, uint32_t ordinal, uint64_t value)
{
    uint32_t words[EMU_TENSOR_MAP_BYTES / 4];
    memcpy(words, map, sizeof words);
    const uint32_t less = (uint32_t)value - 1;
    switch (field) {
    case PTX_MOD_GLOBAL_ADDRESS:
        words[0] = (uint32_t)value;
        words[1] = (uint32_t)(value >> 32);
        break;
    case PTX_MOD_GLOBAL_STRIDE:
        words[3 + ordinal] = (uint32_t)(value >> 4);
        bits_set(&words[7], 4 * ordinal, 4, (uint32_t)(value >> 36));
        break;
    case PTX_MOD_GLOBAL_DIM:
        words[8 + ordinal] = less;
        break;
    case PTX_MOD_ELEMENT_STRIDE:
        bits_set(&words[13], 3 * ordinal, 3, less);
        break;
    case PTX_MOD_BOX_DIM:
        bits_set(&words[ordinal ? 14 : 13], ordinal ? 8 * (ordinal - 1) : 24, 8, less);
        break;
    default:
        replace_mode(&words[2], field, (uint32_t)value);
        break;
    }
    memcpy(map, words, sizeof words);
}

static const struct emu_op *replace_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct replace_plan *plan = op->extra;
    const unsigned char *told = NULL; /* lanes that change one field of one map do it once, for observers */
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t address = EMU_ROW(uint64_t, warp, plan->row)[lane] + plan->imm;
        enum clab_space_id space;
        unsigned char *map = emu_access_range(warp, op, lane, plan->reach, address, EMU_TENSOR_MAP_BYTES, 128,
                                              EMU_STORE, &space);
        if (!map) {
            return NULL;
        }
        const uint64_t value = plan->value_row == EMU_NO_ROW ? plan->value
                               : plan->wide                  ? EMU_ROW(uint64_t, warp, plan->value_row)[lane]
                                                             : EMU_ROW(uint32_t, warp, plan->value_row)[lane];
        if (map != told) {
            emu_access_tell_map(warp, op, lane, space, map, true);
            told = map;
        }
        replace(map, plan->field, plan->ordinal, value);
    }
    emu_progress(warp);
    return op + 1;
}

EMU_EMITTER(emu_tensormap_replace)
{
    static const enum ptx_mod fields[] = {PTX_MOD_GLOBAL_ADDRESS, PTX_MOD_RANK,
                                          PTX_MOD_BOX_DIM,        PTX_MOD_GLOBAL_DIM,
                                          PTX_MOD_GLOBAL_STRIDE,  PTX_MOD_ELEMENT_STRIDE,
                                          PTX_MOD_ELEMTYPE,       PTX_MOD_INTERLEAVE_LAYOUT,
                                          PTX_MOD_SWIZZLE_MODE,   PTX_MOD_SWIZZLE_ATOMICITY,
                                          PTX_MOD_FILL_MODE};
    struct replace_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (ptx_has(insn, fields[i])) {
            plan->field = fields[i];
        }
    }
    const enum ptx_space space = emu_space_of(insn);
    int64_t offset = 0;
    plan->reach = space == PTX_SPACE_GLOBAL ? EMU_REACH_GLOBAL : emu_window_reach(space);
    plan->row = emu_address(emit, &insn->operands[0], &offset);
    plan->imm = (uint64_t)offset;
    const bool has_ordinal = insn->n_operands == 3;
    const uint32_t limit =
        plan->field == PTX_MOD_GLOBAL_STRIDE ? EMU_TENSOR_MAX_RANK - 1 : EMU_TENSOR_MAX_RANK;
    plan->ordinal = has_ordinal ? (uint32_t)insn->operands[1].imm : 0;
    if (plan->ordinal >= limit) {
        return emu_unsupported(emit, "dimension %u of a tensor map; there are %u", plan->ordinal, limit);
    }
    const struct ptx_operand *value = &insn->operands[has_ordinal ? 2 : 1];
    const enum ptx_type type = (enum ptx_type)insn->types[insn->n_types - 1];
    plan->wide = type == PTX_B64;
    plan->value_row = EMU_NO_ROW;
    if (value->kind == PTX_OPERAND_INT) {
        plan->value = (uint32_t)value->imm;
    }
    if (value->kind != PTX_OPERAND_INT || plan->wide) {
        plan->value_row = emu_source(emit, value, type);
    }
    emu_push(emit, replace_any, replace_any)->extra = plan;
    return CLAB_OK;
}

/* --- tensormap.cp_fenceproxy: the warp copies 128 bytes from shared to global memory. a: source; b:
 * destination. */

struct fence_plan {
    struct emu_window_operand from;
    uint32_t to_row;
    uint64_t to_imm;
};

static const struct emu_op *cp_fenceproxy_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct fence_plan *plan = op->extra;
    const unsigned lane = (unsigned)__builtin_ctz(warp->exec);
    struct emu_window_place from;
    enum clab_space_id space;
    const uint64_t address = EMU_ROW(uint64_t, warp, plan->to_row)[lane] + plan->to_imm;
    if (!emu_window_lane(warp, op, lane, &plan->from, true, EMU_TENSOR_MAP_BYTES, 128, EMU_LOAD, &from)) {
        return NULL;
    }
    unsigned char *to = emu_access_range(warp, op, lane, EMU_REACH_GLOBAL, address, EMU_TENSOR_MAP_BYTES, 128,
                                         EMU_STORE, &space);
    if (!to) {
        return NULL;
    }
    emu_access_tell_map(warp, op, lane, CLAB_SPACE_SHARED, from.at, false);
    emu_access_tell_map(warp, op, lane, space, to, true);
    memcpy(to, from.at, EMU_TENSOR_MAP_BYTES);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    emu_progress(warp);
    return op + 1;
}

EMU_EMITTER(emu_tensormap_cp_fenceproxy)
{
    struct fence_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    int64_t offset = 0;
    plan->to_row = emu_address(emit, &insn->operands[0], &offset);
    plan->to_imm = (uint64_t)offset;
    plan->from = emu_window_operand(emit, &insn->operands[1], EMU_REACH_SHARED_CTA);
    emu_push(emit, cp_fenceproxy_any, cp_fenceproxy_any)->extra = plan;
    return CLAB_OK;
}
