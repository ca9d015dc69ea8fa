/* clusterlaunchcontrol.try_cancel and query_cancel. PTX ISA 9.0, "clusterlaunchcontrol.try_cancel",
   "clusterlaunchcontrol.query_cancel". sm_100 and up.

   A request takes the next cluster of the grid that has not started, when it is answered: later, at a moment
   that the seed chooses. The answer is 16 bytes, {x, y | z << 16, canceled, 0} as ptxas 13.0 reads it on
   sm_100 and sm_120, with the ctaid of the cluster's first CTA; it is written to the CTA's shared memory, or
   with .multicast::cluster::all at the same offset in every CTA of the cluster, and complete_tx(16) follows
   at each mbarrier. option decline makes requests fail early; the clusters then run. Under the hazard checker
   the seed also chooses: clusters in turn and none refused early (seeds 1, 5, ...), from the last one on,
   some refused, or both; the manual leaves the order open, and a request may fail for a kernel of higher
   priority while there is still work. UNVERIFIED: the words of a failed answer, zeros here. get_first_ctaid
   of a failed answer and a request by a warp that has seen one fail are undefined in PTX, and faults here.
   Leaves to a checker: an answer's place used again before it was read. */
#include <stdlib.h>
#include <string.h>

#include "emu/async.h"
#include "emu/bulk.h"
#include "emu/cost.h"

#define RESPONSE_BYTES 16

struct clc_request {
    struct emu_copy copy;
    bool all; /* every CTA of the cluster */
    uint32_t to, mbarrier;
};

/* One of `n` chances, by the launch's seed. */
static bool chance(struct emu_run *run, uint32_t n)
{
    uint64_t z = run->clc_random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n == 0;
}

/* What a seed explores: bit 0, the order of the clusters; bit 1, early refusals. */
static bool take_explored(struct emu_run *run, uint64_t *out_index)
{
    const uint64_t seed = run->machine->options.seed;
    const unsigned explored = seed ? (unsigned)(seed - 1) & 3 : 0;
    if (run->clc_random == 0) {
        run->clc_random = seed * UINT64_C(0xd6e8feb86659fd93) + 1;
    }
    if ((explored & 2) && chance(run, explored == 2 ? 2 : 8)) {
        return false;
    }
    return (explored & 1) && !chance(run, 4) ? emu_cluster_take_last(run, out_index)
                                             : emu_cluster_take(run, out_index);
}

static bool granted(struct emu_run *run, struct emu_traffic *traffic, uint64_t *out_index)
{
    const uint32_t before = atomic_fetch_add(&run->clc_requests, 1);
    const bool explores = run->hooks && run->hooks->one_thread;
    const bool taken = before < run->machine->options.decline &&
                       (explores ? take_explored(run, out_index) : emu_cluster_take(run, out_index));
    traffic->clc_granted += taken;
    traffic->clc_declined += !taken;
    return taken;
}

static uint32_t clc_ranks(const struct emu_cta *cta, bool all)
{
    return all ? EMU_ALL >> (32 - cta->cluster->size) : UINT32_C(1) << cta->rank;
}

static void clc_perform(struct emu_copy *copy)
{
    struct clc_request *request = (struct clc_request *)(void *)copy;
    struct emu_cluster *cluster = copy->cta->cluster;
    struct emu_run *run = cluster->run;
    const uint32_t ranks = clc_ranks(copy->cta, request->all);
    for (uint32_t left = ranks; left; left &= left - 1) {
        if (!emu_copy_alive(copy, &cluster->ctas[__builtin_ctz(left)],
                            "(clusterlaunchcontrol.try_cancel) writes")) {
            return;
        }
    }
    uint32_t words[4] = {0};
    uint64_t index;
    if (granted(run, &cluster->thread->traffic, &index)) {
        uint32_t at[3];
        emu_cluster_coordinates(run, index, at);
        words[0] = at[0] * run->cluster[0];
        words[1] = ((at[1] * run->cluster[1]) & 0xffff) | (at[2] * run->cluster[2]) << 16;
        words[2] = 1;
    }
    emu_copy_tell(copy->cta, copy->id, EMU_EVENT_CLC_ANSWER, 0, 0, words[2] & 1);
    for (uint32_t left = ranks; left; left &= left - 1) {
        struct emu_cta *cta = &cluster->ctas[__builtin_ctz(left)];
        memcpy(emu_bulk_shared(cta, request->to), words, RESPONSE_BYTES);
        cta->clc_declined |= !words[2];
        emu_copy_signal(copy, cta, request->mbarrier, RESPONSE_BYTES);
    }
}

struct clc_plan {
    struct emu_window_operand to, mbarrier;
    bool all;
};

static const struct emu_op *try_cancel_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct clc_plan *plan = op->extra;
    if (warp->cta->clc_seen_declined >> warp->index & 1) {
        emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
        return emu_fault(
            warp, op, (unsigned)__builtin_ctz(warp->exec), CLAB_FAULT, NULL, 0,
            "a request to cancel after this warp saw one declined: undefined, a kernel ends its loop at the "
            "first (PTX ISA 9.0, clusterlaunchcontrol.try_cancel)");
    }
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        struct emu_window_place to, mbarrier;
        if (!emu_window_lane(warp, op, lane, &plan->to, true, RESPONSE_BYTES, RESPONSE_BYTES, EMU_STORE,
                             &to) ||
            !emu_window_lane(warp, op, lane, &plan->mbarrier, true, 8, 8, EMU_ATOMIC, &mbarrier)) {
            return NULL;
        }
        struct clc_request *request = calloc(1, sizeof *request);
        if (request) {
            request->copy.perform = clc_perform;
            request->copy.cycles = EMU_COST_CLC;
            request->all = plan->all;
            request->to = to.address;
            request->mbarrier = mbarrier.address;
            request->copy.id = ++warp->cta->cluster->copies;
            emu_hook_transfer(warp, op,
                              &(struct emu_transfer){.kind = EMU_TRANSFER_CLC,
                                                     .id = request->copy.id,
                                                     .lane = lane,
                                                     .ranks = clc_ranks(warp->cta, plan->all),
                                                     .to = emu_window_offset(to.address),
                                                     .to_bytes = RESPONSE_BYTES,
                                                     .has_mbarrier = true,
                                                     .mbarrier = mbarrier.address,
                                                     .bytes = RESPONSE_BYTES});
        }
        if (request) {
            emu_async_issued(&request->copy.async, warp, op, lane);
        }
        if (!request || !emu_copy_post(warp, &request->copy, lane, false)) {
            return emu_fault(warp, op, lane, CLAB_NO_MEMORY, NULL, 0,
                             "the emulator is out of memory for asynchronous copies");
        }
    }
    emu_progress(warp);
    return op + 1;
}

EMU_EMITTER(emu_clc_try_cancel)
{
    struct clc_plan *plan = emu_emit_alloc(emit, sizeof *plan);
    if (!plan) {
        return emu_unsupported(emit, "more code than there is memory");
    }
    const enum emu_reach reach = emu_window_reach(emu_space_of(insn));
    plan->to = emu_window_operand(emit, &insn->operands[0], reach);
    plan->mbarrier = emu_window_operand(emit, &insn->operands[1], reach);
    plan->all = ptx_has(insn, PTX_MOD_MULTICAST__CLUSTER__ALL);
    emu_push(emit, try_cancel_any, try_cancel_any)->extra = plan;
    return CLAB_OK;
}

/* --- query_cancel. a: the answer, 128-bit lanes */

struct answer {
    uint32_t words[4];
};

static void tell_query(const struct emu_warp *warp, const struct emu_op *op, uint32_t canceled)
{
    (void)warp, (void)op, (void)canceled;
    EMU_HOOK(warp->cta->run, event, warp->cta, warp, op,
             &(struct emu_event){
                 .kind = EMU_EVENT_CLC_QUERY, .lanes = warp->exec, .value = canceled & warp->exec});
}

static const struct emu_op *is_canceled_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct answer *a = EMU_ROW(struct answer, warp, op->a);
    uint32_t canceled = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        canceled |= (a[i].words[2] & 1) << i;
    }
    /* Words of a slot that no answer has reached yet read like a failure, and are none. */
    if (warp->cta->clc_declined && (warp->exec & ~canceled) != 0) {
        warp->cta->clc_seen_declined |= UINT32_C(1) << warp->index;
    }
    uint32_t *p = &EMU_PRED(warp, op->d);
    *p = (*p & ~warp->exec) | (canceled & warp->exec);
    tell_query(warp, op, canceled);
    return op + 1;
}

/* u8[0]: 0 x, 1 y, 2 z, 3 the fourth element of a vector, which is 0 */
static const struct emu_op *first_ctaid_any(struct emu_warp *warp, const struct emu_op *op)
{
    const struct answer *a = EMU_ROW(struct answer, warp, op->a);
    uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
    uint32_t canceled = 0;
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        canceled |= (a[i].words[2] & 1) << i;
    }
    tell_query(warp, op, canceled);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        if (!(a[i].words[2] & 1)) {
            emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
            return emu_fault(
                warp, op, i, CLAB_FAULT, NULL, 0,
                "the ctaid of an answer that took no cluster: declined, or not there yet; ask is_canceled, "
                "behind the wait for its mbarrier, first (PTX ISA 9.0, clusterlaunchcontrol.query_cancel)");
        }
        const uint32_t parts[4] = {a[i].words[0], a[i].words[1] & 0xffff, a[i].words[1] >> 16, 0};
        d[i] = parts[op->u8[0]];
    }
    return op + 1;
}

static void first_ctaid_push(struct emu_emit *emit, uint32_t a, const struct ptx_operand *to, unsigned part)
{
    const uint32_t d = emu_dest(emit, to, PTX_B32);
    struct emu_op *op = emu_push(emit, first_ctaid_any, first_ctaid_any);
    op->a = a;
    op->d = d;
    op->u8[0] = (uint8_t)part;
}

EMU_EMITTER(emu_clc_query_cancel)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B128);
    const struct ptx_operand *to = &insn->operands[0];
    if (ptx_has(insn, PTX_MOD_IS_CANCELED)) {
        const uint32_t d = emu_pred_dest(emit, to);
        struct emu_op *op = emu_push(emit, is_canceled_any, is_canceled_any);
        op->a = a;
        op->d = d;
        return CLAB_OK;
    }
    if (to->kind == PTX_OPERAND_VECTOR) {
        for (unsigned k = 0; k < to->n_elements && k < 4; k++) {
            if (to->elements[k].kind != PTX_OPERAND_SINK) {
                first_ctaid_push(emit, a, &to->elements[k], k);
            }
        }
        return CLAB_OK;
    }
    first_ctaid_push(emit, a, to,
                     ptx_has(insn, PTX_MOD_GET_FIRST_CTAID__Y)   ? 1
                     : ptx_has(insn, PTX_MOD_GET_FIRST_CTAID__Z) ? 2
                                                                 : 0);
    return CLAB_OK;
}
