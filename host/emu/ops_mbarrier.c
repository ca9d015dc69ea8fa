/* mbarrier.*: init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count.
   PTX ISA 9.0, sections of those names; the object itself is mbarrier.c.

   .sem and .scope need no work: all threads of a cluster run on one host thread. Arrivals from another CTA
   come through .shared::cluster or a generic address and return no state. Operations whose use PTX leaves
   undefined (no live object, counts out of range, too many arrivals) are reported as faults.

   A try_wait whose phase is not complete suspends until the object's phase completes, or until nothing else
   in the cluster can run; then it answers false. Its time hint is ignored. */
#include "emu/hook.h"
#include "emu/lanes.h"
#include "emu/mbarrier.h"
#include "emu/window.h"

/* u8[1] */
#define FLAG_EXPECT      1 /* b: bytes, the count is 1 */
#define FLAG_DROP        2
#define FLAG_NO_COMPLETE 4
#define FLAG_TRY         8
#define FLAG_STATE       16 /* b: a state, not a parity */

static struct emu_window_operand operand_of(const struct emu_op *op)
{
    return (struct emu_window_operand){op->a, op->imm, (enum emu_reach)op->u8[0]};
}

static const struct emu_op *misuse(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                   uint32_t address, const char *text)
{
    emu_fault_kind_set(warp, EMU_FAULT_ILLEGAL_INSTRUCTION);
    return emu_fault(warp, op, lane, CLAB_FAULT, "shared", address, "%s", text);
}

/* Tells observers what `lane` did to an object. */
static inline void tell(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                        enum emu_event_kind kind, const struct emu_window_place *place, uint64_t value,
                        bool wait)
{
    (void)warp, (void)op, (void)lane, (void)kind, (void)place, (void)value, (void)wait;
    EMU_HOOK_ORDER(warp, op,
                   {.kind = kind,
                    .lanes = UINT32_C(1) << lane,
                    .rank = place->cta->rank,
                    .wait = wait,
                    .address = place->address & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1),
                    .value = value});
}

/* What an instruction does with one lane's object; NULL, or what is wrong. */
typedef const char *object_action(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                  const struct emu_window_place *place);

/* Applies `action` to the object of every executing lane; false after a fault. */
static inline bool each_object(struct emu_warp *warp, const struct emu_op *op, bool own,
                               object_action *action)
{
    const struct emu_window_operand operand = operand_of(op);
    for (uint32_t left = warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        struct emu_window_place place;
        if (!emu_window_lane(warp, op, lane, &operand, own, 8, 8, EMU_ATOMIC, &place)) {
            return false;
        }
        const char *wrong = action(warp, op, lane, &place);
        if (wrong) {
            misuse(warp, op, lane, place.address, wrong);
            return false;
        }
    }
    return true;
}

static const struct emu_op *changed(struct emu_warp *warp, const struct emu_op *op)
{
    emu_progress(warp);
    return op + 1;
}

static const char *init_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                            const struct emu_window_place *place)
{
    const uint32_t count = EMU_ROW(uint32_t, warp, op->b)[lane];
    tell(warp, op, lane, EMU_EVENT_MBARRIER_INIT, place, count,
         emu_mbarrier_is_live(place->cta, place->address));
    return emu_mbarrier_init(place->cta, place->address, count);
}

static const struct emu_op *init_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_object(warp, op, true, init_one) ? changed(warp, op) : NULL;
}

static const char *inval_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                             const struct emu_window_place *place)
{
    tell(warp, op, lane, EMU_EVENT_MBARRIER_INVAL, place, 0, false);
    return emu_mbarrier_inval(place->cta, place->address);
}

static const struct emu_op *inval_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_object(warp, op, true, inval_one) ? op + 1 : NULL;
}

static const char *expect_tx_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                 const struct emu_window_place *place)
{
    const uint32_t bytes = EMU_ROW(uint32_t, warp, op->b)[lane];
    tell(warp, op, lane, EMU_EVENT_MBARRIER_EXPECT, place, bytes, false);
    return emu_mbarrier_expect_tx(place->cta, place->address, bytes);
}

static const struct emu_op *expect_tx_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_object(warp, op, false, expect_tx_one) ? changed(warp, op) : NULL;
}

static const char *complete_tx_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                                   const struct emu_window_place *place)
{
    const uint32_t bytes = EMU_ROW(uint32_t, warp, op->b)[lane];
    tell(warp, op, lane, EMU_EVENT_MBARRIER_COMPLETE_TX, place, bytes, false);
    return emu_mbarrier_complete_tx(place->cta, place->address, bytes);
}

static const struct emu_op *complete_tx_any(struct emu_warp *warp, const struct emu_op *op)
{
    return each_object(warp, op, false, complete_tx_one) ? changed(warp, op) : NULL;
}

static const char *arrive_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                              const struct emu_window_place *place)
{
    const uint32_t value = op->b == EMU_NO_ROW ? 1 : EMU_ROW(uint32_t, warp, op->b)[lane];
    const bool expects = op->u8[1] & FLAG_EXPECT;
    const struct emu_mbarrier_arrival arrival = {
        .count = expects ? 1 : value,
        .expect = expects ? value : 0,
        .drop = op->u8[1] & FLAG_DROP,
        .must_not_complete = op->u8[1] & FLAG_NO_COMPLETE,
        .operand = op->b == EMU_NO_ROW ? 0 : value,
    };
    uint64_t before = 0;
    if (expects) {
        tell(warp, op, lane, EMU_EVENT_MBARRIER_EXPECT, place, arrival.expect, false);
    }
    tell(warp, op, lane, EMU_EVENT_MBARRIER_ARRIVE, place, arrival.count, arrival.drop);
    const char *wrong = emu_mbarrier_arrive(place->cta, place->address, &arrival, &before);
    if (!wrong && op->d != EMU_NO_ROW) {
        EMU_ROW(uint64_t, warp, op->d)[lane] = before;
    }
    return wrong;
}

static const struct emu_op *arrive_any(struct emu_warp *warp, const struct emu_op *op)
{
    if (!each_object(warp, op, op->d != EMU_NO_ROW, arrive_one)) {
        return NULL;
    }
    warp->traffic->mbarrier_arrives += (uint64_t)__builtin_popcount(warp->exec);
    return changed(warp, op);
}

/* op->c: scratch predicate word for the lanes whose phase is complete. */
static const char *test_one(struct emu_warp *warp, const struct emu_op *op, unsigned lane,
                            const struct emu_window_place *place)
{
    const unsigned parity = op->u8[1] & FLAG_STATE ? (unsigned)(EMU_ROW(uint64_t, warp, op->b)[lane] >> 63)
                                                   : EMU_ROW(uint32_t, warp, op->b)[lane] & 1;
    bool complete = false;
    const char *wrong = emu_mbarrier_test(place->cta, place->address, parity, &complete);
    EMU_PRED(warp, op->c) |= (uint32_t)complete << lane;
    if (!wrong) {
        tell(warp, op, lane, EMU_EVENT_MBARRIER_TEST, place, parity, complete);
    }
    return wrong;
}

/* Under the checker a try_wait gives up now and then, as one whose time has run out does: code that does not
   ask again goes on too early. */
static bool gives_up(const struct emu_warp *warp)
{
    const struct emu_run *run = warp->cta->run;
    return run->hooks && run->hooks->one_thread && emu_random(warp->cta->cluster) % 4 == 0;
}

static const struct emu_op *wait_any(struct emu_warp *warp, const struct emu_op *op)
{
    const bool try = op->u8[1] & FLAG_TRY;
    const enum emu_wake wake = try ? emu_woken(warp, NULL) : EMU_WAKE_NONE;
    EMU_PRED(warp, op->c) = 0;
    if (!each_object(warp, op, true, test_one)) {
        return NULL;
    }
    const uint32_t done = EMU_PRED(warp, op->c);
    if (try && !done && wake != EMU_WAKE_TIMEOUT && !gives_up(warp)) {
        const struct emu_window_operand operand = operand_of(op);
        const unsigned lane = (unsigned)__builtin_ctz(warp->exec);
        const uint32_t key = (uint32_t)(EMU_ROW(uint64_t, warp, operand.row)[lane] + operand.imm);
        return emu_wait_bounded(warp, op, EMU_WAIT_MBARRIER, key);
    }
    uint32_t *p = &EMU_PRED(warp, op->d);
    *p = (*p & ~warp->exec) | done;
    return op + 1;
}

EMU_UNARY(pending_count, uint32_t, uint64_t, emu_mbarrier_pending_of(x))

/* --- decoding */

static struct emu_op *push(struct emu_emit *emit, emu_handler *handler,
                           const struct emu_window_operand *operand)
{
    struct emu_op *op = emu_push(emit, handler, handler);
    op->a = operand->row;
    op->imm = operand->imm;
    op->u8[0] = (uint8_t)operand->reach;
    op->b = EMU_NO_ROW;
    op->d = EMU_NO_ROW;
    return op;
}

/* [addr], count or bytes: init, expect_tx, complete_tx. */
static clab_status simple_emit(struct emu_emit *emit, const struct ptx_insn *insn, emu_handler *handler)
{
    const struct emu_window_operand operand =
        emu_window_operand(emit, &insn->operands[0], emu_window_reach(emu_space_of(insn)));
    const uint32_t b = insn->n_operands > 1 ? emu_source(emit, &insn->operands[1], PTX_U32) : EMU_NO_ROW;
    push(emit, handler, &operand)->b = b;
    return CLAB_OK;
}

EMU_EMITTER(emu_mbarrier_init)
{
    return simple_emit(emit, insn, init_any);
}

EMU_EMITTER(emu_mbarrier_inval)
{
    return simple_emit(emit, insn, inval_any);
}

EMU_EMITTER(emu_mbarrier_expect_tx)
{
    return simple_emit(emit, insn, expect_tx_any);
}

EMU_EMITTER(emu_mbarrier_complete_tx)
{
    return simple_emit(emit, insn, complete_tx_any);
}

static clab_status arrive_emit(struct emu_emit *emit, const struct ptx_insn *insn, unsigned flags)
{
    flags |= ptx_has(insn, PTX_MOD_EXPECT_TX) ? FLAG_EXPECT : 0;
    flags |= ptx_has(insn, PTX_MOD_NOCOMPLETE) ? FLAG_NO_COMPLETE : 0;
    const struct ptx_operand *state = &insn->operands[0];
    const struct emu_window_operand operand =
        emu_window_operand(emit, &insn->operands[1], emu_window_reach(emu_space_of(insn)));
    const uint32_t b = insn->n_operands > 2 ? emu_source(emit, &insn->operands[2], PTX_U32) : EMU_NO_ROW;
    const uint32_t d = state->kind == PTX_OPERAND_SINK ? EMU_NO_ROW : emu_dest(emit, state, PTX_B64);
    struct emu_op *op = push(emit, arrive_any, &operand);
    op->b = b;
    op->d = d;
    op->u8[1] = (uint8_t)flags;
    return CLAB_OK;
}

EMU_EMITTER(emu_mbarrier_arrive)
{
    return arrive_emit(emit, insn, 0);
}

EMU_EMITTER(emu_mbarrier_arrive_drop)
{
    return arrive_emit(emit, insn, FLAG_DROP);
}

EMU_EMITTER(emu_mbarrier_wait)
{
    const bool try = ptx_has(insn, PTX_MOD_TRY_WAIT), by_state = !ptx_has(insn, PTX_MOD_PARITY);
    if (try) {
        emu_guard_branch(emit);
    }
    const struct emu_window_operand operand =
        emu_window_operand(emit, &insn->operands[1], emu_window_reach(emu_space_of(insn)));
    const uint32_t b = emu_source(emit, &insn->operands[2], by_state ? PTX_B64 : PTX_U32);
    const uint32_t d = emu_pred_dest(emit, &insn->operands[0]);
    const uint32_t done = emu_scratch_pred(emit);
    struct emu_op *op = push(emit, wait_any, &operand);
    op->b = b;
    op->c = done;
    op->d = d;
    op->u8[1] = (uint8_t)((try ? FLAG_TRY : 0) | (by_state ? FLAG_STATE : 0));
    return CLAB_OK;
}

EMU_EMITTER(emu_mbarrier_pending_count)
{
    const uint32_t a = emu_source(emit, &insn->operands[1], PTX_B64);
    const uint32_t d = emu_dest(emit, &insn->operands[0], PTX_U32);
    struct emu_op *op = emu_push(emit, pending_count_full, pending_count_masked);
    op->d = d;
    op->a = a;
    return CLAB_OK;
}
