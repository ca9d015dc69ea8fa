/* The table of the program's allocations: what the machine's arena does not know about them (who made them,
   with which flags, from which pool). Sorted by address; guarded by the API's lock. */
#include "check/check.h"
#include "emu/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/machine.h"

static struct {
    struct api_allocation **rows;
    size_t count, capacity;
    unsigned long long next_id;
    uint64_t bytes; /* of all rows that are counted, and of physical memory */
    uint64_t limit; /* see api_memory_limit; 0 unknown yet */
} table;

/* Nine tenths of the memory that the host had to spare when this was first asked: emulated memory is the
   host's, and a program that fills a device of 140 GB would end more than itself. */
static uint64_t api_memory_limit(void)
{
    if (table.limit == 0) {
        unsigned long long kib = 0;
        char line[128];
        FILE *file = fopen("/proc/meminfo", "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
                break;
        if (file != NULL)
            fclose(file);
        table.limit = kib != 0 ? (uint64_t)kib * 1024 / 10 * 9 : UINT64_MAX;
    }
    return table.limit;
}

uint64_t api_memory_spare(void)
{
    uint64_t limit = api_memory_limit();
    return limit > table.bytes ? limit - table.bytes : 0;
}

/* Index of the first row with a base above `address`. */
static size_t above(uint64_t address)
{
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table.rows[middle]->base > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_counted(int kind)
{
    return kind != API_MEMORY_REGISTERED && kind != API_MEMORY_VIRTUAL && kind != API_MEMORY_IPC;
}

static struct api_allocation *insert(struct api_context *context, uint64_t base, uint64_t bytes, int kind)
{
    if (table.count == table.capacity) {
        size_t capacity = table.capacity == 0 ? 64 : table.capacity * 2;
        struct api_allocation **rows = realloc(table.rows, capacity * sizeof *rows);
        if (rows == NULL)
            return NULL;
        table.rows = rows;
        table.capacity = capacity;
    }
    struct api_allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL)
        return NULL;
    allocation->base = base;
    allocation->bytes = bytes;
    allocation->kind = (__typeof__(allocation->kind))kind;
    allocation->context = context != NULL ? context->handle : NULL;
    allocation->id = ++table.next_id;
    size_t place = above(base);
    memmove(table.rows + place + 1, table.rows + place, (table.count - place) * sizeof *table.rows);
    table.rows[place] = allocation;
    table.count++;
    if (is_counted(kind))
        table.bytes += bytes;
    return allocation;
}

struct api_allocation *api_allocation_new(struct api_context *context, uint64_t bytes, int kind)
{
    enum emu_memory_kind where = kind == API_MEMORY_HOST      ? EMU_MEMORY_HOST
                                 : kind == API_MEMORY_MANAGED ? EMU_MEMORY_MANAGED
                                                              : EMU_MEMORY_DEVICE;
    if (bytes > api_memory_spare())
        return NULL;
    uint64_t base = emu_memory_alloc(api_device()->machine, bytes, where);
    if (base == 0)
        return NULL;
    struct api_allocation *allocation = insert(context, base, bytes, kind);
    if (allocation == NULL)
        emu_memory_free(api_device()->machine, base);
    return allocation;
}

void api_allocation_renew(struct api_allocation *allocation)
{
    allocation->id = ++table.next_id;
    allocation->free_queued = allocation->async_memops = false;
    allocation->free_stream = NULL;
}

struct api_allocation *api_allocation_register(struct api_context *context, void *host, uint64_t bytes,
                                               bool read_only)
{
    if (!emu_memory_register(api_device()->machine, host, bytes, read_only))
        return NULL;
    struct api_allocation *allocation =
        insert(context, (uint64_t)(uintptr_t)host, bytes, API_MEMORY_REGISTERED);
    if (allocation == NULL)
        emu_memory_unregister(api_device()->machine, host);
    return allocation;
}

struct api_allocation *api_allocation_enter(struct api_context *context, uint64_t base, uint64_t bytes,
                                            int kind)
{
    return insert(context, base, bytes, kind);
}

struct api_allocation *api_allocation_next(uint64_t address)
{
    size_t place = address > 0 ? above(address - 1) : 0;
    return place < table.count ? table.rows[place] : NULL;
}

void api_memory_count(int64_t bytes)
{
    table.bytes += (uint64_t)bytes;
}

struct api_allocation *api_allocation_find(uint64_t address)
{
    size_t place = above(address);
    if (place == 0)
        return NULL;
    struct api_allocation *allocation = table.rows[place - 1];
    return address - allocation->base < allocation->bytes ? allocation : NULL;
}

bool api_allocation_may_free(const struct api_allocation *allocation)
{
    return allocation->kind == API_MEMORY_DEVICE || allocation->pool != NULL ||
           allocation->kind == API_MEMORY_MANAGED || allocation->kind == API_MEMORY_GRAPH ||
           (allocation->kind == API_MEMORY_IPC && (allocation->pool != NULL || allocation->origin != 0));
}

void api_allocation_free(struct api_allocation *allocation)
{
    struct emu_machine *machine = api_device()->machine;
    size_t place = above(allocation->base) - 1;
    check_memory_freed(allocation->base, allocation->bytes);
    memmove(table.rows + place, table.rows + place + 1, (table.count - place - 1) * sizeof *table.rows);
    table.count--;
    if (is_counted((int)allocation->kind))
        table.bytes -= allocation->bytes;
    if (allocation->kind == API_MEMORY_REGISTERED)
        emu_memory_unregister(machine, (void *)(uintptr_t)allocation->base);
    else if (allocation->kind == API_MEMORY_GRAPH)
        api_graph_memory_give(allocation);
    else if (allocation->kind == API_MEMORY_VIRTUAL)
        emu_memory_unmap(machine, allocation->base, allocation->bytes);
    else
        emu_memory_free(machine, allocation->origin != 0 ? allocation->origin : allocation->base);
    if (allocation->pool != NULL) {
        allocation->pool->used_bytes -= allocation->bytes;
        allocation->pool->queued_frees -= allocation->free_queued;
        if (allocation->pool->destroyed && allocation->pool->used_bytes == 0)
            api_pool_free(allocation->pool);
    }
    free(allocation);
}

void api_allocations_free(CUcontext context)
{
    for (size_t i = table.count; i-- > 0;)
        if (table.rows[i]->context == context && context != NULL)
            api_allocation_free(table.rows[i]);
}

size_t api_allocation_count(void)
{
    return table.count;
}

void *api_memory(uint64_t address, uint64_t bytes)
{
    return emu_memory_host(api_device()->machine, address, bytes);
}

bool api_memory_reserved(uint64_t address)
{
    const struct emu_space *space = api_device()->machine->space;
    return address - space->base < space->granules << EMU_GRANULE_SHIFT ||
           address - space->shared_window < EMU_WINDOW_BYTES ||
           address - space->local_window < EMU_WINDOW_BYTES;
}
