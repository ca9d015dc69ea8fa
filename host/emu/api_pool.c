/* "Stream Ordered Memory Allocator": cuMemAllocAsync, cuMemFreeAsync and memory pools. Memory is taken when
   the call is made and given back when the stream gets to the free, so that the order a program may rely on
   holds. What a pool keeps reserved is told as an H200 tells it, in blocks of 32 MiB, but no freed memory is
   kept. Pools that processes share: api_share_pool.c. */
#include "check/check.h"
#include "emu/api.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((uint64_t)32 << 20)

static struct api_pool *pools; /* all that are not freed; guarded by the API's lock */

static uint64_t in_blocks(uint64_t bytes)
{
    return bytes > UINT64_MAX - BLOCK_BYTES ? UINT64_MAX
                                            : (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* Reserves what is used; gives back what is reserved beyond `keep`. */
static void reserve(struct api_pool *pool, uint64_t keep)
{
    const uint64_t used = in_blocks(pool->used_bytes);
    if (pool->reserved_bytes > keep)
        pool->reserved_bytes = keep / BLOCK_BYTES * BLOCK_BYTES;
    if (pool->reserved_bytes < used)
        pool->reserved_bytes = used;
    if (pool->reserved_high_bytes < pool->reserved_bytes)
        pool->reserved_high_bytes = pool->reserved_bytes;
}

void api_pools_settle(void)
{
    for (struct api_pool *pool = pools; pool != NULL; pool = pool->next)
        reserve(pool, pool->release_threshold_bytes);
}

/* The default and the current pool of a place other than the device's own memory; made on first use, the
   current one NULL where it is the default. */
static struct place_pools {
    struct api_pool *first, *current;
} places[2][CU_MEM_LOCATION_TYPE_HOST_NUMA + 1];

/* A pool that goes is no place's current one any more. */
static void leave_places(const struct api_pool *pool)
{
    for (size_t managed = 0; managed < 2; managed++)
        for (size_t i = 0; i < sizeof places[0] / sizeof places[0][0]; i++)
            if (places[managed][i].current == pool)
                places[managed][i].current = NULL;
}

void api_pool_free(struct api_pool *pool)
{
    leave_places(pool);
    for (struct api_pool **link = &pools; *link != NULL; link = &(*link)->next)
        if (*link == pool) {
            *link = pool->next;
            break;
        }
    free(pool);
}

struct api_pool *api_pool_new(void)
{
    struct api_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->handle = emu_handle_new(EMU_HANDLE_POOL, pool);
    if (pool->handle == NULL) {
        free(pool);
        return NULL;
    }
    pool->kind = API_MEMORY_DEVICE;
    pool->access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t i = 0; i < API_COUNT_OF(pool->reuse_flags); i++)
        pool->reuse_flags[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

/* The device's own pool, made on first use. NULL when memory is out. */
static struct api_pool *default_pool(void)
{
    struct api_device *device = api_device();
    if (device->default_pool == NULL) {
        device->default_pool = api_pool_new();
        if (device->default_pool != NULL)
            device->default_pool->is_default = true;
    }
    if (device->current_pool == NULL)
        device->current_pool = device->default_pool;
    return device->default_pool;
}

static struct api_pool *current_pool(void)
{
    return default_pool() != NULL ? api_device()->current_pool : NULL;
}

static CUresult pool_result(const char *call, CUdevice dev, CUmemoryPool *out_pool, bool current)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out_pool != NULL);
    if (dev != 0)
        return api_fail(current ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE,
                        "device %d: one device is emulated, number 0", dev);
    struct api_pool *pool = current ? current_pool() : default_pool();
    if (pool == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a pool");
    *out_pool = pool->handle;
    return api_leave();
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    return pool_result(__func__, dev, pool_out, false);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return pool_result(__func__, dev, pool, true);
}

/* ---- pools of host and of managed memory ---- */

/* Is there memory of that type there? As an H200 takes them, on a host of one NUMA node. */
static bool is_place(CUmemAllocationType type, const CUmemLocation *location)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_INVALID:
        return type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    case CU_MEM_LOCATION_TYPE_HOST:
        return true;
    case CU_MEM_LOCATION_TYPE_DEVICE:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id == 0;
    default:
        return false;
    }
}

static struct api_pool *pool_of(CUmemAllocationType type, const CUmemLocation *location)
{
    struct api_pool *pool = api_pool_new();
    if (pool == NULL ||
        (type == CU_MEM_ALLOCATION_TYPE_PINNED && location->type == CU_MEM_LOCATION_TYPE_DEVICE))
        return pool;
    pool->kind = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? API_MEMORY_MANAGED : API_MEMORY_HOST;
    pool->access = CU_MEM_ACCESS_FLAGS_PROT_NONE; /* until cuMemPoolSetAccess */
    pool->host_access =
        pool->kind == API_MEMORY_HOST ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return pool;
}

static struct place_pools *pools_of(CUmemAllocationType type, const CUmemLocation *location)
{
    struct place_pools *place =
        &places[type == CU_MEM_ALLOCATION_TYPE_MANAGED][(unsigned)location->type]; /* is_place was asked */
    if (place->first == NULL) {
        place->first = pool_of(type, location);
        if (place->first != NULL)
            place->first->is_default = true;
    }
    if (place->current == NULL)
        place->current = place->first;
    return place;
}

static bool is_device(const CUmemLocation *location, CUmemAllocationType type)
{
    return location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

static CUresult location_result(const char *call, CUmemoryPool *out_pool, const CUmemLocation *location,
                                CUmemAllocationType type, bool current)
{
    if (is_device(location, type))
        return pool_result(call, location->id, out_pool, current);
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out_pool != NULL && location != NULL && type >= CU_MEM_ALLOCATION_TYPE_PINNED &&
                type <= CU_MEM_ALLOCATION_TYPE_MANAGED && is_place(type, location));
    const struct place_pools *place = pools_of(type, location);
    if (place->first == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a pool");
    *out_pool = (current ? place->current : place->first)->handle;
    return api_leave();
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                        CUmemAllocationType type)
{
    return location_result(__func__, pool_out, location, type, false);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return location_result(__func__, pool, location, type, true);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUmemoryPool now;
    CUresult result = location_result(__func__, &now, location, type, true);
    if (result != CUDA_SUCCESS || is_device(location, type))
        return result != CUDA_SUCCESS ? result : cuDeviceSetMemPool(location->id, pool);
    API_ENTER();
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    API_REQUIRE(found != NULL && !found->imported);
    pools_of(type, location)->current = found;
    return api_leave();
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    API_ENTER();
    if (dev != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL || found->imported)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool of this process");
    api_device()->current_pool = found;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    API_ENTER();
    API_REQUIRE(pool != NULL && poolProps != NULL);
    API_REQUIRE(poolProps->allocType == CU_MEM_ALLOCATION_TYPE_PINNED ||
                poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED);
    if (((unsigned)poolProps->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "handle types 0x%x: file descriptors only",
                        (unsigned)poolProps->handleTypes);
    for (size_t i = 0; i < sizeof poolProps->reserved; i++)
        API_REQUIRE(poolProps->reserved[i] == 0);
    API_REQUIRE(is_place(poolProps->allocType, &poolProps->location));
    struct api_pool *made = pool_of(poolProps->allocType, &poolProps->location);
    if (made == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a pool");
    made->max_bytes = poolProps->maxSize;
    made->shareable = poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
    *pool = made->handle;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    API_ENTER();
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
    if (found->is_default || (found->imported && found->used_bytes > 0))
        return api_fail(CUDA_ERROR_INVALID_VALUE,
                        found->is_default ? "the default pool may not be destroyed"
                                          : "memory that was imported through the pool is not freed yet");
    if (api_device()->current_pool == found)
        api_device()->current_pool = api_device()->default_pool;
    emu_handle_free(pool);
    leave_places(found);
    /* Live allocations still count in it: the last one frees it (api_allocation.c). */
    if (found->used_bytes == 0)
        api_pool_free(found);
    else
        found->destroyed = true;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    API_ENTER();
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL || found->imported)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool of this process");
    reserve(found, minBytesToKeep);
    return api_leave();
}

static CUresult attribute(struct api_pool *pool, CUmemPool_attribute attr, void *value, bool set)
{
    uint64_t wide = 0;
    int flag = 0;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
        int *kept = &pool->reuse_flags[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        if (set) {
            memcpy(&flag, value, sizeof flag);
            *kept = flag != 0;
        } else {
            memcpy(value, kept, sizeof *kept);
        }
        return CUDA_SUCCESS;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        if (set)
            memcpy(&pool->release_threshold_bytes, value, sizeof wide);
        else
            memcpy(value, &pool->release_threshold_bytes, sizeof wide);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        if (set)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(value, attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? &pool->used_bytes : &pool->reserved_bytes,
               sizeof wide);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: {
        const bool used = attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        uint64_t *high = used ? &pool->used_high_bytes : &pool->reserved_high_bytes;
        if (!set) {
            memcpy(value, high, sizeof wide);
            return CUDA_SUCCESS;
        }
        memcpy(&wide, value, sizeof wide);
        if (wide != 0)
            return CUDA_ERROR_INVALID_VALUE; /* only a reset to zero is allowed */
        *high = used ? pool->used_bytes : pool->reserved_bytes;
        return CUDA_SUCCESS;
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult pool_attribute(const char *call, CUmemoryPool handle, CUmemPool_attribute attr, void *value,
                               bool set)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_pool *pool = emu_handle_get(EMU_HANDLE_POOL, handle);
    if (pool == NULL || pool->imported || value == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool of this process, or the value is NULL");
    result = attribute(pool, attr, value, set);
    return result == CUDA_SUCCESS ? api_leave() : api_fail(result, "pool attribute %d", (int)attr);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    return pool_attribute(__func__, pool, attr, value, true);
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    return pool_attribute(__func__, pool, attr, value, false);
}

/* Of pools of host and managed memory. Ends the call. UNVERIFIED: other access than reading and writing (CUDA
   Driver API 13.0, cuMemPoolSetAccess). */
static CUresult set_access(struct api_pool *pool, const CUmemAccessDesc *map, size_t count)
{
    for (size_t i = 0; i < count; i++)
        API_REQUIRE(map[i].location.type != CU_MEM_LOCATION_TYPE_INVALID &&
                    is_place(CU_MEM_ALLOCATION_TYPE_PINNED, &map[i].location) &&
                    (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                     map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            pool->access = map[i].flags;
        else
            pool->host_access = map[i].flags;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    API_ENTER();
    API_REQUIRE(map != NULL || count == 0);
    struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
    if (found->kind != API_MEMORY_DEVICE)
        return set_access(found, map, count);
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type == CU_MEM_LOCATION_TYPE_HOST ||
            (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && map[i].location.id == 0 &&
             map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ))
            return api_fail(CUDA_ERROR_NOT_SUPPORTED,
                            "the device's memory is the device's, to read and write");
        else if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id != 0 ||
                 map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return api_fail(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || map[i].location.id != 0
                                ? CUDA_ERROR_INVALID_DEVICE
                                : CUDA_ERROR_INVALID_VALUE,
                            "the owning device's access is always read and write");
    return api_leave();
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    API_ENTER();
    API_REQUIRE(flags != NULL && location != NULL);
    struct api_pool *pool = emu_handle_get(EMU_HANDLE_POOL, memPool);
    if (pool == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
    const bool host = location->type == CU_MEM_LOCATION_TYPE_HOST;
    API_REQUIRE(host || (location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0));
    *flags = host ? pool->host_access : pool->access;
    return api_leave();
}

/* Memory whose free is queued in the same stream is there in the order of that stream: it is given out again
   at once, as an H200's driver does, so that a loop of both takes no more memory than one round of it. */
static struct api_allocation *reuse(struct api_pool *pool, const struct api_stream *stream, uint64_t bytes)
{
    if (pool->queued_frees == 0 || pool->shareable || check_hooks() != NULL)
        return NULL; /* the hazard checker tells one life of memory from the next by its address */
    for (struct api_allocation *allocation = api_allocation_next(0); allocation != NULL;
         allocation = api_allocation_next(allocation->base + 1))
        if (allocation->free_queued && allocation->pool == pool && allocation->free_stream == stream &&
            allocation->bytes == bytes) {
            pool->queued_frees--;
            allocation->frees_to_pass++;
            api_allocation_renew(allocation);
            return allocation;
        }
    return NULL;
}

/* Is memory on its way back, and work queued that may lead there? */
static bool frees_to_come(const struct api_context *context)
{
    bool queued = false, busy = false;
    for (const struct api_pool *pool = pools; pool != NULL; pool = pool->next)
        queued = queued || pool->queued_frees > 0;
    for (const struct api_stream *stream = context->streams; stream != NULL; stream = stream->next)
        busy = busy || !api_stream_idle(stream);
    return queued && busy && context->active;
}

static CUresult allocate(const char *call, CUdeviceptr *dptr, size_t bytes, CUmemoryPool handle,
                         bool from_pool, CUstream hStream)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, hStream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(dptr != NULL);
    struct api_pool *pool = from_pool ? emu_handle_get(EMU_HANDLE_POOL, handle) : current_pool();
    if (pool == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
    result = api_stream_get(context, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (stream->capture == NULL && !api_capture_permits(NULL))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "another stream is capturing");
    if (bytes == 0) { /* no error, on the H200 */
        *dptr = 0;
        return api_leave();
    }
    if (pool->imported)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the pool is another process's: it gives no memory here");
    if (stream->capture != NULL) { /* becomes an allocation node */
        struct api_work work = {.kind = API_WORK_EMPTY};
        result = api_graph_memory_new(bytes, &work);
        if (result == CUDA_SUCCESS) {
            const uint64_t address = work.memory.address;
            result = api_submit(stream, &work, API_ASYNC);
            if (result == CUDA_SUCCESS)
                *dptr = address;
        }
        return api_result(result);
    }
    if (pool->max_bytes != 0 && bytes > in_blocks(pool->max_bytes) - pool->used_bytes)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the pool holds at most %llu bytes",
                        (unsigned long long)pool->max_bytes);
    struct api_allocation *allocation = reuse(pool, stream, bytes);
    if (allocation != NULL) {
        *dptr = allocation->base;
        return api_leave();
    }
    allocation = api_allocation_new(context, bytes, pool->kind);
    while (allocation == NULL && frees_to_come(context)) {
        api_wait_for_change();
        allocation = api_allocation_new(context, bytes, pool->kind);
    }
    if (allocation == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "wanted %zu bytes", bytes);
    if (pool->shareable && emu_memory_share(api_device()->machine, allocation->base) < 0) {
        api_allocation_free(allocation);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot share the memory");
    }
    allocation->pool = pool;
    allocation->flags = pool->kind == API_MEMORY_HOST ? CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
                        : pool->kind == API_MEMORY_MANAGED ? CU_MEM_ATTACH_GLOBAL
                                                           : 0;
    pool->used_bytes += bytes;
    if (pool->used_high_bytes < pool->used_bytes)
        pool->used_high_bytes = pool->used_bytes;
    reserve(pool, UINT64_MAX);
    *dptr = allocation->base;
    if (check_hooks() == NULL)
        return api_leave();
    struct api_work work = {.kind = API_WORK_NEW, .memory = {.address = allocation->base, .bytes = bytes}};
    return api_result(api_submit(stream, &work, API_ASYNC)); /* its failure is the context's */
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return allocate(__func__, dptr, bytesize, NULL, false, hStream);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    return allocate(__func__, dptr, bytesize, pool, true, hStream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(__func__, hStream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_stream_get(context, hStream, &stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (stream->capture == NULL && !api_capture_permits(NULL))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "another stream is capturing");
    if (dptr == 0)
        return api_leave();
    struct api_allocation *allocation = api_allocation_find(dptr);
    if (allocation != NULL && allocation->base == dptr && allocation->kind == API_MEMORY_MANAGED &&
        allocation->pool == NULL)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "managed memory is freed by cuMemFree");
    const bool captured = stream->capture != NULL && api_graph_memory_is(dptr);
    if (captured)
        allocation = NULL;
    else if (stream->capture != NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx was not allocated in a graph",
                        (unsigned long long)dptr);
    else if (allocation == NULL || allocation->base != dptr || allocation->free_queued ||
             !api_allocation_may_free(allocation))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not the start of a live allocation",
                        (unsigned long long)dptr);
    if (stream->capture == NULL) {
        allocation->free_queued = true;
        allocation->free_stream = stream;
        if (allocation->pool != NULL)
            allocation->pool->queued_frees++;
    }
    struct api_work work = {.kind = API_WORK_FREE, .memory = {.address = dptr}};
    return api_result(api_submit(stream, &work, API_ASYNC));
}
