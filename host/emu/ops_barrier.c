/* bar and barrier.cta, barrier.cluster, fences. PTX ISA 9.0, 9.7.13.1 to 9.7.13.5. Compiled per set.

   Fences order nothing here that is not ordered already: a host thread runs its warps one after the other,
   and memory that several host threads share is fenced for all of them. */
#include <stdatomic.h>
#include <stddef.h>

#include "emu/emitting.h"
#include "emu/fragment.h"
#include "emu/hook.h"

/* u8[0]: barrier number when a is EMU_NO_ROW; imm: thread count when b is; c: predicate word of a reduction.
 */
struct bar {
    uint32_t id, expected;
};

/* Lanes may name different barriers: those that differ from the first lane's go later. */
static bool bar_operands(struct emu_warp *warp, const struct emu_op *op, struct bar *out)
{
    const uint32_t exec = warp->exec;
    const unsigned first = (unsigned)__builtin_ctz(exec);
    uint32_t same = exec;
    out->id = op->u8[0];
    out->expected = (uint32_t)op->imm;
    if (op->a != EMU_NO_ROW) {
        const uint32_t *id = EMU_ROW(uint32_t, warp, op->a);
        out->id = id[first];
        for (unsigned i = 0; i < EMU_LANES; i++) {
            same &= id[i] == id[first] ? EMU_ALL : ~(UINT32_C(1) << i);
        }
    }
    if (op->b != EMU_NO_ROW) {
        const uint32_t *expected = EMU_ROW(uint32_t, warp, op->b);
        out->expected = expected[first];
        for (unsigned i = 0; i < EMU_LANES; i++) {
            same &= expected[i] == expected[first] ? EMU_ALL : ~(UINT32_C(1) << i);
        }
    }
    same &= exec;
    if (same == exec) {
        return true;
    }
    emu_count(warp, op, op->insn, exec, op->insn);
    emu_split(warp, exec & ~same, op);
    emu_remask(warp, op);
    return false;
}

static const struct emu_op *bar_sync(struct emu_warp *warp, const struct emu_op *op)
{
    struct bar bar;
    if (!bar_operands(warp, op, &bar)) {
        return NULL;
    }
    return emu_barrier_take(warp, op, bar.id, bar.expected, op->u8[1], 0, NULL);
}

/* bar.sync of all of the CTA by a whole warp, which is what most barriers are. c: where in struct emu_cta the
   barrier is, d: its bit. A warp that is not the last to come leaves its instructions uncounted: it goes on
   where it was (resident.c), and the next branch counts them, unless somebody looks meanwhile. */
static const struct emu_op *bar_whole(struct emu_warp *warp, const struct emu_op *op)
{
    struct emu_cta *cta = warp->cta;
    struct emu_barrier *barrier = (struct emu_barrier *)(void *)((unsigned char *)cta + op->c);
    const uint32_t waiting = barrier->waiting + EMU_LANES;
    if (warp->used != 1 || barrier->expected != 0 || cta->counted || waiting == cta->live_threads) {
        return emu_barrier_whole(warp, op);
    }
    struct emu_fragment *fragment = warp->fragment;
    const uint32_t bit = warp->bit;
    cta->barriers_active |= op->d;
    barrier->arrived += EMU_LANES;
    barrier->waiting = waiting;
    EMU_HOOK_ORDER(warp, op,
                   {.kind = EMU_EVENT_BARRIER_ARRIVE, .lanes = EMU_ALL, .wait = true, .value = op->u8[0]});
    barrier->whole_warps |= bit;
    cta->ready &= ~bit;
    warp->progress++;
    fragment->pc = op;
    fragment->state = EMU_FRAGMENT_WAITING;
    fragment->wait = EMU_WAIT_BARRIER;
    fragment->wait_key = op->u8[0];
    fragment->bounded = false;
    warp->stop = EMU_STOP_BARRIER;
    return NULL;
}

static const struct emu_op *bar_red(struct emu_warp *warp, const struct emu_op *op)
{
    uint64_t value;
    if (emu_woken(warp, &value) == EMU_WAKE_NONE) {
        struct bar bar;
        if (!bar_operands(warp, op, &bar)) {
            return NULL;
        }
        const struct emu_op *next =
            emu_barrier_take(warp, op, bar.id, bar.expected, op->u8[1], EMU_PRED(warp, op->c), &value);
        if (!next) {
            return NULL;
        }
    }
    if (op->u8[1] == EMU_BARRIER_POPC) {
        uint32_t *d = EMU_ROW(uint32_t, warp, op->d);
        for (unsigned i = 0; i < EMU_LANES; i++) {
            d[i] = warp->exec >> i & 1 ? (uint32_t)value : d[i];
        }
    } else {
        EMU_PRED(warp, op->d) = (EMU_PRED(warp, op->d) & ~warp->exec) | ((uint32_t)value & warp->exec);
    }
    return op + 1;
}

/* bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red.op d, a{, b}, {!}c */
EMU_EMITTER(emu_barrier)
{
    emu_guard_branch(emit);
    const bool red = ptx_has(insn, PTX_MOD_RED);
    const bool arrive = ptx_has(insn, PTX_MOD_ARRIVE);
    enum emu_barrier_mode mode = arrive ? EMU_BARRIER_ARRIVE : EMU_BARRIER_SYNC;
    if (red) {
        mode = ptx_has(insn, PTX_MOD_POPC)  ? EMU_BARRIER_POPC
               : ptx_has(insn, PTX_MOD_AND) ? EMU_BARRIER_AND
                                            : EMU_BARRIER_OR;
    }
    const unsigned at = red ? 1 : 0;
    const unsigned n_numbers = insn->n_operands - (red ? 2 : 0);
    const struct ptx_operand *id = &insn->operands[at],
                             *count = n_numbers > 1 ? &insn->operands[at + 1] : NULL;
    const bool id_known = id->kind == PTX_OPERAND_INT && id->imm < EMU_NAMED_BARRIERS;
    const uint32_t a = id_known ? EMU_NO_ROW : emu_source(emit, id, PTX_U32);
    const bool count_known = !count || count->kind == PTX_OPERAND_INT;
    const uint32_t b = count_known ? EMU_NO_ROW : emu_source(emit, count, PTX_U32);
    const uint32_t c = red ? emu_pred_source(emit, &insn->operands[insn->n_operands - 1]) : EMU_NO_ROW;
    uint32_t d = EMU_NO_ROW;
    if (red) {
        d = mode == EMU_BARRIER_POPC ? emu_dest(emit, &insn->operands[0], PTX_U32)
                                     : emu_pred_dest(emit, &insn->operands[0]);
    }
    const bool common = mode == EMU_BARRIER_SYNC && id_known && !count;
    struct emu_op *op = emu_push_unguarded(emit,
                                           red      ? bar_red
                                           : common ? bar_whole
                                                    : bar_sync,
                                           red ? bar_red : bar_sync);
    op->a = a;
    op->b = b;
    op->c = c;
    op->d = d;
    op->u8[0] = id_known ? (uint8_t)id->imm : 0;
    op->u8[1] = (uint8_t)mode;
    op->imm = count && count_known ? (uint32_t)count->imm : 0;
    if (common) {
        op->c = (uint32_t)(offsetof(struct emu_cta, barriers) + op->u8[0] * sizeof(struct emu_barrier));
        op->d = UINT32_C(1) << op->u8[0];
    }
    return CLAB_OK;
}

EMU_EMITTER(emu_barrier_cluster_arrive)
{
    (void)insn;
    emu_push(emit, emu_cluster_arrive, emu_cluster_arrive);
    return CLAB_OK;
}

EMU_EMITTER(emu_barrier_cluster_wait)
{
    (void)insn;
    emu_guard_branch(emit);
    emu_push_unguarded(emit, emu_cluster_wait, emu_cluster_wait);
    return CLAB_OK;
}

static const struct emu_op *fence(struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    atomic_thread_fence(memory_order_seq_cst);
    EMU_HOOK_ORDER(warp, op,
                   {.kind = EMU_EVENT_FENCE, .lanes = warp->exec, .value = op->imm, .wait = op->u8[0]});
    return op + 1;
}

/* fence.proxy.tensormap::generic.acquire: a names the tensor map. */
static const struct emu_op *fence_map(struct emu_warp *warp, const struct emu_op *op)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t left = EMU_HOOKS ? warp->exec : 0; left; left &= left - 1) {
        EMU_HOOK(
            warp->cta->run, event, warp->cta, warp, op,
            &(struct emu_event){.kind = EMU_EVENT_FENCE,
                                .lanes = left & -left,
                                .address = EMU_ROW(uint64_t, warp, op->a)[__builtin_ctz(left)] + op->imm});
    }
    return op + 1;
}

EMU_EMITTER(emu_fence_map)
{
    int64_t offset = 0;
    const uint32_t row = emu_address(emit, &insn->operands[0], &offset);
    struct emu_op *op = emu_push(emit, fence_map, fence_map);
    op->a = row;
    op->imm = (uint64_t)offset;
    return CLAB_OK;
}

/* fence, fence.proxy, fence.mbarrier_init, membar. */
EMU_EMITTER(emu_fence)
{
    struct emu_op *op = emu_push(emit, fence, fence);
    op->imm = insn->row;
    op->u8[0] = insn->row == PTX_MEMBAR || ptx_has(insn, PTX_MOD_SC); /* membar is fence.sc (PTX ISA 9.0) */
    if (EMU_HOOKS) {
        emu_push_unguarded(emit, emu_give_way, NULL);
    }
    return CLAB_OK;
}
