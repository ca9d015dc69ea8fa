/* The words of a fault in device memory: what is at an address that may not be read or written. */
#include <stdio.h>

#include "emu/space_private.h"

#define SPACE_NULL_PAGE_BYTES UINT64_C(65536)
#define SPACE_NEAR_BYTES      (UINT64_C(1) << 36) /* what a 32-bit index into 16-byte elements may go astray */

static void say_beyond(const struct space_allocation *a, uint64_t address, char *out_text, size_t size)
{
    snprintf(out_text, size, "out of bounds: %llu bytes beyond the %llu bytes allocated at 0x%llx",
             (unsigned long long)(address - a->base - a->bytes), (unsigned long long)a->bytes,
             (unsigned long long)a->base);
}

void emu_space_explain(const struct emu_space *space, uint64_t address, uint64_t bytes, bool write,
                       char *out_text, size_t size)
{
    struct emu_space_private *p = space->private;
    const unsigned long long wanted = bytes;
    if (address < SPACE_NULL_PAGE_BYTES) {
        snprintf(out_text, size, "null address");
        return;
    }
    switch (emu_space_classify(space, address)) {
    case EMU_ADDRESS_SHARED:
        snprintf(out_text, size,
                 "a generic address of the shared window, offset 0x%llx, is not in global memory",
                 (unsigned long long)(address - space->shared_window));
        return;
    case EMU_ADDRESS_LOCAL:
        snprintf(out_text, size,
                 "a generic address of the local window, offset 0x%llx, is not in global memory",
                 (unsigned long long)(address - space->local_window));
        return;
    case EMU_ADDRESS_CONST:
        if (write) {
            snprintf(out_text, size, "read-only: constant memory");
            return;
        }
        break;
    case EMU_ADDRESS_PARAM:
        if (write) {
            snprintf(out_text, size, "read-only: parameters of the launch");
            return;
        }
        break;
    case EMU_ADDRESS_GLOBAL:
        break;
    }
    pthread_mutex_lock(&p->lock);
    const size_t above = emu_space_above(p, address);
    const struct space_allocation *below = above ? &p->allocations[above - 1] : NULL;
    const struct space_allocation *after = above < p->n_allocations ? &p->allocations[above] : NULL;
    const struct space_freed *freed = NULL;
    for (unsigned i = 0; i < SPACE_FREED_MEMORY && i < p->n_freed; i++) {
        const struct space_freed *f = &p->freed[(p->n_freed - 1 - i) % SPACE_FREED_MEMORY];
        if (address - f->base < f->bytes) {
            freed = f;
            break;
        }
    }
    const uint64_t index = (address - space->base) >> EMU_GRANULE_SHIFT;
    const struct space_allocation *last = below; /* of the program's own */
    while (last && last > p->allocations && (last->internal || last->kind == EMU_MEMORY_RESERVED)) {
        last--;
    }
    const uint64_t beyond = last && !last->internal && last->kind != EMU_MEMORY_RESERVED
                                ? address - last->base - last->bytes
                                : UINT64_MAX;
    if (index >= space->granules && beyond < SPACE_NEAR_BYTES) { /* a wrong index */
        say_beyond(last, address, out_text, size);
    } else if (index >= space->granules) {
        snprintf(out_text, size, "not an address of device memory");
    } else if (below && below->kind == EMU_MEMORY_RESERVED && address - below->base < below->bytes) {
        const bool mapped = space->map[index] & EMU_GRANULE_VALID;
        snprintf(out_text, size, "%s: offset 0x%llx of the %llu bytes of addresses reserved at 0x%llx",
                 !mapped                                     ? "not mapped, or not accessible"
                 : space->map[index] & EMU_GRANULE_READ_ONLY ? "read-only mapping"
                                                             : "the access leaves the mapping",
                 (unsigned long long)(address - below->base), (unsigned long long)below->bytes,
                 (unsigned long long)below->base);
    } else if (below && !below->internal && address - below->base < below->bytes) {
        snprintf(out_text, size,
                 "out of bounds: %llu bytes at offset %llu of the %llu bytes allocated at 0x%llx", wanted,
                 (unsigned long long)(address - below->base), (unsigned long long)below->bytes,
                 (unsigned long long)below->base);
    } else if (freed) {
        snprintf(out_text, size, "freed: offset %llu of the %llu bytes that were allocated at 0x%llx",
                 (unsigned long long)(address - freed->base), (unsigned long long)freed->bytes,
                 (unsigned long long)freed->base);
    } else if ((space->map[index] & EMU_GRANULE_FREED) || emu_space_map_gone(space, index)) {
        snprintf(out_text, size, "freed: the allocation here was released before");
    } else if (beyond < SPACE_NEAR_BYTES && (!after || after->internal || beyond < after->base - address)) {
        say_beyond(last, address, out_text, size);
    } else if (after && !after->internal) {
        snprintf(out_text, size, "out of bounds: %llu bytes before the %llu bytes allocated at 0x%llx",
                 (unsigned long long)(after->base - address), (unsigned long long)after->bytes,
                 (unsigned long long)after->base);
    } else {
        snprintf(out_text, size, "not an address of device memory");
    }
    pthread_mutex_unlock(&p->lock);
    pthread_rwlock_rdlock(&p->host_lock);
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct space_host *h = &p->hosts[i];
        if (address - h->base < h->bytes) {
            if (write && !h->writable) {
                snprintf(out_text, size, "read-only: registered host memory at 0x%llx",
                         (unsigned long long)h->base);
            } else {
                snprintf(out_text, size,
                         "out of bounds: %llu bytes at offset %llu of the %llu bytes of host memory "
                         "registered at 0x%llx",
                         wanted, (unsigned long long)(address - h->base), (unsigned long long)h->bytes,
                         (unsigned long long)h->base);
            }
        }
    }
    pthread_rwlock_unlock(&p->host_lock);
}
