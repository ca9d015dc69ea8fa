/* Every call of calls.def in many states: before cuInit, with no context, with one that is gone, after a
   kernel has failed, while a stream is captured, in a host function. */
#include "ask.h"

#include <cudaProfiler.h>
#include <pthread.h>

static struct {
    CUmodule module;
    CUlinkState link;
    CUlibrary library;
    CUdeviceptr device, pooled;
    void *pinned;
    CUarray array;
    CUmemoryPool pool;
    CUstream stream;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
} spare;

static _Alignas(4096) unsigned char host_page[4096];

/* ---- calls of more than a line ---- */

static CUresult exchange_mode(void)
{
    t.mode = CU_STREAM_CAPTURE_MODE_GLOBAL; /* the default: nothing changes */
    return cuThreadExchangeStreamCaptureMode(&t.mode);
}

static CUresult set_current(void)
{
    CUresult result = cuCtxGetCurrent(&t.context);
    return result != CUDA_SUCCESS ? result : cuCtxSetCurrent(t.context);
}

static CUresult push_and_pop(void)
{
    CUresult result = cuCtxPushCurrent(o.context);
    return result != CUDA_SUCCESS ? result : cuCtxPopCurrent(&t.context);
}

static CUresult create_and_destroy(void)
{
    CUcontext made = NULL;
    CUresult result = cuCtxCreate(&made, NULL, 0, 0);
    return result != CUDA_SUCCESS ? result : cuCtxDestroy(made);
}

static CUlaunchConfig one_thread(void)
{
    return (CUlaunchConfig){.gridDimX = 1,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = 1,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .hStream = o.s};
}

static CUresult launch_ex(void)
{
    const CUlaunchConfig config = one_thread();
    return cuLaunchKernelEx(&config, o.plain, NULL, NULL);
}

static CUresult potential_cluster(void)
{
    const CUlaunchConfig config = one_thread();
    return cuOccupancyMaxPotentialClusterSize(&t.i, o.plain, &config);
}

static CUresult active_clusters(void)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {1, 1, 1}};
    CUlaunchConfig config = one_thread();
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuOccupancyMaxActiveClusters(&t.i, o.plain, &config);
}

static CUresult copy_2d(bool unaligned)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = o.device,
                                .srcPitch = 64,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = t.bytes,
                                .dstPitch = 64,
                                .WidthInBytes = 32,
                                .Height = 4};
    return unaligned ? cuMemcpy2DUnaligned(&copy) : cuMemcpy2D(&copy);
}

static CUresult copy_3d(void)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = o.device,
                                .srcPitch = 64,
                                .srcHeight = 4,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = t.bytes,
                                .dstPitch = 64,
                                .dstHeight = 4,
                                .WidthInBytes = 32,
                                .Height = 4,
                                .Depth = 2};
    return cuMemcpy3D(&copy);
}

static CUresult create_array(void)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    return cuArrayCreate(&t.array, &flat);
}

static CUresult create_texture(void)
{
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = o.array};
    const CUDA_TEXTURE_DESC sampler = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
    return cuTexObjectCreate(&t.texture, &resource, &sampler, NULL);
}

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

static CUresult create_physical(void)
{
    return cuMemCreate(&t.handle, (size_t)2 << 20, &on_device, 0);
}

static CUresult granularity(void)
{
    return cuMemGetAllocationGranularity(&t.size, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}

static CUresult set_pointer(void)
{
    const int on = 1;
    return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, o.device);
}

static CUresult set_pool(void)
{
    cuuint64_t bytes = 0;
    return cuMemPoolSetAttribute(o.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
}

static CUresult create_pool(void)
{
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    return cuMemPoolCreate(&t.pool, &properties);
}

static CUresult advise(void)
{
    return cuMemAdvise(o.managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY,
                       (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0});
}

static CUresult prefetch(void)
{
    return cuMemPrefetchAsync(o.managed, 4096, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              0, o.s);
}

static CUresult copy_batch(void)
{
    CUdeviceptr to = o.device, from = o.device + 1024;
    size_t bytes = 64, first = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &first, 1, o.s);
}

/* A capturing or faulty stream answers at once; a busy one is asked again. */
static CUresult query_stream(void)
{
    CUresult result;
    for (uint64_t start = ask_now(); (result = cuStreamQuery(o.s)) == CUDA_ERROR_NOT_READY;)
        if (ask_now() - start > 2000000000u)
            break;
    return result;
}

static CUresult query_event(void)
{
    CUresult result;
    for (uint64_t start = ask_now(); (result = cuEventQuery(o.event)) == CUDA_ERROR_NOT_READY;)
        if (ask_now() - start > 2000000000u)
            break;
    return result;
}

static CUresult set_stream(void)
{
    const CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_AUTO};
    return cuStreamSetAttribute(o.s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

static CUresult batch(void)
{
    CUstreamBatchMemOpParams write = {
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = o.device, .value = 5}};
    return cuStreamBatchMemOp(o.s, 1, &write, 0);
}

static CUresult add_kernel(void)
{
    const CUDA_KERNEL_NODE_PARAMS kernel = {.func = o.plain,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 1,
                                            .blockDimY = 1,
                                            .blockDimZ = 1};
    return cuGraphAddKernelNode(&t.node, o.graph, NULL, 0, &kernel);
}

static CUresult encode(void)
{
    const cuuint64_t dims[] = {64, 32}, strides[] = {256};
    const cuuint32_t box[] = {16, 16}, steps[] = {1, 1};
    return cuTensorMapEncodeTiled(&t.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                  (void *)(uintptr_t)0x7fa28bf01000, dims, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* ---- the table ---- */

static const struct {
    const char *name;

} calls[] = {
#define CALL(name, expression) {#name},
#include "calls.def"
};

/* Makes the call of that number. */
static CUresult make(size_t number)
{
    size_t i = 0;
#define CALL(name, expression) \
    if (number == i++)         \
        return expression;
#include "calls.def"
    return CUDA_ERROR_UNKNOWN;
}

static void each_call(void)
{
    for (size_t i = 0; i < COUNT(calls); i++)
        ASK(calls[i].name, make(i));
}

static void make_spares(void)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {64, 32, CU_AD_FORMAT_FLOAT, 1};
    create_pool();
    spare.pool = t.pool;
    MUST(cuModuleLoadData(&spare.module, ask_ptx));
    MUST(cuLinkCreate(0, NULL, NULL, &spare.link));
    MUST(cuLibraryLoadData(&spare.library, ask_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuMemAlloc(&spare.device, 64));
    MUST(cuMemAllocAsync(&spare.pooled, 64, o.stream));
    MUST(cuMemAllocHost(&spare.pinned, 64));
    MUST(cuArrayCreate(&spare.array, &flat));
    MUST(cuStreamCreate(&spare.stream, 0));
    MUST(cuEventCreate(&spare.event, 0));
    MUST(cuGraphCreate(&spare.graph, 0));
    MUST(cuGraphInstantiate(&spare.exec, spare.graph, 0));
    MUST(cuCtxSynchronize());
}

static bool ready(void)
{
    if (!ask_setup())
        return false;
    make_spares();
    return true;
}

/* ---- states ---- */

void section_before_init(void)
{
    each_call();
    ASK("cuInit 1", cuInit(1));
    ASK("cuInit ~0", cuInit(~0u));
    ASK("count after wrong flags", cuDeviceGetCount(&t.i));
    ASK("cuInit", cuInit(0));
    ASK("cuInit again", cuInit(0));
    ASK("cuInit 1 again", cuInit(1));
}

static void healthy(const void *stream)
{
    if (!ready())
        return;
    o.s = stream == NULL ? o.stream : (CUstream)(uintptr_t)stream;
    each_call();
}

/* Initialised, but nothing was ever made. */
static void never_made(const void *argument)
{
    (void)argument;
    cuInit(0);
    each_call();
}

static void no_context(const void *argument)
{
    (void)argument;
    if (!ready())
        return;
    cuCtxSetCurrent(NULL);
    each_call();
}

/* The current context is another one than that of the objects. */
static void other_context(const void *argument)
{
    (void)argument;
    if (!ready())
        return;
    MUST(cuCtxCreate(&t.context, NULL, 0, 0));
    each_call();
}

static void destroyed(const void *argument)
{
    (void)argument;
    CUcontext made = NULL;
    cuInit(0);
    MUST(cuCtxCreate(&made, NULL, 0, 0));
    MUST(cuCtxPushCurrent(made));
    o.context = made;
    MUST(cuCtxDestroy(made));
    ASKF("still current", cuCtxGetCurrent(&t.context), " %d", t.context == made);
    each_call();
}

static void reset(const void *argument)
{
    (void)argument;
    if (!ask_context())
        return;
    MUST(cuDevicePrimaryCtxReset(0));
    each_call();
}

static void failed(const void *argument)
{
    (void)argument;
    if (!ready())
        return;
    ASK("the kernel", cuLaunchKernel(o.store, 1, 1, 1, 1, 1, 1, 0, o.s, ask_params, NULL));
    ASK("its end", cuStreamSynchronize(o.s));
    each_call();
    ASK("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&t.context, 0));
    ASK("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease(0));
    ASK("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(0));
    ASK("cuMemAlloc after the reset", cuMemAlloc(&t.pointer, 4));
    ASK("cuDevicePrimaryCtxRetain after the reset", cuDevicePrimaryCtxRetain(&t.context, 0));
    ASK("cuMemAlloc at last", cuMemAlloc(&t.pointer, 4));
}

void section_calls(void)
{
    ask_child("healthy", healthy, NULL);
    ask_child("legacy stream", healthy, CU_STREAM_LEGACY);
    ask_child("per-thread stream", healthy, CU_STREAM_PER_THREAD);
    ask_child("never made", never_made, NULL);
    ask_child("no context", no_context, NULL);
    ask_child("other context", other_context, NULL);
    ask_child("destroyed context", destroyed, NULL);
    ask_child("reset", reset, NULL);
    ask_child("failed", failed, NULL);
}

/* ---- after a kernel has failed and its context is gone ---- */

static void fail_here(CUfunction store)
{
    ASK("the kernel", cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, ask_params, NULL));
    ASK("its end", cuCtxSynchronize());
}

/* The primary context failed and was reset; NULL: it stays current, else none is. */
static void after_reset(const void *argument)
{
    if (!ready())
        return;
    fail_here(o.store);
    ASK("reset", cuDevicePrimaryCtxReset(0));
    if (argument != NULL)
        cuCtxSetCurrent(NULL);
    each_call();
}

/* Another context failed; NULL: it is there still, else it is destroyed. The calls are about the primary one.
 */
static void bystander(const void *argument)
{
    CUcontext failing = NULL;
    CUmodule module = NULL;
    CUfunction store = NULL;
    if (!ready())
        return;
    MUST(cuCtxCreate(&failing, NULL, 0, 0));
    MUST(cuModuleLoadData(&module, ask_ptx));
    MUST(cuModuleGetFunction(&store, module, "store"));
    fail_here(store);
    if (argument != NULL)
        ASK("destroy", cuCtxDestroy(failing));
    MUST(cuCtxSetCurrent(o.context));
    each_call();
    ASK("retain", cuDevicePrimaryCtxRetain(&t.context, 0));
    ASK("create", cuCtxCreate(&t.context, NULL, 0, 0));
}

void section_poisoned(void)
{
    ask_child("reset", after_reset, NULL);
    ask_child("reset, none current", after_reset, &o);
    ask_child("bystander", bystander, NULL);
    ask_child("bystander, destroyed", bystander, &o);
}

/* ---- while a stream is captured ---- */

static bool destroys(const char *name)
{
    return strstr(name, "Destroy") != NULL || strstr(name, "Unload") != NULL || strstr(name, "Free") != NULL;
}

/* Each call in a capture of its own: what it returns, what becomes of the capture, what its end returns. */
struct capture_case {
    CUstreamCaptureMode mode;
    int stream; /* 0 the captured one, 1 another, 2 legacy, 3 one that synchronises with the legacy one is
                   captured */
};

static void in_capture(const void *argument)
{
    const struct capture_case *which = argument;
    if (!ask_setup())
        return;
    const CUstream captured = which->stream == 3 ? o.blocking : o.stream;
    o.s = which->stream == 0 ? o.stream : which->stream == 1 ? o.other : CU_STREAM_LEGACY;
    for (size_t i = 0; i < COUNT(calls); i++) {
        CUresult result = CUDA_SUCCESS, ended = CUDA_SUCCESS;
        t.graph = NULL;
        t.status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (i == 0 || destroys(calls[i - 1].name)) /* the last one's are gone */
            make_spares();
        MUST(cuStreamBeginCapture(captured, which->mode));
        const bool made = ask_begin(calls[i].name);
        if (made) {
            result = make(i);
            cuStreamIsCapturing(captured, &t.status);
            const int status = (int)t.status;
            CUgraph graph = NULL;
            size_t nodes = 0;
            ended = cuStreamEndCapture(captured, &graph);
            if (graph != NULL)
                cuGraphGetNodes(graph, NULL, &nodes);
            ask_answer((int)result);
            ask_say(" %d, end %d, %zu nodes\n", status, (int)ended, nodes);
        } else {
            CUgraph graph;
            cuStreamEndCapture(captured, &graph);
        }
        cuCtxSynchronize();
    }
}

void section_capture_calls(void)
{
    static const struct {
        const char *name;
        struct capture_case which;
    } cases[] = {
        {"global", {CU_STREAM_CAPTURE_MODE_GLOBAL, 0}},
        {"global, another stream", {CU_STREAM_CAPTURE_MODE_GLOBAL, 1}},
        {"global, legacy stream", {CU_STREAM_CAPTURE_MODE_GLOBAL, 2}},
        {"thread local", {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0}},
        {"relaxed", {CU_STREAM_CAPTURE_MODE_RELAXED, 0}},
        {"relaxed, legacy stream", {CU_STREAM_CAPTURE_MODE_RELAXED, 2}},
        {"relaxed, blocking captured, legacy stream", {CU_STREAM_CAPTURE_MODE_RELAXED, 3}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        ask_child(cases[i].name, in_capture, &cases[i].which);
}

/* ---- in a host function ---- */

static struct {
    size_t number;
    CUresult result;
    volatile bool done;
} in_function;

static void CUDA_CB make_there(void *data)
{
    (void)data;
    in_function.result = make(in_function.number);
    in_function.done = true;
}

static void CUDA_CB make_in_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    make_there(data);
}

/* Calls that wait for a stream's work would wait for themselves. */
static void in_host_function(const void *argument)
{
    const bool callback = argument != NULL;
    if (!ready())
        return;
    o.s = o.other;
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (!ask_begin(calls[i].name))
            continue;
        in_function.number = i;
        in_function.done = false;
        const CUresult put = callback ? cuStreamAddCallback(o.stream, make_in_callback, NULL, 0)
                                      : cuLaunchHostFunc(o.stream, make_there, NULL);
        const CUresult waited = cuStreamSynchronize(o.stream);
        ask_answer((int)in_function.result);
        ask_say(" done %d, %d %d\n", in_function.done, (int)put, (int)waited);
    }
}

void section_callback_calls(void)
{
    ask_child("host function", in_host_function, NULL);
    ask_child("callback", in_host_function, &in_function);
}
