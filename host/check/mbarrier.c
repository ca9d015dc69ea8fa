/* mbarriers: who may use one, what its phases pass on, and whether they can complete. PTX ISA 9.0,
   "mbarrier"; ptx sections of its instructions.

   A phase passes on what those that arrive know, and that the copies which complete on it are done. An
   arrival from another CTA with .cta scope (the default), or a relaxed one, passes on execution only. Copies
   carry the agent of their mbarrier and the phase in which they were issued. */
#include "emu/mbarrier.h"

#include <stdlib.h>

#include "check/state.h"

static struct mbarrier **bucket_of(struct check_cluster *cl, uint32_t rank, uint32_t offset)
{
    return &cl->mbarriers[(rank * 7 + offset / 8) % 64];
}

struct mbarrier *check_mbarrier_get(struct check_cta *cta, uint32_t offset, bool make)
{
    struct check_cluster *cl = cta->cluster;
    struct mbarrier **bucket = bucket_of(cl, cta->rank, offset);
    for (struct mbarrier *m = *bucket; m; m = m->next) {
        if (m->offset == offset && m->cta == cta) {
            return m;
        }
    }
    if (!make) {
        return NULL;
    }
    struct mbarrier *m = check_alloc(sizeof *m);
    m->cta = cta;
    m->offset = offset;
    m->agent = CHECK_MBAR_AGENT + cl->n_mbarriers++ % (CHECK_AGENTS - CHECK_MBAR_AGENT);
    m->issuer = UINT32_MAX;
    m->next = *bucket;
    *bucket = m;
    return m;
}

static void clear(struct clock **mem, struct clock **exec, struct clock **proxy, struct clock *fenced[SCOPES])
{
    clock_drop(*mem);
    clock_drop(*exec);
    clock_drop(*proxy);
    *mem = *exec = *proxy = NULL;
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(fenced[s]);
        fenced[s] = NULL;
    }
}

void check_mbarriers_free(struct check_cluster *cl)
{
    for (unsigned b = 0; b < 64; b++) {
        while (cl->mbarriers[b]) {
            struct mbarrier *m = cl->mbarriers[b];
            cl->mbarriers[b] = m->next;
            clear(&m->mem, &m->exec, &m->proxy, m->fenced);
            clear(&m->done_mem, &m->done_exec, &m->done_proxy, m->done_fenced);
            free(m->seen);
            free(m);
        }
    }
}

static void place(struct check *check, struct clab_hazard *h, const struct check_cta *actor,
                  const struct mbarrier *m)
{
    check_place_shared(check, h, actor, m->cta, m->offset, 8);
    check_barrier_state(h, m);
}

void check_init_visible(struct check *check, struct check_warp *warp, unsigned lane, struct mbarrier *m,
                        uint32_t site, bool async)
{
    const uint32_t agent = m->cta->rank * 32 + m->init_warp, bit = UINT32_C(1) << m->init_lane;
    bool own = agent == warp->self.agent && lane == m->init_lane, visible = own, executed = own,
         fenced = m->init_fenced;
    EACH_GROUP(g, warp, UINT32_C(1) << lane)
    {
        visible |= known_covers(&g->mem, &warp->self, agent, bit, m->init_time);
        executed |= known_covers(&g->exec, &warp->self, agent, bit, m->init_time);
        fenced |= clock_knows(g->proxy, warp->self.cluster, agent, bit, m->init_time);
    }
    async = async && m->cta != warp->cta; /* the own CTA's is signalled in the generic proxy */
    if (!m->init_site || (async ? fenced && executed : visible || (executed && m->init_fenced))) {
        return;
    }
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_MBARRIER_INIT_ORDER, site, m->init_site, async);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, UINT32_C(1) << lane, site, NULL);
    check_party(check, &h->parties[1], warp->self.cluster, agent, bit, m->init_site, NULL);
    check_within(h);
    place(check, h, warp->cta, m);
    check_say(
        h->missing, sizeof h->missing, "%s",
        !executed ? "no barrier stands between mbarrier.init and this use by another thread"
        : async
            ? "no fence.mbarrier_init (or fence.proxy.async) follows mbarrier.init, so that the copy that "
              "signals it need not see it"
            : "the barrier between mbarrier.init and this use is relaxed, and no fence.mbarrier_init "
              "precedes it");
}

static void init(struct check *check, struct check_warp *warp, const struct emu_warp *emu_warp, unsigned lane,
                 struct mbarrier *m, const struct emu_event *event, uint32_t site)
{
    if (event->wait && m->live) {
        struct clab_hazard *h = check_report(check, CLAB_HAZARD_MBARRIER_REINIT, site, m->init_site, 0);
        if (h) {
            check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, UINT32_C(1) << lane,
                        site, NULL);
            check_party(check, &h->parties[1], warp->self.cluster, m->cta->rank * 32 + m->init_warp,
                        UINT32_C(1) << m->init_lane, m->init_site, NULL);
            check_within(h);
            place(check, h, warp->cta, m);
            check_say(h->missing, sizeof h->missing,
                      "no mbarrier.inval comes before the second mbarrier.init");
        }
    }
    clear(&m->mem, &m->exec, &m->proxy, m->fenced);
    clear(&m->done_mem, &m->done_exec, &m->done_proxy, m->done_fenced);
    free(m->seen);
    m->seen = NULL;
    m->live = true;
    m->init_fenced = false;
    m->init_site = site;
    m->init_warp = warp->index;
    m->init_lane = lane;
    m->init_time = check_now(warp->cta->cluster);
    m->expected = m->pending = (uint32_t)event->value;
    /* Phases go on counting, so that earlier copies keep their place. */
    m->phase += m->phase & 1;
    m->seen_phase = m->phase;
    m->expect_bytes = m->done_bytes = 0;
    m->expect_site = m->copies_open = m->narrow_site = 0;
    const struct group *group = NULL;
    EACH_GROUP(g, warp, UINT32_C(1) << lane)
    {
        group = g;
    }
    const struct actor actor = {.check = check,
                                .cl = warp->cta->cluster,
                                .warp = warp,
                                .emu_warp = emu_warp,
                                .known = &group->mem,
                                .group = group,
                                .agent = warp->self.agent,
                                .time = m->init_time,
                                .site = site,
                                .same_lane = UINT32_MAX,
                                .write = true};
    check_shared_range(&actor, m->cta, lane, m->offset, 8);
    check_shared_mark(m->cta, m->offset, m->agent, CHECK_ASYNC_TIME | CHECK_LIVE_OBJECT, lane, site);
}

void check_object(const struct actor *a, unsigned lane, const struct earlier *e,
                  const struct check_cta *owner, uint32_t offset)
{
    struct check_cta *cta = &a->cl->ctas[owner->rank];
    struct mbarrier *m = check_mbarrier_get(cta, offset & ~7u, false);
    struct clab_hazard *h = check_report(a->check, CLAB_HAZARD_MBARRIER_NOT_LIVE, a->site, e->site, 1);
    if (!h) {
        return;
    }
    check_party(a->check, &h->parties[0], a->cl->index, a->warp->self.agent, UINT32_C(1) << lane, a->site,
                NULL);
    if (m) {
        check_party(a->check, &h->parties[1], a->cl->index, owner->rank * 32 + m->init_warp,
                    UINT32_C(1) << m->init_lane, m->init_site, NULL);
    }
    check_within(h);
    check_place_shared(a->check, h, a->warp->cta, owner, offset, 8);
    check_say(h->missing, sizeof h->missing,
              "no mbarrier.inval comes before an ordinary access to the bytes of a live mbarrier");
}

static void arrive(struct check *check, struct check_warp *warp, unsigned lane, struct mbarrier *m,
                   uint32_t site)
{
    const struct site *s = &check->sites.list[site];
    const bool remote = m->cta != warp->cta, narrow = remote && (!s->release || s->scope == SCOPE_CTA);
    if (m->seen_phase < m->phase) {
        struct clab_hazard *h = check_report(check, CLAB_HAZARD_MBARRIER_AHEAD, site, 0, 0);
        if (h) {
            check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, UINT32_C(1) << lane,
                        site, NULL);
            place(check, h, warp->cta, m);
            check_say(h->missing, sizeof h->missing,
                      "no thread has waited for the phase before the one that this arrives for");
        }
        m->seen_phase = m->phase;
    }
    m->arrive_site = site;
    struct tidings told = {.mem = m->mem, .exec = m->exec, .proxy = m->proxy};
    for (unsigned k = 0; k < SCOPES; k++) {
        told.fenced[k] = m->fenced[k];
    }
    check_tell(warp, UINT32_C(1) << lane, check_tick(warp->cta->cluster), s->release && !narrow, &told);
    m->mem = told.mem;
    m->exec = told.exec;
    m->proxy = told.proxy;
    for (unsigned k = 0; k < SCOPES; k++) {
        m->fenced[k] = told.fenced[k];
    }
    m->narrow_site = narrow && !m->narrow_site ? site : m->narrow_site;
}

static void in_flight(struct check *check, struct mbarrier *m)
{
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_MBARRIER_TX, m->copy_site,
                                         m->expect_site ? m->expect_site : m->arrive_site, 0);
    if (!h) {
        return;
    }
    const uint64_t cluster = m->cta->cluster->index;
    check_party(check, &h->parties[0], cluster, m->issuer, UINT32_C(1) << m->copy_lane, m->copy_site, "copy");
    check_party_cta(check, &h->parties[1], cluster, m->cta->rank, "mbarrier");
    check_within(h);
    place(check, h, m->cta, m);
    check_say(h->missing, sizeof h->missing,
              "the phase completes with %u cop%s still in flight to it: it expected %lld bytes, and no "
              "expect_tx counts "
              "theirs",
              m->copies_open, m->copies_open == 1 ? "y" : "ies", (long long)m->expect_bytes);
}

static void phase(struct check *check, struct mbarrier *m)
{
    if (m->copies_open) {
        in_flight(check, m);
        m->copies_open = 0;
    }
    m->phase++;
    if (m->copy_time && m->copy_time <= m->phase) {
        clock_add(&m->mem, m->cta->cluster->index, CHECK_KEY_AGENT + m->agent, UINT32_MAX,
                  CHECK_ASYNC_TIME | m->phase);
        clock_add(&m->exec, m->cta->cluster->index, CHECK_KEY_AGENT + m->agent, UINT32_MAX,
                  CHECK_ASYNC_TIME | m->phase);
    }
    clock_join_ref(&m->done_mem, m->mem);
    clock_join_ref(&m->done_exec, m->exec);
    clock_join_ref(&m->done_proxy, m->proxy);
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_join_ref(&m->done_fenced[s], m->fenced[s]);
    }
    clear(&m->mem, &m->exec, &m->proxy, m->fenced);
    m->expect_bytes = m->done_bytes = 0;
    m->expect_site = 0;
}

static void test(struct check *check, struct check_warp *warp, unsigned lane, struct mbarrier *m,
                 uint32_t site, bool done)
{
    warp->polled = done ? NULL : m;
    warp->polled_site = site;
    if (!done) {
        return;
    }
    if (!m->seen) {
        m->seen = check_alloc((size_t)warp->cta->cluster->n_warps * EMU_LANES * sizeof *m->seen);
    }
    uint32_t *seen = &m->seen[warp->index * EMU_LANES + lane];
    if (m->phase && *seen == m->phase && (m->done_bytes || m->copies_open)) {
        struct clab_hazard *h = check_report(check, CLAB_HAZARD_MBARRIER_PARITY, site, 0, 0);
        if (h) {
            check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, UINT32_C(1) << lane,
                        site, NULL);
            place(check, h, warp->cta, m);
            check_say(h->missing, sizeof h->missing,
                      "the thread waits again for a phase that it saw complete before, while the next one is "
                      "under way: "
                      "the parity must flip with every phase");
        }
    }
    *seen = m->phase;
    m->seen_phase = m->phase;
    struct tidings told = {
        .mem = m->done_mem, .exec = m->done_exec, .proxy = m->done_proxy, .narrow_site = m->narrow_site};
    for (unsigned s = 0; s < SCOPES; s++) {
        told.fenced[s] = m->done_fenced[s];
    }
    check_hear(warp, UINT32_C(1) << lane, check->sites.list[site].acquire, &told);
}

void check_mbarrier(struct check *check, const struct emu_cta *cta, const struct emu_warp *emu_warp,
                    const struct emu_event *event, uint32_t site)
{
    struct check_cluster *cl = check_cluster_of(cta->cluster);
    struct check_cta *owner = &cl->ctas[event->rank];
    struct mbarrier *m = check_mbarrier_get(owner, (uint32_t)event->address, true);
    struct check_warp *warp = emu_warp ? check_warp_of(emu_warp) : NULL;
    const unsigned lane = event->lanes ? (unsigned)__builtin_ctz(event->lanes) : 0;
    if (warp) {
        warp->last_time = cl->now;
    }
    if (event->kind == EMU_EVENT_MBARRIER_PHASE) {
        phase(check, m);
        return;
    }
    if (event->kind == EMU_EVENT_MBARRIER_COMPLETE_TX) {
        m->done_bytes += (int64_t)event->value;
        m->copies_open -= !warp && m->copies_open;
        return;
    }
    if (event->kind == EMU_EVENT_MBARRIER_INIT) {
        init(check, warp, emu_warp, lane, m, event, site);
        return;
    }
    if (event->kind == EMU_EVENT_MBARRIER_CP_DONE || !warp) {
        return;
    }
    if (owner != warp->cta) {
        const struct check_remote last = {.agent = warp->self.agent,
                                          .time = check_now(cl),
                                          .lanes = event->lanes,
                                          .site = site,
                                          .address = m->offset,
                                          .bytes = 8,
                                          .issuer = UINT32_MAX};
        check_remote_start(check, warp, owner, event->lanes, m->offset, 8, site);
        check_remote_note(owner, &last);
    }
    if (m->live) {
        check_init_visible(check, warp, lane, m, site, false);
    }
    switch (event->kind) {
    case EMU_EVENT_MBARRIER_INVAL:
        m->live = false;
        check_shared_mark(m->cta, m->offset, warp->self.agent, check_now(cl), lane, site);
        m->init_site = 0;
        break;
    case EMU_EVENT_MBARRIER_EXPECT:
        m->expect_bytes += (int64_t)event->value;
        m->expect_site = site;
        break;
    case EMU_EVENT_MBARRIER_ARRIVE:
        arrive(check, warp, lane, m, site);
        break;
    case EMU_EVENT_MBARRIER_CP_ARRIVE: {
        /* Arrives when the lane's copies so far are done; it releases nothing else. */
        const uint32_t time = check_cp_time(warp, lane, true);
        const uint32_t part = CHECK_KEY_AGENT + CHECK_CP_AGENT + warp->self.agent;
        clock_add(&m->mem, cl->index, part, UINT32_C(1) << lane, CHECK_ASYNC_TIME | time);
        clock_add(&m->exec, cl->index, part, UINT32_C(1) << lane, CHECK_ASYNC_TIME | time);
        break;
    }
    case EMU_EVENT_MBARRIER_TEST:
        test(check, warp, lane, m, site, event->wait);
        break;
    default:
        break;
    }
}

void check_mbarriers_end(struct check *check, struct check_cluster *cl, bool stopped)
{
    for (unsigned b = 0; b < 64 && !stopped; b++) {
        for (struct mbarrier *m = cl->mbarriers[b]; m; m = m->next) {
            /* A phase that was armed and gets nothing is one that nobody needed any more. */
            if (!m->live || m->orphan || m->expect_bytes == m->done_bytes || !m->copy_site ||
                !m->done_bytes) {
                continue;
            }
            const bool unarmed = m->expect_bytes == 0;
            const enum clab_hazard_kind kind = unarmed && m->clc         ? CLAB_HAZARD_CLC_PEER_UNARMED
                                               : unarmed && m->multicast ? CLAB_HAZARD_MULTICAST_UNARMED
                                                                         : CLAB_HAZARD_MBARRIER_TX;
            struct clab_hazard *h = check_report(check, kind, m->copy_site, m->expect_site, 1);
            if (!h) {
                continue;
            }
            check_party(check, &h->parties[0], cl->index, m->issuer, UINT32_C(1) << m->copy_lane,
                        m->copy_site, "copy");
            check_party_cta(check, &h->parties[1], cl->index, m->cta->rank, "mbarrier");
            check_within(h);
            place(check, h, m->cta, m);
            check_say(
                h->missing, sizeof h->missing,
                "the mbarrier's last phase expects %lld bytes, and %lld were delivered: it cannot complete",
                (long long)m->expect_bytes, (long long)m->done_bytes);
        }
    }
}
