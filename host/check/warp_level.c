/* Warp-level operations: their member masks and who takes part. PTX ISA 9.0, "shfl.sync", "vote.sync",
   "elect.sync", "bar.warp.sync". Only the last orders memory among the lanes that meet; of the others one
   knows afterwards what has been executed (CUDA C++ Programming Guide 13.0, "Warp Vote Functions", "Warp
   Shuffle Functions": they do not imply a memory barrier). */
#include "check/state.h"

static void report(struct check *check, struct check_warp *warp, enum clab_hazard_kind kind, uint32_t lanes,
                   uint32_t site, const char *format, uint32_t shown)
{
    struct clab_hazard *h = check_report(check, kind, site, 0, 0);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, lanes, site, NULL);
    h->within = CLAB_WITHIN_WARP;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    check_say(h->missing, sizeof h->missing, format, shown);
#pragma GCC diagnostic pop
}

/* Lanes whose shfl source is in range and does not take part. */
static uint32_t shfl_inactive(const struct emu_warp *warp, const struct emu_op *op,
                              const struct ptx_insn *insn, uint32_t lanes, uint32_t members,
                              uint32_t *out_sources)
{
    const uint32_t *b = EMU_ROW(uint32_t, warp, op->b), *c = EMU_ROW(uint32_t, warp, op->c);
    uint32_t inactive = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left), by = b[i] & 31, clamp = c[i] & 31,
                       segment = c[i] >> 8 & 31;
        const uint32_t most = (i & segment) | (clamp & ~segment & 31), least = i & segment;
        const bool up = ptx_has(insn, PTX_MOD_UP);
        const uint32_t source = up                            ? i - by
                                : ptx_has(insn, PTX_MOD_DOWN) ? i + by
                                : ptx_has(insn, PTX_MOD_BFLY) ? (i ^ by)
                                                              : (least | (by & ~segment & 31));
        const bool in_range = up ? (int32_t)source >= (int32_t)most : (int32_t)source <= (int32_t)most;
        if (in_range && !(lanes & members & UINT32_C(1) << (source & 31))) {
            inactive |= UINT32_C(1) << i;
            *out_sources |= UINT32_C(1) << (source & 31);
        }
    }
    return inactive;
}

/* ptxas makes of elect.sync an election among the lanes that happen to be there, whatever the mask says
   (13.0, sm_90): lanes that elect at two places have two leaders. Lanes that only come later to the same
   place are for the compiler to bring together. */
static void elect(struct check *check, const struct emu_warp *emu_warp, struct check_warp *warp,
                  uint32_t lanes, uint32_t mask, uint32_t site)
{
    uint32_t elsewhere = 0;
    for (uint32_t left = lanes & mask & ~emu_warp->exec; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        elsewhere |= warp->waits_at[lane] != site ? UINT32_C(1) << lane : 0;
    }
    if (elsewhere) {
        report(check, warp, CLAB_HAZARD_ELECT_MISUSE, lanes & ~elsewhere, site,
               "lanes %08x of the member mask elect at another place: all of them must elect together",
               elsewhere);
    }
}

void check_collective(struct check *check, const struct emu_warp *emu_warp, struct check_warp *warp,
                      const struct emu_op *op, const struct emu_event *event, uint32_t site)
{
    const struct ptx_insn *insn = site_insn(&check->sites.list[site]);
    const uint32_t mask = (uint32_t)event->value, lanes = event->lanes;
    warp->last_time = warp->cta->cluster->now;
    if (lanes & ~mask) {
        report(check, warp, CLAB_HAZARD_MASK_DIVERGED, lanes & ~mask, site,
               "the executing lanes are not in their own member mask %08x", mask);
    }
    if (mask & warp->exited) {
        report(check, warp, CLAB_HAZARD_MASK_EXITED, lanes, site, "lanes %08x of the member mask have exited",
               mask & warp->exited);
    }
    if (event->wait) {
        for (uint32_t left = lanes; left; left &= left - 1) {
            warp->waits_at[__builtin_ctz(left)] = (uint16_t)site;
        }
        return;
    }
    if (insn && insn->row == PTX_ELECT_SYNC) {
        elect(check, emu_warp, warp, lanes, mask, site);
    }
    if (insn && insn->row == PTX_SHFL_SYNC && !(lanes & ~emu_warp->exec) && !(lanes & ~mask)) {
        uint32_t sources = 0;
        const uint32_t inactive = shfl_inactive(emu_warp, op, insn, lanes, mask, &sources);
        if (inactive) {
            report(check, warp, CLAB_HAZARD_SHFL_INACTIVE, inactive, site,
                   "source lanes %08x do not take part, so that their value is undefined", sources);
        }
    }
    const uint32_t time = check_tick(warp->cta->cluster);
    if (insn && insn->row == PTX_BAR_WARP_SYNC) {
        check_warp_meet(warp, lanes, time);
    } else {
        check_warp_executed(warp, lanes, time);
    }
}
