/* The inside of struct emu_space, for space*.c only. */
#ifndef CLAB_EMU_SPACE_PRIVATE_H
#define CLAB_EMU_SPACE_PRIVATE_H

#include <pthread.h>

#include "emu/space.h"

#define SPACE_FREED_MEMORY 64u

struct space_allocation {
    uint64_t base, bytes;
    enum emu_memory_kind kind;
    bool internal; /* parameter blocks: not the program's, not counted */
    int file;      /* 0, or 1 + the descriptor of the file that its pages are; owned */
};

struct space_host {
    uint64_t base, bytes;
    bool writable;
};

struct space_freed {
    uint64_t base, bytes;
};

struct emu_space_private {
    pthread_mutex_t lock;
    unsigned char *reservation;
    size_t reservation_bytes;
    size_t map_bytes;
    unsigned char *gone; /* a bit for each page of the map: given back, all of it was released before */
    unsigned char *shared_pieces; /* a bit for each 2 MiB of the map: a mapping of the shared piece */
    int piece_file;               /* which that piece is; -1 not made yet, -2 cannot be had */
    uint64_t page_bytes;
    uint64_t total_bytes; /* what the device says it has */
    uint64_t limit_bytes; /* what this host can back */
    uint64_t used_bytes;
    uint64_t committed; /* [base, committed) is accessible to the host */
    uint64_t rover;     /* next placement */
    size_t n_visible;   /* allocations that the host program can write by itself: managed, pinned */
    struct space_allocation *allocations; /* sorted by base */
    size_t n_allocations, capacity;
    struct space_freed freed[SPACE_FREED_MEMORY]; /* ring */
    unsigned n_freed;
    uint64_t *params; /* free parameter blocks */
    size_t n_params, params_capacity;
    pthread_rwlock_t host_lock;
    struct space_host *hosts; /* sorted by base, disjoint */
    size_t n_hosts, hosts_capacity;
};

/* Index of the first allocation whose base is above `address`. Under the lock. */
size_t emu_space_above(const struct emu_space_private *p, uint64_t address);
/* The allocation that holds `address`, or NULL. Under the lock. */
struct space_allocation *emu_space_allocation_of(const struct emu_space_private *p, uint64_t address);
/* Gives a range of whole pages back to the host; those of files are replaced by private ones. Under the lock.
 */
void emu_space_unback(struct emu_space *space, uint64_t base, uint64_t bytes);
/* Room for one more item; false when memory is out. */
bool emu_space_grow(void **items, size_t count, size_t *capacity, size_t size);

/* The granule map (space_map.c), under the lock. init: false when memory is out; fini then too. */
bool emu_space_map_init(struct emu_space *space);
void emu_space_map_fini(struct emu_space *space);
/* [base, base + bytes) may be accessed; `flags` are bits of the entries. */
void emu_space_map_set(struct emu_space *space, uint64_t base, uint64_t bytes, uint16_t flags);
/* It may not any more. [from, to): what is free around it, itself included; empty: the map keeps its memory.
 */
void emu_space_map_clear(struct emu_space *space, uint64_t base, uint64_t bytes, uint64_t from, uint64_t to);
/* What is said of [base, base + bytes), a multiple of EMU_GRANULE_BYTES, becomes what is said of addresses
   that nothing was ever at. */
void emu_space_map_forget(struct emu_space *space, uint64_t base, uint64_t bytes);
/* Whether the entry of `granule` reads zero because its page was given back: it was allocated before. */
bool emu_space_map_gone(const struct emu_space *space, uint64_t granule);

#endif
