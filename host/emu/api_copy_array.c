/* "Memory Management": copies from and to one-dimensional arrays. Offsets and sizes are bytes. */
#include "emu/api_array.h"
#include "emu/api_transfer.h"

struct side {
    CUarray array;   /* NULL: memory */
    uint64_t offset; /* in the array */
    uint64_t address;
    bool device;
};

/* One side as the two-dimensional copy describes it. */
static void describe(const struct side *side, CUmemorytype *type, size_t *x, CUarray *array,
                     CUdeviceptr *device, const void **host)
{
    *type = side->array != NULL ? CU_MEMORYTYPE_ARRAY
            : side->device      ? CU_MEMORYTYPE_DEVICE
                                : CU_MEMORYTYPE_HOST;
    *x = side->array != NULL ? side->offset : 0;
    *array = side->array;
    *device = side->address;
    *host = (const void *)(uintptr_t)side->address;
}

/* An array of more dimensions does too, as far as its first row, on an H200. */
static CUresult known(CUarray handle)
{
    return handle == NULL || emu_handle_get(EMU_HANDLE_ARRAY, handle) != NULL
               ? CUDA_SUCCESS
               : api_set_error(CUDA_ERROR_INVALID_VALUE, "not a live array");
}

static CUresult copy(const char *call, CUstream handle, const struct side *to, const struct side *from,
                     uint64_t bytes, bool synchronous)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    CUDA_MEMCPY2D box = {.WidthInBytes = bytes, .Height = 1};
    const void *to_host;
    describe(from, &box.srcMemoryType, &box.srcXInBytes, &box.srcArray, &box.srcDevice, &box.srcHost);
    describe(to, &box.dstMemoryType, &box.dstXInBytes, &box.dstArray, &box.dstDevice, &to_host);
    box.dstHost = (void *)(uintptr_t)to->address;
    struct api_copy made;
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = known(to->array);
    if (result == CUDA_SUCCESS)
        result = known(from->array);
    if (result == CUDA_SUCCESS)
        result = api_copy_from_2d(&box, &made);
    if (result == CUDA_SUCCESS)
        result = api_copy_submit(stream, &made, synchronous);
    return api_result(result);
}

/* A NULL array is no array that exists: the handle is looked up, and refused. */
#define ARRAY(handle, at)                                                            \
    &(struct side)                                                                   \
    {                                                                                \
        .array = (handle) != NULL ? (handle) : (CUarray)(uintptr_t)1, .offset = (at) \
    }
#define DEVICE(pointer)                      \
    &(struct side)                           \
    {                                        \
        .address = (pointer), .device = true \
    }
#define HOST(pointer)                             \
    &(struct side)                                \
    {                                             \
        .address = (uint64_t)(uintptr_t)(pointer) \
    }

CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
    return copy(__func__, NULL, ARRAY(dstArray, dstOffset), HOST(srcHost), ByteCount, true);
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                      size_t ByteCount, CUstream hStream)
{
    return copy(__func__, hStream, ARRAY(dstArray, dstOffset), HOST(srcHost), ByteCount, false);
}

CUresult CUDAAPI cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy(__func__, NULL, HOST(dstHost), ARRAY(srcArray, srcOffset), ByteCount, true);
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                                      CUstream hStream)
{
    return copy(__func__, hStream, HOST(dstHost), ARRAY(srcArray, srcOffset), ByteCount, false);
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy(__func__, NULL, ARRAY(dstArray, dstOffset), DEVICE(srcDevice), ByteCount, true);
}

CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy(__func__, NULL, DEVICE(dstDevice), ARRAY(srcArray, srcOffset), ByteCount, true);
}

CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                                 size_t ByteCount)
{
    return copy(__func__, NULL, ARRAY(dstArray, dstOffset), ARRAY(srcArray, srcOffset), ByteCount, true);
}
