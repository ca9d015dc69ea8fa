/* The shadow of global memory, as global.c keeps it and grids.c reads it after a launch.

   An access of a warp is one record. References to it are record << 5 | lane; 0 is none. */
#ifndef CLAB_CHECK_GLOBAL_H
#define CLAB_CHECK_GLOBAL_H

#include "check/state.h"

#define PAGE_SHIFT 12
#define LINE_SHIFT 7
#define LINES      (1u << (PAGE_SHIFT - LINE_SHIFT))
#define WORDS      32u
#define LIST_TAG   UINT32_C(0x80000000)
#define SPLIT_TAG  UINT32_C(0xffffffff) /* of gcell.w: r numbers the four bytes */
#define LIST       4u

/* One warp-wide access. */
struct record {
    uint64_t start; /* of a row: address of lane 0 */
    uint32_t cluster, time;
    uint32_t lanes;
    uint16_t agent, site;
    uint8_t shift; /* of a row, whose lanes follow each other: 1 + log2 of a lane's bytes; 0: no row */
    uint8_t lane;  /* the first */
};

/* Of 4 bytes: the last write, and what read since: a reference, or LIST_TAG | number of a list. */
struct gcell {
    uint32_t w, r;
};
struct line {
    uint32_t w, r;  /* records that took all of it as rows, or for r a list of them; while cells is 0 */
    uint32_t cells; /* 1 + number of its cells */
};
struct list {
    uint32_t n, e[LIST];
};
struct bytes {
    struct gcell b[4];
};
/* A read of [at, at + bytes) of a page that nothing has written yet. */
struct read {
    uint32_t reference;
    uint16_t at, bytes;
};
struct page {
    struct line lines[LINES];
    struct read *reads;
    uint32_t n_reads, reads_capacity;
    bool written;
};

/* Memory that the pages of a shadow and their reads lie in: huge pages of the host, since a gather goes from
   one to another with every lane. */
struct slab {
    struct slab *next;
    size_t bytes;
};

struct global_shadow {
    const struct emu_space *space;
    uint64_t base;
    struct page **pages;
    size_t n_pages, reserved;
    struct record *records;
    uint32_t n_records, records_capacity;
    uint32_t generation; /* of the records' numbers */
    struct gcell *cells; /* WORDS for each line that has some */
    uint32_t n_cells, cells_capacity;
    struct list *lists;
    uint32_t n_lists, lists_capacity, free_lists; /* free ones: linked through n, 1 + number */
    struct bytes *bytes;
    uint32_t n_bytes, bytes_capacity, free_bytes; /* linked through b[0].w */
    struct used_page {
        size_t number;
        struct page *page;
    } * used; /* pages that have lines; `pages` is no heap memory */
    size_t n_used, used_capacity;
    struct slab *slabs;
    unsigned char *slab_at;
    size_t slab_left;
    void *free_reads[3]; /* arrays of 64, 256 and 1024, linked through their start */
};

/* grids.c */
void check_shadow_free(struct global_shadow *g);
/* References of a place: its word's, or its byte's where `byte` is not 0 or the word is split. */
struct gcell check_shadow_at(const struct global_shadow *g, const struct page *page, uint64_t address);
/* What the page's reads are, to be found by check_shadow_at. */
void check_shadow_settle(struct global_shadow *g, struct page *page, uint64_t page_address);

static inline uint32_t record_lane(const struct record *record, uint64_t address)
{
    return record->shift ? (uint32_t)((address - record->start) >> (record->shift - 1)) & 31 : record->lane;
}

#endif
