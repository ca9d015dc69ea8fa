/* cp.async.bulk and cp.reduce.async.bulk: checks at issue, payload at completion. PTX ISA 9.0, "Data Movement
   and Conversion Instructions: cp.async.bulk, cp.reduce.async.bulk".

   Addresses, sizes and the CTAs named are checked at once; CTAs that have exited when the payload moves are
   reported then. A multicast writes the same offsets in every CTA of its mask and signals the mbarrier at the
   same offset there; a mask that names a CTA which the cluster does not have, or which has exited, is a
   launch failure as on an H200 (design, "Faults").

   Shared to shared within one CTA, which PTX leaves undefined, works as to a peer in a cluster launch (NVIDIA
   H200, driver 13.0, 2026-12-01). */
#include "emu/bulk.h"

#include <stdlib.h>
#include <string.h>

struct bulk_copy {
    struct emu_copy copy;
    enum emu_bulk_kind kind;
    struct emu_cta *from_cta; /* of shared_from; NULL: global memory */
    uint64_t global;
    uint32_t from; /* window address */
    uint32_t bytes;
    struct emu_bulk_target target;
    uint16_t byte_mask;
    enum emu_reduction reduction;
};

static void move(const struct bulk_copy *bulk, unsigned char *to, const unsigned char *from)
{
    if (bulk->reduction != EMU_REDUCE_COUNT) {
        const unsigned step = emu_reduction_bytes(bulk->reduction);
        for (uint32_t i = 0; i + step <= bulk->bytes; i += step) {
            uint64_t value = 0;
            memcpy(&value, from + i, step);
            emu_reduce_atomic(bulk->reduction, to + i, value);
        }
    } else if (bulk->byte_mask != 0xffff) {
        for (uint32_t i = 0; i < bulk->bytes; i++) {
            if (bulk->byte_mask >> (i & 15) & 1) {
                to[i] = from[i];
            }
        }
    } else {
        memmove(to, from, bulk->bytes);
    }
}

/* Global memory at completion: it was valid at issue, and may have been freed since. */
static unsigned char *global_now(const struct bulk_copy *bulk, bool write)
{
    struct emu_cta *cta = bulk->copy.cta;
    const struct emu_space *space = cta->run->machine->space;
    void *at = write ? emu_space_range_write(space, bulk->global, bulk->bytes)
                     : emu_space_range_read(space, bulk->global, bulk->bytes);
    if (!at) {
        emu_fault_async(cta->cluster, cta, EMU_FAULT_ILLEGAL_ADDRESS, "global", bulk->global,
                        "a bulk copy of %u bytes completes, but its memory was freed meanwhile", bulk->bytes);
    }
    return at;
}

static void perform_to_global(struct bulk_copy *bulk)
{
    if (!bulk->bytes || !emu_copy_alive(&bulk->copy, bulk->from_cta, "reads")) {
        return;
    }
    unsigned char *to = global_now(bulk, true);
    if (to) {
        move(bulk, to, emu_bulk_shared(bulk->from_cta, bulk->from));
        bulk->copy.cta->cluster->thread->traffic.bulk_delivered_bytes += bulk->bytes;
    }
}

static void perform_to_shared(struct bulk_copy *bulk)
{
    struct emu_cluster *cluster = bulk->copy.cta->cluster;
    const unsigned char *from = NULL;
    if (bulk->bytes && bulk->from_cta) {
        if (!emu_copy_alive(&bulk->copy, bulk->from_cta, "reads")) {
            return;
        }
        from = emu_bulk_shared(bulk->from_cta, bulk->from);
    } else if (bulk->bytes && !(from = global_now(bulk, false))) {
        return;
    }
    for (uint32_t left = bulk->target.ranks; left; left &= left - 1) {
        struct emu_cta *cta = &cluster->ctas[__builtin_ctz(left)];
        if (!emu_copy_alive(&bulk->copy, cta, "writes")) {
            return;
        }
        if (from) {
            move(bulk, emu_bulk_shared(cta, bulk->target.to), from);
        }
        cluster->thread->traffic.bulk_delivered_bytes += bulk->bytes;
        emu_copy_signal(&bulk->copy, cta, bulk->target.mbarrier, bulk->bytes);
    }
}

static void bulk_perform(struct emu_copy *copy)
{
    struct bulk_copy *bulk = (struct bulk_copy *)(void *)copy;
    if (bulk->kind == EMU_BULK_SHARED_TO_GLOBAL) {
        perform_to_global(bulk);
    } else {
        perform_to_shared(bulk);
    }
}

/* --- issue */

static bool ranks_check(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint32_t ranks)
{
    const struct emu_cluster *cluster = warp->cta->cluster;
    for (uint32_t left = ranks; left; left &= left - 1) {
        const unsigned rank = (unsigned)__builtin_ctz(left);
        if (rank >= cluster->size) {
            emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
            emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                      "the multicast mask 0x%x names the CTA of rank %u, but the cluster has %u CTA%s", ranks,
                      rank, cluster->size, cluster->size == 1 ? "" : "s");
            return false;
        }
        const struct emu_cta *peer = &cluster->ctas[rank];
        if (peer->state != EMU_CTA_RUNNING) {
            emu_fault_kind_set(warp, EMU_FAULT_LAUNCH_FAILED);
            emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                      "the multicast mask 0x%x names CTA (%u,%u,%u) of rank %u, which has %s; the copy is by "
                      "the CTA of "
                      "rank %u",
                      ranks, peer->ctaid[0], peer->ctaid[1], peer->ctaid[2], rank,
                      peer->state == EMU_CTA_EXITED ? "exited" : "not started", warp->cta->rank);
            return false;
        }
    }
    return true;
}

bool emu_bulk_target_get(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                         const struct emu_window_operand *to, const struct emu_window_operand *mbarrier,
                         uint32_t bytes, uint32_t align, bool multicast, uint32_t mask, bool pair,
                         struct emu_bulk_target *out)
{
    struct emu_window_place data, object;
    if (!emu_window_lane(warp, op, lane, to, false, bytes ? bytes : align, align, EMU_STORE, &data) ||
        !emu_window_lane(warp, op, lane, mbarrier, false, 8, 8, EMU_ATOMIC, &object)) {
        return false;
    }
    out->to = data.address;
    out->mbarrier = object.address;
    if (multicast) {
        out->ranks = mask & 0xffff;
        return ranks_check(warp, op, lane, out->ranks);
    }
    out->ranks = UINT32_C(1) << data.cta->rank;
    if (data.cta == object.cta || (pair && (data.cta->rank ^ object.cta->rank) == 1)) {
        return true;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
    emu_fault(warp, op, lane, CLAB_FAULT, "shared::cluster", object.address,
              "the mbarrier is in the CTA of rank %u, but the destination in that of rank %u",
              object.cta->rank, data.cta->rank);
    return false;
}

static bool size_check(struct emu_warp *warp, const struct emu_op *op, unsigned lane, uint32_t bytes)
{
    if (bytes % 16 == 0) {
        return true;
    }
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
    emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "the size of the bulk copy is %u, not a multiple of 16",
              bytes);
    return false;
}

/* The global side of `lane`; its address in bulk->global. False after a fault. */
static bool global_side(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                        const struct emu_bulk_plan *plan, struct bulk_copy *bulk)
{
    enum clab_space_id space;
    bulk->global = EMU_ROW(uint64_t, warp, plan->global_row)[lane] + plan->global_imm;
    return !bulk->bytes ||
           emu_access_range(warp, op, lane, EMU_REACH_GLOBAL, bulk->global, bulk->bytes, 16,
                            plan->kind == EMU_BULK_SHARED_TO_GLOBAL ? EMU_STORE : EMU_LOAD, &space);
}

static bool shared_source(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                          const struct emu_bulk_plan *plan, struct bulk_copy *bulk)
{
    struct emu_window_place from;
    if (!emu_window_lane(warp, op, lane, &plan->shared_from, true, bulk->bytes ? bulk->bytes : 16, 16,
                         EMU_LOAD, &from)) {
        return false;
    }
    bulk->from_cta = from.cta;
    bulk->from = from.address;
    return true;
}

static bool bulk_fill(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                      const struct emu_bulk_plan *plan, struct bulk_copy *bulk)
{
    const bool multicast = plan->mask_row != EMU_NO_ROW;
    bulk->copy.perform = bulk_perform;
    bulk->kind = plan->kind;
    bulk->bytes = EMU_ROW(uint32_t, warp, plan->size_row)[lane];
    bulk->reduction = plan->reduction;
    bulk->byte_mask =
        plan->byte_mask_row == EMU_NO_ROW ? 0xffff : EMU_ROW(uint16_t, warp, plan->byte_mask_row)[lane];
    return size_check(warp, op, lane, bulk->bytes) &&
           (plan->kind == EMU_BULK_SHARED_TO_SHARED || global_side(warp, op, lane, plan, bulk)) &&
           (plan->kind == EMU_BULK_GLOBAL_TO_SHARED || shared_source(warp, op, lane, plan, bulk)) &&
           (plan->kind == EMU_BULK_SHARED_TO_GLOBAL ||
            emu_bulk_target_get(warp, op, lane, &plan->shared_to, &plan->mbarrier, bulk->bytes, 16, multicast,
                                multicast ? EMU_ROW(uint16_t, warp, plan->mask_row)[lane] : 0, false,
                                &bulk->target));
}

bool emu_bulk_post(struct emu_warp *warp, const struct emu_op *op, unsigned lane, struct emu_copy *copy,
                   bool in_group, uint64_t bytes)
{
    if (copy) {
        emu_async_issued(&copy->async, warp, op, lane);
    }
    if (!copy || !emu_copy_post(warp, copy, lane, in_group)) {
        emu_fault(warp, op, lane, CLAB_NO_MEMORY, NULL, 0,
                  "the emulator is out of memory for asynchronous copies");
        return false;
    }
    warp->traffic->bulk_copies++;
    warp->traffic->bulk_requested_bytes += bytes;
    return true;
}

bool emu_bulk_issue(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                    const struct emu_bulk_plan *plan)
{
    struct bulk_copy *bulk = calloc(1, sizeof *bulk);
    if (bulk && !bulk_fill(warp, op, lane, plan, bulk)) {
        free(bulk);
        return false;
    }
    const uint32_t bytes = bulk ? bulk->bytes : 0;
    if (plan->kind == EMU_BULK_SHARED_TO_SHARED)
        warp->traffic->bulk_across_bytes += bytes;
    if (bulk) {
        bulk->copy.id = ++warp->cta->cluster->copies;
        const bool to_global = plan->kind == EMU_BULK_SHARED_TO_GLOBAL;
        emu_hook_transfer(warp, op,
                          &(struct emu_transfer){.kind = EMU_TRANSFER_BULK,
                                                 .id = bulk->copy.id,
                                                 .lane = lane,
                                                 .ranks = to_global ? 0 : bulk->target.ranks,
                                                 .to = emu_window_offset(bulk->target.to),
                                                 .to_bytes = bytes,
                                                 .has_mbarrier = !to_global,
                                                 .mbarrier = bulk->target.mbarrier,
                                                 .from_cta = bulk->from_cta,
                                                 .from = emu_window_offset(bulk->from),
                                                 .from_bytes = bulk->from_cta ? bytes : 0,
                                                 .global = bulk->global,
                                                 .global_bytes = bulk->from_cta && !to_global ? 0 : bytes,
                                                 .global_write = to_global,
                                                 .reduces = plan->reduction != EMU_REDUCE_COUNT,
                                                 .bytes = bytes});
    }
    return emu_bulk_post(warp, op, lane, bulk ? &bulk->copy : NULL, plan->kind == EMU_BULK_SHARED_TO_GLOBAL,
                         bytes);
}
