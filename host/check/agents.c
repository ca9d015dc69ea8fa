/* Clusters, CTAs and warps as the checker follows them, and what their lanes know.

   The lanes of a warp that know the same are one group; nearly always there is one. A group splits when some
   of its lanes learn something that the others do not (an acquire by one lane), and groups merge when their
   lanes meet at bar.warp.sync or a barrier. Two relations are kept apart: `exec`, what has been
   executed, which every synchronising operation passes on, and `mem`, what is visible, which needs a release
   and an acquire. */
#include <stdlib.h>
#include <string.h>

#include "check/state.h"

static void group_clear(struct group *group)
{
    known_clear(&group->mem);
    known_clear(&group->exec);
    clock_drop(group->proxy);
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(group->fenced[s]);
        clock_drop(group->pending[s]);
    }
    *group = (struct group){0};
}

static struct group *group_add(struct check_warp *warp)
{
    if (warp->n_groups == warp->capacity) {
        warp->capacity = warp->capacity ? 2 * warp->capacity : 1;
        warp->groups = check_grow(warp->groups, warp->capacity * sizeof *warp->groups);
    }
    struct group *group = &warp->groups[warp->n_groups++];
    *group = (struct group){0};
    return group;
}

void check_split(struct check_warp *warp, uint32_t lanes)
{
    for (uint32_t i = 0, n = warp->n_groups; i < n; i++) {
        const uint32_t inside = warp->groups[i].lanes & lanes;
        if (!inside || inside == warp->groups[i].lanes) {
            continue;
        }
        struct group *to = group_add(warp), *from = &warp->groups[i];
        *to = *from;
        clock_ref(to->mem.more);
        clock_ref(to->exec.more);
        clock_ref(to->proxy);
        for (unsigned s = 0; s < SCOPES; s++) {
            clock_ref(to->fenced[s]);
            clock_ref(to->pending[s]);
        }
        to->lanes = inside;
        from->lanes &= ~lanes;
    }
}

void check_tell(struct check_warp *warp, uint32_t lanes, uint32_t time, bool release, struct tidings *inout)
{
    EACH_GROUP(g, warp, lanes)
    {
        const uint32_t part = check_lanes(warp, g->lanes & lanes);
        struct clock *clock = NULL;
        if (release) {
            clock = known_tell(&g->mem, &warp->self, part, time);
            clock_join_ref(&inout->mem, clock);
            clock_drop(clock);
            clock_join_ref(&inout->proxy, g->proxy);
            for (unsigned s = 0; s < SCOPES; s++) {
                clock_join_ref(&inout->fenced[s], g->fenced[s]);
            }
        } else {
            clock_join_ref(&inout->mem, g->fenced[SCOPE_CLUSTER]);
        }
        clock = known_tell(&g->exec, &warp->self, part, time);
        clock_join_ref(&inout->exec, clock);
        clock_drop(clock);
        inout->narrow_site = inout->narrow_site ? inout->narrow_site : g->narrow_site;
    }
}

static uint32_t started_of(const struct clock *clock, uint64_t cluster)
{
    uint32_t started = 0;
    for (uint32_t i = 0; clock && i < clock->n; i++) {
        const uint32_t part = (uint32_t)(clock->e[i].key & 0xffff);
        if (clock->e[i].key >> 16 != cluster) {
            continue;
        }
        if (part == CHECK_KEY_CLUSTER) {
            return UINT32_MAX;
        }
        if (part < CHECK_KEY_AGENT) {
            started |= UINT32_C(1) << (part - CHECK_KEY_CTA);
        } else if (part - CHECK_KEY_AGENT < CHECK_WARP_AGENTS) {
            started |= UINT32_C(1) << ((part - CHECK_KEY_AGENT) >> 5);
        }
    }
    return started;
}

void check_hear(struct check_warp *warp, uint32_t lanes, bool acquire, const struct tidings *tidings)
{
    check_split(warp, lanes);
    const uint32_t started = started_of(tidings->exec, warp->self.cluster);
    EACH_GROUP(g, warp, lanes)
    {
        if (acquire) {
            known_join(&g->mem, &warp->self, tidings->mem);
            clock_join_ref(&g->proxy, tidings->proxy);
            for (unsigned s = 0; s < SCOPES; s++) {
                clock_join_ref(&g->fenced[s], tidings->fenced[s]);
            }
        } else {
            clock_join_ref(&g->pending[SCOPE_CTA], tidings->mem);
        }
        known_join(&g->exec, &warp->self, tidings->exec);
        g->started |= started;
        g->narrow_site = g->narrow_site ? g->narrow_site : tidings->narrow_site;
    }
}

void check_acquire_pending(struct check_warp *warp, uint32_t lanes)
{
    EACH_GROUP(g, warp, lanes)
    {
        if (g->pending[SCOPE_CTA]) {
            known_join(&g->mem, &warp->self, g->pending[SCOPE_CTA]);
            clock_drop(g->pending[SCOPE_CTA]);
            g->pending[SCOPE_CTA] = NULL;
        }
    }
}

void check_tidings_drop(struct tidings *tidings)
{
    clock_drop(tidings->mem);
    clock_drop(tidings->exec);
    clock_drop(tidings->proxy);
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(tidings->fenced[s]);
    }
    *tidings = (struct tidings){0};
}

/* Lanes meet: each knows afterwards what all knew, and what all did up to `time`. */
static void merge_two(struct group *to, struct group *from)
{
    to->lanes |= from->lanes;
    to->started |= from->started;
    for (unsigned k = 0; k < 2; k++) {
        struct known *a = k ? &to->exec : &to->mem, *b = k ? &from->exec : &from->mem;
        a->cluster_time = a->cluster_time > b->cluster_time ? a->cluster_time : b->cluster_time;
        a->cta_time = a->cta_time > b->cta_time ? a->cta_time : b->cta_time;
        a->warp_time = a->warp_time > b->warp_time ? a->warp_time : b->warp_time;
        clock_join_ref(&a->more, b->more);
    }
    clock_join_ref(&to->proxy, from->proxy);
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_join_ref(&to->fenced[s], from->fenced[s]);
        clock_join_ref(&to->pending[s], from->pending[s]);
    }
    to->narrow_site = to->narrow_site ? to->narrow_site : from->narrow_site;
    if (!to->miss_site) {
        to->miss_site = from->miss_site;
        to->miss_cluster = from->miss_cluster;
        to->miss_rank = from->miss_rank;
    }
}

void check_warp_meet(struct check_warp *warp, uint32_t lanes, uint32_t time)
{
    const uint32_t told = check_lanes(warp, lanes);
    if (warp->n_groups == 1 && told == UINT32_MAX) {
        warp->groups[0].mem.warp_time = warp->groups[0].exec.warp_time = time;
        return;
    }
    check_split(warp, lanes);
    struct group *into = NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < warp->n_groups; i++) {
        struct group *g = &warp->groups[i];
        if ((g->lanes & lanes) && into) {
            merge_two(into, g);
            group_clear(g);
            continue;
        }
        if (kept != i) {
            warp->groups[kept] = *g;
            *g = (struct group){0};
        }
        if (warp->groups[kept].lanes & lanes) {
            into = &warp->groups[kept];
        }
        kept++;
    }
    warp->n_groups = kept;
    if (!into) {
        return;
    }
    if (told == UINT32_MAX) {
        into->mem.warp_time = into->exec.warp_time = time;
        return;
    }
    for (unsigned k = 0; k < 2; k++) {
        struct known *known = k ? &into->exec : &into->mem;
        clock_add(&known->more, warp->self.cluster, CHECK_KEY_AGENT + warp->self.agent, told, time);
    }
}

void check_warp_executed(struct check_warp *warp, uint32_t lanes, uint32_t time)
{
    if (warp->n_groups == 1) {
        if (check_lanes(warp, lanes) == UINT32_MAX) {
            warp->groups[0].exec.warp_time = time;
        }
        return;
    }
    struct tidings tidings = {0};
    check_split(warp, lanes);
    EACH_GROUP(g, warp, lanes)
    {
        struct clock *clock = known_tell(&g->exec, &warp->self, check_lanes(warp, lanes), time);
        clock_join_ref(&tidings.exec, clock);
        clock_drop(clock);
    }
    const uint32_t started = started_of(tidings.exec, warp->self.cluster);
    EACH_GROUP(g, warp, lanes)
    {
        known_join(&g->exec, &warp->self, tidings.exec);
        g->started |= started;
    }
    check_tidings_drop(&tidings);
}

void check_lanes_exit(struct check_warp *warp, uint32_t lanes)
{
    uint32_t kept = 0;
    warp->exited |= lanes;
    for (uint32_t i = 0; i < warp->n_groups; i++) {
        struct group *g = &warp->groups[i];
        g->lanes &= ~lanes;
        if (!g->lanes) {
            group_clear(g);
        } else if (kept++ != i) {
            warp->groups[kept - 1] = *g;
            *g = (struct group){0};
        }
    }
    warp->n_groups = kept;
}

/* --- clusters */

static struct check_cluster *cluster_new(struct check *check, const struct emu_cluster *cluster)
{
    const struct emu_run *run = check->run;
    struct check_cluster *cl = check_alloc(sizeof *cl);
    cl->check = check;
    cl->size = cluster->size;
    cl->n_warps = run->warps_per_cta;
    cl->ctas = check_alloc(cl->size * sizeof *cl->ctas);
    cl->warps = check_alloc((size_t)cl->size * cl->n_warps * sizeof *cl->warps);
    for (unsigned p = 0; p < 2; p++) {
        cl->arrivals[p] = check_alloc((size_t)cl->size * cl->n_warps * sizeof *cl->arrivals[p]);
    }
    return cl;
}

void check_cluster_start(struct check *check, struct emu_cluster *cluster)
{
    struct check_cluster *cl = check->free_clusters;
    if (cluster->size * 32 > CHECK_WARP_AGENTS) {
        return; /* more than agents can number: not followed */
    }
    if (cl) {
        check->free_clusters = cl->next;
    } else {
        cl = cluster_new(check, cluster);
    }
    cl->cluster = cluster;
    cl->index = cluster->index;
    cl->now = 1;
    cl->next = check->live;
    check->live = cl;
    cluster->observed = cl;
    for (uint32_t rank = 0; rank < cl->size; rank++) {
        struct check_cta *cta = &cl->ctas[rank];
        cta->cluster = cl;
        cta->cta = &cluster->ctas[rank];
        cta->rank = rank;
        cta->warps = &cl->warps[(size_t)rank * cl->n_warps];
        check_shared_init(cta);
        for (uint32_t w = 0; w < cl->n_warps; w++) {
            struct check_warp *warp = &cta->warps[w];
            warp->cta = cta;
            warp->index = w;
            warp->present = cta->cta->warps[w].present;
            cluster->ctas[rank].warps[w].observed = warp;
            warp->self = (struct identity){cl->index, rank * 32 + w};
            warp->n_groups = 0;
            struct group *group = group_add(warp);
            group->lanes = warp->present;
            group->started = UINT32_C(1) << rank;
        }
    }
}

static void flags_free(struct flag *flags[FLAG_BUCKETS])
{
    for (unsigned b = 0; b < FLAG_BUCKETS; b++) {
        while (flags[b]) {
            struct flag *flag = flags[b];
            flags[b] = flag->next;
            for (unsigned s = 0; s < SCOPES; s++) {
                clock_drop(flag->mem[s]);
            }
            clock_drop(flag->proxy);
            clock_drop(flag->exec);
            free(flag);
        }
    }
}

static void warp_end(struct check_warp *warp)
{
    for (uint32_t i = 0; i < warp->n_groups; i++) {
        group_clear(&warp->groups[i]);
    }
    free(warp->cp);
    free(warp->bulk);
    *warp = (struct check_warp){.groups = warp->groups, .capacity = warp->capacity};
}

static void cta_end(struct check_cta *cta)
{
    for (unsigned b = 0; b < EMU_NAMED_BARRIERS; b++) {
        struct check_named *named = &cta->named[b];
        clock_drop(named->mem);
        clock_drop(named->exec);
        clock_drop(named->proxy);
        for (unsigned s = 0; s < SCOPES; s++) {
            clock_drop(named->fenced[s]);
        }
        *named = (struct check_named){0};
    }
    clock_drop(cta->exit_known);
    *cta = (struct check_cta){.cell_w = cta->cell_w,
                              .cell_r = cta->cell_r,
                              .cells_capacity = cta->cells_capacity,
                              .cells_used = cta->cells_used,
                              .remote = cta->remote,
                              .remote_capacity = cta->remote_capacity};
}

void check_arrived_clocks_drop(struct check_cluster *cl, unsigned phase)
{
    clock_drop(cl->arrived_mem[phase]);
    clock_drop(cl->arrived_exec[phase]);
    clock_drop(cl->arrived_proxy[phase]);
    cl->arrived_mem[phase] = cl->arrived_exec[phase] = cl->arrived_proxy[phase] = NULL;
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(cl->arrived_fenced[phase][s]);
        cl->arrived_fenced[phase][s] = NULL;
    }
}

void check_cluster_end(struct check *check, struct emu_cluster *cluster)
{
    struct check_cluster *cl = cluster->observed;
    if (!cl) {
        return;
    }
    cluster->observed = NULL;
    for (struct check_cluster **at = &check->live; *at; at = &(*at)->next) {
        if (*at == cl) {
            *at = cl->next;
            break;
        }
    }
    check_copies_free(cl);
    check_mbarriers_free(cl);
    for (uint32_t rank = 0; rank < cl->size; rank++) {
        for (uint32_t w = 0; w < cl->n_warps; w++) {
            warp_end(&cl->warps[(size_t)rank * cl->n_warps + w]);
        }
        cta_end(&cl->ctas[rank]);
    }
    flags_free(cl->flags);
    cl->n_flags = 0;
    for (unsigned p = 0; p < 2; p++) {
        memset(cl->arrivals[p], 0, (size_t)cl->size * cl->n_warps * sizeof *cl->arrivals[p]);
        check_arrived_clocks_drop(cl, p);
        cl->all_release[p] = false;
        cl->arrived_phase[p] = 0;
    }
    cl->phase = 0;
    cl->n_mbarriers = 0;
    cl->n_readers = cl->free_readers = 0;
    cl->n_splits = cl->free_splits = 0;
    cl->next = check->free_clusters;
    check->free_clusters = cl;
}

void check_clusters_free(struct check *check)
{
    flags_free(check->flags);
    while (check->free_clusters) {
        struct check_cluster *cl = check->free_clusters;
        check->free_clusters = cl->next;
        for (uint32_t rank = 0; rank < cl->size; rank++) {
            for (uint32_t w = 0; w < cl->n_warps; w++) {
                free(cl->warps[rank * cl->n_warps + w].groups);
            }
            free(cl->ctas[rank].cell_w);
            free(cl->ctas[rank].remote);
        }
        free(cl->ctas);
        free(cl->warps);
        free(cl->arrivals[0]);
        free(cl->arrivals[1]);
        free(cl->readers);
        free(cl->splits);
        free(cl);
    }
}
