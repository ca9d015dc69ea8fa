/* "Stream Memory Operations": a stream writes a word of memory, or waits until one has a value. Leaves out:
   remote flushes and memory barriers inside batches, which have nothing to order here and are accepted as
   such. */
#include "emu/api_graph.h"

static CUresult make(uint64_t address, uint64_t value, unsigned bytes, unsigned flags, bool wait,
                     struct api_work *out_work)
{
    if (wait && (flags & ~3u) == CU_STREAM_WAIT_VALUE_FLUSH)
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "flushes of remote writes (device attribute 98 is 0)");
    if ((flags & ~(wait ? 3u : 0u)) != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    /* Neither managed memory nor a pool's, on the H200. */
    const struct api_allocation *allocation = api_allocation_find(address);
    if (address % bytes != 0 ||
        (allocation != NULL && (allocation->kind == API_MEMORY_MANAGED || allocation->pool != NULL)) ||
        (api_memory(address, bytes) == NULL && !api_graph_memory_holds(address, bytes)))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "0x%llx is not an aligned word of live device memory",
                             (unsigned long long)address);
    *out_work = (struct api_work){
        .kind = wait ? API_WORK_WAIT_VALUE : API_WORK_WRITE_VALUE,
        .value = {.address = address, .value = value, .bytes = bytes, .flags = flags},
    };
    return CUDA_SUCCESS;
}

CUresult api_memory_op_work(const CUstreamBatchMemOpParams *op, struct api_work *out_work)
{
    *out_work = (struct api_work){.kind = API_WORK_EMPTY};
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return make(op->waitValue.address, op->waitValue.value, 4, op->waitValue.flags, true, out_work);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return make(op->waitValue.address, op->waitValue.value64, 8, op->waitValue.flags, true, out_work);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return make(op->writeValue.address, op->writeValue.value, 4, op->writeValue.flags, false, out_work);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return make(op->writeValue.address, op->writeValue.value64, 8, op->writeValue.flags, false, out_work);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return api_set_error(CUDA_ERROR_NOT_SUPPORTED, "flushes of remote writes (device attribute 98 is 0)");
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS;
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "operation %d of a batch", (int)op->operation);
    }
}

static CUresult one(const char *call, CUstream handle, uint64_t address, uint64_t value, unsigned bytes,
                    unsigned flags, bool wait)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_work work;
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = make(address, value, bytes, flags, wait, &work);
    return api_result(result == CUDA_SUCCESS ? api_submit(stream, &work, API_ASYNC) : result);
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
    struct api_context *context;
    struct api_stream *found;
    CUresult result = api_enter_for(__func__, stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(flags == 0 && count < 256 && (paramArray != NULL || count == 0));
    result = api_stream_get(context, stream, &found);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct api_work work;
        result = api_memory_op_work(&paramArray[i], &work);
        if (result == CUDA_SUCCESS && work.kind != API_WORK_EMPTY)
            result = api_submit(found, &work, API_ASYNC);
    }
    return api_result(result);
}
