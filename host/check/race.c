/* Whether two accesses are ordered, and what it is called when they are not. PTX ISA 9.0, "Memory Consistency
   Model": causality order, morally strong operations; "Proxies". */
#include <string.h>

#include "check/state.h"

static bool covered(const struct actor *a, const struct earlier *e, uint32_t lanes)
{
    if (a->known && e->cluster == a->cl->index) {
        return known_covers(a->known, &a->warp->self, e->agent, lanes, e->time);
    }
    return clock_knows(a->known ? a->known->more : a->mem, e->cluster, e->agent, lanes, e->time);
}

static bool same_thread(const struct actor *a, unsigned lane, const struct earlier *e)
{
    return e->cluster == a->cl->index && e->agent == a->warp->self.agent && !e->several &&
           e->lane == (a->copy ? a->same_lane : lane);
}

static bool visible(const struct actor *a, unsigned lane, const struct earlier *e)
{
    return same_thread(a, lane, e) || covered(a, e, check_earlier_lanes(a->check, e));
}

uint32_t check_earlier_lanes(const struct check *check, const struct earlier *e)
{
    if (!e->several) {
        return UINT32_C(1) << e->lane;
    }
    const uint32_t first = (e->agent & 31) * EMU_LANES, threads = check->run->threads_per_cta;
    return threads - first >= EMU_LANES ? UINT32_MAX : (UINT32_C(1) << (threads - first)) - 1;
}

/* Generic writes reach the async proxy through a proxy fence only. A response of cluster launch control asks
   the same of reads before it is overwritten; other copies refill a buffer after a plain release and acquire,
   as is done everywhere. */
static bool fenced(const struct actor *a, const struct earlier *e, uint32_t lanes)
{
    if (a->map) { /* of a tensor map: through the proxy of its own */
        return !e->write || clock_knows(a->proxy, e->cluster | CHECK_PROXY_MAP, e->agent, lanes, e->time);
    }
    return !a->async_proxy || !(e->write || a->clc) || e->agent >= CHECK_CP_AGENT + CHECK_WARP_AGENTS ||
           clock_knows(a->proxy, e->cluster | (a->in_global ? CHECK_PROXY_GLOBAL : 0), e->agent, lanes,
                       e->time);
}

bool check_ordered(const struct actor *a, unsigned lane, const struct earlier *e)
{
    return visible(a, lane, e) && fenced(a, e, check_earlier_lanes(a->check, e));
}

bool check_ordered_all(const struct actor *a, const struct earlier *e)
{
    return covered(a, e, UINT32_MAX) && fenced(a, e, UINT32_MAX);
}

static enum check_scope level(const struct actor *a, const struct earlier *e)
{
    if (e->cluster != a->cl->index) {
        return SCOPE_GPU;
    }
    const uint32_t agent = e->agent < CHECK_WARP_AGENTS ? e->agent : e->agent % CHECK_WARP_AGENTS;
    return agent >> 5 == a->warp->cta->rank ? SCOPE_CTA : SCOPE_CLUSTER;
}

/* A relaxed read of the thread has seen a release that came after the earlier access. */
static bool flag_seen(const struct actor *a, const struct earlier *e)
{
    if (!a->group) {
        return false;
    }
    const uint32_t lanes = check_earlier_lanes(a->check, e);
    for (unsigned s = 0; s < SCOPES; s++) {
        if (clock_knows(a->group->pending[s], e->cluster, e->agent, lanes, e->time)) {
            return true;
        }
    }
    return false;
}

static bool scopes_reach(const struct actor *a, const struct earlier *e)
{
    const struct site *other = &a->check->sites.list[e->site];
    const enum check_scope least = level(a, e);
    return a->strong && other->strong && a->scope >= least && other->scope >= least;
}

static bool same_size(const struct actor *a, const struct earlier *e)
{
    return site_same_size(&a->check->sites.list[a->site], &a->check->sites.list[e->site]);
}

/* Volatile used for data, as warp-synchronous code did before lanes could part ways: the model calls it no
   data race, since volatile is relaxed, but the read may find the old value as well as the new. A read that a
   loop asks again until it likes the value is a flag. */
static bool volatile_data(const struct actor *a, const struct earlier *e)
{
    const struct site *site = &a->check->sites.list[a->site], *other = &a->check->sites.list[e->site];
    return !a->copy && !a->write && e->write && site->load && site->is_volatile && !site->polls &&
           other->store && other->is_volatile && !flag_seen(a, e);
}

bool check_morally_strong(const struct actor *a, const struct earlier *e)
{
    return scopes_reach(a, e) && same_size(a, e) && !volatile_data(a, e);
}

/* --- same values */

static bool lane_value(const struct emu_warp *warp, const struct site *site, unsigned lane,
                       unsigned char *out, uint32_t *out_bytes)
{
    const struct ptx_insn *insn = site_insn(site);
    if (!insn || insn->n_operands < 2 || !site->store || warp->fragment->frame->code != site->code) {
        return false;
    }
    const struct ptx_operand *value = &insn->operands[1];
    const uint32_t n = value->kind == PTX_OPERAND_VECTOR ? value->n_elements : 1;
    const uint32_t bytes = emu_lane_bytes((enum ptx_type)insn->types[0]);
    if (bytes * n > 32) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        const struct ptx_operand *element = value->kind == PTX_OPERAND_VECTOR ? &value->elements[k] : value;
        if (element->kind == PTX_OPERAND_REG) {
            const uint32_t width = emu_lane_bytes(site->code->function->regs[element->reg].type);
            memcpy(out + k * bytes, warp->regs + site->code->reg_rows[element->reg] + lane * width,
                   width < bytes ? width : bytes);
        } else if (element->kind == PTX_OPERAND_INT) {
            memcpy(out + k * bytes, &element->imm, bytes < 8 ? bytes : 8);
        } else {
            return false;
        }
    }
    *out_bytes = bytes * n;
    return true;
}

static bool same_value(const struct actor *a, unsigned lane, const struct earlier *e,
                       const unsigned char *host, uint32_t bytes)
{
    const struct check *check = a->check;
    const struct site *site = &check->sites.list[a->site], *other = &check->sites.list[e->site];
    unsigned char mine[32] = {0}, its[32] = {0};
    uint32_t n, n_its;
    if (!e->write || !a->write || !site->store || !other->store || !a->emu_warp || !host ||
        !lane_value(a->emu_warp, site, lane, mine, &n) || n != bytes) {
        return false;
    }
    if (memcmp(mine, host, n) == 0) {
        return true;
    }
    /* Lanes of one instruction that store to one place: memory does not show it yet. */
    return e->cluster == a->cl->index && e->agent == a->agent && e->site == a->site &&
           lane_value(a->emu_warp, site, e->lane, its, &n_its) && memcmp(mine, its, n) == 0;
}

/* --- reports */

/* After a relaxed read that saw a release, stores that depend on it come after what was released, even
   without an acquire fence: the hardware speculates no stores. The model asks for the fence only for reads.
 */
static bool depends(const struct actor *a, const struct earlier *e)
{
    return !a->copy && a->write && flag_seen(a, e);
}

static bool executed(const struct actor *a, const struct earlier *e)
{
    return a->group && e->cluster == a->cl->index &&
           known_covers(&a->group->exec, &a->warp->self, e->agent, check_earlier_lanes(a->check, e), e->time);
}

static bool scope_missed(const struct actor *a, const struct earlier *e)
{
    if (a->strong && a->check->sites.list[e->site].strong) {
        return !scopes_reach(a, e);
    }
    return a->group && a->group->miss_site && a->group->miss_cluster == e->cluster &&
           (a->group->miss_rank == UINT32_MAX || e->agent >= CHECK_WARP_AGENTS ||
            a->group->miss_rank == e->agent >> 5);
}

static enum clab_hazard_kind kind_of(const struct actor *a, unsigned lane, const struct earlier *e,
                                     enum clab_space_id space, const struct check_cta *owner,
                                     const unsigned char *host, uint32_t bytes)
{
    if (visible(a, lane, e)) {
        return CLAB_HAZARD_PROXY_FENCE;
    }
    if (a->clc && a->write) {
        return CLAB_HAZARD_CLC_RESPONSE_REUSED;
    }
    const bool narrow = a->group && a->group->narrow_site && executed(a, e);
    if (narrow) { /* mild where a buffer is given back, not where data is handed over */
        return e->write && !a->write ? CLAB_HAZARD_RACE_SCOPE : CLAB_HAZARD_NARROW_SCOPE;
    }
    if (e->agent >= CHECK_WARP_AGENTS) {
        return !e->write             ? CLAB_HAZARD_ASYNC_SOURCE
               : a->copy && a->write ? CLAB_HAZARD_ASYNC_OVERWRITE
                                     : CLAB_HAZARD_ASYNC_READ_EARLY;
    }
    if (a->copy && a->write) {
        return e->fresh ? CLAB_HAZARD_ASYNC_READ_EARLY : CLAB_HAZARD_ASYNC_OVERWRITE;
    }
    if (scope_missed(a, e)) {
        return CLAB_HAZARD_RACE_SCOPE;
    }
    if (same_value(a, lane, e, host, bytes)) {
        return CLAB_HAZARD_RACE_SAME_VALUE;
    }
    if (space == CLAB_SPACE_GLOBAL) {
        return CLAB_HAZARD_RACE_GLOBAL;
    }
    return owner == a->warp->cta && e->agent >> 5 == owner->rank ? CLAB_HAZARD_RACE_SHARED
                                                                 : CLAB_HAZARD_RACE_REMOTE;
}

#define NARROW_ARRIVE                                                                                    \
    "the remote arrive that orders them is relaxed or has .cta scope, outside which the peer CTA lies: " \
    ".release.cluster orders them by the manual"

static const char *missing_of(const struct actor *a, enum clab_hazard_kind kind, const struct earlier *e)
{
    const bool bulk_group = e->agent >= CHECK_READ_AGENT && e->agent < CHECK_MBAR_AGENT;
    switch (kind) {
    case CLAB_HAZARD_PROXY_FENCE:
        if (a->map) {
            return "no fence.proxy.tensormap::generic.acquire of the tensor map, after a .release or "
                   "tensormap.cp_fenceproxy, stands between the change of the tensor map and the copy";
        }
        return "no fence.proxy.async stands between the ordinary store and the asynchronous copy";
    case CLAB_HAZARD_CLC_RESPONSE_REUSED:
        return "nothing orders the last use of the response before the request that overwrites it";
    case CLAB_HAZARD_NARROW_SCOPE:
        return NARROW_ARRIVE;
    case CLAB_HAZARD_ASYNC_READ_EARLY:
        return a->copy && a->write
                   ? "no wait for the copy comes before the read: here it ran before the copy was issued"
               : e->agent >= CHECK_MBAR_AGENT ? "no successful wait on the mbarrier phase in which the copy "
                                                "completes comes before the access"
               : bulk_group ? "no cp.async.bulk.wait_group for the copy's group comes before the access"
                            : "no cp.async.wait_group for the copy's group, followed by a barrier where "
                              "another thread "
                              "copied, comes before the access";
    case CLAB_HAZARD_ASYNC_SOURCE:
        return bulk_group ? "no cp.async.bulk.wait_group (.read suffices) for the copy's group comes before "
                            "the store"
                          : "no wait for the copy comes before the store to its source";
    case CLAB_HAZARD_ASYNC_OVERWRITE:
        return e->agent >= CHECK_WARP_AGENTS
                   ? "no wait for the earlier copy comes before the copy that overwrites its destination"
                   : "nothing orders the earlier access before the copy: the buffer is refilled without word "
                     "from those "
                     "who use it";
    case CLAB_HAZARD_RACE_SCOPE:
        if (a->group && a->group->narrow_site && executed(a, e)) {
            return NARROW_ARRIVE;
        }
        return level(a, e) == SCOPE_CLUSTER
                   ? "both sides need at least .cluster scope, since the threads are in different CTAs"
                   : "both sides need .gpu scope, since the threads are in different clusters";
    default:
        break;
    }
    if (executed(a, e)) {
        return "the two are ordered in execution, but only by relaxed operations: a release before and an "
               "acquire after "
               "are missing";
    }
    if (scopes_reach(a, e) && volatile_data(a, e)) {
        return e->cluster == a->cl->index && e->agent == a->warp->self.agent
                   ? "volatile does not keep the lanes of a warp in step: no bar.warp.sync (__syncwarp) "
                     "stands between the "
                     "two accesses"
                   : "volatile orders nothing: no barrier, and no flag with fences, stands between the store "
                     "and the read";
    }
    if (scopes_reach(a, e) && !same_size(a, e)) {
        return "strong operations of two sizes on one place race like weak ones: they must overlap "
               "completely";
    }
    if (e->cluster == a->cl->index && e->agent == a->warp->self.agent) {
        return "no bar.warp.sync (__syncwarp) that includes both lanes stands between the two accesses";
    }
    switch (level(a, e)) {
    case SCOPE_CTA:
        return "no barrier of the CTA, and no release and acquire, stands between the two accesses";
    case SCOPE_CLUSTER:
        return "no cluster barrier (release, acquire), and no release and acquire of .cluster scope, stands "
               "between the "
               "two accesses";
    default:
        return "no release of .gpu scope by the one, seen by an acquire of the other, stands between the two "
               "accesses";
    }
}

void check_race(const struct actor *a, unsigned lane, const struct earlier *e, enum clab_space_id space,
                const struct check_cta *owner, uint64_t address, uint32_t bytes, const unsigned char *host)
{
    const struct site *other = &a->check->sites.list[e->site];
    if (depends(a, e)) {
        return;
    }
    if (e->agent >= CHECK_MBAR_AGENT && (e->time & ~CHECK_ASYNC_TIME) == CHECK_LIVE_OBJECT) {
        const struct ptx_insn *insn = site_insn(&a->check->sites.list[a->site]);
        if (insn && insn->row == PTX_MBARRIER_INIT) {
            return; /* mbarrier.c says so */
        }
        check_object(a, lane, e, owner, (uint32_t)address);
        return;
    }
    const enum clab_hazard_kind kind = kind_of(a, lane, e, space, owner, host, bytes);
    if (kind == CLAB_HAZARD_NARROW_SCOPE && e->agent >= CHECK_WARP_AGENTS) {
        return; /* what the copies' users did in between is reported */
    }
    struct clab_hazard *h =
        check_report(a->check, kind, a->site, e->site, level(a, e) << 2 | (uint32_t)e->write << 1 | a->write);
    if (!h) {
        return;
    }
    const bool other_copies = e->agent >= CHECK_WARP_AGENTS;
    check_party(a->check, &h->parties[0], a->cl->index, a->warp->self.agent,
                UINT32_C(1) << (a->copy ? a->same_lane : lane), a->site,
                a->copy ? (a->write ? "copy writes" : "copy reads") : NULL);
    check_party(a->check, &h->parties[1], e->cluster, e->agent, check_earlier_lanes(a->check, e), e->site,
                other_copies ? (e->write ? "copy writes" : "copy reads") : other->action);
    check_within(h);
    if (space == CLAB_SPACE_GLOBAL) {
        check_place_global(a->check, h, address, bytes);
    } else {
        check_place_shared(a->check, h, a->warp->cta, owner, (uint32_t)address, bytes);
    }
    check_say(h->missing, sizeof h->missing, "%s", missing_of(a, kind, e));
}

void check_read_only(const struct actor *a, unsigned lane, const struct earlier *e, uint64_t address,
                     uint32_t bytes)
{
    struct clab_hazard *h = check_report(a->check, CLAB_HAZARD_READ_ONLY_PATH, a->site, e->site, 0);
    if (!h) {
        return;
    }
    check_party(a->check, &h->parties[0], a->cl->index, a->warp->self.agent, UINT32_C(1) << lane, a->site,
                NULL);
    check_party(a->check, &h->parties[1], e->cluster, e->agent, check_earlier_lanes(a->check, e), e->site,
                e->agent >= CHECK_WARP_AGENTS ? "copy writes" : a->check->sites.list[e->site].action);
    check_within(h);
    check_place_global(a->check, h, address, bytes);
    check_say(h->missing, sizeof h->missing,
              "the two are ordered, but this path may hold what was there before the grid began: ordinary "
              "loads (ld.global, __ldcg) see the write");
}
