/* Handles of what is gone, and what kernels do that ends a context. */
#include "ask.h"

#include <pthread.h>

static void stale_stream(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    const CUstream s = o.other;
    MUST(cuStreamDestroy(s));
    ASK("destroy", cuStreamDestroy(s));
    ASK("synchronize", cuStreamSynchronize(s));
    ASK("query", cuStreamQuery(s));
    ASK("flags", cuStreamGetFlags(s, &t.u));
    ASK("set", cuMemsetD8Async(o.device, 0, 4, s));
    ASK("launch", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    ASK("record", cuEventRecord(o.event, s));
    ASK("wait", cuStreamWaitEvent(s, o.event, 0));
    ASK("host function", cuLaunchHostFunc(s, ask_nothing, NULL));
    ASK("alloc", cuMemAllocAsync(&t.pointer, 64, s));
    ASK("capture", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK("graph", cuGraphLaunch(o.exec, s));
    ASK("finish", cuCtxSynchronize());
}

static void stale_event(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    const CUevent e = o.second;
    MUST(cuEventDestroy(e));
    ASK("destroy", cuEventDestroy(e));
    ASK("synchronize", cuEventSynchronize(e));
    ASK("query", cuEventQuery(e));
    ASK("record", cuEventRecord(e, o.stream));
    ASK("wait", cuStreamWaitEvent(o.stream, e, 0));
    ASK("elapsed", cuEventElapsedTime(&t.ms, o.event, e));
    ASK("finish", cuCtxSynchronize());
}

static void stale_module(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    MUST(cuModuleUnload(o.module));
    ASK("unload", cuModuleUnload(o.module));
    ASK("function", cuModuleGetFunction(&t.function, o.module, "plain"));
    ASK("global", cuModuleGetGlobal(&t.pointer, &t.size, o.module, "counter"));
    ASK("launch", cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
    ASK("attribute", cuFuncGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, o.plain));
    ASK("occupancy", cuOccupancyMaxActiveBlocksPerMultiprocessor(&t.i, o.plain, 128, 0));
    ASK("graph with a node of it", cuGraphLaunch(o.exec, o.stream));
    ASK("finish", cuCtxSynchronize());
}

static void stale_library(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    MUST(cuLibraryUnload(o.library));
    ASK("unload", cuLibraryUnload(o.library));
    ASK("kernel", cuLibraryGetKernel(&t.kernel, o.library, "plain"));
    ASK("attribute", cuKernelGetAttribute(&t.i, CU_FUNC_ATTRIBUTE_NUM_REGS, o.kernel, 0));
    ASK("function", cuKernelGetFunction(&t.function, o.kernel));
    ASK("launch", cuLaunchKernel((CUfunction)o.kernel, 1, 1, 1, 1, 1, 1, 0, o.stream, ask_params, NULL));
}

static void stale_graph(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    MUST(cuGraphDestroyNode(o.host_node));
    ASK("destroy node", cuGraphDestroyNode(o.host_node));
    ASK("type of node", cuGraphNodeGetType(o.host_node, (CUgraphNodeType *)&t.i));
    ASK("dependency on node", cuGraphAddEmptyNode(&t.node, o.graph, &o.host_node, 1));
    MUST(cuGraphDestroy(o.graph));
    ASK("destroy", cuGraphDestroy(o.graph));
    ASK("nodes", cuGraphGetNodes(o.graph, NULL, &t.size));
    ASK("add", cuGraphAddEmptyNode(&t.node, o.graph, NULL, 0));
    ASK("instantiate", cuGraphInstantiate(&t.exec, o.graph, 0));
    ASK("type of its node", cuGraphNodeGetType(o.kernel_node, (CUgraphNodeType *)&t.i));
    MUST(cuGraphExecDestroy(o.exec));
    ASK("exec destroy", cuGraphExecDestroy(o.exec));
    ASK("exec launch", cuGraphLaunch(o.exec, o.stream));
    MUST(cuUserObjectRelease(o.object, 1));
    ASK("object release", cuUserObjectRelease(o.object, 1));
}

static void stale_others(const void *argument)
{
    (void)argument;
    if (!ask_setup())
        return;
    MUST(cuTexObjectDestroy(o.texture));
    ASK("texture destroy", cuTexObjectDestroy(o.texture));
    ASK("texture read", cuTexObjectGetResourceDesc((CUDA_RESOURCE_DESC *)t.bytes, o.texture));
    MUST(cuArrayDestroy(o.array));
    ASK("array destroy", cuArrayDestroy(o.array));
    ASK("array read", cuArrayGetDescriptor((CUDA_ARRAY_DESCRIPTOR *)t.bytes, o.array));
    ASK("array copy", cuMemcpyHtoA(o.array, 0, t.bytes, 64));
    MUST(cuMipmappedArrayDestroy(o.mipmap));
    ASK("mipmap destroy", cuMipmappedArrayDestroy(o.mipmap));
    ASK("mipmap level", cuMipmappedArrayGetLevel(&t.array, o.mipmap, 0));
    MUST(cuLinkDestroy(o.link));
    ASK("link destroy", cuLinkDestroy(o.link));
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool = NULL;
    MUST(cuMemPoolCreate(&pool, &properties));
    MUST(cuMemPoolDestroy(pool));
    ASK("pool destroy", cuMemPoolDestroy(pool));
    ASK("pool alloc", cuMemAllocFromPoolAsync(&t.pointer, 64, pool, o.stream));
    ASK("pool attribute", cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, t.bytes));
    MUST(cuMemFreeAsync(o.pooled, o.stream));
    ASK("freed in order: set", cuMemsetD8Async(o.pooled, 0, 16, o.stream));
    ASK("freed in order: free", cuMemFree(o.pooled));
    ASK("freed in order: attribute", cuPointerGetAttribute(&t.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, o.pooled));
    ASK("finish", cuCtxSynchronize());
}

static void stale_context(const void *argument)
{
    (void)argument;
    CUcontext made = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr memory = 0;
    CUmodule module = NULL;
    CUfunction function = NULL;
    if (!ask_context())
        return;
    MUST(cuCtxCreate(&made, NULL, 0, 0));
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuEventCreate(&event, 0));
    MUST(cuMemAlloc(&memory, 64));
    MUST(cuModuleLoadData(&module, ask_ptx));
    MUST(cuModuleGetFunction(&function, module, "plain"));
    MUST(cuCtxDestroy(made));
    ASK("current", cuCtxGetCurrent(&t.context));
    ASK("destroy", cuCtxDestroy(made));
    cuCtxSetCurrent(o.context);
    ASK("version", cuCtxGetApiVersion(made, &t.u));
    ASK("id", cuCtxGetId(made, &t.id));
    ASK("peer", cuCtxEnablePeerAccess(made, 0));
    ASK("memory", cuMemsetD8(memory, 0, 16));
    ASK("free", cuMemFree(memory));
    ASK("stream", cuStreamSynchronize(stream));
    ASK("stream destroy", cuStreamDestroy(stream));
    ASK("event", cuEventQuery(event));
    ASK("event destroy", cuEventDestroy(event));
    ASK("module", cuModuleGetFunction(&t.function, module, "plain"));
    ASK("module unload", cuModuleUnload(module));
    ASK("launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* Handles that never were. */
static void invented(const void *argument)
{
    (void)argument;
    static uint64_t zeros[512];
    void *const places[] = {zeros, (void *)(uintptr_t)0x10, (void *)(uintptr_t)0xdead0000};
    static const char *const names[] = {"zeros", "0x10", "0xdead0000"};
    if (!ask_setup())
        return;
    for (size_t i = 0; i < COUNT(places); i++) {
        void *const p = places[i];
        ASK(ask_name("%s context", names[i]), cuCtxSetCurrent(p));
        cuCtxSetCurrent(o.context);
        ASK(ask_name("%s context destroy", names[i]), cuCtxDestroy(p));
        ASK(ask_name("%s stream", names[i]), cuStreamSynchronize(p));
        ASK(ask_name("%s stream launch", names[i]),
            cuLaunchKernel(o.plain, 1, 1, 1, 1, 1, 1, 0, p, NULL, NULL));
        ASK(ask_name("%s event", names[i]), cuEventQuery(p));
        ASK(ask_name("%s module", names[i]), cuModuleGetFunction(&t.function, p, "plain"));
        ASK(ask_name("%s function", names[i]), cuLaunchKernel(p, 1, 1, 1, 1, 1, 1, 0, o.stream, NULL, NULL));
        ASK(ask_name("%s library", names[i]), cuLibraryGetKernel(&t.kernel, p, "plain"));
        ASK(ask_name("%s kernel", names[i]), cuKernelGetFunction(&t.function, p));
        ASK(ask_name("%s pool", names[i]), cuMemPoolTrimTo(p, 0));
        ASK(ask_name("%s array", names[i]), cuArrayDestroy(p));
        ASK(ask_name("%s graph", names[i]), cuGraphGetNodes(p, NULL, &t.size));
        ASK(ask_name("%s node", names[i]), cuGraphNodeGetType(p, (CUgraphNodeType *)&t.i));
        ASK(ask_name("%s exec", names[i]), cuGraphLaunch(p, o.stream));
        ASK(ask_name("%s object", names[i]), cuUserObjectRetain(p, 1));
        ASK(ask_name("%s texture", names[i]), cuTexObjectDestroy((CUtexObject)(uintptr_t)p));
        ASK(ask_name("%s link", names[i]), cuLinkDestroy(p));
        ASK(ask_name("%s physical memory", names[i]),
            cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)p));
    }
}

void section_stale(void)
{
    ask_child("stream", stale_stream, NULL);
    ask_child("event", stale_event, NULL);
    ask_child("module", stale_module, NULL);
    ask_child("library", stale_library, NULL);
    ask_child("graph", stale_graph, NULL);
    ask_child("others", stale_others, NULL);
    ask_child("context", stale_context, NULL);
    ask_child("invented", invented, NULL);
}

/* ---- faults ---- */

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const struct fault {
    const char *name, *body;
    uint64_t offset; /* added to the address of 64 KiB of device memory */
    bool absolute;   /* the offset is the address */
} faults[] = {
    {"none", "st.global.u32 [a], v;", 0, false},
    {"global store at 0", "st.global.u32 [a], v;", 0, true},
    {"global load at 0", "ld.global.u32 v, [a]; st.global.u32 [a+4], v;", 0, true},
    {"global store misaligned", "st.global.u32 [a], v;", 2, false},
    {"global store u64 misaligned", "st.global.u64 [a], a;", 4, false},
    {"global v4 misaligned", "st.global.v4.u32 [a], {v, v, v, v};", 8, false},
    {"global beyond 4 GiB", "st.global.u32 [a], v;", (uint64_t)1 << 36, false},
    {"generic store at 0", "st.u32 [a], v;", 0, true},
    {"generic store at 4096", "st.u32 [a], v;", 4096, true},
    {"generic store non-canonical", "st.u32 [a], v;", 0xdead000000000000, true},
    {"atom at 0", "atom.global.add.u32 v, [a], v;", 0, true},
    {"atom misaligned", "atom.global.add.u32 v, [a], v;", 2, false},
    {"atom u64 misaligned", "atom.global.add.u64 a, [a], a;", 4, false},
    {"red at 0", "red.global.add.u32 [a], v;", 0, true},
    {"shared far", "st.shared.u32 [0x800000], v;", 0, false},
    {"shared misaligned", "mov.u32 v, s; st.shared.u32 [v+2], v;", 0, false},
    {"shared just beyond the most", "st.shared.u32 [v+0x38fff], v;", 0, false},
    {"local far",
     "{ .local .align 4 .b8 l[16]; .reg .b32 w; mov.u32 w, l; add.u32 w, w, 0x7000000; st.local.u32 [w], v; "
     "}",
     0, false},
    {"local misaligned", "{ .local .align 4 .b8 l[16]; .reg .b32 w; mov.u32 w, l; st.local.u32 [w+1], v; }",
     0, false},
    {"trap", "trap;", 0, false},
    {"brkpt", "brkpt;", 0, false},
    {"const far", "ld.const.u32 v, [0x7000000]; st.global.u32 [a], v;", 0, false},
    {"branch through a bad address", "{ .reg .b64 f; mov.u64 f, 64; P: .callprototype _ (); call f, (), P; }",
     0, false},
    {"prefetch at 0", "prefetch.global.L2 [a];", 0, true},
    {"ldu at 0", "ldu.global.u32 v, [a]; st.global.u32 [a+4], v;", 0, true},
    {"cp.async from 0",
     "{ .reg .b32 w; mov.u32 w, s; cp.async.ca.shared.global [w], [a], 16; cp.async.wait_all; }", 0, true},
    {"cp.async misaligned",
     "{ .reg .b32 w; mov.u32 w, s; cp.async.ca.shared.global [w], [a], 16; cp.async.wait_all; }", 8, false},
    {"mbarrier count 0", "{ .reg .b32 w; mov.u32 w, s; mbarrier.init.shared.b64 [w], 0; }", 0, false},
    {"mbarrier misaligned", "{ .reg .b32 w; mov.u32 w, s; mbarrier.init.shared.b64 [w+4], 1; }", 0, false},
    {"mbarrier inval",
     "{ .reg .b32 w; mov.u32 w, s; mbarrier.init.shared.b64 [w], 1; mbarrier.inval.shared.b64 [w]; }", 0,
     false},
    {"barrier 15 of 32 of 1 thread", "bar.sync 15, 32;", 0, false},
    {"bulk copy misaligned",
     "{ .reg .b32 w; mov.u32 w, s; mbarrier.init.shared.b64 [w], 1; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [w+16], [a], 16, [w]; }",
     8, false},
    {"bulk copy of 8 bytes",
     "{ .reg .b32 w; mov.u32 w, s; mbarrier.init.shared.b64 [w], 1; mov.u32 v, 8; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [w+16], [a], v, [w]; }",
     0, false},
    {"exit", "exit;", 0, false},
    {"division by zero", "{ .reg .b32 w; mov.u32 w, 0; div.u32 v, v, w; st.global.u32 [a], v; }", 0, false},
    {"freed memory", "st.global.u32 [a], v;", (uint64_t)-1, false},
};

static void fault(const void *argument)
{
    const struct fault *const f = argument;
    char text[4096];
    CUfunction function = NULL;
    CUmodule module = NULL;
    if (!ask_context())
        return;
    snprintf(text, sizeof text,
             HEAD
             ".visible .entry e(.param .u64 p)\n{ .reg .b64 a; .reg .b32 v; .shared .align 16 .b8 s[64];\n"
             "  ld.param.u64 a, [p]; mov.u32 v, 1; { %s } ret; }\n",
             f->body);
    CUdeviceptr memory = 0;
    MUST(cuMemAlloc(&memory, DEVICE_BYTES));
    ASK("load", cuModuleLoadData(&module, text));
    if (module == NULL)
        return;
    MUST(cuModuleGetFunction(&function, module, "e"));
    CUdeviceptr address = f->absolute ? f->offset : memory + f->offset;
    if (f->offset == (uint64_t)-1) {
        MUST(cuMemAlloc(&address, (size_t)64 << 20));
        MUST(cuMemFree(address));
    }
    void *params[] = {&address};
    CUstream stream = NULL;
    CUevent event = NULL;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, 0));
    ASK("launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    cuEventRecord(event, stream); /* the kernel may have failed already */
    ASK("event", cuEventSynchronize(event));
    ASK("stream", cuStreamSynchronize(stream));
    ASK("context", cuCtxSynchronize());
    ASK("alloc", cuMemAlloc(&t.pointer, 4));
}

/* What of many ways to notice notices it first. */
static void notice(const void *argument)
{
    const int how = *(const int *)argument;
    if (!ask_setup())
        return;
    CUresult result = CUDA_SUCCESS;
    MUST(cuEventRecord(o.event, o.stream));
    MUST(cuLaunchKernel(o.store, 1, 1, 1, 1, 1, 1, 0, o.stream, ask_params, NULL));
    switch (how) {
    case 0:
        result = cuStreamSynchronize(o.stream);
        break;
    case 1:
        result = cuStreamSynchronize(o.other);
        break;
    case 2:
        cuEventRecord(o.second, o.stream); /* may fail already */
        result = cuEventSynchronize(o.second);
        break;
    case 3:
        result = cuMemcpyDtoH(t.bytes, o.device, 4);
        break;
    case 4:
        for (uint64_t start = ask_now(); (result = cuStreamQuery(o.stream)) == CUDA_ERROR_NOT_READY;)
            if (ask_now() - start > 2000000000u)
                break;
        break;
    case 5:
        cuEventRecord(o.second, o.stream);
        for (uint64_t start = ask_now(); (result = cuEventQuery(o.second)) == CUDA_ERROR_NOT_READY;)
            if (ask_now() - start > 2000000000u)
                break;
        break;
    default:
        result = cuCtxDestroy(o.context);
    }
    ASK("first", result);
    ASK("then", cuCtxSynchronize());
    ASK("stream destroy", cuStreamDestroy(o.stream));
    ASK("event destroy", cuEventDestroy(o.event));
    ASK("free", cuMemFree(o.device));
    ASK("free host", cuMemFreeHost(o.pinned));
    ASK("module unload", cuModuleUnload(o.module));
    ASK("release", cuDevicePrimaryCtxRelease(0));
}

/* After a kernel has failed: in which ways the process gets going again. */
static void recover(const void *argument)
{
    const int how = *(const int *)argument;
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction store = NULL;
    if (how == 2) {
        cuInit(0);
        MUST(cuCtxCreate(&context, NULL, 0, 0));
    } else if (!ask_context()) {
        return;
    }
    MUST(cuModuleLoadData(&module, ask_ptx));
    MUST(cuModuleGetFunction(&store, module, "store"));
    MUST(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, ask_params, NULL));
    ASK("fails", cuCtxSynchronize());
    if (how == 0) {
        ASK("reset", cuDevicePrimaryCtxReset(0));
        ASK("alloc", cuMemAlloc(&t.pointer, 64));
        ASK("release", cuDevicePrimaryCtxRelease(0));
    } else if (how == 1) {
        ASK("release", cuDevicePrimaryCtxRelease(0));
    } else {
        ASK("destroy", cuCtxDestroy(context));
    }
    ASK("retain", cuDevicePrimaryCtxRetain(&t.context, 0));
    ASK("set current", cuCtxSetCurrent(t.context));
    ASK("alloc again", cuMemAlloc(&t.pointer, 64));
    ASK("create", cuCtxCreate(&context, NULL, 0, 0));
    ASK("alloc in that", cuMemAlloc(&t.pointer, 64));
}

void section_faults(void)
{
    static const int ways[] = {0, 1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < COUNT(faults); i++)
        ask_child(faults[i].name, fault, &faults[i]);
    for (size_t i = 0; i < COUNT(ways); i++)
        ask_child(ask_name("notice %d", ways[i]), notice, &ways[i]);
    for (size_t i = 0; i < 3; i++)
        ask_child(ask_name("recover %d", ways[i]), recover, &ways[i]);
}
