/* "Stream Management" (capture is in api_capture.c, memory operations in api_stream_memory.c): making,
   waiting for, asking and ending streams. Every stream is a queue (api_queue.c). Stream attributes that only
   steer hardware are kept and given back; none has an effect. */
#include "emu/api_context.h"

#include <stdlib.h>
#include <string.h>

static unsigned long long next_stream_id = 1;

struct api_stream *api_stream_new(struct api_context *context, unsigned flags, int priority)
{
    struct api_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->handle = emu_handle_new(EMU_HANDLE_STREAM, stream);
    if (stream->handle == NULL) {
        free(stream);
        return NULL;
    }
    pthread_cond_init(&stream->wake, NULL);
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = next_stream_id++;
    stream->refs = 1;
    stream->sync_policy = (CUsynchronizationPolicy)-1; /* so the H200 begins */
    stream->domain_map.remote = 1;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void api_stream_destroy(struct api_stream *stream)
{
    if (stream->destroyed)
        return;
    api_capture_drop(stream);
    stream->destroyed = true;
    emu_handle_free(stream->handle);
    stream->handle = NULL;
    pthread_cond_signal(&stream->wake); /* its worker leaves when the queue is empty */
    api_signal_change();
    api_stream_retire(stream);
}

static CUresult own_stream(struct api_context *context, struct api_stream **out_stream)
{
    struct api_thread *thread = api_thread();
    size_t place = API_COUNT_OF(thread->own_stream);
    for (size_t i = 0; i < API_COUNT_OF(thread->own_stream); i++) {
        struct api_stream *stream = emu_handle_get(EMU_HANDLE_STREAM, thread->own_stream[i]);
        if (stream != NULL && stream->context == context) {
            *out_stream = stream;
            return CUDA_SUCCESS;
        }
        if (stream == NULL)
            place = i;
    }
    if (place == API_COUNT_OF(thread->own_stream))
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY,
                             "the thread uses its default stream in %zu contexts already", place);
    *out_stream = api_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (*out_stream == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a stream");
    (*out_stream)->per_thread = true;
    thread->own_stream[place] = (*out_stream)->handle;
    return CUDA_SUCCESS;
}

CUresult api_stream_get(struct api_context *context, CUstream handle, struct api_stream **out_stream)
{
    if (handle == CU_STREAM_PER_THREAD || (handle == NULL && api_thread()->per_thread_default))
        return own_stream(context, out_stream);
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        for (struct api_stream *other = context->streams; other != NULL; other = other->next)
            if (other->capture != NULL && (other->flags & CU_STREAM_NON_BLOCKING) == 0) {
                api_capture_invalidate(other->capture);
                return api_set_error(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                     "the legacy default stream would wait for a stream that is capturing");
            }
        const struct api_green *green = api_green_current();
        *out_stream = green != NULL && green->primary == context ? green->legacy : context->legacy;
        return CUDA_SUCCESS;
    }
    struct api_stream *stream = emu_handle_get(EMU_HANDLE_STREAM, handle);
    if (stream == NULL)
        return api_set_error(emu_handle_was(EMU_HANDLE_STREAM, handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                       : CUDA_ERROR_INVALID_HANDLE,
                             "not a live stream");
    if (stream->context != context) {
        /* A stream of another context may be used: the call then works in that context. */
        if (stream->context == NULL || !stream->context->active)
            return api_set_error(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the stream's context is gone");
        if (stream->context->sticky != CUDA_SUCCESS)
            return api_copy_error(stream->context->sticky, &stream->context->fault);
    }
    *out_stream = stream;
    return CUDA_SUCCESS;
}

CUresult api_stream_default(struct api_context *context, struct api_stream **out_stream)
{
    return api_stream_get(context, NULL, out_stream);
}

#define SYNC_DOMAINS 4 /* device attribute 126 */

/* As documented. */
static int clamped_priority(int priority)
{
    return priority > API_PRIORITY_LEAST      ? API_PRIORITY_LEAST
           : priority < API_PRIORITY_GREATEST ? API_PRIORITY_GREATEST
                                              : priority;
}

static CUresult create(const char *call, CUstream *phStream, unsigned flags, int priority)
{
    struct api_context *context;
    CUresult entered = api_enter_context(call, &context);
    if (entered != CUDA_SUCCESS)
        return entered;
    API_REQUIRE(phStream != NULL);
    if ((flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown stream flags in 0x%x", flags);
    struct api_stream *stream = api_stream_new(context, flags, clamped_priority(priority));
    if (stream == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a stream");
    stream->green = api_green_current();
    if (stream->green != NULL)
        stream->green->refs++;
    *phStream = stream->handle;
    return api_leave();
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return create(__func__, phStream, Flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    return create(__func__, phStream, flags, priority);
}

/* Enters with a stream argument; what follows works in the stream's context. */
#define ENTER_STREAM(stream, argument)                                      \
    struct api_context *context_;                                           \
    struct api_stream *stream;                                              \
    do {                                                                    \
        CUresult entered_ = api_enter_for(__func__, (argument), &context_); \
        if (entered_ != CUDA_SUCCESS)                                       \
            return entered_;                                                \
        CUresult found_ = api_stream_get(context_, (argument), &(stream));  \
        if (found_ != CUDA_SUCCESS)                                         \
            return api_result(found_);                                      \
    } while (0)

CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    CUresult result;
    struct api_stream *stream =
        api_enter_object(__func__, EMU_HANDLE_STREAM, hStream, CUDA_ERROR_INVALID_HANDLE, &result);
    if (stream == NULL)
        return result;
    if (stream->legacy || stream->per_thread)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a stream that the program made");
    struct api_context *context = stream->context;
    if (context != NULL)
        api_pin(context);
    api_stream_destroy(stream);
    if (context != NULL && context->sticky != CUDA_SUCCESS) /* it is destroyed nevertheless */
        return api_fail_with(context->sticky, &context->fault);
    return api_leave();
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    return cuStreamDestroy_v2(hStream);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    ENTER_STREAM(stream, hStream);
    if (stream->capture != NULL) {
        api_capture_invalidate(stream->capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is capturing");
    }
    if (!stream->legacy) {
        const CUresult waited = api_stream_wait(stream);
        api_pools_settle();
        return api_result(waited);
    }
    /* The legacy stream is done when the blocking streams are. */
    const struct api_context *context = stream->context; /* pinned; the stream may go meanwhile */
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = api_submit(stream, &work, API_SYNC);
    if (result == CUDA_SUCCESS && context->sticky != CUDA_SUCCESS)
        result = context->sticky;
    if (result != CUDA_SUCCESS)
        return api_fail_with(result, &context->fault);
    api_pools_settle();
    return api_leave();
}

CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    ENTER_STREAM(stream, hStream);
    if (stream->capture != NULL) {
        api_capture_invalidate(stream->capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is capturing");
    }
    bool idle = api_stream_idle(stream);
    for (size_t i = 0; i < stream->n_waits; i++)
        idle = idle && stream->waits[i].stream->completed >= stream->waits[i].issued;
    if (stream->legacy)
        for (struct api_stream *other = stream->context->streams; other != NULL; other = other->next)
            idle = idle && ((other->flags & CU_STREAM_NON_BLOCKING) != 0 || api_stream_idle(other));
    if (!idle)
        return api_answer(CUDA_ERROR_NOT_READY);
    if (stream->legacy)
        for (struct api_stream *other = stream->context->streams; other != NULL; other = other->next)
            if ((other->flags & CU_STREAM_NON_BLOCKING) == 0)
                api_order_host_after(other, other->issued, NULL);
    api_order_host_after(stream, stream->issued, NULL);
    return api_leave();
}

CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(priority != NULL);
    *priority = stream->priority;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(flags != NULL);
    CUresult result = api_capture_refuse(stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    *flags = stream->flags;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(streamId != NULL);
    CUresult result = api_capture_refuse(stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    *streamId = stream->id;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(device != NULL);
    CUresult result = api_capture_refuse(stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    *device = 0;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(pctx != NULL);
    *pctx = stream->green != NULL ? (CUcontext)stream->green->handle : stream->context->handle;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(pCtx != NULL);
    *pCtx = stream->context->handle;
    if (pGreenCtx != NULL)
        *pGreenCtx = stream->green != NULL ? stream->green->handle : NULL;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(phCtx != NULL);
    *phCtx = stream->green != NULL ? stream->green->handle : NULL;
    return api_leave();
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    ENTER_STREAM(stream, hStream);
    struct api_event *event = emu_handle_get(EMU_HANDLE_EVENT, hEvent);
    if (event == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live event");
    if ((Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown wait flags in 0x%x", Flags);
    if ((Flags & CU_EVENT_WAIT_EXTERNAL) != 0 && stream->capture == NULL)
        return api_fail(CUDA_ERROR_ILLEGAL_STATE, "CU_EVENT_WAIT_EXTERNAL in a stream that does not capture");
    if ((Flags & CU_EVENT_WAIT_EXTERNAL) != 0 && stream->capture != NULL) { /* a wait node */
        event->refs++;
        struct api_work work = {.kind = API_WORK_WAIT, .event = {event, 0, 0}};
        return api_result(api_submit(stream, &work, API_ASYNC));
    }
    return api_result(api_stream_wait_event(stream, event));
}

static CUresult submit_callback(struct api_stream *stream, struct api_work *work)
{
    return api_submit(stream, work, API_ASYNC);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(fn != NULL);
    struct api_work work = {.kind = API_WORK_HOST, .host = {fn, userData}};
    return api_result(submit_callback(stream, &work));
}

CUresult CUDAAPI cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                     unsigned int flags)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(callback != NULL && flags == 0);
    if (stream->capture != NULL) {
        api_capture_invalidate(stream->capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                        "callbacks cannot be captured: use cuLaunchHostFunc");
    }
    struct api_work work = {.kind = API_WORK_CALLBACK, .callback = {callback, hStream, userData}};
    return api_result(submit_callback(stream, &work));
}

/* Managed memory is plain memory here: it is attached to everything already. */
CUresult CUDAAPI cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    ENTER_STREAM(stream, hStream);
    struct api_allocation *allocation = api_allocation_find(dptr);
    API_REQUIRE(allocation != NULL && allocation->kind == API_MEMORY_MANAGED);
    API_REQUIRE(length == 0 || length == allocation->bytes);
    API_REQUIRE(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                (flags == CU_MEM_ATTACH_SINGLE && !stream->legacy));
    API_REQUIRE(dptr == allocation->base);
    return api_result(api_capture_refuse(stream));
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
    ENTER_STREAM(to, dstStream);
    struct api_stream *from;
    CUresult result = api_stream_get(to->context, srcStream, &from);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    to->sync_policy = from->sync_policy;
    to->window = from->window;
    to->domain_map = from->domain_map;
    to->domain = from->domain;
    return api_leave();
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(value != NULL);
    switch (attr) { /* only the attribute's own bytes are written */
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = stream->window;
        break;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = stream->sync_policy;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap = stream->domain_map;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = stream->domain;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d is none of a stream", (int)attr);
    }
    return api_leave();
}

#define WINDOW_MAX_BYTES ((size_t)128 << 20) /* device attribute 109 */

static CUresult check_window(const CUaccessPolicyWindow *window)
{
    if (!(window->hitRatio >= 0 && window->hitRatio <= 1) || window->num_bytes > WINDOW_MAX_BYTES ||
        window->missProp == CU_ACCESS_PROPERTY_PERSISTING)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "a window of %zu bytes, hit ratio %g, miss property %d", window->num_bytes,
                             (double)window->hitRatio, (int)window->missProp);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
    ENTER_STREAM(stream, hStream);
    API_REQUIRE(param != NULL);
    const CUlaunchMemSyncDomainMap map = param->memSyncDomainMap;
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        API_REQUIRE(param->syncPolicy >= CU_SYNC_POLICY_AUTO &&
                    param->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
        stream->sync_policy = param->syncPolicy;
        break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        stream->priority = clamped_priority(param->priority);
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
        CUresult result = check_window(&param->accessPolicyWindow);
        if (result != CUDA_SUCCESS)
            return api_result(result);
        stream->window = param->accessPolicyWindow;
        break;
    }
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        API_REQUIRE(map.default_ < SYNC_DOMAINS && map.remote < SYNC_DOMAINS);
        stream->domain_map = map;
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        API_REQUIRE((unsigned)param->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
        stream->domain = param->memSyncDomain;
        break;
    default:
        return api_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d is none of a stream", (int)attr);
    }
    if (attr != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY && attr != CU_LAUNCH_ATTRIBUTE_PRIORITY)
        emu_log_once("stream attribute %d (cache window or memory synchronisation domain) has no effect: "
                     "caches are not "
                     "modelled",
                     (int)attr);
    return api_leave();
}
