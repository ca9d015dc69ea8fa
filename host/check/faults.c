/* Faults and deadlocks that stopped a launch, as hazards. The machine words its faults for a person; here the
   words and the kind of fault give the kind of hazard. Deadlocks are taken apart while the clusters still
   stand: who waits where, for whom, and what is missing. */
#include <stdio.h>
#include <string.h>

#include "check/state.h"
#include "emu/mbarrier.h"
#include "emu/module.h"
#include "emu/report.h"

static const struct {
    const char *text;
    enum clab_hazard_kind kind;
} words[] = {
    {"the ctaid of an answer that took no cluster", CLAB_HAZARD_CLC_DECODE_DECLINED},
    {"saw one declined", CLAB_HAZARD_CLC_AFTER_DECLINE},
    {"has not started", CLAB_HAZARD_REMOTE_BEFORE_START},
    {"not started;", CLAB_HAZARD_REMOTE_BEFORE_START},
    {"not started", CLAB_HAZARD_REMOTE_BEFORE_START},
    {"(clusterlaunchcontrol.try_cancel) writes", CLAB_HAZARD_CLC_PEER_EXITED},
    {"has exited; the access is by", CLAB_HAZARD_REMOTE_AFTER_EXIT},
    {"which has exited; the copy is by", CLAB_HAZARD_REMOTE_AFTER_EXIT},
    {"has exited", CLAB_HAZARD_ASYNC_EXIT},
    {"but the cluster has", CLAB_HAZARD_RANK_OUT_OF_RANGE},
    {"freed", CLAB_HAZARD_USE_AFTER_FREE},
    {"not a multiple of", CLAB_HAZARD_MISALIGNED},
    {"barrier.cluster.arrive twice", CLAB_HAZARD_CLUSTER_BARRIER_TWICE},
    {"barrier.cluster.wait without", CLAB_HAZARD_CLUSTER_BARRIER_NO_ARRIVE},
    {"there is no mbarrier at this address", CLAB_HAZARD_MBARRIER_NOT_LIVE},
    {"more threads arrive at the mbarrier", CLAB_HAZARD_MBARRIER_COUNT},
    {"the count of mbarrier.init", CLAB_HAZARD_MBARRIER_COUNT},
    {"the count of an arrival", CLAB_HAZARD_MBARRIER_COUNT},
    {"arrive_drop takes more", CLAB_HAZARD_MBARRIER_COUNT},
    {"tx-count leaves its range", CLAB_HAZARD_MBARRIER_COUNT},
    {"pending count leaves its range", CLAB_HAZARD_MBARRIER_COUNT},
    {"with .noComplete completes", CLAB_HAZARD_MBARRIER_COUNT},
    {"is not in shared memory", CLAB_HAZARD_WRONG_SPACE},
    {"is in local memory", CLAB_HAZARD_WRONG_SPACE},
    {"reaches only the executing CTA", CLAB_HAZARD_WRONG_SPACE},
    {"is not in constant memory", CLAB_HAZARD_WRONG_SPACE},
    {"is not in the launch's parameters", CLAB_HAZARD_WRONG_SPACE},
    {"read-only", CLAB_HAZARD_WRONG_SPACE},
    {"out of bounds", CLAB_HAZARD_OUT_OF_BOUNDS},
    {"reserved for the system", CLAB_HAZARD_OUT_OF_BOUNDS},
    {"the swizzled box leaves", CLAB_HAZARD_OUT_OF_BOUNDS},
    {"reaches outside memory", CLAB_HAZARD_OUT_OF_BOUNDS},
};

static enum clab_hazard_kind kind_of(const struct clab_error *error)
{
    if (strncmp(error->message, "barrier ", 8) == 0) {
        return CLAB_HAZARD_BARRIER_COUNT;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(error->message, words[i].text)) {
            return words[i].kind;
        }
    }
    switch (error->native_code) {
    case 700: /* CUDA_ERROR_ILLEGAL_ADDRESS */
        return CLAB_HAZARD_OUT_OF_BOUNDS;
    case 716: /* CUDA_ERROR_MISALIGNED_ADDRESS */
        return CLAB_HAZARD_MISALIGNED;
    case 717: /* CUDA_ERROR_INVALID_ADDRESS_SPACE */
        return CLAB_HAZARD_WRONG_SPACE;
    default:
        return CLAB_HAZARD_FAULT;
    }
}

/* The instruction at a line of the module: faults name it by place. */
static uint32_t site_at(struct check *check, const struct clab_error *error)
{
    const struct emu_image *image = check->run->code->image;
    for (uint32_t c = 0; c < image->n_codes && error->line; c++) {
        const struct emu_code *code = image->codes[c];
        for (uint32_t i = 0; code && i < code->function->n_insns; i++) {
            const struct ptx_insn *insn = &code->function->insns[i];
            if (insn->line == error->line && insn->column == error->column) {
                return site_of(&check->sites, code, i);
            }
        }
    }
    return 0;
}

void check_faults(struct check *check, const struct emu_run *run, clab_status status,
                  const struct clab_error *error)
{
    (void)run;
    if (status != CLAB_FAULT || !error) {
        return;
    }
    const uint32_t site = site_at(check, error);
    if (check_found_has(check, kind_of(error), site)) {
        return; /* seen coming */
    }
    struct clab_hazard *h = check_report(check, kind_of(error), site, 0, 0);
    if (!h) {
        return;
    }
    const struct clab_where *where = &error->where;
    uint64_t cluster = 0;
    if (where->has_cta) {
        cluster = where->cluster[0] +
                  (uint64_t)check->run->clusters[0] *
                      (where->cluster[1] + (uint64_t)check->run->clusters[1] * where->cluster[2]);
        check_party(check, &h->parties[0], cluster, where->cta_rank * 32 + where->warp,
                    where->has_lane ? UINT32_C(1) << where->lane : UINT32_MAX, site, NULL);
        h->parties[0].has_warp = where->has_warp;
    }
    h->within = h->kind == CLAB_HAZARD_REMOTE_BEFORE_START || h->kind == CLAB_HAZARD_REMOTE_AFTER_EXIT ||
                        h->kind == CLAB_HAZARD_RANK_OUT_OF_RANGE
                    ? CLAB_WITHIN_CLUSTER
                    : CLAB_WITHIN_THREAD;
    if (error->has_address) {
        h->has_address = 1;
        h->address = error->address;
        h->space = strncmp(error->space, "shared", 6) == 0 ? CLAB_SPACE_SHARED
                   : strcmp(error->space, "global") == 0   ? CLAB_SPACE_GLOBAL
                   : strcmp(error->space, "local") == 0    ? CLAB_SPACE_LOCAL
                                                           : CLAB_SEVERAL_SPACES;
    }
    snprintf(h->missing, sizeof h->missing, "%.380s", error->message);
    snprintf(h->detail, sizeof h->detail, "%s", error->native_name);
}

/* --- deadlock */

/* Two arrivals at a barrier that count differently. */
static bool counts_differ(const struct check_warp *warp, uint32_t id)
{
    return warp->cta->named[id].counts[1] != 0;
}

/* The first group of waiting threads of a launch; others that wait elsewhere are its other party. */
static bool second_party(struct check *check, struct check_cluster *cl, const struct check_warp *warp,
                         const struct emu_fragment *fragment, uint32_t site, enum clab_hazard_kind kind)
{
    if (kind != CLAB_HAZARD_DEADLOCK || !check->deadlock) {
        return false;
    }
    struct clab_hazard *h = check_found(check, check->deadlock);
    if (check->deadlock_site != site && !h->parties[1].present) {
        check_party(check, &h->parties[1], cl->index, warp->self.agent, fragment->mask, site, "waits");
        check_within(h);
    }
    h->count += check->deadlock_site != site;
    return check->deadlock_site != site;
}

/* Whether the lanes that a warp-level operation misses wait at another such operation or a barrier, so that
   they never come; else they are held up themselves. */
static bool met_elsewhere(const struct emu_warp *warp, uint32_t missing)
{
    for (uint32_t used = warp->used; used; used &= used - 1) {
        const struct emu_fragment *other = &warp->fragments[__builtin_ctz(used)];
        if ((other->mask & missing) &&
            (other->state != EMU_FRAGMENT_WAITING ||
             (other->wait != EMU_WAIT_COLLECTIVE && other->wait != EMU_WAIT_BARRIER))) {
            return false;
        }
    }
    return true;
}

static void waits_at(struct check *check, struct check_cluster *cl, struct check_warp *warp,
                     const struct emu_warp *emu_warp, const struct emu_fragment *fragment)
{
    const struct emu_code *code = fragment->frame->code;
    uint32_t site = site_of(&check->sites, code, fragment->pc->insn);
    enum clab_hazard_kind kind = CLAB_HAZARD_DEADLOCK;
    struct mbarrier *m = NULL;
    char text[256];
    switch (fragment->state == EMU_FRAGMENT_WAITING ? fragment->wait : EMU_WAIT_NONE) {
    case EMU_WAIT_BARRIER: {
        const struct emu_barrier *b = &emu_warp->cta->barriers[fragment->wait_key % EMU_NAMED_BARRIERS];
        kind =
            counts_differ(warp, fragment->wait_key % EMU_NAMED_BARRIERS) ? CLAB_HAZARD_BARRIER_COUNT : kind;
        snprintf(text, sizeof text, "waits at barrier %u, where %u of %u threads have arrived",
                 (unsigned)fragment->wait_key, b->arrived,
                 b->expected ? b->expected : emu_warp->cta->live_threads);
        break;
    }
    case EMU_WAIT_CLUSTER_BARRIER:
        snprintf(text, sizeof text, "waits at the cluster barrier, where %u of %u live threads have arrived",
                 cl->cluster->barrier_arrived, cl->cluster->live_threads);
        break;
    case EMU_WAIT_COLLECTIVE:
        kind = met_elsewhere(emu_warp, (uint32_t)fragment->wait_key & emu_warp->live & ~fragment->mask)
                   ? CLAB_HAZARD_MASK_DIVERGED
                   : CLAB_HAZARD_DEADLOCK;
        snprintf(text, sizeof text, "waits for lanes %08x of its member mask %08x, which never come",
                 (unsigned)fragment->wait_key & emu_warp->live & ~emu_warp->gathered,
                 (unsigned)fragment->wait_key);
        break;
    case EMU_WAIT_MBARRIER: {
        const uint32_t key = (uint32_t)fragment->wait_key, rank = key >> EMU_RANK_SHIFT;
        m = rank < cl->size
                ? check_mbarrier_get(&cl->ctas[rank], key & ((UINT32_C(1) << EMU_RANK_SHIFT) - 1), false)
                : NULL;
        snprintf(text, sizeof text, "waits for a phase of an mbarrier that never completes");
        break;
    }
    default:
        snprintf(text, sizeof text, "goes round a loop that sees nothing change");
        if (warp->polled) {
            m = warp->polled;
            site = warp->polled_site;
        }
        break;
    }
    if (m && m->live && emu_mbarrier_is_live(m->cta->cta, m->offset)) {
        const struct emu_mbarrier_view view = emu_mbarrier_view(m->cta->cta, m->offset);
        m->pending = view.pending;
        m->expected = view.expected;
        if (view.outstanding_bytes) {
            kind = m->expect_bytes || !m->multicast ? CLAB_HAZARD_MBARRIER_TX
                   : m->clc                         ? CLAB_HAZARD_CLC_PEER_UNARMED
                                                    : CLAB_HAZARD_MULTICAST_UNARMED;
        }
        snprintf(text, sizeof text,
                 "waits for a phase of an mbarrier that never completes: %u of %u arrivals pending, %lld "
                 "bytes expected, "
                 "%lld delivered",
                 view.pending, view.expected, (long long)m->expect_bytes, (long long)m->done_bytes);
    }
    if (second_party(check, cl, warp, fragment, site, kind)) {
        return;
    }
    struct clab_hazard *h = check_report(check, kind, site, m ? m->copy_site : 0, 2);
    if (!h) {
        return;
    }
    if (kind == CLAB_HAZARD_DEADLOCK) {
        check->deadlock = check->n_found;
        check->deadlock_site = site;
    }
    check_party(check, &h->parties[0], cl->index, warp->self.agent, fragment->mask, site, "waits");
    h->within = fragment->wait == EMU_WAIT_CLUSTER_BARRIER ? CLAB_WITHIN_CLUSTER : CLAB_WITHIN_CTA;
    if (m) {
        check_place_shared(check, h, warp->cta, m->cta, m->offset, 8);
        check_barrier_state(h, m);
        if (m->copy_site) {
            check_party(check, &h->parties[1], cl->index, m->issuer, UINT32_C(1) << m->copy_lane,
                        m->copy_site, "copy");
        }
    }
    snprintf(h->missing, sizeof h->missing, "%s", text);
    struct clab_str who = {0};
    unsigned lines = 8;
    emu_report_stuck(cl->cluster, &who, &lines);
    snprintf(h->detail, sizeof h->detail, "%.500s", who.text ? who.text : "");
    clab_str_free(&who);
}

void check_deadlock(struct check *check, struct check_cluster *cl)
{
    for (uint32_t rank = 0; rank < cl->size; rank++) {
        for (uint32_t w = 0; w < cl->n_warps; w++) {
            const struct emu_warp *emu_warp = &cl->ctas[rank].cta->warps[w];
            for (uint32_t used = emu_warp->used; used; used &= used - 1) {
                waits_at(check, cl, &cl->ctas[rank].warps[w], emu_warp,
                         &emu_warp->fragments[__builtin_ctz(used)]);
            }
        }
        check_aligned_left(check, &cl->ctas[rank]);
    }
}
