/* "Unified Addressing": what a program advises about managed memory, and what it is told back. Nothing
   migrates: the advice has no effect and is kept for a whole allocation, where a GPU keeps it for every page.
 */
#include "emu/api.h"

#include <string.h>

static const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID, .id = CU_DEVICE_INVALID};

static CUresult enter_range(const char *call, CUstream stream, CUdeviceptr address, size_t bytes,
                            struct api_context **out_context, struct api_allocation **out_allocation)
{
    CUresult result = api_enter_for(call, stream, out_context);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_allocation *allocation = api_allocation_find(address);
    if (bytes == 0 || allocation == NULL || allocation->kind != API_MEMORY_MANAGED ||
        bytes > allocation->base + allocation->bytes - address)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx, %zu bytes, is not managed memory",
                        (unsigned long long)address, bytes);
    *out_allocation = allocation;
    return CUDA_SUCCESS;
}

/* A device number of the older forms: CU_DEVICE_CPU is the host. */
static CUmemLocation location_of(CUdevice device)
{
    return device == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
                                   : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* Is there such a place? One host node is told of. */
static CUresult check_place(const CUmemLocation *location)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult prefetch(const char *call, CUdeviceptr address, size_t bytes, CUmemLocation to,
                         unsigned flags, CUstream handle)
{
    struct api_context *context;
    struct api_allocation *allocation = NULL;
    struct api_stream *stream;
    CUresult result = enter_range(call, handle, address, bytes, &context, &allocation);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(flags == 0);
    result = check_place(&to);
    if (result != CUDA_SUCCESS)
        return api_fail(result, "location %d, %d", (int)to.type, to.id);
    struct api_work work = {.kind = API_WORK_EMPTY};
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = api_capture_refuse(stream);
    if (result == CUDA_SUCCESS)
        result = api_submit(stream, &work, API_ASYNC);
    if (result == CUDA_SUCCESS)
        allocation->advice.prefetched = to;
    return api_result(result);
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                       unsigned int flags, CUstream hStream)
{
    return prefetch(__func__, devPtr, count, location, flags, hStream);
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return prefetch(__func__, devPtr, count, location_of(dstDevice), 0, hStream);
}

/* ---- batches: one after the other ---- */

static CUresult check_batch(const char *call, const CUdeviceptr *dptrs, const size_t *sizes, size_t count,
                            unsigned long long flags, CUstream stream)
{
    struct api_context *context;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(dptrs != NULL && sizes != NULL && count > 0 && flags == 0);
    API_REQUIRE(stream != NULL && stream != CU_STREAM_LEGACY); /* as documented */
    for (size_t i = 0; i < count; i++) {
        const struct api_allocation *allocation = api_allocation_find(dptrs[i]);
        if (sizes[i] == 0 || allocation == NULL || allocation->kind != API_MEMORY_MANAGED ||
            sizes[i] > allocation->base + allocation->bytes - dptrs[i])
            return api_fail(CUDA_ERROR_INVALID_VALUE, "range %zu is not managed memory", i);
    }
    return api_leave();
}

/* The location of each range: that of the last index that is not above it. */
static CUresult prefetch_all(const char *call, const CUdeviceptr *dptrs, const size_t *sizes, size_t count,
                             const CUmemLocation *locations, const size_t *indices, size_t n_locations,
                             unsigned long long flags, CUstream stream)
{
    CUresult result = check_batch(call, dptrs, sizes, count, flags, stream);
    if (result != CUDA_SUCCESS)
        return result;
    bool good =
        locations != NULL && indices != NULL && n_locations > 0 && n_locations <= count && indices[0] == 0;
    for (size_t i = 1; good && i < n_locations; i++)
        good = indices[i] > indices[i - 1] && indices[i] < count;
    if (!good) {
        API_ENTER();
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the locations and their indices do not fit %zu ranges",
                        count);
    }
    for (size_t i = 0, place = 0; i < count && result == CUDA_SUCCESS; i++) {
        while (place + 1 < n_locations && indices[place + 1] <= i)
            place++;
        result = prefetch(call, dptrs[i], sizes[i], locations[place], 0, stream);
    }
    return result;
}

CUresult CUDAAPI cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                         CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                         size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
    return prefetch_all(__func__, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                        hStream);
}

/* What a program discards may be anything afterwards: it stays what it is. */
CUresult CUDAAPI cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                        unsigned long long flags, CUstream hStream)
{
    return check_batch(__func__, dptrs, sizes, count, flags, hStream);
}

CUresult CUDAAPI cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                                   CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                                   size_t numPrefetchLocs, unsigned long long flags,
                                                   CUstream hStream)
{
    return prefetch_all(__func__, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
                        hStream);
}

static CUresult advise(const char *call, CUdeviceptr address, size_t bytes, CUmem_advise advice,
                       CUmemLocation location)
{
    struct api_context *context;
    struct api_allocation *allocation = NULL;
    CUresult result = enter_range(call, NULL, address, bytes, &context, &allocation);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_advice *kept = &allocation->advice;
    const bool needs_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                             advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                             advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    const bool by_processor =
        advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    result = check_place(&location);
    if (result == CUDA_ERROR_INVALID_DEVICE)
        result = CUDA_ERROR_INVALID_VALUE; /* what advice gives, unlike a prefetch, on the H200 */
    if (result != CUDA_SUCCESS && (needs_place || location.type < CU_MEM_LOCATION_TYPE_DEVICE ||
                                   location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT))
        return api_fail(result, "location %d, %d", (int)location.type, location.id);
    API_REQUIRE(!by_processor || location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
                location.type == CU_MEM_LOCATION_TYPE_HOST);
    bool *by = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? &kept->by_device : &kept->by_host;
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        kept->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        kept->preferred = location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        kept->preferred = nowhere;
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        *by = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "advice %d", (int)advice);
    }
    return api_leave();
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
    return advise(__func__, devPtr, count, advice, location);
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return advise(__func__, devPtr, count, advice, location_of(device));
}

/* ---- questions ---- */

static int number_of(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_INVALID  ? CU_DEVICE_INVALID
           : location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id
                                                           : CU_DEVICE_CPU;
}

static CUresult get(const struct api_advice *advice, CUmem_range_attribute attribute, void *data,
                    size_t bytes)
{
    int value = 0;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        const int by[2] = {advice->by_device ? 0 : CU_DEVICE_INVALID,
                           advice->by_host ? CU_DEVICE_CPU : CU_DEVICE_INVALID};
        int next = 0, *out = data;
        if (bytes == 0 || bytes % sizeof *out != 0)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < bytes / sizeof *out; i++) {
            while (next < 2 && by[next] == CU_DEVICE_INVALID)
                next++;
            value = next < 2 ? by[next++] : CU_DEVICE_INVALID;
            memcpy(out + i, &value, sizeof value);
        }
        return CUDA_SUCCESS;
    }
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        value = advice->read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        value = number_of(&advice->preferred);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        value = number_of(&advice->prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        value = (int)advice->preferred.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        value =
            advice->preferred.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : advice->preferred.id;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        value = (int)advice->prefetched.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        value = advice->prefetched.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID
                                                                        : advice->prefetched.id;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes != sizeof value)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                         size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
    struct api_context *context;
    struct api_allocation *allocation = NULL;
    CUresult result = enter_range(__func__, NULL, devPtr, count, &context, &allocation);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(data != NULL && dataSizes != NULL && attributes != NULL && numAttributes > 0);
    for (size_t i = 0; i < numAttributes; i++) {
        API_REQUIRE(data[i] != NULL);
        result = get(&allocation->advice, attributes[i], data[i], dataSizes[i]);
        if (result != CUDA_SUCCESS)
            return api_fail(result, "attribute %d in %zu bytes", (int)attributes[i], dataSizes[i]);
    }
    return api_leave();
}

CUresult CUDAAPI cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                        CUdeviceptr devPtr, size_t count)
{
    return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}
