/* "Stream Ordered Memory Allocator": cuMemAllocAsync, cuMemFreeAsync and memory pools. Memory is taken when
   the call is made and given back when the stream gets to the free, so that the order a program may rely on
   holds. Pools keep no freed memory: their reserved size is their used size. Pools that processes share:
   api_share_pool.c. */
#include "check/check.h"
#include "emu/api.h"

#include <stdlib.h>
#include <string.h>

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
    pool->access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t i = 0; i < API_COUNT_OF(pool->reuse_flags); i++)
        pool->reuse_flags[i] = 1;
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

/* The forms that take a location. UNVERIFIED: the code for locations and types without a pool. */
static CUresult location_result(const char *call, CUmemoryPool *out_pool, const CUmemLocation *location,
                                CUmemAllocationType type, bool current)
{
    if (location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
        type == CU_MEM_ALLOCATION_TYPE_PINNED)
        return pool_result(call, location->id, out_pool, current);
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(location != NULL && type >= CU_MEM_ALLOCATION_TYPE_PINNED &&
                type <= CU_MEM_ALLOCATION_TYPE_MANAGED);
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "pools are of device memory only");
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
    return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
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
    API_REQUIRE(poolProps->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    if (((unsigned)poolProps->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "handle types 0x%x: file descriptors only",
                        (unsigned)poolProps->handleTypes);
    for (size_t i = 0; i < sizeof poolProps->reserved; i++)
        API_REQUIRE(poolProps->reserved[i] == 0);
    API_REQUIRE(poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? poolProps->location.id >= 0
                : poolProps->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA
                    ? poolProps->location.id == 0
                    : poolProps->location.type == CU_MEM_LOCATION_TYPE_HOST);
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "pools of host memory are not emulated");
    if (poolProps->location.id != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "device %d: one device is emulated",
                        poolProps->location.id);
    struct api_pool *made = api_pool_new();
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
    /* Live allocations still count in it: the last one frees it (api_allocation.c). */
    if (found->used_bytes == 0)
        free(found);
    else
        found->destroyed = true;
    return api_leave();
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    API_ENTER();
    (void)minBytesToKeep; /* pools keep nothing */
    const struct api_pool *found = emu_handle_get(EMU_HANDLE_POOL, pool);
    if (found == NULL || found->imported)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool of this process");
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
        memcpy(value, &pool->used_bytes, sizeof wide);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (!set) {
            memcpy(value, &pool->used_high_bytes, sizeof wide);
            return CUDA_SUCCESS;
        }
        memcpy(&wide, value, sizeof wide);
        if (wide != 0)
            return CUDA_ERROR_INVALID_VALUE; /* only a reset to zero is allowed */
        pool->used_high_bytes = pool->used_bytes;
        return CUDA_SUCCESS;
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

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    API_ENTER();
    API_REQUIRE(map != NULL || count == 0);
    if (emu_handle_get(EMU_HANDLE_POOL, pool) == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live pool");
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
    *flags = host ? CU_MEM_ACCESS_FLAGS_PROT_NONE : pool->access;
    return api_leave();
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
    if (pool->max_bytes != 0 && bytes > pool->max_bytes - pool->used_bytes)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the pool holds at most %llu bytes",
                        (unsigned long long)pool->max_bytes);
    struct api_allocation *allocation = api_allocation_new(context, bytes, API_MEMORY_DEVICE);
    if (allocation == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "wanted %zu bytes", bytes);
    if (pool->shareable && emu_memory_share(api_device()->machine, allocation->base) < 0) {
        api_allocation_free(allocation);
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot share the memory");
    }
    allocation->pool = pool;
    pool->used_bytes += bytes;
    if (pool->used_high_bytes < pool->used_bytes)
        pool->used_high_bytes = pool->used_bytes;
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
    if (allocation != NULL && allocation->base == dptr && allocation->kind == API_MEMORY_MANAGED)
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
    if (stream->capture == NULL)
        allocation->free_queued = true;
    struct api_work work = {.kind = API_WORK_FREE, .memory = {.address = dptr}};
    return api_result(api_submit(stream, &work, API_ASYNC));
}
