/* The checker's hooks: from what the emulator tells to the files of each family. One launch is checked at a
   time; a second one waits, so that concurrent kernels run one after the other under the checker. */
#include "check/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/state.h"
#include "emu/machine.h"
#include "emu/report.h"

static struct {
    pthread_mutex_t launch, lock;
    _Atomic int enabled;
    _Atomic unsigned char off[CLAB_HAZARD_KINDS];
    _Atomic uint64_t launches;
    _Atomic int lost; /* since hazards were taken last */
    struct clab_hazard *hazards;
    size_t n;
    int log; /* 1 + descriptor of the log; 0 none */
    struct check check;
} all = {.launch = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

bool check_kind_enabled(unsigned kind)
{
    return !atomic_load_explicit(&all.off[kind], memory_order_relaxed);
}

/* --- memory is out */

void check_lost(void)
{
    if (!atomic_exchange(&all.lost, 1) && all.log) {
        fputs("clusterlab: out of memory for the hazard checker: not everything was checked\n", stderr);
    }
}

/* A launch that is no longer checked does not go on: it would look clean. */
static void give_up(struct check *check)
{
    check->lost = true;
    check_lost();
    clocks_abandon();
    emu_run_fail(check->run, CLAB_NO_MEMORY, "out of memory for the hazard checker");
}

/* --- accesses */

/* The commonest access: a row of words in the CTA's own shared memory, of which nothing is to be said. Takes
   no memory, so that it needs no attempt. False: access_seen does the whole of it. */
static inline bool access_quick(struct check *check, const struct emu_warp *emu_warp, const struct emu_op *op,
                                const struct emu_access *access)
{
    if (access->lanes != UINT32_MAX || access->bytes != 4 || access->shape != EMU_SHAPE_ROW ||
        !access->owner) {
        return false;
    }
    struct check_warp *warp = check_warp_of(emu_warp);
    const uint32_t number = site_known(&check->sites, emu_warp->fragment->frame->code, op->insn);
    if (!warp || warp->n_groups != 1 || !number) {
        return false;
    }
    struct check_cluster *cl = warp->cta->cluster;
    const struct site *site = &check->sites.list[number];
    if (&cl->ctas[access->owner->rank] != warp->cta || site->strong || site->cp_async) {
        return false;
    }
    warp->last_time = check_now(cl);
    return check_shared_quick(check, warp, access, cl->now, number);
}

CHECK_APART static void access_seen(struct check *check, const struct emu_warp *emu_warp,
                                    const struct emu_op *op, const struct emu_access *access)
{
    if (access->space != CLAB_SPACE_SHARED && access->space != CLAB_SPACE_REMOTE &&
        access->space != CLAB_SPACE_GLOBAL) {
        return;
    }
    struct check_warp *warp = check_warp_of(emu_warp);
    if (!warp) {
        return;
    }
    struct check_cluster *cl = warp->cta->cluster;
    const uint32_t number = site_of(&check->sites, emu_warp->fragment->frame->code, op->insn);
    const struct site *site = &check->sites.list[number];
    struct check_cta *owner = access->owner ? &cl->ctas[access->owner->rank] : NULL;
    if (site->cp_async) {
        check_cp_async(check, warp, access, number);
        return;
    }
    if (access->space == CLAB_SPACE_REMOTE) {
        check_remote_access(check, warp, owner, access, number);
    }
    if (site->strong) {
        check_synchronise(check, warp, access, site, number, true);
    }
    warp->last_time = check_now(cl);
    for (uint32_t i = 0; i < warp->n_groups; i++) {
        const struct group *group = &warp->groups[i];
        struct emu_access part = *access;
        part.lanes &= group->lanes;
        if (!part.lanes) {
            continue;
        }
        const struct actor actor = {.check = check,
                                    .cl = cl,
                                    .warp = warp,
                                    .emu_warp = emu_warp,
                                    .known = &group->mem,
                                    .proxy = group->proxy,
                                    .group = group,
                                    .agent = warp->self.agent,
                                    .time = cl->now,
                                    .site = number,
                                    .same_lane = UINT32_MAX,
                                    .write = access->kind != EMU_ACCESS_LOAD,
                                    .reduces = access->kind == EMU_ACCESS_ATOMIC,
                                    .strong = site->strong,
                                    .map = site->tensor,
                                    .scope = (enum check_scope)site->scope};
        if (owner) {
            check_shared(&actor, owner, &part);
        } else {
            check_global(&actor, &part);
        }
    }
    if (site->strong) {
        check_synchronise(check, warp, access, site, number, false);
    }
}

static void on_access(void *user, const struct emu_warp *emu_warp, const struct emu_op *op,
                      const struct emu_access *access)
{
    struct check *check = user;
    struct check_attempt attempt;
    if (check->lost || access_quick(check, emu_warp, op, access)) {
        return;
    }
    if (CHECK_ATTEMPT(attempt)) {
        access_seen(check, emu_warp, op, access);
    } else {
        give_up(check);
    }
    check_attempt_end(&attempt);
}

/* --- events */

CHECK_APART static void event_seen(struct check *check, const struct emu_cta *emu_cta,
                                   const struct emu_warp *emu_warp, const struct emu_op *op,
                                   const struct emu_event *event)
{
    if (event->kind == EMU_EVENT_CLUSTER_START) {
        check_cluster_start(check, emu_cta->cluster);
        return;
    }
    struct check_cluster *cl = check_cluster_of(emu_cta->cluster);
    if (!cl) {
        return;
    }
    struct check_cta *cta = check_cta_of(cl, emu_cta);
    struct check_warp *warp = emu_warp ? check_warp_of(emu_warp) : NULL;
    const struct emu_frame *frame = emu_warp && emu_warp->fragment ? emu_warp->fragment->frame : NULL;
    const uint32_t site = frame && op ? site_of(&check->sites, frame->code, op->insn) : 0;
    switch (event->kind) {
    case EMU_EVENT_CLUSTER_END: {
        const bool stopped = check->run->status != CLAB_OK;
        if (check->run->status == CLAB_DEADLOCK) {
            check_deadlock(check, cl);
        }
        check_mbarriers_end(check, cl, stopped);
        check_cluster_end(check, emu_cta->cluster);
        break;
    }
    case EMU_EVENT_EXIT:
        check_thread_exit(check, warp, event->lanes, site);
        break;
    case EMU_EVENT_CTA_EXIT:
        check_cta_exit(check, cta);
        check_copies_exit(check, cta);
        break;
    case EMU_EVENT_BARRIER_ARRIVE:
        check_barrier_arrive(check, warp, event, site);
        break;
    case EMU_EVENT_BARRIER_COMPLETE:
        check_barrier_complete(check, cta, (uint32_t)event->value);
        break;
    case EMU_EVENT_CLUSTER_ARRIVE:
        check_cluster_arrive(check, warp, event->lanes, site);
        break;
    case EMU_EVENT_CLUSTER_COMPLETE:
        check_cluster_complete(check, cl);
        break;
    case EMU_EVENT_CLUSTER_WAIT:
        check_cluster_wait(check, warp, event->lanes);
        break;
    case EMU_EVENT_MBARRIER_INIT:
    case EMU_EVENT_MBARRIER_INVAL:
    case EMU_EVENT_MBARRIER_ARRIVE:
    case EMU_EVENT_MBARRIER_EXPECT:
    case EMU_EVENT_MBARRIER_COMPLETE_TX:
    case EMU_EVENT_MBARRIER_PHASE:
    case EMU_EVENT_MBARRIER_TEST:
    case EMU_EVENT_MBARRIER_CP_ARRIVE:
    case EMU_EVENT_MBARRIER_CP_DONE:
        check_mbarrier(check, emu_cta, emu_warp, event, site);
        break;
    case EMU_EVENT_COMMIT:
    case EMU_EVENT_WAIT_GROUP:
        check_group_event(check, warp, event, site);
        break;
    case EMU_EVENT_COPY_GLOBAL:
    case EMU_EVENT_COPY_DONE:
        check_copy_event(check, emu_cta, event);
        break;
    case EMU_EVENT_CLC_QUERY:
        check_clc_query(check, warp, event, site);
        break;
    case EMU_EVENT_FENCE:
        check_fence(check, warp, event->lanes, &check->sites.list[site], event->address);
        break;
    case EMU_EVENT_TENSOR_MAP: {
        const bool shared = event->value == CLAB_SPACE_SHARED;
        const struct emu_access access = {.kind = event->wait ? EMU_ACCESS_STORE : EMU_ACCESS_LOAD,
                                          .shape = EMU_SHAPE_ONE,
                                          .space = (enum clab_space_id)event->value,
                                          .lanes = event->lanes,
                                          .bytes = CHECK_TENSOR_MAP_BYTES,
                                          .owner = shared ? emu_cta : NULL,
                                          .at = (const unsigned char *)(uintptr_t)event->address};
        access_seen(check, emu_warp, op, &access);
        break;
    }
    case EMU_EVENT_GRID_DEPENDENCY:
        check_grid_dependency(check, warp, event->lanes, site);
        break;
    case EMU_EVENT_COLLECTIVE:
        check_collective(check, emu_warp, warp, op, event, site);
        break;
    case EMU_EVENT_CTA_START:
    case EMU_EVENT_CLUSTER_START:
    case EMU_EVENT_CLC_ANSWER:
        break;
    }
}

/* The commonest event: whole warps at a barrier that passes on nothing but times. Takes no memory, as
   access_quick. */
static inline bool event_quick(struct check *check, const struct emu_cta *emu_cta,
                               const struct emu_warp *emu_warp, const struct emu_op *op,
                               const struct emu_event *event)
{
    struct check_cluster *cl = check_cluster_of(emu_cta->cluster);
    if (!cl) {
        return false;
    }
    if (event->kind == EMU_EVENT_BARRIER_COMPLETE) {
        return check_barrier_quick(check_cta_of(cl, emu_cta), (uint32_t)event->value);
    }
    if (event->kind != EMU_EVENT_BARRIER_ARRIVE || !event->wait) {
        return false;
    }
    struct check_warp *warp = check_warp_of(emu_warp);
    const uint32_t site = site_known(&check->sites, emu_warp->fragment->frame->code, op->insn);
    if (!site || warp->aligned_site || (warp->present & ~warp->exited & ~event->lanes)) {
        return false;
    }
    check_barrier_arrive(check, warp, event, site);
    return true;
}

static void on_event(void *user, const struct emu_cta *emu_cta, const struct emu_warp *emu_warp,
                     const struct emu_op *op, const struct emu_event *event)
{
    struct check *check = user;
    struct check_attempt attempt;
    if (check->lost) {
        if (event->kind == EMU_EVENT_CLUSTER_END) {
            check_cluster_end(check, emu_cta->cluster);
        }
        return;
    }
    if (event_quick(check, emu_cta, emu_warp, op, event)) {
        return;
    }
    if (CHECK_ATTEMPT(attempt)) {
        event_seen(check, emu_cta, emu_warp, op, event);
    } else {
        give_up(check);
        if (event->kind == EMU_EVENT_CLUSTER_END) {
            check_cluster_end(check, emu_cta->cluster);
        }
    }
    check_attempt_end(&attempt);
}

/* st.async and red.async of .gpu or .sys scope: a strong store or reduction that releases. That it lands
   later is of no use to anybody who may not see it at once. */
CHECK_APART static void transfer_seen(struct check *check, const struct emu_warp *emu_warp,
                                      const struct emu_op *op, const struct emu_transfer *transfer)
{
    const uint32_t number = site_of(&check->sites, emu_warp->fragment->frame->code, op->insn);
    const struct site *site = &check->sites.list[number];
    if (transfer->kind != EMU_TRANSFER_STORE || !site->release) {
        check_transfer(check, emu_warp, number, transfer);
        return;
    }
    const struct emu_access access = {.kind = site->store ? EMU_ACCESS_STORE : EMU_ACCESS_ATOMIC,
                                      .shape = EMU_SHAPE_ONE,
                                      .space = CLAB_SPACE_GLOBAL,
                                      .lanes = UINT32_C(1) << transfer->lane,
                                      .bytes = (uint32_t)transfer->global_bytes,
                                      .at = (const unsigned char *)(uintptr_t)transfer->global};
    access_seen(check, emu_warp, op, &access);
}

static void on_transfer(void *user, const struct emu_warp *emu_warp, const struct emu_op *op,
                        const struct emu_transfer *transfer)
{
    struct check *check = user;
    struct check_attempt attempt;
    if (check->lost || !check_cluster_of(emu_warp->cta->cluster)) {
        return;
    }
    if (CHECK_ATTEMPT(attempt)) {
        transfer_seen(check, emu_warp, op, transfer);
    } else {
        give_up(check);
    }
    check_attempt_end(&attempt);
}

/* --- launches */

static void on_begin(void *user, struct emu_run *run)
{
    struct check *check = user;
    pthread_mutex_lock(&all.launch);
    memset(check, 0, sizeof *check);
    check->run = run;
    check->shared_row = check_shared_row();
    check->launch = (uint32_t)(atomic_fetch_add(&all.launches, 1) + 1);
    check->seed = run->machine->options.seed;
    check->task = run->launch->task;
    for (unsigned k = 0; k < 3; k++) {
        check->shape.grid[k] = run->grid[k];
        check->shape.cluster[k] = run->cluster[k];
    }
    check->shape.threads_per_cta = run->threads_per_cta;
    struct check_attempt attempt;
    if (CHECK_ATTEMPT(attempt)) {
        check_global_new(check);
        check_grids_begin(check);
    } else {
        give_up(check);
    }
    check_attempt_end(&attempt);
}

bool check_log_to(const char *path)
{
    const int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0) {
        return false;
    }
    all.log = log + 1;
    atomic_store(&all.enabled, 1);
    return true;
}

/* An entry that cannot be written is lost; the program that is checked goes on. */
static void log_write(struct clab_check_log *entry)
{
    entry->magic = CLAB_CHECK_LOG_MAGIC;
    entry->hazard_bytes = sizeof entry->hazard;
    if (write(all.log - 1, entry, sizeof *entry) != (ssize_t)sizeof *entry) {
        fputs("clusterlab: the log of the hazard checker cannot be written\n", stderr);
    }
}

/* Room for `more` hazards behind those that wait to be taken; NULL when memory is out. */
static struct clab_hazard *room(size_t more)
{
    struct clab_hazard *hazards = realloc(all.hazards, (all.n + more) * sizeof *all.hazards);
    if (!hazards) {
        check_lost();
        return NULL;
    }
    all.hazards = hazards;
    return hazards + all.n;
}

void check_add(const struct clab_hazard *hazard)
{
    pthread_mutex_lock(&all.lock);
    struct clab_hazard *at;
    if (all.log) {
        struct clab_check_log entry = {.hazard = *hazard};
        log_write(&entry);
    } else if ((at = room(1)) != NULL) {
        *at = *hazard;
        all.n++;
    }
    pthread_mutex_unlock(&all.lock);
}

static void keep(struct check *check)
{
    pthread_mutex_lock(&all.lock);
    const size_t more = check_found_give(check, NULL);
    struct clab_hazard *at;
    if (all.log) {
        struct clab_hazard *found = calloc(more ? more : 1, sizeof *found);
        struct clab_check_log entry = {.is_launch = 1};
        log_write(&entry);
        if (found) {
            check_found_give(check, found);
        } else {
            check_lost();
        }
        for (size_t i = 0; found && i < more; i++) {
            entry = (struct clab_check_log){.hazard = found[i]};
            log_write(&entry);
        }
        free(found);
    } else if (more && (at = room(more)) != NULL) {
        check_found_give(check, at);
        all.n += more;
    }
    pthread_mutex_unlock(&all.lock);
}

static void on_end(void *user, struct emu_run *run, clab_status status, const struct clab_error *error)
{
    struct check *check = user;
    if (check->run != run) {
        return; /* the launch failed before it began */
    }
    struct check_attempt attempt;
    if (CHECK_ATTEMPT(attempt)) {
        if (!check->lost) {
            check_faults(check, run, status, error);
            check_clc_end(check);
        }
    } else {
        check->lost = true;
        check_lost();
        clocks_abandon();
    }
    check_attempt_end(&attempt);
    check_grids_end(check);
    check_memory_freed(run->workspace, run->workspace ? EMU_WORKSPACE_BYTES : 0);
    keep(check);
    check_found_free(check);
    check_global_free(check);
    check_clusters_free(check);
    clocks_end();
    sites_free(&check->sites);
    check->run = NULL;
    pthread_mutex_unlock(&all.launch);
}

const struct emu_hooks *check_hooks(void)
{
    static const struct emu_hooks hooks = {.user = &all.check,
                                           .one_thread = true,
                                           .whole_lives = true,
                                           .begin = on_begin,
                                           .end = on_end,
                                           .access = on_access,
                                           .event = on_event,
                                           .transfer = on_transfer};
    return atomic_load(&all.enabled) ? &hooks : NULL;
}

/* --- the channel */

static void enable(int on)
{
    atomic_store(&all.enabled, on != 0);
}

static void enable_kind(uint32_t kind, int on)
{
    if (kind < CLAB_HAZARD_KINDS) {
        atomic_store(&all.off[kind], on == 0);
    }
}

static int take(struct clab_hazard **out, size_t *out_count)
{
    pthread_mutex_lock(&all.lock);
    if (atomic_exchange(&all.lost, 0)) {
        *out = NULL;
        *out_count = 0;
        pthread_mutex_unlock(&all.lock);
        return -1;
    }
    *out = all.hazards;
    *out_count = all.n;
    all.hazards = NULL;
    all.n = 0;
    pthread_mutex_unlock(&all.lock);
    check_sort(*out, *out_count);
    return 0;
}

static uint64_t launches(void)
{
    return atomic_load(&all.launches);
}

const struct clab_hazards check_channel = {.size_bytes = sizeof check_channel,
                                           .hazard_bytes = sizeof(struct clab_hazard),
                                           .enable = enable,
                                           .enable_kind = enable_kind,
                                           .take = take,
                                           .launches = launches};
