/* Programs around streams: priorities, pipelines with host functions, captured graphs, values in memory,
 * times. */
#include "sample.h"

#include <time.h>
#include <unistd.h>

/* out[0] = out[0] * 3 + k: the order of launches shows. */
static const char step_ptx[] =
    HEAD ".visible .entry step(.param .u64 p_p, .param .u32 p_k)\n{\n.reg .b64 a;\n.reg .b32 v, k;\n"
         "ld.param.u64 a, [p_p];\nld.param.u32 k, [p_k];\nld.global.u32 v, [a];\nmad.lo.u32 v, v, 3, "
         "k;\nst.global.u32 [a], v;\nret;\n}\n"
         /* waits until *p is not 0, at most for about a second */
         ".visible .entry wait(.param .u64 p_p)\n{\n.reg .b64 a, t, s;\n.reg .b32 v;\n.reg .pred q, r;\n"
         "ld.param.u64 a, [p_p];\nmov.u64 s, %globaltimer;\n"
         "L: ld.volatile.global.u32 v, [a];\nmov.u64 t, %globaltimer;\nsub.u64 t, t, s;\n"
         "setp.eq.u32 q, v, 0;\nsetp.lt.and.u64 r, t, 1000000000, q;\n@r bra L;\nret;\n}\n";

void sample_priorities(void)
{
    int least = 9, greatest = 9, got = 9;
    unsigned flags = 9;
    CUstream low, high, plain, beyond;
    CUdeviceptr word;
    CUevent event;
    uint32_t value = 0, k = 1;
    sample_start();
    CUfunction step = sample_load(step_ptx, "step");
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
    OK(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, least));
    OK(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest));
    OK(cuStreamCreateWithPriority(&beyond, CU_STREAM_NON_BLOCKING, greatest - 100));
    OK(cuStreamCreate(&plain, CU_STREAM_DEFAULT));
    OK(cuStreamGetPriority(beyond, &got)); /* clamped */
    SAME(greatest, got);
    OK(cuStreamGetPriority(plain, &got));
    SAME(0, got);
    OK(cuStreamGetPriority(NULL, &got));
    SAME(0, got);
    OK(cuStreamGetFlags(low, &flags));
    SAME(CU_STREAM_NON_BLOCKING, flags);
    OK(cuStreamGetFlags(plain, &flags));
    SAME(CU_STREAM_DEFAULT, flags);
    WANT(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&plain, 99));
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuCtxSynchronize()); /* a set of device memory is not waited for, and the streams do not wait for
                               stream 0 */
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    void *params[] = {&word, &k};
    for (k = 1; k <= 20; k++) { /* to and fro between the streams */
        const CUstream stream = k % 2 ? low : high;
        OK(cuStreamWaitEvent(stream, event, 0)); /* not recorded yet at first: nothing to wait for */
        OK(sample_launch(step, 1, 1, stream, params));
        OK(cuEventRecord(event, stream));
    }
    OK(cuEventSynchronize(event));
    OK(cuMemcpyDtoH(&value, word, 4));
    uint32_t wanted = 0;
    for (uint32_t i = 1; i <= 20; i++)
        wanted = wanted * 3 + i;
    SAME(wanted, value);
    CUcontext of = NULL, now = NULL;
    unsigned long long id = 0, other = 0;
    OK(cuStreamGetCtx(low, &of));
    OK(cuCtxGetCurrent(&now));
    EXPECT(of == now);
    OK(cuStreamGetId(low, &id));
    OK(cuStreamGetId(high, &other));
    EXPECT(id != other);
    OK(cuStreamDestroy(low));
    OK(cuStreamDestroy(high));
    OK(cuStreamDestroy(beyond));
}

/* ---- stages with host functions ---- */

struct stage {
    int *log, *count, value;
};

static void CUDA_CB note(void *data)
{
    struct stage *stage = data;
    stage->log[(*stage->count)++] = stage->value;
}

static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    if (status == CUDA_SUCCESS)
        note(data);
}

static CUresult asked;
static void CUDA_CB ask(void *data)
{
    asked = cuMemAlloc(data, 4); /* forbidden */
}

void sample_host_pipeline(void)
{
    enum { N = 16 };
    int log[2 * N] = {0}, count = 0;
    struct stage stages[N];
    uint32_t *host = NULL, k = 0;
    CUdeviceptr word, scratch = 0;
    CUstream work, copies;
    CUevent computed, copied;
    sample_start();
    CUfunction step = sample_load(step_ptx, "step");
    OK(cuMemAlloc(&word, 4));
    OK(cuMemAllocHost((void **)&host, 4 * N));
    OK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&computed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32Async(word, 0, 1, work));
    void *params[] = {&word, &k};
    for (int i = 0; i < N; i++) {
        k = (uint32_t)i + 1;
        OK(sample_launch(step, 1, 1, work, params));
        OK(cuEventRecord(computed, work));
        OK(cuStreamWaitEvent(copies, computed, 0));
        OK(cuMemcpyDtoHAsync(&host[i], word, 4, copies));
        stages[i] = (struct stage){log, &count, i};
        if (i % 2)
            OK(cuLaunchHostFunc(copies, note, &stages[i]));
        else
            OK(cuStreamAddCallback(copies, callback, &stages[i], 0));
        OK(cuEventRecord(copied, copies));
        OK(cuStreamWaitEvent(work, copied, 0)); /* the word is not changed before it has been copied */
    }
    OK(cuStreamSynchronize(copies));
    SAME(N, count);
    uint32_t value = 0;
    for (int i = 0; i < N; i++) {
        value = value * 3 + (uint32_t)i + 1;
        SAME(i, log[i]);
        SAME(value, host[i]);
    }
    OK(cuLaunchHostFunc(work, ask, &scratch));
    OK(cuStreamSynchronize(work));
    SAME(CUDA_ERROR_NOT_PERMITTED, asked);
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(work, NULL, NULL));
    OK(cuStreamQuery(work));
    OK(cuMemFreeHost(host));
}

/* ---- a graph captured from three streams, launched, updated ---- */

static CUgraph capture(CUstream a, CUstream b, CUstream c, CUevent fork, CUevent join, CUfunction step,
                       CUdeviceptr *words, uint32_t k)
{
    CUgraph graph = NULL;
    uint32_t constant = k;
    void *params[][2] = {{&words[0], &constant}, {&words[1], &constant}, {&words[2], &constant}};
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemsetD32Async(words[3], k, 1, a));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuStreamWaitEvent(c, fork, 0));
    OK(sample_launch(step, 1, 1, a, params[0]));
    OK(sample_launch(step, 1, 1, b, params[1]));
    OK(sample_launch(step, 1, 1, c, params[2]));
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuEventRecord(join, c));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuMemcpyDtoDAsync(words[3] + 4, words[2], 4, a));
    OK(cuStreamEndCapture(a, &graph));
    return graph;
}

void sample_capture_update(void)
{
    CUstream a, b, c;
    CUevent fork, join;
    CUdeviceptr words[4];
    CUgraphExec exec;
    uint32_t value[2] = {0};
    size_t nodes = 0, edges = 0, roots = 0;
    sample_start();
    CUfunction step = sample_load(step_ptx, "step");
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 4; i++) {
        OK(cuMemAlloc(&words[i], 8));
        OK(cuMemsetD32(words[i], 0, 2));
    }
    OK(cuCtxSynchronize());
    CUgraph graph = capture(a, b, c, fork, join, step, words, 5);
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    SAME(5, nodes);
    OK(cuGraphGetRootNodes(graph, NULL, &roots));
    SAME(1, roots);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &edges));
    SAME(6, edges); /* set -> three kernels -> copy */
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphUpload(exec, a));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(value, words[3], 8));
    SAME(5, value[0]);
    SAME(5 + 3 * (5 + 3 * 5), value[1]);
    /* the same shape with other constants */
    CUgraph second = capture(a, b, c, fork, join, step, words, 7);
    CUgraphExecUpdateResultInfo info = {0};
    OK(cuGraphExecUpdate(exec, second, &info));
    SAME(CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
    for (int i = 0; i < 4; i++)
        OK(cuMemsetD32(words[i], 0, 2));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(value, words[3], 8));
    SAME(7, value[0]);
    SAME(7, value[1]);
    /* another shape is refused, and the instance stays what it was */
    CUgraph third = NULL;
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemsetD32Async(words[3], 9, 1, a));
    OK(cuStreamEndCapture(a, &third));
    WANT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, third, &info));
    EXPECT(info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    /* what a capture must not do */
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    void *params[] = {&words[0], value};
    OK(sample_launch(step, 1, 1, b, params));
    WANT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(a, &third));
    OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(a));
    WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a, &third));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    OK(cuStreamIsCapturing(a, &status));
    SAME(CU_STREAM_CAPTURE_STATUS_NONE, status);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(second));
    OK(cuCtxSynchronize());
}

/* ---- a graph by hand: a child graph, a copy whose parameters are read back, a node switched off ---- */

void sample_graph_by_hand(void)
{
    CUgraph graph, child;
    CUgraphNode set, kernel, copy, inner, child_node, host, event_node;
    CUgraphExec exec;
    CUdeviceptr word;
    CUstream stream;
    CUevent event;
    CUcontext context = sample_start();
    CUfunction step = sample_load(step_ptx, "step");
    uint32_t k = 4, back = 0, *pinned = NULL;
    int log[8] = {0}, count = 0;
    struct stage stage = {log, &count, 42};
    OK(cuMemAlloc(&word, 4));
    OK(cuMemAllocHost((void **)&pinned, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    void *params[] = {&word, &k};
    const CUDA_MEMSET_NODE_PARAMS zero = {.dst = word, .elementSize = 4, .width = 1, .height = 1, .value = 1};
    CUDA_KERNEL_NODE_PARAMS launch = {.func = step,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params};
    const CUDA_MEMCPY3D read = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = word,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = pinned,
                                .WidthInBytes = 4,
                                .Height = 1,
                                .Depth = 1};
    const CUDA_HOST_NODE_PARAMS call = {.fn = note, .userData = &stage};
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode(&inner, child, NULL, 0, &launch));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemsetNode(&set, graph, NULL, 0, &zero, context));
    OK(cuGraphAddKernelNode(&kernel, graph, &set, 1, &launch));
    OK(cuGraphAddChildGraphNode(&child_node, graph, &kernel, 1, child));
    OK(cuGraphAddMemcpyNode(&copy, graph, &child_node, 1, &read, context));
    OK(cuGraphAddHostNode(&host, graph, &copy, 1, &call));
    OK(cuGraphAddEventRecordNode(&event_node, graph, &host, 1, event));
    CUDA_MEMCPY3D told;
    OK(cuGraphMemcpyNodeGetParams(copy, &told));
    EXPECT(told.dstMemoryType == CU_MEMORYTYPE_HOST && told.dstHost == pinned && told.srcDevice == word);
    CUDA_KERNEL_NODE_PARAMS told_kernel;
    OK(cuGraphKernelNodeGetParams(kernel, &told_kernel));
    EXPECT(told_kernel.func == step && *(uint32_t *)told_kernel.kernelParams[1] == 4);
    k = 100; /* copied when the node was added */
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(stream));
    SAME((1 * 3 + 4) * 3 + 4, *pinned);
    SAME(1, count);
    SAME(42, log[0]);
    OK(cuGraphNodeSetEnabled(exec, kernel, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    SAME(1 * 3 + 4, *pinned);
    unsigned enabled = 9;
    OK(cuGraphNodeGetEnabled(exec, kernel, &enabled));
    SAME(0, enabled);
    OK(cuGraphNodeSetEnabled(exec, kernel, 1));
    k = 10;
    OK(cuGraphExecKernelNodeSetParams(exec, kernel, &launch));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    SAME((1 * 3 + 10) * 3 + 4, *pinned);
    /* a clone is its own */
    CUgraph clone;
    CUgraphNode twin;
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&twin, kernel, clone));
    EXPECT(twin != kernel);
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(&back, word, 4));
    SAME((1 * 3 + 10) * 3 + 4, back);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(clone));
    OK(cuGraphDestroy(child));
}

/* ---- values in memory ---- */

void sample_stream_values(void)
{
    CUdeviceptr words;
    CUstream stream, other;
    uint32_t value[4] = {0};
    sample_start();
    OK(cuMemAlloc(&words, 16));
    OK(cuMemsetD32(words, 0, 4));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(stream, words, 3, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue32(stream, words + 4, 11, 0));
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    OK(cuStreamWriteValue32(other, words, 2, 0));
    OK(cuStreamSynchronize(other));
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    OK(cuStreamWriteValue32(other, words, 5, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(value, words, 16));
    SAME(5, value[0]);
    SAME(11, value[1]);
    OK(cuStreamWaitValue32(stream, words, 4, CU_STREAM_WAIT_VALUE_AND)); /* 5 & 4 */
    OK(cuStreamWaitValue32(stream, words, 5, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWaitValue32(stream, words, 6, CU_STREAM_WAIT_VALUE_NOR)); /* ~(5 | 6) */
    OK(cuStreamSynchronize(stream));
    OK(cuStreamWriteValue64(stream, words + 8, 0x100000002ull, 0));
    OK(cuStreamWaitValue64(stream, words + 8, 0x100000001ull, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamSynchronize(stream));
    WANT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, words + 1, 1, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, words + 4, 1, 0));
    CUstreamBatchMemOpParams ops[] = {
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = words, .value = 77}},
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                       .address = words,
                       .value = 77,
                       .flags = CU_STREAM_WAIT_VALUE_EQ}},
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = words + 4, .value = 78}},
    };
    OK(cuStreamBatchMemOp(stream, 3, ops, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(value, words, 16));
    SAME(77, value[0]);
    SAME(78, value[1]);
    SAME(2, value[2]);
    SAME(1, value[3]);
    /* a pinned word as the mail box of the host */
    volatile uint32_t *box = NULL;
    CUdeviceptr at;
    OK(cuMemHostAlloc((void **)(uintptr_t)&box, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    box[0] = box[1] = 0;
    OK(cuMemHostGetDevicePointer(&at, (void *)(uintptr_t)box, 0));
    OK(cuStreamWaitValue32(stream, at, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(stream, at + 4, 9, 0));
    usleep(10000);
    SAME(0, box[1]);
    box[0] = 1;
    OK(cuStreamSynchronize(stream));
    SAME(9, box[1]);
}

/* ---- times ---- */

void sample_timing(void)
{
    CUevent first, second, third, untimed;
    CUstream stream;
    CUdeviceptr word;
    float ms = -1, more = -1;
    sample_start();
    CUfunction wait = sample_load(step_ptx, "wait");
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 1, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&first, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&second, CU_EVENT_BLOCKING_SYNC));
    OK(cuEventCreate(&third, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(first)); /* never recorded */
    OK(cuEventSynchronize(first));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, first, second));
    void *params[] = {&word};
    OK(cuEventRecord(first, stream));
    OK(sample_launch(wait, 1, 1, stream, params));
    OK(cuEventRecord(second, stream));
    OK(sample_launch(wait, 1, 1, stream, params));
    OK(cuEventRecord(third, stream));
    OK(cuEventRecord(untimed, stream));
    OK(cuEventSynchronize(third));
    OK(cuEventElapsedTime(&ms, first, second));
    EXPECT(ms >= 0);
    OK(cuEventElapsedTime(&more, first, third));
    EXPECT(more >= ms);
    OK(cuEventElapsedTime(&ms, third, first));
    EXPECT(ms <= 0);
    WANT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, first, untimed));
    /* a record that is under way */
    OK(cuMemsetD32(word, 0, 1));
    OK(cuCtxSynchronize());
    OK(sample_launch(wait, 1, 1, stream, params));
    OK(cuEventRecord(third, stream));
    WANT(CUDA_ERROR_NOT_READY, cuEventQuery(third));
    WANT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, first, third));
    CUstream writer;
    OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    OK(cuMemsetD32Async(word, 1, 1, writer));
    OK(cuEventSynchronize(third));
    OK(cuEventElapsedTime(&ms, first, third));
    EXPECT(ms > 0);
    WANT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&untimed, 0x40));
    WANT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&untimed, CU_EVENT_INTERPROCESS)); /* timed */
    OK(cuEventDestroy(first));
    OK(cuStreamDestroy(stream));
    OK(cuEventQuery(third)); /* its stream is gone */
}
