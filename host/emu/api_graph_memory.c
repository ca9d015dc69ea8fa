/* "Graph Management": memory allocation and free nodes, and the device's attributes of graph memory. An
   allocation node owns addresses for good; memory is there from the launch of a graph that has it until it is
   freed, by a free node or by cuMemFreeAsync. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

struct range {
    uint64_t base, bytes;
    struct range *next;
};
static struct range *ranges; /* every allocation node's; guarded by the API's lock, like the counts */
static uint64_t used_bytes, used_high_bytes, reserved_high_bytes;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + EMU_PHYSICAL_STEP - 1) / EMU_PHYSICAL_STEP * EMU_PHYSICAL_STEP;
}

bool api_graph_memory_is(uint64_t address)
{
    for (const struct range *range = ranges; range != NULL; range = range->next)
        if (range->base == address)
            return true;
    return false;
}

bool api_graph_memory_holds(uint64_t address, uint64_t bytes)
{
    for (const struct range *range = ranges; range != NULL; range = range->next)
        if (address - range->base < range->bytes && bytes <= range->bytes - (address - range->base))
            return true;
    return false;
}

CUresult api_graph_memory_new(uint64_t bytes, struct api_work *out_work)
{
    if (bytes == 0 || bytes > INT64_MAX)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "an allocation node of %llu bytes",
                             (unsigned long long)bytes);
    struct range *range = calloc(1, sizeof *range);
    const uint64_t base = range != NULL ? emu_memory_reserve(api_device()->machine, rounded(bytes), 0, 0) : 0;
    if (base == 0) {
        free(range);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no addresses for %llu bytes",
                             (unsigned long long)bytes);
    }
    *range = (struct range){base, bytes, ranges};
    ranges = range;
    *out_work = (struct api_work){.kind = API_WORK_ALLOC, .memory = {base, bytes}};
    return CUDA_SUCCESS;
}

CUresult api_graph_memory_take(struct api_context *context, uint64_t address, uint64_t bytes)
{
    if (api_allocation_find(address) != NULL)
        return CUDA_SUCCESS; /* still there from an earlier launch */
    struct emu_machine *machine = api_device()->machine;
    struct emu_physical *memory =
        bytes <= api_memory_spare() ? emu_physical_new(machine, rounded(bytes)) : NULL;
    struct api_allocation *allocation =
        memory != NULL && emu_memory_map(machine, address, rounded(bytes), memory, 0)
            ? api_allocation_enter(context, address, bytes, API_MEMORY_GRAPH)
            : NULL;
    if (allocation == NULL) {
        if (memory != NULL)
            emu_physical_release(machine, memory);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an allocation node of %llu bytes",
                             (unsigned long long)bytes);
    }
    allocation->memory = memory;
    emu_memory_access(machine, address, bytes, true, true);
    used_bytes += bytes;
    used_high_bytes = used_bytes > used_high_bytes ? used_bytes : used_high_bytes;
    reserved_high_bytes = used_high_bytes;
    return CUDA_SUCCESS;
}

void api_graph_memory_give(struct api_allocation *allocation)
{
    struct emu_machine *machine = api_device()->machine;
    used_bytes -= allocation->bytes;
    emu_memory_unmap(machine, allocation->base, rounded(allocation->bytes));
    emu_physical_release(machine, allocation->memory);
}

/* ---- the device's attributes ---- */

static CUresult attribute(const char *call, CUdevice device, CUgraphMem_attribute attr, void *value, bool set)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    if (device != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d", device);
    API_REQUIRE(value != NULL);
    cuuint64_t got = 0;
    memcpy(&got, value, set ? sizeof got : 0);
    const bool is_high =
        attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (set && (!is_high || got != 0))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "only the high marks can be set, and only to 0");
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        got = used_bytes;
        break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        used_high_bytes = set ? used_bytes : used_high_bytes;
        got = used_high_bytes;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        reserved_high_bytes = set ? used_bytes : reserved_high_bytes;
        got = reserved_high_bytes;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d", (int)attr);
    }
    if (!set)
        memcpy(value, &got, sizeof got);
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    return attribute(__func__, device, attr, value, false);
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    return attribute(__func__, device, attr, value, true);
}

/* Memory goes back to the host when it is freed: there is nothing to trim. */
CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    API_ENTER();
    return device == 0 ? api_leave() : api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d", device);
}
