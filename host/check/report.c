/* What was found in one launch: one record for each kind and pair of instructions, with a count; who, where
   and what in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "check/check.h"
#include "check/state.h"
#include "emu/machine.h"
#include "emu/module.h"

struct found {
    uint32_t kind, site, other, discriminator, next; /* next: 1 + number in its bucket */
    struct clab_hazard hazard;
};
#define BUCKETS 1024u

static uint32_t bucket_of(uint32_t kind, uint32_t site, uint32_t other, uint32_t discriminator)
{
    const uint64_t mix =
        (((uint64_t)kind << 48) ^ ((uint64_t)site << 32) ^ ((uint64_t)other << 16) ^ discriminator) *
        UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mix >> 40) % BUCKETS;
}

struct clab_hazard *check_report(struct check *check, enum clab_hazard_kind kind, uint32_t site,
                                 uint32_t other, uint32_t discriminator)
{
    if (!check_kind_enabled(kind)) {
        return NULL;
    }
    if (!check->found_buckets) {
        check->found_buckets = check_alloc(BUCKETS * sizeof *check->found_buckets);
    }
    uint32_t *bucket = &check->found_buckets[bucket_of(kind, site, other, discriminator)];
    for (uint32_t at = *bucket; at; at = check->found[at - 1].next) {
        struct found *found = &check->found[at - 1];
        if (found->kind == kind && found->site == site && found->other == other &&
            found->discriminator == discriminator) {
            found->hazard.count++;
            return NULL;
        }
    }
    if (check->n_found == check->found_capacity) {
        check->found_capacity = check->found_capacity ? 2 * check->found_capacity : 16;
        check->found = check_grow(check->found, check->found_capacity * sizeof *check->found);
    }
    struct found *found = &check->found[check->n_found++];
    *found = (struct found){kind, site, other, discriminator, *bucket, {0}};
    *bucket = check->n_found;
    struct clab_hazard *h = &found->hazard;
    h->kind = kind;
    h->severity = clab_hazard_severity_of(kind);
    h->space = CLAB_SEVERAL_SPACES;
    h->count = 1;
    h->seed = check->seed;
    h->launch = check->launch;
    check_symbol(h->kernel, sizeof h->kernel, check->run->code->function->name);
    return h;
}

bool check_found_has(const struct check *check, enum clab_hazard_kind kind, uint32_t site)
{
    for (uint32_t i = 0; i < check->n_found; i++) {
        if (check->found[i].kind == kind && check->found[i].site == site) {
            return true;
        }
    }
    return false;
}

struct clab_hazard *check_found(struct check *check, uint32_t number)
{
    return &check->found[number - 1].hazard;
}

void check_say(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to, size, format, args);
    va_end(args);
}

static void party_where(const struct check_shape *shape, struct clab_hazard_party *party, uint64_t cluster,
                        uint32_t rank)
{
    party->present = 1;
    party->rank = rank;
    const uint32_t *size = shape->cluster, x = shape->grid[0] / size[0], y = shape->grid[1] / size[1];
    party->cluster[0] = (uint32_t)(cluster % x);
    party->cluster[1] = (uint32_t)(cluster / x % y);
    party->cluster[2] = (uint32_t)(cluster / x / y);
    const uint32_t at[3] = {rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
    for (unsigned k = 0; k < 3; k++) {
        party->cta[k] = party->cluster[k] * size[k] + at[k];
    }
    party->cta_linear =
        party->cta[0] + (uint64_t)shape->grid[0] * (party->cta[1] + (uint64_t)shape->grid[1] * party->cta[2]);
}

static void party_code(const struct sites *sites, struct clab_hazard_party *party, uint32_t site_number,
                       const char *action)
{
    const struct site *site = site_number < sites->n ? &sites->list[site_number] : NULL;
    const struct ptx_insn *insn = site && site_number ? site_insn(site) : NULL;
    snprintf(party->action, sizeof party->action, "%s", action ? action : insn ? site->action : "");
    if (!insn) {
        return;
    }
    const struct ptx_module *ptx = emu_module_ptx(site->code->image->module);
    ptx_insn_text(ptx, insn, party->instruction, sizeof party->instruction);
    snprintf(party->ptx_file, sizeof party->ptx_file, "%s", ptx->name ? ptx->name : "");
    party->ptx_line = insn->line;
    party->ptx_column = insn->column;
    const char *file = "";
    if (ptx_insn_place(ptx, insn, 0, &file, &party->source_line, &party->source_column)) {
        snprintf(party->source_file, sizeof party->source_file, "%s", file);
    }
    uint32_t column;
    for (unsigned level = 1; ptx_insn_place(ptx, insn, level, &file, &party->caller_line, &column); level++) {
        snprintf(party->caller_file, sizeof party->caller_file, "%s", file);
    }
}

static uint32_t issuer_of(const struct check *check, uint64_t cluster, uint32_t agent)
{
    for (const struct check_cluster *cl = check->live; cl; cl = cl->next) {
        for (unsigned b = 0; cl->index == cluster && b < 64; b++) {
            for (const struct mbarrier *m = cl->mbarriers[b]; m; m = m->next) {
                if (m->agent == agent) {
                    return m->issuer;
                }
            }
        }
    }
    return UINT32_MAX;
}

void check_party(struct check *check, struct clab_hazard_party *party, uint64_t cluster, uint32_t agent,
                 uint32_t lanes, uint32_t site, const char *action)
{
    const uint32_t warp =
        agent < CHECK_MBAR_AGENT ? agent % CHECK_WARP_AGENTS : issuer_of(check, cluster, agent);
    party_where(&check->shape, party, cluster, warp == UINT32_MAX ? 0 : warp >> 5);
    party->has_warp = warp != UINT32_MAX;
    party->warp = warp & 31;
    party->lanes = lanes;
    party_code(&check->sites, party, site, action);
}

void check_party_past(const struct check_shape *shape, const struct sites *sites,
                      struct clab_hazard_party *party, uint64_t cluster, uint32_t agent, uint32_t lanes,
                      uint32_t site)
{
    party_where(shape, party, cluster, agent < CHECK_MBAR_AGENT ? agent % CHECK_WARP_AGENTS >> 5 : 0);
    party->has_warp = agent < CHECK_MBAR_AGENT;
    party->warp = agent & 31;
    party->lanes = lanes;
    party_code(sites, party, site, NULL);
}

void check_party_cta(struct check *check, struct clab_hazard_party *party, uint64_t cluster, uint32_t rank,
                     const char *action)
{
    party_where(&check->shape, party, cluster, rank);
    snprintf(party->action, sizeof party->action, "%s", action);
}

void check_within(struct clab_hazard *h)
{
    const struct clab_hazard_party *a = &h->parties[0], *b = &h->parties[1];
    h->within = !b->present                                              ? CLAB_WITHIN_THREAD
                : memcmp(a->cluster, b->cluster, sizeof a->cluster) != 0 ? CLAB_WITHIN_GRID
                : a->rank != b->rank                                     ? CLAB_WITHIN_CLUSTER
                                                                         : CLAB_WITHIN_CTA;
}

/* --- symbols */

void check_symbol(char *out, size_t bytes, const char *name)
{
    const size_t n = strlen(name);
    if (n < bytes) {
        memcpy(out, name, n + 1);
    } else {
        clab_demangle(name, out, bytes);
    }
}

static void shared_symbol(struct check *check, struct clab_hazard *h, uint32_t offset)
{
    const struct emu_image *image = check->run->code->image;
    uint32_t inside = 0;
    const struct ptx_var *var = emu_image_shared_at(image, offset - EMU_SHARED_FIRST, &inside);
    if (var) {
        check_symbol(h->symbol, sizeof h->symbol, var->name);
        h->symbol_offset = inside;
    }
}

void check_place_shared(struct check *check, struct clab_hazard *h, const struct check_cta *actor,
                        const struct check_cta *owner, uint32_t offset, uint32_t bytes)
{
    const uint32_t room = owner->cta->room_bytes;
    if (room != owner->cta->shared_bytes && offset >= room) { /* the reserved 1 KiB, which lies behind */
        offset -= room;
    }
    h->space = actor == owner ? CLAB_SPACE_SHARED : CLAB_SPACE_REMOTE;
    h->has_address = 1;
    h->owner_rank = owner->rank;
    h->address = offset;
    h->bytes = bytes;
    shared_symbol(check, h, offset);
}

void check_place_global(struct check *check, struct clab_hazard *h, uint64_t address, uint32_t bytes)
{
    h->space = CLAB_SPACE_GLOBAL;
    h->has_address = 1;
    h->address = address;
    h->bytes = bytes;
    const struct emu_module *module = check->run->code->image->module;
    const struct ptx_module *ptx = emu_module_ptx(module);
    for (uint32_t i = 0; i < ptx->n_vars; i++) {
        uint64_t start;
        const struct ptx_var *var = ptx->vars[i];
        if (var->space == PTX_SPACE_GLOBAL && emu_module_place(module, var, &start) &&
            address - start < var->bytes) {
            check_symbol(h->symbol, sizeof h->symbol, var->name);
            h->symbol_offset = address - start;
            return;
        }
    }
    uint64_t base, size;
    enum emu_memory_kind kind;
    if (emu_memory_find(check->run->machine, address, &base, &size, &kind)) {
        h->symbol_offset = address - base;
        check_say(h->detail, sizeof h->detail, "byte %llu of an allocation of %llu bytes",
                  (unsigned long long)(address - base), (unsigned long long)size);
    }
}

void check_barrier_state(struct clab_hazard *h, const struct mbarrier *m)
{
    h->barrier = (struct clab_hazard_barrier){.present = 1,
                                              .id = m->offset,
                                              .phase = m->phase,
                                              .pending = m->pending,
                                              .expected = m->expected,
                                              .expected_bytes = m->expect_bytes,
                                              .delivered_bytes = m->done_bytes};
}

/* --- handing over */

static int worse(const void *x, const void *y)
{
    const struct clab_hazard *a = x, *b = y;
    if (a->severity != b->severity) {
        return a->severity < b->severity ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return (a->launch > b->launch) - (a->launch < b->launch);
}

void check_sort(struct clab_hazard *hazards, size_t n)
{
    if (n > 1) {
        qsort(hazards, n, sizeof *hazards, worse);
    }
}

/* Reads of memory that nothing had written yet, where a store or copy that should have come first is reported
   for them: the same mistake, met in another order. */
static bool explained(const struct check *check, const struct found *it)
{
    for (uint32_t i = 0; it->kind == CLAB_HAZARD_UNINITIALIZED && i < check->n_found; i++) {
        const struct found *by = &check->found[i];
        const bool race = (by->kind >= CLAB_HAZARD_RACE_SHARED && by->kind <= CLAB_HAZARD_NARROW_SCOPE) ||
                          (by->kind >= CLAB_HAZARD_PROXY_FENCE && by->kind <= CLAB_HAZARD_ASYNC_SOURCE);
        if (race && (by->site == it->site || by->other == it->site)) {
            return true;
        }
    }
    return false;
}

/* One entry for a pair of instructions: the parties that are furthest apart stand for all. */
static bool wider(struct check *check, uint32_t index)
{
    struct found *it = &check->found[index];
    for (uint32_t i = 0; i < check->n_found; i++) {
        struct found *by = &check->found[i];
        if (i != index && by->kind == it->kind && by->hazard.count &&
            ((by->site == it->site && by->other == it->other) ||
             (by->site == it->other && by->other == it->site)) &&
            (by->hazard.within > it->hazard.within ||
             (by->hazard.within == it->hazard.within && i < index))) {
            by->hazard.count += it->hazard.count;
            it->hazard.count = 0;
            return true;
        }
    }
    return false;
}

size_t check_found_give(struct check *check, struct clab_hazard *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < check->n_found; i++) {
        struct found *it = &check->found[i];
        if (it->hazard.count && !explained(check, it) && !wider(check, i)) {
            if (out) {
                out[n] = it->hazard;
            }
            n++;
        }
    }
    return n;
}

void check_found_free(struct check *check)
{
    free(check->found);
    free(check->found_buckets);
    check->found = NULL;
    check->found_buckets = NULL;
    check->n_found = check->found_capacity = 0;
}
