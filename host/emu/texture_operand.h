/* What texture and surface instructions have in common: the operand [a, {coordinates}] (ops_texture.c,
   ops_surface.c). */
#ifndef CLAB_EMU_TEXTURE_OPERAND_H
#define CLAB_EMU_TEXTURE_OPERAND_H

#include "emu/access.h"
#include "emu/emit.h"
#include "emu/texture.h"

struct emu_texture_operand {
    uint32_t handle_row; /* 64-bit lanes: a handle, or a reference's address */
    uint8_t dims;        /* of the geometry, without layer: 1 to 3 */
    bool layered, cube;
    uint32_t layer_row;
    uint32_t rows[3]; /* coordinates: 32-bit lanes */
};

/* Fills it from [a, c] with c a vector or, of 1d, a scalar of `type`. CLAB_UNSUPPORTED by name for samplers
   apart from textures and for references that are parameters. */
static inline clab_status emu_texture_operand(struct emu_emit *emit, const struct ptx_insn *insn,
                                              const struct ptx_operand *operand, enum ptx_type type,
                                              struct emu_texture_operand *out)
{
    int64_t offset = 0;
    const struct ptx_operand *base = &operand->elements[0];
    if (operand->n_elements > 2) {
        return emu_unsupported(emit, "a sampler apart from the texture (.texmode_independent)");
    }
    if (base->kind == PTX_OPERAND_SYMBOL && base->var && base->var->space != PTX_SPACE_GLOBAL) {
        return emu_unsupported(emit, "a texture or surface reference that is a parameter");
    }
    out->handle_row = emu_address(emit, operand, &offset);
    out->cube = ptx_has(insn, PTX_MOD_CUBE) || ptx_has(insn, PTX_MOD_ACUBE);
    out->layered = ptx_has(insn, PTX_MOD_A1D) || ptx_has(insn, PTX_MOD_A2D) || ptx_has(insn, PTX_MOD_ACUBE);
    out->dims = ptx_has(insn, PTX_MOD_1D) || ptx_has(insn, PTX_MOD_A1D) ? 1
                : ptx_has(insn, PTX_MOD_3D)                             ? 3
                                                                        : 2;
    const struct ptx_operand *coordinates = &operand->elements[operand->n_elements - 1];
    const bool is_vector = coordinates->kind == PTX_OPERAND_VECTOR;
    const uint32_t n = is_vector ? coordinates->n_elements : 1;
    uint32_t next = 0;
    out->layer_row = EMU_NO_ROW;
    if (out->layered && n > 0) {
        out->layer_row = emu_source(emit, &coordinates->elements[next++], PTX_U32);
    }
    for (unsigned d = 0; d < (out->cube ? 3u : out->dims); d++, next++) {
        if (next >= n) {
            return emu_unsupported(emit, "these coordinates");
        }
        out->rows[d] = emu_source(emit, is_vector ? &coordinates->elements[next] : coordinates, type);
    }
    return CLAB_OK;
}

/* The object that a lane names; NULL after emu_fault. Through a handle that names none, or one of the other
   kind, an H200 reads zeros (driver 13.0, 2026-11-30); here that is reported. */
static inline const struct emu_texture *emu_texture_lane(struct emu_warp *warp, const struct emu_op *op,
                                                         unsigned lane,
                                                         const struct emu_texture_operand *operand,
                                                         bool is_surface)
{
    const uint64_t handle = EMU_ROW(uint64_t, warp, operand->handle_row)[lane];
    const struct emu_texture *texture = emu_texture_get(warp->cta->run->machine, handle);
    if (!texture || texture->is_surface != is_surface) {
        emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
        emu_fault(warp, op, lane, CLAB_FAULT, NULL, handle, "0x%llx is no live %s object",
                  (unsigned long long)handle, is_surface ? "surface" : "texture");
        return NULL;
    }
    return texture;
}

#endif
