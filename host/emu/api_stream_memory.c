/* "Stream Memory Operations": a stream writes a word of memory, or waits until one has a value. Leaves out:
   remote flushes and memory barriers inside batches, which have nothing to order here and are accepted as
   such. */
#include "emu/api.h"

static CUresult submit(struct api_stream *stream, uint64_t address, uint64_t value, unsigned bytes,
                       unsigned flags, bool wait)
{
    unsigned known = wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    if ((flags & ~known) != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    if (address % bytes != 0 || api_memory(address, bytes) == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "0x%llx is not an aligned word of live device memory",
                             (unsigned long long)address);
    struct api_work work = {
        .kind = wait ? API_WORK_WAIT_VALUE : API_WORK_WRITE_VALUE,
        .value = {.address = address, .value = value, .bytes = bytes, .flags = flags},
    };
    return api_submit(stream, &work, API_ASYNC);
}

static CUresult one(const char *call, CUstream handle, uint64_t address, uint64_t value, unsigned bytes,
                    unsigned flags, bool wait)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_stream_get(context, handle, &stream);
    return api_result(result == CUDA_SUCCESS ? submit(stream, address, value, bytes, flags, wait) : result);
}

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                         unsigned int flags)
{
    return one(__func__, stream, addr, value, 4, flags, false);
}

CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                         unsigned int flags)
{
    return one(__func__, stream, addr, value, 8, flags, false);
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                        unsigned int flags)
{
    return one(__func__, stream, addr, value, 4, flags, true);
}

CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                        unsigned int flags)
{
    return one(__func__, stream, addr, value, 8, flags, true);
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                       CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    API_ENTER_CONTEXT(context);
    struct api_stream *found;
    API_REQUIRE(flags == 0 && count <= 256 && (paramArray != NULL || count == 0));
    CUresult result = api_stream_get(context, stream, &found);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const CUstreamBatchMemOpParams *op = &paramArray[i];
        switch (op->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            result = submit(found, op->waitValue.address, op->waitValue.value, 4, op->waitValue.flags, true);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            result =
                submit(found, op->waitValue.address, op->waitValue.value64, 8, op->waitValue.flags, true);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            result =
                submit(found, op->writeValue.address, op->writeValue.value, 4, op->writeValue.flags, false);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            result =
                submit(found, op->writeValue.address, op->writeValue.value64, 8, op->writeValue.flags, false);
            break;
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        case CU_STREAM_MEM_OP_BARRIER:
            break;
        default:
            result = api_set_error(CUDA_ERROR_INVALID_VALUE, "operation %u of the batch is %d", i,
                                   (int)op->operation);
            break;
        }
    }
    return api_result(result);
}
