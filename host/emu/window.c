/* Addresses of objects in shared memory, lane by lane (window.h). */
#include "emu/window.h"

bool emu_window_lane(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                     const struct emu_window_operand *operand, bool own, uint32_t bytes, uint32_t align,
                     enum emu_access_mode mode, struct emu_window_place *out)
{
    uint64_t address = EMU_ROW(uint64_t, warp, operand->row)[lane] + operand->imm;
    enum emu_reach reach = operand->reach;
    if (reach == EMU_REACH_GENERIC) {
        const struct emu_space *space = emu_warp_space(warp);
        if (emu_space_classify(space, address) != EMU_ADDRESS_SHARED) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            emu_fault(warp, op, lane, CLAB_FAULT, "generic", address, "the address is not in shared memory");
            return false;
        }
        address -= space->shared_window;
        reach = own ? EMU_REACH_SHARED_CTA : EMU_REACH_SHARED_CLUSTER;
    }
    enum clab_space_id space;
    out->address = (uint32_t)address;
    out->at = emu_access_range(warp, op, lane, reach, (uint32_t)address, bytes, align, mode, &space);
    out->cta = out->at ? emu_cta_peer(warp->cta, out->address >> EMU_RANK_SHIFT) : NULL;
    return out->at != NULL;
}

bool emu_window_clustered(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_launch *launch = warp->cta->run->launch;
    if (launch->explicit_cluster || warp->cta->cluster->size > 1) {
        return true;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
    emu_fault(
        warp, op, EMU_LANES, CLAB_FAULT, NULL, 0,
        "the launch has no clusters: this instruction needs one, of one CTA at least, even to reach the "
        "executing CTA's own memory");
    return false;
}
