/* "Memory Management": the copies. One macro per shape of prototype; what each form means is
   api_transfer.c's. Peer copies are copies: one device is emulated. The forms with 32-bit device pointers
   (before CUDA 3.2) are left out. Copies of one-dimensional arrays: api_copy_array.c. */
#include "emu/api_transfer.h"

#include "emu/api_array.h"

static CUresult copy_linear(const char *call, CUstream handle, uint64_t to, uint64_t from, uint64_t bytes,
                            enum api_side_kind to_kind, enum api_side_kind from_kind, bool synchronous)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_copy copy = api_copy_linear(to, from, bytes);
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = api_copy_check(&copy, to_kind, from_kind);
    if (result == CUDA_SUCCESS)
        result = api_copy_submit(stream, &copy, synchronous);
    return api_result(result);
}

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_linear(__func__, NULL, dstDevice, ADDRESS(srcHost), ByteCount, API_SIDE_DEVICE, API_SIDE_HOST,
                       true);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_linear(__func__, NULL, ADDRESS(dstHost), srcDevice, ByteCount, API_SIDE_HOST, API_SIDE_DEVICE,
                       true);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_linear(__func__, NULL, dstDevice, srcDevice, ByteCount, API_SIDE_DEVICE, API_SIDE_DEVICE,
                       true);
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_linear(__func__, NULL, dst, src, ByteCount, API_SIDE_UNIFIED, API_SIDE_UNIFIED, true);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                      CUstream hStream)
{
    return copy_linear(__func__, hStream, dstDevice, ADDRESS(srcHost), ByteCount, API_SIDE_DEVICE,
                       API_SIDE_HOST, false);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                      CUstream hStream)
{
    return copy_linear(__func__, hStream, ADDRESS(dstHost), srcDevice, ByteCount, API_SIDE_HOST,
                       API_SIDE_DEVICE, false);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                      CUstream hStream)
{
    return copy_linear(__func__, hStream, dstDevice, srcDevice, ByteCount, API_SIDE_DEVICE, API_SIDE_DEVICE,
                       false);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_linear(__func__, hStream, dst, src, ByteCount, API_SIDE_UNIFIED, API_SIDE_UNIFIED, false);
}

/* What the peer forms ask besides: contexts that live, and a stream that does not capture. */
static CUresult check_peer(const char *call, CUcontext one, CUcontext other, CUstream handle)
{
    struct api_context *context;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (api_context_get(one) == NULL || api_context_get(other) == NULL)
        return api_fail(api_context_error(api_context_get(one) == NULL ? one : other), "not a live context");
    struct api_stream *stream = emu_handle_get(EMU_HANDLE_STREAM, handle);
    return api_result(stream != NULL ? api_capture_refuse(stream) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                              CUcontext srcContext, size_t ByteCount)
{
    CUresult result = check_peer(__func__, dstContext, srcContext, NULL);
    return result != CUDA_SUCCESS ? result
                                  : copy_linear(__func__, NULL, dstDevice, srcDevice, ByteCount,
                                                API_SIDE_DEVICE, API_SIDE_DEVICE, true);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                   CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    CUresult result = check_peer(__func__, dstContext, srcContext, hStream);
    return result != CUDA_SUCCESS ? result
                                  : copy_linear(__func__, hStream, dstDevice, srcDevice, ByteCount,
                                                API_SIDE_DEVICE, API_SIDE_DEVICE, false);
}

/* ---- boxes ---- */

static CUresult copy_box(const char *call, CUstream handle, const CUDA_MEMCPY2D *two,
                         const CUDA_MEMCPY3D *three, bool synchronous)
{
    struct api_context *context;
    struct api_stream *stream;
    struct api_copy copy;
    CUresult result = api_enter_for(call, handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (two == NULL && three == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the description is NULL");
    result = api_stream_get(context, handle, &stream);
    if (result == CUDA_SUCCESS)
        result = two != NULL ? api_copy_from_2d(two, &copy) : api_copy_from_3d(three, &copy);
    if (result == CUDA_SUCCESS)
        result = api_copy_submit(stream, &copy, synchronous);
    return api_result(result);
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_box(__func__, NULL, pCopy, NULL, true);
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_box(__func__, NULL, pCopy, NULL, true);
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_box(__func__, hStream, pCopy, NULL, false);
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_box(__func__, NULL, NULL, pCopy, true);
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_box(__func__, hStream, NULL, pCopy, false);
}

static CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER *peer)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = peer->srcXInBytes,
        .srcY = peer->srcY,
        .srcZ = peer->srcZ,
        .srcLOD = peer->srcLOD,
        .srcMemoryType = peer->srcMemoryType,
        .srcHost = peer->srcHost,
        .srcDevice = peer->srcDevice,
        .srcPitch = peer->srcPitch,
        .srcHeight = peer->srcHeight,
        .dstXInBytes = peer->dstXInBytes,
        .dstY = peer->dstY,
        .dstZ = peer->dstZ,
        .dstLOD = peer->dstLOD,
        .dstMemoryType = peer->dstMemoryType,
        .dstHost = peer->dstHost,
        .dstDevice = peer->dstDevice,
        .dstPitch = peer->dstPitch,
        .dstHeight = peer->dstHeight,
        .WidthInBytes = peer->WidthInBytes,
        .Height = peer->Height,
        .Depth = peer->Depth,
    };
}

CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    if (pCopy == NULL)
        return copy_box(__func__, NULL, NULL, NULL, true);
    CUDA_MEMCPY3D box = without_contexts(pCopy);
    return copy_box(__func__, NULL, NULL, &box, true);
}

CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    if (pCopy == NULL)
        return copy_box(__func__, hStream, NULL, NULL, false);
    CUDA_MEMCPY3D box = without_contexts(pCopy);
    return copy_box(__func__, hStream, NULL, &box, false);
}

/* Batches run as their copies in order: one of the orders that the manual allows. The legacy streams are
   refused, as documented. */
CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                       CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                       CUstream hStream)
{
    struct api_context *context;
    CUresult result = api_enter(__func__);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(dsts != NULL && srcs != NULL && sizes != NULL && count > 0);
    API_REQUIRE(attrs != NULL && attrsIdxs != NULL && numAttrs > 0 && numAttrs <= count && attrsIdxs[0] == 0);
    API_REQUIRE(hStream != NULL && hStream != CU_STREAM_LEGACY);
    for (size_t i = 0; i < numAttrs; i++) {
        API_REQUIRE(i == 0 || (attrsIdxs[i] > attrsIdxs[i - 1] && attrsIdxs[i] < count));
        API_REQUIRE(attrs[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_INVALID &&
                    attrs[i].srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
        API_REQUIRE((attrs[i].flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) == 0);
    }
    for (size_t i = 0; i < count; i++)
        API_REQUIRE(sizes[i] > 0);
    /* The arguments come first; and a context must be current, or they are wrong too (H200). */
    if (api_context_current(&context) == CUDA_ERROR_INVALID_CONTEXT)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no context is current");
    (void)api_leave();
    result = api_enter_for(__func__, hStream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_stream *stream;
    result = api_stream_get(context, hStream, &stream);
    if (result == CUDA_SUCCESS && stream->capture != NULL) /* without harm to the capture, on the H200 */
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "batches cannot be captured");
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct api_copy copy = api_copy_linear(dsts[i], srcs[i], sizes[i]);
        result = api_copy_check(&copy, API_SIDE_UNIFIED, API_SIDE_UNIFIED);
        if (result == CUDA_SUCCESS)
            result = api_copy_submit(stream, &copy, false);
    }
    return api_result(result);
}

CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                    CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                    size_t *failIdx, CUstream hStream)
{
    CUresult result = cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
    if (result != CUDA_SUCCESS && failIdx != NULL)
        *failIdx = SIZE_MAX; /* not traced to one copy */
    return result;
}

/* The bytes of a texel of the array; 1 between pointers, whose elements are bytes. */
static size_t element_bytes(const CUmemcpy3DOperand *one, const CUmemcpy3DOperand *other)
{
    const CUmemcpy3DOperand *operand = one->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? one : other;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    enum emu_texel_kind kind;
    unsigned bits, channels;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
        return 1;
    return cuArray3DGetDescriptor_v2(&desc, operand->op.array.array) == CUDA_SUCCESS &&
                   api_format_texels(desc.Format, desc.NumChannels, &kind, &bits, &channels)
               ? bits / 8 * channels
               : 0;
}

/* UNVERIFIED: row lengths and layer heights of zero, taken as those of the extent (CUDA Driver API 13.0,
   cuMemcpy3DBatchAsync). */
static bool box_of(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *out)
{
    const CUmemcpy3DOperand *from = &op->src, *to = &op->dst;
    const size_t bytes = element_bytes(from, to);
    *out = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .WidthInBytes = op->extent.width * bytes,
                           .Height = op->extent.height,
                           .Depth = op->extent.depth};
    if (from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        out->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        out->srcArray = from->op.array.array;
        out->srcXInBytes = from->op.array.offset.x * bytes;
        out->srcY = from->op.array.offset.y;
        out->srcZ = from->op.array.offset.z;
    } else {
        out->srcDevice = from->op.ptr.ptr;
        out->srcPitch = (from->op.ptr.rowLength != 0 ? from->op.ptr.rowLength : op->extent.width) * bytes;
        out->srcHeight = from->op.ptr.layerHeight != 0 ? from->op.ptr.layerHeight : op->extent.height;
    }
    if (to->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        out->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        out->dstArray = to->op.array.array;
        out->dstXInBytes = to->op.array.offset.x * bytes;
        out->dstY = to->op.array.offset.y;
        out->dstZ = to->op.array.offset.z;
    } else {
        out->dstDevice = to->op.ptr.ptr;
        out->dstPitch = (to->op.ptr.rowLength != 0 ? to->op.ptr.rowLength : op->extent.width) * bytes;
        out->dstHeight = to->op.ptr.layerHeight != 0 ? to->op.ptr.layerHeight : op->extent.height;
    }
    return bytes != 0 && op->extent.width != 0 && op->extent.height != 0 && op->extent.depth != 0;
}

CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                         unsigned long long flags, CUstream hStream)
{
    CUresult result = CUDA_SUCCESS;
    if (numOps == 0 || opList == NULL || flags != 0 || hStream == NULL || hStream == CU_STREAM_LEGACY) {
        API_ENTER();
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no copies, flags, or a legacy stream");
    }
    for (size_t i = 0; i < numOps && result == CUDA_SUCCESS; i++) {
        CUDA_MEMCPY3D box;
        if (!box_of(&opList[i], &box)) {
            API_ENTER();
            return api_fail(CUDA_ERROR_INVALID_VALUE, "copy %zu is empty, or its array not live", i);
        }
        result = copy_box(__func__, hStream, NULL, &box, false);
    }
    return result;
}

CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                      unsigned long long flags, CUstream hStream)
{
    CUresult result = cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream);
    if (result != CUDA_SUCCESS && failIdx != NULL)
        *failIdx = SIZE_MAX; /* not traced to one copy */
    return result;
}
