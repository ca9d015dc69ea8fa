/* What streams and graphs execute: kernels, copies, sets, host functions. Everything is checked once more
   when it runs, since the program may have freed memory since it was submitted; a copy that fails then is an
   illegal address, as on hardware. */
#include "check/check.h"
#include "emu/api.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/process.h"
#include "emu/fault.h"

/* ---- kernels ---- */

/* What a failed launch leaves behind in the context. The machine says which fault it was in native_code;
   failures that no GPU has map to the nearest code. */
static CUresult launch_result(clab_status status, const struct clab_error *error)
{
    switch (status) {
    case CLAB_OK:
    case CLAB_INTERRUPTED: /* the context goes away */
        return CUDA_SUCCESS;
    case CLAB_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case CLAB_UNSUPPORTED:
        return CUDA_ERROR_NOT_SUPPORTED;
    case CLAB_DEADLOCK: /* a GPU hangs until somebody kills it; a watchdog's answer is the nearest */
    case CLAB_TIMEOUT:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case CLAB_FAULT:
        return error->native_code != 0 ? (CUresult)error->native_code : CUDA_ERROR_LAUNCH_FAILED;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static CUresult run_kernel(struct api_context *context, const struct api_launch *launch,
                           struct clab_error *error)
{
    struct clab_counters counters = {0};
    struct emu_launch request = {
        .kernel = launch->function->kernel,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
        .explicit_cluster = launch->explicit_cluster,
        .cooperative = launch->cooperative,
        .dynamic_shared_bytes = launch->dynamic_shared_bytes,
        .heap_limit_bytes = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE],
        .params = launch->params,
        .model = api_model_of(launch->green),
        .cancel = &context->cancel,
        .hooks = check_hooks(),
        .task = api_thread()->task,
        .stack_bytes = (uint32_t)__atomic_load_n(&context->limits[CU_LIMIT_STACK_SIZE], __ATOMIC_RELAXED),
    };
    clab_status status = emu_launch_run(api_device()->machine, &request, &counters, error);
    api_counters_set(&counters);
    fflush(stdout); /* what the kernel printed */
    return launch_result(status, error);
}

/* ---- copies and sets ---- */

static CUresult gone(struct clab_error *error, const char *what, uint64_t address)
{
    clab_error_set(error, CLAB_FAULT, "the %s of a queued operation is no longer live device memory", what);
    if (error != NULL) {
        error->has_address = true;
        error->address = address;
    }
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void *side(const struct api_copy_side *where, const struct api_copy *copy)
{
    uint64_t bytes = (copy->depth - 1) * where->slice_pitch + (copy->height - 1) * where->pitch + copy->width;
    return where->device ? api_memory(where->address, bytes) : (void *)(uintptr_t)where->address;
}

static CUresult run_copy(const struct api_copy *copy, struct clab_error *error)
{
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return CUDA_SUCCESS;
    unsigned char *to = side(&copy->to, copy);
    const unsigned char *from = side(&copy->from, copy);
    if (to == NULL || from == NULL)
        return gone(error, to == NULL ? "destination" : "source",
                    to == NULL ? copy->to.address : copy->from.address);
    for (uint64_t z = 0; z < copy->depth; z++)
        for (uint64_t y = 0; y < copy->height; y++)
            memmove(to + z * copy->to.slice_pitch + y * copy->to.pitch,
                    from + z * copy->from.slice_pitch + y * copy->from.pitch, copy->width);
    return CUDA_SUCCESS;
}

static void set_row(unsigned char *row, uint64_t count, unsigned element_bytes, uint32_t value)
{
    if (element_bytes == 1) {
        memset(row, (int)(value & 0xff), count);
        return;
    }
    /* The first element, then doubling: the row may not be aligned for a wider type than its elements. */
    uint64_t bytes = count * element_bytes, filled = element_bytes;
    memcpy(row, &value, element_bytes); /* little endian */
    while (filled < bytes) {
        uint64_t more = filled < bytes - filled ? filled : bytes - filled;
        memcpy(row + filled, row, more);
        filled += more;
    }
}

static CUresult run_set(const struct api_work *work, struct clab_error *error)
{
    uint64_t width = work->set.width, height = work->set.height, bytes = width * work->set.element_bytes;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    unsigned char *to = api_memory(work->set.address, (height - 1) * work->set.pitch + bytes);
    if (to == NULL)
        return gone(error, "destination", work->set.address);
    for (uint64_t y = 0; y < height; y++)
        set_row(to + y * work->set.pitch, width, work->set.element_bytes, work->set.value);
    return CUDA_SUCCESS;
}

/* ---- the rest ---- */

static void record_event(const struct api_work *work)
{
    uint64_t now = clab_now_ns();
    api_lock();
    struct api_event *event = work->event.event;
    if (work->event.generation == 0 || work->event.generation == event->generation) /* 0: a graph's */
        event->time_ns = now;
    if (event->shared != NULL) {
        if (work->event.generation == 0)
            event->shared_last = api_shared_event_record(event);
        api_shared_event_done(event, work->event.shared != 0 ? work->event.shared : event->shared_last);
    }
    api_unlock();
}

static CUresult free_memory(uint64_t address)
{
    api_lock();
    struct api_allocation *allocation = api_allocation_find(address);
    if (allocation != NULL && allocation->base == address && allocation->frees_to_pass > 0) {
        allocation->frees_to_pass--;
    } else if (allocation != NULL && allocation->base == address) {
        check_driver_free(api_thread()->task, allocation->base, allocation->bytes);
        api_allocation_free(allocation);
    }
    api_unlock();
    return CUDA_SUCCESS;
}

static CUresult alloc_memory(struct api_context *context, const struct api_work *work,
                             struct clab_error *error)
{
    api_lock();
    CUresult result = api_graph_memory_take(context, work->memory.address, work->memory.bytes);
    api_unlock();
    if (result != CUDA_SUCCESS)
        clab_error_set(error, CLAB_NO_MEMORY, "no memory for a graph's allocation node");
    return result;
}

static CUresult write_value(const struct api_work *work, struct clab_error *error)
{
    void *to = api_memory(work->value.address, work->value.bytes);
    if (to == NULL)
        return gone(error, "word", work->value.address);
    if (work->value.bytes == 4)
        __atomic_store_n((uint32_t *)to, (uint32_t)work->value.value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint64_t *)to, work->value.value, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

static bool value_reached(uint64_t found, const struct api_work *work)
{
    uint64_t wanted = work->value.value;
    bool wide = work->value.bytes == 8;
    switch (work->value.flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return wide ? (int64_t)(found - wanted) >= 0 : (int32_t)(uint32_t)(found - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return found == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (found & wanted) != 0;
    default: /* CU_STREAM_WAIT_VALUE_NOR */
        return wide ? ~(found | wanted) != 0 : (uint32_t) ~(found | wanted) != 0;
    }
}

static CUresult wait_value(struct api_context *context, const struct api_work *work, struct clab_error *error)
{
    void *from = api_memory(work->value.address, work->value.bytes);
    if (from == NULL)
        return gone(error, "word", work->value.address);
    for (unsigned round = 0; !context->cancel; round++) {
        uint64_t found = work->value.bytes == 4 ? __atomic_load_n((uint32_t *)from, __ATOMIC_SEQ_CST)
                                                : __atomic_load_n((uint64_t *)from, __ATOMIC_SEQ_CST);
        if (value_reached(found, work))
            break;
        if (round < 1000)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return CUDA_SUCCESS;
}

/* What a copy or set touched, for the hazard checker. Slices that do not follow each other are left out. */
static void tell_checker(const struct api_work *work)
{
    const struct check_task *task = api_thread()->task;
    struct check_range ranges[2];
    unsigned n = 0;
    if (task == NULL)
        return;
    if (work->kind == API_WORK_SET) {
        ranges[n++] = (struct check_range){work->set.address,
                                           work->set.pitch,
                                           work->set.width * work->set.element_bytes,
                                           work->set.height,
                                           true,
                                           false};
    } else {
        const struct api_copy *copy = &work->copy;
        for (int i = 0; i < 2; i++) {
            const struct api_copy_side *where = i == 0 ? &copy->to : &copy->from;
            if (!where->device) /* the program's own memory: its allocator reuses it unseen */
                continue;
            const bool in_row = copy->depth == 1 || where->slice_pitch == copy->height * where->pitch;
            ranges[n++] = (struct check_range){
                where->address, where->pitch, copy->width, in_row ? copy->height * copy->depth : copy->height,
                i == 0,         false};
        }
    }
    check_driver_access(task, ranges, n);
}

/* A host function may come to run inside a driver call, and may make some itself. */
struct callback {
    bool inside;
    struct api_context *pinned;
};

static struct callback begin_callback(struct api_thread *thread)
{
    const struct callback outer = {thread->in_callback, thread->pinned};
    thread->in_callback = true;
    thread->pinned = NULL;
    return outer;
}

static void end_callback(struct api_thread *thread, const struct callback *outer)
{
    thread->in_callback = outer->inside;
    thread->pinned = outer->pinned;
}

static CUresult run(struct api_context *context, struct api_work *work, struct clab_error *error)
{
    struct api_thread *thread = api_thread();
    struct callback outer;
    switch (work->kind) {
    case API_WORK_KERNEL:
        return run_kernel(context, &work->launch, error);
    case API_WORK_COPY:
        return run_copy(&work->copy, error);
    case API_WORK_SET:
        return run_set(work, error);
    case API_WORK_HOST:
        api_lock();
        api_order_host_after_task(thread->task);
        api_unlock();
        outer = begin_callback(thread);
        work->host.function(work->host.data);
        end_callback(thread, &outer);
        return CUDA_SUCCESS;
    case API_WORK_CALLBACK:
        api_lock();
        api_order_host_after_task(thread->task);
        api_unlock();
        outer = begin_callback(thread);
        work->callback.function(work->callback.stream, CUDA_SUCCESS, work->callback.data);
        end_callback(thread, &outer);
        return CUDA_SUCCESS;
    case API_WORK_RECORD:
        record_event(work);
        return CUDA_SUCCESS;
    case API_WORK_FREE:
        return free_memory(work->memory.address);
    case API_WORK_WRITE_VALUE:
        return write_value(work, error);
    case API_WORK_WAIT_VALUE:
        return wait_value(context, work, error);
    case API_WORK_GRAPH:
        return api_exec_run(context, work->exec, error);
    case API_WORK_ALLOC:
        return alloc_memory(context, work, error);
    case API_WORK_BATCH: {
        CUresult result = CUDA_SUCCESS;
        for (unsigned i = 0; i < work->batch.count && result == CUDA_SUCCESS; i++)
            result = run(context, &work->batch.items[i], error);
        return result;
    }
    case API_WORK_WAIT:
        if (work->event.event->shared != NULL)
            api_shared_event_wait(work->event.event, work->event.shared, &context->cancel);
        break;
    case API_WORK_EMPTY:
    case API_WORK_NEW:
        break;
    }
    return CUDA_SUCCESS;
}

CUresult api_work_run(struct api_context *context, struct api_work *work, struct clab_error *error)
{
    CUresult result = run(context, work, error);
    if ((work->kind == API_WORK_COPY || work->kind == API_WORK_SET) && result == CUDA_SUCCESS)
        tell_checker(work);
    else if ((work->kind == API_WORK_COPY || work->kind == API_WORK_SET) && error != NULL &&
             error->has_address)
        check_driver_gone(error->address);
    else if (work->kind == API_WORK_NEW && api_thread()->task != NULL)
        check_driver_access(api_thread()->task,
                            &(struct check_range){work->memory.address, work->memory.bytes,
                                                  work->memory.bytes, 1, true, true},
                            1);
    emu_machine_progress(api_device()->machine); /* a kernel may have waited for it */
    return result;
}

void api_work_fini(struct api_work *work)
{
    switch (work->kind) {
    case API_WORK_KERNEL:
        free(work->launch.params);
        if (work->launch.green != NULL)
            api_green_release(work->launch.green);
        api_module_release(work->launch.function->module);
        break;
    case API_WORK_COPY:
        if (work->copy.staged)
            free((void *)(uintptr_t)work->copy.from.address);
        free(work->copy.given);
        break;
    case API_WORK_RECORD: /* dropped with its context: other processes wait for it no longer */
        if (work->event.event->shared != NULL && work->event.shared != 0)
            api_shared_event_done(work->event.event, work->event.shared);
        api_event_release(work->event.event);
        break;
    case API_WORK_WAIT:
        api_event_release(work->event.event);
        break;
    case API_WORK_GRAPH:
        api_exec_release(work->exec);
        break;
    case API_WORK_BATCH:
        free(work->batch.items);
        free(work->batch.ops);
        break;
    default:
        break;
    }
    *work = (struct api_work){.kind = API_WORK_EMPTY};
}

CUresult api_work_copy(const struct api_work *work, struct api_work *out_work)
{
    *out_work = *work;
    switch (work->kind) {
    case API_WORK_KERNEL:
        out_work->launch.params = NULL;
        if (work->launch.param_bytes > 0) {
            out_work->launch.params = malloc(work->launch.param_bytes);
            if (out_work->launch.params == NULL) {
                *out_work = (struct api_work){.kind = API_WORK_EMPTY};
                return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for kernel parameters");
            }
            memcpy(out_work->launch.params, work->launch.params, work->launch.param_bytes);
        }
        work->launch.function->module->refs++;
        if (work->launch.green != NULL)
            work->launch.green->refs++;
        break;
    case API_WORK_COPY:
        out_work->copy.staged = false; /* only queued copies are staged, and those are not copied */
        if (work->copy.given != NULL) {
            out_work->copy.given = malloc(sizeof *work->copy.given);
            if (out_work->copy.given == NULL) {
                *out_work = (struct api_work){.kind = API_WORK_EMPTY};
                return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a copy's parameters");
            }
            *out_work->copy.given = *work->copy.given;
        }
        break;
    case API_WORK_RECORD:
    case API_WORK_WAIT:
        work->event.event->refs++;
        break;
    case API_WORK_GRAPH:
        api_exec_hold(work->exec);
        break;
    case API_WORK_BATCH: {
        const size_t bytes = work->batch.count * sizeof *work->batch.items;
        const size_t op_bytes = work->batch.count * sizeof *work->batch.ops;
        out_work->batch.items = malloc(bytes > 0 ? bytes : 1);
        out_work->batch.ops = malloc(op_bytes > 0 ? op_bytes : 1);
        if (out_work->batch.items == NULL || out_work->batch.ops == NULL) {
            free(out_work->batch.items);
            free(out_work->batch.ops);
            *out_work = (struct api_work){.kind = API_WORK_EMPTY};
            return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for memory operations");
        }
        memcpy(out_work->batch.items, work->batch.items, bytes);
        memcpy(out_work->batch.ops, work->batch.ops, op_bytes);
        break;
    }
    default:
        break;
    }
    return CUDA_SUCCESS;
}
