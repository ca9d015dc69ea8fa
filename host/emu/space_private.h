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
/* The granule map: `bytes` from `base` may be accessed, with these flags; or are freed. Under the lock. */
void emu_space_map_set(struct emu_space *space, uint64_t base, uint64_t bytes, uint16_t flags);
void emu_space_map_clear(struct emu_space *space, uint64_t base, uint64_t bytes);
/* Gives a range of whole pages back to the host; those of files are replaced by private ones. Under the lock.
 */
void emu_space_unback(struct emu_space *space, uint64_t base, uint64_t bytes);
/* Room for one more item; false when memory is out. */
bool emu_space_grow(void **items, size_t count, size_t *capacity, size_t size);

#endif
