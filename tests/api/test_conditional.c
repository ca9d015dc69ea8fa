/* Conditional nodes of graphs, edges that let a kernel start early, and what instances take from changed
   graphs. What an H200 answers to each call is in data/h200_graphs.txt; here it is what whole programs
   compute. */
#include <unistd.h>

#include "api_test.h"

static const char text[] =
    ".version 8.4\n.target sm_90\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    /* halves [p] or makes it 3 [p] + 1, counts the step in [p + 4]; the condition: is it above one? */
    ".visible .entry collatz(.param .u64 p, .param .u64 loop, .param .u64 odd)\n"
    "{ .reg .b64 a, h; .reg .b32 v, w; .reg .pred t; ld.param.u64 a, [p]; ld.global.u32 v, [a];\n"
    "  and.b32 w, v, 1; ld.param.u64 h, [odd];\n"
    "  { .param .b64 x; .param .b32 y; st.param.b64 [x], h; st.param.b32 [y], w;\n"
    "    call.uni cudaGraphSetConditional, (x, y); }\n  ret; }\n"
    ".visible .entry half(.param .u64 p) { .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p]; ld.global.u32 v, "
    "[a];\n"
    "  shr.u32 v, v, 1; st.global.u32 [a], v; ret; }\n"
    ".visible .entry triple(.param .u64 p) { .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p]; ld.global.u32 v, "
    "[a];\n"
    "  mad.lo.u32 v, v, 3, 1; st.global.u32 [a], v; ret; }\n"
    ".visible .entry step(.param .u64 p, .param .u64 loop)\n"
    "{ .reg .b64 a, h; .reg .b32 v, w; .reg .pred t; ld.param.u64 a, [p]; ld.param.u64 h, [loop];\n"
    "  ld.global.u32 w, [a+4]; add.u32 w, w, 1; st.global.u32 [a+4], w; ld.global.u32 v, [a]; setp.gt.u32 t, "
    "v, 1;\n"
    "  selp.u32 w, 1, 0, t;\n"
    "  { .param .b64 x; .param .b32 y; st.param.b64 [x], h; st.param.b32 [y], w;\n"
    "    call.uni cudaGraphSetConditional, (x, y); }\n  ret; }\n"
    ".visible .entry choose(.param .u64 handle, .param .u32 value)\n{ .reg .b64 h; .reg .b32 v;\n"
    "  ld.param.u64 h, [handle]; ld.param.u32 v, [value];\n"
    "  { .param .b64 x; .param .b32 y; st.param.b64 [x], h; st.param.b32 [y], v;\n"
    "    call.uni cudaGraphSetConditional, (x, y); }\n  ret; }\n"
    ".visible .entry early(.param .u64 p)\n"
    "{ .reg .b64 a; .reg .b32 v; griddepcontrol.launch_dependents; griddepcontrol.wait; ld.param.u64 a, "
    "[p];\n"
    "  ld.global.u32 v, [a]; add.u32 v, v, 1; st.global.u32 [a], v; ret; }\n";

static CUgraphNode add_kernel(CUgraph graph, const char *name, CUgraphNode after, void **params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUgraphNode node = NULL;
    all.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = load(text, name),
                                              .gridDimX = 1,
                                              .gridDimY = 1,
                                              .gridDimZ = 1,
                                              .blockDimX = 1,
                                              .blockDimY = 1,
                                              .blockDimZ = 1,
                                              .kernelParams = params};
    OK(cuGraphAddNode(&node, graph, &after, NULL, after != NULL, &all));
    return node;
}

/* The node, and its bodies in out_bodies. */
static CUgraphNode add_conditional(CUgraph graph, CUgraphConditionalHandle handle,
                                   CUgraphConditionalNodeType type, unsigned size, CUgraphNode after,
                                   CUgraph *out_bodies)
{
    CUcontext context;
    CUgraphNode node = NULL;
    OK(cuCtxGetCurrent(&context));
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional =
        (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle, .type = type, .size = size, .ctx = context};
    OK(cuGraphAddNode(&node, graph, &after, NULL, after != NULL, &params));
    assert_non_null(params.conditional.phGraph_out);
    memcpy(out_bodies, params.conditional.phGraph_out, size * sizeof *out_bodies);
    return node;
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned initial)
{
    CUgraphConditionalHandle handle = 0;
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    OK(cuGraphConditionalHandleCreate(&handle, graph, context, initial, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return handle;
}

static void expect_words(CUdeviceptr memory, uint32_t first, uint32_t second)
{
    uint32_t words[2] = {0, 0};
    OK(cuMemcpyDtoH(words, memory, 8));
    assert_int_equal(words[0], first);
    assert_int_equal(words[1], second);
}

/* while (v > 1) { if (v odd) v = 3 v + 1; else v /= 2; steps++; }: 27 takes 111 steps. */
static void test_nested(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUgraph graph, loop_body, branches[2];
    CUgraphExec exec;
    OK(cuMemAlloc(&memory, 8));
    OK(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle loop = new_handle(graph, 1), odd = new_handle(graph, 0);
    add_conditional(graph, loop, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &loop_body);
    void *params[] = {&memory, &loop, &odd};
    CUgraphNode ask = add_kernel(loop_body, "collatz", NULL, params);
    CUgraphNode decide = add_conditional(loop_body, odd, CU_GRAPH_COND_TYPE_IF, 2, ask, branches);
    add_kernel(branches[0], "triple", NULL, params);
    add_kernel(branches[1], "half", NULL, params);
    add_kernel(loop_body, "step", decide, params);
    OK(cuGraphInstantiate(&exec, graph, 0));
    static const uint32_t cases[][2] = {{27, 111}, {6, 8}, {97, 118}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OK(cuMemcpyHtoD(memory, (uint32_t[]){cases[i][0], 0}, 8));
        OK(cuGraphLaunch(exec, NULL));
        OK(cuCtxSynchronize());
        expect_words(memory, 1, cases[i][1]);
    }
    /* the graph may go before its instance */
    OK(cuGraphDestroy(graph));
    OK(cuMemcpyHtoD(memory, (uint32_t[]){27, 0}, 8));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    expect_words(memory, 1, 111);
    OK(cuGraphExecDestroy(exec));
}

/* Bodies that are captured, and a switch with a value beyond its bodies. */
static void test_switch(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUstream stream;
    OK(cuMemAlloc(&memory, 8));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (uint32_t value = 0; value < 4; value++) {
        CUgraph graph, bodies[3], captured;
        CUgraphExec exec;
        OK(cuGraphCreate(&graph, 0));
        CUgraphConditionalHandle handle = new_handle(graph, 9);
        CUgraphNode before = add_kernel(graph, "choose", NULL, (void *[]){&handle, &value});
        add_conditional(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, before, bodies);
        for (unsigned i = 0; i < 3; i++) {
            OK(cuStreamBeginCaptureToGraph(stream, bodies[i], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
            OK(cuMemsetD32Async(memory, 100 + i, 1, stream));
            OK(cuStreamEndCapture(stream, &captured));
            assert_ptr_equal(captured, bodies[i]);
        }
        OK(cuGraphInstantiate(&exec, graph, 0));
        OK(cuMemcpyHtoD(memory, (uint32_t[]){7, 0}, 8));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        expect_words(memory, value < 3 ? 100 + value : 7, 0);
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphDestroy(graph));
    }
}

/* A condition is of its graph: kernels elsewhere have no business with it. */
static void test_outside(void **state)
{
    (void)state;
    CUgraph graph, body;
    OK(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = new_handle(graph, 0);
    add_conditional(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, NULL, &body);
    uint32_t value = 1;
    OK(cuLaunchKernel(load(text, "choose"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&handle, &value}, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

/* The same, inside: silent. */
static void test_inside(void **state)
{
    (void)state;
    CUgraph graph, body;
    CUgraphExec exec;
    CUdeviceptr memory;
    uint32_t value = 1;
    OK(cuMemAlloc(&memory, 8));
    OK(cuMemsetD32(memory, 0, 2));
    OK(cuGraphCreate(&graph, 0));
    CUgraphConditionalHandle handle = new_handle(graph, 0);
    CUgraphNode before = add_kernel(graph, "choose", NULL, (void *[]){&handle, &value});
    add_conditional(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, before, &body);
    add_kernel(body, "early", NULL, (void *[]){&memory});
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    expect_words(memory, 1, 0);
    /* updated by a graph of the same shape whose condition starts otherwise, and whose kernel does not set it
     */
    CUgraph other, other_body;
    CUgraphExecUpdateResultInfo info;
    OK(cuGraphCreate(&other, 0));
    CUgraphConditionalHandle off = new_handle(other, 0);
    value = 0;
    before = add_kernel(other, "choose", NULL, (void *[]){&off, &value});
    add_conditional(other, off, CU_GRAPH_COND_TYPE_IF, 1, before, &other_body);
    add_kernel(other_body, "early", NULL, (void *[]){&memory});
    OK(cuGraphExecUpdate(exec, other, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    expect_words(memory, 1, 0);
}

/* A loop that nothing can end is told of; one whose condition is zero from the start is none. */
static void test_endless(void **state)
{
    (void)state;
    for (unsigned initial = 0; initial < 2; initial++) {
        CUgraph graph, body;
        CUgraphExec exec;
        CUgraphNode node;
        CUdeviceptr memory;
        CUcontext context;
        OK(cuCtxGetCurrent(&context));
        OK(cuMemAlloc(&memory, 8));
        OK(cuGraphCreate(&graph, 0));
        add_conditional(graph, new_handle(graph, initial), CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &body);
        CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 4, .width = 1, .height = 1};
        OK(cuGraphAddMemsetNode(&node, body, NULL, 0, &set, context));
        OK(cuGraphInstantiate(&exec, graph, 0));
        OK(cuGraphLaunch(exec, NULL));
        WANT(initial == 0 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT, cuCtxSynchronize());
    }
}

/* Attributes stay when a node gets other parameters, in a graph and in an instance. */
static void test_attributes(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUgraph graph;
    CUgraphExec exec;
    CUkernelNodeAttrValue value = {.clusterDim = {2, 1, 1}};
    OK(cuMemAlloc(&memory, 8));
    OK(cuMemsetD32(memory, 0, 2));
    OK(cuGraphCreate(&graph, 0));
    void *arguments[] = {&memory};
    CUgraphNode node = add_kernel(graph, "early", NULL, arguments);
    CUDA_KERNEL_NODE_PARAMS params;
    OK(cuGraphKernelNodeGetParams(node, &params));
    params.kernelParams = arguments; /* those lent by the node go when it changes */
    params.gridDimX = 4;
    OK(cuGraphKernelNodeSetParams(node, &params));
    OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    params.gridDimX = 3;
    WANT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuGraphKernelNodeSetParams(node, &params));
    params.gridDimX = 2;
    OK(cuGraphKernelNodeSetParams(node, &params));
    memset(&value, 0, sizeof value);
    OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    assert_int_equal(value.clusterDim.x, 2);
    OK(cuGraphInstantiate(&exec, graph, 0));
    params.gridDimX = 5;
    WANT(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuGraphExecKernelNodeSetParams(exec, node, &params));
    params.gridDimX = 6;
    OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
}

/* Edges of a capture: programmatic between kernels, plain elsewhere; the result is that of the order. */
static void test_early(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode from[4], to[4];
    CUgraphEdgeData data[4];
    size_t count = 4;
    CUfunction early = load(text, "early");
    OK(cuMemAlloc(&memory, 8));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUlaunchAttribute serial = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = &serial,
                             .numAttrs = 1};
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemsetD32Async(memory, 0, 2, stream));
    OK(cuLaunchKernelEx(&config, early, (void *[]){&memory}, NULL));
    OK(cuLaunchKernelEx(&config, early, (void *[]){&memory}, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetEdges(graph, from, to, data, &count));
    assert_int_equal(count, 2);
    assert_int_equal(data[0].type, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
    assert_int_equal(data[1].type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    assert_int_equal(data[1].from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
    count = 4;
    WANT(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(graph, from, to, NULL, &count));
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    expect_words(memory, 2, 0);
}

/* Events that a launch fires: whoever waits for them comes after the kernel. */
static void test_fired_events(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUstream one, two;
    CUevent event, timed;
    CUfunction early = load(text, "early");
    OK(cuMemAlloc(&memory, 8));
    OK(cuMemsetD32(memory, 0, 2));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&timed, CU_EVENT_DEFAULT));
    CUlaunchAttribute fire = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                              .value.programmaticEvent = {.event = timed}};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = one,
                             .attrs = &fire,
                             .numAttrs = 1};
    WANT(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, early, (void *[]){&memory}, NULL));
    for (unsigned i = 0; i < 20; i++) {
        fire.value.programmaticEvent.event = event;
        OK(cuLaunchKernelEx(&config, early, (void *[]){&memory}, NULL));
        OK(cuStreamWaitEvent(two, event, 0));
        OK(cuMemcpyDtoDAsync(memory + 4, memory, 4, two));
        OK(cuStreamSynchronize(two));
        expect_words(memory, i + 1, i + 1);
    }
}

int main(void)
{
    alarm(120); /* what hangs ends here */
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_nested),  IN_CONTEXT(test_switch),     IN_CONTEXT(test_inside),
        IN_CONTEXT(test_outside), IN_CONTEXT(test_early),      IN_CONTEXT(test_fired_events),
        IN_CONTEXT(test_endless), IN_CONTEXT(test_attributes),
    };
    return RUN_ALONE(tests);
}
