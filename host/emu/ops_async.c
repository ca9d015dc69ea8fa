/* Small asynchronous operations: st.async, red.async, cp.async with its groups, and st.bulk. PTX ISA 9.0,
   "Data Movement and Conversion Instructions: st.async, st.bulk, cp.async, cp.async.commit_group,
   cp.async.wait_group, cp.async.wait_all, cp.async.mbarrier.arrive", "red.async". The copies themselves are
   async.c, bulk copies ops_bulk.c.

   The stores of st.async and red.async land later, each followed by complete_tx on the mbarrier beside it.
   The forms on global memory (.release, sm_100) land later too, with nothing that tells. To the executing CTA
   itself, and in a cluster of one CTA, which PTX leaves undefined, both work as for a peer (NVIDIA H200,
   driver 13.0, 2026-12-01). */
#include <stdlib.h>
#include <string.h>

#include "emu/async.h"
#include "emu/mbarrier.h"
#include "emu/window.h"

static const struct emu_op *out_of_memory(struct emu_warp *warp, const struct emu_op *op)
{
    return emu_fault(warp, op, EMU_LANES, CLAB_NO_MEMORY, NULL, 0,
                     "the emulator is out of memory for asynchronous copies");
}

/* --- st.async, red.async */

struct store_lane {
    struct emu_cta *cta; /* of the destination and the mbarrier; NULL: global memory */
    uint32_t mbarrier;
    uint64_t id;
    unsigned char *at;
    uint64_t data[2];
};

struct store_event {
    struct emu_async async;
    struct emu_cta *issuer;
    enum emu_reduction reduction; /* EMU_REDUCE_COUNT: a plain store */
    uint32_t bytes, n_lanes;
    struct store_lane lanes[];
};

static void store_land(struct store_event *event, struct store_lane *lane)
{
    struct emu_cta *issuer = event->issuer;
    if (lane->cta && lane->cta->state != EMU_CTA_RUNNING) {
        emu_fault_async(issuer->cluster, lane->cta, EMU_FAULT_LAUNCH_FAILED, "shared::cluster",
                        lane->mbarrier,
                        "an asynchronous store by CTA (%u,%u,%u) of rank %u lands in shared memory of the "
                        "CTA of rank %u, "
                        "which has exited",
                        issuer->ctaid[0], issuer->ctaid[1], issuer->ctaid[2], issuer->rank, lane->cta->rank);
        return;
    }
    if (event->reduction != EMU_REDUCE_COUNT) {
        emu_reduce_atomic(event->reduction, lane->at, lane->data[0]);
    } else {
        memcpy(lane->at, lane->data, event->bytes);
    }
    if (lane->cta) {
        const char *wrong = emu_copy_complete_tx(issuer, lane->id, lane->cta, lane->mbarrier, event->bytes);
        if (wrong) {
            emu_fault_async(issuer->cluster, lane->cta, EMU_FAULT_ILLEGAL_INSTRUCTION, "shared::cluster",
                            lane->mbarrier, "completion of an asynchronous store by CTA (%u,%u,%u): %s",
                            issuer->ctaid[0], issuer->ctaid[1], issuer->ctaid[2], wrong);
        }
    }
    emu_copy_tell(issuer, lane->id, EMU_EVENT_COPY_DONE, 0, 0, false);
}

static void store_complete(struct emu_async *item, struct emu_cluster *cluster)
{
    struct store_event *event = (struct store_event *)(void *)item;
    for (uint32_t i = 0; cluster && i < event->n_lanes; i++) {
        store_land(event, &event->lanes[i]);
    }
    free(event);
}

struct store_plan {
    struct emu_window_operand to, mbarrier; /* of the global forms only `to`, with reach GLOBAL or GENERIC */
    bool global;
    enum emu_reduction reduction;
    uint32_t n, element_bytes; /* of the vector */
    uint32_t rows[4];
};

static bool store_lane_fill(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                            const struct store_plan *plan, uint32_t bytes, struct store_lane *out)
{
    struct emu_transfer transfer = {.kind = EMU_TRANSFER_STORE,
                                    .id = ++warp->cta->cluster->copies,
                                    .lane = lane,
                                    .reduces = plan->reduction != EMU_REDUCE_COUNT,
                                    .bytes = bytes};
    if (plan->global) {
        enum clab_space_id space;
        const uint64_t address = EMU_ROW(uint64_t, warp, plan->to.row)[lane] + plan->to.imm;
        out->cta = NULL;
        transfer.global = address;
        transfer.global_bytes = bytes;
        transfer.global_write = true;
        out->at =
            emu_access_range(warp, op, lane, EMU_REACH_GLOBAL, address, bytes, bytes, EMU_STORE, &space);
        if (!out->at) {
            return false;
        }
    } else {
        struct emu_window_place to, mbarrier;
        if (!emu_window_lane(warp, op, lane, &plan->to, false, bytes, bytes, EMU_STORE, &to) ||
            !emu_window_lane(warp, op, lane, &plan->mbarrier, false, 8, 8, EMU_ATOMIC, &mbarrier)) {
            return false;
        }
        if (to.cta != mbarrier.cta) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            emu_fault(warp, op, lane, CLAB_FAULT, "shared::cluster", mbarrier.address,
                      "the mbarrier is in the CTA of rank %u, but the destination in that of rank %u",
                      mbarrier.cta->rank, to.cta->rank);
            return false;
        }
        out->cta = to.cta;
        out->at = to.at;
        out->mbarrier = mbarrier.address;
        transfer.ranks = UINT32_C(1) << to.cta->rank;
        transfer.to = emu_window_offset(to.address);
        transfer.to_bytes = bytes;
        transfer.has_mbarrier = true;
        transfer.mbarrier = mbarrier.address;
    }
    out->id = transfer.id;
    emu_hook_transfer(warp, op, &transfer);
    unsigned char *data = (unsigned char *)out->data;
    for (uint32_t k = 0; k < plan->n; k++) {
        const unsigned char *row = EMU_ROW(unsigned char, warp, plan->rows[k]);
        memcpy(data + k * plan->element_bytes, row + lane * plan->element_bytes, plan->element_bytes);
    }
    return true;
}

static const struct emu_op *store_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct store_plan *plan = op->extra;
    const uint32_t lanes = (uint32_t)__builtin_popcount(warp->exec);
    if (!plan->global && !emu_window_clustered(warp, op)) {
        return NULL;
    }
    struct store_event *event = calloc(1, sizeof *event + lanes * sizeof event->lanes[0]);
    if (!event) {
        return out_of_memory(warp, op);
    }
    event->async.complete = store_complete;
    event->issuer = warp->cta;
    event->reduction = plan->reduction;
    event->bytes = plan->n * plan->element_bytes;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        if (!store_lane_fill(warp, op, (unsigned)__builtin_ctz(left), plan, event->bytes,
                             &event->lanes[event->n_lanes++])) {
            free(event);
            return NULL;
        }
    }
    warp->traffic->async_stores += lanes;
    warp->traffic->async_store_bytes += (uint64_t)lanes * event->bytes;
    emu_progress(warp);
    emu_async_issued(&event->async, warp, op, lanes == 1 ? (unsigned)__builtin_ctz(warp->exec) : EMU_LANES);
    emu_async_post(warp->cta->cluster, &event->async, emu_async_delay(warp->cta->cluster));
    return op + 1;
}

static clab_status store_emit(struct emu_emit *emit, const struct ptx_insn *insn, bool global, bool reduces)
{
    const enum ptx_type type = (enum ptx_type)insn->types[0];
    const struct ptx_operand *value = &insn->operands[1];
    struct store_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    plan->global = global;
    plan->reduction = reduces ? emu_reduction_of(insn, type) : EMU_REDUCE_COUNT;
    plan->element_bytes = emu_lane_bytes(type);
    const enum emu_reach reach = insn->n_spaces ? EMU_REACH_SHARED_CLUSTER : EMU_REACH_GENERIC;
    plan->to = emu_window_operand(emit, &insn->operands[0], reach);
    if (!global) {
        plan->mbarrier = emu_window_operand(emit, &insn->operands[2], reach);
    }
    const bool vector = value->kind == PTX_OPERAND_VECTOR;
    plan->n = vector ? value->n_elements : 1;
    if (plan->n > 4 || plan->n * plan->element_bytes > 16) {
        return emu_unsupported(emit, "an asynchronous store of more than 16 bytes");
    }
    for (uint32_t k = 0; k < plan->n; k++) {
        plan->rows[k] = emu_source(emit, vector ? &value->elements[k] : value, type);
    }
    emu_push(emit, store_any, store_any)->extra = plan;
    return CLAB_OK;
}

EMU_EMITTER(emu_st_async)
{
    return store_emit(emit, insn, false, false);
}

EMU_EMITTER(emu_red_async)
{
    return store_emit(emit, insn, false, true);
}

EMU_EMITTER(emu_st_async_release)
{
    return store_emit(emit, insn, true, false);
}

EMU_EMITTER(emu_red_async_release)
{
    return store_emit(emit, insn, true, true);
}

/* --- st.bulk: zeros, at once. a: address, imm: offset, b: size, u8[0]: reach */

static const struct emu_op *st_bulk_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_window_operand to = {op->a, op->imm, (enum emu_reach)op->u8[0]};
    const uint64_t *sizes = EMU_ROW(uint64_t, warp, op->b);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t bytes = sizes[lane];
        if (bytes % 8 || bytes > (1u << EMU_RANK_SHIFT)) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            return emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0,
                             "the size of st.bulk is %llu: not a multiple of 8, or too large",
                             (unsigned long long)bytes);
        }
        struct emu_window_place place;
        if (!bytes) {
            continue;
        }
        if (!emu_window_lane(warp, op, lane, &to, true, (uint32_t)bytes, 8, EMU_STORE, &place)) {
            return NULL;
        }
        memset(place.at, 0, (size_t)bytes);
        warp->traffic->odd_stores[CLAB_SPACE_SHARED].accesses++;
        warp->traffic->odd_stores[CLAB_SPACE_SHARED].bytes += bytes;
        emu_access_tell(warp, op, lane, CLAB_SPACE_SHARED, place.at, (uint32_t)bytes, EMU_STORE);
    }
    emu_progress(warp);
    return op + 1;
}

EMU_EMITTER(emu_st_bulk)
{
    const struct emu_window_operand to =
        emu_window_operand(emit, &insn->operands[0], emu_window_reach(emu_space_of(insn)));
    const uint32_t size = emu_source(emit, &insn->operands[1], PTX_U64);
    struct emu_op *op = emu_push(emit, st_bulk_any, st_bulk_any);
    op->a = to.row;
    op->imm = to.imm;
    op->u8[0] = (uint8_t)to.reach;
    op->b = size;
    return CLAB_OK;
}

/* --- cp.async. a: source, imm added; c: destination, 32-bit window addresses, extra's offset added; b: bytes
 * to read. */

struct cp_plan {
    uint32_t to_offset;
    uint32_t bytes;
};

/* The lanes whose sizes differ from the whole, one by one: nothing is read for a size of 0, whatever the
 * address. */
static bool cp_sources(struct emu_warp *warp, const struct emu_op *op, const struct cp_plan *plan,
                       const uint32_t *sizes, struct emu_cp_async *cp)
{
    const uint64_t *from = EMU_ROW(uint64_t, warp, op->a);
    for (uint32_t left = cp->mask; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint32_t bytes = sizes[lane];
        enum clab_space_id space;
        if (bytes > plan->bytes) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            emu_fault(warp, op, lane, CLAB_FAULT, NULL, 0, "cp.async reads %u bytes of a copy of %u", bytes,
                      plan->bytes);
            return false;
        }
        cp->from_bytes[lane] = (uint8_t)bytes;
        if (!bytes) {
            continue;
        }
        cp->from[lane] = emu_access_range(warp, op, lane, EMU_REACH_GLOBAL, from[lane] + op->imm, bytes,
                                          plan->bytes, EMU_LOAD, &space);
        if (!cp->from[lane]) {
            return false;
        }
        warp->traffic->odd_loads[CLAB_SPACE_GLOBAL].accesses++;
        warp->traffic->odd_loads[CLAB_SPACE_GLOBAL].bytes += bytes;
        emu_access_tell(warp, op, lane, CLAB_SPACE_GLOBAL, cp->from[lane], bytes, EMU_LOAD);
    }
    return true;
}

static unsigned char *cp_pointer(const struct emu_lanes *access, enum emu_lanes_kind kind, unsigned lane,
                                 uint32_t bytes)
{
    return kind == EMU_LANES_ROW   ? (unsigned char *)((uintptr_t)access->at + (uintptr_t)lane * bytes)
           : kind == EMU_LANES_ONE ? access->at
                                   : access->lane[lane];
}

static const struct emu_op *cp_async_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct cp_plan *plan = op->extra;
    const unsigned size = (unsigned)__builtin_ctz(plan->bytes);
    const uint32_t *sizes = op->b == EMU_NO_ROW ? NULL : EMU_ROW(uint32_t, warp, op->b);
    struct emu_lanes access;
    struct emu_cp_async cp = {.mask = warp->exec, .bytes = plan->bytes};
    access.at = NULL;
    const bool full = warp->exec == EMU_ALL; /* lane_mask is not kept then */
    enum emu_lanes_kind kind =
        emu_access_window(warp, op, EMU_REACH_SHARED_CTA, EMU_ROW(uint32_t, warp, op->c), plan->to_offset,
                          size, EMU_STORE, full, &access);
    if (kind == EMU_LANES_FAULT) {
        return NULL;
    }
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        cp.to[lane] = cp_pointer(&access, kind, lane, plan->bytes);
    }
    if (sizes) {
        if (!cp_sources(warp, op, plan, sizes, &cp)) {
            return NULL;
        }
    } else {
        kind = emu_access_device(warp, op, EMU_REACH_GLOBAL, size, EMU_LOAD, full, &access);
        if (kind == EMU_LANES_FAULT) {
            return NULL;
        }
        for (uint32_t left = warp->exec; left; left &= left - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(left);
            cp.from_bytes[lane] = (uint8_t)plan->bytes;
            cp.from[lane] = cp_pointer(&access, kind, lane, plan->bytes);
        }
    }
    struct emu_cp_async *copy = emu_cp_async_new(warp);
    if (!copy) {
        return out_of_memory(warp, op);
    }
    memcpy(cp.group, copy->group, sizeof cp.group);
    *copy = cp;
    emu_progress(warp);
    return op + 1;
}

/* ignore-src: d = the bytes to read, none where the predicate a holds, and the rest is zeros. imm: bytes. */
static const struct emu_op *unless_ignored_any(struct emu_warp *warp, const struct emu_op *op)
{
    const uint32_t ignored = EMU_PRED(warp, op->a);
    uint32_t *sizes = EMU_ROW(uint32_t, warp, op->d);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        sizes[lane] = ignored >> lane & 1 ? 0 : (uint32_t)op->imm;
    }
    return op + 1;
}

static uint32_t unless_ignored(struct emu_emit *emit, const struct ptx_operand *ignored, uint32_t bytes)
{
    const uint32_t a = emu_pred_source(emit, ignored), sizes = emu_scratch(emit, PTX_U32);
    struct emu_op *op = emu_push(emit, unless_ignored_any, unless_ignored_any);
    op->a = a;
    op->d = sizes;
    op->imm = bytes;
    return sizes;
}

EMU_EMITTER(emu_cp_async)
{
    struct cp_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    plan->bytes = (uint32_t)insn->operands[2].imm;
    if (plan->bytes != 4 && plan->bytes != 8 && plan->bytes != 16) {
        return emu_unsupported(emit, "cp.async of %u bytes; 4, 8 and 16 are", plan->bytes);
    }
    const bool policy = ptx_has(insn, PTX_MOD_L2__CACHE_HINT);
    const uint32_t sizes_at = 3, n_sizes = insn->n_operands - (policy ? 1u : 0u);
    uint64_t to_offset;
    int64_t from_offset = 0;
    const uint32_t to = emu_place_shared(emit, &insn->operands[0], &to_offset);
    const uint32_t from = emu_address(emit, &insn->operands[1], &from_offset);
    const bool ignores = insn->row == PTX_CP_ASYNC_CA_IGNORE || insn->row == PTX_CP_ASYNC_CG_IGNORE;
    const uint32_t sizes = n_sizes <= sizes_at ? EMU_NO_ROW
                           : ignores           ? unless_ignored(emit, &insn->operands[sizes_at], plan->bytes)
                                               : emu_source(emit, &insn->operands[sizes_at], PTX_U32);
    plan->to_offset = (uint32_t)to_offset;
    struct emu_op *op = emu_push(emit, cp_async_any, cp_async_any);
    op->a = from;
    op->imm = (uint64_t)from_offset;
    op->c = to;
    op->b = sizes;
    op->extra = plan;
    return CLAB_OK;
}

static const struct emu_op *commit_any(struct emu_warp *warp, const struct emu_op *op)
{
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){.kind = EMU_EVENT_COMMIT, .lanes = warp->exec});
    return emu_cp_async_commit(warp) ? op + 1 : out_of_memory(warp, op);
}

EMU_EMITTER(emu_cp_async_commit_group)
{
    (void)insn;
    emu_push(emit, commit_any, commit_any);
    return CLAB_OK;
}

/* imm: groups that may stay under way; u8[0]: everything */
static const struct emu_op *wait_group_any(struct emu_warp *warp, const struct emu_op *op)
{
    emu_cp_async_wait(warp, (uint32_t)op->imm, op->u8[0]);
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){
                 .kind = EMU_EVENT_WAIT_GROUP, .lanes = warp->exec, .value = op->imm, .wait = op->u8[0]});
    return op + 1;
}

EMU_EMITTER(emu_cp_async_wait_group)
{
    struct emu_op *op = emu_push(emit, wait_group_any, wait_group_any);
    op->u8[0] = insn->n_operands == 0;
    op->imm = insn->n_operands ? insn->operands[0].imm : 0;
    return CLAB_OK;
}

/* a, imm: address; u8[0]: reach; u8[1]: .noinc */
static const struct emu_op *mbarrier_arrive_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct emu_window_operand operand = {op->a, op->imm, (enum emu_reach)op->u8[0]};
    uint32_t addresses[EMU_LANES] = {0};
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        struct emu_window_place place;
        if (!emu_window_lane(warp, op, lane, &operand, true, 8, 8, EMU_ATOMIC, &place)) {
            return NULL;
        }
        const char *wrong = op->u8[1] ? NULL : emu_mbarrier_add_pending(place.cta, place.address);
        if (wrong) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            return emu_fault(warp, op, lane, CLAB_FAULT, "shared", place.address, "%s", wrong);
        }
        addresses[lane] = place.address;
        EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
                 &(struct emu_event){.kind = EMU_EVENT_MBARRIER_CP_ARRIVE,
                                     .lanes = UINT32_C(1) << lane,
                                     .rank = place.cta->rank,
                                     .address = emu_window_offset(place.address),
                                     .value = op->u8[1]});
    }
    if (!emu_cp_async_arrive(warp, addresses)) {
        return out_of_memory(warp, op);
    }
    warp->traffic->mbarrier_arrives += (uint64_t)__builtin_popcount(warp->exec);
    emu_progress(warp);
    return op + 1;
}

EMU_EMITTER(emu_cp_async_mbarrier_arrive)
{
    const struct emu_window_operand operand =
        emu_window_operand(emit, &insn->operands[0], emu_window_reach(emu_space_of(insn)));
    struct emu_op *op = emu_push(emit, mbarrier_arrive_any, mbarrier_arrive_any);
    op->a = operand.row;
    op->imm = operand.imm;
    op->u8[0] = (uint8_t)operand.reach;
    op->u8[1] = ptx_has(insn, PTX_MOD_NOINC);
    return CLAB_OK;
}
