/* Asynchronous operations: cp.async, bulk and tensor copies, st.async and red.async. PTX ISA 9.0,
   "Asynchronous copy", "Async proxy".

   A copy may read and write at any moment between its issue and its completion: its effects are entered into
   the shadows when it is issued, under an agent that others know only once they have waited for it: the
   mbarrier on which it completes with its phase, or the group of the issuing lane. Bulk and tensor copies act
   in the async proxy. The rows that a tensor copy touches in global memory are known when it completes, and
   are then judged by what its issuer knew at the issue. */
#include <stdlib.h>

#include "check/state.h"

static struct check_commits *commits_of(struct check_commits **commits)
{
    if (!*commits) {
        *commits = check_alloc(sizeof **commits);
    }
    return *commits;
}

uint32_t check_cp_time(struct check_warp *warp, unsigned lane, bool close)
{
    struct check_commits *c = commits_of(&warp->cp);
    const uint32_t time = c->count[lane] + 1;
    if (close) {
        c->count[lane] = time;
    }
    return time;
}

static const struct group *group_of(const struct check_warp *warp, unsigned lane)
{
    for (uint32_t i = 0; i < warp->n_groups; i++) {
        if (warp->groups[i].lanes >> lane & 1) {
            return &warp->groups[i];
        }
    }
    return &warp->groups[0];
}

void check_cp_async(struct check *check, struct check_warp *warp, const struct emu_access *access,
                    uint32_t site)
{
    struct check_cluster *cl = warp->cta->cluster;
    warp->last_time = cl->now;
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct group *group = group_of(warp, lane);
        const struct actor actor = {.check = check,
                                    .cl = cl,
                                    .warp = warp,
                                    .known = &group->mem,
                                    .group = group,
                                    .agent = CHECK_CP_AGENT + warp->self.agent,
                                    .time = CHECK_ASYNC_TIME | check_cp_time(warp, lane, false),
                                    .site = site,
                                    .same_lane = lane,
                                    .write = access->kind == EMU_ACCESS_STORE,
                                    .copy = true};
        const unsigned char *host = emu_access_host(access, lane);
        if (access->owner) {
            const uint32_t offset = (uint32_t)((uintptr_t)host - (uintptr_t)access->owner->shared);
            check_shared_range(&actor, warp->cta, lane, offset + EMU_SHARED_FIRST, access->bytes);
        } else if (access->space == CLAB_SPACE_GLOBAL) {
            check_global_range(&actor, lane, (uint64_t)(uintptr_t)host, access->bytes);
        }
    }
}

/* Each of those lanes has waited for an agent of its own up to `time`; of the other lanes' copies it knows
   nothing until the warp synchronises (PTX ISA 9.0, cp.async.wait_group: visible to the executing thread). */
static void learn(struct check_warp *warp, uint32_t lanes, uint32_t agent, uint32_t time)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = left & -left;
        check_split(warp, lane);
        EACH_GROUP(g, warp, lane)
        {
            const uint64_t cluster = warp->self.cluster;
            clock_add(&g->mem.more, cluster, CHECK_KEY_AGENT + agent, lane, CHECK_ASYNC_TIME | time);
            clock_add(&g->exec.more, cluster, CHECK_KEY_AGENT + agent, lane, CHECK_ASYNC_TIME | time);
        }
    }
}

void check_group_event(struct check *check, struct check_warp *warp, const struct emu_event *event,
                       uint32_t site)
{
    const struct site *s = &check->sites.list[site];
    struct check_commits **which = s->bulk ? &warp->bulk : &warp->cp;
    if (event->kind == EMU_EVENT_WAIT_GROUP && !*which) {
        return;
    }
    struct check_commits *c = commits_of(which);
    if (event->kind == EMU_EVENT_COMMIT) {
        for (uint32_t left = event->lanes; left; left &= left - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(left);
            c->count[lane]++;
            c->times[lane][++c->commits[lane] & 63] = c->count[lane];
        }
        return;
    }
    for (uint32_t left = event->lanes, same; left; left &= ~same) {
        uint32_t first = 0;
        same = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(rest);
            const uint32_t n = c->commits[lane];
            const uint32_t up_to = event->wait        ? c->count[lane] + 1
                                   : n > event->value ? c->times[lane][(n - event->value) & 63]
                                                      : 0;
            if (!same) {
                first = up_to;
            }
            same |= (uint32_t)(up_to == first) << lane;
        }
        if (event->wait) {
            for (uint32_t rest = same; rest; rest &= rest - 1) {
                c->count[__builtin_ctz(rest)]++;
            }
        }
        if (!first) {
            continue;
        }
        if (!s->bulk) {
            learn(warp, same, CHECK_CP_AGENT + warp->self.agent, first);
            continue;
        }
        learn(warp, same, CHECK_READ_AGENT + warp->self.agent, first);
        if (!s->read) {
            learn(warp, same, CHECK_WRITE_AGENT + warp->self.agent, first);
        }
    }
}

/* --- copies of one thread */

static void remember(struct check_cluster *cl, struct check_warp *warp, const struct group *group,
                     uint32_t site, const struct actor *actor, const struct emu_transfer *t)
{
    struct check_copy *copy = check_alloc(sizeof *copy);
    copy->id = t->id;
    copy->warp = warp;
    copy->lane = t->lane;
    copy->site = site;
    copy->what = *t;
    copy->agent = actor->agent;
    copy->time = actor->time;
    copy->mem = known_tell(&group->mem, &warp->self, UINT32_C(1) << t->lane, cl->now);
    copy->proxy = clock_ref(group->proxy);
    copy->next = cl->copies;
    cl->copies = copy;
}

static void exit_report(struct check *check, struct check_cta *cta, uint32_t agent, uint32_t lane,
                        uint32_t site, bool clc, const char *action, const char *missing);

/* Who sees the copy complete knows that it was issued, and so what its issuer knew to be executed; of effects
   only those of other copies that the issuer had waited for. */
static void pass_on(struct check_warp *warp, unsigned lane, struct mbarrier *m)
{
    const struct group *g = group_of(warp, lane);
    struct clock *exec =
        known_tell(&g->exec, &warp->self, UINT32_C(1) << lane, check_tick(warp->cta->cluster));
    clock_join_ref(&m->exec, exec);
    clock_drop(exec);
    for (uint32_t i = 0; g->mem.more && i < g->mem.more->n; i++) {
        const struct clock_entry *e = &g->mem.more->e[i];
        if (e->time & CHECK_ASYNC_TIME) {
            clock_add(&m->mem, e->key >> 16, (uint32_t)(e->key & 0xffff), e->lanes, e->time);
        }
    }
    m->narrow_site = m->narrow_site ? m->narrow_site : g->narrow_site;
}

static void to_shared(struct check *check, struct check_warp *warp, struct actor *actor, uint32_t site,
                      const struct emu_transfer *t)
{
    struct check_cluster *cl = warp->cta->cluster;
    for (uint32_t left = t->ranks; left; left &= left - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(left);
        struct check_cta *owner = &cl->ctas[rank];
        const uint32_t signalled =
            t->pair ? (rank & ~UINT32_C(1)) | (t->mbarrier >> EMU_RANK_SHIFT & 1) : rank;
        if (owner != warp->cta) {
            check_remote_start(check, warp, owner, UINT32_C(1) << t->lane, t->to, t->to_bytes, site);
        }
        if (signalled >= cl->size) {
            continue;
        }
        struct mbarrier *m = check_mbarrier_get(&cl->ctas[signalled],
                                                t->mbarrier & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1), true);
        if (m->live) {
            check_init_visible(check, warp, t->lane, m, site, t->kind != EMU_TRANSFER_STORE);
        }
        if (owner->exited) {
            m->orphan = true;
            exit_report(
                check, owner, warp->self.agent, t->lane, site, t->kind == EMU_TRANSFER_CLC, "copy writes",
                "nothing keeps the CTA from exiting before the copy into its shared memory is issued");
            continue;
        }
        pass_on(warp, t->lane, m);
        m->copies_open++;
        m->issuer = warp->self.agent;
        m->copy_site = site;
        m->copy_lane = t->lane;
        m->copy_time = m->phase + 1;
        m->multicast = t->ranks & (t->ranks - 1);
        m->clc = t->kind == EMU_TRANSFER_CLC;
        actor->agent = m->agent;
        actor->time = CHECK_ASYNC_TIME | m->copy_time;
        actor->write = true;
        if (t->to_bytes) {
            check_shared_range(actor, owner, t->lane, t->to, t->to_bytes);
        }
    }
}

void check_transfer(struct check *check, const struct emu_warp *emu_warp, uint32_t site,
                    const struct emu_transfer *t)
{
    struct check_cluster *cl = check_cluster_of(emu_warp->cta->cluster);
    struct check_warp *warp = check_warp_of(emu_warp);
    const struct group *group = group_of(warp, t->lane);
    const struct site *s = &check->sites.list[site];
    warp->last_time = cl->now;
    cl->any_copies = true;
    struct actor actor = {.check = check,
                          .cl = cl,
                          .warp = warp,
                          .known = &group->mem,
                          .proxy = group->proxy,
                          .group = group,
                          .site = site,
                          .same_lane = t->lane,
                          .strong = s->strong,
                          .scope = SCOPE_GPU,
                          .reduces = t->reduces,
                          .async_proxy = t->kind != EMU_TRANSFER_STORE,
                          .copy = true,
                          .clc = t->kind == EMU_TRANSFER_CLC};
    if (t->kind == EMU_TRANSFER_CLC) {
        check_clc_request(check, warp, site, t);
    }
    uint32_t read_agent = 0, read_time = 0;
    if (t->has_mbarrier) {
        to_shared(check, warp, &actor, site, t);
        read_agent = actor.agent;
        read_time = actor.time;
    } else {
        struct check_commits *c = commits_of(&warp->bulk);
        read_agent = CHECK_READ_AGENT + warp->self.agent;
        read_time = CHECK_ASYNC_TIME | (c->count[t->lane] + 1);
        actor.agent = CHECK_WRITE_AGENT + warp->self.agent;
        actor.time = read_time;
        if (t->from_cta) {
            c->read_time[t->lane] = c->count[t->lane] + 1;
            c->read_site[t->lane] = site;
        }
    }
    if (t->from_cta) {
        const struct check_remote source = {read_agent, read_time,     UINT32_MAX,      site,
                                            t->from,    t->from_bytes, warp->self.agent};
        if (t->has_mbarrier) {
            check_remote_note(check_cta_of(cl, t->from_cta), &source);
        }
    }
    struct actor reader = actor;
    reader.write = false;
    reader.reduces = false;
    reader.strong = false;
    reader.agent = read_agent;
    reader.time = read_time;
    if (t->from_bytes) {
        check_shared_range(&reader, check_cta_of(cl, t->from_cta), t->lane, t->from, t->from_bytes);
    }
    actor.in_global = reader.in_global = true;
    if (t->global_bytes && t->global_write) {
        actor.write = true;
        check_global_range(&actor, t->lane, t->global, t->global_bytes);
    } else if (t->global_bytes) {
        check_global_range(&reader, t->lane, t->global, t->global_bytes);
    }
    remember(cl, warp, group, site, &actor, t);
}

static void copy_free(struct check_copy *copy)
{
    clock_drop(copy->mem);
    clock_drop(copy->proxy);
    free(copy);
}

void check_copy_event(struct check *check, const struct emu_cta *cta, const struct emu_event *event)
{
    struct check_cluster *cl = check_cluster_of(cta->cluster);
    struct check_copy **at = &cl->copies;
    while (*at && (*at)->id != event->id) {
        at = &(*at)->next;
    }
    struct check_copy *copy = *at;
    if (!copy) {
        return;
    }
    if (event->kind == EMU_EVENT_COPY_DONE) {
        *at = copy->next;
        copy_free(copy);
        return;
    }
    if (event->kind == EMU_EVENT_COPY_GLOBAL) {
        const struct actor actor = {.check = check,
                                    .cl = cl,
                                    .warp = copy->warp,
                                    .mem = copy->mem,
                                    .proxy = copy->proxy,
                                    .agent = copy->agent,
                                    .time = copy->time,
                                    .site = copy->site,
                                    .same_lane = copy->lane,
                                    .strong = copy->what.reduces,
                                    .scope = SCOPE_GPU,
                                    .write = event->wait,
                                    .in_global = true,
                                    .async_proxy = true,
                                    .copy = true};
        check_global_range(&actor, copy->lane, event->address, event->value);
    }
}

/* --- exit with copies in flight */

static void exit_report(struct check *check, struct check_cta *cta, uint32_t agent, uint32_t lane,
                        uint32_t site, bool clc, const char *action, const char *missing)
{
    struct clab_hazard *h =
        check_report(check, clc ? CLAB_HAZARD_CLC_PEER_EXITED : CLAB_HAZARD_ASYNC_EXIT, site, 0, 0);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], cta->cluster->index, agent, UINT32_C(1) << lane, site, action);
    check_party_cta(check, &h->parties[1], cta->cluster->index, cta->rank, "exit");
    check_within(h);
    h->space = CLAB_SPACE_SHARED;
    check_say(h->missing, sizeof h->missing, "%s", missing);
}

void check_copies_exit(struct check *check, struct check_cta *cta)
{
    struct check_cluster *cl = cta->cluster;
    if (!cl->any_copies) {
        return;
    }
    for (unsigned b = 0; b < 64; b++) {
        for (struct mbarrier *m = cl->mbarriers[b]; m; m = m->next) {
            if (m->cta == cta && m->live && m->copy_time &&
                !clock_knows(cta->exit_known, cl->index, m->agent, UINT32_MAX,
                             CHECK_ASYNC_TIME | m->copy_time)) {
                exit_report(
                    check, cta, m->issuer, m->copy_lane, m->copy_site, m->clc && m->multicast, "copy writes",
                    "no thread of the CTA waits for the copy into its shared memory before the CTA exits");
            }
        }
    }
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        const struct check_warp *warp = &cta->warps[w];
        for (unsigned lane = 0; warp->bulk && lane < EMU_LANES; lane++) {
            const uint32_t time = warp->bulk->read_time[lane];
            if (time && !clock_knows(cta->exit_known, cl->index, CHECK_READ_AGENT + warp->self.agent,
                                     UINT32_C(1) << lane, CHECK_ASYNC_TIME | time)) {
                exit_report(check, cta, warp->self.agent, lane, warp->bulk->read_site[lane], false,
                            "copy reads",
                            "no cp.async.bulk.wait_group (.read suffices) for the copy out of shared memory "
                            "comes before "
                            "the CTA exits");
            }
        }
    }
}

void check_copies_free(struct check_cluster *cl)
{
    while (cl->copies) {
        struct check_copy *copy = cl->copies;
        cl->copies = copy->next;
        copy_free(copy);
    }
    cl->any_copies = false;
}
