/* Launches without an order between them. Under the checker they run one after the other, and each is
   compared with those before that it does not know to be done: same stream, events, synchronisation by the
   host (the driver keeps these orders: emu/api_order.c). The shadows of global memory that launches leave
   behind are all that it takes: as a whole they are ordered or not.

   Programmatic dependent launch (PTX ISA 9.0, "griddepcontrol"): a grid that may start before the one before
   it in the stream has ended knows nothing of that one until griddepcontrol.wait. It is taken to overlap only
   when the grid before has executed griddepcontrol.launch_dependents. UNVERIFIED: without that instruction a
   dependent grid sees all that the one before it did.

   Copies and sets by the driver take part in the same way, with the ranges that they touch; so do allocations
   in stream order, which come before every use, and what frees in stream order, which comes after. Whatever
   ran first, the verdict is the same: who comes later is compared with all before that it does not know, and
   memory that was freed too early is one kind of hazard, whether it is the access that finds it gone or the
   free that finds the access.

   Nodes of one graph launch are ordered by its edges.

   Two grids that synchronise through flags of their own, with a release in the one and an acquire in the
   other, are passed over. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "check/check.h"
#include "check/global.h"

#define MOST_KEPT       256u
#define MOST_KEPT_BYTES ((size_t)512 << 20)
#define PAGE_BYTES      (1u << PAGE_SHIFT)
#define LINE_BYTES      (1u << LINE_SHIFT)
#define SITE_OF_PAST    0x10000u /* added to the site numbers of another launch */

/* What a launch that has ended did to global memory. */
struct footprint {
    struct footprint *next; /* older */
    struct global_shadow *shadow;
    struct sites sites;
    struct check_shape shape;
    char kernel[256];
    uint32_t launch;
    uint64_t stream, number, seed;
    uint32_t node;
    bool dependents, in_use; /* in_use: `prior` of the launch that runs */
    bool spoilt;             /* memory was out while its shadow was looked at: only to be freed */
    size_t bytes;
    struct check_range ranges[2]; /* instead of a shadow: a copy or set by the driver */
    unsigned n_ranges;
    bool frees; /* its range was freed while `launch` ran: for that launch's end only */
};

static struct {
    pthread_mutex_t lock;
    struct footprint *newest;
    uint32_t running; /* the launch that runs; 0 none */
    _Atomic unsigned n;
} past = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void footprint_free(struct footprint *f)
{
    check_shadow_free(f->shadow);
    sites_free(&f->sites);
    free(f);
}

static size_t bytes_of(const struct global_shadow *g)
{
    size_t bytes = g->n_used * sizeof(struct page) + g->records_capacity * sizeof *g->records +
                   (size_t)g->cells_capacity * WORDS * sizeof *g->cells +
                   g->lists_capacity * sizeof *g->lists + g->bytes_capacity * sizeof *g->bytes;
    for (size_t i = 0; i < g->n_used; i++) {
        bytes += g->used[i].page->reads_capacity * sizeof(struct read);
    }
    return bytes;
}

/* Memory was out while shadows were looked at: nobody may look again. With the lock. */
static void spoil(void)
{
    for (struct footprint *f = past.newest; f; f = f->next) {
        f->spoilt = true;
    }
    check_lost();
}

/* Lets go of all for which `drop` is true. */
static void drop_if(bool (*drop)(const struct footprint *f, const void *of, size_t n), const void *of,
                    size_t n)
{
    if (!atomic_load(&past.n)) {
        return;
    }
    pthread_mutex_lock(&past.lock);
    for (struct footprint **at = &past.newest; *at;) {
        struct footprint *f = *at;
        if (!f->in_use && drop(f, of, n)) {
            *at = f->next;
            footprint_free(f);
            atomic_fetch_sub(&past.n, 1);
        } else {
            at = &f->next;
        }
    }
    pthread_mutex_unlock(&past.lock);
}

static bool is_known(const struct footprint *f, const void *of, size_t n)
{
    const struct check_known *known = of;
    for (size_t i = 0; i < n; i++) {
        if (known[i].stream == f->stream && f->number <= known[i].number) {
            return true;
        }
    }
    return false;
}

static bool any(const struct footprint *f, const void *of, size_t n)
{
    (void)f;
    (void)of;
    (void)n;
    return true;
}

void check_launches_known(const struct check_known *known, size_t n)
{
    drop_if(is_known, known, n);
}

void check_launches_settled(void)
{
    drop_if(any, NULL, 0);
}

CHECK_APART static void memory_freed(uint64_t address, uint64_t bytes)
{
    for (struct footprint *f = past.newest; f; f = f->next) {
        struct global_shadow *g = f->spoilt ? NULL : f->shadow;
        const uint64_t end = address + bytes;
        for (unsigned i = 0; i < (f->frees ? 0 : f->n_ranges); i++) {
            if (f->ranges[i].address - address < bytes ||
                address - f->ranges[i].address < f->ranges[i].width) {
                f->ranges[i].rows = 0;
            }
        }
        for (uint64_t at = address & ~(uint64_t)(PAGE_BYTES - 1); g && at < end; at += PAGE_BYTES) {
            const uint64_t number = (at - g->base) >> PAGE_SHIFT;
            struct page *page = number < g->n_pages ? g->pages[number] : NULL;
            if (!page) {
                continue;
            }
            check_shadow_settle(g, page, at);
            for (uint32_t l = 0; l < LINES; l++) {
                const uint64_t line = at + l * LINE_BYTES;
                if (line + LINE_BYTES > address && line < end) {
                    page->lines[l] = (struct line){0};
                }
            }
        }
    }
}

void check_memory_freed(uint64_t address, uint64_t bytes)
{
    struct check_attempt attempt;
    if (!atomic_load(&past.n) || bytes == 0) {
        return;
    }
    pthread_mutex_lock(&past.lock);
    if (CHECK_ATTEMPT(attempt)) {
        memory_freed(address, bytes);
    } else {
        spoil();
    }
    check_attempt_end(&attempt);
    pthread_mutex_unlock(&past.lock);
}

/* --- two launches */

#define NOTHING_ORDERS \
    "neither one stream, nor an event that is waited for, nor a synchronisation of the host"

static const struct site *site_at(const struct sites *sites, const struct global_shadow *g,
                                  uint32_t reference)
{
    return &sites->list[g->records[reference >> 5].site];
}

/* Atomics and other strong operations of .gpu scope do not race with each other. */
static bool both_strong(const struct site *a, const struct site *b)
{
    return a->strong && b->strong && a->scope == SCOPE_GPU && b->scope == SCOPE_GPU && site_same_size(a, b);
}

static bool any_release(const struct sites *sites)
{
    for (uint32_t i = 1; i < sites->n; i++) {
        if (sites->list[i].release || sites->list[i].fence_release) {
            return true;
        }
    }
    return false;
}

static bool any_acquire(const struct sites *sites)
{
    for (uint32_t i = 1; i < sites->n; i++) {
        if (sites->list[i].acquire || sites->list[i].fence_acquire) {
            return true;
        }
    }
    return false;
}

static uint32_t lanes_of(const struct record *r, uint32_t reference)
{
    return r->shift == 0 && (r->lanes & (r->lanes - 1)) ? r->lanes : UINT32_C(1) << (reference & 31);
}

static void report(struct check *check, const struct footprint *f, enum clab_hazard_kind kind,
                   uint64_t address, uint32_t site, uint64_t cluster, uint32_t agent, uint32_t lanes,
                   uint32_t theirs)
{
    const struct record *r = &f->shadow->records[theirs >> 5];
    struct clab_hazard *h = check_report(check, kind, site, SITE_OF_PAST + r->site, f->launch);
    if (!h) {
        return;
    }
    check_party(check, &h->parties[0], cluster, agent, lanes, site, NULL);
    check_party_past(&f->shape, &f->sites, &h->parties[1], r->cluster, r->agent, lanes_of(r, theirs),
                     r->site);
    char kernel[160];
    clab_demangle(f->kernel, kernel, sizeof kernel);
    h->within = CLAB_WITHIN_GRID;
    check_place_global(check, h, address, 4);
    if (kind == CLAB_HAZARD_DEPENDENT_EARLY) {
        check_say(h->missing, sizeof h->missing,
                  "%s (launch %u) let its dependents start early, and no griddepcontrol.wait of this launch "
                  "comes before the access",
                  kernel, f->launch);
    } else {
        check_say(h->missing, sizeof h->missing,
                  "nothing orders this launch after %s (launch %u): " NOTHING_ORDERS, kernel, f->launch);
    }
}

struct found_pair {
    uint64_t address;
    uint32_t mine, theirs;
};
#define MOST_PAIRS 64u

struct comparison {
    struct check *check;
    const struct footprint *f;
    struct found_pair pairs[MOST_PAIRS];
    uint32_t n;
    bool may_synchronise, synchronised;
};

static void pair_add(struct comparison *c, uint64_t address, uint32_t mine, uint32_t theirs)
{
    const struct record *own = c->check->global->records, *past_records = c->f->shadow->records;
    for (uint32_t i = 0; i < c->n; i++) {
        if (own[c->pairs[i].mine >> 5].site == own[mine >> 5].site &&
            past_records[c->pairs[i].theirs >> 5].site == past_records[theirs >> 5].site) {
            return;
        }
    }
    if (c->n < MOST_PAIRS) {
        c->pairs[c->n++] = (struct found_pair){address, mine, theirs};
    }
}

static void compare_at(struct comparison *c, uint64_t address, struct gcell mine, struct gcell theirs)
{
    const struct check *check = c->check;
    const uint32_t own[2] = {mine.w, mine.r}, past_refs[2] = {theirs.w, theirs.r};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 2; k++) {
            uint32_t a = own[i], b = past_refs[k];
            if (a & LIST_TAG) {
                a = check->global->lists[a & ~LIST_TAG].e[0];
            }
            if (b & LIST_TAG) {
                b = c->f->shadow->lists[b & ~LIST_TAG].e[0];
            }
            if (!a || !b || (i == 1 && k == 1)) {
                continue;
            }
            const struct site *x = site_at(&check->sites, check->global, a);
            const struct site *y = site_at(&c->f->sites, c->f->shadow, b);
            if (both_strong(x, y)) {
                c->synchronised |= c->may_synchronise && k == 0 && (i == 1 || x->load);
            } else {
                pair_add(c, address, a, b);
            }
        }
    }
    /* A flag that was only read here. */
    if (c->may_synchronise && mine.r && theirs.w && !(mine.r & LIST_TAG)) {
        c->synchronised |= both_strong(site_at(&check->sites, check->global, mine.r),
                                       site_at(&c->f->sites, c->f->shadow, theirs.w));
    }
}

static void compare(struct check *check, struct footprint *f)
{
    struct global_shadow *g = check->global, *h = f->shadow;
    struct comparison c = {.check = check, .f = f};
    c.may_synchronise = any_release(&f->sites) && any_acquire(&check->sites);
    for (size_t i = 0; i < g->n_used; i++) {
        const uint64_t start = g->base + ((uint64_t)g->used[i].number << PAGE_SHIFT);
        struct page *mine = g->used[i].page,
                    *theirs = g->used[i].number < h->n_pages ? h->pages[g->used[i].number] : NULL;
        if (!theirs || !(mine->written || theirs->written)) {
            continue;
        }
        check_shadow_settle(g, mine, start);
        check_shadow_settle(h, theirs, start);
        for (uint32_t l = 0; l < LINES; l++) {
            const struct line *x = &mine->lines[l], *y = &theirs->lines[l];
            if (!(x->cells | x->w | x->r) || !(y->cells | y->w | y->r)) {
                continue;
            }
            for (uint64_t at = start + l * LINE_BYTES; at < start + (l + 1) * LINE_BYTES; at++) {
                compare_at(&c, at, check_shadow_at(g, mine, at), check_shadow_at(h, theirs, at));
            }
        }
    }
    for (uint32_t i = 0; i < c.n && !c.synchronised; i++) {
        const uint32_t mine = c.pairs[i].mine;
        const struct record *r = &g->records[mine >> 5];
        report(check, f, CLAB_HAZARD_RACE_LAUNCHES, c.pairs[i].address, r->site, r->cluster, r->agent,
               lanes_of(r, mine), c.pairs[i].theirs);
    }
}

/* --- copies and sets by the driver */

/* The first reference of a shadow that conflicts with a range; *out_address: where. 0 none. */
static uint32_t in_range(struct global_shadow *g, const struct check_range *range, uint64_t *out_address)
{
    for (uint64_t row = 0; row < range->rows; row++) {
        const uint64_t start = range->address + row * range->pitch, end = start + range->width;
        for (uint64_t at = start; at < end;) {
            const uint64_t number = (at - g->base) >> PAGE_SHIFT, next = (at | (LINE_BYTES - 1)) + 1;
            struct page *page = number < g->n_pages ? g->pages[number] : NULL;
            if (!page || !(page->written || range->write)) {
                at = (at | (PAGE_BYTES - 1)) + 1;
                continue;
            }
            check_shadow_settle(g, page, at & ~(uint64_t)(PAGE_BYTES - 1));
            const struct line *line = &page->lines[at >> LINE_SHIFT & (LINES - 1)];
            for (; (line->cells | line->w | line->r) && at < next && at < end; at++) {
                const struct gcell cell = check_shadow_at(g, page, at);
                const uint32_t r = cell.r & LIST_TAG ? g->lists[cell.r & ~LIST_TAG].e[0] : cell.r;
                if (cell.w || (range->write && r)) {
                    *out_address = at;
                    return cell.w ? cell.w : r;
                }
            }
            at = next;
        }
    }
    return 0;
}

#define FREE "free in stream order"

/* What the driver does to a range, as a noun and what follows it. */
static const char *act(const struct check_range *range)
{
    return range->allocates ? "allocation of the memory (in stream order)"
           : range->write   ? "copy or set by the driver that writes there"
                            : "copy by the driver that reads there";
}

/* A launch that ends, against a copy or set before it. */
static void compare_ranges(struct check *check, const struct footprint *f)
{
    for (unsigned i = 0; i < f->n_ranges; i++) {
        uint64_t at;
        const uint32_t mine = in_range(check->global, &f->ranges[i], &at);
        if (!mine) { /* there may be no records at all */
            continue;
        }
        const struct record *r = &check->global->records[mine >> 5];
        struct clab_hazard *h =
            check_report(check, f->frees ? CLAB_HAZARD_USE_AFTER_FREE : CLAB_HAZARD_RACE_LAUNCHES, r->site,
                         SITE_OF_PAST, f->ranges[i].write);
        if (h) {
            check_party(check, &h->parties[0], r->cluster, r->agent, lanes_of(r, mine), r->site, NULL);
            h->within = CLAB_WITHIN_GRID;
            check_place_global(check, h, at, 4);
            check_say(h->missing, sizeof h->missing, "nothing orders this launch and the %s: " NOTHING_ORDERS,
                      f->frees ? FREE : act(&f->ranges[i]));
        }
    }
}

static bool ordered(const struct check_task *task, const struct footprint *f)
{
    if (f->stream == task->stream && f->number == task->number && f->node && task->node) {
        return f->node == task->node || (task->before[f->node / 64] >> (f->node % 64) & 1);
    }
    return task->everything || (f->stream == task->stream && f->number <= task->number) ||
           is_known(f, task->known, task->n);
}

/* Lets go of the oldest, so that there is room for one more. */
static void keep_room(void)
{
    size_t bytes = 0;
    unsigned n = 0;
    for (struct footprint **at = &past.newest; *at;) {
        struct footprint *f = *at;
        bytes += f->bytes;
        if (f->in_use || (++n < MOST_KEPT && bytes <= MOST_KEPT_BYTES)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        footprint_free(f);
        atomic_fetch_sub(&past.n, 1);
    }
}

/* Of no launch that runs. */
static struct clab_hazard *driver_hazard(enum clab_hazard_kind kind, const char *kernel, uint64_t at)
{
    struct clab_hazard *h = check_alloc(sizeof *h);
    h->kind = kind;
    h->severity = clab_hazard_severity_of(kind);
    h->within = CLAB_WITHIN_GRID;
    h->space = CLAB_SPACE_GLOBAL;
    h->has_address = 1;
    h->address = at;
    h->bytes = 4;
    h->count = 1;
    snprintf(h->kernel, sizeof h->kernel, "%s", kernel);
    return h;
}

static void driver_report(const struct footprint *f, enum clab_hazard_kind kind, const char *what,
                          uint32_t theirs, uint64_t at)
{
    const struct record *r = &f->shadow->records[theirs >> 5];
    struct clab_hazard *h = driver_hazard(kind, f->kernel, at);
    h->launch = f->launch;
    h->seed = f->seed;
    check_party_past(&f->shape, &f->sites, &h->parties[0], r->cluster, r->agent, lanes_of(r, theirs),
                     r->site);
    check_say(h->missing, sizeof h->missing, "nothing orders this launch and the %s: " NOTHING_ORDERS, what);
    check_add(h);
    free(h);
}

/* Two operations of the driver. */
static void driver_pair(enum clab_hazard_kind kind, const char *what, const struct check_range *earlier,
                        uint64_t at)
{
    struct clab_hazard *h = driver_hazard(kind, "the driver", at);
    check_say(h->missing, sizeof h->missing, "nothing orders the %s and the %s: " NOTHING_ORDERS,
              act(earlier), what);
    check_add(h);
    free(h);
}

/* The first address that both touch; 0 none. */
static uint64_t overlap(const struct check_range *a, const struct check_range *b)
{
    const struct check_range *few = a->rows <= b->rows ? a : b, *many = few == a ? b : a;
    for (uint64_t row = 0; row < few->rows; row++) {
        const uint64_t start = few->address + row * few->pitch, end = start + few->width;
        uint64_t k = start > many->address && many->pitch ? (start - many->address) / many->pitch : 0;
        for (k = k < many->rows ? k : many->rows - (many->rows > 0); k < many->rows; k++) {
            const uint64_t from = many->address + k * many->pitch;
            if (from >= end) {
                break;
            }
            if (start < from + many->width && many->width) {
                return from > start ? from : start;
            }
        }
    }
    return 0;
}

static void against_ranges(const struct footprint *f, const struct check_range *range,
                           enum clab_hazard_kind kind, const char *what)
{
    for (unsigned k = 0; k < f->n_ranges; k++) {
        const uint64_t at = range->write || f->ranges[k].write ? overlap(range, &f->ranges[k]) : 0;
        if (at) {
            driver_pair(kind, what, &f->ranges[k], at);
            return;
        }
    }
}

/* Against all before that it does not know. */
static void driver_compare(const struct check_task *task, const struct check_range *ranges, unsigned n,
                           enum clab_hazard_kind kind, const char *what)
{
    for (const struct footprint *f = past.newest; f; f = f->next) {
        if (f->spoilt || f->frees || ordered(task, f) || !check_kind_enabled(kind)) {
            continue;
        }
        for (unsigned i = 0; i < n; i++) {
            uint64_t at;
            const uint32_t theirs = f->shadow ? in_range(f->shadow, &ranges[i], &at) : 0;
            if (theirs) {
                driver_report(f, kind, what ? what : act(&ranges[i]), theirs, at);
            } else if (!f->shadow) {
                against_ranges(f, &ranges[i], kind, what ? what : act(&ranges[i]));
            }
        }
    }
}

static struct footprint *driver_keep(const struct check_task *task, const struct check_range *ranges,
                                     unsigned n)
{
    keep_room();
    struct footprint *f = check_alloc(sizeof *f);
    f->stream = task->stream;
    f->number = task->number;
    f->node = task->node;
    f->bytes = sizeof *f;
    for (unsigned i = 0; i < n && i < 2; i++) {
        f->ranges[f->n_ranges++] = ranges[i];
    }
    f->next = past.newest;
    past.newest = f;
    atomic_fetch_add(&past.n, 1);
    return f;
}

CHECK_APART static void driver_access(const struct check_task *task, const struct check_range *ranges,
                                      unsigned n)
{
    driver_compare(task, ranges, n, CLAB_HAZARD_RACE_LAUNCHES, NULL);
    driver_keep(task, ranges, n);
}

CHECK_APART static void driver_free(const struct check_task *task, const struct check_range *range)
{
    driver_compare(task, range, 1, CLAB_HAZARD_USE_AFTER_FREE, FREE);
    if (past.running) { /* it may have been there already, and leaves no fault then */
        struct footprint *f = driver_keep(task, range, 1);
        f->frees = true;
        f->launch = past.running;
    }
}

void check_driver_free(const struct check_task *task, uint64_t address, uint64_t bytes)
{
    struct check_attempt attempt;
    const struct check_range range = {address, bytes, bytes, 1, true, false};
    if (!task) {
        return;
    }
    pthread_mutex_lock(&past.lock);
    if (CHECK_ATTEMPT(attempt)) {
        driver_free(task, &range);
    } else {
        spoil();
    }
    check_attempt_end(&attempt);
    pthread_mutex_unlock(&past.lock);
}

CHECK_APART static void driver_gone(uint64_t address)
{
    struct clab_hazard *h = driver_hazard(CLAB_HAZARD_USE_AFTER_FREE, "the driver", address);
    check_say(h->missing, sizeof h->missing, "a copy or set by the driver finds its memory freed");
    check_add(h);
    free(h);
}

void check_driver_gone(uint64_t address)
{
    struct check_attempt attempt;
    if (!check_hooks() || !check_kind_enabled(CLAB_HAZARD_USE_AFTER_FREE)) {
        return;
    }
    if (CHECK_ATTEMPT(attempt)) {
        driver_gone(address);
    } else {
        check_lost();
    }
    check_attempt_end(&attempt);
}

void check_driver_access(const struct check_task *task, const struct check_range *ranges, unsigned n)
{
    struct check_attempt attempt;
    pthread_mutex_lock(&past.lock);
    if (CHECK_ATTEMPT(attempt)) {
        driver_access(task, ranges, n);
    } else {
        spoil();
    }
    check_attempt_end(&attempt);
    pthread_mutex_unlock(&past.lock);
}

void check_grids_begin(struct check *check)
{
    const struct check_task *task = check->task;
    if (!task) {
        return;
    }
    pthread_mutex_lock(&past.lock);
    past.running = check->launch;
    for (struct footprint *f = task->programmatic ? past.newest : NULL; f; f = f->next) {
        if (f->stream == task->stream && f->number + 1 == task->number && f->dependents && !f->spoilt) {
            f->in_use = true;
            check->prior = f;
        }
    }
    pthread_mutex_unlock(&past.lock);
}

/* Against all launches before it; then it is one of them. */
CHECK_APART static void grids_end(struct check *check)
{
    for (struct footprint *f = past.newest; f; f = f->next) {
        const bool other_free = f->frees && f->launch != check->launch;
        if (!f->spoilt && !other_free && !ordered(check->task, f)) {
            if (f->shadow) {
                compare(check, f);
            } else {
                compare_ranges(check, f);
            }
        }
    }
    for (struct footprint **at = &past.newest; *at;) {
        struct footprint *f = *at;
        if (f->frees && f->launch == check->launch) {
            *at = f->next;
            footprint_free(f);
            atomic_fetch_sub(&past.n, 1);
        } else {
            at = &f->next;
        }
    }
    keep_room();
    struct footprint *f = check_alloc(sizeof *f);
    f->shadow = check->global;
    f->sites = check->sites;
    f->shape = check->shape;
    f->launch = check->launch;
    f->stream = check->task->stream;
    f->number = check->task->number;
    f->node = check->task->node;
    f->dependents = check->dependents;
    f->seed = check->seed;
    f->bytes = bytes_of(f->shadow);
    check_symbol(f->kernel, sizeof f->kernel, check->run->code->function->name);
    f->next = past.newest;
    past.newest = f;
    atomic_fetch_add(&past.n, 1);
    check->global = NULL;
    check->sites = (struct sites){0};
}

void check_grids_end(struct check *check)
{
    struct check_attempt attempt;
    if (!check->task) {
        return;
    }
    pthread_mutex_lock(&past.lock);
    past.running = 0;
    if (check->prior) {
        check->prior->in_use = false;
        check->prior = NULL;
    }
    if (CHECK_ATTEMPT(attempt)) {
        if (!check->lost) {
            grids_end(check);
        }
    } else {
        spoil();
    }
    check_attempt_end(&attempt);
    pthread_mutex_unlock(&past.lock);
}

/* --- programmatic dependent launch */

void check_grid_dependency(struct check *check, struct check_warp *warp, uint32_t lanes, uint32_t site)
{
    const struct ptx_insn *insn = site_insn(&check->sites.list[site]);
    if (insn && ptx_has(insn, PTX_MOD_LAUNCH_DEPENDENTS)) {
        check->dependents = true;
        return;
    }
    if (!check->prior) {
        return;
    }
    check_split(warp, lanes);
    EACH_GROUP(g, warp, lanes)
    {
        clock_add(&g->mem.more, CHECK_PRIOR_GRIDS, CHECK_KEY_CLUSTER, UINT32_MAX, 1);
    }
}

CHECK_APART static void early(const struct actor *a, unsigned lane, uint64_t address, uint64_t bytes)
{
    struct footprint *f = a->check->prior;
    const struct global_shadow *g = f->shadow;
    if (clock_knows(a->known ? a->known->more : a->mem, CHECK_PRIOR_GRIDS, 0, UINT32_MAX, 1)) {
        return;
    }
    const struct site *own = &a->check->sites.list[a->site];
    for (uint64_t at = address; at < address + bytes; at++) {
        const uint64_t number = (at - g->base) >> PAGE_SHIFT;
        struct page *page = number < g->n_pages ? g->pages[number] : NULL;
        if (!page) {
            continue;
        }
        check_shadow_settle(f->shadow, page, at & ~(uint64_t)(PAGE_BYTES - 1));
        const struct gcell cell = check_shadow_at(g, page, at);
        uint32_t theirs = cell.w ? cell.w : a->write ? cell.r : 0;
        if (theirs & LIST_TAG) {
            theirs = g->lists[theirs & ~LIST_TAG].e[0];
        }
        if (theirs && !both_strong(own, site_at(&f->sites, g, theirs))) {
            report(a->check, f, CLAB_HAZARD_DEPENDENT_EARLY, address, a->site, a->cl->index,
                   a->warp->self.agent, UINT32_C(1) << (a->copy ? a->same_lane : lane), theirs);
            return;
        }
    }
}

void check_grids_early(const struct actor *a, unsigned lane, uint64_t address, uint64_t bytes)
{
    struct check_attempt attempt;
    volatile bool done = false;     /* over the jump out of an attempt */
    pthread_mutex_lock(&past.lock); /* a copy may be compared with the same launch meanwhile */
    if (CHECK_ATTEMPT(attempt)) {
        if (!a->check->prior->spoilt) {
            early(a, lane, address, bytes);
        }
        done = true;
    } else {
        spoil();
    }
    check_attempt_end(&attempt);
    pthread_mutex_unlock(&past.lock);
    if (!done) {
        check_give_up();
    }
}
