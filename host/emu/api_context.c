/* "Context Management": contexts that the program creates, the stack of current contexts that each thread
   has, limits and flags. Primary contexts are in api_primary.c. A context owns its streams, events, modules
   and memory; all go with it. Green contexts: api_green.c. Leaves out: execution affinity, CIG parameters
   (refused by name). */
#include "emu/api_context.h"

#include "emu/api_array.h"

#include <stdlib.h>

unsigned long long api_context_next_id(void)
{
    static unsigned long long next = 1;
    return next++;
}

struct api_context *api_context_new(unsigned flags, bool primary)
{
    struct api_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->primary = primary;
    context->flags = flags;
    context->handle = emu_handle_new(EMU_HANDLE_CONTEXT, context);
    if (context->handle == NULL || !api_context_activate(context)) {
        emu_handle_free(context->handle);
        free(context);
        return NULL;
    }
    return context;
}

bool api_context_activate(struct api_context *context)
{
    context->id = api_context_next_id();
    context->cancel = false;
    context->sticky = CUDA_SUCCESS;
    clab_error_clear(&context->fault);
    context->cache = CU_FUNC_CACHE_PREFER_NONE;
    /* What an H200 answers for a fresh context. */
    const struct emu_model *model = api_device()->model;
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)model->sms << 16;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = (size_t)8 << 20;
    context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = model->l2_bytes / 16 * 3;
    context->limits[CU_LIMIT_SHMEM_SIZE] = model->shared_per_block_optin_bytes;
    context->limits[CU_LIMIT_CIG_ENABLED] = 0;
    context->legacy = api_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (context->legacy == NULL)
        return false;
    context->legacy->legacy = true;
    context->active = true;
    return true;
}

void api_contexts_end(struct api_context *context)
{
    context->active = false;
    context->cancel = true;
    context->ending = true;
    api_greens_end(context);
    for (struct api_stream *stream = context->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        api_order_host_after(stream, stream->issued, NULL); /* once this returns */
        api_stream_destroy(stream);
    }
    api_signal_change();
    /* queued work is dropped, what runs is cancelled */
    while (context->streams != NULL || context->workers > 0 || context->pins > 0)
        api_wait_for_change();
    context->legacy = NULL;
    size_t cursor = 0;
    for (struct api_event *event; (event = emu_handle_next(EMU_HANDLE_EVENT, &cursor)) != NULL;)
        if (event->context == context) {
            event->context = NULL;
            emu_handle_free_with_context(EMU_HANDLE_EVENT, event->handle);
            event->handle = NULL;
            api_event_release(event);
        }
    while (context->modules != NULL)
        api_module_drop(context->modules);
    api_references_free(context->handle);
    api_textures_free(context->handle);
    api_arrays_free(context->handle);
    api_allocations_free(context->handle);
    clab_error_clear(&context->fault);
    context->sticky = CUDA_SUCCESS;
    bool last = true;
    cursor = 0;
    for (struct api_context *other; (other = emu_handle_next(EMU_HANDLE_CONTEXT, &cursor)) != NULL;)
        last = last && !other->active;
    if (last)
        emu_memory_heap_clear(api_device()->machine);
    context->ending = false;
    api_signal_change();
}

/* Of a context's own handle or of a green one's view of it. */
static struct api_context *context_of(CUcontext handle)
{
    const struct api_green *green = api_green_of(handle);
    return green != NULL ? green->primary : emu_handle_get(EMU_HANDLE_CONTEXT, handle);
}

static bool was_context(CUcontext handle)
{
    return emu_handle_was(EMU_HANDLE_CONTEXT, handle) != 0 || emu_handle_was(EMU_HANDLE_GREEN, handle) != 0;
}

CUresult api_context_current(struct api_context **out_context)
{
    struct api_thread *thread = api_thread();
    *out_context = NULL;
    if (thread->depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct api_context *context = context_of(thread->stack[thread->depth - 1]);
    if (context == NULL || !context->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out_context = context;
    return CUDA_SUCCESS;
}

struct api_context *api_context_get(CUcontext handle)
{
    struct api_context *context = NULL;
    if (handle == NULL)
        return api_context_current(&context) == CUDA_SUCCESS ? context : NULL;
    context = context_of(handle);
    return context != NULL && context->active ? context : NULL;
}

bool api_context_flags_valid(unsigned flags)
{
    unsigned known = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                     CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return (flags & ~known) == 0 &&
           (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
            schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

static CUresult create(const char *call, CUcontext *pctx, CUresult refused, unsigned flags, CUdevice dev)
{
    CUresult entered = api_enter(call);
    if (entered != CUDA_SUCCESS)
        return entered;
    API_REQUIRE(pctx != NULL);
    if (dev != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
    if (!api_context_flags_valid(flags))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags in 0x%x", flags);
    if (refused != CUDA_SUCCESS)
        return api_fail(refused, "execution affinity needs MPS, CIG a graphics driver");
    if (api_device()->poison != CUDA_SUCCESS)
        return api_fail(api_device()->poison, API_POISONED);
    struct api_thread *thread = api_thread();
    if (thread->depth == API_STACK_MAX)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "%d contexts are already pushed", API_STACK_MAX);
    if ((flags & CU_CTX_USER_COREDUMP_ENABLE) != 0) /* so the H200 stores it */
        flags = (flags & ~(unsigned)CU_CTX_USER_COREDUMP_ENABLE) | CU_CTX_COREDUMP_ENABLE;
    struct api_context *context = api_context_new(flags, false);
    if (context == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a context");
    thread->stack[thread->depth++] = context->handle;
    *pctx = context->handle;
    return api_leave();
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(__func__, pctx, CUDA_SUCCESS, flags, dev);
}

/* What an H200 answers without MPS. */
static CUresult affinity(const CUexecAffinityParam *params, int count)
{
    return count <= 0       ? CUDA_SUCCESS
           : params == NULL ? CUDA_ERROR_INVALID_VALUE
                            : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                                unsigned int flags, CUdevice dev)
{
    return create(__func__, pctx, affinity(paramsArray, numParams), flags, dev);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                                CUdevice dev)
{
    CUresult refused = CUDA_SUCCESS;
    if (ctxCreateParams != NULL)
        refused = ctxCreateParams->cigParams != NULL
                      ? CUDA_ERROR_NOT_SUPPORTED
                      : affinity(ctxCreateParams->execAffinityParams, ctxCreateParams->numExecAffinityParams);
    return create(__func__, pctx, refused, flags, dev);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    API_ENTER();
    struct api_context *context = emu_handle_get(EMU_HANDLE_CONTEXT, ctx);
    if (context == NULL)
        return api_fail(ctx == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT,
                        "not a live context");
    if (context->primary)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released, not destroyed");
    struct api_thread *thread = api_thread();
    if (thread->depth > 0 && thread->stack[thread->depth - 1] == ctx)
        thread->depth--;
    emu_handle_free(ctx);
    api_contexts_end(context);
    free(context);
    return api_leave();
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    return cuCtxDestroy_v2(ctx);
}

/* A use count is not kept: cuCtxAttach and cuCtxDetach pair up, and the detach without a partner destroys. */
CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    API_ENTER();
    const struct api_context *context = emu_handle_get(EMU_HANDLE_CONTEXT, ctx);
    if (context == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a live context");
    if (context->primary) /* no effect, on the H200 */
        return api_leave();
    (void)api_leave();
    return cuCtxDestroy_v2(ctx);
}

CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    API_ENTER();
    struct api_context *context;
    API_REQUIRE(pctx != NULL && flags == 0);
    if (api_context_current(&context) != CUDA_SUCCESS)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread");
    *pctx = context->handle;
    return api_leave();
}

/* May it be made current? One that was destroyed may, as on an H200: the calls made then say so. */
static bool can_be_current(CUcontext handle)
{
    return context_of(handle) != NULL || was_context(handle);
}

CUresult api_context_error(CUcontext handle)
{
    return can_be_current(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
    API_ENTER();
    struct api_thread *thread = api_thread();
    API_REQUIRE(ctx != NULL);
    if (!can_be_current(ctx))
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a context");
    if (thread->depth == API_STACK_MAX)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "%d contexts are already pushed", API_STACK_MAX);
    thread->stack[thread->depth++] = ctx;
    return api_leave();
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
    API_ENTER();
    struct api_thread *thread = api_thread();
    if (thread->depth == 0)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread");
    thread->depth--;
    if (pctx != NULL)
        *pctx = thread->stack[thread->depth];
    return api_leave();
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    return cuCtxPopCurrent_v2(pctx);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    API_ENTER();
    struct api_thread *thread = api_thread();
    if (ctx == NULL) {
        if (thread->depth > 0)
            thread->depth--;
        return api_leave();
    }
    if (!can_be_current(ctx))
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a context");
    if (thread->depth == 0)
        thread->depth = 1;
    thread->stack[thread->depth - 1] = ctx;
    return api_leave();
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    API_ENTER();
    API_REQUIRE(pctx != NULL);
    struct api_thread *thread = api_thread();
    *pctx = thread->depth > 0 ? thread->stack[thread->depth - 1] : NULL;
    return api_leave();
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    API_ENTER();
    API_REQUIRE(device != NULL);
    const struct api_thread *thread = api_thread();
    if (ctx != NULL ? !can_be_current(ctx) : thread->depth == 0) /* it may be destroyed, on the H200 */
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no context");
    *device = 0;
    return api_leave();
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    API_ENTER();
    API_REQUIRE(flags != NULL);
    const struct api_thread *thread = api_thread();
    if (thread->depth == 0)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread");
    /* A failed one has them, and a destroyed one has none, on the H200; a primary one always maps host
     * memory. */
    const struct api_context *context = context_of(thread->stack[thread->depth - 1]);
    *flags = context == NULL ? 0 : context->flags | (context->primary ? (unsigned)CU_CTX_MAP_HOST : 0);
    return api_leave();
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
    API_ENTER();
    struct api_context *context;
    CUresult result = api_context_current(&context);
    if (result != CUDA_SUCCESS)
        return api_fail(result, "no usable context is current to this thread");
    if (!api_context_flags_valid(flags))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags in 0x%x", flags);
    context->flags = flags & ~(unsigned)(CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE);
    return api_leave();
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    API_ENTER();
    API_REQUIRE(ctxId != NULL);
    struct api_context *context = api_context_get(ctx);
    if (ctx == NULL) {
        CUresult result = api_context_current(&context);
        if (result != CUDA_SUCCESS)
            return api_fail(result, "no usable context is current to this thread");
        if (context->sticky != CUDA_SUCCESS)
            return api_fail_with(context->sticky, &context->fault);
    }
    if (context == NULL)
        return api_fail(api_context_error(ctx), "not a live context");
    const struct api_green *green = ctx != NULL ? api_green_of(ctx) : api_green_current();
    *ctxId = green != NULL ? green->id : context->id;
    return api_leave();
}

static CUresult synchronize(struct api_context *context)
{
    if (api_capture_blocks_wait(context))
        return api_set_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream of the context is capturing");
    const CUresult waited = api_context_wait(context);
    api_pools_settle();
    return waited;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    API_ENTER_CONTEXT(context);
    return api_result(synchronize(context));
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    API_ENTER();
    struct api_context *context = api_context_get(ctx);
    if (context == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a live context");
    api_pin(context);
    return api_result(synchronize(context));
}

static CUresult check_limit(CUlimit limit)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "unknown limit %d", (int)limit);
    if ((unsigned)limit >= API_LIMIT_COUNT || limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
        return api_set_error(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit %d", (int)limit);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pvalue != NULL);
    CUresult result = check_limit(limit);
    if (result == CUDA_SUCCESS)
        *pvalue = context->limits[limit];
    return api_result(result);
}

/* Sizes are rounded up as an H200's driver rounds them. */
CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    API_ENTER_CONTEXT(context);
    CUresult result = check_limit(limit);
    size_t unit = 1;
    if (result != CUDA_SUCCESS)
        return api_result(result);
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        if (value > (size_t)512 << 10)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "a stack of %zu bytes is above 512 KiB", value);
        unit = 16;
        break;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        unit = (size_t)512 << 10;
        value = value == 0 ? 1 : value > (size_t)2 << 30 ? (size_t)2 << 30 : value;
        break;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        if (emu_memory_heap_in_use(api_device()->machine))
            return api_fail(CUDA_ERROR_INVALID_VALUE, "a kernel has used the heap: its size stays");
        unit = (size_t)4 << 20;
        value = value == 0 ? 1 : value;
        break;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: /* the H200's bounds */
        value = value < 32 ? 32 : value > 599186 ? 599186 : value;
        break;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        if (value > 128)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "an L2 fetch granularity of %zu is above 128", value);
        break;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: {
        size_t most = api_device()->model->l2_bytes / 8 * 5;
        unit = api_device()->model->l2_bytes / 16;
        if (value > api_device()->model->l2_bytes)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes are more than the L2 cache has", value);
        if (value > most)
            value = most;
        break;
    }
    case CU_LIMIT_SHMEM_SIZE:
    case CU_LIMIT_CIG_ENABLED:
        return api_fail(CUDA_ERROR_NOT_PERMITTED, "limit %d can only be read", (int)limit);
    default:
        break;
    }
    /* It may wrap around to 0, on the H200. */
    __atomic_store_n(&context->limits[limit], (value + unit - 1) / unit * unit, __ATOMIC_RELAXED);
    return api_leave();
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(pconfig != NULL);
    *pconfig = context->cache;
    return api_leave();
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    API_ENTER_CONTEXT(context);
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "cache preference %d", (int)config);
    context->cache = config;
    return api_leave();
}

CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(pConfig != NULL);
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return api_leave();
}

/* Banks are four bytes wide on every emulated device: a request for another width changes nothing, as on
 * hardware. */
CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "bank width %d", (int)config);
    return api_leave();
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    API_ENTER();
    API_REQUIRE(version != NULL);
    struct api_context *context;
    CUresult result = ctx == NULL ? api_context_current(&context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return api_fail(result, "no usable context is current to this thread");
    if (ctx == NULL && context->sticky != CUDA_SUCCESS)
        return api_fail_with(context->sticky, &context->fault);
    if (ctx != NULL && api_context_get(ctx) == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "not a live context");
    *version = 3020; /* the version that contexts have had since CUDA 3.2 */
    return api_leave();
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    if (leastPriority != NULL)
        *leastPriority = API_PRIORITY_LEAST;
    if (greatestPriority != NULL)
        *greatestPriority = API_PRIORITY_GREATEST;
    return api_leave();
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void)
{
    API_ENTER_CONTEXT(context);
    (void)context; /* caches are not modelled: there is nothing to reset */
    return api_leave();
}

/* Without MPS a context has all SMs; a green one is none that could be asked, on the H200. */
CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    API_REQUIRE(pExecAffinity != NULL);
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return api_fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "execution affinity %d", (int)type);
    if (api_green_current() != NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "a green context is current");
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val = api_device()->model->sms;
    return api_leave();
}
