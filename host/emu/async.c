/* Copies under way (async.h): lists of what each warp has issued, groups, completion. PTX ISA 9.0, "Data
   Movement and Conversion Instructions: Asynchronous copy", cp.async.{commit_group, wait_group, wait_all,
   mbarrier.arrive}, cp.async.bulk.{commit_group, wait_group}.

   A cp.async whose CTA has exited is dropped: its destination is gone. A bulk copy from or to a CTA that has
   exited is reported. Source and destination of a bulk copy are accessed at one moment, so that
   wait_group.read is wait_group. */
#include "emu/async.h"

#include <stdlib.h>
#include <string.h>

#include "emu/cost.h"
#include "emu/mbarrier.h"

#define ASYNC_DELAY_MASK UINT64_C(31) /* completions land up to this much later (emu_now) */

struct emu_copies {
    struct emu_cta *cta;
    struct emu_cp_async *cp;
    size_t n_cp, cp_capacity;
    uint32_t cp_commits[EMU_LANES];
    bool flush_posted;
    struct emu_copy *bulk; /* newest first */
    uint32_t bulk_commits[EMU_LANES];
};

uint64_t emu_async_delay(struct emu_cluster *cluster)
{
    return (emu_random(cluster) & ASYNC_DELAY_MASK) + (cluster->run->clocked ? EMU_COST_ASYNC : 0);
}

void emu_copy_tell(const struct emu_cta *cta, uint64_t id, enum emu_event_kind kind, uint64_t address,
                   uint64_t bytes, bool write)
{
    emu_hook_event(
        cta, NULL, NULL,
        &(struct emu_event){.kind = kind, .id = id, .address = address, .value = bytes, .wait = write});
}

const char *emu_copy_complete_tx(const struct emu_cta *issuer, uint64_t id, struct emu_cta *cta,
                                 uint32_t mbarrier, uint32_t bytes)
{
    emu_hook_event(issuer, NULL, NULL,
                   &(struct emu_event){.kind = EMU_EVENT_MBARRIER_COMPLETE_TX,
                                       .id = id,
                                       .rank = cta->rank,
                                       .address = emu_window_offset(mbarrier),
                                       .value = bytes});
    return emu_mbarrier_complete_tx(cta, mbarrier, bytes);
}

static struct emu_copies *copies_of(struct emu_warp *warp)
{
    struct emu_cta *cta = warp->cta;
    struct emu_cta_memory *memory = emu_cta_memory_get(cta);
    if (!memory) {
        return NULL;
    }
    if (!memory->copies) {
        memory->copies = calloc(cta->n_warps, sizeof *memory->copies);
        for (uint32_t i = 0; memory->copies && i < cta->n_warps; i++) {
            memory->copies[i].cta = cta;
        }
    }
    return memory->copies ? &memory->copies[warp->index] : NULL;
}

void emu_cta_memory_reset(struct emu_cta *cta)
{
    struct emu_cta_memory *memory = cta->memory;
    if (!memory) {
        return;
    }
    if (memory->copies) {
        for (uint32_t i = 0; i < cta->n_warps; i++) {
            free(memory->copies[i].cp);
        }
        free(memory->copies);
    }
    free(memory->live);
    free(memory->bytes);
    free(memory);
    cta->memory = NULL;
}

/* --- cp.async */

static void cp_perform(struct emu_cp_async *cp, uint32_t lanes)
{
    for (uint32_t left = cp->mask & lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const uint32_t read = cp->from_bytes[lane];
        if (read == 16) {
            memcpy(cp->to[lane], cp->from[lane], 16);
            continue;
        }
        if (read) {
            memcpy(cp->to[lane], cp->from[lane], read);
        }
        memset(cp->to[lane] + read, 0, cp->bytes - read);
    }
    cp->mask &= ~lanes;
}

/* Drops the copies that are done. */
static void cp_compact(struct emu_copies *copies)
{
    size_t kept = 0;
    for (size_t i = 0; i < copies->n_cp; i++) {
        if (copies->cp[i].mask) {
            if (kept != i) {
                copies->cp[kept] = copies->cp[i];
            }
            kept++;
        }
    }
    copies->n_cp = kept;
}

/* Completes everything that `lanes` have issued. */
static void cp_flush(struct emu_copies *copies, uint32_t lanes)
{
    if (copies->cta->state == EMU_CTA_RUNNING) {
        for (size_t i = 0; i < copies->n_cp; i++) {
            cp_perform(&copies->cp[i], lanes);
        }
    } else {
        copies->n_cp = 0;
    }
    cp_compact(copies);
}

struct cp_event {
    struct emu_async async;
    struct emu_cta *cta;
    uint32_t warp;
    uint32_t arrive; /* lanes that arrive at addresses[lane]; 0: only a flush */
    uint32_t addresses[EMU_LANES];
};

static void cp_event_complete(struct emu_async *item, struct emu_cluster *cluster)
{
    struct cp_event *event = (struct cp_event *)(void *)item;
    struct emu_cta_memory *memory = cluster ? event->cta->memory : NULL;
    if (memory && memory->copies) {
        struct emu_copies *copies = &memory->copies[event->warp];
        if (!event->arrive) {
            copies->flush_posted = false;
        }
        cp_flush(copies, event->arrive ? event->arrive : EMU_ALL);
        if (event->cta->state == EMU_CTA_RUNNING) {
            for (uint32_t left = event->arrive; left; left &= left - 1) {
                const uint32_t address = event->addresses[__builtin_ctz(left)];
                const struct emu_mbarrier_arrival one = {.count = 1};
                uint64_t state;
                emu_hook_event(event->cta, &event->cta->warps[event->warp], NULL,
                               &(struct emu_event){.kind = EMU_EVENT_MBARRIER_CP_DONE,
                                                   .lanes = left & -left,
                                                   .rank = event->cta->rank,
                                                   .address = emu_window_offset(address),
                                                   .value = 1});
                const char *wrong = emu_mbarrier_arrive(event->cta, address, &one, &state);
                if (wrong) {
                    emu_fault_async(cluster, event->cta, EMU_FAULT_ILLEGAL_INSTRUCTION, "shared", address,
                                    "cp.async.mbarrier.arrive: %s", wrong);
                    break;
                }
            }
        }
    }
    free(event);
}

static bool cp_post(struct emu_warp *warp, uint32_t arrive, const uint32_t *addresses)
{
    struct cp_event *event = calloc(1, sizeof *event);
    if (!event) {
        return false;
    }
    event->async.complete = cp_event_complete;
    event->cta = warp->cta;
    event->warp = warp->index;
    event->arrive = arrive;
    if (addresses) {
        memcpy(event->addresses, addresses, sizeof event->addresses);
    }
    emu_async_post(warp->cta->cluster, &event->async, emu_async_delay(warp->cta->cluster));
    return true;
}

struct emu_cp_async *emu_cp_async_new(struct emu_warp *warp)
{
    struct emu_copies *copies = copies_of(warp);
    if (!copies) {
        return NULL;
    }
    if (copies->n_cp == copies->cp_capacity) {
        const size_t capacity = copies->cp_capacity ? 2 * copies->cp_capacity : 8;
        struct emu_cp_async *more = realloc(copies->cp, capacity * sizeof *more);
        if (!more) {
            return NULL;
        }
        copies->cp = more;
        copies->cp_capacity = capacity;
    }
    if (!copies->flush_posted) {
        copies->flush_posted = cp_post(warp, 0, NULL);
        if (!copies->flush_posted) {
            return NULL;
        }
    }
    struct emu_cp_async *cp = &copies->cp[copies->n_cp++];
    cp->mask = warp->exec;
    memcpy(cp->group, copies->cp_commits, sizeof cp->group);
    return cp;
}

bool emu_cp_async_commit(struct emu_warp *warp)
{
    struct emu_copies *copies = copies_of(warp);
    for (uint32_t left = copies ? warp->exec : 0; left; left &= left - 1) {
        copies->cp_commits[__builtin_ctz(left)]++;
    }
    return copies != NULL;
}

void emu_cp_async_wait(struct emu_warp *warp, uint32_t newest, bool all)
{
    const struct emu_cta_memory *memory = warp->cta->memory;
    struct emu_copies *copies = memory && memory->copies ? &memory->copies[warp->index] : NULL;
    if (!copies || !copies->n_cp) {
        return;
    }
    if (all) {
        cp_flush(copies, warp->exec);
        return;
    }
    for (size_t i = 0; i < copies->n_cp; i++) {
        struct emu_cp_async *cp = &copies->cp[i];
        uint32_t due = 0;
        for (uint32_t left = cp->mask & warp->exec; left; left &= left - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(left);
            const uint32_t commits = copies->cp_commits[lane];
            due |= (uint32_t)(commits > newest && cp->group[lane] < commits - newest) << lane;
        }
        cp_perform(cp, due);
    }
    cp_compact(copies);
}

bool emu_cp_async_arrive(struct emu_warp *warp, const uint32_t addresses[EMU_LANES])
{
    return copies_of(warp) && cp_post(warp, warp->exec, addresses);
}

/* --- bulk copies */

static void copy_unlink(struct emu_copy *copy)
{
    if (copy->previous) {
        copy->previous->next = copy->next;
    } else {
        copy->owner->bulk = copy->next;
    }
    if (copy->next) {
        copy->next->previous = copy->previous;
    }
    copy->owner = NULL;
}

static void copy_do(struct emu_copy *copy)
{
    if (!copy->done) {
        copy->done = true;
        copy->cta->cluster->completing = &copy->async;
        copy->perform(copy);
        copy->cta->cluster->completing = NULL;
        emu_copy_tell(copy->cta, copy->id, EMU_EVENT_COPY_DONE, 0, 0, false);
    }
    if (copy->owner) {
        copy_unlink(copy);
    }
}

static void copy_complete(struct emu_async *item, struct emu_cluster *cluster)
{
    struct emu_copy *copy = (struct emu_copy *)(void *)item;
    if (cluster) {
        copy_do(copy);
    }
    free(copy);
}

bool emu_copy_post(struct emu_warp *warp, struct emu_copy *copy, unsigned lane, bool in_group)
{
    struct emu_copies *copies = in_group ? copies_of(warp) : NULL;
    if (in_group && !copies) {
        free(copy);
        return false;
    }
    copy->async.complete = copy_complete;
    copy->cta = warp->cta;
    copy->lane = lane;
    copy->done = false;
    copy->owner = copies;
    copy->previous = NULL;
    copy->next = NULL;
    if (copies) {
        copy->group = copies->bulk_commits[lane];
        copy->next = copies->bulk;
        if (copies->bulk) {
            copies->bulk->previous = copy;
        }
        copies->bulk = copy;
    }
    uint64_t delay = emu_async_delay(warp->cta->cluster);
    if (warp->cta->run->clocked && copy->cycles) {
        delay = delay - EMU_COST_ASYNC + copy->cycles;
    }
    emu_async_post(warp->cta->cluster, &copy->async, delay);
    return true;
}

bool emu_copy_commit(struct emu_warp *warp)
{
    struct emu_copies *copies = copies_of(warp);
    for (uint32_t left = copies ? warp->exec : 0; left; left &= left - 1) {
        copies->bulk_commits[__builtin_ctz(left)]++;
    }
    return copies != NULL;
}

void emu_copy_wait(struct emu_warp *warp, uint32_t newest)
{
    const struct emu_cta_memory *memory = warp->cta->memory;
    if (!memory || !memory->copies) {
        return;
    }
    struct emu_copies *copies = &memory->copies[warp->index];
    struct emu_copy *next;
    for (struct emu_copy *copy = copies->bulk; copy; copy = next) {
        next = copy->next;
        const uint32_t commits = copies->bulk_commits[copy->lane];
        if ((warp->exec >> copy->lane & 1) && commits > newest && copy->group < commits - newest) {
            copy_do(copy);
        }
    }
}

void emu_copy_signal(struct emu_copy *copy, struct emu_cta *cta, uint32_t mbarrier, uint32_t bytes)
{
    const char *wrong = emu_copy_complete_tx(copy->cta, copy->id, cta, mbarrier, bytes);
    if (wrong) {
        emu_fault_async(copy->cta->cluster, cta, EMU_FAULT_ILLEGAL_INSTRUCTION, "shared::cluster", mbarrier,
                        "completion of a copy issued by CTA (%u,%u,%u): %s", copy->cta->ctaid[0],
                        copy->cta->ctaid[1], copy->cta->ctaid[2], wrong);
    }
}

bool emu_copy_alive(struct emu_copy *copy, const struct emu_cta *cta, const char *what)
{
    if (cta->state == EMU_CTA_RUNNING) {
        return true;
    }
    emu_fault_async(
        copy->cta->cluster, cta, EMU_FAULT_LAUNCH_FAILED, "shared::cluster",
        (cta->rank << EMU_RANK_SHIFT) + EMU_SHARED_FIRST,
        "a copy issued by CTA (%u,%u,%u) of rank %u %s shared memory of CTA (%u,%u,%u) of rank %u, which has "
        "exited",
        copy->cta->ctaid[0], copy->cta->ctaid[1], copy->cta->ctaid[2], copy->cta->rank, what, cta->ctaid[0],
        cta->ctaid[1], cta->ctaid[2], cta->rank);
    return false;
}
