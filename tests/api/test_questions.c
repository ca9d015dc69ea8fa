/* The many small questions of the API: each asked once properly, and once with what it must refuse. */
#include <stdbool.h>

#include "api_test.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* old questions are asked too */
#include <cudaProfiler.h>

#define BAD(call) WANT(CUDA_ERROR_INVALID_VALUE, call)

static void test_device(void **state)
{
    (void)state;
    char name[64] = "", bus[32] = "";
    CUuuid uuid;
    CUdevice device = 9;
    CUdevprop properties;
    int value = 0, major = 0, minor = 0;
    size_t bytes = 0;
    OK(cuDeviceGet(&device, 0));
    assert_int_equal(device, 0);
    OK(cuDeviceGetName(name, 8, 0)); /* truncated, terminated */
    assert_int_equal(strlen(name), 7);
    BAD(cuDeviceGetName(name, 0, 0));
    OK(cuDeviceGetUuid(&uuid, 0));
    assert_memory_equal(uuid.bytes, "clusterlab", 10);
    OK(cuDeviceTotalMem(&bytes, 0));
    assert_true(bytes > (size_t)1 << 34);
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    assert_int_equal(major, 9);
    OK(cuDeviceGetProperties(&properties, 0));
    assert_int_equal(properties.SIMDWidth, 32);
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    OK(cuDeviceGetByPCIBusId(&device, bus));
    WANT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:01:00.0"));
    BAD(cuDeviceGetByPCIBusId(&device, "elsewhere"));
    OK(cuDeviceGetTexture1DLinearMaxWidth(&bytes, CU_AD_FORMAT_FLOAT, 4, 0));
    OK(cuDeviceCanAccessPeer(&value, 0, 0));
    assert_int_equal(value, 0);
    WANT(CUDA_ERROR_INVALID_DEVICE,
         cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    WANT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
    BAD(cuDeviceGetAttribute(&value, (CUdevice_attribute)5000, 0));
    OK(cuProfilerStart());
    OK(cuProfilerStop());
}

static void test_context(void **state)
{
    CUcontext context = *state, same = NULL;
    CUfunc_cache cache;
    CUexecAffinityParam affinity;
    CUdevice device = 9;
    unsigned version = 0;
    unsigned long long id = 0, other = 0;
    int least = 9, greatest = 9;
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
    OK(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_SHARED);
    BAD(cuCtxSetCacheConfig((CUfunc_cache)9));
    OK(cuCtxGetApiVersion(context, &version));
    assert_int_equal(version, 3020);
    OK(cuCtxGetId(context, &id));
    OK(cuCtxGetId(NULL, &other));
    assert_true(id == other && id != 0);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_true(least == 0 && greatest < 0);
    OK(cuCtxResetPersistingL2Cache());
    OK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    assert_int_equal(affinity.param.smCount.val, 132);
    WANT(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&affinity, (CUexecAffinityType)5));
    OK(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
    BAD(cuCtxSetFlags(0x40000));
    OK(cuCtxAttach(&same, 0));
    assert_ptr_equal(same, context);
    WANT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(context, 0));
    WANT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(context));
}

static void test_stream(void **state)
{
    CUcontext context = *state, of = NULL;
    CUstream stream, other;
    CUgreenCtx green;
    CUdevice device = 9;
    CUstreamAttrValue value;
    unsigned flags = 9;
    int priority = 9;
    unsigned long long id = 0, second = 0;
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -2));
    OK(cuStreamCreate(&other, 0));
    OK(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, -2);
    OK(cuStreamGetId(stream, &id));
    OK(cuStreamGetId(other, &second));
    assert_true(id != second);
    OK(cuStreamGetDevice(stream, &device));
    assert_int_equal(device, 0);
    OK(cuStreamGetCtx(stream, &of));
    assert_ptr_equal(of, context);
    OK(cuStreamGetGreenCtx(stream, &green));
    assert_null(green);
    memset(&value, 0, sizeof value);
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    OK(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    OK(cuStreamCopyAttributes(other, stream));
    OK(cuStreamGetAttribute(other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    assert_int_equal(value.syncPolicy, CU_SYNC_POLICY_YIELD);
    value.priority = -3;
    OK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    assert_int_equal(value.priority, -3);
    BAD(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    BAD(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    BAD(cuStreamGetPriority(stream, NULL));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags((CUstream)(uintptr_t)0x5550, &flags));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags((CUstream)context, &flags)); /* of another kind */

    /* a batch: write, wait for it, a barrier */
    CUdeviceptr word;
    OK(cuMemAlloc(&word, 16));
    OK(cuMemsetD8(word, 0, 16));
    CUstreamBatchMemOpParams batch[4] = {
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                        .address = word,
                        .value64 = UINT64_C(1) << 40}},
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                       .address = word,
                       .value64 = UINT64_C(1) << 40,
                       .flags = CU_STREAM_WAIT_VALUE_EQ}},
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                       .address = word + 4,
                       .value = 0x300,
                       .flags = CU_STREAM_WAIT_VALUE_AND}},
        {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER}},
    };
    OK(cuStreamBatchMemOp(stream, 4, batch, 0));
    OK(cuStreamSynchronize(stream));
    WANT(CUDA_ERROR_NOT_SUPPORTED,
         cuStreamWaitValue64(stream, word + 8, 0, CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH));
    OK(cuStreamWaitValue64(stream, word + 8, 0, CU_STREAM_WAIT_VALUE_NOR));
    OK(cuStreamWriteValue64(other, word + 8, 1, 0));
    batch[0].operation = (CUstreamBatchMemOpType)77;
    BAD(cuStreamBatchMemOp(stream, 1, batch, 0));
    BAD(cuStreamBatchMemOp(stream, 1, NULL, 0));
    OK(cuStreamDestroy(other));
}

static void test_function(void **state)
{
    (void)state;
    CUfunction function =
        load(HEADER ".visible .entry e(.param .u64 a, .param .align 8 .b8 b[12], .param .u8 c)\n"
                    "{ .shared .align 4 .b8 s[1008]; .reg .b32 r; mov.u32 r, s; st.shared.u32 [r], r;\n"
                    "  ret; }\n",
             "e");
    CUfunctionLoadingState loading;
    CUmodule module;
    size_t offset = 0, size = 0, available = 0;
    int value = 0, blocks = 0;
    OK(cuFuncGetParamInfo(function, 1, &offset, &size));
    assert_true(offset == 8 && size == 12);
    OK(cuFuncGetParamInfo(function, 2, &offset, NULL));
    assert_int_equal(offset, 20);
    BAD(cuFuncGetParamInfo(function, 3, &offset, &size));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 1008);
    OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
    BAD(cuFuncSetCacheConfig(function, (CUfunc_cache)7));
    OK(cuFuncLoad(function));
    OK(cuFuncIsLoaded(&loading, function));
    assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_LOADED);
    OK(cuFuncGetModule(&module, function));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function));
    assert_int_equal(value, 50);
    BAD(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 32));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 128, 0,
                                                            CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    assert_int_equal(blocks, 16);
    BAD(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 128, 0, 8));
    OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&value, &blocks, function, NULL, 0, 256, 0));
    assert_int_equal(blocks, 256);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&available, function, 4, 128));
    assert_true(available > 40000 && available <= 48 * 1024);
    BAD(cuOccupancyAvailableDynamicSMemPerBlock(&available, function, 40, 128));
    /* clusters by function attribute: all dimensions or none */
    CUlaunchConfig config = {
        .gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    uint64_t a = 0, b[2] = {0};
    uint8_t c = 0;
    void *params[] = {&a, b, &c};
    int clusters = 0;
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
    WANT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, function, params, NULL));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
    OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
    OK(cuLaunchKernelEx(&config, function, params, NULL));
    OK(cuOccupancyMaxActiveClusters(&clusters, function, &config));
    assert_true(clusters > 0);
    config.gridDimX = 5;
    WANT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, function, params, NULL));
    /* attributes of a launch that are refused by name */
    config.gridDimX = 4;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
    config.attrs = &attribute;
    config.numAttrs = 1;
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernelEx(&config, function, params, NULL));
    OK(cuEventCreate(&attribute.value.programmaticEvent.event, CU_EVENT_DISABLE_TIMING));
    OK(cuLaunchKernelEx(&config, function, params, NULL));
    OK(cuEventDestroy(attribute.value.programmaticEvent.event));
    attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernelEx(&config, function, params, NULL));
    attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, function, params, NULL));
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attribute.value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    OK(cuLaunchKernelEx(&config, function, params, NULL));
    attribute.value.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)9;
    BAD(cuLaunchKernelEx(&config, function, params, NULL));
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    OK(cuLaunchKernelEx(&config, function, params, NULL));
    OK(cuCtxSynchronize());
}

static void test_copies(void **state)
{
    CUcontext context = *state;
    CUdeviceptr a, b;
    CUstream stream;
    uint32_t host[16] = {1, 2, 3}, back[16] = {0};
    OK(cuMemAlloc(&a, 64));
    OK(cuMemAlloc(&b, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyHtoD(a, host, 64));
    OK(cuMemcpyPeer(b, context, a, context, 64));
    OK(cuMemcpyPeerAsync(b, context, a, context, 64, stream));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(b, (CUcontext)stream, a, context, 64));
    OK(cuStreamSynchronize(stream));
    CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = b,
                               .srcPitch = 16,
                               .dstMemoryType = CU_MEMORYTYPE_HOST,
                               .dstHost = back,
                               .dstPitch = 16,
                               .WidthInBytes = 16,
                               .Height = 4,
                               .Depth = 1};
    OK(cuMemcpy3DPeer(&peer));
    assert_memory_equal(back, host, 64);
    OK(cuMemcpy3DPeerAsync(&peer, stream));
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = a,
                         .srcPitch = 16,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = b,
                         .dstPitch = 16,
                         .WidthInBytes = 16,
                         .Height = 4,
                         .Depth = 1};
    OK(cuMemcpy3DAsync(&box, stream));
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a,
                          .srcPitch = 16,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = b,
                          .dstPitch = 16,
                          .WidthInBytes = 16,
                          .Height = 4};
    OK(cuMemcpy2DAsync(&rows, stream));
    OK(cuMemcpy2DUnaligned(&rows));
    BAD(cuMemcpy2D(NULL));
    BAD(cuMemcpy3D(NULL));
    BAD(cuMemcpy3DPeer(NULL));
    OK(cuMemcpyAsync(b, a, 64, stream));
    CUdeviceptr to[] = {b, b + 32}, from[] = {a + 32, a};
    size_t sizes[] = {32, 32}, index = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    OK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
    BAD(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, NULL));
    OK(cuMemcpyDtoHAsync(back, b, 64, stream));
    assert_int_equal(back[8], 1);
    OK(cuStreamSynchronize(stream));
    OK(cuMemsetD16Async(a, 5, 8, stream));
    OK(cuMemsetD2D16Async(a, 16, 5, 4, 4, stream));
    OK(cuMemsetD2D8Async(a, 16, 5, 4, 4, stream));
    OK(cuStreamDestroy(stream));
}

static void test_graph_questions(void **state)
{
    (void)state;
    CUfunction function = load(HEADER ".visible .entry e() { ret; }\n", "e");
    CUgraph graph, to_graph;
    CUgraphExec exec;
    CUgraphNode a, b, c, nodes[4];
    CUgraphEdgeData data[4];
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUstream stream;
    CUstreamCaptureStatus status;
    const CUgraphNode *lent = NULL;
    CUevent event, found;
    cuuint64_t id = 0, flags = 9;
    size_t count = 0;
    OK(cuGraphCreate(&graph, 0));
    params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = function,
                                                 .gridDimX = 1,
                                                 .gridDimY = 1,
                                                 .gridDimZ = 1,
                                                 .blockDimX = 1,
                                                 .blockDimY = 1,
                                                 .blockDimZ = 1};
    OK(cuGraphAddNode(&a, graph, NULL, NULL, 0, &params));
    OK(cuEventCreate(&event, 0));
    params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
    OK(cuGraphAddNode(&b, graph, &a, NULL, 1, &params));
    OK(cuGraphEventRecordNodeGetEvent(b, &found));
    assert_ptr_equal(found, event);
    params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    OK(cuGraphAddNode(&c, graph, &a, NULL, 1, &params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&c, graph, &a, NULL, 1, &params)); /* no handle */
    count = 4;
    OK(cuGraphNodeGetDependentNodes(a, nodes, data, &count));
    assert_int_equal(count, 2);
    assert_ptr_equal(nodes[0], b);
    count = 4;
    OK(cuGraphNodeGetDependencies(b, nodes, data, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(nodes[0], a);
    data[0] = (CUgraphEdgeData){.type = 1};
    WANT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &b, &c, data, 1));
    OK(cuGraphRemoveDependencies(graph, &a, &c, NULL, 1));
    OK(cuGraphKernelNodeCopyAttributes(a, a));
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
    OK(cuGraphInstantiateWithParams(&exec, graph, &how));
    assert_int_equal(how.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
    OK(cuGraphExecGetFlags(exec, &flags));
    assert_int_equal(flags, 0);    /* the H200 forgets it */
    WANT(CUDA_ERROR_INVALID_VALUE, /* there is an event in it */
         cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
    OK(cuGraphUpload(exec, NULL));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuEventSynchronize(event));

    /* capture into it, from `a` on */
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCaptureToGraph(stream, graph, &a, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroy(graph)); /* in use */
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamGetCaptureInfo(stream, &status, &id, &to_graph, &lent, NULL, &count));
    assert_ptr_equal(to_graph, graph);
    assert_int_equal(count, 1);
    nodes[0] = lent[0];
    OK(cuStreamUpdateCaptureDependencies(stream, &b, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, &count));
    assert_int_equal(count, 2);
    OK(cuStreamUpdateCaptureDependencies(stream, nodes, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamEndCapture(stream, &to_graph));
    assert_ptr_equal(to_graph, graph);
    WANT(CUDA_ERROR_ILLEGAL_STATE,
         cuStreamUpdateCaptureDependencies(stream, nodes, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(stream));
}

/* Everything that has a name is answered: what is not emulated says so, and harms nothing. */
static void test_not_emulated(void **state)
{
    (void)state;
    CUgraphicsResource resource = NULL;
    CUexternalMemory memory;
    CUmemGenericAllocationHandle handle = 0;
    CUarrayMapInfo map = {0};
    WANT(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(resource));
    WANT(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&memory, NULL));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(&handle, NULL));
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuMemMapArrayAsync(&map, 1, NULL)); /* data/not_emulated.txt */
}

/* The launch calls of CUDA 3. */
static void test_old_launch(void **state)
{
    (void)state;
    CUfunction function = load(HEADER ".visible .entry put(.param .u64 p, .param .u32 a, .param .f32 b)\n{\n"
                                      ".reg .b64 %a;\n.reg .b32 %v, %w, %n;\nld.param.u64 %a, [p];\n"
                                      "ld.param.b32 %v, [a];\nld.param.b32 %w, [b];\nmov.u32 %n, %nctaid.y;\n"
                                      "add.u32 %v, %v, %n;\nmov.u32 %n, %ntid.x;\nadd.u32 %v, %v, %n;\n"
                                      "st.global.v2.b32 [%a], {%v, %w};\nret;\n}\n",
                               "put");
    CUdeviceptr out;
    uint32_t words[2];
    float half = 0.5f;
    OK(cuMemAlloc(&out, 8));
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunch(function)); /* no block shape yet */
    OK(cuFuncSetBlockShape(function, 32, 1, 1));
    WANT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(function, 1024, 2, 1));
    OK(cuFuncSetSharedSize(function, 64));
    OK(cuParamSetv(function, 0, &out, sizeof out));
    OK(cuParamSeti(function, 8, 1000));
    OK(cuParamSetf(function, 12, half));
    OK(cuParamSetSize(function, 16));
    OK(cuParamSeti(function, 5000, 0)); /* beyond what is passed */
    WANT(CUDA_ERROR_INVALID_VALUE, cuParamSeti(function, 32762, 0));
    OK(cuLaunchGrid(function, 1, 3));
    OK(cuMemcpyDtoH(words, out, 8));
    assert_int_equal(words[0], 1035);
    assert_memory_equal(&words[1], &half, 4);
    OK(cuMemFree(out));
}

static void test_advice(void **state)
{
    (void)state;
    CUdeviceptr managed, plain;
    int value = 9, devices[3] = {9, 9, 9};
    const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                        device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAlloc(&plain, 64));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, 4096));
    assert_int_equal(value, CU_DEVICE_INVALID);
    OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    OK(cuMemPrefetchAsync(managed, 4096, device, 0, NULL));
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 4096));
    assert_int_equal(value, 1);
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, managed, 8));
    assert_int_equal(value, CU_DEVICE_CPU);
    OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed, 8));
    assert_int_equal(value, 0);
    OK(cuMemRangeGetAttribute(devices, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, 8));
    assert_int_equal(devices[0], 0);
    assert_int_equal(devices[1], CU_DEVICE_INVALID);
    assert_int_equal(devices[2], CU_DEVICE_INVALID);
    OK(cuMemAdvise(managed, 4096, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
    OK(cuMemRangeGetAttribute(devices, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed, 8));
    assert_int_equal(devices[0], CU_DEVICE_INVALID);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(managed, 4096, (CUmem_advise)9, device));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(plain, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuMemRangeGetAttribute(&value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 4096));
    OK(cuMemFree(managed));
    OK(cuMemFree(plain));
}

/* Pools by location, settings of core dumps, events of a context. */
static void test_small_questions(void **state)
{
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUmemoryPool one, two;
    OK(cuMemGetDefaultMemPool(&one, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuDeviceGetDefaultMemPool(&two, 0));
    assert_ptr_equal(one, two);
    OK(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, one));
    OK(cuMemGetMemPool(&two, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(one, two);
    OK(cuMemGetMemPool(&two, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_not_equal(one, two);
    host.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&two, &host, CU_MEM_ALLOCATION_TYPE_PINNED));

    char name[64] = "", long_enough[1024];
    size_t bytes = 8;
    bool on = true;
    OK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, "dump.bin", &bytes));
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &bytes));
    assert_int_equal(bytes, 1024); /* the longest, whatever is set: so the H200 */
    bytes = sizeof name;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, name, &bytes));
    assert_string_equal(name, "dump.bin");
    bytes = 2;
    WANT(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, name, &bytes));
    bytes = sizeof on;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &bytes));
    assert_false(on);
    bytes = sizeof long_enough;
    WANT(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute((CUcoredumpSettings)99, long_enough, &bytes));

    CUstream stream, other;
    CUevent event;
    CUdeviceptr word;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuCtxRecordEvent(*state, event));
    WANT(CUDA_ERROR_NOT_READY, cuEventQuery(event));    /* the stream waits for the word */
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING)); /* the legacy stream waits too */
    OK(cuStreamWriteValue32(other, word, 1, 0));
    OK(cuEventSynchronize(event));
    OK(cuCtxWaitEvent(*state, event));
    OK(cuCtxSynchronize());
    WANT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(*state, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_device),          IN_CONTEXT(test_context),    IN_CONTEXT(test_stream),
        IN_CONTEXT(test_function),        IN_CONTEXT(test_copies),     IN_CONTEXT(test_graph_questions),
        IN_CONTEXT(test_not_emulated),    IN_CONTEXT(test_old_launch), IN_CONTEXT(test_advice),
        IN_CONTEXT(test_small_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
