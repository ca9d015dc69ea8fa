/* "Virtual Memory Management": addresses (cuMemAddressReserve), memory (cuMemCreate), mappings (cuMemMap),
   access (cuMemSetAccess), and descriptors that other processes import. None of it belongs to a context. A
   mapping is a row of the table of allocations. UNVERIFIED: which of several wrong arguments is reported.

   Leaves out: sparse arrays (cuMemMapArrayAsync), handles other than POSIX descriptors, dma-buf. */
#include "emu/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct api_physical {
    CUmemGenericAllocationHandle handle; /* 0: released, only mapped */
    struct emu_physical *memory;
    CUmemAllocationProp prop;
    unsigned refs; /* of the handle */
    unsigned mappings;
};

struct reservation {
    uint64_t base, bytes;
    struct reservation *next;
};
static struct reservation *reservations; /* guarded by the API's lock */

static struct reservation *reservation_of(uint64_t address, uint64_t bytes)
{
    for (struct reservation *r = reservations; r != NULL; r = r->next)
        if (address - r->base < r->bytes && bytes <= r->bytes - (address - r->base))
            return r;
    return NULL;
}

static void physical_end(struct api_physical *physical)
{
    if (physical->refs > 0 || physical->mappings > 0)
        return;
    api_memory_count(-(int64_t)emu_physical_bytes(physical->memory));
    emu_physical_release(api_device()->machine, physical->memory);
    free(physical);
}

static struct api_physical *physical_get(CUmemGenericAllocationHandle handle)
{
    return emu_handle_get(EMU_HANDLE_VMM, (void *)(uintptr_t)handle);
}

/* A handle for it; false when there is no room for one. */
static bool physical_name(struct api_physical *physical)
{
    if (physical->handle == 0)
        physical->handle = (uintptr_t)emu_handle_new(EMU_HANDLE_VMM, physical);
    return physical->handle != 0;
}

/* Waits for everything that runs: it may use what is about to go. */
static void settle(void)
{
    struct api_context *context;
    for (size_t cursor = 0; (context = emu_handle_next(EMU_HANDLE_CONTEXT, &cursor)) != NULL;)
        (void)api_context_wait(context); /* its error is its own */
}

/* ---- addresses ---- */

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                     unsigned long long flags)
{
    API_ENTER();
    API_REQUIRE(ptr != NULL && size > 0 && size % EMU_PHYSICAL_STEP == 0 && flags == 0);
    API_REQUIRE((alignment & (alignment - 1)) == 0 && addr % EMU_PHYSICAL_STEP == 0);
    struct reservation *reservation = calloc(1, sizeof *reservation);
    if (reservation == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of allocations");
    uint64_t base = emu_memory_reserve(api_device()->machine, size, alignment, addr);
    if (base == 0) {
        free(reservation);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no %zu bytes of addresses in a row are free", size);
    }
    *reservation = (struct reservation){base, size, reservations};
    reservations = reservation;
    *ptr = base;
    return api_leave();
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    API_ENTER();
    struct reservation **link = &reservations;
    while (*link != NULL && (*link)->base != ptr)
        link = &(*link)->next;
    struct reservation *found = *link;
    if (found == NULL || found->bytes != size)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx, %zu bytes, is no reservation", ptr, size);
    const struct api_allocation *inside = api_allocation_next(ptr);
    if (inside != NULL && inside->base < ptr + size)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is still mapped", (unsigned long long)inside->base);
    *link = found->next;
    free(found);
    emu_memory_unreserve(api_device()->machine, ptr, size);
    return api_leave();
}

/* ---- memory ---- */

static CUresult check_location(const CUmemLocation *location)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: /* one node is told of */
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    for (size_t i = 0; i < sizeof prop->allocFlags.reserved; i++)
        if (prop->allocFlags.reserved[i] != 0)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "reserved bytes are not 0");
    if (prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "compression %u", prop->allocFlags.compressionType);
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "allocation type %d", (int)prop->type);
    CUresult result = check_location(&prop->location);
    if (result != CUDA_SUCCESS)
        return api_set_error(result, "location %d, %d", (int)prop->location.type, prop->location.id);
    if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
        prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_SUCCESS;
    if (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC)
        return api_set_error(CUDA_ERROR_NOT_PERMITTED, "fabric handles need an IMEX channel");
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "handle types 0x%x", (unsigned)prop->requestedHandleTypes);
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option)
{
    API_ENTER();
    API_REQUIRE(granularity != NULL && prop != NULL);
    API_REQUIRE(option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *granularity = EMU_PHYSICAL_STEP; /* of whatever location, on the H200 */
    return api_leave();
}

/* Takes over `memory`. */
static CUresult physical_new(struct emu_physical *memory, const CUmemAllocationProp *prop,
                             CUmemGenericAllocationHandle *out_handle)
{
    struct api_physical *physical = calloc(1, sizeof *physical);
    if (physical != NULL) {
        *physical = (struct api_physical){.memory = memory, .prop = *prop, .refs = 1};
        if (physical_name(physical)) {
            api_memory_count((int64_t)emu_physical_bytes(memory));
            *out_handle = physical->handle;
            return CUDA_SUCCESS;
        }
    }
    free(physical);
    emu_physical_release(api_device()->machine, memory);
    return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more handle");
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop, unsigned long long flags)
{
    API_ENTER();
    API_REQUIRE(handle != NULL && prop != NULL && flags == 0);
    API_REQUIRE(size > 0 && size % EMU_PHYSICAL_STEP == 0);
    CUresult result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct emu_physical *memory =
        size <= api_memory_spare() ? emu_physical_new(api_device()->machine, size) : NULL;
    if (memory == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "wanted %zu bytes", size);
    return api_result(physical_new(memory, prop, handle));
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    API_ENTER();
    struct api_physical *physical = physical_get(handle);
    if (physical == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live allocation handle");
    if (--physical->refs == 0) {
        emu_handle_free((void *)(uintptr_t)handle);
        physical->handle = 0;
        physical_end(physical);
    }
    return api_leave();
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    API_ENTER();
    API_REQUIRE(handle != NULL);
    const struct api_allocation *mapping = api_allocation_find((uint64_t)(uintptr_t)addr);
    if (mapping == NULL || mapping->kind != API_MEMORY_VIRTUAL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%p is not mapped by cuMemMap", addr);
    if (!physical_name(mapping->physical))
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for one more handle");
    mapping->physical->refs++;
    *handle = mapping->physical->handle;
    return api_leave();
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                        CUmemGenericAllocationHandle handle)
{
    API_ENTER();
    API_REQUIRE(prop != NULL);
    const struct api_physical *physical = physical_get(handle);
    if (physical == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live allocation handle");
    *prop = physical->prop;
    return api_leave();
}

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType, unsigned long long flags)
{
    API_ENTER();
    API_REQUIRE(shareableHandle != NULL && flags == 0);
    const struct api_physical *physical = physical_get(handle);
    if (physical == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live allocation handle");
    if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        physical->prop.requestedHandleTypes != handleType)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "handle type %d was not asked of cuMemCreate",
                        (int)handleType);
    int fd = fcntl(emu_physical_share(api_device()->machine, physical->memory), F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return api_fail(CUDA_ERROR_OPERATING_SYSTEM, "no descriptor: %s", strerror(errno));
    memcpy(shareableHandle, &fd, sizeof fd);
    return api_leave();
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    API_ENTER();
    API_REQUIRE(handle != NULL);
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "memory is shared as POSIX descriptors only");
    struct emu_physical *memory = emu_physical_import(api_device()->machine, (int)(intptr_t)osHandle);
    if (memory == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "descriptor %d is not device memory of an emulated process",
                        (int)(intptr_t)osHandle);
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    return api_result(physical_new(memory, &prop, handle));
}

/* ---- mappings ---- */

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags)
{
    API_ENTER();
    API_REQUIRE(flags == 0 && size > 0 && ptr % EMU_PHYSICAL_STEP == 0);
    struct api_physical *physical = physical_get(handle);
    if (physical == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live allocation handle");
    const uint64_t bytes = emu_physical_bytes(physical->memory);
    if (offset != 0 ||
        size != bytes) /* "offset: currently must be zero"; parts are not to be had on the H200 */
        return api_fail(CUDA_ERROR_NOT_SUPPORTED,
                        "%zu bytes at offset %zu: wanted all the %llu of the handle", size, offset,
                        (unsigned long long)bytes);
    if (reservation_of(ptr, size) == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx, %zu bytes, is not in a reservation", ptr, size);
    const struct api_allocation *inside = api_allocation_next(ptr);
    if (api_allocation_find(ptr) != NULL || (inside != NULL && inside->base < ptr + size))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the range is mapped already");
    if (!emu_memory_map(api_device()->machine, ptr, size, physical->memory, offset))
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot map it: %s", strerror(errno));
    struct api_allocation *mapping = api_allocation_enter(NULL, ptr, size, API_MEMORY_VIRTUAL);
    if (mapping == NULL) {
        emu_memory_unmap(api_device()->machine, ptr, size);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of allocations");
    }
    mapping->physical = physical;
    mapping->access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    physical->mappings++;
    return api_leave();
}

/* Does [ptr, +size) consist of whole mappings? */
static bool covered(uint64_t ptr, uint64_t size)
{
    for (uint64_t at = ptr, end = ptr + size; at < end;) {
        const struct api_allocation *mapping = api_allocation_find(at);
        if (mapping == NULL || mapping->kind != API_MEMORY_VIRTUAL)
            return false;
        if (mapping->base != at || mapping->bytes > end - at)
            return false;
        at = mapping->base + mapping->bytes;
    }
    return true;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    API_ENTER();
    API_REQUIRE(size > 0 && size % EMU_PHYSICAL_STEP == 0 && reservation_of(ptr, size) != NULL);
    const struct api_allocation *inside = api_allocation_next(ptr);
    if (api_allocation_find(ptr) == NULL && (inside == NULL || inside->base >= ptr + size))
        return api_leave(); /* nothing is mapped there: no error, on the H200 */
    if (!covered(ptr, size))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx, %zu bytes, is not made of whole mappings", ptr,
                        size);
    settle();
    struct api_allocation *mapping;
    while ((mapping = api_allocation_next(ptr)) != NULL && mapping->base < ptr + size) {
        struct api_physical *physical = mapping->physical;
        api_allocation_free(mapping);
        physical->mappings--;
        physical_end(physical);
    }
    return api_leave();
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    API_ENTER();
    API_REQUIRE(desc != NULL && count > 0 && size > 0);
    API_REQUIRE(ptr % EMU_PHYSICAL_STEP == 0 && size % EMU_PHYSICAL_STEP == 0);
    if (reservation_of(ptr, size) == NULL || !covered(ptr, size))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx, %zu bytes, is not made of whole mappings", ptr,
                        size);
    for (size_t i = 0; i < count; i++) {
        CUresult result = check_location(&desc[i].location);
        if (result == CUDA_ERROR_INVALID_DEVICE) /* so the H200 names it here */
            result = CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS)
            return api_fail(result, "location %d, %d", (int)desc[i].location.type, desc[i].location.id);
        API_REQUIRE(desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                    desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                    desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            continue; /* the host reaches everything */
        for (uint64_t at = ptr; at < ptr + size;) {
            struct api_allocation *mapping = api_allocation_find(at);
            at = mapping->base + mapping->bytes;
            mapping->access = desc[i].flags; /* a mapping has one state here, set by its last change */
        }
        emu_memory_access(api_device()->machine, ptr, size, desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                          desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    return api_leave();
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    API_ENTER();
    API_REQUIRE(flags != NULL && location != NULL);
    CUresult result = check_location(location);
    if (result != CUDA_SUCCESS)
        return api_fail(result, "location %d, %d", (int)location->type, location->id);
    const struct api_allocation *mapping = api_allocation_find(ptr);
    if (mapping == NULL || mapping->kind != API_MEMORY_VIRTUAL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not mapped by cuMemMap",
                        (unsigned long long)ptr);
    *flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? (unsigned long long)mapping->access
                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return api_leave();
}
