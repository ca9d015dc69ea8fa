/* "Unified Addressing": what a pointer is. Attributes that have no meaning here (tokens of RDMA, handles to
   share) are answered as a device without the feature answers. */
#include "emu/api.h"

#include <string.h>

struct pointer {
    uint64_t address, base, bytes;
    struct api_allocation *allocation; /* NULL: a module's variable, or none of ours */
    bool known;
};

static struct pointer look_up(uint64_t address)
{
    struct pointer found = {.address = address, .allocation = api_allocation_find(address)};
    enum emu_memory_kind kind;
    if (found.allocation != NULL) {
        found.base = found.allocation->base;
        found.bytes = found.allocation->bytes;
        found.known = true;
    } else {
        found.known = emu_memory_find(api_device()->machine, address, &found.base, &found.bytes, &kind);
    }
    return found;
}

static bool is_host(const struct pointer *pointer)
{
    return pointer->allocation != NULL && (pointer->allocation->kind == API_MEMORY_HOST ||
                                           pointer->allocation->kind == API_MEMORY_REGISTERED);
}

static bool is_managed(const struct pointer *pointer)
{
    return pointer->allocation != NULL && pointer->allocation->kind == API_MEMORY_MANAGED;
}

/* The mapping that holds the allocation, as an H200 tells it: memory is mapped in blocks of 2 MiB, a pool's
   of 32 MiB, what the program maps or registers itself in what it gave. Only told: nothing is mapped so. */
static void mapping_of(const struct pointer *pointer, uint64_t *out_base, uint64_t *out_bytes)
{
    const struct api_allocation *allocation = pointer->allocation;
    const uint64_t unit =
        allocation != NULL && allocation->pool != NULL ? (uint64_t)32 << 20 : (uint64_t)2 << 20;
    *out_base = pointer->base;
    *out_bytes = pointer->bytes;
    if (allocation != NULL && (allocation->kind == API_MEMORY_REGISTERED ||
                               allocation->kind == API_MEMORY_VIRTUAL || allocation->kind == API_MEMORY_IPC))
        return;
    *out_base = pointer->base / unit * unit;
    *out_bytes = (pointer->base + pointer->bytes - *out_base + unit - 1) / unit * unit;
}

/* Truth values are written as four bytes, as an H200's driver does. */
#define PUT(type, value)                  \
    do {                                  \
        type put_ = (type)(value);        \
        memcpy(data, &put_, sizeof put_); \
    } while (0)

/* Writes one attribute. For an unknown pointer writes what the manual gives as "unregistered". */
static CUresult get(void *data, CUpointer_attribute attribute, const struct pointer *pointer)
{
    const struct api_allocation *allocation = pointer->allocation;
    uint64_t base, bytes;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
        struct api_context *primary = api_device()->primary;
        CUcontext context = allocation != NULL ? allocation->context
                            : primary != NULL  ? primary->handle
                                               : NULL;
        PUT(CUcontext, pointer->known && (allocation == NULL || allocation->pool == NULL) ? context : NULL);
        break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        PUT(unsigned, !pointer->known ? 0 : is_host(pointer) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        PUT(CUdeviceptr, pointer->known ? pointer->address : 0);
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: /* memory that the driver does not know is the host's */
        PUT(uint64_t, is_host(pointer) || is_managed(pointer) || !pointer->known ? pointer->address : 0);
        if (pointer->known && !is_host(pointer) && !is_managed(pointer))
            return CUDA_ERROR_INVALID_VALUE; /* device memory has no host pointer */
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: /* device memory's only, on the H200 */
        PUT(unsigned,
            pointer->known && !is_host(pointer) && (allocation == NULL || !allocation->async_memops));
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        PUT(unsigned long long, allocation != NULL ? allocation->id : 0);
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        PUT(unsigned, is_managed(pointer));
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, pointer->known ? 0 : -2); /* CU_DEVICE_INVALID */
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        PUT(unsigned,
            allocation != NULL && allocation->kind == API_MEMORY_DEVICE && allocation->pool == NULL);
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        PUT(unsigned, false);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        PUT(CUdeviceptr, pointer->base);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        mapping_of(pointer, &base, &bytes);
        PUT(CUdeviceptr, pointer->known ? base : 0);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (pointer->known) /* else left alone, on the H200 */
            PUT(size_t, pointer->bytes);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        mapping_of(pointer, &base, &bytes);
        if (pointer->known)
            PUT(size_t, bytes);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        PUT(unsigned, pointer->known);
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        PUT(uint64_t, 0);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(int, pointer->known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        PUT(CUmemoryPool, allocation != NULL && allocation->pool != NULL ? allocation->pool->handle : NULL);
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        PUT(unsigned long long, allocation != NULL ? allocation->id : 0);
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* numbers for a kernel module, which there is none of */
        if (is_host(pointer) || !pointer->known)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS,
            ((CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){.p2pToken = allocation != NULL ? allocation->id : 1,
                                                 .vaSpaceToken = 1}));
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    API_ENTER();
    API_REQUIRE(data != NULL);
    struct pointer pointer = look_up(ptr);
    if (!pointer.known)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx lies in no live allocation",
                        (unsigned long long)ptr);
    CUresult result = get(data, attribute, &pointer);
    return result == CUDA_SUCCESS ? api_leave() : api_fail(result, "pointer attribute %d", (int)attribute);
}

/* Never fails for an unknown pointer: the attributes are then those of unregistered memory. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                        void **data, CUdeviceptr ptr)
{
    API_ENTER();
    API_REQUIRE(attributes != NULL && data != NULL && numAttributes > 0);
    struct pointer pointer = look_up(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        API_REQUIRE(data[i] != NULL);
        CUresult result = get(data[i], attributes[i], &pointer);
        if (result != CUDA_SUCCESS && attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER)
            return api_fail(result, "pointer attribute %d", (int)attributes[i]);
    }
    return api_leave();
}

CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    API_ENTER();
    API_REQUIRE(value != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    struct api_allocation *allocation = api_allocation_find(ptr);
    if (allocation == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx lies in no live allocation",
                        (unsigned long long)ptr);
    unsigned on;
    memcpy(&on, value, sizeof on);
    allocation->async_memops = on == 0;
    return api_leave();
}
