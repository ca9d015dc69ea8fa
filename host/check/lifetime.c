/* Lifetime of distributed shared memory: a CTA's memory exists from its start to its exit, and other CTAs of
   the cluster may touch it only then. PTX ISA 9.0, "Cluster of Cooperative Thread Arrays"; CUDA C++
   Programming Guide, "Distributed Shared Memory".

   Both ends are questions of execution order: an access is safe when its thread knows that the peer has
   started (any chain of synchronising operations from a thread of the peer, in practice a cluster barrier),
   and when some thread of the peer, at its exit, knows that the access has been made. */
#include <stdlib.h>

#include "check/state.h"

void check_remote_start(struct check *check, struct check_warp *warp, struct check_cta *owner, uint32_t lanes,
                        uint32_t offset, uint32_t bytes, uint32_t site)
{
    uint32_t unsure = 0;
    EACH_GROUP(g, warp, lanes)
    {
        unsure |= g->started >> owner->rank & 1 ? 0 : g->lanes & lanes;
    }
    if (!unsure) {
        return;
    }
    struct clab_hazard *h = check_report(check, CLAB_HAZARD_REMOTE_BEFORE_START, site, 0, 0);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], warp->self.cluster, warp->self.agent, unsure, site, NULL);
    check_party_cta(check, &h->parties[1], warp->self.cluster, owner->rank, "start");
    check_within(h);
    check_place_shared(check, h, warp->cta, owner, offset, bytes);
    check_say(
        h->missing, sizeof h->missing,
        "no cluster barrier (or other word from the peer CTA) comes before the access: the peer may not have "
        "started yet");
}

void check_remote_note(struct check_cta *owner, const struct check_remote *access)
{
    for (uint32_t i = 0; i < owner->n_remote; i++) {
        struct check_remote *old = &owner->remote[i];
        if (old->agent == access->agent && (old->lanes & ~access->lanes) == 0) {
            *old = *access;
            return;
        }
        if (old->agent == access->agent && old->time == access->time && old->site == access->site) {
            old->lanes |= access->lanes;
            return;
        }
    }
    if (owner->n_remote == owner->remote_capacity) {
        owner->remote_capacity = owner->remote_capacity ? 2 * owner->remote_capacity : 8;
        owner->remote = check_grow(owner->remote, owner->remote_capacity * sizeof *owner->remote);
    }
    owner->remote[owner->n_remote++] = *access;
}

static void after_exit(struct check *check, struct check_cta *cta, const struct check_remote *r)
{
    const bool copy = r->issuer != UINT32_MAX;
    struct clab_hazard *h =
        check_report(check, copy ? CLAB_HAZARD_ASYNC_EXIT : CLAB_HAZARD_REMOTE_AFTER_EXIT, r->site, 0, 0);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], cta->cluster->index, copy ? r->issuer : r->agent, r->lanes, r->site,
                copy ? "copy reads" : NULL);
    check_party_cta(check, &h->parties[1], cta->cluster->index, cta->rank, "exit");
    check_within(h);
    check_place_shared(check, h, NULL, cta, r->address, r->bytes);
    check_say(
        h->missing, sizeof h->missing, "%s",
        copy ? "no thread of the CTA whose memory the copy reads knows at its exit that the copy is complete"
             : "no cluster barrier after the access keeps the peer CTA from exiting before it is made");
}

void check_remote_access(struct check *check, struct check_warp *warp, struct check_cta *owner,
                         const struct emu_access *access, uint32_t site)
{
    const unsigned lane = (unsigned)__builtin_ctz(access->lanes);
    const uint32_t offset =
        (uint32_t)((uintptr_t)emu_access_host(access, lane) - (uintptr_t)owner->cta->shared) +
        EMU_SHARED_FIRST;
    check_remote_start(check, warp, owner, access->lanes, offset, access->bytes, site);
    if (owner->exited) {
        after_exit(check, owner,
                   &(struct check_remote){warp->self.agent, 0, access->lanes, site, offset, access->bytes,
                                          UINT32_MAX});
    }
    const struct check_remote last = {.agent = warp->self.agent,
                                      .time = check_now(warp->cta->cluster),
                                      .lanes = access->lanes,
                                      .site = site,
                                      .address = offset,
                                      .bytes = access->bytes,
                                      .issuer = UINT32_MAX};
    check_remote_note(owner, &last);
}

void check_thread_exit(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site)
{
    struct check_cta *cta = warp->cta;
    cta->exit_site = site;
    cta->early_exit = true;
    check_aligned_exit(check, warp, lanes);
    if (cta->n_remote || cta->cluster->any_copies) {
        EACH_GROUP(g, warp, lanes)
        {
            struct clock *known = known_tell(&g->exec, &warp->self, check_lanes(warp, g->lanes & lanes),
                                             check_now(cta->cluster));
            clock_join_ref(&cta->exit_known, known);
            clock_drop(known);
        }
    }
    warp->last_time = cta->cluster->now;
    check_lanes_exit(warp, lanes);
}

void check_cta_exit(struct check *check, struct check_cta *cta)
{
    cta->exited = true;
    for (uint32_t i = 0; i < cta->n_remote; i++) {
        const struct check_remote *r = &cta->remote[i];
        if (clock_knows(cta->exit_known, cta->cluster->index, r->agent, r->lanes, r->time)) {
            continue;
        }
        after_exit(check, cta, r);
    }
}
