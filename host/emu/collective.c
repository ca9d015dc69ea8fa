/* Warp-level collectives across fragments. PTX ISA 9.0, 9.7.9.6 "shfl.sync", 9.7.13.6 "vote.sync" and their
   like: the executing thread waits until all non-exited threads of the member mask have executed the same
   instruction with the same mask. Not necessarily at the same place: lanes in different fragments bring their
   operands to the warp's gathering, and the last to come computes for all. Fragments that wait at the same
   operation are merged, so that code after the collective runs together. What a thread outside its own member
   mask does is undefined; here it takes part.

   Requires that emitters call emu_guard_branch first. */
#include <stdlib.h>
#include <string.h>

#include "emu/collective.h"
#include "emu/hook.h"

struct emu_gather {
    uint32_t mask[EMU_LANES]; /* member mask that the lane named */
    emu_compute *compute[EMU_LANES];
    uint8_t mode[EMU_LANES]; /* op->u8[0] */
    uint32_t a[EMU_LANES], a_high[EMU_LANES], b[EMU_LANES], c[EMU_LANES];
    struct emu_got got;
};

/* Lanes of exec that agree with the first on the mask; the others go later. */
static bool agree(struct emu_warp *warp, const struct emu_op *op, const uint32_t *members,
                  uint32_t *inout_mask)
{
    if (!members) {
        return true;
    }
    const uint32_t exec = warp->exec, mask = members[__builtin_ctz(exec)];
    uint32_t same = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        same |= members[i] == mask ? UINT32_C(1) << i : 0;
    }
    *inout_mask = mask;
    if ((same & exec) == exec) {
        return true;
    }
    emu_count(warp, op, op->insn, exec, op->insn);
    emu_split(warp, exec & ~same, op);
    emu_remask(warp, op);
    return false;
}

/* The executing lanes name several masks, and every lane that a mask names is here with it: each group
   computes for itself, and all go on together, as on an H200 (driver 13.0, 2026-11-30: activemask is full
   after shfl, vote, match, redux and bar.warp.sync with masks of labeled partitions). False: nothing was
   done. */
static bool in_groups(struct emu_warp *warp, const struct emu_op *op, const uint32_t *members,
                      const struct emu_brought *in, emu_compute *compute, struct emu_got *out)
{
    uint32_t groups[EMU_LANES];
    unsigned n = 0;
    for (uint32_t left = warp->exec; left;) {
        const uint32_t mask = members[__builtin_ctz(left)];
        uint32_t same = 0;
        for (uint32_t lanes = left; lanes; lanes &= lanes - 1) {
            same |= members[__builtin_ctz(lanes)] == mask ? lanes & -lanes : 0;
        }
        if ((mask & warp->live) != same) {
            return false;
        }
        groups[n++] = same;
        left &= ~same;
    }
    for (unsigned k = 0; n > 1 && k < n; k++) {
        struct emu_got got = {.pred = 0};
        emu_hook_event(warp->cta, warp, op,
                       &(struct emu_event){.kind = EMU_EVENT_COLLECTIVE,
                                           .lanes = groups[k],
                                           .value = members[__builtin_ctz(groups[k])]});
        compute(op, in, groups[k], &got);
        out->pred = (out->pred & ~groups[k]) | (got.pred & groups[k]);
        for (uint32_t lanes = groups[k]; lanes; lanes &= lanes - 1) {
            out->value[__builtin_ctz(lanes)] = got.value[__builtin_ctz(lanes)];
        }
    }
    return n > 1;
}

/* Takes in fragments that wait at the same operation of the same frame. True when there were any. */
static bool absorb(struct emu_warp *warp, const struct emu_op *op, uint32_t mask)
{
    struct emu_fragment *fragment = warp->fragment;
    const uint32_t before = fragment->mask;
    for (uint32_t used = warp->used; used; used &= used - 1) {
        struct emu_fragment *other = &warp->fragments[__builtin_ctz(used)];
        if (other != fragment && other->state == EMU_FRAGMENT_WAITING && other->wait == EMU_WAIT_COLLECTIVE &&
            other->wait_key == mask && other->pc == op && other->frame == fragment->frame) {
            emu_count(warp, op, op->insn, fragment->mask, op->insn);
            emu_absorb(warp, other);
        }
    }
    return fragment->mask != before;
}

static void bring(struct emu_warp *warp, const struct emu_op *op, uint32_t mask, const struct emu_brought *in,
                  emu_compute *compute)
{
    struct emu_gather *gather = warp->gather;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (warp->exec >> i & 1) {
            gather->mask[i] = mask;
            gather->compute[i] = compute;
            gather->mode[i] = op->u8[0];
            gather->a[i] = in->a ? in->a[i] : 0;
            gather->a_high[i] = in->a_high ? in->a_high[i] : 0;
            gather->b[i] = in->b ? in->b[i] : 0;
            gather->c[i] = in->c ? in->c[i] : 0;
        }
    }
    warp->gathered |= warp->exec;
}

static bool all_there(const struct emu_warp *warp, const struct emu_op *op, uint32_t mask,
                      emu_compute *compute, uint32_t need)
{
    const struct emu_gather *gather = warp->gather;
    for (uint32_t left = need; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        if (!(warp->gathered >> i & 1) || gather->mask[i] != mask || gather->compute[i] != compute ||
            gather->mode[i] != op->u8[0]) {
            return false;
        }
    }
    return true;
}

bool emu_collective(struct emu_warp *warp, const struct emu_op *op, const uint32_t *members, uint32_t mask,
                    const struct emu_brought *in, emu_compute *compute, struct emu_got *out)
{
    if (emu_woken(warp, NULL) == EMU_WAKE_DONE) {
        memcpy(out, &warp->gather->got, sizeof *out);
        return true;
    }
    if (members && in_groups(warp, op, members, in, compute, out)) {
        return true;
    }
    if (!agree(warp, op, members, &mask)) {
        return false;
    }
    const uint32_t need = mask & warp->live;
    const bool missing = (need & ~warp->exec) != 0;
    if (!missing || !(warp->gathered & warp->exec)) {
        emu_hook_event(
            warp->cta, warp, op,
            &(struct emu_event){
                .kind = EMU_EVENT_COLLECTIVE, .lanes = warp->exec, .value = mask, .wait = missing});
    }
    if (!missing) {
        compute(op, in, need | warp->exec, out);
        return true;
    }
    if (!warp->gather && !(warp->gather = calloc(1, sizeof *warp->gather))) {
        emu_fault(warp, op, EMU_LANES, CLAB_NO_MEMORY, NULL, 0, "out of memory for a warp-level collective");
        return false;
    }
    if (absorb(warp, op, mask) && (need & ~warp->fragment->mask) == 0) {
        warp->gathered &= ~warp->fragment->mask;
        emu_remask(warp, op);
        return false;
    }
    bring(warp, op, mask, in, compute);
    if (!all_there(warp, op, mask, compute, need)) {
        emu_wait(warp, op, EMU_WAIT_COLLECTIVE, mask);
        return false;
    }
    struct emu_gather *gather = warp->gather;
    const struct emu_brought all = {.a = gather->a, .a_high = gather->a_high, .b = gather->b, .c = gather->c};
    struct emu_got got;
    compute(op, &all, need | warp->exec, &got);
    for (uint32_t left = need | warp->exec; left; left &= left - 1) {
        gather->got.value[__builtin_ctz(left)] = got.value[__builtin_ctz(left)];
    }
    emu_hook_event(
        warp->cta, warp, op,
        &(struct emu_event){.kind = EMU_EVENT_COLLECTIVE, .lanes = need | warp->exec, .value = mask});
    gather->got.pred = (gather->got.pred & ~(need | warp->exec)) | (got.pred & (need | warp->exec));
    warp->gathered &= ~(need | warp->exec);
    for (uint32_t used = warp->used; used; used &= used - 1) {
        struct emu_fragment *other = &warp->fragments[__builtin_ctz(used)];
        if (other->state == EMU_FRAGMENT_WAITING && other->wait == EMU_WAIT_COLLECTIVE &&
            other->wait_key == mask && (other->mask & need)) {
            emu_wake_fragment(warp, other, EMU_WAKE_DONE, 0);
        }
    }
    memcpy(out, &gather->got, sizeof *out);
    return true;
}

bool emu_converged(struct emu_warp *warp, const struct emu_op *op, uint32_t mask)
{
    const uint32_t need = mask & warp->live;
    (void)emu_woken(warp, NULL);
    if ((need & ~warp->exec) == 0) {
        emu_hook_event(warp->cta, warp, op,
                       &(struct emu_event){.kind = EMU_EVENT_COLLECTIVE, .lanes = warp->exec, .value = mask});
        return true;
    }
    if (absorb(warp, op, mask) && (need & ~warp->fragment->mask) == 0) {
        warp->gathered &= ~warp->fragment->mask;
        emu_remask(warp, op);
    } else {
        warp->gathered |= warp->fragment->mask;
        emu_wait(warp, op, EMU_WAIT_COLLECTIVE, mask);
    }
    return false;
}

void emu_collective_exit(struct emu_warp *warp, uint32_t lanes)
{
    warp->gathered &= ~lanes;
    for (uint32_t used = warp->used; used; used &= used - 1) {
        struct emu_fragment *other = &warp->fragments[__builtin_ctz(used)];
        if (other->state == EMU_FRAGMENT_WAITING && other->wait == EMU_WAIT_COLLECTIVE) {
            emu_wake_fragment(warp, other, EMU_WAKE_NONE, 0); /* looks again */
        }
    }
}
