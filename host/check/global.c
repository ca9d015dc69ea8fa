/* The shadow of global memory. An access by a warp is one record; a line of 128 bytes remembers the record
   that last wrote all of it and the one that last read it, 16 bytes for 128, while whole warps access whole
   lines: most lines are never written, or written once. Anything finer gives the line a cell for every 4
   bytes, and a cell four bytes when one of them is accessed alone. Of readers without an order between them
   the last few are kept: a race with one that was forgotten may be missed, none is invented. Memory that the
   host registered lies outside the arena and has no shadow. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check/state.h"
#include "emu/machine.h"

#define PAGE_SHIFT 12
#define LINE_SHIFT 7
#define LINES      (1u << (PAGE_SHIFT - LINE_SHIFT))
#define WORDS      32u
#define MOST       (UINT32_C(1) << 26) /* records: their numbers share a word with a lane and a tag */
#define LIST_TAG   UINT32_C(0x80000000)
#define LIST       4u

/* One warp-wide access. */
struct record {
    uint64_t start; /* address of lane 0 where lanes follow each other, else of one lane */
    uint32_t cluster, time;
    uint32_t lanes;
    uint16_t agent, site;
    uint8_t bytes; /* of a lane; 0: all lanes at one place */
    uint8_t lane;  /* of a single lane */
};

/* References: record << 5 | lane, or LIST_TAG | number of a list. 0: none. */
struct gcell {
    uint32_t w, r;
};
struct line {
    uint32_t w, r;  /* records, or for r a list of them; while cells is 0 */
    uint32_t cells; /* 1 + number of its cells */
};
struct list {
    uint32_t n, e[LIST];
};
struct bytes {
    struct gcell b[4];
};

struct global_shadow {
    const struct emu_space *space;
    struct line **pages;
    size_t n_pages, reserved;
    struct record *records;
    uint32_t n_records, records_capacity;
    struct gcell *cells; /* WORDS for each line that has some */
    uint32_t n_cells, cells_capacity;
    struct list *lists;
    uint32_t n_lists, lists_capacity;
    struct bytes *bytes;
    uint32_t n_bytes, bytes_capacity;
    size_t *used; /* pages that have lines */
    size_t n_used, used_capacity;
};

#define SPLIT_TAG UINT32_C(0xffffffff) /* of gcell.w: r numbers the four bytes */

void check_global_new(struct check *check)
{
    struct global_shadow *g = check_alloc(sizeof *g);
    g->space = check->run->machine->space;
    g->n_pages = (size_t)((g->space->granules << EMU_GRANULE_SHIFT) >> PAGE_SHIFT) + 1;
    g->reserved = g->n_pages * sizeof *g->pages;
    g->pages =
        mmap(NULL, g->reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->pages == MAP_FAILED) {
        g->pages = NULL;
        g->n_pages = 0;
    }
    g->n_records = 1;
    check->global = g;
}

void check_global_free(struct check *check)
{
    struct global_shadow *g = check->global;
    if (!g) {
        return;
    }
    for (size_t i = 0; i < g->n_used; i++) {
        free(g->pages[g->used[i]]);
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
    check->global = NULL;
}

static struct line *line_of(struct global_shadow *g, uint64_t address)
{
    const uint64_t start = address - g->space->base, page = start >> PAGE_SHIFT;
    if (page >= g->n_pages) {
        return NULL;
    }
    if (!g->pages[page]) {
        g->pages[page] = check_alloc(LINES * sizeof(struct line));
        if (g->n_used == g->used_capacity) {
            g->used_capacity = g->used_capacity ? 2 * g->used_capacity : 256;
            g->used = check_grow(g->used, g->used_capacity * sizeof *g->used);
        }
        g->used[g->n_used++] = page;
    }
    return &g->pages[page][start >> LINE_SHIFT & (LINES - 1)];
}

/* 0 when there are too many: the access is then checked but not remembered. */
static uint32_t record_add(struct global_shadow *g, const struct record *record)
{
    if (g->n_records == MOST) {
        return 0;
    }
    if (g->n_records >= g->records_capacity) {
        g->records_capacity = g->records_capacity ? 2 * g->records_capacity : 1024;
        g->records = check_grow(g->records, (size_t)g->records_capacity * sizeof *g->records);
    }
    g->records[g->n_records] = *record;
    return g->n_records++;
}

static struct earlier earlier_of(const struct global_shadow *g, uint32_t reference, bool write)
{
    const struct record *r = &g->records[reference >> 5];
    return (struct earlier){.cluster = r->cluster,
                            .agent = r->agent,
                            .time = r->time,
                            .lane = reference & 31,
                            .site = r->site,
                            .several = r->bytes == 0 && (r->lanes & (r->lanes - 1)),
                            .write = write};
}

struct where {
    uint64_t address;
    uint32_t bytes;
    unsigned lane;
};

static void against(const struct actor *a, const struct where *p, uint32_t reference, bool write)
{
    const struct earlier earlier = earlier_of(a->check->global, reference, write);
    if (!check_ordered(a, p->lane, &earlier) && !check_morally_strong(a, &earlier)) {
        check_race(a, p->lane, &earlier, CLAB_SPACE_GLOBAL, NULL, p->address, p->bytes,
                   (const unsigned char *)(uintptr_t)p->address);
    }
}

static bool is_weak_write(const struct actor *a, uint32_t reference);

static void reads_check(const struct actor *a, const struct where *p, uint32_t *r)
{
    struct global_shadow *g = a->check->global;
    if (*r & LIST_TAG) {
        const struct list list = g->lists[*r & ~LIST_TAG];
        for (uint32_t i = 0; i < list.n; i++) {
            against(a, p, list.e[i], is_weak_write(a, list.e[i]));
        }
    } else if (*r) {
        against(a, p, *r, is_weak_write(a, *r));
    }
    *r = 0;
}

static bool same_reader(const struct global_shadow *g, uint32_t x, uint32_t y)
{
    const struct record *a = &g->records[x >> 5], *b = &g->records[y >> 5];
    return a->agent == b->agent && a->cluster == b->cluster && (x & 31) == (y & 31) &&
           (a->lanes & ~b->lanes) == 0;
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
                list->e[i] = mine;
                return;
            }
        }
        list->e[list->n < LIST ? list->n++ : (mine >> 5) % LIST] = mine;
        return;
    }
    if (same_reader(g, *r, mine)) {
        *r = mine;
        return;
    }
    if (g->n_lists == g->lists_capacity) {
        g->lists_capacity = g->lists_capacity ? 2 * g->lists_capacity : 256;
        g->lists = check_grow(g->lists, (size_t)g->lists_capacity * sizeof *g->lists);
    }
    g->lists[g->n_lists] = (struct list){.n = 2, .e = {*r, mine}};
    *r = LIST_TAG | g->n_lists++;
}

/* As in shared.c: a weak write that an atomic covers stays in the place of the reads. */
static bool is_weak_write(const struct actor *a, uint32_t reference)
{
    const struct global_shadow *g = a->check->global;
    if (!reference || (reference & LIST_TAG)) {
        return false;
    }
    const struct site *site = &a->check->sites.list[g->records[reference >> 5].site];
    return site->store && !site->strong;
}

static void touch(const struct actor *a, const struct where *p, struct gcell *cell, uint32_t mine)
{
    if (cell->w) {
        against(a, p, cell->w, true);
    }
    if (a->write) {
        const uint32_t covered = !a->strong                  ? 0
                                 : is_weak_write(a, cell->w) ? cell->w
                                 : is_weak_write(a, cell->r) ? cell->r
                                                             : 0;
        reads_check(a, p, &cell->r);
        cell->w = mine;
        cell->r = covered;
    } else if (mine) {
        if (is_weak_write(a, cell->r)) {
            against(a, p, cell->r, true);
        }
        read_note(a->check->global, &cell->r, mine);
    }
}

static uint32_t lane_in(const struct record *record, uint64_t address)
{
    return record->bytes ? (uint32_t)((address - record->start) / record->bytes) & 31 : record->lane;
}

static uint32_t reference_at(const struct global_shadow *g, uint32_t record, uint64_t address)
{
    return record ? record << 5 | lane_in(&g->records[record], address) : 0;
}

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
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint64_t address = line_address + 4 * i;
        cells[i].w = reference_at(g, line->w, address);
        if (line->r & LIST_TAG) {
            /* Lists of a line hold records; those of cells hold references. */
            struct list list = g->lists[line->r & ~LIST_TAG];
            for (uint32_t k = 0; k < list.n; k++) {
                list.e[k] = reference_at(g, list.e[k], address);
            }
            if (g->n_lists == g->lists_capacity) {
                g->lists_capacity *= 2;
                g->lists = check_grow(g->lists, (size_t)g->lists_capacity * sizeof *g->lists);
            }
            g->lists[g->n_lists] = list;
            cells[i].r = LIST_TAG | g->n_lists++;
        } else {
            cells[i].r = reference_at(g, line->r, address);
        }
    }
    line->cells = ++g->n_cells;
    return cells;
}

/* Bytes [first, first + n) of a cell that is, or becomes, four. */
static void bytes_touch(const struct actor *a, const struct where *p, struct gcell *cell, unsigned first,
                        unsigned n, uint32_t mine)
{
    struct global_shadow *g = a->check->global;
    if (cell->w != SPLIT_TAG) {
        if (g->n_bytes == g->bytes_capacity) {
            g->bytes_capacity = g->bytes_capacity ? 2 * g->bytes_capacity : 256;
            g->bytes = check_grow(g->bytes, (size_t)g->bytes_capacity * sizeof *g->bytes);
        }
        for (unsigned b = 0; b < 4; b++) {
            g->bytes[g->n_bytes].b[b] = *cell;
            if (b > 0 && (cell->r & LIST_TAG)) {
                /* One list cannot serve four: the newest reader is kept. */
                const struct list *list = &g->lists[cell->r & ~LIST_TAG];
                g->bytes[g->n_bytes].b[b].r = list->e[list->n - 1];
            }
        }
        *cell = (struct gcell){SPLIT_TAG, g->n_bytes++};
    }
    const uint32_t index = cell->r;
    for (unsigned b = first; b < first + n; b++) {
        struct gcell byte = g->bytes[index].b[b];
        touch(a, p, &byte, mine);
        g->bytes[index].b[b] = byte;
    }
    if (n == 4 && a->write) {
        *cell = (struct gcell){mine, 0};
    }
}

static void range(const struct actor *a, const struct where *p, uint32_t record)
{
    struct global_shadow *g = a->check->global;
    const uint64_t end = p->address + p->bytes;
    for (uint64_t at = p->address; at < end;) {
        struct line *line = line_of(g, at);
        if (!line) {
            return;
        }
        const uint64_t line_address = at & ~((UINT64_C(1) << LINE_SHIFT) - 1);
        cells_of(g, line, line_address);
        const uint64_t line_end =
            line_address + (1u << LINE_SHIFT) < end ? line_address + (1u << LINE_SHIFT) : end;
        while (at < line_end) {
            const uint32_t word = (uint32_t)(at - line_address) / 4;
            const uint64_t next = (at | 3) + 1 < line_end ? (at | 3) + 1 : line_end;
            const uint32_t mine = record ? record << 5 | p->lane : 0;
            const size_t index = (size_t)(line->cells - 1) * WORDS + word;
            struct gcell cell = g->cells[index];
            if (next - at == 4 && cell.w != SPLIT_TAG) {
                touch(a, p, &cell, mine);
            } else {
                bytes_touch(a, p, &cell, (unsigned)(at & 3), (unsigned)(next - at), mine);
            }
            g->cells[index] = cell;
            at = next;
        }
    }
}

static struct record record_of(const struct actor *a, uint64_t start, uint32_t lanes, uint32_t bytes)
{
    return (struct record){.start = start,
                           .cluster = (uint32_t)a->cl->index,
                           .time = a->time,
                           .lanes = lanes,
                           .agent = (uint16_t)a->agent,
                           .site = (uint16_t)a->site,
                           .bytes = (uint8_t)bytes,
                           .lane = (uint8_t)__builtin_ctz(lanes)};
}

void check_global_range(const struct actor *a, unsigned lane, uint64_t address, uint64_t bytes)
{
    const struct record record = record_of(a, address, UINT32_C(1) << lane, 0);
    const uint32_t number = record_add(a->check->global, &record);
    for (uint64_t done = 0; done < bytes; done += 1u << 20) {
        const struct where p = {address + done, (uint32_t)(bytes - done < 1u << 20 ? bytes - done : 1u << 20),
                                lane};
        range(a, &p, number);
    }
}

/* Whole lines by a whole warp. True when the line's summary could take it. */
static bool line_touch(const struct actor *a, struct line *line, uint32_t record, uint32_t bytes)
{
    struct global_shadow *g = a->check->global;
    if (line->cells || !record) {
        return false;
    }
    const struct record *mine = &g->records[record];
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t before = k ? line->r : line->w;
        if (!before || (k && !a->write)) {
            continue;
        }
        if (before & LIST_TAG) {
            return false;
        }
        const struct record *old = &g->records[before];
        /* The same lanes at the same places, or ordered as a whole. */
        const bool same = old->cluster == mine->cluster && old->agent == mine->agent && old->bytes == bytes &&
                          old->start == mine->start;
        if (!same && !(old->cluster == mine->cluster &&
                       known_covers(a->known, &a->warp->self, old->agent, UINT32_MAX, old->time))) {
            return false;
        }
    }
    if (a->write) {
        line->w = record;
        line->r = 0;
        return true;
    }
    if (!line->r) {
        line->r = record;
        return true;
    }
    if (line->r & LIST_TAG) {
        struct list *list = &g->lists[line->r & ~LIST_TAG];
        list->e[list->n < LIST ? list->n++ : record % LIST] = record;
        return true;
    }
    if (g->n_lists == g->lists_capacity) {
        g->lists_capacity = g->lists_capacity ? 2 * g->lists_capacity : 256;
        g->lists = check_grow(g->lists, (size_t)g->lists_capacity * sizeof *g->lists);
    }
    g->lists[g->n_lists] = (struct list){.n = 2, .e = {line->r, record}};
    line->r = LIST_TAG | g->n_lists++;
    return true;
}

void check_global(const struct actor *a, const struct emu_access *access)
{
    struct global_shadow *g = a->check->global;
    const uint32_t bytes = access->bytes;
    if (access->shape == EMU_SHAPE_ROW) {
        const uint64_t start = (uint64_t)(uintptr_t)access->at;
        const struct record record = record_of(a, start, access->lanes, bytes);
        const uint32_t number = record_add(g, &record);
        if (access->lanes == UINT32_MAX && bytes >= 4 && (start & ((1u << LINE_SHIFT) - 1)) == 0 &&
            !a->copy) {
            for (uint64_t at = start; at < start + EMU_LANES * bytes; at += 1u << LINE_SHIFT) {
                struct line *line = line_of(g, at);
                if (!line || line_touch(a, line, number, bytes)) {
                    continue;
                }
                for (uint64_t word = at; word < at + (1u << LINE_SHIFT); word += bytes < 128 ? bytes : 128) {
                    const struct where p = {word, bytes, (unsigned)((word - start) / bytes)};
                    range(a, &p, number);
                }
            }
            return;
        }
        for (uint32_t left = access->lanes; left; left &= left - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(left);
            const struct where p = {start + (uint64_t)lane * bytes, bytes, lane};
            range(a, &p, number);
        }
        return;
    }
    /* All at one place: one lane stands for the readers; writers and atomics are taken one by one. */
    const struct record one = record_of(a, 0, access->lanes, 0);
    const uint32_t number = record_add(g, &one);
    if (access->shape == EMU_SHAPE_ONE && !a->write) {
        const struct where p = {(uint64_t)(uintptr_t)access->at, bytes,
                                (unsigned)__builtin_ctz(access->lanes)};
        range(a, &p, number);
        return;
    }
    uint32_t single = number;
    if (access->shape == EMU_SHAPE_EACH || (access->lanes & (access->lanes - 1)) == 0 || a->write) {
        /* References carry the lane: the record must not say that all were there. */
        if (single) {
            g->records[single].lanes = access->lanes & -access->lanes;
        }
    }
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const struct where p = {(uint64_t)(uintptr_t)emu_access_host(access, lane), bytes, lane};
        range(a, &p, single);
    }
}
