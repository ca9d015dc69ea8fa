/* tex, tld4, txq. PTX ISA 9.0, "Texture Instructions". What a fetch gives: texture.c.

   Without .level and .grad, level 0 of a mipmap is read: kernels have no implicit derivatives. UNVERIFIED:
   the level that .grad computes (log2 of the longer of the two gradients, in texels), the codes of txq's
   fields (width to array_size, normalized_coords, filter and address modes: those of the driver API).

   Leaves out: .2dms and .a2dms (no driver call makes such a texture), comparison with a depth, independent
   samplers, txq.channel_data_type and channel_order. */
#include <math.h>

#include "emu/half.h"
#include "emu/texture_operand.h"

struct tex_plan {
    struct emu_texture_operand texture;
    bool is_integer, base;
    int8_t gather;
    uint32_t level_row;           /* f32 (s32 with integer coordinates); EMU_NO_ROW none */
    uint32_t gradient_rows[2][3]; /* EMU_NO_ROW: none */
    uint32_t offset_rows[3];      /* s32 */
    uint32_t d_rows[4];
    uint8_t n_d;
    enum ptx_type type; /* U32, S32, F32, F16, F16X2 */
    uint32_t p_word;    /* EMU_NO_ROW: none */
};

static float row_f32(const struct emu_warp *warp, uint32_t row, unsigned lane)
{
    return EMU_ROW(float, warp, row)[lane];
}

/* log2 of the longer gradient, in texels of level 0. */
static float gradient_level(const struct emu_warp *warp, const struct tex_plan *plan,
                            const struct emu_texture *texture, unsigned lane)
{
    const struct emu_texels *level = &texture->levels[0];
    const float sizes[3] = {(float)level->width, (float)level->height, (float)level->depth};
    float longest = 0.0f;
    for (unsigned g = 0; g < 2; g++) {
        float sum = 0.0f;
        for (unsigned d = 0; d < 3 && plan->gradient_rows[g][d] != EMU_NO_ROW; d++) {
            const float size = plan->texture.cube ? sizes[0] / 2.0f : texture->normalized ? sizes[d] : 1.0f;
            const float step = row_f32(warp, plan->gradient_rows[g][d], lane) * size;
            sum += step * step;
        }
        longest = sum > longest ? sum : longest;
    }
    return longest > 0.0f ? 0.5f * log2f(longest) : -100.0f;
}

static void fetch_fill(const struct emu_warp *warp, const struct tex_plan *plan,
                       const struct emu_texture *texture, unsigned lane, struct emu_fetch *out)
{
    const struct emu_texture_operand *operand = &plan->texture;
    *out = (struct emu_fetch){.dims = operand->dims,
                              .layered = operand->layered,
                              .cube = operand->cube,
                              .is_integer = plan->is_integer,
                              .gather = plan->gather};
    for (unsigned d = 0; d < (operand->cube ? 3u : operand->dims); d++) {
        if (plan->is_integer) {
            out->at[d] = EMU_ROW(int32_t, warp, operand->rows[d])[lane];
        } else {
            out->x[d] = row_f32(warp, operand->rows[d], lane);
        }
    }
    for (unsigned d = 0; d < 3; d++) {
        out->offset[d] =
            plan->offset_rows[d] != EMU_NO_ROW ? EMU_ROW(int32_t, warp, plan->offset_rows[d])[lane] : 0;
    }
    if (operand->layered) {
        out->layer = EMU_ROW(uint32_t, warp, operand->layer_row)[lane];
    }
    if (plan->level_row != EMU_NO_ROW) {
        out->level = plan->is_integer ? (float)EMU_ROW(int32_t, warp, plan->level_row)[lane]
                                      : row_f32(warp, plan->level_row, lane);
    } else if (plan->gradient_rows[0][0] != EMU_NO_ROW) {
        out->level = gradient_level(warp, plan, texture, lane);
    } else if (plan->base) {
        out->level = -INFINITY;
    }
}

static uint32_t to_f16(uint32_t bits, bool is_float)
{
    return is_float ? emu_f32_to_f16(emu_bits_f32(bits)) : bits & 0xffff;
}

/* Writes four values as the instruction's type has them. */
static void result_put(struct emu_warp *warp, const struct tex_plan *plan, unsigned lane,
                       const uint32_t in[4], bool is_float)
{
    for (unsigned i = 0; i < plan->n_d; i++) {
        if (plan->type == PTX_F16X2) {
            EMU_ROW(uint32_t, warp, plan->d_rows[i])
            [lane] = to_f16(in[2 * i], is_float) | to_f16(in[2 * i + 1], is_float) << 16;
        } else if (plan->type == PTX_F16) {
            EMU_ROW(uint16_t, warp, plan->d_rows[i])[lane] = (uint16_t)to_f16(in[i], is_float);
        } else {
            EMU_ROW(uint32_t, warp, plan->d_rows[i])[lane] = in[i];
        }
    }
}

static const struct emu_op *geometry_fault(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                           const struct emu_texture *texture)
{
    emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
    return emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "the texture has another geometry: %s%ud%s",
                     texture->layered ? "layered " : "", texture->dims, texture->cube ? ", cube" : "");
}

static const struct emu_op *tex_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct tex_plan *plan = op->extra;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct emu_texture *texture = emu_texture_lane(warp, op, lane, &plan->texture, false);
        struct emu_fetch fetch;
        struct emu_touched touched;
        uint32_t value[4];
        bool is_float;
        if (!texture) {
            return NULL;
        }
        fetch_fill(warp, plan, texture, lane, &fetch);
        const bool done =
            emu_texture_fetch(emu_warp_space(warp), texture, &fetch, value, &is_float, &touched);
        for (unsigned i = 0; i < touched.n; i++) {
            enum clab_space_id space;
            unsigned char *at = emu_access_lane(warp, op, lane, EMU_REACH_GLOBAL, touched.address[i],
                                                emu_texel_bytes(texture), EMU_LOAD, &space);
            if (!at) {
                return NULL;
            }
            emu_access_tell(warp, op, lane, space, at, emu_texel_bytes(texture), EMU_LOAD);
        }
        if (!done) {
            return geometry_fault(warp, op, lane, texture);
        }
        result_put(warp, plan, lane, value, is_float);
    }
    if (plan->p_word != EMU_NO_ROW) { /* all that is fetched is resident */
        EMU_PRED(warp, plan->p_word) |= warp->exec;
    }
    return op + 1;
}

/* The elements of a coordinate-like operand: a vector, or one value for 1d. */
static bool rows_of(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_type type, unsigned n,
                    uint32_t rows[3])
{
    if (operand->kind != PTX_OPERAND_VECTOR) {
        rows[0] = emu_source(emit, operand, type);
        return n == 1;
    }
    for (unsigned i = 0; i < n && i < operand->n_elements; i++) {
        rows[i] = emu_source(emit, &operand->elements[i], type);
    }
    return operand->n_elements >= n;
}

static clab_status dests(struct emu_emit *emit, const struct ptx_operand *operand, struct tex_plan *plan)
{
    const struct ptx_operand *d = operand;
    plan->p_word = EMU_NO_ROW;
    if (operand->kind == PTX_OPERAND_PAIR) {
        d = &operand->elements[0];
        if (operand->elements[1].kind != PTX_OPERAND_SINK) {
            plan->p_word = emu_pred_dest(emit, &operand->elements[1]);
        }
    }
    plan->n_d = (uint8_t)(d->kind == PTX_OPERAND_VECTOR ? d->n_elements : 1);
    if (plan->n_d > 4) {
        return emu_unsupported(emit, "this destination");
    }
    for (unsigned i = 0; i < plan->n_d; i++) {
        plan->d_rows[i] = emu_dest(emit, d->kind == PTX_OPERAND_VECTOR ? &d->elements[i] : d,
                                   plan->type == PTX_F16X2 ? PTX_B32 : plan->type);
    }
    return CLAB_OK;
}

static clab_status tex_emit(struct emu_emit *emit, const struct ptx_insn *insn, int gather)
{
    struct tex_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    if (ptx_has(insn, PTX_MOD_2DMS) || ptx_has(insn, PTX_MOD_A2DMS)) {
        return emu_unsupported(emit, "multi-sample textures");
    }
    const enum ptx_type coordinate = (enum ptx_type)insn->types[insn->n_types - 1];
    const struct ptx_operand *operands = insn->operands;
    uint32_t next = 2;
    plan->type = (enum ptx_type)insn->types[0];
    plan->is_integer = coordinate == PTX_S32;
    plan->gather = (int8_t)gather;
    plan->base = ptx_has(insn, PTX_MOD_BASE);
    plan->level_row = EMU_NO_ROW;
    for (unsigned d = 0; d < 3; d++) {
        plan->offset_rows[d] = plan->gradient_rows[0][d] = plan->gradient_rows[1][d] = EMU_NO_ROW;
    }
    clab_status status = emu_texture_operand(emit, insn, &operands[1], coordinate, &plan->texture);
    if (status != CLAB_OK) {
        return status;
    }
    const unsigned dims = plan->texture.dims;
    if (ptx_has(insn, PTX_MOD_LEVEL)) {
        plan->level_row = emu_source(emit, &operands[next++], coordinate);
    } else if (ptx_has(insn, PTX_MOD_GRAD)) {
        for (unsigned g = 0; g < 2; g++, next++) {
            if (plan->is_integer || !rows_of(emit, &operands[next], PTX_F32, plan->texture.cube ? 3 : dims,
                                             plan->gradient_rows[g])) {
                return emu_unsupported(emit, "these gradients");
            }
        }
    }
    for (; next < insn->n_operands; next++) {
        if (operands[next].kind != PTX_OPERAND_VECTOR) {
            return emu_unsupported(emit, "comparison with a depth, or an offset that is no vector");
        }
        if (!rows_of(emit, &operands[next], PTX_S32, dims, plan->offset_rows)) {
            return emu_unsupported(emit, "these offsets");
        }
    }
    status = dests(emit, &operands[0], plan);
    if (status == CLAB_OK) {
        emu_push(emit, tex_any, tex_any)->extra = plan;
    }
    return status;
}

EMU_EMITTER(emu_tex)
{
    return tex_emit(emit, insn, -1);
}

EMU_EMITTER(emu_tld4)
{
    return tex_emit(emit, insn,
                    ptx_has(insn, PTX_MOD_R)   ? 0
                    : ptx_has(insn, PTX_MOD_G) ? 1
                    : ptx_has(insn, PTX_MOD_B) ? 2
                                               : 3);
}

/* --- txq and suq. d: result; a: handles; imm: field; c: level. */

static uint32_t level_size(uint32_t size, uint32_t level)
{
    return level < 32 && size >> level ? size >> level : 1;
}

static uint32_t field_of(const struct emu_texture *texture, enum ptx_mod field, uint32_t level)
{
    const struct emu_texels *first = &texture->levels[0];
    switch (field) {
    case PTX_MOD_WIDTH:
        return level_size(first->width, level);
    case PTX_MOD_HEIGHT:
        return texture->dims > 1 ? level_size(first->height, level) : 0;
    case PTX_MOD_DEPTH:
        return texture->layered ? texture->layers : texture->dims > 2 ? level_size(first->depth, level) : 0;
    case PTX_MOD_ARRAY_SIZE:
        return texture->layered ? texture->layers : 0;
    case PTX_MOD_NUM_MIPMAP_LEVELS:
        return texture->n_levels;
    case PTX_MOD_NUM_SAMPLES:
        return 1;
    case PTX_MOD_NORMALIZED_COORDS:
        return texture->normalized;
    case PTX_MOD_FILTER_MODE:
        return texture->linear;
    case PTX_MOD_ADDR_MODE_0:
    case PTX_MOD_ADDR_MODE_1:
    case PTX_MOD_ADDR_MODE_2:
        return texture->address_modes[field - PTX_MOD_ADDR_MODE_0];
    default:
        return 0;
    }
}

/* Of what memory there is, textures and surfaces are asked alike (Slang asks a surface by txq), and .depth of
   layers is their number: txq.width, .height and .depth of surfaces and suq.width of textures, of arrays of
   one, two, three dimensions and of layers of two: NVIDIA H200, driver 13.0, 2026-12-01. UNVERIFIED: .depth
   of a texture's layers, and by suq. .array_size is the manual's; that driver refuses it. */
static bool is_of_memory(enum ptx_mod field)
{
    return field == PTX_MOD_WIDTH || field == PTX_MOD_HEIGHT || field == PTX_MOD_DEPTH ||
           field == PTX_MOD_ARRAY_SIZE;
}

static const struct emu_op *query_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_texture_operand operand = {.handle_row = op->a};
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct emu_texture *named =
            emu_texture_get(warp->cta->run->machine, EMU_ROW(uint64_t, warp, operand.handle_row)[lane]);
        const bool is_surface = named && is_of_memory((enum ptx_mod)op->imm) ? named->is_surface : op->u8[0];
        const struct emu_texture *texture = emu_texture_lane(warp, op, lane, &operand, is_surface);
        if (!texture) {
            return NULL;
        }
        EMU_ROW(uint32_t, warp, op->d)
        [lane] = field_of(texture, (enum ptx_mod)op->imm,
                          op->c == EMU_NO_ROW ? 0 : EMU_ROW(uint32_t, warp, op->c)[lane]);
    }
    return op + 1;
}

static clab_status query_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool is_surface)
{
    static const enum ptx_mod fields[] = {PTX_MOD_WIDTH,
                                          PTX_MOD_HEIGHT,
                                          PTX_MOD_DEPTH,
                                          PTX_MOD_ARRAY_SIZE,
                                          PTX_MOD_NUM_SAMPLES,
                                          PTX_MOD_FILTER_MODE,
                                          PTX_MOD_NUM_MIPMAP_LEVELS,
                                          PTX_MOD_NORMALIZED_COORDS,
                                          PTX_MOD_ADDR_MODE_0,
                                          PTX_MOD_ADDR_MODE_1,
                                          PTX_MOD_ADDR_MODE_2};
    enum ptx_mod field = PTX_MOD_LEVEL;
    int64_t offset = 0;
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (ptx_has(insn, fields[i])) {
            field = fields[i];
        }
    }
    if (field == PTX_MOD_LEVEL) {
        return emu_unsupported(emit, "this field of a texture or surface");
    }
    const uint32_t a = emu_address(emit, &insn->operands[1], &offset);
    const uint32_t c = insn->n_operands > 2 ? emu_source(emit, &insn->operands[2], PTX_U32) : EMU_NO_ROW;
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_B32);
    struct emu_op *op = emu_push(emit, query_any, query_any);
    op->d = d;
    op->a = a;
    op->c = c;
    op->imm = (uint64_t)field;
    op->u8[0] = is_surface;
    return CLAB_OK;
}

EMU_EMITTER(emu_txq)
{
    return query_emit(emit, insn, false);
}

EMU_EMITTER(emu_suq)
{
    return query_emit(emit, insn, true);
}
