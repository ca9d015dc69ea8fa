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
/* Room for one more item; false when memory is out. */
bool emu_space_grow(void **items, size_t count, size_t *capacity, size_t size);

#endif
