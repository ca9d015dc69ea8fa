/* Streams as queues. Every submitted piece of work is a task; tasks of a stream run in order, each when the
   tasks that it depends on are done: the stream's own earlier ones; for the legacy default stream everything
   submitted earlier to the context's blocking streams, and for those everything submitted earlier to the
   legacy stream (CUDA Programming Guide 13.0, "Default Stream"); those before an event that the stream was
   told to wait for. Dependencies only point to tasks submitted earlier, so there are no cycles.

   A task runs on its stream's own host thread, made on first need, or on the submitting thread when that
   waits for it anyway or when it is short and could start at once. Streams have no priority order: a legal
   schedule. */
#include "emu/api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Copies and sets of up to this many bytes run on the submitting thread when nothing is before them. */
#define SHORT_BYTES ((uint64_t)1 << 20)

struct api_task {
    struct api_task *next;
    uint64_t number; /* the stream's `issued` after it was appended */
    struct api_work work;
    CUresult result;
    bool here; /* the submitting thread runs it and frees it */
    bool done;
    size_t n_dependencies;
    struct api_dependency *dependencies;
    struct check_task *order;
};

void api_stream_release(struct api_stream *stream)
{
    if (--stream->refs > 0)
        return;
    for (size_t i = 0; i < stream->n_waits; i++)
        api_stream_release(stream->waits[i].stream);
    free(stream->waits);
    free(stream->capture_nodes);
    free(stream->lent_nodes);
    free(stream->lent_data);
    api_order_fini(&stream->order);
    if (stream->green != NULL)
        api_green_release(stream->green);
    pthread_cond_destroy(&stream->wake);
    free(stream);
}

bool api_stream_idle(const struct api_stream *stream)
{
    return stream->issued == stream->completed;
}

void api_stream_retire(struct api_stream *stream)
{
    if (!stream->destroyed || stream->head != NULL || stream->context == NULL)
        return;
    for (struct api_stream **link = &stream->context->streams; *link != NULL; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    stream->context = NULL;
    api_stream_release(stream);
}

static void dependencies_free(struct api_dependency *dependencies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        api_stream_release(dependencies[i].stream);
    free(dependencies);
}

static bool dependency_add(struct api_dependency **list, size_t *count, struct api_stream *stream,
                           uint64_t issued)
{
    if (stream->completed >= issued)
        return true;
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i].stream == stream) {
            if ((*list)[i].issued < issued)
                (*list)[i].issued = issued;
            return true;
        }
    struct api_dependency *grown = realloc(*list, (*count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    *list = grown;
    stream->refs++;
    grown[(*count)++] = (struct api_dependency){stream, issued};
    return true;
}

CUresult api_stream_wait_task(struct api_stream *stream, struct api_stream *on, uint64_t issued,
                              const struct api_order *then)
{
    api_order_after(stream, on, issued, then);
    if (stream == on || dependency_add(&stream->waits, &stream->n_waits, on, issued))
        return CUDA_SUCCESS;
    return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a dependency");
}

/* The implicit order between the legacy default stream and the blocking ones. */
static bool add_legacy_order(struct api_stream *stream)
{
    struct api_context *context = stream->context;
    if (stream->legacy) {
        for (struct api_stream *other = context->streams; other != NULL; other = other->next)
            if (other != stream && (other->flags & CU_STREAM_NON_BLOCKING) == 0) {
                api_order_after(stream, other, other->issued, NULL);
                if (!dependency_add(&stream->waits, &stream->n_waits, other, other->issued))
                    return false;
            }
        return true;
    }
    if ((stream->flags & CU_STREAM_NON_BLOCKING) != 0)
        return true;
    api_order_after(stream, context->legacy, context->legacy->issued, NULL);
    return dependency_add(&stream->waits, &stream->n_waits, context->legacy, context->legacy->issued);
}

static bool ready(const struct api_task *task)
{
    for (size_t i = 0; i < task->n_dependencies; i++)
        if (task->dependencies[i].stream->completed < task->dependencies[i].issued)
            return false;
    return true;
}

/* A kernel's fault, and no refusal of the stand-in's own. */
static bool poisons(CUresult result)
{
    return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_TENSOR_MEMORY_LEAK;
}

/* Every context of the process shares the fate of the one that a kernel failed in, as on an H200. */
static void poison_all(const struct api_context *failed)
{
    size_t cursor = 0;
    if (api_device()->poison == CUDA_SUCCESS)
        api_device()->poison = failed->sticky;
    for (struct api_context *other; (other = emu_handle_next(EMU_HANDLE_CONTEXT, &cursor)) != NULL;)
        if (other->active && other->sticky == CUDA_SUCCESS) {
            other->sticky = failed->sticky;
            clab_error_copy(&other->fault, &failed->fault);
        }
}

/* Runs the head of the queue, which is ready. The lock is given up meanwhile. */
static void run_head(struct api_stream *stream)
{
    struct api_task *task = stream->head;
    struct api_context *context = stream->context;
    struct clab_error error = {0};
    task->result = context->sticky;
    stream->running = true;
    if (task->result == CUDA_SUCCESS && !context->cancel) {
        struct api_thread *thread = api_thread();
        const struct check_task *outer = thread->task;
        thread->task = task->order;
        int cancellation;
        api_unlock();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
        task->result = api_work_run(context, &task->work, &error);
        pthread_setcancelstate(cancellation, NULL);
        api_lock();
        thread->task = outer;
        /* A synchronous task's refusal is its caller's; what an asynchronous one leaves behind is the
         * context's. */
        bool lasting = task->work.kind == API_WORK_KERNEL || task->work.kind == API_WORK_GRAPH || !task->here;
        if (task->result != CUDA_SUCCESS && lasting && !context->cancel && context->sticky == CUDA_SUCCESS) {
            context->sticky = task->result;
            clab_error_copy(&context->fault, &error);
            if (poisons(task->result))
                poison_all(context);
            emu_log_fault(&context->fault);
        }
    }
    if (task->here && task->result != CUDA_SUCCESS) /* for the caller, whose thread this is */
        api_copy_error(task->result, error.status != CLAB_OK ? &error : &context->fault);
    clab_error_clear(&error);
    stream->running = false;
    stream->completed = task->number;
    stream->head = task->next;
    if (stream->head == NULL)
        stream->tail = NULL;
    api_work_fini(&task->work);
    dependencies_free(task->dependencies, task->n_dependencies);
    task->dependencies = NULL;
    task->n_dependencies = 0;
    task->done = true;
    free(task->order);
    if (!task->here)
        free(task);
    api_signal_change();
    api_stream_retire(stream);
}

static void *worker(void *argument)
{
    struct api_stream *stream = argument;
    api_lock();
    while (!(stream->destroyed && stream->head == NULL)) {
        struct api_task *task = stream->head;
        if (task != NULL && !task->here && !stream->running && ready(task))
            run_head(stream);
        else if (task == NULL) /* not woken by everything that happens elsewhere: there may be many workers */
            api_wait_for_wake(&stream->wake);
        else
            api_wait_for_change();
    }
    struct api_context *context = stream->worker_of;
    api_stream_release(stream);
    api_unlock();
    api_thread_end();
    api_lock();
    context->workers--; /* from here on the context may be gone */
    api_signal_change();
    api_unlock();
    return NULL;
}

static bool need_worker(struct api_stream *stream)
{
    if (stream->has_worker)
        return true;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    stream->refs++;
    stream->worker_of = stream->context;
    stream->has_worker = pthread_create(&thread, &attributes, worker, stream) == 0;
    pthread_attr_destroy(&attributes);
    if (!stream->has_worker)
        stream->refs--;
    else
        stream->context->workers++;
    return stream->has_worker;
}

static bool is_short(const struct api_work *work)
{
    switch (work->kind) {
    case API_WORK_EMPTY:
    case API_WORK_NEW:
    case API_WORK_RECORD:
    case API_WORK_FREE:
    case API_WORK_WRITE_VALUE:
        return true;
    case API_WORK_COPY:
        return work->copy.width <= SHORT_BYTES && work->copy.height <= 1024 && work->copy.depth <= 1024 &&
               work->copy.width * work->copy.height * work->copy.depth <= SHORT_BYTES;
    case API_WORK_SET:
        return work->set.width <= SHORT_BYTES && work->set.height <= 1024 &&
               work->set.width * work->set.height * work->set.element_bytes <= SHORT_BYTES;
    default:
        return false;
    }
}

CUresult api_submit(struct api_stream *stream, struct api_work *work, enum api_mode mode)
{
    if (stream->capture != NULL) {
        if (mode == API_ASYNC)
            return api_capture_add(stream, work);
        api_work_fini(work);
        api_capture_invalidate(stream->capture);
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                             "the stream is capturing: nothing can be waited for");
    }
    if (stream->destroyed ||
        stream->context == NULL) { /* by another thread, while this call did something else */
        api_work_fini(work);
        return api_set_error(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the stream was destroyed meanwhile");
    }
    struct api_task *task = calloc(1, sizeof *task);
    if (task == NULL || !add_legacy_order(stream)) {
        free(task);
        api_work_fini(work);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a task");
    }
    task->work = *work;
    task->dependencies = stream->waits;
    task->n_dependencies = stream->n_waits;
    stream->waits = NULL;
    stream->n_waits = 0;
    task->number = ++stream->issued;
    task->order = api_order_task(stream, task->number, work);
    bool at_once = stream->head == NULL && ready(task);
    task->here = mode == API_SYNC || (at_once && is_short(work));
    if (stream->tail != NULL)
        stream->tail->next = task;
    else
        stream->head = task;
    stream->tail = task;

    if (!task->here) {
        if (need_worker(stream)) {
            pthread_cond_signal(&stream->wake);
            return CUDA_SUCCESS;
        }
        task->here = true; /* no thread to be had: then it runs here */
    }
    stream->refs++;
    while (stream->head != task || stream->running || !ready(task))
        api_wait_for_change();
    run_head(stream);
    if (mode == API_SYNC)
        api_order_host_after(stream, task->number, NULL);
    CUresult result = task->result;
    free(task);
    api_stream_release(stream);
    return result;
}

CUresult api_stream_wait(struct api_stream *stream)
{
    struct api_context *context = stream->context;
    uint64_t until = stream->issued;
    /* cuStreamWaitEvent followed by a wait, with no task between them. */
    stream->refs++;
    for (;;) {
        bool pending = stream->completed < until;
        for (size_t i = 0; i < stream->n_waits && !pending; i++)
            pending = stream->waits[i].stream->completed < stream->waits[i].issued;
        if (!pending)
            break;
        api_wait_for_change();
    }
    api_order_host_after(stream, until, NULL);
    CUresult result = CUDA_SUCCESS;
    if (stream->context == context && context->sticky != CUDA_SUCCESS)
        result = api_copy_error(context->sticky, &context->fault);
    api_stream_release(stream);
    return result;
}

CUresult api_context_wait(struct api_context *context)
{
    const unsigned long long id = context->id;
    CUresult result = CUDA_SUCCESS;
    context->pins++;
    for (;;) {
        bool idle = true;
        for (struct api_stream *stream = context->streams; stream != NULL; stream = stream->next)
            idle = idle && api_stream_idle(stream);
        if (idle)
            break;
        api_wait_for_change();
        if (!context->active || context->id != id) {
            result = api_set_error(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed meanwhile");
            break;
        }
    }
    if (result == CUDA_SUCCESS) {
        api_order_host_after_all();
        if (context->sticky != CUDA_SUCCESS)
            result = api_copy_error(context->sticky, &context->fault);
    }
    if (--context->pins == 0 && context->ending)
        api_signal_change();
    return result;
}
