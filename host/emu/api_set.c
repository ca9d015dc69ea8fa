/* "Memory Management": cuMemset in its forms: 8, 16 or 32-bit elements, one row or several, with and without
   a stream. All keep stream order and return at once, as documented for device memory; short ones are done on
   return. */
#include "emu/api_transfer.h"

static CUresult set(const char *call, CUstream handle, uint64_t address, uint64_t pitch,
                    unsigned element_bytes, uint32_t value, uint64_t width, uint64_t height, bool synchronous)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = api_set_check(address, pitch, element_bytes, width, height);
    const struct api_allocation *allocation = api_allocation_find(address);
    if (result == CUDA_SUCCESS && allocation != NULL && allocation->kind == API_MEMORY_HOST &&
        allocation->pool != NULL && allocation->pool->access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        result = api_set_error(CUDA_ERROR_INVALID_VALUE,
                               "the device has no access to the pool (cuMemPoolSetAccess)");
    if (result == CUDA_SUCCESS && stream->capture != NULL && (width == 0 || height == 0))
        return api_leave(); /* no node, on the H200 */
    if (result == CUDA_SUCCESS) {
        struct api_work work = {.kind = API_WORK_SET,
                                .set = {address, pitch, width, height, element_bytes, value}};
        bool wait = synchronous && allocation != NULL && allocation->kind != API_MEMORY_DEVICE;
        result = api_submit(stream, &work, wait ? API_SYNC : API_ASYNC);
    }
    return api_result(result);
}

#define SETS(bits, type)                                                                                   \
    CUresult CUDAAPI cuMemsetD##bits##_v2(CUdeviceptr dstDevice, type value, size_t N)                     \
    {                                                                                                      \
        return set(__func__, NULL, dstDevice, 0, bits / 8, value, N, 1, true);                             \
    }                                                                                                      \
    CUresult CUDAAPI cuMemsetD##bits##Async(CUdeviceptr dstDevice, type value, size_t N, CUstream hStream) \
    {                                                                                                      \
        return set(__func__, hStream, dstDevice, 0, bits / 8, value, N, 1, false);                         \
    }                                                                                                      \
    CUresult CUDAAPI cuMemsetD2D##bits##_v2(CUdeviceptr dstDevice, size_t dstPitch, type value,            \
                                            size_t Width, size_t Height)                                   \
    {                                                                                                      \
        return set(__func__, NULL, dstDevice, dstPitch, bits / 8, value, Width, Height, true);             \
    }                                                                                                      \
    CUresult CUDAAPI cuMemsetD2D##bits##Async(CUdeviceptr dstDevice, size_t dstPitch, type value,          \
                                              size_t Width, size_t Height, CUstream hStream)               \
    {                                                                                                      \
        return set(__func__, hStream, dstDevice, dstPitch, bits / 8, value, Width, Height, false);         \
    }

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
