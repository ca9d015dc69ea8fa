/* "Context Management": events of a whole context. UNVERIFIED: the codes for contexts and events that do not
   belong together. */
#include "emu/api.h"

static CUresult enter(const char *call, CUcontext handle, CUevent hEvent, struct api_context **out_context,
                      struct api_event **out_event)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_context = handle != NULL ? api_context_get(handle) : NULL;
    *out_event = emu_handle_get(EMU_HANDLE_EVENT, hEvent);
    if (*out_context == NULL)
        return api_fail(handle == NULL ? CUDA_ERROR_INVALID_CONTEXT : api_context_error(handle),
                        "not a live context");
    if ((*out_context)->sticky != CUDA_SUCCESS)
        return api_fail_with((*out_context)->sticky, &(*out_context)->fault);
    api_pin(*out_context);
    if (*out_event == NULL || (*out_event)->context != *out_context)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live event of the context");
    return CUDA_SUCCESS;
}

/* Recorded when all that the context's streams have been given so far is done. */
CUresult CUDAAPI cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct api_context *context;
    struct api_event *event;
    CUresult result = enter(__func__, hCtx, hEvent, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (api_capture_blocks_wait(context))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream of the context is capturing");
    for (struct api_stream *stream = context->streams; stream != NULL && result == CUDA_SUCCESS;
         stream = stream->next)
        if (stream != context->legacy && !api_stream_idle(stream))
            result = api_stream_wait_task(context->legacy, stream, stream->issued, NULL);
    if (result == CUDA_SUCCESS)
        result = api_event_record(event, context->legacy, false);
    return api_result(result);
}

/* What the context's streams are given from now on waits for the event. */
CUresult CUDAAPI cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct api_context *context;
    struct api_event *event;
    CUresult result = enter(__func__, hCtx, hEvent, &context, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (api_capture_blocks_wait(context))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream of the context is capturing");
    for (struct api_stream *stream = context->streams; stream != NULL && result == CUDA_SUCCESS;
         stream = stream->next)
        result = api_stream_wait_event(stream, event);
    return api_result(result);
}
