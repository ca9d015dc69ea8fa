/* Addresses without memory, memory without addresses, and mappings between them ("Virtual Memory Management"
   of the CUDA Driver API 13.0); memory shared with other processes ("cuIpc…"). Physical memory is a memfd:
   mapped shared over the arena's pages, so that two mappings of it, here or in another process, are the same
   bytes.

   Leaves out: descriptors that somebody else's driver made. */
#include "emu/machine.h"
#include "emu/space_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How files of ours are told from others: the name shows in /proc/self/fd. */
#define FILE_NAME "clusterlab-device-memory"

struct emu_physical {
    uint64_t bytes;
    int fd;
    bool counted; /* against this device's memory; imported memory counts where it was made */
    bool shared;  /* with another process */
};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint64_t space_end(const struct emu_space *space)
{
    return space->base + (space->granules << EMU_GRANULE_SHIFT);
}

/* --- files */

static int file_new(uint64_t bytes)
{
    const int fd = memfd_create(FILE_NAME, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool file_is_ours(int fd, uint64_t *out_bytes)
{
    char link[64], name[256];
    struct stat about;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0 || fstat(fd, &about) != 0 || about.st_size <= 0) {
        return false;
    }
    name[length] = '\0';
    *out_bytes = (uint64_t)about.st_size;
    return strncmp(name, "/memfd:" FILE_NAME, strlen("/memfd:" FILE_NAME)) == 0;
}

/* Puts a file's pages at an address of the arena. */
static bool back(uint64_t address, uint64_t bytes, int fd, uint64_t offset)
{
    return mmap((void *)(uintptr_t)address, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                (off_t)offset) != MAP_FAILED;
}

void emu_space_unback(struct emu_space *space, uint64_t base, uint64_t bytes)
{
    (void)space;
    /* Accessible, though nothing lives there: a copy, set or kernel of another thread may be at it just now,
       which is the program's mistake but must not end the process. A failure leaves the file's pages where
       they are: unreachable, since the granule map decides. */
    (void)!mmap((void *)(uintptr_t)base, (size_t)bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* --- reservations */

static bool insert(struct emu_space_private *p, uint64_t base, uint64_t bytes)
{
    void *items = p->allocations;
    if (!emu_space_grow(&items, p->n_allocations, &p->capacity, sizeof *p->allocations)) {
        return false;
    }
    p->allocations = items;
    const size_t index = emu_space_above(p, base);
    memmove(&p->allocations[index + 1], &p->allocations[index],
            (p->n_allocations - index) * sizeof *p->allocations);
    p->allocations[index] = (struct space_allocation){base, bytes, EMU_MEMORY_RESERVED, false, 0};
    p->n_allocations++;
    return true;
}

static bool is_free(const struct emu_space *space, uint64_t base, uint64_t bytes)
{
    const struct emu_space_private *p = space->private;
    if (base < space->base + p->page_bytes || base > space_end(space) || bytes > space_end(space) - base) {
        return false;
    }
    const size_t above = emu_space_above(p, base);
    if (above && p->allocations[above - 1].base + p->allocations[above - 1].bytes > base) {
        return false;
    }
    return above == p->n_allocations || p->allocations[above].base >= base + bytes;
}

/* The highest free range: reservations grow down from the end, allocations up from the start. */
static uint64_t find(const struct emu_space *space, uint64_t bytes, uint64_t alignment)
{
    const struct emu_space_private *p = space->private;
    uint64_t end = space_end(space);
    for (size_t i = p->n_allocations + 1; i-- > 0;) {
        const uint64_t least =
            i ? round_up(p->allocations[i - 1].base + p->allocations[i - 1].bytes, p->page_bytes)
              : space->base + p->page_bytes;
        if (end >= bytes) {
            const uint64_t at = (end - bytes) / alignment * alignment;
            if (at >= least && at + bytes <= end) {
                return at;
            }
        }
        if (i) {
            end = p->allocations[i - 1].base;
        }
    }
    return 0;
}

uint64_t emu_memory_reserve(struct emu_machine *machine, uint64_t bytes, uint64_t alignment, uint64_t wanted)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    const uint64_t step = alignment > EMU_PHYSICAL_STEP ? alignment : EMU_PHYSICAL_STEP;
    if (bytes == 0 || bytes > space->granules << EMU_GRANULE_SHIFT) {
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    uint64_t base = wanted != 0 && wanted % step == 0 && is_free(space, wanted, bytes)
                        ? wanted
                        : find(space, bytes, step);
    if (base && !insert(p, base, bytes)) {
        base = 0;
    }
    pthread_mutex_unlock(&p->lock);
    return base;
}

bool emu_memory_unreserve(struct emu_machine *machine, uint64_t base, uint64_t bytes)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    struct space_allocation *a = emu_space_allocation_of(p, base);
    const bool found = a && a->base == base && a->bytes == bytes && a->kind == EMU_MEMORY_RESERVED;
    if (found) {
        emu_space_map_clear(space, base, bytes, base, base + bytes);
        emu_space_unback(space, base, bytes);
        const size_t index = (size_t)(a - p->allocations);
        p->n_allocations--;
        memmove(a, a + 1, (p->n_allocations - index) * sizeof *a);
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* --- physical memory */

struct emu_physical *emu_physical_new(struct emu_machine *machine, uint64_t bytes)
{
    struct emu_space_private *p = machine->space->private;
    struct emu_physical *physical = calloc(1, sizeof *physical);
    pthread_mutex_lock(&p->lock);
    const bool fits =
        bytes <= p->total_bytes - p->used_bytes && bytes <= p->limit_bytes - p->used_bytes && bytes > 0;
    if (fits && physical) {
        p->used_bytes += bytes;
    }
    pthread_mutex_unlock(&p->lock);
    if (!physical || !fits) {
        free(physical);
        return NULL;
    }
    *physical = (struct emu_physical){.bytes = bytes, .fd = file_new(bytes), .counted = true};
    if (physical->fd < 0) {
        physical->fd = -1;
        emu_physical_release(machine, physical);
        return NULL;
    }
    return physical;
}

static void shared_changed(struct emu_machine *machine, bool shared)
{
    struct emu_space_private *p = machine->space->private;
    pthread_mutex_lock(&p->lock);
    p->n_visible = shared ? p->n_visible + 1 : p->n_visible - 1;
    pthread_mutex_unlock(&p->lock);
}

struct emu_physical *emu_physical_import(struct emu_machine *machine, int fd)
{
    uint64_t bytes;
    if (!file_is_ours(fd, &bytes)) {
        return NULL;
    }
    struct emu_physical *physical = calloc(1, sizeof *physical);
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (!physical || own < 0) {
        free(physical);
        if (own >= 0) {
            close(own);
        }
        return NULL;
    }
    *physical = (struct emu_physical){.bytes = bytes, .fd = own, .shared = true};
    shared_changed(machine, true);
    return physical;
}

void emu_physical_release(struct emu_machine *machine, struct emu_physical *physical)
{
    if (physical->counted) {
        struct emu_space_private *p = machine->space->private;
        pthread_mutex_lock(&p->lock);
        p->used_bytes -= physical->bytes;
        pthread_mutex_unlock(&p->lock);
    }
    if (physical->shared) {
        shared_changed(machine, false);
    }
    if (physical->fd >= 0) {
        close(physical->fd);
    }
    free(physical);
}

uint64_t emu_physical_bytes(const struct emu_physical *physical)
{
    return physical->bytes;
}

int emu_physical_share(struct emu_machine *machine, struct emu_physical *physical)
{
    if (!physical->shared) {
        physical->shared = true;
        shared_changed(machine, true);
    }
    return physical->fd;
}

/* --- mappings */

bool emu_memory_map(struct emu_machine *machine, uint64_t address, uint64_t bytes,
                    struct emu_physical *physical, uint64_t offset)
{
    struct emu_space_private *p = machine->space->private;
    pthread_mutex_lock(&p->lock);
    const bool done = back(address, bytes, physical->fd, offset);
    pthread_mutex_unlock(&p->lock);
    return done;
}

void emu_memory_unmap(struct emu_machine *machine, uint64_t address, uint64_t bytes)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    emu_space_map_clear(space, address, bytes, address, address + bytes);
    emu_space_unback(space, address, bytes);
    pthread_mutex_unlock(&p->lock);
}

void emu_memory_access(struct emu_machine *machine, uint64_t address, uint64_t bytes, bool read, bool write)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    pthread_mutex_lock(&p->lock);
    if (read) {
        emu_space_map_set(space, address, bytes, write ? 0 : EMU_GRANULE_READ_ONLY);
    } else {
        emu_space_map_forget(space, address, bytes);
    }
    pthread_mutex_unlock(&p->lock);
}

/* --- sharing of ordinary allocations */

/* As space.c counts it: a kernel that spins on such memory is given longer. */
static bool is_visible(enum emu_memory_kind kind)
{
    return kind == EMU_MEMORY_MANAGED || kind == EMU_MEMORY_HOST;
}

static bool fill(int fd, uint64_t from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t now =
            pwrite(fd, (const void *)(uintptr_t)(from + done), (size_t)(bytes - done), (off_t)done);
        if (now <= 0) {
            return false;
        }
        done += (uint64_t)now;
    }
    return true;
}

int emu_memory_share(struct emu_machine *machine, uint64_t base)
{
    struct emu_space_private *p = machine->space->private;
    int fd = -1;
    pthread_mutex_lock(&p->lock);
    struct space_allocation *a = emu_space_allocation_of(p, base);
    if (a && a->base == base && !a->internal && a->kind != EMU_MEMORY_RESERVED) {
        const uint64_t bytes = round_up(a->bytes, p->page_bytes);
        if (a->file == 0) {
            fd = file_new(bytes);
            if (fd >= 0 && fill(fd, base, a->bytes) && back(base, bytes, fd, 0)) {
                a->file = fd + 1;
                p->n_visible += !is_visible(a->kind);
            } else if (fd >= 0) {
                close(fd);
            }
        }
        fd = a->file - 1;
    }
    pthread_mutex_unlock(&p->lock);
    return fd;
}

uint64_t emu_memory_attach(struct emu_machine *machine, int fd, uint64_t bytes)
{
    struct emu_space_private *p = machine->space->private;
    uint64_t there;
    if (!file_is_ours(fd, &there) || bytes == 0 || bytes > there) {
        return 0;
    }
    const uint64_t base = emu_memory_alloc(machine, bytes, EMU_MEMORY_DEVICE);
    if (!base) {
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const bool done = own >= 0 && back(base, round_up(bytes, p->page_bytes), own, 0);
    if (done) {
        emu_space_allocation_of(p, base)->file = own + 1;
        p->n_visible++;
    } else if (own >= 0) {
        close(own);
    }
    pthread_mutex_unlock(&p->lock);
    if (!done) {
        emu_memory_free(machine, base);
        return 0;
    }
    return base;
}
