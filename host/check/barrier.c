/* Barriers of a CTA and of a cluster. PTX ISA 9.0, "bar, barrier", "barrier.cluster".

   A barrier that the whole CTA waits at gives every thread everything that the CTA did, which is one number.
   Named barriers of some warps, and bar.arrive, pass on what those that arrive know. A cluster barrier passes
   on execution always, memory only from arrivals with .release (the default) or after a release fence. */
#include "check/state.h"

static void divergent(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site)
{
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_BARRIER_DIVERGENT, site, 0, 0);
    if (!h) {
        return;
    }
    const uint32_t live = warp->present & ~warp->exited;
    check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, lanes, site, NULL);
    h->within = CLAB_WITHIN_WARP;
    check_say(h->missing, sizeof h->missing,
              "the barrier is .aligned: all lanes of the warp must execute it together, but lanes %08x do "
              "not (barrier "
              "without .aligned may be used in divergent code)",
              live & ~lanes);
}

/* Lanes that come to an aligned barrier in parts, by the emulator's doing, still come to the same
 * instruction. */
static void aligned_note(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site)
{
    const uint32_t live = warp->present & ~warp->exited;
    if (warp->aligned_site && warp->aligned_site != site) {
        divergent(check, warp, warp->aligned_lanes, warp->aligned_site);
        warp->aligned_lanes = 0;
    }
    warp->aligned_site = site;
    warp->aligned_lanes |= lanes;
    if ((live & ~warp->aligned_lanes) == 0) {
        warp->aligned_site = warp->aligned_lanes = 0;
    }
}

static void aligned_end(struct check *check, struct check_warp *warp)
{
    if (warp->aligned_site) {
        if (warp->present & ~warp->exited & ~warp->aligned_lanes) {
            divergent(check, warp, warp->aligned_lanes, warp->aligned_site);
        }
        warp->aligned_site = warp->aligned_lanes = 0;
    }
}

void check_aligned_exit(struct check *check, struct check_warp *warp, uint32_t lanes)
{
    if (warp->aligned_site && (lanes & ~warp->aligned_lanes)) {
        aligned_end(check, warp);
    }
}

void check_aligned_left(struct check *check, struct check_cta *cta)
{
    for (uint32_t w = 0; w < cta->cluster->n_warps; w++) {
        aligned_end(check, &cta->warps[w]);
    }
}

/* --- barriers of a CTA */

void check_barrier_arrive(struct check *check, struct check_warp *warp, const struct emu_event *event,
                          uint32_t site)
{
    const uint32_t live = warp->present & ~warp->exited;
    warp->last_time = warp->cta->cluster->now;
    if (check->sites.list[site].aligned && (warp->aligned_site || (live & ~event->lanes))) {
        aligned_note(check, warp, event->lanes, site);
    }
    struct check_named *at = &warp->cta->named[event->value];
    const uint32_t count = warp->cta->cta->barriers[event->value].expected + 1;
    const unsigned second = at->counts[0] && at->counts[0] != count;
    if (at->counts[second] != count || at->sites[second] != site) {
        at->counts[second] = count;
        at->sites[second] = site;
    }
    if (event->wait) {
        return;
    }
    struct check_named *named = &warp->cta->named[event->value];
    struct tidings told = {.mem = named->mem, .exec = named->exec, .proxy = named->proxy};
    for (unsigned s = 0; s < SCOPES; s++) {
        told.fenced[s] = named->fenced[s];
    }
    check_tell(warp, event->lanes, check_tick(warp->cta->cluster), true, &told);
    named->mem = told.mem;
    named->exec = told.exec;
    named->proxy = told.proxy;
    for (unsigned s = 0; s < SCOPES; s++) {
        named->fenced[s] = told.fenced[s];
    }
}

/* Lanes of a warp that wait at a barrier that completes. */
static uint32_t waiting(const struct emu_barrier *barrier, uint32_t w)
{
    return barrier->whole_warps >> w & 1 ? UINT32_MAX : barrier->lanes[w];
}

static bool plain(const struct group *g)
{
    return !g->mem.more && !g->exec.more && !g->proxy && !g->fenced[SCOPE_CTA] && !g->pending[SCOPE_GPU] &&
           !g->pending[SCOPE_CLUSTER] && !g->pending[SCOPE_CTA];
}

/* A whole CTA at a barrier with nothing but times to pass on, as after barriers alone: one look at each warp
   and one store. False when there is more to it; nothing is changed then. */
static bool whole_simple(struct check_cta *cta, const struct emu_barrier *barrier)
{
    struct check_cluster *cl = cta->cluster;
    uint32_t mem_time = 0, exec_time = 0, started = 0;
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        const struct check_warp *warp = &cta->warps[w];
        const struct group *g = &warp->groups[0];
        const uint32_t live = warp->present & ~warp->exited;
        if (warp->n_groups != 1 || (live & ~waiting(barrier, w)) || warp->aligned_site || !plain(g) ||
            g->narrow_site || g->miss_site) {
            return false;
        }
        mem_time = g->mem.cluster_time > mem_time ? g->mem.cluster_time : mem_time;
        exec_time = g->exec.cluster_time > exec_time ? g->exec.cluster_time : exec_time;
        started |= g->started;
    }
    const uint32_t time = check_tick(cl);
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        struct group *g = &cta->warps[w].groups[0];
        g->mem.cluster_time = mem_time;
        g->exec.cluster_time = exec_time;
        g->mem.cta_time = g->exec.cta_time = g->mem.warp_time = g->exec.warp_time = time;
        g->started = started;
    }
    return true;
}

bool check_barrier_quick(struct check_cta *cta, uint32_t id)
{
    const struct emu_barrier *barrier = &cta->cta->barriers[id];
    return !cta->named[id].mem && !cta->early_exit &&
           !(barrier->expected && barrier->arrived < barrier->expected) && whole_simple(cta, barrier);
}

static void whole(struct check_cta *cta)
{
    struct check_cluster *cl = cta->cluster;
    const uint32_t time = check_tick(cl);
    bool simple = true;
    uint32_t mem_time = 0, exec_time = 0, started = 0, narrow = 0;
    const struct group *missed = NULL;
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        struct check_warp *warp = &cta->warps[w];
        if (!(warp->present & ~warp->exited)) {
            continue;
        }
        check_acquire_pending(warp, UINT32_MAX);
        check_warp_meet(warp, UINT32_MAX, time);
        const struct group *g = &warp->groups[0];
        simple &= plain(g);
        mem_time = g->mem.cluster_time > mem_time ? g->mem.cluster_time : mem_time;
        exec_time = g->exec.cluster_time > exec_time ? g->exec.cluster_time : exec_time;
        started |= g->started;
        narrow = narrow ? narrow : g->narrow_site;
        missed = g->miss_site ? g : missed;
    }
    struct tidings all = {0};
    struct clock *pending[SCOPES] = {NULL};
    for (uint32_t w = 0; w < cl->n_warps && !simple; w++) {
        struct check_warp *warp = &cta->warps[w];
        if (!(warp->present & ~warp->exited)) {
            continue;
        }
        const struct group *g = &warp->groups[0];
        clock_join_ref(&all.mem, g->mem.more);
        clock_join_ref(&all.exec, g->exec.more);
        clock_join_ref(&all.proxy, g->proxy);
        for (unsigned s = 0; s < SCOPES; s++) {
            clock_join_ref(&all.fenced[s], g->fenced[s]);
            clock_join_ref(&pending[s], g->pending[s]);
        }
    }
    const uint32_t miss_site = missed ? missed->miss_site : 0, miss_rank = missed ? missed->miss_rank : 0;
    const uint64_t miss_cluster = missed ? missed->miss_cluster : 0;
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        struct check_warp *warp = &cta->warps[w];
        if (!(warp->present & ~warp->exited)) {
            continue;
        }
        struct group *g = &warp->groups[0];
        g->mem.cluster_time = mem_time;
        g->exec.cluster_time = exec_time;
        g->mem.cta_time = g->exec.cta_time = time;
        g->started = started;
        g->narrow_site = narrow;
        g->miss_site = miss_site;
        g->miss_rank = miss_rank;
        g->miss_cluster = miss_cluster;
        if (!simple) {
            clock_join_ref(&g->mem.more, all.mem);
            clock_join_ref(&g->exec.more, all.exec);
            clock_join_ref(&g->proxy, all.proxy);
            for (unsigned s = 0; s < SCOPES; s++) {
                clock_join_ref(&g->fenced[s], all.fenced[s]);
                clock_join_ref(&g->pending[s], pending[s]);
            }
        }
    }
    check_tidings_drop(&all);
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(pending[s]);
    }
}

/* The barrier completes only because threads that it counts on have exited. */
static void too_few(struct check *check, struct check_cta *cta, uint32_t id)
{
    const struct emu_barrier *barrier = &cta->cta->barriers[id];
    const struct check_named *named = &cta->named[id];
    const unsigned of = named->counts[1] == barrier->expected + 1;
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_BARRIER_COUNT, named->sites[of], 0, 0);
    if (!h) {
        return;
    }
    const uint32_t warps = barrier->waiting_warps | barrier->whole_warps;
    const uint32_t w = warps ? (uint32_t)__builtin_ctz(warps) : 0;
    check_party(check, &h->parties[0], cta->cluster->index, cta->rank * 32 + w, waiting(barrier, w),
                named->sites[of], NULL);
    if (named->counts[1]) {
        check_party(check, &h->parties[1], cta->cluster->index, cta->rank * 32, UINT32_MAX, named->sites[!of],
                    NULL);
        h->parties[1].has_warp = 0;
    }
    check_within(h);
    check_say(h->missing, sizeof h->missing,
              "barrier %u waits for %u threads, and only %u arrive; the others have exited", id,
              barrier->expected, barrier->arrived);
}

void check_barrier_complete(struct check *check, struct check_cta *cta, uint32_t id)
{
    const struct emu_barrier *barrier = &cta->cta->barriers[id];
    struct check_cluster *cl = cta->cluster;
    struct check_named *named = &cta->named[id];
    bool all = named->mem == NULL && !cta->early_exit;
    if (barrier->expected && barrier->arrived < barrier->expected) {
        too_few(check, cta, id);
    }
    /* What check_barrier_quick takes never comes here. */
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        struct check_warp *warp = &cta->warps[w];
        const uint32_t live = warp->present & ~warp->exited;
        all &= (waiting(barrier, w) & live) == live;
        if (warp->aligned_site && check->sites.list[warp->aligned_site].aligned &&
            (waiting(barrier, w) & live)) {
            aligned_end(check, warp);
        }
    }
    if (all) {
        whole(cta);
        return;
    }
    const uint32_t time = check_tick(cl);
    struct tidings told = {.mem = named->mem, .exec = named->exec, .proxy = named->proxy};
    for (unsigned s = 0; s < SCOPES; s++) {
        told.fenced[s] = named->fenced[s];
    }
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        if (waiting(barrier, w)) {
            check_acquire_pending(&cta->warps[w], waiting(barrier, w));
            check_warp_meet(&cta->warps[w], waiting(barrier, w), time);
            check_tell(&cta->warps[w], waiting(barrier, w), time, true, &told);
        }
    }
    for (uint32_t w = 0; w < cl->n_warps; w++) {
        if (waiting(barrier, w)) {
            check_hear(&cta->warps[w], waiting(barrier, w), true, &told);
        }
    }
    check_tidings_drop(&told);
    named->mem = named->exec = named->proxy = NULL;
    for (unsigned s = 0; s < SCOPES; s++) {
        named->fenced[s] = NULL;
    }
}

/* --- barrier.cluster */

void check_cluster_arrive(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site)
{
    struct check_cluster *cl = warp->cta->cluster;
    const uint32_t phase = cl->cluster->barrier_phase, p = phase & 1;
    const uint32_t live = warp->present & ~warp->exited;
    const bool release = check->sites.list[site].release;
    if (check->sites.list[site].aligned && (warp->aligned_site || (live & ~lanes))) {
        aligned_note(check, warp, lanes, site);
    }
    if (cl->arrived_phase[p] != phase + 1) {
        cl->arrived_phase[p] = phase + 1;
        check_arrived_clocks_drop(cl, p);
        for (uint32_t w = 0; w < cl->size * cl->n_warps; w++) {
            cl->arrivals[p][w] = (struct check_arrival){0};
        }
    }
    struct check_arrival *arrival = &cl->arrivals[p][warp->cta->rank * cl->n_warps + warp->index];
    const bool first = arrival->lanes == 0;
    arrival->lanes |= lanes;
    /* Lanes that come later bring the warp's time forward; those that came before wait, nearly always. */
    arrival->time = check_tick(cl);
    arrival->release = (first || arrival->release) && release;
    EACH_GROUP(g, warp, lanes)
    {
        if (release) {
            clock_join_ref(&cl->arrived_mem[p], g->mem.more);
            clock_add(&cl->arrived_mem[p], cl->index, CHECK_KEY_CLUSTER, UINT32_MAX, g->mem.cluster_time);
            clock_add(&cl->arrived_mem[p], cl->index, CHECK_KEY_CTA + warp->cta->rank, UINT32_MAX,
                      g->mem.cta_time);
            clock_join_ref(&cl->arrived_proxy[p], g->proxy);
            for (unsigned s = 0; s < SCOPES; s++) {
                clock_join_ref(&cl->arrived_fenced[p][s], g->fenced[s]);
            }
        } else {
            clock_join_ref(&cl->arrived_mem[p], g->fenced[SCOPE_CLUSTER]);
        }
        clock_join_ref(&cl->arrived_exec[p], g->exec.more);
    }
}

void check_cluster_complete(struct check *check, struct check_cluster *cl)
{
    (void)check;
    const uint32_t p = (cl->cluster->barrier_phase - 1) & 1, n = cl->size * cl->n_warps;
    const uint32_t time = check_tick(cl);
    uint32_t least = time;
    bool all_release = true;
    for (uint32_t w = 0; w < n; w++) {
        const struct check_arrival *arrival = &cl->arrivals[p][w];
        if (!arrival->lanes) {
            continue;
        }
        all_release &= arrival->release;
        if (cl->warps[w].last_time > arrival->time && arrival->time < least) {
            least = arrival->time;
        }
    }
    clock_add(&cl->arrived_exec[p], cl->index, CHECK_KEY_CLUSTER, UINT32_MAX, least);
    for (uint32_t rank = 0; rank < cl->size; rank++) {
        /* What exited threads did is published by nobody. */
        all_release &= !cl->ctas[rank].early_exit;
    }
    if (all_release) {
        clock_add(&cl->arrived_mem[p], cl->index, CHECK_KEY_CLUSTER, UINT32_MAX, least);
    }
    for (uint32_t w = 0; w < n && (least < time || !all_release); w++) {
        const struct check_arrival *arrival = &cl->arrivals[p][w];
        struct check_warp *warp = &cl->warps[w];
        const uint32_t up_to = warp->last_time > arrival->time ? arrival->time : time;
        if (arrival->lanes) {
            const uint32_t part = CHECK_KEY_AGENT + warp->self.agent,
                           lanes = check_lanes(warp, arrival->lanes);
            clock_add(&cl->arrived_exec[p], cl->index, part, lanes, up_to);
            if (arrival->release) {
                clock_add(&cl->arrived_mem[p], cl->index, part, lanes, up_to);
            }
        }
    }
    for (uint32_t rank = 0; rank < cl->size; rank++) {
        check_aligned_left(check, &cl->ctas[rank]);
    }
}

void check_cluster_wait(struct check *check, struct check_warp *warp, uint32_t lanes)
{
    (void)check;
    struct check_cluster *cl = warp->cta->cluster;
    const uint32_t p = (warp->cta->cta->cluster_parity[warp->index] & lanes) != 0;
    struct tidings told = {
        .mem = cl->arrived_mem[p], .exec = cl->arrived_exec[p], .proxy = cl->arrived_proxy[p]};
    for (unsigned s = 0; s < SCOPES; s++) {
        told.fenced[s] = cl->arrived_fenced[p][s];
    }
    check_hear(warp, lanes, true, &told);
}
