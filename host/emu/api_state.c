/* What every driver call begins and ends with: the lock, the calling thread's state, the record of the last
   failure. A process that forks after cuInit keeps no emulated device in the child: its calls return
   NOT_INITIALIZED, as the real driver's do. */
#include "emu/api.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool forked;
static struct api_thread spare;

/* A thread that is cancelled is so between calls: one that went with the lock, or with a task half done,
   would stop everyone. */
static int cancellation; /* of the thread that has the lock, as it was before */

void api_lock(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_mutex_lock(&lock);
    cancellation = before;
}

void api_unlock(void)
{
    const int before = cancellation;
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(before, NULL);
}

void api_wait_for_change(void)
{
    const int before = cancellation;
    pthread_cond_wait(&change, &lock);
    cancellation = before;
}

void api_wait_for_wake(pthread_cond_t *wake)
{
    const int before = cancellation;
    pthread_cond_wait(wake, &lock);
    cancellation = before;
}

void api_signal_change(void)
{
    pthread_cond_broadcast(&change);
}

static void thread_end(void *argument)
{
    struct api_thread *thread = argument;
    api_lock();
    for (size_t i = 0; i < API_COUNT_OF(thread->own_stream); i++) {
        struct api_stream *stream = emu_handle_get(EMU_HANDLE_STREAM, thread->own_stream[i]);
        if (stream != NULL)
            api_stream_destroy(stream);
    }
    api_unlock();
    clab_error_clear(&thread->error);
    free(thread);
}

static void after_fork_in_child(void)
{
    forked = api_device() != NULL;
    pthread_cond_init(&change, NULL);
    api_unlock();
}

bool api_forked(void)
{
    return forked;
}

static void set_up(void)
{
    pthread_key_create(&thread_key, thread_end);
    pthread_atfork(api_lock, api_unlock, after_fork_in_child);
}

void api_thread_end(void)
{
    struct api_thread *thread = pthread_getspecific(thread_key);
    if (thread != NULL) {
        pthread_setspecific(thread_key, NULL);
        thread_end(thread);
    }
}

struct api_thread *api_thread(void)
{
    pthread_once(&once, set_up);
    struct api_thread *thread = pthread_getspecific(thread_key);
    if (thread == NULL) {
        thread = calloc(1, sizeof *thread);
        if (thread == NULL)
            return &spare;
        pthread_setspecific(thread_key, thread);
    }
    return thread;
}

/* A row of a list of calls; its name has no version. */
struct exception {
    const char *call;
    CUresult result;
};

static const struct exception *find(const struct exception *rows, size_t count, const char *call)
{
    const char *version = strstr(call, "_v");
    const size_t length = version != NULL ? (size_t)(version - call) : strlen(call);
    for (size_t i = 0; i < count; i++)
        if (strlen(rows[i].call) == length && strncmp(rows[i].call, call, length) == 0)
            return &rows[i];
    return NULL;
}

/* What a call answers before cuInit, where another call would answer `otherwise`. */
static CUresult before_init(const char *call, CUresult otherwise)
{
    static const struct exception rows[] = {
#define BEFORE_INIT(call, result) {#call, CUDA_ERROR_##result},
#include "emu/api_checks.def"
    };
    const struct exception *row = find(rows, API_COUNT_OF(rows), call);
    return row != NULL ? row->result : otherwise;
}

/* What becomes of a call in a host function: SUCCESS, it goes on. */
static CUresult in_callback(const char *call)
{
#define CUDA_ERROR_SUCCESS CUDA_SUCCESS
    static const struct exception rows[] = {
#define IN_CALLBACK(call, result) {#call, CUDA_ERROR_##result},
#include "emu/api_checks.def"
    };
#undef CUDA_ERROR_SUCCESS
    const struct exception *row = call != NULL ? find(rows, API_COUNT_OF(rows), call) : NULL;
    return row != NULL ? row->result : CUDA_ERROR_NOT_PERMITTED;
}

/* May the process and the thread make calls? With the lock; given back if not. */
static CUresult check_caller(struct api_thread *thread, bool early)
{
    thread->untold = 0;
    if (forked)
        return api_fail(CUDA_ERROR_NOT_INITIALIZED,
                        "the process was forked after cuInit: call it in the child only");
    if (api_device() == NULL && !early)
        return api_fail(before_init(thread->call, CUDA_ERROR_NOT_INITIALIZED), "cuInit was not called");
    if (thread->in_callback && in_callback(thread->call) != CUDA_SUCCESS)
        return api_fail(in_callback(thread->call), "a host function of a stream may make no driver calls");
    return api_capture_permits(thread->call)
               ? CUDA_SUCCESS
               : api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          "a stream is capturing: this call is not allowed meanwhile");
}

CUresult api_enter(const char *call)
{
    struct api_thread *thread = api_thread();
    api_lock();
    thread->call = call;
    return check_caller(thread, false);
}

CUresult api_enter_early(const char *call)
{
    struct api_thread *thread = api_thread();
    api_lock();
    thread->call = call;
    return check_caller(thread, true);
}

void *api_enter_object(const char *call, enum emu_handle_kind kind, const void *handle, CUresult missing,
                       CUresult *out_result)
{
    struct api_thread *thread = api_thread();
    api_lock();
    thread->call = call;
    void *object = emu_handle_get(kind, handle);
    if (object == NULL && kind == EMU_HANDLE_STREAM && emu_handle_was(kind, handle))
        missing = CUDA_ERROR_CONTEXT_IS_DESTROYED; /* so the H200 names a destroyed stream */
    if (object == NULL && emu_handle_died_with_context(kind, handle))
        missing = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (api_device() == NULL)
        missing = before_init(call, missing);
    *out_result =
        object == NULL ? api_fail(missing, "not a live handle of its kind") : check_caller(thread, false);
    return *out_result == CUDA_SUCCESS ? object : NULL;
}

void api_unpin(void)
{
    struct api_thread *thread = api_thread();
    struct api_context *context = thread->pinned;
    thread->pinned = NULL;
    if (context != NULL && --context->pins == 0 && context->ending)
        api_signal_change();
}

void api_pin(struct api_context *context)
{
    api_unpin();
    context->pins++;
    api_thread()->pinned = context;
}

CUresult api_use_context(struct api_context *context)
{
    if (context == NULL || !context->active)
        return api_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context of it was destroyed");
    if (context->sticky != CUDA_SUCCESS)
        return api_fail_with(context->sticky, &context->fault);
    api_pin(context);
    return CUDA_SUCCESS;
}

CUresult api_enter_for(const char *call, CUstream handle, struct api_context **out_context)
{
    struct api_stream *stream = NULL;
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return api_enter_context(call, out_context);
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    stream = emu_handle_get(EMU_HANDLE_STREAM, handle);
    if (stream == NULL && emu_handle_was(EMU_HANDLE_STREAM, handle) && api_thread()->depth == 0)
        return api_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the stream is gone, and no context is current");
    if (stream == NULL) { /* that is found out later, in whatever context there is */
        api_unlock();
        return api_enter_context(call, out_context);
    }
    *out_context = stream->context;
    return api_use_context(stream->context);
}

CUresult api_enter_context(const char *call, struct api_context **out_context)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_context_current(out_context);
    if (result != CUDA_SUCCESS)
        return api_fail(result, "%s",
                        result == CUDA_ERROR_INVALID_CONTEXT ? "no context is current to this thread"
                                                             : "the current context was destroyed");
    return api_use_context(*out_context);
}

CUresult api_answer(CUresult answer)
{
    api_unpin();
    api_thread()->untold = 0;
    api_unlock();
    return answer;
}

CUresult api_leave(void)
{
    return api_answer(CUDA_SUCCESS);
}

/* Marks the thread's record as the detail of `result`. */
static void finish_error(struct api_thread *thread, CUresult result)
{
    const char *name = api_error_name(result);
    api_log_add(thread->error.message);
    thread->has_error = true;
    if (thread->error.status == CLAB_OK)
        thread->error.status = CLAB_DRIVER;
    clab_error_native(&thread->error, thread->call != NULL ? thread->call : "", (int)result,
                      name != NULL ? name : "");
    if (emu_log_calls())
        emu_log_call(thread->call != NULL ? thread->call : "?", (int)result, name != NULL ? name : "?",
                     thread->error.message);
}

/* What a refusal means to the host's tables. */
static clab_status status_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CLAB_NO_MEMORY;
    case CUDA_ERROR_NOT_SUPPORTED:
        return CLAB_UNSUPPORTED;
    case CUDA_ERROR_NOT_FOUND:
        return CLAB_NOT_FOUND;
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        return CLAB_LAUNCH;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_PTX:
        return CLAB_LOAD;
    default:
        return CLAB_DRIVER;
    }
}

static void record(CUresult result, const char *format, va_list args)
{
    struct api_thread *thread = api_thread();
    bool launch = thread->call != NULL && strncmp(thread->call, "cuLaunch", 8) == 0;
    clab_status status = status_of(result);
    if (format[0] != '\0')
        clab_error_vset(&thread->error, status == CLAB_DRIVER && launch ? CLAB_LAUNCH : status, format, args);
    else
        clab_error_set(&thread->error, status, "%s",
                       api_error_string(result) != NULL ? api_error_string(result) : "");
    finish_error(thread, result);
}

CUresult api_set_error(CUresult result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(result, format, args);
    va_end(args);
    return result;
}

/* Ends a call that failed, and says so in the log. */
static CUresult end(CUresult result)
{
    char text[128];
    const char *call = api_thread()->call, *name = api_error_name(result);
    snprintf(text, sizeof text, "Returning %d (%s) from %s", (int)result, name != NULL ? name : "",
             call != NULL ? call : "");
    api_log_add(text);
    api_unpin();
    api_log_tell_and_unlock();
    return result;
}

CUresult api_fail(CUresult result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(result, format, args);
    va_end(args);
    return end(result);
}

CUresult api_copy_error(CUresult result, const struct clab_error *error)
{
    struct api_thread *thread = api_thread();
    clab_error_copy(&thread->error, error);
    finish_error(thread, result);
    return result;
}

CUresult api_fail_with(CUresult result, const struct clab_error *error)
{
    api_copy_error(result, error);
    return end(result);
}

CUresult api_result(CUresult result)
{
    if (result != CUDA_SUCCESS && emu_log_calls())
        emu_log_call(api_thread()->call, (int)result, "", "");
    if (result != CUDA_SUCCESS)
        return end(result);
    return api_answer(result);
}
