/* Misuse of cluster launch control. PTX ISA 9.0, "clusterlaunchcontrol.try_cancel", "query_cancel". What
   becomes of the response's bytes and its mbarrier is seen like that of any copy (copies.c, mbarrier.c). */
#include "check/state.h"

static void report(struct check *check, enum clab_hazard_kind kind, struct check_warp *warp, uint32_t lanes,
                   uint32_t site, uint32_t other_agent, uint32_t other_lanes, uint32_t other,
                   const char *missing)
{
    struct clab_hazard *h = check_report(check, kind, site, other, 0);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, lanes, site, NULL);
    if (other) {
        check_party(check, &h->parties[1], warp->self.cluster, other_agent, other_lanes, other, NULL);
    }
    check_within(h);
    check_say(h->missing, sizeof h->missing, "%s", missing);
}

void check_clc_query(struct check *check, struct check_warp *warp, const struct emu_event *event,
                     uint32_t site)
{
    const uint32_t declined = event->lanes & ~(uint32_t)event->value;
    (void)check;
    if (!declined) {
        return;
    }
    /* By warp: another may be a round ahead of the one that asks, which has not seen the answer yet. */
    warp->clc_declined = site;
}

void check_clc_request(struct check *check, struct check_warp *warp, uint32_t site,
                       const struct emu_transfer *t)
{
    struct check_cta *cta = warp->cta;
    check->clc_used = site;
    if (warp->clc_declined) {
        report(check, CLAB_HAZARD_CLC_AFTER_DECLINE, warp, UINT32_C(1) << t->lane, site, warp->self.agent,
               UINT32_C(1) << t->lane, warp->clc_declined,
               "the loop goes on after a declined response was seen: no request may follow it");
    }
    for (const struct check_copy *copy = cta->cluster->copies; copy; copy = copy->next) {
        if (copy->what.kind == EMU_TRANSFER_CLC && copy->warp->cta == cta && copy->what.to == t->to &&
            (copy->warp != warp || copy->lane != t->lane)) {
            report(check, CLAB_HAZARD_CLC_EVERY_THREAD, warp, UINT32_C(1) << t->lane, site,
                   copy->warp->self.agent, UINT32_C(1) << copy->lane, copy->site,
                   "one elected thread is to submit the request: each that does cancels a cluster of its "
                   "own, and all "
                   "answers land in one place");
            return;
        }
    }
}

void check_clc_end(struct check *check)
{
    const struct emu_run *run = check->run;
    if (!check->clc_used || run->n_clusters * run->cluster_size > run->resident_limit) {
        return;
    }
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_CLC_NOTHING_TO_STEAL, check->clc_used, 0, 0);
    if (h) {
        check_party(check, &h->parties[0], 0, 0, 1, check->clc_used, NULL);
        h->parties[0].has_warp = 0;
        h->within = CLAB_WITHIN_GRID;
        check_say(h->missing, sizeof h->missing,
                  "all %llu clusters of the grid are resident at once: launch as many as there is work, not "
                  "as many as fit",
                  (unsigned long long)run->n_clusters);
    }
}
