/* Capture of several streams; graphs: what their calls refuse; user objects. */
#include "ask.h"

static size_t count_nodes(CUgraph graph)
{
    size_t count = 0;
    if (graph != NULL)
        cuGraphGetNodes(graph, NULL, &count);
    return count;
}

static void end(const char *name, CUstream stream)
{
    CUgraph graph = NULL;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    ASKF(name, result, " %s, %zu nodes", graph == NULL ? "NULL" : "graph", count_nodes(graph));
}

static int status(CUstream stream)
{
    t.status = (CUstreamCaptureStatus)9;
    cuStreamIsCapturing(stream, &t.status);
    return (int)t.status;
}

void section_capture(void)
{
    if (!ask_setup())
        return;
    ASK("begin NULL stream", cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK("begin mode 3", cuStreamBeginCapture(o.stream, (CUstreamCaptureMode)3));
    ASK("end of none", cuStreamEndCapture(o.stream, &t.graph));
    ASK("end NULL graph of none", cuStreamEndCapture(o.stream, NULL));
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASKF("end NULL graph", cuStreamEndCapture(o.stream, NULL), " %d", status(o.stream));
    end("end after that", o.stream);
    /* Events across streams. */
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK("wait for an event from before", cuStreamWaitEvent(o.stream, o.untimed, 0));
    end("end after waiting for one from before", o.stream);
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK("record", cuEventRecord(o.event, o.stream));
    ASK("elapsed of a captured one", cuEventElapsedTime(&t.ms, o.event, o.second));
    ASK("query of it", cuEventQuery(o.event));
    ASK("synchronize with it", cuEventSynchronize(o.event));
    ASKF("fork", cuStreamWaitEvent(o.other, o.event, 0), " %d", status(o.other));
    ASK("legacy waits for it", cuStreamWaitEvent(NULL, o.event, 0));
    ASK("query the forked", cuStreamQuery(o.other));
    end("end of the forked", o.other);
    end("end of the first", o.stream);
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecord(o.event, o.stream));
    MUST(cuStreamWaitEvent(o.other, o.event, 0));
    ASK("launch in the forked", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.other, NULL, NULL));
    ASK("record in the forked", cuEventRecord(o.second, o.other));
    ASK("join", cuStreamWaitEvent(o.stream, o.second, 0));
    size_t dependencies = 9;
    ASKF("info", cuStreamGetCaptureInfo(o.stream, &t.status, NULL, NULL, NULL, NULL, &dependencies),
         " %d, %zu", (int)t.status, dependencies);
    ASK("launch after the join", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASK("begin in the forked", cuStreamBeginCapture(o.other, CU_STREAM_CAPTURE_MODE_RELAXED));
    end("end joined", o.stream);
    ASKF("forked after the end", CUDA_SUCCESS, " %d", status(o.other));
    /* Two captures meet. */
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamBeginCapture(o.other, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecord(o.event, o.stream));
    ASKF("wait for an event of another capture", cuStreamWaitEvent(o.other, o.event, 0), " %d %d",
         status(o.stream), status(o.other));
    end("end of the first capture", o.stream);
    end("end of the second capture", o.other);
    /* Dependencies by hand. */
    CUgraph graph = NULL;
    const CUgraphNode *nodes = NULL;
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASKF("info of everything",
         cuStreamGetCaptureInfo(o.stream, &t.status, NULL, &graph, &nodes, NULL, &dependencies),
         " %d %zu %zu", (int)t.status, count_nodes(graph), dependencies);
    CUgraphNode own = NULL;
    ASK("add to the graph in capture", cuGraphAddEmptyNode(&own, graph, NULL, 0));
    for (unsigned flags = 0; flags < 4; flags++)
        ASKF(ask_name("update dependencies, flags %u", flags),
             cuStreamUpdateCaptureDependencies(o.stream, &own, NULL, 1, flags), " %d",
             (cuStreamGetCaptureInfo(o.stream, &t.status, NULL, NULL, NULL, NULL, &dependencies),
              (int)dependencies));
    ASK("update to none",
        cuStreamUpdateCaptureDependencies(o.stream, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ASK("update with NULL",
        cuStreamUpdateCaptureDependencies(o.stream, NULL, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ASK("update with another graph's node",
        cuStreamUpdateCaptureDependencies(o.stream, &o.kernel_node, NULL, 1,
                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ASK("update of one not capturing",
        cuStreamUpdateCaptureDependencies(o.other, &own, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ASK("destroy the graph in capture", cuGraphDestroy(graph));
    ASK("instantiate the graph in capture", cuGraphInstantiate(&t.exec, graph, 0));
    end("end by hand", o.stream);
    /* Into a graph that is there. */
    ASK("capture into", cuStreamBeginCaptureToGraph(o.stream, o.graph, &o.host_node, NULL, 1,
                                                    CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK("launch into it", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    graph = NULL;
    ASKF("end of capture into", cuStreamEndCapture(o.stream, &graph), " %d %zu", graph == o.graph,
         count_nodes(o.graph));
    ASK("capture into NULL",
        cuStreamBeginCaptureToGraph(o.stream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK("capture into, NULL dependencies",
        cuStreamBeginCaptureToGraph(o.stream, o.graph, NULL, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    /* Modes of the thread. */
    for (int thread = 0; thread < 3; thread++)
        for (int mode = 0; mode < 3; mode++) {
            CUstreamCaptureMode exchanged = (CUstreamCaptureMode)thread;
            MUST(cuThreadExchangeStreamCaptureMode(&exchanged));
            MUST(cuStreamBeginCapture(o.stream, (CUstreamCaptureMode)mode));
            ASKF(ask_name("thread mode %d, capture mode %d: alloc", thread, mode), cuMemAlloc(&t.pointer, 64),
                 " %d", status(o.stream));
            CUgraph made = NULL;
            ASK(ask_name("thread mode %d, capture mode %d: end", thread, mode),
                cuStreamEndCapture(o.stream, &made));
            MUST(cuThreadExchangeStreamCaptureMode(&exchanged));
        }
    /* What is captured becomes which node. */
    MUST(cuStreamBeginCapture(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL);
    cuMemcpyHtoDAsync(o.device, o.pinned, 64, o.stream);
    cuMemcpyDtoHAsync(t.bytes, o.device, 64, o.stream);
    cuMemsetD8Async(o.device, 1, 64, o.stream);
    cuMemsetD2D32Async(o.device, 64, 1, 8, 4, o.stream);
    cuLaunchHostFunc(o.stream, ask_nothing, NULL);
    cuEventRecordWithFlags(o.event, o.stream, CU_EVENT_RECORD_EXTERNAL);
    cuStreamWaitEvent(o.stream, o.untimed, CU_EVENT_WAIT_EXTERNAL);
    cuMemAllocAsync(&t.pointer, 64, o.stream);
    cuMemFreeAsync(t.pointer, o.stream);
    cuStreamWriteValue32(o.stream, o.device, 1, 0);
    cuMemcpyHtoDAsync(o.device, o.pinned, 0, o.stream);
    cuMemsetD8Async(o.device, 1, 0, o.stream);
    graph = NULL;
    MUST(cuStreamEndCapture(o.stream, &graph));
    CUgraphNode made[32];
    size_t count = COUNT(made);
    ASKF("captured nodes", cuGraphGetNodes(graph, made, &count), " %zu", count);
    for (size_t i = 0; i < count && i < COUNT(made); i++) {
        CUgraphNodeType type = (CUgraphNodeType)99;
        ASKF(ask_name("captured node %zu", i), cuGraphNodeGetType(made[i], &type), " %d", (int)type);
    }
}

void section_graph(void)
{
    CUgraph graph = NULL, clone = NULL;
    CUgraphNode a = NULL, b = NULL, c = NULL, many[8];
    CUgraphExec exec = NULL;
    size_t count = 8;
    if (!ask_setup())
        return;
    ASK("create NULL", cuGraphCreate(NULL, 0));
    ASK("create flags", cuGraphCreate(&graph, 1));
    ASK("create", cuGraphCreate(&graph, 0));
    ASK("empty node NULL", cuGraphAddEmptyNode(NULL, graph, NULL, 0));
    ASK("empty node of NULL", cuGraphAddEmptyNode(&a, NULL, NULL, 0));
    ASK("empty node NULL dependencies", cuGraphAddEmptyNode(&a, graph, NULL, 1));
    ASK("empty node after another graph's", cuGraphAddEmptyNode(&a, graph, &o.kernel_node, 1));
    ASK("empty node a", cuGraphAddEmptyNode(&a, graph, NULL, 0));
    ASK("empty node b", cuGraphAddEmptyNode(&b, graph, &a, 1));
    ASK("empty node c", cuGraphAddEmptyNode(&c, graph, (CUgraphNode[]){a, b}, 2));
    ASK("empty node after NULL", cuGraphAddEmptyNode(&t.node, graph, (CUgraphNode[]){NULL}, 1));
    ASK("dependencies twice", cuGraphAddDependencies(graph, &a, &b, NULL, 1));
    ASK("dependencies of itself", cuGraphAddDependencies(graph, &a, &a, NULL, 1));
    ASK("dependencies of none", cuGraphAddDependencies(graph, NULL, NULL, NULL, 0));
    ASK("dependencies NULL", cuGraphAddDependencies(graph, NULL, NULL, NULL, 1));
    ASK("dependencies across graphs", cuGraphAddDependencies(graph, &a, &o.kernel_node, NULL, 1));
    ASK("dependencies of NULL graph", cuGraphAddDependencies(NULL, &a, &b, NULL, 1));
    ASK("remove missing dependencies", cuGraphRemoveDependencies(graph, &b, &a, NULL, 1));
    ASK("remove dependencies", cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    ASK("remove them again", cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
    ASKF("nodes NULL", cuGraphGetNodes(graph, NULL, &count), " %zu", count);
    count = 2;
    ASKF("nodes, two", cuGraphGetNodes(graph, many, &count), " %zu", count);
    count = 8;
    memset(many, 1, sizeof many);
    ASKF("nodes, eight", cuGraphGetNodes(graph, many, &count), " %zu %d", count, many[7] == NULL);
    count = 0;
    ASKF("nodes, none", cuGraphGetNodes(graph, many, &count), " %zu", count);
    ASK("nodes NULL count", cuGraphGetNodes(graph, many, NULL));
    ASK("nodes of NULL", cuGraphGetNodes(NULL, many, &count));
    count = 8;
    ASKF("roots", cuGraphGetRootNodes(graph, many, &count), " %zu", count);
    count = 8;
    ASKF("edges", cuGraphGetEdges(graph, NULL, NULL, NULL, &count), " %zu", count);
    ASK("edges NULL count", cuGraphGetEdges(graph, NULL, NULL, NULL, NULL));
    count = 8;
    ASKF("dependencies of c", cuGraphNodeGetDependencies(c, NULL, NULL, &count), " %zu", count);
    ASKF("dependents of a", cuGraphNodeGetDependentNodes(a, NULL, NULL, &count), " %zu", count);
    ASK("dependencies of NULL node", cuGraphNodeGetDependencies(NULL, NULL, NULL, &count));
    ASK("type NULL", cuGraphNodeGetType(a, NULL));
    ASK("type of NULL", cuGraphNodeGetType(NULL, (CUgraphNodeType *)&t.i));
    ASK("destroy node NULL", cuGraphDestroyNode(NULL));
    ASKF("destroy node a", cuGraphDestroyNode(a), " %zu", count_nodes(graph));
    /* parameters */
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = o.plain,
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1};
    ASK("kernel NULL params", cuGraphAddKernelNode(&t.node, graph, NULL, 0, NULL));
    ASK("kernel", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.func = NULL;
    ASK("kernel of NULL", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.func = o.plain, kernel.gridDimX = 0;
    ASK("kernel grid 0", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.gridDimX = 1, kernel.blockDimX = 2048;
    ASK("kernel block 2048", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.blockDimX = 1, kernel.sharedMemBytes = 1 << 20;
    ASK("kernel shared 1 MiB", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.sharedMemBytes = 0, kernel.func = o.two_params;
    ASK("kernel without its params", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.kernelParams = ask_params;
    ASK("kernel with its params", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    kernel.extra = (void *[]){CU_LAUNCH_PARAM_END};
    ASK("kernel with both", cuGraphAddKernelNode(&t.node, graph, NULL, 0, &kernel));
    CUDA_MEMSET_NODE_PARAMS set = {.dst = o.device, .elementSize = 4, .width = 16, .height = 1};
    ASK("set NULL", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, NULL, o.context));
    ASK("set NULL context", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, NULL));
    for (unsigned size = 0; size < 9; size++) {
        set.elementSize = size;
        ASK(ask_name("set elements of %u", size),
            cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    }
    set.elementSize = 4, set.width = 0;
    ASK("set width 0", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.width = 16, set.height = 0;
    ASK("set height 0", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.height = 1, set.dst = o.device + 2;
    ASK("set misaligned", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.dst = 0;
    ASK("set NULL target", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.dst = (CUdeviceptr)(uintptr_t)&t;
    ASK("set the stack", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.dst = o.device, set.height = 2, set.pitch = 8;
    ASK("set pitch below width", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    set.elementSize = 1, set.height = 1, set.value = 0x1ff;
    ASK("set value beyond", cuGraphAddMemsetNode(&t.node, graph, NULL, 0, &set, o.context));
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = o.device,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = o.device + 4096,
                          .WidthInBytes = 64,
                          .Height = 1,
                          .Depth = 1};
    ASK("copy NULL", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, NULL, o.context));
    ASK("copy", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, o.context));
    ASK("copy NULL context", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, NULL));
    copy.WidthInBytes = 0;
    ASK("copy width 0", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, o.context));
    copy.WidthInBytes = 64, copy.Depth = 0;
    ASK("copy depth 0", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, o.context));
    copy.Depth = 1, copy.srcDevice = 0;
    ASK("copy from NULL", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, o.context));
    copy.srcDevice = o.device, copy.srcMemoryType = (CUmemorytype)0;
    ASK("copy from type 0", cuGraphAddMemcpyNode(&t.node, graph, NULL, 0, &copy, o.context));
    CUDA_HOST_NODE_PARAMS host = {.fn = NULL};
    ASK("host NULL function", cuGraphAddHostNode(&t.node, graph, NULL, 0, &host));
    ASK("host NULL", cuGraphAddHostNode(&t.node, graph, NULL, 0, NULL));
    ASK("event record NULL", cuGraphAddEventRecordNode(&t.node, graph, NULL, 0, NULL));
    ASK("event record", cuGraphAddEventRecordNode(&t.node, graph, NULL, 0, o.event));
    ASK("event wait NULL", cuGraphAddEventWaitNode(&t.node, graph, NULL, 0, NULL));
    ASK("child NULL", cuGraphAddChildGraphNode(&t.node, graph, NULL, 0, NULL));
    ASK("child itself", cuGraphAddChildGraphNode(&t.node, graph, NULL, 0, graph));
    ASK("child", cuGraphAddChildGraphNode(&t.node, graph, NULL, 0, o.graph));
    ASKF("child's graph", cuGraphChildGraphNodeGetGraph(t.node, &t.graph), " %zu", count_nodes(t.graph));
    ASK("child's graph of another kind", cuGraphChildGraphNodeGetGraph(o.kernel_node, &t.graph));
    /* reading and writing the parameters of the wrong kind of node */
    ASK("kernel params of a set", cuGraphKernelNodeGetParams(o.set_node, &kernel));
    ASK("set params of a kernel", cuGraphMemsetNodeGetParams(o.kernel_node, &set));
    ASK("copy params of a kernel", cuGraphMemcpyNodeGetParams(o.kernel_node, &copy));
    ASK("host params of a kernel", cuGraphHostNodeGetParams(o.kernel_node, &host));
    ASK("event of a kernel", cuGraphEventRecordNodeGetEvent(o.kernel_node, &t.event));
    ASKF("kernel params", cuGraphKernelNodeGetParams(o.kernel_node, &kernel), " %d %u %u %s",
         kernel.func == o.plain, kernel.gridDimX, kernel.blockDimX,
         kernel.kernelParams == NULL ? "NULL" : "params");
    ASKF("set params", cuGraphMemsetNodeGetParams(o.set_node, &set), " %d %u %zu %zu %zu %u",
         set.dst == o.device, set.elementSize, set.width, set.height, set.pitch, set.value);
    ASKF("copy params", cuGraphMemcpyNodeGetParams(o.copy_node, &copy), " %d %d %zu %zu %zu %zu",
         (int)copy.srcMemoryType, (int)copy.dstMemoryType, copy.WidthInBytes, copy.Height, copy.Depth,
         copy.srcPitch);
    ASKF("host params", cuGraphHostNodeGetParams(o.host_node, &host), " %d", host.fn == ask_nothing);
    ASK("kernel params NULL", cuGraphKernelNodeGetParams(o.kernel_node, NULL));
    for (int attribute = 0; attribute < 20; attribute++) {
        memset(t.bytes, 0xee, 128);
        ASKF(ask_name("kernel attribute %d", attribute),
             cuGraphKernelNodeGetAttribute(o.kernel_node, (CUkernelNodeAttrID)attribute,
                                           (CUkernelNodeAttrValue *)t.bytes),
             " %02x%02x%02x%02x", t.bytes[0], t.bytes[1], t.bytes[2], t.bytes[3]);
        memset(t.bytes, 0, 128);
        for (int value = 0; value < 3; value++) {
            t.bytes[0] = (unsigned char)value;
            if (attribute ==
                CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) /* then the graph cannot be cloned */
                continue;
            ASK(ask_name("kernel attribute %d set to %d", attribute, value),
                cuGraphKernelNodeSetAttribute(o.kernel_node, (CUkernelNodeAttrID)attribute,
                                              (CUkernelNodeAttrValue *)t.bytes));
        }
    }
    ASK("kernel attribute of a set",
        cuGraphKernelNodeGetAttribute(o.set_node, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY,
                                      (CUkernelNodeAttrValue *)t.bytes));
    ASK("kernel attributes copied to a set", cuGraphKernelNodeCopyAttributes(o.set_node, o.kernel_node));
    /* instances */
    ASK("instantiate NULL", cuGraphInstantiate(NULL, o.graph, 0));
    ASK("instantiate of NULL", cuGraphInstantiate(&exec, NULL, 0));
    for (unsigned long long flags = 1; flags < 64; flags *= 2)
        ASK(ask_name("instantiate flags %llu", flags), cuGraphInstantiate(&exec, o.graph, flags));
    CUDA_GRAPH_INSTANTIATE_PARAMS with = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                          .hUploadStream = o.stream};
    ASKF("instantiate with params", cuGraphInstantiateWithParams(&exec, o.graph, &with), " %d %d",
         (int)with.result_out, with.hErrNode_out == NULL);
    ASK("instantiate with NULL", cuGraphInstantiateWithParams(&exec, o.graph, NULL));
    ASK("launch NULL", cuGraphLaunch(NULL, o.stream));
    ASK("upload NULL", cuGraphUpload(NULL, o.stream));
    ASK("launch", cuGraphLaunch(exec, o.stream));
    ASK("launch on legacy", cuGraphLaunch(exec, NULL));
    ASK("launch on per thread", cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    ASK("finish", cuCtxSynchronize());
    cuuint64_t flags = 99;
    ASKF("exec flags", cuGraphExecGetFlags(exec, &flags), " %llu", (unsigned long long)flags);
    ASK("exec flags NULL", cuGraphExecGetFlags(exec, NULL));
    ASKF("enabled", cuGraphNodeGetEnabled(exec, o.kernel_node, &t.u), " %u", t.u);
    ASK("enabled of a host node", cuGraphNodeGetEnabled(exec, o.host_node, &t.u));
    ASK("set enabled of a host node", cuGraphNodeSetEnabled(exec, o.host_node, 0));
    ASK("set enabled 2", cuGraphNodeSetEnabled(exec, o.set_node, 2));
    ASK("set enabled of another graph's", cuGraphNodeSetEnabled(exec, b, 0));
    ASK("exec set params", cuGraphExecKernelNodeSetParams(exec, o.kernel_node, &kernel));
    kernel.func = o.small;
    ASK("exec set another function", cuGraphExecKernelNodeSetParams(exec, o.kernel_node, &kernel));
    ASK("exec set of another node", cuGraphExecKernelNodeSetParams(exec, o.set_node, &kernel));
    CUgraphExecUpdateResultInfo info = {0};
    ASKF("update by itself", cuGraphExecUpdate(exec, o.graph, &info), " %d", (int)info.result);
    info.result = (CUgraphExecUpdateResult)9;
    ASKF("update by another", cuGraphExecUpdate(exec, graph, &info), " %d", (int)info.result);
    ASK("update NULL", cuGraphExecUpdate(exec, NULL, &info));
    ASK("update NULL info", cuGraphExecUpdate(exec, o.graph, NULL));
    ASK("clone NULL", cuGraphClone(NULL, o.graph));
    ASK("clone of NULL", cuGraphClone(&clone, NULL));
    ASKF("clone", cuGraphClone(&clone, o.graph), " %zu", count_nodes(clone));
    ASKF("find in clone", cuGraphNodeFindInClone(&t.node, o.kernel_node, clone), " %d",
         t.node != o.kernel_node);
    ASK("find in the wrong clone", cuGraphNodeFindInClone(&t.node, b, clone));
    ASK("find in no clone", cuGraphNodeFindInClone(&t.node, o.kernel_node, o.graph));
    ASK("dot NULL", cuGraphDebugDotPrint(o.graph, NULL, 0));
    ASK("dot nowhere", cuGraphDebugDotPrint(o.graph, "/nonexistent-of-clusterlab/a.dot", 0));
    ASK("destroy", cuGraphDestroy(o.graph));
    ASK("launch after", cuGraphLaunch(exec, o.stream));
    ASK("exec destroy", cuGraphExecDestroy(exec));
    ASK("destroy NULL", cuGraphDestroy(NULL));
    ASK("exec destroy NULL", cuGraphExecDestroy(NULL));
    /* memory nodes */
    CUgraph memory = NULL;
    MUST(cuGraphCreate(&memory, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = 4096};
    ASKF("alloc node", cuGraphAddMemAllocNode(&a, memory, NULL, 0, &alloc), " %d", alloc.dptr != 0);
    ASK("alloc node NULL", cuGraphAddMemAllocNode(&b, memory, NULL, 0, NULL));
    ASK("free node of the stack's", cuGraphAddMemFreeNode(&b, memory, &a, 1, (CUdeviceptr)(uintptr_t)&t));
    ASK("free node of cuMemAlloc's", cuGraphAddMemFreeNode(&b, memory, &a, 1, o.device));
    ASK("free node not behind it", cuGraphAddMemFreeNode(&b, memory, NULL, 0, alloc.dptr));
    ASK("free node", cuGraphAddMemFreeNode(&b, memory, &a, 1, alloc.dptr));
    ASK("free node again", cuGraphAddMemFreeNode(&c, memory, &a, 1, alloc.dptr));
    ASK("memory graph clone", cuGraphClone(&clone, memory));
    ASK("memory graph as child", cuGraphAddChildGraphNode(&t.node, graph, NULL, 0, memory));
    ASK("memory graph destroy node", cuGraphDestroyNode(a));
    ASK("memory graph instantiate", cuGraphInstantiate(&exec, memory, 0));
    ASK("memory graph instantiate again", cuGraphInstantiate(&t.exec, memory, 0));
    ASK("memory graph launch", cuGraphLaunch(exec, o.stream));
    ASK("memory graph launch again", cuGraphLaunch(exec, o.stream));
    ASK("memory graph finish", cuStreamSynchronize(o.stream));
    ASK("cuMemFree of its memory", cuMemFree(alloc.dptr));
}

static int destroyed;

static void CUDA_CB count_destroyed(void *data)
{
    (void)data;
    destroyed++;
}

void section_user_object(void)
{
    CUuserObject object = NULL;
    CUgraph graph = NULL;
    if (!ask_setup())
        return;
    ASK("create NULL", cuUserObjectCreate(NULL, &t, count_destroyed, 1, 1));
    ASK("create NULL function", cuUserObjectCreate(&object, &t, NULL, 1, 1));
    ASK("create of 0", cuUserObjectCreate(&object, &t, count_destroyed, 0, 1));
    for (unsigned flags = 0; flags < 5; flags++)
        ASK(ask_name("create flags %u", flags), cuUserObjectCreate(&object, &t, count_destroyed, 1, flags));
    ASK("create of 2^31", cuUserObjectCreate(&object, &t, count_destroyed, 0x80000000u, 1));
    ASK("create of 2^31 - 1", cuUserObjectCreate(&object, &t, count_destroyed, 0x7fffffff, 1));
    ASK("create NULL data", cuUserObjectCreate(&object, NULL, count_destroyed, 1, 1));
    ASK("create", cuUserObjectCreate(&object, &t, count_destroyed, 2, 1));
    ASK("retain 0", cuUserObjectRetain(object, 0));
    ASK("retain NULL", cuUserObjectRetain(NULL, 1));
    ASK("retain", cuUserObjectRetain(object, 3));
    ASK("release 0", cuUserObjectRelease(object, 0));
    ASK("release NULL", cuUserObjectRelease(NULL, 1));
    ASK("release 2^31", cuUserObjectRelease(object, 0x80000000u));
    MUST(cuGraphCreate(&graph, 0));
    ASK("graph retains 0", cuGraphRetainUserObject(graph, object, 0, 0));
    for (unsigned flags = 0; flags < 4; flags++)
        ASK(ask_name("graph retains, flags %u", flags), cuGraphRetainUserObject(graph, object, 1, flags));
    ASK("graph retains NULL", cuGraphRetainUserObject(graph, NULL, 1, 0));
    ASK("NULL graph retains", cuGraphRetainUserObject(NULL, object, 1, 0));
    ASK("graph releases 1", cuGraphReleaseUserObject(graph, object, 1));
    ASK("graph releases what it has not", cuGraphReleaseUserObject(graph, o.object, 1));
    ASK("graph releases too many", cuGraphReleaseUserObject(graph, object, 5));
    ASKF("destroyed so far", CUDA_SUCCESS, " %d", destroyed);
}
