/* Decoding of cp.async.bulk, cp.reduce.async.bulk, their groups and prefetches. PTX ISA 9.0, "Data Movement
   and Conversion Instructions: cp.async.bulk, cp.reduce.async.bulk, cp.async.bulk.prefetch,
   cp.async.bulk.commit_group, cp.async.bulk.wait_group". What the copies do: bulk.c. Tensor copies:
   ops_tensor.c. Prefetches are hints, and their addresses are not looked at. */
#include "emu/bulk.h"

static const struct emu_op *bulk_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_bulk_plan *plan = op->extra;
    if (plan->kind == EMU_BULK_SHARED_TO_SHARED && !emu_window_clustered(warp, op)) {
        return NULL;
    }
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        if (!emu_bulk_issue(warp, op, (unsigned)__builtin_ctz(left), plan)) {
            return NULL;
        }
    }
    emu_progress(warp);
    return op + 1;
}

static clab_status bulk_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool reduces)
{
    struct emu_bulk_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    const enum ptx_space to = (enum ptx_space)insn->spaces[0], from = (enum ptx_space)insn->spaces[1];
    plan->kind = to == PTX_SPACE_GLOBAL     ? EMU_BULK_SHARED_TO_GLOBAL
                 : from == PTX_SPACE_GLOBAL ? EMU_BULK_GLOBAL_TO_SHARED
                                            : EMU_BULK_SHARED_TO_SHARED;
    plan->reduction = reduces ? emu_reduction_of(insn, (enum ptx_type)insn->types[0]) : EMU_REDUCE_COUNT;
    if (reduces && plan->reduction == EMU_REDUCE_COUNT) {
        return emu_unsupported(emit, "this operation of cp.reduce.async.bulk on .%s",
                               ptx_types[insn->types[0]].text);
    }
    const struct ptx_operand *operands = insn->operands;
    int64_t offset = 0;
    if (plan->kind == EMU_BULK_SHARED_TO_GLOBAL) {
        plan->global_row = emu_address(emit, &operands[0], &offset);
        plan->shared_from = emu_window_operand(emit, &operands[1], emu_window_reach(from));
    } else {
        plan->shared_to = emu_window_operand(emit, &operands[0], emu_window_reach(to));
        if (plan->kind == EMU_BULK_GLOBAL_TO_SHARED) {
            plan->global_row = emu_address(emit, &operands[1], &offset);
        } else {
            plan->shared_from = emu_window_operand(emit, &operands[1], emu_window_reach(from));
        }
        plan->mbarrier = emu_window_operand(emit, &operands[3], emu_window_reach(to));
    }
    plan->global_imm = (uint64_t)offset;
    plan->size_row = emu_source(emit, &operands[2], PTX_U32);
    plan->mask_row =
        ptx_has(insn, PTX_MOD_MULTICAST__CLUSTER) ? emu_source(emit, &operands[4], PTX_B16) : EMU_NO_ROW;
    const unsigned byte_mask = ptx_has(insn, PTX_MOD_L2__CACHE_HINT) ? 4 : 3;
    plan->byte_mask_row =
        ptx_has(insn, PTX_MOD_CP_MASK) ? emu_source(emit, &operands[byte_mask], PTX_B16) : EMU_NO_ROW;
    emu_push(emit, bulk_any, bulk_any)->extra = plan;
    return CLAB_OK;
}

EMU_EMITTER(emu_cp_async_bulk)
{
    return bulk_emit(emit, insn, false);
}

EMU_EMITTER(emu_cp_reduce_async_bulk)
{
    return bulk_emit(emit, insn, true);
}

static const struct emu_op *commit_any(struct emu_warp *warp, const struct emu_op *op)
{
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_COMMIT, .lanes = warp->exec});
    if (emu_copy_commit(warp)) {
        return op + 1;
    }
    return emu_fault(warp, op, EMU_LANES, CLAB_NO_MEMORY, NULL, 0,
                     "the emulator is out of memory for asynchronous copies");
}

EMU_EMITTER(emu_cp_async_bulk_commit_group)
{
    (void)insn;
    emu_push(emit, commit_any, commit_any);
    return CLAB_OK;
}

static const struct emu_op *wait_any(struct emu_warp *warp, const struct emu_op *op)
{
    emu_copy_wait(warp, (uint32_t)op->imm);
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_WAIT_GROUP, .lanes = warp->exec, .value = op->imm});
    return op + 1;
}

EMU_EMITTER(emu_cp_async_bulk_wait_group)
{
    emu_push(emit, wait_any, wait_any)->imm = insn->operands[0].imm;
    return CLAB_OK;
}

/* What is at the address does not matter, its alignment does (H200, driver 13.0, 2026-11-30;
 * tests/emu/faults_h200.txt). */
static const struct emu_op *prefetch_any(struct emu_warp *warp, const struct emu_op *op)
{
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t address = EMU_ROW(uint64_t, warp, op->a)[lane] + op->imm;
        if (address % 16) {
            emu_fault_kind_set(warp, EMU_FAULT_MISALIGNED_ADDRESS);
            return emu_fault(warp, op, lane, CLAB_FAULT, "global", address,
                             "bulk prefetch: misaligned address: not a multiple of 16");
        }
    }
    return op + 1;
}

EMU_EMITTER(emu_cp_async_bulk_prefetch)
{
    int64_t offset;
    const uint32_t row = emu_address(emit, &insn->operands[0], &offset);
    struct emu_op *op = emu_push(emit, prefetch_any, prefetch_any);
    op->a = row;
    op->imm = (uint64_t)offset;
    return CLAB_OK;
}
