/* The shadow of global memory. An access by a warp is one record; a line of 128 bytes remembers the record
   that last wrote all of it and the one that last read it, 16 bytes for 128, while whole warps access whole
   lines: most lines are never written, or written once. Anything finer gives the line a cell for every 4
   bytes, and a cell four bytes when a part of it is accessed.

   Reads of pages that nothing has written need no check, only to be known to a later write: they are put down
   one after the other, and enter the cells when the page is written or has collected many (then together,
   while its cells are in the cache). A gather costs little that way, and so do rows that do not start at a
   line, as a stencil reads them.

   Of readers without an order between them the last few are kept: a race with one that was forgotten may be
   missed, none is invented. Memory that the host registered lies outside the arena and has no shadow. Records
   that nothing refers to any more are swept out when their array is full. */
#include "check/global.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu/machine.h"

#define MOST        (UINT32_C(1) << 26) /* records: their numbers share a word with a lane and a tag */
#define READS       1024u               /* of a page, before they enter its cells */
#define READS_FIRST 16u                 /* and four times as many whenever there are more */
#define SLAB_BYTES  ((size_t)2 << 20)   /* but for a first, small one */
#define SWEEP_FIRST (UINT32_C(1) << 16) /* records; fewer are not worth a sweep */
#define PAGE_BYTES  (1u << PAGE_SHIFT)
#define LINE_BYTES  (1u << LINE_SHIFT)

void check_global_new(struct check *check)
{
    struct global_shadow *g = check_alloc(sizeof *g);
    g->space = check->run->machine->space;
    g->base = g->space->base;
    g->n_pages = (size_t)((g->space->granules << EMU_GRANULE_SHIFT) >> PAGE_SHIFT) + 1;
    g->reserved = g->n_pages * sizeof *g->pages;
    g->pages =
        mmap(NULL, g->reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->pages == MAP_FAILED) { /* without it global memory would look clean */
        free(g);
        check_give_up();
    }
    g->n_records = 1;
    g->generation = 1;
    check->global = g;
}

void check_shadow_free(struct global_shadow *g)
{
    if (!g) {
        return;
    }
    while (g->slabs) {
        struct slab *slab = g->slabs;
        g->slabs = slab->next;
        munmap(slab, slab->bytes);
    }
    if (g->pages) {
        munmap(g->pages, g->reserved);
    }
    free(g->used);
    free(g->records);
    free(g->cells);
    free(g->lists);
    free(g->bytes);
    free(g);
}

void check_global_free(struct check *check)
{
    check_shadow_free(check->global);
    check->global = NULL;
}

static void slab_new(struct global_shadow *g)
{
    const size_t bytes = g->slabs ? SLAB_BYTES : SLAB_BYTES / 32;
    unsigned char *raw =
        mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        check_give_up();
    }
    unsigned char *start = raw + (-(uintptr_t)raw & (bytes - 1)), *end = raw + 2 * bytes;
    if (start > raw) {
        munmap(raw, (size_t)(start - raw));
    }
    munmap(start + bytes, (size_t)(end - start) - bytes);
#if defined(MADV_HUGEPAGE)
    if (bytes == SLAB_BYTES) {
        (void)madvise(start, bytes, MADV_HUGEPAGE); /* without it all is only slower */
    }
#endif
    struct slab *slab = (void *)start;
    *slab = (struct slab){g->slabs, bytes};
    g->slabs = slab;
    g->slab_at = start + 64;
    g->slab_left = bytes - 64;
}

/* Zeroed, at a cache line; at most 8 KiB. */
static void *slab_take(struct global_shadow *g, size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    if (g->slab_left < bytes) {
        slab_new(g);
    }
    void *memory = g->slab_at;
    g->slab_at += bytes;
    g->slab_left -= bytes;
    return memory;
}

/* Which list of free arrays; the first arrays are not given back, they are small. */
static unsigned reads_class(uint32_t capacity)
{
    return capacity == 4 * READS_FIRST ? 0 : capacity == 16 * READS_FIRST ? 1 : 2;
}

static void reads_grow(struct global_shadow *g, struct page *page)
{
    const uint32_t capacity = page->reads_capacity ? 4 * page->reads_capacity : READS_FIRST;
    void **list = capacity > READS_FIRST ? &g->free_reads[reads_class(capacity)] : NULL;
    struct read *grown = list ? *list : NULL;
    if (grown) {
        memcpy(list, grown, sizeof *list);
    } else {
        grown = slab_take(g, capacity * sizeof *grown);
    }
    if (page->n_reads) {
        memcpy(grown, page->reads, page->n_reads * sizeof *grown);
    }
    if (page->reads_capacity > READS_FIRST) {
        list = &g->free_reads[reads_class(page->reads_capacity)];
        memcpy(page->reads, list, sizeof *list);
        *list = page->reads;
    }
    page->reads = grown;
    page->reads_capacity = capacity;
}

static struct page *page_new(struct global_shadow *g, uint64_t number)
{
    if (g->n_used == g->used_capacity) {
        g->used_capacity = g->used_capacity ? 2 * g->used_capacity : 256;
        g->used = check_grow(g->used, g->used_capacity * sizeof *g->used);
    }
    struct page *page = slab_take(g, sizeof *page);
    g->used[g->n_used++] = (struct used_page){number, page};
    return g->pages[number] = page;
}

/* NULL outside the arena. */
static inline struct page *page_of(struct global_shadow *g, uint64_t address)
{
    const uint64_t number = (address - g->base) >> PAGE_SHIFT;
    if (number >= g->n_pages) {
        return NULL;
    }
    return g->pages[number] ? g->pages[number] : page_new(g, number);
}

static inline struct line *line_of(struct page *page, uint64_t address)
{
    return &page->lines[address >> LINE_SHIFT & (LINES - 1)];
}

/* --- lists of readers */

static uint32_t list_take(struct global_shadow *g)
{
    if (g->free_lists) {
        const uint32_t number = g->free_lists - 1;
        g->free_lists = g->lists[number].n;
        return number;
    }
    if (g->n_lists == g->lists_capacity) {
        g->lists_capacity = g->lists_capacity ? 2 * g->lists_capacity : 256;
        g->lists = check_grow(g->lists, (size_t)g->lists_capacity * sizeof *g->lists);
    }
    return g->n_lists++;
}

static void list_give(struct global_shadow *g, uint32_t r)
{
    g->lists[r & ~LIST_TAG].n = g->free_lists;
    g->free_lists = (r & ~LIST_TAG) + 1;
}

/* --- records */

static void mark(const struct global_shadow *g, unsigned char *live, uint32_t r, unsigned shift)
{
    if (r & LIST_TAG) {
        const struct list *list = &g->lists[r & ~LIST_TAG];
        for (uint32_t i = 0; i < list->n; i++) {
            live[list->e[i] >> shift] = 1;
        }
    } else {
        live[r >> shift] = 1;
    }
}

static void renumber(const struct global_shadow *g, const uint32_t *numbers, uint32_t *r, unsigned shift)
{
    const uint32_t low = (UINT32_C(1) << shift) - 1;
    if (*r & LIST_TAG) {
        struct list *list = &g->lists[*r & ~LIST_TAG];
        for (uint32_t i = 0; i < list->n; i++) {
            list->e[i] = numbers[list->e[i] >> shift] << shift | (list->e[i] & low);
        }
    } else {
        *r = numbers[*r >> shift] << shift | (*r & low);
    }
}

/* Of all references: either marks what they name, or gives them the new numbers. */
static void each_reference(const struct global_shadow *g, unsigned char *live, const uint32_t *numbers)
{
#define ONE(r, shift) (live ? mark(g, live, *(r), shift) : renumber(g, numbers, r, shift))
    for (size_t i = 0; i < g->n_used; i++) {
        struct page *page = g->used[i].page;
        for (uint32_t k = 0; k < page->n_reads; k++) {
            ONE(&page->reads[k].reference, 5);
        }
        for (uint32_t l = 0; l < LINES; l++) {
            struct line *line = &page->lines[l];
            if (!line->cells) {
                ONE(&line->w, 0);
                ONE(&line->r, 0);
            }
            for (uint32_t c = 0; line->cells && c < WORDS; c++) {
                struct gcell *cell = &g->cells[(size_t)(line->cells - 1) * WORDS + c];
                struct gcell *first = cell->w == SPLIT_TAG ? g->bytes[cell->r].b : cell;
                for (uint32_t b = 0; b < (cell->w == SPLIT_TAG ? 4 : 1); b++) {
                    ONE(&first[b].w, 5);
                    ONE(&first[b].r, 5);
                }
            }
        }
    }
#undef ONE
}

static void sweep(struct global_shadow *g)
{
    unsigned char *live = check_alloc(g->n_records);
    uint32_t *numbers = check_alloc(g->n_records * sizeof *numbers), n = 1;
    each_reference(g, live, NULL);
    for (uint32_t i = 1; i < g->n_records; i++) {
        if (live[i]) {
            numbers[i] = n;
            g->records[n++] = g->records[i];
        }
    }
    each_reference(g, NULL, numbers);
    g->n_records = n;
    g->generation++;
    free(live);
    free(numbers);
}

/* 0 when there are too many: the access is then checked but not remembered. */
static uint32_t record_add(struct global_shadow *g, const struct record *record)
{
    if (g->n_records >= g->records_capacity) {
        if (g->records_capacity >= SWEEP_FIRST) {
            sweep(g);
        }
        if (g->n_records >= MOST - 1) {
            return 0;
        }
        if (g->n_records >= g->records_capacity / 2) {
            g->records_capacity = g->records_capacity ? 2 * g->records_capacity : 1024;
            g->records = check_grow(g->records, (size_t)g->records_capacity * sizeof *g->records);
        }
    }
    g->records[g->n_records] = *record;
    return g->n_records++;
}

/* The same for accesses without a row: one record serves all that a warp does at one time and site. */
static uint32_t record_reuse(struct global_shadow *g, struct check_warp *warp, const struct record *record)
{
    const unsigned slot = record->site % CHECK_RECENT;
    const uint32_t recent = warp->recent[slot];
    if (recent && warp->recent_generation == g->generation) {
        const struct record *old = &g->records[recent];
        if (old->time == record->time && old->site == record->site && old->lanes == record->lanes &&
            old->agent == record->agent && old->cluster == record->cluster && old->shift == 0) {
            return recent;
        }
    }
    const uint32_t number = record_add(g, record);
    if (warp->recent_generation != g->generation) {
        memset(warp->recent, 0, sizeof warp->recent);
        warp->recent_generation = g->generation;
    }
    warp->recent[slot] = number;
    return number;
}

static struct record record_of(const struct actor *a, uint64_t start, uint32_t lanes, uint32_t bytes)
{
    return (struct record){.start = start,
                           .cluster = (uint32_t)a->cl->index,
                           .time = a->time,
                           .lanes = lanes,
                           .agent = (uint16_t)a->agent,
                           .site = (uint16_t)a->site,
                           .shift = (uint8_t)(bytes ? 1 + __builtin_ctz(bytes) : 0),
                           .lane = (uint8_t)__builtin_ctz(lanes)};
}

/* Rows of less than 4 bytes a lane: several lanes share a word. */
static inline bool shares(const struct record *record)
{
    return record->shift == 1 || record->shift == 2;
}

static inline uint32_t reference_at(const struct global_shadow *g, uint32_t record, uint64_t address)
{
    return record ? record << 5 | record_lane(&g->records[record], address) : 0;
}

/* --- one access at work */

struct touching {
    const struct actor *a;
    struct global_shadow *g;
    uint32_t record; /* its own; 0: not remembered */
    uint32_t bytes;  /* of a lane */
    uint32_t fine;   /* another record, all of which is known to be no conflict */
};

static bool site_weak_write(const struct touching *t, uint32_t reference)
{
    const struct site *site = &t->a->check->sites.list[t->g->records[reference >> 5].site];
    return site->store && !site->strong;
}

/* As in shared.c: a weak write that an atomic covers stays in the place of the reads. */
static inline bool is_weak_write(const struct touching *t, uint32_t reference)
{
    return reference && !(reference & LIST_TAG) && site_weak_write(t, reference);
}

static unsigned own_lane(const struct touching *t, unsigned lane, uint64_t address)
{
    return t->record ? record_lane(&t->g->records[t->record], address) : lane;
}

static __attribute__((noinline)) void against_slow(struct touching *t, uint64_t address, unsigned lane,
                                                   uint32_t reference, bool write)
{
    const struct actor *a = t->a;
    const struct record *r = &t->g->records[reference >> 5], *own = &t->g->records[t->record];
    struct earlier earlier = {.cluster = r->cluster,
                              .agent = r->agent,
                              .time = r->time,
                              .lane = reference & 31,
                              .site = r->site,
                              .several = r->shift == 0 && (r->lanes & (r->lanes - 1)),
                              .write = write};
    if (write && !a->write && a->check->sites.list[a->site].read_only && check_ordered(a, lane, &earlier)) {
        const uint64_t of = address & ~(uint64_t)(t->bytes < 32 ? t->bytes - 1 : 3);
        check_read_only(a, lane, &earlier, of, t->bytes);
        t->fine = reference >> 5;
        return;
    }
    const bool same = t->record && r->shift && own->shift == r->shift && own->start == r->start &&
                      own->cluster == r->cluster && own->agent == r->agent;
    if ((same && !a->copy) || check_morally_strong(a, &earlier) || check_ordered_all(a, &earlier)) {
        t->fine = reference >> 5;
        return;
    }
    /* Bytes of a word may be several lanes', on either side. */
    const bool apart = shares(r) || (t->record && shares(own));
    for (uint32_t b = 0; b < (apart ? 4 - (address & 3) : 1); b++) {
        const unsigned mine = apart && t->record ? own_lane(t, lane, address + b) : lane;
        if (shares(r)) {
            earlier.lane = record_lane(r, address + b);
        }
        if (!check_ordered(a, mine, &earlier)) {
            const bool lane_sized = t->bytes <= 32 && (t->bytes & (t->bytes - 1)) == 0;
            const uint64_t of = (address + b) & ~(uint64_t)(lane_sized ? t->bytes - 1 : 3);
            check_race(a, mine, &earlier, CLAB_SPACE_GLOBAL, NULL, of, t->bytes,
                       (const unsigned char *)(uintptr_t)of);
            return;
        }
    }
}

static inline void against(struct touching *t, uint64_t address, unsigned lane, uint32_t reference,
                           bool write)
{
    if (reference >> 5 != t->fine) {
        against_slow(t, address, lane, reference, write);
    }
}

static void reads_check(struct touching *t, uint64_t address, unsigned lane, uint32_t r)
{
    if (r & LIST_TAG) {
        const struct list list = t->g->lists[r & ~LIST_TAG];
        for (uint32_t i = 0; i < list.n; i++) {
            against(t, address, lane, list.e[i], site_weak_write(t, list.e[i]));
        }
        list_give(t->g, r);
    } else {
        against(t, address, lane, r, site_weak_write(t, r));
    }
}

static bool same_reader(const struct global_shadow *g, uint32_t x, uint32_t y)
{
    if (x >> 5 == y >> 5) {
        return (x & 31) == (y & 31);
    }
    const struct record *a = &g->records[x >> 5], *b = &g->records[y >> 5];
    return a->agent == b->agent && a->cluster == b->cluster && (x & 31) == (y & 31) &&
           (a->lanes & ~b->lanes) == 0 && (!(shares(a) || shares(b)) || a->start == b->start);
}

/* Of two reads of one thread the later one; records are numbered in their order. */
static inline uint32_t later(uint32_t x, uint32_t y)
{
    return x > y ? x : y;
}

static void read_note(struct global_shadow *g, uint32_t *r, uint32_t mine)
{
    if (*r == 0) {
        *r = mine;
        return;
    }
    /* The thread's own read before is replaced. Others that are ordered before this one might be, too: it is
       cheaper to keep them. */
    if (*r & LIST_TAG) {
        struct list *list = &g->lists[*r & ~LIST_TAG];
        for (uint32_t i = 0; i < list->n; i++) {
            if (same_reader(g, list->e[i], mine)) {
                list->e[i] = later(list->e[i], mine);
                return;
            }
        }
        list->e[list->n < LIST ? list->n++ : (mine >> 5) % LIST] = mine;
        return;
    }
    if (same_reader(g, *r, mine)) {
        *r = later(*r, mine);
        return;
    }
    const uint32_t number = list_take(g);
    g->lists[number] = (struct list){.n = 2, .e = {*r, mine}};
    *r = LIST_TAG | number;
}

static inline void touch(struct touching *t, uint64_t address, unsigned lane, struct gcell *cell)
{
    const uint32_t mine = t->record ? t->record << 5 | lane : 0;
    if (cell->w) {
        against(t, address, lane, cell->w, true);
    }
    if (t->a->write) {
        uint32_t covered = 0;
        if (t->a->strong && (cell->w | cell->r)) {
            covered = is_weak_write(t, cell->w) ? cell->w : is_weak_write(t, cell->r) ? cell->r : 0;
        }
        if (cell->r) {
            reads_check(t, address, lane, cell->r);
        }
        cell->w = mine;
        cell->r = covered;
    } else if (mine) {
        if (is_weak_write(t, cell->r)) {
            against(t, address, lane, cell->r, true);
        }
        read_note(t->g, &cell->r, mine);
    }
}

/* --- finer than lines */

static struct gcell *cells_of(struct global_shadow *g, struct line *line, uint64_t line_address)
{
    if (line->cells) {
        return &g->cells[(size_t)(line->cells - 1) * WORDS];
    }
    if (g->n_cells == g->cells_capacity) {
        g->cells_capacity = g->cells_capacity ? 2 * g->cells_capacity : 64;
        g->cells = check_grow(g->cells, (size_t)g->cells_capacity * WORDS * sizeof *g->cells);
    }
    struct gcell *cells = &g->cells[(size_t)g->n_cells * WORDS];
    line->cells = ++g->n_cells;
    if (!line->w && !line->r) {
        memset(cells, 0, WORDS * sizeof *cells);
        return cells;
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint64_t address = line_address + 4 * i;
        cells[i].w = reference_at(g, line->w, address);
        if (line->r & LIST_TAG) {
            /* Lists of a line hold records; those of cells hold references. */
            struct list list = g->lists[line->r & ~LIST_TAG];
            for (uint32_t k = 0; k < list.n; k++) {
                list.e[k] = reference_at(g, list.e[k], address);
            }
            const uint32_t number = list_take(g);
            g->lists[number] = list;
            cells[i].r = LIST_TAG | number;
        } else {
            cells[i].r = reference_at(g, line->r, address);
        }
    }
    if (line->r & LIST_TAG) {
        list_give(g, line->r);
    }
    return cells;
}

static uint32_t at_byte(const struct global_shadow *g, uint32_t reference, uint64_t address)
{
    return reference && shares(&g->records[reference >> 5]) ? reference_at(g, reference >> 5, address)
                                                            : reference;
}

static void split(struct global_shadow *g, struct gcell *cell, uint64_t word)
{
    uint32_t number = g->free_bytes;
    if (number) {
        g->free_bytes = g->bytes[--number].b[0].w;
    } else {
        if (g->n_bytes == g->bytes_capacity) {
            g->bytes_capacity = g->bytes_capacity ? 2 * g->bytes_capacity : 256;
            g->bytes = check_grow(g->bytes, (size_t)g->bytes_capacity * sizeof *g->bytes);
        }
        number = g->n_bytes++;
    }
    for (unsigned b = 0; b < 4; b++) {
        struct gcell *byte = &g->bytes[number].b[b];
        *byte = *cell;
        if (cell->r & LIST_TAG) {
            /* One list cannot serve four: all but the first keep the newest reader. */
            struct list *list = &g->lists[cell->r & ~LIST_TAG];
            byte->r = b ? list->e[list->n - 1] : cell->r;
        }
        byte->w = at_byte(g, byte->w, word + b);
        byte->r = byte->r & LIST_TAG ? byte->r : at_byte(g, byte->r, word + b);
    }
    *cell = (struct gcell){SPLIT_TAG, number};
}

/* Bytes [address, address + n) of a cell that is, or becomes, four. */
static void bytes_touch(struct touching *t, uint64_t address, unsigned n, unsigned lane, struct gcell *cell)
{
    struct global_shadow *g = t->g;
    if (cell->w != SPLIT_TAG) {
        split(g, cell, address & ~UINT64_C(3));
    }
    const uint32_t number = cell->r;
    for (unsigned b = 0; b < n; b++) {
        const unsigned by = own_lane(t, lane, address + b);
        touch(t, address + b, by, &g->bytes[number].b[(address + b) & 3]);
    }
    if (n == 4 && t->a->write && !g->bytes[number].b[0].r) {
        *cell = (struct gcell){g->bytes[number].b[0].w, 0};
        g->bytes[number].b[0].w = g->free_bytes;
        g->free_bytes = number + 1;
    }
}

/* [at, end) of one page; `lane` as in span. */
static void words(struct touching *t, struct page *page, uint64_t at, uint64_t end, unsigned lane)
{
    struct global_shadow *g = t->g;
    const struct record *own = &g->records[t->record];
    const bool row = t->record && own->shift;
    while (at < end) {
        const uint64_t line_address = at & ~(uint64_t)(LINE_BYTES - 1);
        const uint64_t line_end = line_address + LINE_BYTES < end ? line_address + LINE_BYTES : end;
        struct gcell *cells = cells_of(g, line_of(page, at), line_address);
        while (at < line_end) {
            const uint64_t next = (at | 3) + 1 < line_end ? (at | 3) + 1 : line_end;
            struct gcell *cell = &cells[(at - line_address) / 4];
            const unsigned by = row ? record_lane(own, at) : lane;
            if (next - at == 4 && cell->w != SPLIT_TAG) {
                touch(t, at, by, cell);
            } else {
                bytes_touch(t, at, (unsigned)(next - at), by, cell);
            }
            at = next;
        }
    }
}

/* --- reads of pages that nothing has written */

/* They enter the cells. */
static __attribute__((noinline)) void reads_enter(struct global_shadow *g, struct page *page, uint64_t start)
{
    for (uint32_t i = 0; i < page->n_reads; i++) {
        const struct read *read = &page->reads[i];
        const uint32_t number = read->reference >> 5;
        const bool row = g->records[number].shift != 0;
        const uint64_t end = start + read->at + read->bytes;
        for (uint64_t at = start + read->at, next; at < end; at = next) {
            next = (at | 3) + 1 < end ? (at | 3) + 1 : end;
            struct gcell *cell = cells_of(g, line_of(page, at), at & ~(uint64_t)(LINE_BYTES - 1)) +
                                 (at & (LINE_BYTES - 1)) / 4;
            if (next - at == 4 && cell->w != SPLIT_TAG) {
                read_note(g, &cell->r, row ? reference_at(g, number, at) : read->reference);
                continue;
            }
            if (cell->w != SPLIT_TAG) {
                split(g, cell, at & ~UINT64_C(3));
            }
            for (uint64_t byte = at; byte < next; byte++) {
                read_note(g, &g->bytes[cell->r].b[byte & 3].r,
                          row ? reference_at(g, number, byte) : read->reference);
            }
        }
    }
    page->n_reads = 0;
}

void check_shadow_settle(struct global_shadow *g, struct page *page, uint64_t page_address)
{
    if (page->n_reads) {
        reads_enter(g, page, page_address);
    }
}

struct gcell check_shadow_at(const struct global_shadow *g, const struct page *page, uint64_t address)
{
    const struct line *line = &page->lines[address >> LINE_SHIFT & (LINES - 1)];
    if (line->cells) {
        const struct gcell *cell =
            &g->cells[(size_t)(line->cells - 1) * WORDS + (address & (LINE_BYTES - 1)) / 4];
        return cell->w == SPLIT_TAG ? g->bytes[cell->r].b[address & 3] : *cell;
    }
    /* Of a line's list of readers any one will do. */
    const uint32_t r = line->r & LIST_TAG ? g->lists[line->r & ~LIST_TAG].e[0] : line->r;
    return (struct gcell){reference_at(g, line->w, address), reference_at(g, r, address)};
}

bool check_global_writer(struct check *check, uint64_t address, struct earlier *out)
{
    struct global_shadow *g = check->global;
    const uint64_t number = (address - g->base) >> PAGE_SHIFT;
    const struct page *page = number < g->n_pages ? g->pages[number] : NULL;
    const uint32_t w = page ? check_shadow_at(g, page, address).w : 0;
    if (!w) {
        return false;
    }
    const struct record *r = &g->records[w >> 5];
    *out = (struct earlier){.cluster = r->cluster,
                            .agent = r->agent,
                            .time = r->time,
                            .lane = w & 31,
                            .site = r->site,
                            .several = r->shift == 0 && (r->lanes & (r->lanes - 1)),
                            .write = true};
    return true;
}

static inline void read_put(struct global_shadow *g, struct page *page, uint64_t address, uint64_t bytes,
                            uint32_t reference)
{
    if (page->n_reads == page->reads_capacity) {
        if (page->n_reads == READS) {
            reads_enter(g, page, address & ~(uint64_t)(PAGE_BYTES - 1));
        } else {
            reads_grow(g, page);
        }
    }
    page->reads[page->n_reads++] =
        (struct read){reference, (uint16_t)(address & (PAGE_BYTES - 1)), (uint16_t)bytes};
}

static inline void page_write(struct global_shadow *g, struct page *page, uint64_t address)
{
    page->written = true;
    if (page->n_reads) {
        reads_enter(g, page, address & ~(uint64_t)(PAGE_BYTES - 1));
    }
}

/* [address, address + bytes), by `lane`, or by the lanes that a row's record says. */
static inline void span(struct touching *t, uint64_t address, uint64_t bytes, unsigned lane)
{
    const uint64_t end = address + bytes;
    while (address < end) {
        struct page *page = page_of(t->g, address);
        const uint64_t page_end = (address | (PAGE_BYTES - 1)) + 1, to = page_end < end ? page_end : end;
        if (!page) {
            return;
        }
        if (t->a->write) {
            page_write(t->g, page, address);
            words(t, page, address, to, lane);
        } else if (page->written) {
            words(t, page, address, to, lane);
        } else if (t->record) {
            read_put(t->g, page, address, to - address, t->record << 5 | lane);
        }
        address = to;
    }
}

void check_global_range(const struct actor *a, unsigned lane, uint64_t address, uint64_t bytes)
{
    struct global_shadow *g = a->check->global;
    const struct record record = record_of(a, address, UINT32_C(1) << lane, 0);
    if (a->check->prior) {
        check_grids_early(a, lane, address, bytes);
    }
    struct touching t = {.a = a, .g = g, .record = record_add(g, &record)};
    t.bytes = (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
    span(&t, address, bytes, lane);
}

/* --- whole lines by whole warps */

/* True when the line's summary could take it. */
static bool line_touch(struct touching *t, struct line *line)
{
    const struct actor *a = t->a;
    struct global_shadow *g = t->g;
    if (line->cells || !t->record) {
        return false;
    }
    if (line->w && !a->write && a->check->sites.list[a->site].read_only) {
        return false;
    }
    const struct record *mine = &g->records[t->record];
    bool same = false;
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t before = k ? line->r : line->w;
        same = false;
        if (!before || before == t->fine) {
            continue;
        }
        if (before & LIST_TAG) {
            if (a->write) {
                return false;
            }
            continue;
        }
        /* The same lanes at the same places, or ordered as a whole. */
        const struct record *old = &g->records[before];
        same = old->cluster == mine->cluster && old->agent == mine->agent && old->shift == mine->shift &&
               old->start == mine->start;
        if (same || (k && !a->write)) {
            continue;
        }
        const struct earlier earlier = {.cluster = old->cluster,
                                        .agent = old->agent,
                                        .time = old->time,
                                        .site = old->site,
                                        .write = k == 0};
        if (!check_ordered_all(a, &earlier)) {
            return false;
        }
        t->fine = before;
    }
    if (a->write) {
        line->w = t->record;
        line->r = 0;
    } else if (!line->r || (same && !(line->r & LIST_TAG))) {
        line->r = t->record;
    } else if (line->r & LIST_TAG) {
        struct list *list = &g->lists[line->r & ~LIST_TAG];
        list->e[list->n < LIST ? list->n++ : t->record % LIST] = t->record;
    } else {
        const uint32_t number = list_take(g);
        g->lists[number] = (struct list){.n = 2, .e = {line->r, t->record}};
        line->r = LIST_TAG | number;
    }
    return true;
}

static void whole_lines(struct touching *t, uint64_t start)
{
    for (uint64_t at = start; at < start + EMU_LANES * (uint64_t)t->bytes; at += LINE_BYTES) {
        struct page *page = page_of(t->g, at);
        if (!page) {
            return;
        }
        if (t->a->write && !page->written) {
            page_write(t->g, page, at);
        }
        if (!line_touch(t, line_of(page, at))) {
            span(t, at, LINE_BYTES, 0);
        }
    }
}

/* The lane that stands for all that read one place: not the one that wrote it. */
static unsigned reader_of(const struct actor *a, const struct emu_access *access)
{
    const unsigned first = (unsigned)__builtin_ctz(access->lanes);
    const uint32_t others = access->lanes & (access->lanes - 1);
    struct earlier e;
    const bool its = others && check_global_writer(a->check, (uint64_t)(uintptr_t)access->at, &e) &&
                     e.agent == a->agent && e.cluster == a->cl->index && e.lane == first;
    return its ? (unsigned)__builtin_ctz(others) : first;
}

void check_global(const struct actor *a, const struct emu_access *access)
{
    struct touching t = {.a = a, .g = a->check->global, .bytes = access->bytes};
    for (uint32_t left = a->check->prior ? access->lanes : 0; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        check_grids_early(a, lane, (uint64_t)(uintptr_t)emu_access_host(access, lane), access->bytes);
    }
    if (access->shape == EMU_SHAPE_ROW) {
        const uint64_t start = (uint64_t)(uintptr_t)access->at;
        const struct record record = record_of(a, start, access->lanes, access->bytes);
        t.record = record_add(t.g, &record);
        if (access->lanes == UINT32_MAX && access->bytes >= 4 && (start & (LINE_BYTES - 1)) == 0) {
            whole_lines(&t, start);
            return;
        }
        for (uint64_t left = access->lanes; left;) { /* runs of lanes */
            const unsigned first = (unsigned)__builtin_ctzll(left);
            const unsigned run = (unsigned)__builtin_ctzll(~(left >> first));
            span(&t, start + (uint64_t)first * access->bytes, (uint64_t)run * access->bytes, first);
            left &= ~(((UINT64_C(1) << run) - 1) << first);
        }
        return;
    }
    /* All at one place: one lane stands for the readers. Writers and atomics are taken one by one, and so are
       lanes at places of their own: references tell the lane, and the record may not say that all were there.
     */
    const bool one = access->shape == EMU_SHAPE_ONE && !a->write;
    const struct record record = record_of(a, 0, one ? access->lanes : access->lanes & -access->lanes, 0);
    t.record = record_reuse(t.g, a->warp, &record);
    for (uint32_t left = access->lanes; left; left = one ? 0 : left & (left - 1)) {
        const unsigned lane = one ? reader_of(a, access) : (unsigned)__builtin_ctz(left);
        span(&t, (uint64_t)(uintptr_t)emu_access_host(access, lane), access->bytes, lane);
    }
}
