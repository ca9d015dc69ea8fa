/* The device's memory: reservation of the arena, allocation and release, parameter blocks.
   Implements the memory functions of core.h and space.h (PTX ISA 9.0, "State Spaces", "Generic Addressing";
   CUDA driver API, "Memory Management").

   The arena is address space without pages (PROT_NONE); pages are made accessible as the highest address in
   use grows, so that a stray host access above it traps and the number of mappings stays at three. Inside it
   only the granule map decides (space_map.c). Allocations are page-aligned with one page left out after each;
   placement goes round the arena, so that freed memory is used again as late as possible and a use after free
   is recognised for long.

   Address ranges whose memory comes and goes, and memory shared between processes: space_virtual.c. */
#include "emu/machine.h"
#include "emu/space_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPACE_COMMIT_STEP (UINT64_C(64) << 20)
#define SPACE_LEAST_BYTES (UINT64_C(64) << 20)
/* One pooled parameter block; 32764 bytes is the most that PTX allows. */
#define SPACE_PARAMS_BYTES UINT32_C(32768)
/* Where the windows go when there is no address space to reserve for them: above every user address of x86-64
   and arm64, so that no host memory can be taken for them. */
#define SPACE_FALLBACK_WINDOW (UINT64_C(0x0100) << 48)

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* Memory that the host can back: physical memory, or the cgroup's limit when that is lower. */
static uint64_t host_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file) {
        unsigned long long limit;
        if (fscanf(file, "%llu", &limit) == 1 && limit < bytes) {
            bytes = limit;
        }
        fclose(file);
    }
    return bytes;
}

/* Reserves the windows and `memory` bytes; false when the address space does not hold them. */
static bool reserve(struct emu_space *space, uint64_t memory, bool windows)
{
    struct emu_space_private *p = space->private;
    const uint64_t wanted = memory + (windows ? 3 * EMU_WINDOW_BYTES : p->page_bytes);
    if (wanted > SIZE_MAX) {
        return false;
    }
    void *at = mmap(NULL, (size_t)wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    p->reservation = at;
    p->reservation_bytes = (size_t)wanted;
    const uint64_t start = (uint64_t)(uintptr_t)at;
    if (windows) {
        space->shared_window = round_up(start, EMU_WINDOW_BYTES);
        space->base = space->shared_window + 2 * EMU_WINDOW_BYTES;
    } else {
        space->shared_window = SPACE_FALLBACK_WINDOW;
        space->base = round_up(start, p->page_bytes);
    }
    space->local_window = space->shared_window + EMU_WINDOW_BYTES;
    space->granules = memory >> EMU_GRANULE_SHIFT;
    p->map_bytes = (size_t)((space->granules + 1) * sizeof *space->map);
    void *map =
        mmap(NULL, p->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        munmap(at, (size_t)wanted);
        p->reservation = NULL;
        return false;
    }
    space->map = map;
    return true;
}

clab_status emu_space_new(uint64_t memory_bytes, struct emu_space **out_space, struct clab_error *error)
{
    *out_space = NULL;
    struct emu_space *space = calloc(1, sizeof *space);
    struct emu_space_private *p = calloc(1, sizeof *p);
    if (!space || !p) {
        free(space);
        free(p);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the device's address space");
    }
    space->private = p;
    const long page = sysconf(_SC_PAGESIZE);
    p->page_bytes = page > 4096 ? (uint64_t)page : 4096;
    p->total_bytes = memory_bytes;
    p->limit_bytes = host_memory_bytes();
    /* Page-sized gaps and placement that goes round want more addresses than bytes: twice the memory. */
    uint64_t memory = round_up(2 * memory_bytes, SPACE_LEAST_BYTES);
    bool done = false;
    for (; !done && memory >= SPACE_LEAST_BYTES; memory /= 2) {
        memory = round_up(memory, p->page_bytes);
        done = reserve(space, memory, true) || reserve(space, memory, false);
    }
    if (!done) {
        const int code = errno;
        free(p);
        free(space);
        return clab_error_set(error, CLAB_NO_MEMORY, "cannot reserve %llu bytes of address space: %s",
                              (unsigned long long)SPACE_LEAST_BYTES, strerror(code));
    }
    if (!emu_space_map_init(space)) {
        emu_space_map_fini(space);
        munmap(p->reservation, p->reservation_bytes);
        munmap(space->map, p->map_bytes);
        free(p);
        free(space);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the device's address space");
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_rwlock_init(&p->host_lock, NULL);
    if (p->limit_bytes > space->granules << EMU_GRANULE_SHIFT) {
        p->limit_bytes = space->granules << EMU_GRANULE_SHIFT;
    }
    p->committed = space->base;
    p->rover = space->base + p->page_bytes;
    *out_space = space;
    return CLAB_OK;
}

void emu_space_free(struct emu_space *space)
{
    if (!space) {
        return;
    }
    struct emu_space_private *p = space->private;
    munmap(p->reservation, p->reservation_bytes);
    munmap(space->map, p->map_bytes);
    emu_space_map_fini(space);
    pthread_mutex_destroy(&p->lock);
    pthread_rwlock_destroy(&p->host_lock);
    free(p->allocations);
    free(p->params);
    free(p->hosts);
    free(p);
    free(space);
}

/* --- allocation. All of it under the lock. */

size_t emu_space_above(const struct emu_space_private *p, uint64_t address)
{
    size_t low = 0, high = p->n_allocations;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->allocations[middle].base > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

struct space_allocation *emu_space_allocation_of(const struct emu_space_private *p, uint64_t address)
{
    const size_t above = emu_space_above(p, address);
    if (!above) {
        return NULL;
    }
    struct space_allocation *a = &p->allocations[above - 1];
    return address - a->base < a->bytes ? a : NULL;
}

/* First address after an allocation's pages and the gap that follows. */
static uint64_t allocation_end(const struct emu_space_private *p, const struct space_allocation *a)
{
    return a->base + round_up(a->bytes, p->page_bytes) + p->page_bytes;
}

/* A place for `need` bytes, gap included; *out_index is where it goes in the array. */
static bool place(const struct emu_space *space, uint64_t need, uint64_t *out_base, size_t *out_index)
{
    const struct emu_space_private *p = space->private;
    const uint64_t end = space->base + (space->granules << EMU_GRANULE_SHIFT);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t at = pass ? space->base + p->page_bytes : p->rover;
        size_t i = emu_space_above(p, at);
        if (i && allocation_end(p, &p->allocations[i - 1]) > at) {
            at = allocation_end(p, &p->allocations[i - 1]);
        }
        for (;; i++) {
            const uint64_t limit = i < p->n_allocations ? p->allocations[i].base : end;
            if (at < limit && limit - at >= need) {
                *out_base = at;
                *out_index = i;
                return true;
            }
            if (i == p->n_allocations) {
                break;
            }
            at = allocation_end(p, &p->allocations[i]);
        }
    }
    return false;
}

/* Makes [base, end) accessible to the host. */
static bool commit(struct emu_space *space, uint64_t end)
{
    struct emu_space_private *p = space->private;
    if (end <= p->committed) {
        return true;
    }
    const uint64_t last = space->base + (space->granules << EMU_GRANULE_SHIFT);
    uint64_t to = space->base + round_up(end - space->base, SPACE_COMMIT_STEP);
    if (to > last) {
        to = last;
    }
    if (mprotect((void *)(uintptr_t)p->committed, (size_t)(to - p->committed), PROT_READ | PROT_WRITE)) {
        return false;
    }
    p->committed = to;
    return true;
}

bool emu_space_grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    const size_t more = *capacity ? 2 * *capacity : 32;
    void *larger = realloc(*items, more * size);
    if (!larger) {
        return false;
    }
    *items = larger;
    *capacity = more;
    return true;
}

/* Large allocations are asked to be of huge pages, until they are freed: kernels walk through them. */
static void advise(uint64_t base, uint64_t bytes, int advice)
{
    enum { HUGE_PAGE = 2 << 20 };
    const uint64_t from = round_up(base, HUGE_PAGE), to = (base + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (to > from && to - from >= 2 * HUGE_PAGE) {
        (void)!madvise((void *)(uintptr_t)from, (size_t)(to - from), advice); /* without: slower */
    }
}

static bool is_host_visible(enum emu_memory_kind kind)
{
    return kind == EMU_MEMORY_MANAGED || kind == EMU_MEMORY_HOST;
}

static uint64_t allocate(struct emu_space *space, uint64_t bytes, enum emu_memory_kind kind, bool internal)
{
    struct emu_space_private *p = space->private;
    const uint64_t span = space->granules << EMU_GRANULE_SHIFT;
    if (!bytes || bytes > span) {
        return 0;
    }
    if (!internal && (bytes > p->total_bytes - p->used_bytes || bytes > p->limit_bytes - p->used_bytes)) {
        return 0;
    }
    const uint64_t need = round_up(bytes, p->page_bytes) + p->page_bytes;
    uint64_t base;
    size_t index;
    void *items = p->allocations;
    if (!emu_space_grow(&items, p->n_allocations, &p->capacity, sizeof *p->allocations)) {
        return 0;
    }
    p->allocations = items;
    if (!place(space, need, &base, &index) || !commit(space, base + need - p->page_bytes)) {
        return 0;
    }
    memmove(&p->allocations[index + 1], &p->allocations[index],
            (p->n_allocations - index) * sizeof *p->allocations);
    p->allocations[index] = (struct space_allocation){base, bytes, kind, internal, 0};
    p->n_allocations++;
    p->rover = base + need;
    advise(base, bytes, MADV_HUGEPAGE);
    if (!internal) {
        p->used_bytes += bytes;
        p->n_visible += is_host_visible(kind);
    }
    return base;
}

uint64_t emu_memory_alloc(struct emu_machine *machine, uint64_t bytes, enum emu_memory_kind kind)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    const uint64_t base = allocate(space, bytes, kind, false);
    if (base) {
        emu_space_map_set(space, base, bytes,
                          kind == EMU_MEMORY_CONST ? (uint16_t)(EMU_GRANULE_CONST | EMU_GRANULE_READ_ONLY)
                                                   : (uint16_t)0);
    }
    pthread_mutex_unlock(&p->lock);
    return base;
}

/* What is free around an allocation once it is released: [*out_from, *out_to), the gaps beside it too. */
static void around(const struct emu_space *space, const struct space_allocation *a, uint64_t *out_from,
                   uint64_t *out_to)
{
    const struct emu_space_private *p = space->private;
    const bool first = a == p->allocations, last = a + 1 == p->allocations + p->n_allocations;
    *out_from = first ? space->base : a[-1].base + a[-1].bytes;
    *out_to = last ? space->base + (space->granules << EMU_GRANULE_SHIFT) : a[1].base;
}

bool emu_memory_free(struct emu_machine *machine, uint64_t address)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    struct space_allocation *a = emu_space_allocation_of(p, address);
    const bool found = a && a->base == address && !a->internal && a->kind != EMU_MEMORY_RESERVED;
    if (found) {
        uint64_t from, to;
        around(space, a, &from, &to);
        emu_space_map_clear(space, a->base, a->bytes, from, to);
        if (a->file != 0) {
            emu_space_unback(space, a->base, round_up(a->bytes, p->page_bytes));
            close(a->file - 1);
        } else {
            madvise((void *)(uintptr_t)a->base, (size_t)round_up(a->bytes, p->page_bytes), MADV_DONTNEED);
            advise(a->base, a->bytes, MADV_NOHUGEPAGE);
        }
        p->freed[p->n_freed++ % SPACE_FREED_MEMORY] = (struct space_freed){a->base, a->bytes};
        p->used_bytes -= a->bytes;
        p->n_visible -= is_host_visible(a->kind) || a->file != 0;
        const size_t index = (size_t)(a - p->allocations);
        p->n_allocations--;
        memmove(a, a + 1, (p->n_allocations - index) * sizeof *a);
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

bool emu_memory_heap_in_use(const struct emu_machine *machine)
{
    return atomic_load(&machine->heap_in_use);
}

void emu_memory_heap_clear(struct emu_machine *machine)
{
    struct emu_space_private *p = machine->space->private;
    atomic_store(&machine->heap_parts, 0);
    atomic_store(&machine->heap_in_use, false);
    for (size_t i = 0;;) {
        pthread_mutex_lock(&p->lock);
        while (i < p->n_allocations && p->allocations[i].kind != EMU_MEMORY_HEAP) {
            i++;
        }
        const uint64_t base = i < p->n_allocations ? p->allocations[i].base : 0;
        pthread_mutex_unlock(&p->lock);
        if (!base) {
            return;
        }
        emu_memory_free(machine, base);
    }
}

bool emu_memory_find(const struct emu_machine *machine, uint64_t address, uint64_t *out_base,
                     uint64_t *out_bytes, enum emu_memory_kind *out_kind)
{
    const struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    const struct space_allocation *a = emu_space_allocation_of(p, address);
    bool found = a && !a->internal &&
                 (a->kind != EMU_MEMORY_RESERVED ||
                  (space->map[(address - space->base) >> EMU_GRANULE_SHIFT] & EMU_GRANULE_VALID));
    if (found) {
        *out_base = a->base;
        *out_bytes = a->bytes;
        *out_kind = a->kind;
    }
    pthread_mutex_unlock(&p->lock);
    if (!found) {
        pthread_rwlock_rdlock(&p->host_lock);
        for (size_t i = 0; i < p->n_hosts && !found; i++) {
            if (address - p->hosts[i].base < p->hosts[i].bytes) {
                *out_base = p->hosts[i].base;
                *out_bytes = p->hosts[i].bytes;
                *out_kind = EMU_MEMORY_HOST;
                found = true;
            }
        }
        pthread_rwlock_unlock(&p->host_lock);
    }
    return found;
}

void *emu_memory_host(const struct emu_machine *machine, uint64_t address, uint64_t bytes)
{
    uint64_t base, size;
    enum emu_memory_kind kind;
    if (!emu_memory_find(machine, address, &base, &size, &kind) || bytes > size - (address - base)) {
        return NULL;
    }
    if (kind == EMU_MEMORY_RESERVED) { /* only what is mapped */
        return emu_space_range_read(machine->space, address, bytes);
    }
    return (void *)(uintptr_t)address;
}

void emu_memory_info(const struct emu_machine *machine, uint64_t *out_free, uint64_t *out_total)
{
    struct emu_space_private *p = machine->space->private;
    pthread_mutex_lock(&p->lock);
    const uint64_t device = p->total_bytes - p->used_bytes, host = p->limit_bytes - p->used_bytes;
    *out_free = device < host ? device : host;
    *out_total = p->total_bytes;
    pthread_mutex_unlock(&p->lock);
}

uint64_t emu_space_params_take(struct emu_space *space, uint32_t bytes)
{
    struct emu_space_private *p = space->private;
    if (bytes > SPACE_PARAMS_BYTES) {
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    const uint64_t base =
        p->n_params ? p->params[--p->n_params] : allocate(space, SPACE_PARAMS_BYTES, EMU_MEMORY_CONST, true);
    if (base) {
        emu_space_map_set(space, base, bytes, EMU_GRANULE_PARAM | EMU_GRANULE_READ_ONLY);
    }
    pthread_mutex_unlock(&p->lock);
    return base;
}

uint64_t emu_space_workspace_take(struct emu_space *space, uint32_t bytes)
{
    const uint64_t base = emu_space_params_take(space, bytes);
    if (base) {
        pthread_mutex_lock(&space->private->lock);
        emu_space_map_set(space, base, bytes, 0);
        pthread_mutex_unlock(&space->private->lock);
        memset((void *)(uintptr_t)base, 0, bytes);
    }
    return base;
}

void emu_space_params_give(struct emu_space *space, uint64_t address)
{
    struct emu_space_private *p = space->private;
    if (!address) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    emu_space_map_clear(space, address, SPACE_PARAMS_BYTES, 0, 0);
    void *items = p->params;
    if (emu_space_grow(&items, p->n_params, &p->params_capacity,
                       sizeof *p->params)) { /* else the block stays unused */
        p->params = items;
        p->params[p->n_params++] = address;
    }
    pthread_mutex_unlock(&p->lock);
}

/* --- ranges and classes */

static void *arena_range(const struct emu_space *space, uint64_t address, uint64_t bytes, bool write)
{
    const uint64_t start = address - space->base;
    const uint64_t span = space->granules << EMU_GRANULE_SHIFT;
    if (start >= span) {
        return write ? emu_space_host_write(space, address, bytes)
                     : emu_space_host_read(space, address, bytes);
    }
    if (!bytes || bytes > span - start) {
        return NULL;
    }
    const uint64_t last = (start + bytes - 1) >> EMU_GRANULE_SHIFT;
    for (uint64_t i = start >> EMU_GRANULE_SHIFT; i <= last; i++) {
        const unsigned need =
            i == last ? (unsigned)((start + bytes - 1) & (EMU_GRANULE_BYTES - 1)) + 1 : EMU_GRANULE_BYTES;
        const uint16_t entry = space->map[i];
        if ((entry & EMU_GRANULE_VALID) < need || (write && (entry & EMU_GRANULE_READ_ONLY))) {
            return NULL;
        }
    }
    return (void *)(uintptr_t)address;
}

void *emu_space_range_read(const struct emu_space *space, uint64_t address, uint64_t bytes)
{
    return arena_range(space, address, bytes, false);
}

void *emu_space_range_write(const struct emu_space *space, uint64_t address, uint64_t bytes)
{
    return arena_range(space, address, bytes, true);
}

enum emu_address_class emu_space_classify(const struct emu_space *space, uint64_t address)
{
    if (address - space->shared_window < EMU_WINDOW_BYTES) {
        return EMU_ADDRESS_SHARED;
    }
    if (address - space->local_window < EMU_WINDOW_BYTES) {
        return EMU_ADDRESS_LOCAL;
    }
    const uint64_t index = (address - space->base) >> EMU_GRANULE_SHIFT;
    if (index < space->granules) {
        const uint16_t entry = space->map[index];
        if (entry & EMU_GRANULE_CONST) {
            return EMU_ADDRESS_CONST;
        }
        if (entry & EMU_GRANULE_PARAM) {
            return EMU_ADDRESS_PARAM;
        }
    }
    return EMU_ADDRESS_GLOBAL;
}
