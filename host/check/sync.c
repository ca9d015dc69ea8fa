/* Flags: releases and acquires through memory, and fences. PTX ISA 9.0, "Release and Acquire Patterns",
   "Synchronizes-with". What is followed are the reads that did happen.

   A store or atomic releases what its thread knows (.release), or what it knew at its last release fence. An
   acquire of the same place joins it, when both scopes reach the other thread; a relaxed or volatile read
   keeps it for the next acquire fence. Atomics continue a release sequence, other stores end it. Where the
   manual wants the fence in the thread that stores the flag, a fence before a barrier by every thread counts
   too: hardware makes no difference. */
#include <stdlib.h>

#include "check/state.h"

static struct flag *flag_get(struct check *check, struct check_cluster *cl, const struct emu_access *access,
                             uint64_t address, bool make)
{
    struct flag **buckets = access->owner ? cl->flags : check->flags;
    struct flag **bucket = &buckets[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 56 & (FLAG_BUCKETS - 1)];
    for (struct flag *flag = *bucket; flag; flag = flag->next) {
        if (flag->address == address) {
            return flag;
        }
    }
    if (!make) {
        return NULL;
    }
    struct flag *flag = check_alloc(sizeof *flag);
    flag->address = address;
    flag->next = *bucket;
    *bucket = flag;
    *(access->owner ? &cl->n_flags : &check->n_flags) += 1;
    return flag;
}

static enum check_scope level_of(const struct flag *flag, const struct check_warp *warp)
{
    if (flag->mixed) {
        return SCOPE_GPU;
    }
    return flag->cluster != warp->self.cluster ? SCOPE_GPU
           : flag->rank != warp->cta->rank     ? SCOPE_CLUSTER
                                               : SCOPE_CTA;
}

static void forget(struct flag *flag)
{
    for (unsigned s = 0; s < SCOPES; s++) {
        clock_drop(flag->mem[s]);
        flag->mem[s] = NULL;
    }
    clock_drop(flag->proxy);
    clock_drop(flag->exec);
    flag->proxy = flag->exec = NULL;
    flag->mixed = false;
    flag->site = 0;
}

static void flag_acquire(struct check_warp *warp, const struct flag *flag, uint32_t lanes,
                         const struct site *site)
{
    const enum check_scope least = level_of(flag, warp);
    check_split(warp, lanes);
    EACH_GROUP(g, warp, lanes)
    {
        for (unsigned s = 0; s < SCOPES; s++) {
            if (!flag->mem[s]) {
                continue;
            }
            if (s < least || (site->acquire && site->scope < least)) {
                g->miss_site = flag->site;
                g->miss_cluster = flag->cluster;
                g->miss_rank = flag->mixed ? UINT32_MAX : flag->rank;
            } else if (site->acquire) {
                known_join(&g->mem, &warp->self, flag->mem[s]);
                clock_join_ref(&g->proxy, flag->proxy);
            } else {
                clock_join_ref(&g->pending[site->scope < least ? SCOPE_GPU : least], flag->mem[s]);
            }
        }
        if (flag->exec && flag->cluster == warp->self.cluster) {
            const struct tidings heard = {.exec = flag->exec};
            check_hear(warp, g->lanes & lanes, false, &heard);
        }
    }
}

static void flag_release(struct check *check, struct check_warp *warp, struct group *group, struct flag *flag,
                         uint32_t lanes, const struct site *site, uint32_t site_number, uint32_t time)
{
    struct tidings told = {0};
    struct clock *mem = NULL;
    if (site->release) {
        check_tell(warp, lanes, time, true, &told);
        mem = told.mem;
    } else {
        /* A fence before it, at least of the scope that the store has. */
        mem = group->fenced[site->scope];
        enum check_scope s = site->scope;
        while (!mem && s > SCOPE_CTA) {
            mem = group->fenced[--s];
        }
        if (mem) {
            clock_join_ref(&flag->mem[s], mem);
            clock_join_ref(&flag->proxy, group->proxy);
        }
    }
    if (site->release) {
        clock_join_ref(&flag->mem[site->scope], mem);
        clock_join_ref(&flag->proxy, told.proxy);
    }
    const bool other = flag->site && (flag->cluster != warp->self.cluster || flag->rank != warp->cta->rank);
    flag->mixed |= other && mem != NULL;
    if (check->run->cluster_size > 1) {
        if (flag->cluster != warp->self.cluster) {
            clock_drop(flag->exec);
            flag->exec = NULL;
        }
        if (!told.exec) {
            struct clock *exec = known_tell(&group->exec, &warp->self, check_lanes(warp, lanes), time);
            clock_join_ref(&flag->exec, exec);
            clock_drop(exec);
        } else {
            clock_join_ref(&flag->exec, told.exec);
        }
    }
    flag->cluster = warp->self.cluster;
    flag->rank = warp->cta->rank;
    flag->site = mem ? site_number : flag->site;
    check_tidings_drop(&told);
}

/* Strong operations on memory; `before`: the part that comes before the access is checked (acquire), else
 * after. */
void check_synchronise(struct check *check, struct check_warp *warp, const struct emu_access *access,
                       const struct site *site, uint32_t site_number, bool before)
{
    struct check_cluster *cl = warp->cta->cluster;
    const bool reads = access->kind != EMU_ACCESS_STORE && !(site->atomic && !site->load);
    if (before && !reads) {
        return;
    }
    if (!before && access->kind == EMU_ACCESS_LOAD) {
        return;
    }
    /* Nothing to pass on, and no flag that it would end: most atomics. */
    bool any = site->release || (access->owner != NULL && check->run->cluster_size > 1);
    EACH_GROUP(g, warp, access->lanes)
    {
        any |= g->fenced[SCOPE_CTA] != NULL;
    }
    if (!(access->owner ? cl->n_flags : check->n_flags) && (before || !any)) {
        return;
    }
    const uint32_t time = before ? 0 : check_tick(cl);
    for (uint32_t left = access->lanes, lanes; left; left &= ~lanes) {
        lanes = access->shape == EMU_SHAPE_ONE ? left : left & -left;
        const uint64_t address = (uint64_t)(uintptr_t)emu_access_host(access, (unsigned)__builtin_ctz(left));
        struct flag *flag = flag_get(check, cl, access, address, !before && any);
        if (!flag) {
            continue;
        }
        if (before) {
            flag_acquire(warp, flag, lanes, site);
            continue;
        }
        /* While others may still see the old value they may see what came with it (emu/held.c). */
        if (!site->atomic && !warp->cta->cta->cluster->held.armed) {
            forget(flag);
        }
        EACH_GROUP(g, warp, lanes)
        {
            flag_release(check, warp, g, flag, g->lanes & lanes, site, site_number, time);
        }
    }
}

static void init_fences(struct check_warp *warp, uint32_t lanes)
{
    for (unsigned b = 0; b < 64; b++) {
        for (struct mbarrier *m = warp->cta->cluster->mbarriers[b]; m; m = m->next) {
            if (m->cta == warp->cta && m->init_warp == warp->index && (lanes >> m->init_lane & 1)) {
                m->init_fenced = true;
            }
        }
    }
}

/* Lets the tensormap proxy see what the lanes know to have been written to a tensor map, and offered to that
   proxy: by tensormap.cp_fenceproxy, or by a releasing fence after the write. PTX ISA 9.0, "fence". */
static void map_acquire(struct check *check, struct check_warp *warp, uint32_t lanes, uint64_t address)
{
    check_split(warp, lanes);
    EACH_GROUP(g, warp, lanes)
    {
        struct earlier e;
        for (uint32_t at = 0; at < CHECK_TENSOR_MAP_BYTES; at += 4) {
            if (!check_global_writer(check, address + at, &e)) {
                continue;
            }
            const uint32_t theirs = check_earlier_lanes(check, &e);
            const struct ptx_insn *insn = site_insn(&check->sites.list[e.site]);
            const bool own = e.cluster == warp->self.cluster;
            const bool known = own ? known_covers(&g->mem, &warp->self, e.agent, theirs, e.time) ||
                                         (e.agent == warp->self.agent && !(theirs & ~lanes))
                                   : clock_knows(g->mem.more, e.cluster, e.agent, theirs, e.time);
            if (known && ((insn && insn->row == PTX_TENSORMAP_CP_FENCEPROXY) ||
                          clock_knows(g->proxy, e.cluster | CHECK_PROXY_RELEASED, e.agent, theirs, e.time))) {
                clock_add(&g->proxy, e.cluster | CHECK_PROXY_MAP, CHECK_KEY_AGENT + e.agent, theirs, e.time);
            }
        }
    }
}

void check_fence(struct check *check, struct check_warp *warp, uint32_t lanes, const struct site *site,
                 uint64_t address)
{
    if (site->map_acquire) {
        map_acquire(check, warp, lanes, address);
        return;
    }
    const uint32_t time = check_tick(warp->cta->cluster);
    if (site->mbarrier_init || site->proxy_async) {
        init_fences(warp, lanes);
    }
    if (site->mbarrier_init) {
        return;
    }
    check_split(warp, lanes);
    EACH_GROUP(g, warp, lanes)
    {
        if (site->fence_acquire) {
            for (unsigned s = 0; s <= site->scope; s++) {
                known_join(&g->mem, &warp->self, g->pending[s]);
                clock_drop(g->pending[s]);
                g->pending[s] = NULL;
            }
        }
        if (!site->fence_release && !site->proxy_async && !site->map_release) {
            continue;
        }
        struct clock *all = known_tell(&g->mem, &warp->self, check_lanes(warp, g->lanes & lanes), time);
        if (site->proxy_async && site->proxy_shared) {
            clock_join_ref(&g->proxy, all);
        }
        if (site->proxy_async && site->proxy_global) {
            clock_join_proxy(&g->proxy, all, CHECK_PROXY_GLOBAL);
        }
        if (site->map_release) {
            clock_join_proxy(&g->proxy, all, CHECK_PROXY_RELEASED);
        }
        for (unsigned s = 0; site->fence_release && s <= site->scope; s++) {
            clock_drop(g->fenced[s]);
            g->fenced[s] = clock_ref(all);
        }
        clock_drop(all);
    }
}
