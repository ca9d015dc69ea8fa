/* Host memory that the program registered (cuMemHostRegister): a small sorted table beside the arena. A
   kernel's access outside the arena looks here, under a lock for reading. */
#include <stdio.h>
#include <string.h>

#include "emu/machine.h"
#include "emu/space_private.h"

/* Whether every page of [base, base + bytes) is mapped readable, and *out_writable: from /proc/self/maps. */
static bool host_accessible(uint64_t base, uint64_t bytes, bool *out_writable)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file) {
        return false;
    }
    uint64_t at = base;
    const uint64_t end = base + bytes;
    *out_writable = true;
    char line[512];
    bool whole_line = true;
    while (at < end && fgets(line, sizeof line, file)) {
        const bool starts = whole_line;
        whole_line = strchr(line, '\n') != NULL;
        unsigned long long from, to;
        char permissions[5];
        if (!starts || sscanf(line, "%llx-%llx %4s", &from, &to, permissions) != 3 || to <= at) {
            continue;
        }
        if (from > at || permissions[0] != 'r') {
            break;
        }
        *out_writable = *out_writable && permissions[1] == 'w';
        at = to;
    }
    fclose(file);
    return at >= end;
}

bool emu_memory_register(struct emu_machine *machine, void *host, uint64_t bytes, bool read_only)
{
    struct emu_space *space = machine->space;
    struct emu_space_private *p = space->private;
    const uint64_t base = (uint64_t)(uintptr_t)host;
    const uint64_t arena = (uint64_t)(uintptr_t)p->reservation;
    bool writable;
    if (!bytes || base + bytes < base || (base < arena + p->reservation_bytes && base + bytes > arena) ||
        !host_accessible(base, bytes, &writable) || (!writable && !read_only)) {
        return false;
    }
    pthread_rwlock_wrlock(&p->host_lock);
    size_t i = 0;
    while (i < p->n_hosts && p->hosts[i].base < base) {
        i++;
    }
    const bool overlaps = (i < p->n_hosts && p->hosts[i].base < base + bytes) ||
                          (i && p->hosts[i - 1].base + p->hosts[i - 1].bytes > base);
    void *items = p->hosts;
    const bool done = !overlaps && emu_space_grow(&items, p->n_hosts, &p->hosts_capacity, sizeof *p->hosts);
    if (done) {
        p->hosts = items;
        memmove(&p->hosts[i + 1], &p->hosts[i], (p->n_hosts - i) * sizeof *p->hosts);
        p->hosts[i] = (struct space_host){base, bytes, writable};
        p->n_hosts++;
    }
    pthread_rwlock_unlock(&p->host_lock);
    return done;
}

bool emu_memory_unregister(struct emu_machine *machine, void *host)
{
    struct emu_space_private *p = machine->space->private;
    bool found = false;
    pthread_rwlock_wrlock(&p->host_lock);
    for (size_t i = 0; i < p->n_hosts && !found; i++) {
        if (p->hosts[i].base == (uint64_t)(uintptr_t)host) {
            p->n_hosts--;
            memmove(&p->hosts[i], &p->hosts[i + 1], (p->n_hosts - i) * sizeof *p->hosts);
            found = true;
        }
    }
    pthread_rwlock_unlock(&p->host_lock);
    return found;
}

bool emu_space_host_visible(const struct emu_space *space)
{
    struct emu_space_private *p = space->private;
    pthread_rwlock_rdlock(&p->host_lock);
    bool visible = p->n_hosts != 0;
    pthread_rwlock_unlock(&p->host_lock);
    pthread_mutex_lock(&p->lock);
    visible = visible || p->n_visible != 0;
    pthread_mutex_unlock(&p->lock);
    return visible;
}

static void *host_range(const struct emu_space *space, uint64_t address, uint64_t bytes, bool write)
{
    struct emu_space_private *p = space->private;
    void *found = NULL;
    pthread_rwlock_rdlock(&p->host_lock);
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct space_host *h = &p->hosts[i];
        if (address - h->base < h->bytes) {
            if (bytes <= h->bytes - (address - h->base) && (!write || h->writable)) {
                found = (void *)(uintptr_t)address;
            }
            break;
        }
    }
    pthread_rwlock_unlock(&p->host_lock);
    return found;
}

void *emu_space_host_read(const struct emu_space *space, uint64_t address, uint64_t bytes)
{
    return host_range(space, address, bytes, false);
}

void *emu_space_host_write(const struct emu_space *space, uint64_t address, uint64_t bytes)
{
    return host_range(space, address, bytes, true);
}
