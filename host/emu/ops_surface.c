/* suld, sust, sured. PTX ISA 9.0, "Surface Instructions". The x coordinate of .b forms counts bytes, that of
   .p forms texels. Outside the surface: .trap ends the kernel, .clamp takes the nearest texel, .zero reads 0
   and writes nothing. UNVERIFIED: that .clamp of a .b form clamps to the last access that fits, and to which
   value sust.p rounds a fraction.

   Leaves out: suq.channel_data_type, channel_order and memory_layout (ops_texture.c). */
#include <string.h>

#include "emu/reduce.h"
#include "emu/texture_operand.h"

enum surface_mode { SURFACE_TRAP, SURFACE_CLAMP, SURFACE_ZERO };

struct surface_plan {
    struct emu_texture_operand surface;
    uint8_t mode;
    bool formatted;                   /* .p */
    uint32_t rows[4];                 /* destinations of loads, values of stores and reductions */
    uint8_t n;                        /* of rows */
    uint8_t element_log2;             /* bytes of one */
    enum emu_reduction reductions[2]; /* by the sign of the surface's texels, which .p forms take */
};

enum surface_found { SURFACE_FAULT, SURFACE_OUTSIDE, SURFACE_AT };

/* Brings a coordinate into [0, size - bytes]; false when it is outside and must not be used. */
static bool inside(int64_t *x, uint64_t size, uint32_t bytes, unsigned mode)
{
    const int64_t last = size >= bytes ? (int64_t)(size - bytes) : 0;
    if (*x >= 0 && *x <= last && size >= bytes) {
        return true;
    }
    *x = *x < 0 ? 0 : last;
    return mode == SURFACE_CLAMP;
}

/* Two dimensions of an object of three, or of layers, are its first slice (H200, driver 13.0, 2026-11-30; of
   other misfits it reads zeros and writes nothing, which is reported here). */
static bool geometry_fits(const struct emu_texture_operand *operand, const struct emu_texture *surface)
{
    return (operand->dims == surface->dims && operand->layered == surface->layered) ||
           (operand->dims == 2 && !operand->layered && (surface->dims == 3 || surface->layered) &&
            surface->dims >= 2);
}

static enum surface_found place(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                const struct surface_plan *plan, const struct emu_texture *surface,
                                uint32_t bytes, enum emu_access_mode access, unsigned char **out_at)
{
    const struct emu_texture_operand *operand = &plan->surface;
    const struct emu_texels *level = &surface->levels[0];
    if (!geometry_fits(operand, surface)) {
        emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
        emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "the surface has another geometry: %s%ud",
                  surface->layered ? "layered " : "", surface->dims);
        return SURFACE_FAULT;
    }
    const uint64_t sizes[3] = {(uint64_t)level->width * emu_texel_bytes(surface), level->height,
                               level->depth};
    int64_t at[3] = {0, 0, 0}, layer = 0;
    bool is_inside = true;
    for (unsigned d = 0; d < operand->dims; d++) {
        at[d] = EMU_ROW(int32_t, warp, operand->rows[d])[lane];
        if (d == 0 && !plan->formatted &&
            at[0] % bytes != 0) { /* of the whole access, before it is clamped */
            emu_fault_kind_set(warp, EMU_FAULT_MISALIGNED_ADDRESS);
            emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                      "byte %lld of a row is no multiple of the %u accessed", (long long)at[0], bytes);
            return SURFACE_FAULT;
        }
        if (d == 0 && plan->formatted) {
            at[0] *= emu_texel_bytes(surface);
        }
        is_inside = inside(&at[d], sizes[d], d == 0 ? bytes : 1, plan->mode) && is_inside;
    }
    if (operand->layered) {
        layer = EMU_ROW(uint32_t, warp, operand->layer_row)[lane];
        is_inside = inside(&layer, surface->layers, 1, plan->mode) && is_inside;
    }
    if (!is_inside && plan->mode == SURFACE_TRAP) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_ADDRESS); /* H200, driver 13.0, 2026-11-30 */
        emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                  "outside the surface: byte %lld of rows of %llu, row %lld of %llu, slice %lld of %llu",
                  (long long)at[0], (unsigned long long)sizes[0], (long long)at[1],
                  (unsigned long long)sizes[1], (long long)at[2], (unsigned long long)sizes[2]);
        return SURFACE_FAULT;
    }
    if (!is_inside) {
        return SURFACE_OUTSIDE;
    }
    enum clab_space_id space;
    const uint64_t address = level->address + (uint64_t)(at[2] + layer) * level->slice_bytes +
                             (uint64_t)at[1] * level->pitch_bytes + (uint64_t)at[0];
    *out_at = emu_access_range(warp, op, lane, EMU_REACH_GLOBAL, address, bytes, 1, access, &space);
    if (*out_at) {
        emu_access_tell(warp, op, lane, space, *out_at, bytes, access);
    }
    return *out_at ? SURFACE_AT : SURFACE_FAULT;
}

static const struct emu_op *load_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct surface_plan *plan = op->extra;
    const uint32_t element = 1u << plan->element_log2;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct emu_texture *surface = emu_texture_lane(warp, op, lane, &plan->surface, true);
        unsigned char *from = NULL;
        const enum surface_found found =
            surface ? place(warp, op, lane, plan, surface, element * plan->n, EMU_LOAD, &from)
                    : SURFACE_FAULT;
        if (found == SURFACE_FAULT) {
            return NULL;
        }
        for (unsigned i = 0; i < plan->n; i++) {
            unsigned char *to = EMU_ROW(unsigned char, warp, plan->rows[i]) + lane * element;
            if (found == SURFACE_AT) {
                memcpy(to, from + i * element, element);
            } else {
                memset(to, 0, element);
            }
        }
    }
    return op + 1;
}

static const struct emu_op *store_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct surface_plan *plan = op->extra;
    const uint32_t element = 1u << plan->element_log2;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct emu_texture *surface = emu_texture_lane(warp, op, lane, &plan->surface, true);
        unsigned char *to = NULL;
        uint32_t values[4] = {0, 0, 0, 0};
        if (!surface) {
            return NULL;
        }
        const uint32_t bytes = plan->formatted ? emu_texel_bytes(surface) : element * plan->n;
        const enum surface_found found = place(warp, op, lane, plan, surface, bytes, EMU_STORE, &to);
        if (found == SURFACE_FAULT) {
            return NULL;
        }
        for (unsigned i = 0; found == SURFACE_AT && i < plan->n; i++) {
            const unsigned char *from = EMU_ROW(unsigned char, warp, plan->rows[i]) + lane * element;
            memcpy(plan->formatted ? (void *)&values[i] : to + i * element, from, element);
        }
        if (found == SURFACE_AT && plan->formatted) {
            emu_texel_pack(surface, values, to);
        }
    }
    emu_progress(warp);
    return op + 1;
}

static const struct emu_op *reduce_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct surface_plan *plan = op->extra;
    const uint32_t element = 1u << plan->element_log2;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct emu_texture *surface = emu_texture_lane(warp, op, lane, &plan->surface, true);
        unsigned char *to = NULL;
        const enum surface_found found =
            surface ? place(warp, op, lane, plan, surface, element, EMU_ATOMIC, &to) : SURFACE_FAULT;
        if (found == SURFACE_FAULT) {
            return NULL;
        }
        if (found == SURFACE_AT) {
            uint64_t value = 0;
            memcpy(&value, EMU_ROW(unsigned char, warp, plan->rows[0]) + lane * element, element);
            emu_reduce_atomic(plan->reductions[surface->kind == EMU_TEXEL_SINT], to, value);
        }
    }
    emu_progress(warp);
    return op + 1;
}

static clab_status plan_new(struct emu_emit *emit, const struct ptx_insn *insn, uint32_t address,
                            enum ptx_type type, struct surface_plan **out_plan)
{
    struct surface_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    *out_plan = plan;
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    plan->mode = ptx_has(insn, PTX_MOD_CLAMP)  ? SURFACE_CLAMP
                 : ptx_has(insn, PTX_MOD_ZERO) ? SURFACE_ZERO
                                               : SURFACE_TRAP;
    plan->formatted = ptx_has(insn, PTX_MOD_P);
    plan->element_log2 = (uint8_t)__builtin_ctz(emu_lane_bytes(type));
    return emu_texture_operand(emit, insn, &insn->operands[address], PTX_S32, &plan->surface);
}

static clab_status access_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool load)
{
    struct surface_plan *plan;
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    clab_status status = plan_new(emit, insn, load ? 1 : 0, type, &plan);
    if (status != CLAB_OK) {
        return status;
    }
    const struct ptx_operand *value = &insn->operands[load ? 0 : 1];
    const bool is_vector = value->kind == PTX_OPERAND_VECTOR;
    const uint32_t n = is_vector ? value->n_elements : 1;
    if (n > 4) {
        return emu_unsupported(emit, "this vector");
    }
    plan->n = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++) {
        const struct ptx_operand *element = is_vector ? &value->elements[i] : value;
        plan->rows[i] = load ? emu_dest(emit, element, type) : emu_source(emit, element, type);
    }
    emu_push(emit, load ? load_any : store_any, load ? load_any : store_any)->extra = plan;
    return CLAB_OK;
}

EMU_EMITTER(emu_suld)
{
    return access_emit(emit, insn, true);
}

EMU_EMITTER(emu_sust)
{
    return access_emit(emit, insn, false);
}

EMU_EMITTER(emu_sured)
{
    struct surface_plan *plan;
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    clab_status status = plan_new(emit, insn, 0, type, &plan);
    if (status != CLAB_OK) {
        return status;
    }
    plan->n = 1;
    plan->rows[0] = emu_source(emit, &insn->operands[1], type);
    static const enum ptx_type by_sign[2][2] = {{PTX_U32, PTX_S32}, {PTX_U64, PTX_S64}};
    const bool is_wide = emu_lane_bytes(type) == 8;
    const bool takes_sign = plan->formatted && !ptx_has(insn, PTX_MOD_AND) && !ptx_has(insn, PTX_MOD_OR);
    for (unsigned is_signed = 0; is_signed < 2; is_signed++) {
        plan->reductions[is_signed] = emu_reduction_of(insn, takes_sign ? by_sign[is_wide][is_signed] : type);
    }
    if (plan->reductions[0] == EMU_REDUCE_COUNT || plan->reductions[1] == EMU_REDUCE_COUNT) {
        return emu_unsupported(emit, "this reduction of a surface");
    }
    emu_push(emit, reduce_any, reduce_any)->extra = plan;
    return CLAB_OK;
}
