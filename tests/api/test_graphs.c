/* Graphs: captured, built by hand, replayed, updated, copied. */
#include <stdbool.h>

#include <stdatomic.h>
#include <unistd.h>

#include "api_test.h"

static const char add_text[] = HEADER
    ".visible .entry add(.param .u64 p, .param .u32 n) { .reg .b64 a; .reg .b32 v, w; ld.param.u64 a, [p];\n"
    "  ld.param.u32 w, [n]; ld.global.u32 v, [a]; add.u32 v, v, w; st.global.u32 [a], v; ret; }\n"
    ".visible .entry twice(.param .u64 p, .param .u32 n) { .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p];\n"
    "  ld.global.u32 v, [a]; add.u32 v, v, v; st.global.u32 [a], v; ret; }\n";

static uint32_t read_word(CUdeviceptr word)
{
    uint32_t value = 0;
    OK(cuMemcpyDtoH(&value, word, 4));
    return value;
}

/* set 1; in one stream add 2, in a second (joined) twice after it; replayed. */
static void test_capture(void **state)
{
    (void)state;
    CUfunction add = load(add_text, "add"), twice = load(add_text, "twice");
    CUstream one, two;
    CUevent fork, join;
    CUdeviceptr word;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    CUgraphNodeType type;
    CUstreamCaptureStatus status;
    size_t count = 8;
    uint32_t n = 2;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 77, 1));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    void *params[] = {&word, &n};
    OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemsetD32Async(word, 1, 1, one));
    OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, one, params, NULL));
    n = 1000; /* parameters were copied */
    OK(cuEventRecord(fork, one));
    OK(cuStreamWaitEvent(two, fork, 0));
    OK(cuStreamIsCapturing(two, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuLaunchKernel(twice, 1, 1, 1, 1, 1, 1, 0, two, params, NULL));
    OK(cuEventRecord(join, two));
    OK(cuStreamWaitEvent(one, join, 0));
    OK(cuStreamEndCapture(one, &graph));
    OK(cuStreamIsCapturing(two, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 3);
    OK(cuGraphNodeGetType(nodes[0], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEMSET);
    OK(cuGraphNodeGetType(nodes[2], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    assert_int_equal(read_word(word), 77); /* nothing ran */
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, two));
    OK(cuStreamSynchronize(two));
    assert_int_equal(read_word(word), 6);
    OK(cuGraphExecDestroy(exec));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, two));
    OK(cuStreamDestroy(one));
    OK(cuStreamDestroy(two));
}

static void test_capture_faults(void **state)
{
    (void)state;
    CUstream one, two;
    CUevent event;
    CUdeviceptr word, more;
    CUgraph graph;
    OK(cuMemAlloc(&word, 4));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    /* unjoined */
    OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    OK(cuMemsetD32Async(word, 1, 1, two));
    WANT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(two, &graph));
    WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));
    OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    OK(cuMemsetD32Async(word, 1, 1, two));
    WANT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(one, &graph));
    assert_null(graph);
    /* a call that is not allowed, in the mode that forbids it and in the one that does not */
    OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&more, 4));
    WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(one, &graph));
    OK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemAlloc(&more, 4));
    OK(cuStreamEndCapture(one, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuMemsetD32Async(word, 1, 1, one)); /* the streams work again */
    OK(cuStreamSynchronize(one));
    OK(cuStreamDestroy(one));
    OK(cuStreamDestroy(two));
}

static void CUDA_CB count_up(void *data)
{
    ++*(int *)data;
}

/* word = 10; add 5 and a host function; copy word to other; a child graph adds 1. */
static void test_by_hand(void **state)
{
    CUcontext context = *state;
    CUfunction add = load(add_text, "add");
    CUgraph graph, child, copy, inner;
    CUgraphExec exec;
    CUgraphNode set, kernel, host, move, nested, found, from[8], to[8];
    CUdeviceptr word, other;
    uint32_t five = 5, one = 1, nine = 9;
    int calls = 0;
    size_t count = 0;
    unsigned enabled = 9;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemAlloc(&other, 4));
    void *params[] = {&word, &five}, *child_params[] = {&word, &one}, *new_params[] = {&word, &nine};
    CUDA_KERNEL_NODE_PARAMS run = {.func = add,
                                   .gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = params};
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = word, .value = 10, .elementSize = 4, .width = 1, .height = 1};
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = word,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = other,
                         .WidthInBytes = 4,
                         .Height = 1,
                         .Depth = 1};
    CUDA_HOST_NODE_PARAMS call = {.fn = count_up, .userData = &calls};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    /* added in the wrong order on purpose: edges decide */
    OK(cuGraphAddMemcpyNode(&move, graph, NULL, 0, &box, context));
    OK(cuGraphAddKernelNode(&kernel, graph, NULL, 0, &run));
    OK(cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, context));
    OK(cuGraphAddHostNode(&host, graph, &kernel, 1, &call));
    run.kernelParams = child_params;
    OK(cuGraphAddKernelNode(&nested, child, NULL, 0, &run));
    OK(cuGraphAddChildGraphNode(&nested, graph, &host, 1, child));
    OK(cuGraphDestroy(child)); /* was copied */
    OK(cuGraphAddDependencies(graph, (CUgraphNode[]){set, nested}, (CUgraphNode[]){kernel, move}, NULL, 2));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &set, &kernel, NULL, 1));
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    assert_int_equal(count, 4);
    count = 8;
    OK(cuGraphGetEdges(graph, from, to, NULL, &count));
    assert_int_equal(count, 4);
    OK(cuGraphGetRootNodes(graph, from, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(from[0], set);
    OK(cuGraphChildGraphNodeGetGraph(nested, &inner));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inner)); /* the node's */

    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(calls, 1);
    assert_int_equal(read_word(other), 16);

    /* the instance is changed, the graph is not */
    run.kernelParams = new_params;
    OK(cuGraphExecKernelNodeSetParams(exec, kernel, &run));
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(read_word(other), 20);
    OK(cuGraphNodeSetEnabled(exec, kernel, 0));
    OK(cuGraphNodeGetEnabled(exec, kernel, &enabled));
    assert_int_equal(enabled, 0);
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(read_word(other), 11);
    CUDA_KERNEL_NODE_PARAMS back;
    OK(cuGraphKernelNodeGetParams(kernel, &back));
    assert_ptr_equal(back.func, add);
    assert_int_equal(*(uint32_t *)back.kernelParams[1], 5);

    /* a copy, changed; taken over by the instance */
    OK(cuGraphClone(&copy, graph));
    OK(cuGraphNodeFindInClone(&found, set, copy));
    fill.value = 100;
    OK(cuGraphMemsetNodeSetParams(found, &fill));
    CUgraphExecUpdateResultInfo info;
    OK(cuGraphNodeSetEnabled(exec, kernel, 1));
    OK(cuGraphExecUpdate(exec, copy, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphLaunch(exec, NULL));
    assert_int_equal(read_word(other), 106);
    OK(cuGraphDestroyNode(found));
    WANT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, copy, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    assert_int_equal(calls, 4);
    OK(cuGraphDestroy(copy));
    OK(cuGraphDestroy(graph));
    OK(cuGraphExecDestroy(exec));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependencies(set, NULL, NULL, &count));
}

/* Events in graphs; a cluster as a node attribute. */
static void test_events_and_attributes(void **state)
{
    (void)state;
    CUfunction add = load(add_text, "add");
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode kernel, first, last;
    CUevent start, end;
    CUdeviceptr word;
    uint32_t one = 1;
    float ms = -1;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    void *params[] = {&word, &one};
    CUDA_KERNEL_NODE_PARAMS run = {.func = add,
                                   .gridDimX = 6,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = params};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEventRecordNode(&first, graph, NULL, 0, start));
    OK(cuGraphAddKernelNode(&kernel, graph, &first, 1, &run));
    OK(cuGraphAddEventRecordNode(&last, graph, &kernel, 1, end));
    CUlaunchAttributeValue value = {.clusterDim = {4, 1, 1}};
    WANT(CUDA_ERROR_INVALID_CLUSTER_SIZE,
         cuGraphKernelNodeSetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value)); /* 6 CTAs */
    value.clusterDim.x = 3;
    OK(cuGraphKernelNodeSetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    memset(&value, 0, sizeof value);
    OK(cuGraphKernelNodeGetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    assert_int_equal(value.clusterDim.x, 3);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&ms, start, end));
    assert_true(ms >= 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

static atomic_int destroyed;

static void CUDA_CB destroy(void *data)
{
    atomic_fetch_add(&destroyed, *(int *)data);
}

static void expect_destroyed(int wanted)
{
    for (int i = 0; i < 2000 && atomic_load(&destroyed) != wanted; i++)
        usleep(1000); /* the library calls it on a thread of its own */
    assert_int_equal(atomic_load(&destroyed), wanted);
}

/* A user object lives until the program, the graph, its copy and its instance have let it go. */
static void test_user_objects(void **state)
{
    static int one = 1, ten = 10;
    (void)state;
    CUuserObject object, moved;
    CUgraph graph, copy;
    CUgraphExec exec;
    CUgraphNode node;
    atomic_store(&destroyed, 0);
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuUserObjectCreate(&object, &one, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    WANT(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &one, destroy, 1, 0));
    OK(cuUserObjectCreate(&object, &one, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectCreate(&moved, &ten, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectRetain(object, 2));
    WANT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 4));
    OK(cuUserObjectRelease(object, 2));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 1));
    OK(cuGraphRetainUserObject(graph, object, 2, 0));
    OK(cuGraphRetainUserObject(graph, moved, 1, CU_GRAPH_USER_OBJECT_MOVE));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(graph, object, 1, 2));
    OK(cuGraphReleaseUserObject(graph, object, 1));
    OK(cuUserObjectRelease(object, 1));
    WANT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1)); /* the graph's is not the program's */
    WANT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(moved, 1));
    OK(cuGraphClone(&copy, graph));
    OK(cuGraphDestroy(graph));
    OK(cuGraphInstantiate(&exec, copy, 0));
    OK(cuGraphDestroy(copy));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    usleep(20000);
    assert_int_equal(atomic_load(&destroyed), 0);
    OK(cuGraphExecDestroy(exec));
    expect_destroyed(11);
    WANT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 1));
}

/* Memory that a graph allocates: by nodes, with a free node and without one, and captured. */
static void test_memory_nodes(void **state)
{
    (void)state;
    CUfunction add = load(add_text, "add");
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode allocate, set, launch, copy, give;
    CUdeviceptr out, back;
    CUstream stream;
    cuuint64_t used = 1;
    uint32_t n = 5;
    OK(cuMemAlloc(&out, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&graph, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
                                         .bytesize = 1000};
    OK(cuGraphAddMemAllocNode(&allocate, graph, NULL, 0, &memory));
    const CUdeviceptr inner = memory.dptr;
    assert_true(inner != 0);
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = inner, .value = 7, .elementSize = 4, .width = 1, .height = 1};
    void *params[] = {(void *)(uintptr_t)&inner, &n};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = add,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params};
    OK(cuGraphAddMemsetNode(&set, graph, &allocate, 1, &fill, NULL));
    OK(cuGraphAddKernelNode(&launch, graph, &set, 1, &kernel));
    const CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = inner,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = out,
                               .WidthInBytes = 4,
                               .Height = 1,
                               .Depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, graph, &launch, 1, &box, NULL));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuMemsetD8Async(inner + 4, 0, 996, stream));              /* the memory stays after the launch */
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* not freed yet */
    OK(cuMemFreeAsync(inner, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(read_word(out), 12);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 1000);
    OK(cuMemFree(inner));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
    OK(cuGraphExecDestroy(exec));
    /* With a free node it can be launched again and again. */
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&give, graph, &copy, 1, out));
    OK(cuGraphAddMemFreeNode(&give, graph, &copy, 1, inner));
    OK(cuGraphMemFreeNodeGetParams(give, &back));
    assert_int_equal(back, inner);
    OK(cuGraphMemAllocNodeGetParams(allocate, &memory));
    assert_int_equal(memory.bytesize, 1000);
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&give, graph, &give, 1, inner)); /* freed already */
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(read_word(out), 12);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(inner));
    /* It has one instance, and cannot be cloned or cut; a graph without memory can. */
    CUgraph other;
    CUgraphExec second;
    CUgraphNode child, first;
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&other, graph));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(copy));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuGraphRemoveDependencies(graph, &launch, &copy, NULL, 1));
    OK(cuGraphCreate(&other, 0));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&child, other, NULL, 0, graph));
    OK(cuGraphAddEmptyNode(&first, other, NULL, 0));
    OK(cuGraphAddEmptyNode(&child, other, &first, 1));
    OK(cuGraphRemoveDependencies(other, &first, &child, NULL, 1));
    OK(cuGraphDestroyNode(child));
    OK(cuGraphDestroy(other));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    /* The same by capture. */
    CUdeviceptr captured;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuMemAllocAsync(&captured, 64, stream));
    OK(cuStreamWriteValue32(stream, out, 99, 0));
    OK(cuMemFreeAsync(captured, stream));
    OK(cuStreamEndCapture(stream, &graph));
    CUgraphNode nodes[4];
    CUgraphNodeType types[3];
    size_t count = 4;
    OK(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++)
        OK(cuGraphNodeGetType(nodes[i], &types[i]));
    assert_int_equal(types[0], CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    assert_int_equal(types[1], CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    assert_int_equal(types[2], CU_GRAPH_NODE_TYPE_MEM_FREE);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(read_word(out), 99);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuDeviceGraphMemTrim(0));
}

/* Batches, events of an instance's nodes, the form that takes any kind, child graphs of an instance, and the
   graph as text. */
static void test_more_updates(void **state)
{
    (void)state;
    CUgraph graph, child, other;
    CUgraphExec exec;
    CUgraphNode batch, record, inner, nested;
    CUdeviceptr words;
    CUevent one, two;
    OK(cuMemAlloc(&words, 8));
    OK(cuMemsetD32(words, 0, 2));
    OK(cuEventCreate(&one, 0));
    OK(cuEventCreate(&two, 0));
    CUstreamBatchMemOpParams ops[3];
    memset(ops, 0, sizeof ops);
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = words;
    ops[0].writeValue.value = 5;
    ops[1].operation = CU_STREAM_MEM_OP_BARRIER;
    ops[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[2].waitValue.address = words;
    ops[2].waitValue.value = 5;
    ops[2].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 3, .paramArray = ops};
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = words + 4, .value = 1, .elementSize = 4, .width = 1, .height = 1};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddMemsetNode(&nested, child, NULL, 0, &fill, NULL));
    OK(cuGraphAddBatchMemOpNode(&batch, graph, NULL, 0, &params));
    OK(cuGraphAddEventRecordNode(&record, graph, &batch, 1, one));
    OK(cuGraphEventRecordNodeSetEvent(record, two));
    OK(cuGraphAddChildGraphNode(&inner, graph, &record, 1, child));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(read_word(words), 5);
    assert_int_equal(read_word(words + 4), 1);
    WANT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&(float){0}, one, two)); /* `one` was never recorded */
    OK(cuGraphExecEventRecordNodeSetEvent(exec, record, one));
    ops[0].writeValue.value = 6;
    ops[2].waitValue.value = 6;
    OK(cuGraphExecBatchMemOpNodeSetParams(exec, batch, &params));
    OK(cuGraphCreate(&other, 0));
    fill.value = 2;
    OK(cuGraphAddMemsetNode(&nested, other, NULL, 0, &fill, NULL));
    OK(cuGraphExecChildGraphNodeSetParams(exec, inner, other));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(read_word(words), 6);
    assert_int_equal(read_word(words + 4), 2);
    OK(cuEventQuery(one));
    OK(cuGraphAddEmptyNode(&nested, other, NULL, 0));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuGraphExecChildGraphNodeSetParams(exec, inner, other)); /* another shape */
    ops[0].writeValue.value = 7;
    ops[2].waitValue.value = 7;
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    any.memOp.count = 3;
    any.memOp.paramArray = ops;
    OK(cuGraphExecNodeSetParams(exec, batch, &any));
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(exec, record, &any)); /* another kind */
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(read_word(words), 7);
    char path[] = "/tmp/clab-graph-XXXXXX", text[4096] = "";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    OK(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "digraph"));
    assert_non_null(strstr(text, "batch mem op"));
    assert_non_null(strstr(text, "->"));
    close(fd);
    unlink(path);
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(NULL, path, 0));
    WANT(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_capture),      IN_CONTEXT(test_capture_faults),
        IN_CONTEXT(test_by_hand),      IN_CONTEXT(test_events_and_attributes),
        IN_CONTEXT(test_user_objects), IN_CONTEXT(test_memory_nodes),
        IN_CONTEXT(test_more_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
