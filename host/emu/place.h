/* How an instruction names memory: decoding an address operand with its state space, and resolving addresses
   that are known while decoding ([symbol + offset]). Used by the instructions that access memory through
   access.h. */
#ifndef CLAB_EMU_PLACE_H
#define CLAB_EMU_PLACE_H

#include "emu/access.h"
#include "emu/emit.h"

/* How the address is given: u8[0] of an operation. */
enum emu_place_kind {
    EMU_AT_GLOBAL, /* a: 64-bit row, imm added */
    EMU_AT_CONST,
    EMU_AT_PARAM, /* of the entry: a device address; of a function: an offset in local memory, and so below 4
                     GiB */
    EMU_AT_LOCAL,
    EMU_AT_SHARED, /* a: 32-bit row, imm added */
    EMU_AT_CLUSTER,
    EMU_AT_GENERIC,      /* a: 64-bit row, imm added */
    EMU_AT_KNOWN_GLOBAL, /* imm: device address */
    EMU_AT_KNOWN_CONST,  /* the same */
    EMU_AT_KNOWN_SHARED, /* imm: offset from the CTA's first byte */
    EMU_AT_KNOWN_LOCAL,  /* imm: offset in the running function's part of local memory */
    EMU_AT_KNOWN_PARAM,  /* imm: offset in the parameter block */
    EMU_AT_COUNT
};

/* --- addresses that the instruction itself gives: [symbol + offset] */

static inline enum emu_lanes_kind emu_known_one(struct emu_warp *warp, const struct emu_op *op,
                                                enum emu_reach reach, uint64_t address, unsigned size,
                                                enum emu_access_mode mode, struct emu_lanes *out)
{
    const struct emu_space *space = emu_warp_space(warp);
    const unsigned bytes = 1u << size;
    const uint16_t wanted = reach == EMU_REACH_CONST ? EMU_GRANULE_CONST : 0;
    uint16_t flags;
    if (!(address & (bytes - 1)) && emu_access_near(space, address, bytes, mode != EMU_LOAD, &flags) &&
        (flags & (EMU_GRANULE_CONST | EMU_GRANULE_PARAM)) == wanted) {
        emu_access_count(warp, wanted ? CLAB_SPACE_CONST : CLAB_SPACE_GLOBAL, size, mode,
                         (uint64_t)__builtin_popcount(warp->exec));
        out->shared = false;
        out->at = (unsigned char *)(uintptr_t)address;
        emu_access_seen(warp, op, wanted ? CLAB_SPACE_CONST : CLAB_SPACE_GLOBAL, NULL, size, mode,
                        EMU_SHAPE_ONE, out);
        return EMU_LANES_ONE;
    }
    return emu_access_same(warp, op, reach, address, size, mode, out);
}

static inline enum emu_lanes_kind emu_known_shared(struct emu_warp *warp, const struct emu_op *op,
                                                   unsigned size, enum emu_access_mode mode,
                                                   struct emu_lanes *out)
{
    const struct emu_cta *cta = warp->cta;
    const unsigned bytes = 1u << size;
    if (op->imm < cta->shared_bytes && bytes <= cta->shared_bytes - op->imm && !(op->imm & (bytes - 1))) {
        emu_access_count(warp, CLAB_SPACE_SHARED, size, mode, (uint64_t)__builtin_popcount(warp->exec));
        out->shared = true;
        out->at = cta->shared + op->imm;
        emu_access_seen(warp, op, CLAB_SPACE_SHARED, cta, size, mode, EMU_SHAPE_ONE, out);
        return EMU_LANES_ONE;
    }
    const uint32_t address = (cta->rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST + (uint32_t)op->imm;
    return emu_access_same(warp, op, EMU_REACH_SHARED_CTA, address, size, mode, out);
}

static inline enum emu_lanes_kind emu_known_local(struct emu_warp *warp, const struct emu_op *op,
                                                  unsigned size, enum emu_access_mode mode,
                                                  struct emu_lanes *out)
{
    const uint64_t room = warp->cta->local_bytes;
    const uint64_t at = warp->fragment->frame->local_base + op->imm;
    const unsigned bytes = 1u << size;
    if (at < room && bytes <= room - at && !(at & (bytes - 1))) {
        const uintptr_t first = (uintptr_t)emu_local(warp, 0) + at;
        EMU_EACH_LANE(i)
        {
            out->lane[i] = (unsigned char *)(first + i * (uintptr_t)room);
        }
        emu_access_count(warp, CLAB_SPACE_LOCAL, size, mode, (uint64_t)__builtin_popcount(warp->exec));
        emu_access_seen(warp, op, CLAB_SPACE_LOCAL, NULL, size, mode, EMU_SHAPE_EACH, out);
        return EMU_LANES_EACH;
    }
    return emu_access_same(warp, op, EMU_REACH_LOCAL, at, size, mode, out);
}

static inline enum emu_lanes_kind emu_known_param(struct emu_warp *warp, const struct emu_op *op,
                                                  unsigned size, enum emu_access_mode mode,
                                                  struct emu_lanes *out)
{
    const struct emu_run *run = warp->cta->run;
    const unsigned bytes = 1u << size;
    if (mode == EMU_LOAD && op->imm < run->param_bytes && bytes <= run->param_bytes - op->imm &&
        !(op->imm & (bytes - 1))) {
        emu_access_count(warp, CLAB_SPACE_PARAM, size, mode, (uint64_t)__builtin_popcount(warp->exec));
        out->shared = false;
        out->at = (unsigned char *)(uintptr_t)(run->params + op->imm);
        emu_access_seen(warp, op, CLAB_SPACE_PARAM, NULL, size, mode, EMU_SHAPE_ONE, out);
        return EMU_LANES_ONE;
    }
    return emu_access_same(warp, op, EMU_REACH_PARAM, run->params + op->imm, size, mode, out);
}

static inline enum ptx_space emu_space_of(const struct ptx_insn *insn)
{
    return insn->n_spaces ? (enum ptx_space)insn->spaces[0] : PTX_SPACE_NONE;
}

struct emu_place_address {
    enum emu_place_kind place;
    uint32_t row;
    uint64_t imm;
};

/* [symbol + offset] whose storage is known while decoding. */
static inline bool emu_place_known(struct emu_emit *emit, const struct ptx_operand *operand,
                                   enum ptx_space space, struct emu_place_address *out)
{
    const struct ptx_operand *base = &operand->elements[0];
    if (base->kind != PTX_OPERAND_SYMBOL || !base->var || space == PTX_SPACE_NONE) {
        return false;
    }
    enum emu_place place;
    uint64_t at;
    if (!emu_place_of(emit, base->var, &place, &at)) {
        return false;
    }
    out->row = 0;
    out->imm = at + base->imm + operand->imm;
    switch (place) {
    case EMU_PLACE_ABSOLUTE:
        out->place = space == PTX_SPACE_CONST ? EMU_AT_KNOWN_CONST : EMU_AT_KNOWN_GLOBAL;
        return space == PTX_SPACE_CONST || space == PTX_SPACE_GLOBAL;
    case EMU_PLACE_SHARED:
        out->place = EMU_AT_KNOWN_SHARED;
        return space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CTA ||
               space == PTX_SPACE_SHARED_CLUSTER;
    case EMU_PLACE_LOCAL:
        out->place = EMU_AT_KNOWN_LOCAL;
        return space == PTX_SPACE_LOCAL || space == PTX_SPACE_PARAM || space == PTX_SPACE_PARAM_FUNC;
    case EMU_PLACE_PARAM:
        out->place = EMU_AT_KNOWN_PARAM;
        return space == PTX_SPACE_PARAM || space == PTX_SPACE_PARAM_ENTRY;
    }
    return false;
}

/* Row and bytes to add of an address in shared memory, as 32-bit window addresses. */
static inline uint32_t emu_place_shared(struct emu_emit *emit, const struct ptx_operand *operand,
                                        uint64_t *out_imm)
{
    const struct ptx_operand *base = &operand->elements[0];
    *out_imm = operand->imm;
    return emu_source(emit, base, PTX_U32);
}

static inline struct emu_place_address
emu_place_address(struct emu_emit *emit, const struct ptx_operand *operand, enum ptx_space space)
{
    struct emu_place_address address = {EMU_AT_GENERIC, 0, 0};
    if (emu_place_known(emit, operand, space, &address)) {
        return address;
    }
    int64_t offset = 0;
    switch (space) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
    case PTX_SPACE_SHARED_CLUSTER:
        address.place = space == PTX_SPACE_SHARED_CLUSTER ? EMU_AT_CLUSTER : EMU_AT_SHARED;
        address.row = emu_place_shared(emit, operand, &address.imm);
        return address;
    case PTX_SPACE_GLOBAL:
        address.place = EMU_AT_GLOBAL;
        break;
    case PTX_SPACE_CONST:
        address.place = EMU_AT_CONST;
        break;
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_PARAM_FUNC:
        address.place = EMU_AT_LOCAL;
        break;
    case PTX_SPACE_PARAM:
    case PTX_SPACE_PARAM_ENTRY:
        address.place = EMU_AT_PARAM;
        break;
    default:
        address.place = EMU_AT_GENERIC;
        break;
    }
    address.row = emu_address(emit, operand, &offset);
    address.imm = (uint64_t)offset;
    return address;
}

#endif
