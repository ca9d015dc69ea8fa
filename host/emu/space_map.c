/* The granule map (space.h): what it says when memory is allocated and released, and how it stays small. The
   map takes 2 bytes for every 256 of an arena that is twice the device's memory, a few gigabytes if all of it
   were touched. So
   - whole pieces of it that one allocation covers are private mappings of one shared piece that says so: a
   large allocation costs a mapping for each 256 MiB and no memory;
   - pages of it in which nothing is live any more go back to the host; a bit for each says that there was
   something before, so that a use after free is still called one. A mapping is replaced in one step (mmap
   with MAP_FIXED): a kernel that looks meanwhile waits for the host's page tables. All of it under the
   space's lock. */
#include "emu/space_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE_BYTES   (UINT64_C(2) << 20) /* of the map */
#define PIECE_ENTRIES (PIECE_BYTES / sizeof(uint16_t))

static uint64_t entries_per_page(const struct emu_space *space)
{
    return space->private->page_bytes / sizeof *space->map;
}

static bool bit(const unsigned char *bits, uint64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

static void bit_put(unsigned char *bits, uint64_t i, bool on)
{
    const unsigned char mask = (unsigned char)(1u << (i % 8));
    bits[i / 8] = (unsigned char)(on ? bits[i / 8] | mask : bits[i / 8] & ~mask);
}

bool emu_space_map_init(struct emu_space *space)
{
    struct emu_space_private *p = space->private;
    const uint64_t pages = space->granules / entries_per_page(space) + 1;
    p->piece_file = -1;
    p->gone = calloc((size_t)(pages / 8 + 1), 1);
    p->shared_pieces = calloc((size_t)(space->granules / PIECE_ENTRIES / 8 + 1), 1);
    return p->gone && p->shared_pieces;
}

void emu_space_map_fini(struct emu_space *space)
{
    struct emu_space_private *p = space->private;
    if (p->piece_file >= 0) {
        close(p->piece_file);
    }
    free(p->gone);
    free(p->shared_pieces);
}

bool emu_space_map_gone(const struct emu_space *space, uint64_t granule)
{
    return bit(space->private->gone, granule / entries_per_page(space));
}

/* The file behind shared pieces, -1 when there can be none. */
static int piece_file(struct emu_space_private *p)
{
    if (p->piece_file != -1) {
        return p->piece_file;
    }
    p->piece_file = -2; /* not again */
    const int file = memfd_create("clusterlab granules", MFD_CLOEXEC);
    if (file < 0) {
        return -2;
    }
    uint16_t *entries = MAP_FAILED;
    if (ftruncate(file, (off_t)PIECE_BYTES) == 0) {
        entries = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (entries == MAP_FAILED) {
        close(file);
        return -2;
    }
    for (uint64_t i = 0; i < PIECE_ENTRIES; i++) {
        entries[i] = EMU_GRANULE_BYTES;
    }
    munmap(entries, PIECE_BYTES);
    return p->piece_file = file;
}

/* Makes the pages of [first, end) ordinary again. What was released in those that the range covers only in
   part is written down first. */
static void bring_back(struct emu_space *space, uint64_t first, uint64_t end)
{
    struct emu_space_private *p = space->private;
    const uint64_t per_page = entries_per_page(space);
    for (uint64_t page = first / per_page; page <= (end - 1) / per_page; page++) {
        if (!bit(p->gone, page)) {
            continue;
        }
        bit_put(p->gone, page, false);
        for (uint64_t i = page * per_page; i < (page + 1) * per_page && i < space->granules; i++) {
            if (i < first || i >= end) {
                space->map[i] = EMU_GRANULE_FREED;
            }
        }
    }
}

static bool share_piece(struct emu_space *space, uint64_t piece)
{
    struct emu_space_private *p = space->private;
    if (piece_file(p) < 0 || mmap(space->map + piece * PIECE_ENTRIES, PIECE_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, p->piece_file, 0) == MAP_FAILED) {
        return false;
    }
    bit_put(p->shared_pieces, piece, true);
    return true;
}

void emu_space_map_set(struct emu_space *space, uint64_t base, uint64_t bytes, uint16_t flags)
{
    const uint64_t first = (base - space->base) >> EMU_GRANULE_SHIFT,
                   end = first + (bytes >> EMU_GRANULE_SHIFT);
    const unsigned rest = (unsigned)(bytes & (EMU_GRANULE_BYTES - 1));
    const uint16_t full = (uint16_t)(EMU_GRANULE_BYTES | flags);
    bring_back(space, first, end + (rest != 0));
    for (uint64_t i = first; i < end;) {
        if (flags == 0 && i % PIECE_ENTRIES == 0 && end - i >= PIECE_ENTRIES &&
            share_piece(space, i / PIECE_ENTRIES)) {
            i += PIECE_ENTRIES;
            continue;
        }
        const uint64_t piece_end = (i / PIECE_ENTRIES + 1) * PIECE_ENTRIES;
        for (; i < end && i < piece_end; i++) {
            space->map[i] = full;
        }
    }
    if (rest) {
        space->map[end] = (uint16_t)(rest | flags);
    }
}

/* Pages of the map that may be given back when [from, to) of the arena is free: those that the entries
   [first, end) touch, and the one before, which another release may have left in use. */
static void pages_to_drop(const struct emu_space *space, uint64_t first, uint64_t end, uint64_t from,
                          uint64_t to, uint64_t *out_low, uint64_t *out_high)
{
    const struct emu_space_private *p = space->private;
    const uint64_t per_page = entries_per_page(space), before = first / per_page;
    const uint64_t page_bytes = per_page
                                << EMU_GRANULE_SHIFT; /* of the arena, that a page of the map speaks of */
    uint64_t low = before ? before - 1 : 0, high = (end - 1) / per_page + 1;
    *out_low = *out_high = 0;
    if (from >= to) {
        return;
    }
    const uint64_t free_low = (from - space->base + page_bytes - 1) / page_bytes,
                   free_high = (to - space->base) / page_bytes;
    low = low > free_low ? low : free_low;
    high = high < free_high ? high : free_high;
    for (uint64_t piece = low * per_page / PIECE_ENTRIES;
         low < high && piece <= (high * per_page - 1) / PIECE_ENTRIES; piece++) {
        if (bit(p->shared_pieces,
                piece)) { /* could not be replaced; without its pages it would say that all is live */
            return;
        }
    }
    if (low < high) {
        *out_low = low;
        *out_high = high;
    }
}

/* Whole pieces of [first, end) stop being mappings of the shared one. One that cannot be replaced stays. */
static void piece_end(struct emu_space *space, uint64_t first, uint64_t end)
{
    struct emu_space_private *p = space->private;
    for (uint64_t piece = (first + PIECE_ENTRIES - 1) / PIECE_ENTRIES; (piece + 1) * PIECE_ENTRIES <= end;
         piece++) {
        if (bit(p->shared_pieces, piece) &&
            mmap(space->map + piece * PIECE_ENTRIES, PIECE_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
            bit_put(p->shared_pieces, piece, false);
        }
    }
}

void emu_space_map_forget(struct emu_space *space, uint64_t base, uint64_t bytes)
{
    struct emu_space_private *p = space->private;
    const uint64_t per_page = entries_per_page(space);
    const uint64_t first = (base - space->base) >> EMU_GRANULE_SHIFT,
                   end = first + (bytes >> EMU_GRANULE_SHIFT);
    piece_end(space, first, end);
    for (uint64_t i = first; i < end;) {
        const uint64_t piece = i / PIECE_ENTRIES;
        const uint64_t stop = (piece + 1) * PIECE_ENTRIES < end ? (piece + 1) * PIECE_ENTRIES : end;
        /* Pages of a shared piece would come back as they are in its file. */
        const uint64_t low = bit(p->shared_pieces, piece) ? stop : (i + per_page - 1) / per_page * per_page,
                       high = stop / per_page * per_page;
        if (low < high &&
            madvise(space->map + low, (size_t)(high - low) * sizeof *space->map, MADV_DONTNEED) == 0) {
            memset(space->map + i, 0, (size_t)(low - i) * sizeof *space->map);
            memset(space->map + high, 0, (size_t)(stop - high) * sizeof *space->map);
        } else {
            memset(space->map + i, 0, (size_t)(stop - i) * sizeof *space->map);
        }
        i = stop;
    }
}

void emu_space_map_clear(struct emu_space *space, uint64_t base, uint64_t bytes, uint64_t from, uint64_t to)
{
    struct emu_space_private *p = space->private;
    const uint64_t per_page = entries_per_page(space);
    const uint64_t first = (base - space->base) >> EMU_GRANULE_SHIFT,
                   end = first + ((bytes + EMU_GRANULE_BYTES - 1) >> EMU_GRANULE_SHIFT);
    piece_end(space, first, end);
    uint64_t low, high;
    pages_to_drop(space, first, end, from, to, &low, &high);
    /* The next allocation is about to write the page that the rover is in. */
    const uint64_t rover_page = ((p->rover - space->base) >> EMU_GRANULE_SHIFT) / per_page;
    for (uint64_t i = first; i < end;) {
        const uint64_t page = i / per_page;
        const uint64_t page_end = (page + 1) * per_page < end ? (page + 1) * per_page : end;
        if (page >= low && page < high && page != rover_page) {
            i = page_end;
        }
        for (; i < page_end; i++) {
            space->map[i] = EMU_GRANULE_FREED;
        }
    }
    for (uint64_t page = low; page < high;) {
        uint64_t run = page;
        while (run < high && run != rover_page && !bit(p->gone, run)) {
            bit_put(p->gone, run++, true);
        }
        if (run > page) {
            madvise(space->map + page * per_page, (size_t)((run - page) * p->page_bytes), MADV_DONTNEED);
        }
        page = run > page ? run : page + 1;
    }
}
