/* "Event Management". A recorded event is a place in its stream's queue; times are the host's monotonic clock
   when the queue got there: real elapsed host time of an emulation, which the private channel marks as
   meaningless for the device. Events of several processes: api_share_event.c. */
#include "emu/api.h"

#include <stdlib.h>

#include "base/process.h"

void api_event_release(struct api_event *event)
{
    if (--event->refs > 0)
        return;
    if (event->stream != NULL)
        api_stream_release(event->stream);
    if (event->shared != NULL)
        api_shared_event_free(event);
    api_order_fini(&event->order);
    free(event->nodes);
    free(event);
}

/* Was it last recorded by another process? */
static bool is_foreign(const struct api_event *event)
{
    return event->shared != NULL && api_shared_event_last(event) != event->shared_last;
}

static bool complete(const struct api_event *event)
{
    if (is_foreign(event))
        return api_shared_event_reached(event, api_shared_event_last(event));
    return event->stream == NULL || event->stream->completed >= event->issued;
}

void api_event_place(struct api_event *event, struct api_stream *stream)
{
    event->recorded = true;
    event->was_captured = false;
    stream->refs++;
    if (event->stream != NULL)
        api_stream_release(event->stream);
    event->stream = stream;
    event->issued = stream->issued + 1;
}

void api_event_unplace(struct api_event *event, const struct api_stream *stream, uint64_t shared)
{
    if (event->stream == stream && event->issued > stream->issued)
        event->issued = stream->issued;
    if (shared != 0)
        api_shared_event_done(event, shared);
}

CUresult api_event_record(struct api_event *event, struct api_stream *stream, bool external)
{
    if (event->context != stream->context)
        return api_set_error(CUDA_ERROR_INVALID_HANDLE, "event and stream are of different contexts");
    if (stream->capture != NULL && event->shared != NULL)
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                             "an event of several processes cannot be captured");
    if (stream->capture != NULL && !external)
        return api_capture_record(stream, event);
    event->capture = NULL;
    event->refs++;
    struct api_work work = {.kind = API_WORK_RECORD,
                            .event = {event, stream->capture != NULL ? 0 : event->generation + 1, 0}};
    if (stream->capture != NULL)
        return api_submit(stream, &work, API_ASYNC);
    event->generation++;
    api_event_place(event, stream);
    const uint64_t shared = event->shared != NULL ? (event->shared_last = api_shared_event_record(event)) : 0;
    work.event.shared = shared;
    const uint64_t number = event->issued;
    const CUresult result = api_submit(stream, &work, API_ASYNC);
    api_order_keep(&event->order, stream);
    if (stream->issued < number) /* there was no memory for it: nobody is to wait for it */
        api_event_unplace(event, stream, shared);
    return result;
}

CUresult api_stream_wait_event(struct api_stream *stream, struct api_event *event)
{
    if (event->was_captured)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "the event was last recorded in a capture that has ended");
    if (event->capture != NULL)
        return api_capture_join(stream, event);
    if (stream->capture != NULL) {
        api_capture_invalidate(stream->capture);
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                             "a captured stream may not wait for an event that was "
                             "recorded outside its capture");
    }
    if (is_foreign(event)) {
        const uint64_t last = api_shared_event_last(event);
        if (api_shared_event_reached(event, last))
            return CUDA_SUCCESS;
        event->refs++;
        struct api_work work = {.kind = API_WORK_WAIT, .event = {event, 0, last}};
        return api_submit(stream, &work, API_ASYNC);
    }
    return event->stream == NULL ? CUDA_SUCCESS
                                 : api_stream_wait_task(stream, event->stream, event->issued, &event->order);
}

struct api_event *api_event_new(struct api_context *context, unsigned flags)
{
    struct api_event *event = calloc(1, sizeof *event);
    if (event != NULL)
        event->handle = emu_handle_new(EMU_HANDLE_EVENT, event);
    if (event == NULL || event->handle == NULL) {
        free(event);
        return NULL;
    }
    event->context = context;
    event->flags = flags;
    event->refs = 1;
    return event;
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(phEvent != NULL);
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if ((Flags & ~known) != 0 ||
        ((Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "event flags 0x%x", Flags);
    struct api_event *event = api_event_new(context, Flags);
    if (event != NULL && (Flags & CU_EVENT_INTERPROCESS) != 0 && !api_shared_event_new(event)) {
        emu_handle_free(event->handle);
        api_event_release(event);
        event = NULL;
    }
    if (event == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an event");
    *phEvent = event->handle;
    return api_leave();
}

/* Enters with an event argument. Works without a current context, in the event's own. */
#define ENTER_EVENT(event, argument)                                                                    \
    CUresult entered_;                                                                                  \
    struct api_event *event =                                                                           \
        api_enter_object(__func__, EMU_HANDLE_EVENT, (argument), CUDA_ERROR_INVALID_HANDLE, &entered_); \
    do {                                                                                                \
        if ((event) == NULL)                                                                            \
            return entered_;                                                                            \
        if ((event)->was_captured)                                                                      \
            return api_fail(CUDA_ERROR_INVALID_VALUE,                                                   \
                            "the event was last recorded in a capture that has ended");                 \
        if ((event)->context->sticky != CUDA_SUCCESS)                                                   \
            return api_fail_with((event)->context->sticky, &(event)->context->fault);                   \
    } while (0)

static CUresult record(const char *call, CUevent hEvent, CUstream hStream, unsigned flags)
{
    struct api_context *context;
    CUresult entered = api_enter_for(call, hStream, &context);
    if (entered != CUDA_SUCCESS)
        return entered;
    struct api_event *event = emu_handle_get(EMU_HANDLE_EVENT, hEvent);
    if (event == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "not a live event");
    API_REQUIRE((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) == 0);
    struct api_stream *stream;
    CUresult result = api_stream_get(context, hStream, &stream);
    if (result == CUDA_SUCCESS && (flags & CU_EVENT_RECORD_EXTERNAL) != 0 && stream->capture == NULL)
        result = api_set_error(CUDA_ERROR_ILLEGAL_STATE,
                               "CU_EVENT_RECORD_EXTERNAL in a stream that does not capture");
    if (result == CUDA_SUCCESS)
        result = api_event_record(event, stream, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
    return api_result(result);
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return record(__func__, hEvent, hStream, 0);
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return record(__func__, hEvent, hStream, flags);
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    ENTER_EVENT(event, hEvent);
    if (event->capture != NULL) {
        api_capture_invalidate(event->capture);
        return api_fail(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture");
    }
    if (!api_capture_permits(NULL))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream is capturing");
    if (!complete(event))
        return api_answer(CUDA_ERROR_NOT_READY);
    if (event->stream != NULL && !is_foreign(event))
        api_order_host_after(event->stream, event->issued, &event->order);
    return api_leave();
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    ENTER_EVENT(event, hEvent);
    if (event->capture != NULL) {
        if (api_capture_invalid(event->capture)) /* INVALID_VALUE, on the H200 */
            return api_fail(CUDA_ERROR_INVALID_VALUE, "the event's capture was invalidated");
        api_capture_invalidate(event->capture);
        return api_fail(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture");
    }
    if (!api_capture_permits(NULL))
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream is capturing");
    struct api_stream *stream = event->stream;
    uint64_t issued = event->issued;
    if (is_foreign(event)) {
        const uint64_t last = api_shared_event_last(event);
        event->refs++;
        api_unlock();
        api_shared_event_wait(event, last, NULL);
        api_lock();
        api_event_release(event);
        return api_leave();
    }
    if (stream == NULL)
        return api_leave();
    stream->refs++;
    event->refs++;
    struct api_context *context = event->context;
    api_pin(context);
    while (stream->completed < issued)
        api_wait_for_change();
    const bool same = event->stream == stream && event->issued == issued;
    api_order_host_after(stream, issued, same ? &event->order : NULL);
    api_event_release(event);
    api_stream_release(stream);
    api_pools_settle();
    if (context->sticky != CUDA_SUCCESS)
        return api_fail_with(context->sticky, &context->fault);
    return api_leave();
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
    CUresult result;
    struct api_event *event =
        api_enter_object(__func__, EMU_HANDLE_EVENT, hEvent, CUDA_ERROR_INVALID_HANDLE, &result);
    if (event == NULL)
        return result;
    const struct api_context *context = event->context;
    emu_handle_free(hEvent);
    event->handle = NULL;
    api_event_release(event);
    if (context != NULL && context->sticky != CUDA_SUCCESS) /* it is destroyed nevertheless */
        return api_fail_with(context->sticky, &context->fault);
    return api_leave();
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    return cuEventDestroy_v2(hEvent);
}

static CUresult elapsed(const char *call, float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    CUresult entered;
    if (api_enter_object(call, EMU_HANDLE_EVENT, hStart, CUDA_ERROR_INVALID_HANDLE, &entered) == NULL)
        return entered;
    if (pMilliseconds == NULL) /* INVALID_HANDLE, on the H200 */
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "no place for the result");
    struct api_event *start = emu_handle_get(EMU_HANDLE_EVENT, hStart),
                     *end = emu_handle_get(EMU_HANDLE_EVENT, hEnd);
    if (start == NULL || end == NULL)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "the %s event is not live",
                        start == NULL ? "start" : "end");
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "the %s event was created with CU_EVENT_DISABLE_TIMING",
                        (start->flags & CU_EVENT_DISABLE_TIMING) != 0 ? "start" : "end");
    if (start->capture != NULL || end->capture != NULL)
        return api_fail(CUDA_ERROR_CAPTURED_EVENT, "an event was last recorded in a capture");
    if (!start->recorded || !end->recorded)
        return api_fail(CUDA_ERROR_INVALID_HANDLE, "the %s event was never recorded",
                        start->recorded ? "end" : "start");
    if (start->context->sticky != CUDA_SUCCESS)
        return api_fail_with(start->context->sticky, &start->context->fault);
    if (!complete(start) || !complete(end))
        return api_answer(CUDA_ERROR_NOT_READY);
    *pMilliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    return api_leave();
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed(__func__, pMilliseconds, hStart, hEnd);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return elapsed(__func__, pMilliseconds, hStart, hEnd);
}
