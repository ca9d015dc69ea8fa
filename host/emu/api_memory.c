/* "Memory Management": allocation, release, pinned and managed memory, registration. Managed memory is plain
   memory that both sides see (said once in the log). Pointer attributes are in api_pointer.c, pools in
   api_pool.c, copies in api_copy.c, virtual memory management in api_virtual.c, memory of other processes in
   api_share.c. */
#include "emu/api.h"

static CUresult allocate(struct api_context *context, CUdeviceptr *dptr, uint64_t bytes, int kind,
                         unsigned flags)
{
    struct api_allocation *allocation = api_allocation_new(context, bytes, kind);
    if (allocation == NULL) {
        uint64_t available, total;
        emu_memory_info(api_device()->machine, &available, &total);
        uint64_t spare = api_memory_spare();
        if (spare < bytes && bytes <= available)
            return api_set_error(CUDA_ERROR_OUT_OF_MEMORY,
                                 "wanted %llu bytes: the device has them, but this host can spare %llu only",
                                 (unsigned long long)bytes, (unsigned long long)spare);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "wanted %llu bytes, %llu of %llu are free",
                             (unsigned long long)bytes, (unsigned long long)available,
                             (unsigned long long)total);
    }
    allocation->flags = flags;
    *dptr = allocation->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(dptr != NULL && bytesize > 0);
    return api_result(allocate(context, dptr, bytesize, API_MEMORY_DEVICE, 0));
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                                    unsigned int ElementSizeBytes)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(dptr != NULL && pPitch != NULL && WidthInBytes > 0 && Height > 0);
    *dptr = 0; /* where it fails, on the H200 */
    API_REQUIRE(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    size_t pitch, bytes;
    if (__builtin_add_overflow(WidthInBytes, (size_t)511, &pitch) ||
        __builtin_mul_overflow(pitch / 512 * 512, Height, &bytes))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the size overflows");
    CUresult result = allocate(context, dptr, bytes, API_MEMORY_DEVICE, 0);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch / 512 * 512;
    return api_result(result);
}

/* Enters a call about memory: without a current context it works in that of the allocation at the address,
   or, where there is none, in none (*out_context is NULL). */
static CUresult enter_of(const char *call, uint64_t address, struct api_context **out_context)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_context_current(out_context);
    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        const struct api_allocation *allocation = api_allocation_find(address);
        *out_context =
            allocation != NULL && allocation->context != NULL ? api_context_get(allocation->context) : NULL;
        return *out_context != NULL ? api_use_context(*out_context) : CUDA_SUCCESS;
    }
    return result == CUDA_SUCCESS ? api_use_context(*out_context)
                                  : api_fail(result, "the current context was destroyed");
}

/* Freeing waits for the work that may use the memory, as cuMemFree does on hardware. */
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    struct api_context *context;
    CUresult result = enter_of(__func__, dptr, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (dptr == 0)
        return api_leave();
    struct api_allocation *allocation = api_allocation_find(dptr);
    if (allocation == NULL || allocation->base != dptr || allocation->free_queued ||
        !api_allocation_may_free(allocation))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not the start of a live allocation",
                        (unsigned long long)dptr);
    result = context != NULL ? api_context_wait(context) : CUDA_SUCCESS;
    allocation = api_allocation_find(dptr);
    if (result == CUDA_SUCCESS && allocation != NULL && allocation->base == dptr)
        api_allocation_free(allocation);
    return api_result(result);
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(dptr != NULL && bytesize > 0);
    API_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    emu_log_once(
        "managed memory is plain memory here: nothing migrates, prefetches and advice have no effect");
    return api_result(allocate(context, dptr, bytesize, API_MEMORY_MANAGED, flags));
}

/* ---- pinned host memory ---- */

#define SMALL_BYTES ((size_t)1 << 20) /* UNVERIFIED: less than the block of 2 MiB */
#define HOST_ALLOC_FLAGS \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

/* All memory is portable and mapped. What cuMemHostGetFlags tells of the former is, on an H200, that of the
   first small piece of the same kind: they share a block. */
static unsigned told_flags(size_t bytes, unsigned flags)
{
    const unsigned combined = flags & CU_MEMHOSTALLOC_WRITECOMBINED;
    for (const struct api_allocation *other = api_allocation_next(0); other != NULL && bytes < SMALL_BYTES;
         other = api_allocation_next(other->base + 1))
        if (other->kind == API_MEMORY_HOST && other->bytes < SMALL_BYTES &&
            (other->flags & CU_MEMHOSTALLOC_WRITECOMBINED) == combined)
            return combined | (other->flags & CU_MEMHOSTALLOC_PORTABLE);
    return flags;
}

static CUresult host_alloc(const char *call, void **pp, size_t bytes, unsigned flags)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pp != NULL);
    if ((flags & ~(unsigned)HOST_ALLOC_FLAGS) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    if (bytes == 0) {
        *pp = NULL;
        return api_leave();
    }
    CUdeviceptr address = 0;
    result = allocate(context, &address, bytes, API_MEMORY_HOST,
                      told_flags(bytes, flags) | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)address;
    return api_result(result);
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    return host_alloc(__func__, pp, bytesize, Flags);
}

CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return host_alloc(__func__, pp, bytesize, 0);
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    struct api_context *context;
    CUresult result = enter_of(__func__, (uint64_t)(uintptr_t)p, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (p == NULL)
        return api_leave();
    struct api_allocation *allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    if (allocation == NULL || allocation->base != (uint64_t)(uintptr_t)p ||
        allocation->kind != API_MEMORY_HOST)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%p was not made by cuMemAllocHost or cuMemHostAlloc", p);
    result = context != NULL ? api_context_wait(context) : CUDA_SUCCESS;
    allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    if (result == CUDA_SUCCESS && allocation != NULL)
        api_allocation_free(allocation);
    return api_result(result);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(p != NULL && bytesize > 0);
    unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                     CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if ((Flags & ~known) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", Flags);
    if ((Flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "ordinary memory is no I/O memory");
    uint64_t base = (uint64_t)(uintptr_t)p, last;
    if (__builtin_add_overflow(base, bytesize - 1, &last))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the range overflows");
    const struct api_allocation *first = api_allocation_find(base);
    API_REQUIRE((first == NULL || first->kind == API_MEMORY_REGISTERED) && !api_memory_reserved(base));
    if (first != NULL || api_allocation_find(last) != NULL)
        return api_fail(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                        "%p lies in memory that is registered already", p);
    struct api_allocation *allocation =
        api_allocation_register(context, p, bytesize, (Flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0);
    if (allocation == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%p, %zu bytes, cannot be registered", p, bytesize);
    allocation->flags = Flags;
    return api_leave();
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    struct api_context *context;
    CUresult result = enter_of(__func__, (uint64_t)(uintptr_t)p, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(p != NULL);
    struct api_allocation *allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    API_REQUIRE(allocation == NULL ||
                (allocation->kind == API_MEMORY_REGISTERED && allocation->base == (uint64_t)(uintptr_t)p));
    if (allocation == NULL)
        return api_fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not the start of registered memory", p);
    result = context != NULL ? api_context_wait(context) : CUDA_SUCCESS;
    allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    if (result == CUDA_SUCCESS && allocation != NULL)
        api_allocation_free(allocation);
    return api_result(result);
}

/* Host memory has one address on both sides. */
CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(pdptr != NULL);
    *pdptr = 0; /* where it fails, on the H200 */
    API_REQUIRE(p != NULL && Flags == 0);
    struct api_allocation *allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    if (allocation == NULL ||
        (allocation->kind != API_MEMORY_HOST && allocation->kind != API_MEMORY_REGISTERED))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%p is not pinned host memory", p);
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return api_leave();
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(pFlags != NULL);
    struct api_allocation *allocation = api_allocation_find((uint64_t)(uintptr_t)p);
    if (allocation == NULL ||
        (allocation->kind != API_MEMORY_HOST && allocation->kind != API_MEMORY_REGISTERED &&
         allocation->kind != API_MEMORY_MANAGED))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "%p is no host memory that the driver knows", p);
    *pFlags = allocation->kind == API_MEMORY_HOST ? allocation->flags
              : allocation->kind == API_MEMORY_REGISTERED
                  ? (allocation->flags & CU_MEMHOSTREGISTER_PORTABLE) | CU_MEMHOSTREGISTER_DEVICEMAP
                  : CU_MEMHOSTALLOC_DEVICEMAP;
    return api_leave();
}

/* ---- questions ---- */

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    uint64_t available, all;
    emu_memory_info(api_device()->machine, &available, &all);
    if (available > api_memory_spare())
        available = api_memory_spare();
    if (free != NULL)
        *free = available;
    if (total != NULL)
        *total = all;
    return api_leave();
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    uint64_t base, bytes;
    enum emu_memory_kind kind;
    const struct api_allocation *allocation = api_allocation_find(dptr);
    if (allocation != NULL) {
        base = allocation->base;
        bytes = allocation->bytes;
    } else if (!emu_memory_find(api_device()->machine, dptr, &base, &bytes, &kind)) {
        if (pbase != NULL)
            *pbase = 0; /* written also when it fails, as on the H200 */
        if (psize != NULL)
            *psize = 0;
        return api_fail(CUDA_ERROR_NOT_FOUND, "0x%llx lies in no live allocation", (unsigned long long)dptr);
    }
    if (pbase != NULL)
        *pbase = base;
    if (psize != NULL)
        *psize = bytes;
    return api_leave();
}
