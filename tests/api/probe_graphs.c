/* As probe.c, for what graphs can do beyond capture: conditional nodes, edges with data, updates, instances.
   usage: probe_graphs LIBCUDA [SECTION…]     sections: conditional edges update attributes instances */
#include "probing.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of the API's wide unions */

static const char *const ptx =
    ".version 8.4\n.target sm_90\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry set_to(.param .u64 handle, .param .u32 value)\n{ .reg .b64 h; .reg .b32 v;\n"
    "  ld.param.u64 h, [handle]; ld.param.u32 v, [value];\n"
    "  { .param .b64 a; .param .b32 b; st.param.b64 [a], h; st.param.b32 [b], v;\n"
    "    call.uni cudaGraphSetConditional, (a, b); }\n  ret; }\n"
    /* counts in [p]; the condition is whether the count is below `limit` */
    ".visible .entry count(.param .u64 p, .param .u64 handle, .param .u32 limit)\n"
    "{ .reg .b64 q, h; .reg .b32 v, w; .reg .pred t; ld.param.u64 q, [p]; ld.param.u64 h, [handle]; "
    "ld.param.u32 w, [limit];\n"
    "  ld.global.u32 v, [q]; add.u32 v, v, 1; st.global.u32 [q], v; setp.lt.u32 t, v, w; selp.u32 v, 1, 0, "
    "t;\n"
    "  { .param .b64 a; .param .b32 b; st.param.b64 [a], h; st.param.b32 [b], v;\n"
    "    call.uni cudaGraphSetConditional, (a, b); }\n  ret; }\n"
    ".visible .entry add_to(.param .u64 p, .param .u32 value)\n{ .reg .b64 q; .reg .b32 v; ld.param.u64 q, "
    "[p]; "
    "ld.param.u32 v, [value]; red.global.add.u32 [q], v; ret; }\n"
    ".visible .entry early(.param .u64 p)\n{ griddepcontrol.launch_dependents; griddepcontrol.wait; ret; }\n"
    ".visible .entry plain(.param .u64 p)\n{ ret; }\n";

static CUmodule module;
static CUstream stream;
static CUdeviceptr memory; /* 1024 bytes */

static void load(void)
{
    start();
    SAY("load", cu.cuModuleLoadData(&module, ptx));
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cu.cuMemAlloc_v2(&memory, 1024);
    cu.cuMemsetD8_v2(memory, 0, 1024);
    cu.cuCtxSynchronize();
}

static CUfunction get(const char *name)
{
    CUfunction function = NULL;
    CUresult result = cu.cuModuleGetFunction(&function, module, name);
    if (result != CUDA_SUCCESS)
        say("no function %s: %d\n", name, (int)result);
    return function;
}

static CUgraph new_graph(void)
{
    CUgraph graph = NULL;
    cu.cuGraphCreate(&graph, 0);
    return graph;
}

static CUgraphNodeParams kernel(const char *name, void **params)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL,
                               .kernel = {.func = get(name),
                                          .gridDimX = 1,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = 1,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .kernelParams = params}};
}

static CUgraphNodeParams conditional(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                     unsigned size)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                               .conditional = {.handle = handle, .type = type, .size = size, .ctx = context}};
}

static CUgraphNode add_kernel(CUgraph graph, CUgraphNode after, const char *name, void **params)
{
    CUgraphNode node = NULL;
    CUgraphNodeParams all = kernel(name, params);
    CUresult result = cu.cuGraphAddNode_v2(&node, graph, &after, NULL, after != NULL, &all);
    if (result != CUDA_SUCCESS)
        say("adding %s: %d\n", name, (int)result);
    return node;
}

static uint32_t word(unsigned index)
{
    uint32_t value = 0xdead;
    cu.cuMemcpyDtoH_v2(&value, memory + 4 * index, 4);
    return value;
}

/* Launches `times`, saying what came back and what `n` words are. */
static void launch(const char *label, CUgraph graph, unsigned times, unsigned n)
{
    CUgraphExec exec = NULL;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    if (!step_begin(label))
        return;
    CUresult result = cu.cuGraphInstantiateWithParams(&exec, graph, &params);
    say("%s: instantiate %d result %d error node %d\n", label, (int)result, (int)params.result_out,
        params.hErrNode_out != NULL);
    for (unsigned i = 0; i < times && result == CUDA_SUCCESS; i++) {
        CUresult launched = cu.cuGraphLaunch(exec, stream), done = cu.cuStreamSynchronize(stream);
        say("%s: launch %d %d, words", label, (int)launched, (int)done);
        for (unsigned j = 0; j < n; j++)
            say(" %u", word(j));
        say("\n");
    }
    if (exec != NULL)
        cu.cuGraphExecDestroy(exec);
    cu.cuMemsetD8_v2(memory, 0, 1024);
    cu.cuCtxSynchronize();
}

/* ---- conditional nodes ---- */

static void handles(void)
{
    load();
    CUgraph graph = new_graph(), other = new_graph();
    CUgraphConditionalHandle one = 0, two = 0, three = 0;
    CUgraphNode node = NULL, second = NULL;
    SAY("handle NULL", cu.cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0));
    SAY("handle graph NULL", cu.cuGraphConditionalHandleCreate(&one, NULL, context, 0, 0));
    SAY("handle flags 2", cu.cuGraphConditionalHandleCreate(&one, graph, context, 0, 2));
    SAY("handle default without flag", cu.cuGraphConditionalHandleCreate(&one, graph, context, 7, 0));
    say("handle is %d\n", one != 0);
    SAY("handle", cu.cuGraphConditionalHandleCreate(&two, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    say("handles differ %d\n", one != two);
    SAY("handle without a context",
        cu.cuGraphConditionalHandleCreate(&three, graph, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams params = conditional(two, CU_GRAPH_COND_TYPE_IF, 0);
    SAY("if of 0", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_IF, 3);
    SAY("if of 3", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_WHILE, 2);
    SAY("while of 2", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_WHILE, 0);
    SAY("while of 0", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_SWITCH, 0);
    SAY("switch of 0", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, (CUgraphConditionalNodeType)3, 1);
    SAY("type 3", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(0, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("handle 0", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two + 1000, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("invented handle", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("handle of another graph", cu.cuGraphAddNode_v2(&node, other, NULL, NULL, 0, &params));
    params = conditional(one, CU_GRAPH_COND_TYPE_IF, 1);
    params.conditional.ctx = NULL;
    SAY("context NULL", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_IF, 1);
    params.reserved0[0] = 1;
    SAY("reserved word", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    params = conditional(two, CU_GRAPH_COND_TYPE_IF, 1);
    node = NULL;
    SAY("if", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    say("bodies %d\n", params.conditional.phGraph_out != NULL);
    SAY("the handle again", cu.cuGraphAddNode_v2(&second, graph, NULL, NULL, 0, &params));
    CUgraphNodeType type = (CUgraphNodeType)99;
    SAY("type of the node", cu.cuGraphNodeGetType(node, &type));
    say("type is %d\n", (int)type);
    launch("unused handles", graph, 1, 0);
    CUgraph body = params.conditional.phGraph_out != NULL ? params.conditional.phGraph_out[0] : NULL;
    CUgraph out = NULL;
    SAY("destroy body", cu.cuGraphDestroy(body));
    SAY("clone", cu.cuGraphClone(&out, graph));
    SAY("clone body", cu.cuGraphClone(&out, body));
    SAY("child of another", cu.cuGraphAddChildGraphNode(&second, other, NULL, 0, graph));
    SAY("child graph of the node", cu.cuGraphChildGraphNodeGetGraph(node, &out));
    SAY("set parameters", cu.cuGraphNodeSetParams(node, &params));
    SAY("destroy node", cu.cuGraphDestroyNode(node));
    SAY("the handle after that", cu.cuGraphAddNode_v2(&second, graph, NULL, NULL, 0, &params));
    SAY("destroy graph", cu.cuGraphDestroy(graph));
}

static void bodies(void)
{
    load();
    CUgraphConditionalHandle handle = 0;
    CUgraph graph = new_graph();
    CUgraphNode node = NULL, inside = NULL;
    CUevent event = NULL;
    cu.cuEventCreate(&event, 0);
    cu.cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("node", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    CUgraph body = params.conditional.phGraph_out[0];
    launch("empty body", graph, 1, 1);
    SAY("body: event record", cu.cuGraphAddEventRecordNode(&inside, body, NULL, 0, event));
    launch("with an event record", graph, 1, 1);
    SAY("body: remove", inside != NULL ? cu.cuGraphDestroyNode(inside) : CUDA_SUCCESS);
    CUDA_HOST_NODE_PARAMS host = {.fn = (CUhostFn)(uintptr_t)free};
    inside = NULL;
    SAY("body: host", cu.cuGraphAddHostNode(&inside, body, NULL, 0, &host));
    launch("with a host node", graph, 0, 1);
    SAY("body: remove", inside != NULL ? cu.cuGraphDestroyNode(inside) : CUDA_SUCCESS);
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
                                        .bytesize = 256};
    SAY("body: alloc", cu.cuGraphAddMemAllocNode(&inside, body, NULL, 0, &alloc));
    launch("with an alloc", graph, 0, 1);
    SAY("body: remove the alloc", inside != NULL ? cu.cuGraphDestroyNode(inside) : CUDA_SUCCESS);
    SAY("destroy all", cu.cuGraphDestroy(graph));
    graph = new_graph();
    SAY("new handle",
        cu.cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("new node", cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    body = params.conditional.phGraph_out[0];
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 4, .width = 2, .height = 1, .value = 5};
    SAY("body: set", cu.cuGraphAddMemsetNode(&inside, body, NULL, 0, &set, context));
    launch("with a set", graph, 1, 3);
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = memory,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = memory + 8,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    SAY("body: device copy", cu.cuGraphAddMemcpyNode(&inside, body, &inside, 1, &copy, context));
    launch("with a device copy", graph, 1, 3);
    char local[4] = {9};
    copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = local,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = memory + 12,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
    SAY("body: copy from the host", cu.cuGraphAddMemcpyNode(&inside, body, &inside, 1, &copy, context));
    launch("with a copy from the host", graph, 1, 4);
    SAY("body: remove the copy from the host", cu.cuGraphDestroyNode(inside));
    SAY("body: set again", cu.cuGraphAddMemsetNode(&inside, body, NULL, 0, &set, context));
    launch("without it", graph, 1, 3);
    CUgraphExec first = NULL, second = NULL;
    SAY("instance", cu.cuGraphInstantiateWithFlags(&first, graph, 0));
    SAY("second instance", cu.cuGraphInstantiateWithFlags(&second, graph, 0));
    SAY("launch of the first", cu.cuGraphLaunch(first, stream));
    SAY("capture into the body",
        cu.cuStreamBeginCaptureToGraph(stream, body, &inside, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("set in the capture", cu.cuMemsetD32Async(memory + 16, 6, 1, stream));
    CUgraph captured = NULL;
    SAY("end of the capture", cu.cuStreamEndCapture(stream, &captured));
    say("captured is the body %d\n", captured == body);
    if (first != NULL)
        cu.cuGraphExecDestroy(first);
    launch("with a captured set", graph, 1, 5);
    uint32_t value = 3;
    void *arguments[] = {&memory, &value};
    CUgraphNodeParams cooperative = kernel("add_to", arguments);
    SAY("body: kernel", cu.cuGraphAddNode_v2(&inside, body, NULL, NULL, 0, &cooperative));
    CUgraphNodeParams child = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = new_graph()}};
    SAY("body: child graph", cu.cuGraphAddNode_v2(&inside, body, NULL, NULL, 0, &child));
    CUgraphConditionalHandle nested = 0;
    SAY("nested handle of the body",
        cu.cuGraphConditionalHandleCreate(&nested, body, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    params = conditional(nested, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("nested node", cu.cuGraphAddNode_v2(&inside, body, NULL, NULL, 0, &params));
    launch("with a nested node", graph, 1, 5);
    SAY("nested handle of the graph",
        cu.cuGraphConditionalHandleCreate(&nested, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    params = conditional(nested, CU_GRAPH_COND_TYPE_IF, 1);
    SAY("second nested node", cu.cuGraphAddNode_v2(&inside, body, NULL, NULL, 0, &params));
    launch("with two nested nodes", graph, 1, 5);
}

static void loops(void)
{
    load();
    uint32_t limit = 5, ten = 10, hundred = 100, value = 0;
    CUdeviceptr second_word = memory + 4, third_word = memory + 8;
    for (unsigned flags = 0; flags < 2; flags++)
        for (unsigned first = 0; first < 2; first++) {
            CUgraph graph = new_graph();
            CUgraphConditionalHandle handle = 0;
            CUgraphNode node = NULL;
            char label[80];
            cu.cuGraphConditionalHandleCreate(&handle, graph, context, first, flags);
            CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1);
            cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
            void *count[] = {&memory, &handle, &limit};
            add_kernel(params.conditional.phGraph_out[0], NULL, "count", count);
            snprintf(label, sizeof label, "while, default %u, flags %u", first, flags);
            launch(label, graph, 2, 1);
        }
    for (unsigned flags = 0; flags < 2; flags++)
        for (unsigned first = 0; first < 3; first++) {
            CUgraph graph = new_graph();
            CUgraphConditionalHandle handle = 0;
            CUgraphNode node = NULL;
            char label[80];
            cu.cuGraphConditionalHandleCreate(&handle, graph, context, first, flags);
            CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 2);
            cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
            void *then[] = {&memory, &ten}, *otherwise[] = {&second_word, &hundred};
            add_kernel(params.conditional.phGraph_out[0], NULL, "add_to", then);
            add_kernel(params.conditional.phGraph_out[1], NULL, "add_to", otherwise);
            snprintf(label, sizeof label, "if else, default %u, flags %u", first, flags);
            launch(label, graph, 2, 2);
        }
    for (unsigned set = 0; set < 4; set++) {
        CUgraph graph = new_graph();
        CUgraphConditionalHandle handle = 0;
        CUgraphNode node = NULL;
        char label[80];
        value = set;
        cu.cuGraphConditionalHandleCreate(&handle, graph, context, 9, CU_GRAPH_COND_ASSIGN_DEFAULT);
        void *setting[] = {&handle, &value};
        CUgraphNode before = add_kernel(graph, NULL, "set_to", setting);
        CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_SWITCH, 3);
        cu.cuGraphAddNode_v2(&node, graph, &before, NULL, 1, &params);
        CUdeviceptr to[] = {memory, second_word, third_word};
        for (unsigned i = 0; i < 3; i++) {
            void *arguments[] = {&to[i], &ten};
            add_kernel(params.conditional.phGraph_out[i], NULL, "add_to", arguments);
        }
        snprintf(label, sizeof label, "switch of 3, set to %u", set);
        launch(label, graph, 1, 3);
    }
    /* the handle is set outside any graph, and its graph runs afterwards */
    CUgraph graph = new_graph();
    CUgraphConditionalHandle handle = 0;
    CUgraphNode node = NULL;
    cu.cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0);
    CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
    cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
    void *then[] = {&memory, &ten};
    add_kernel(params.conditional.phGraph_out[0], NULL, "add_to", then);
    CUgraphExec exec = NULL;
    value = 1;
    void *setting[] = {&handle, &value};
    SAY("instantiate", cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    SAY("set from a stream", cu.cuLaunchKernel(get("set_to"), 1, 1, 1, 1, 1, 1, 0, stream, setting, NULL));
    SAY("finish", cu.cuStreamSynchronize(stream));
    SAY("launch after it", cu.cuGraphLaunch(exec, stream));
    SAY("finish it", cu.cuStreamSynchronize(stream));
    say("word %u\n", word(0));
}

static void conditional_updates(void)
{
    load();
    uint32_t ten = 10, twenty = 20;
    CUgraphExec exec = NULL;
    CUgraph graphs[4] = {0};
    CUgraphNode inner = NULL, nodes[4] = {0};
    for (unsigned i = 0; i < 4; i++) {
        CUgraphConditionalHandle handle = 0;
        graphs[i] = new_graph();
        cu.cuGraphConditionalHandleCreate(&handle, graphs[i], context, i != 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
        CUgraphNodeParams params =
            conditional(handle, i == 3 ? CU_GRAPH_COND_TYPE_SWITCH : CU_GRAPH_COND_TYPE_IF, 1 + (i == 2));
        cu.cuGraphAddNode_v2(&nodes[i], graphs[i], NULL, NULL, 0, &params);
        void *arguments[] = {&memory, i == 0 ? &ten : &twenty};
        CUgraphNode added = add_kernel(params.conditional.phGraph_out[0], NULL, "add_to", arguments);
        if (i == 0)
            inner = added;
    }
    SAY("instantiate", cu.cuGraphInstantiateWithFlags(&exec, graphs[0], 0));
    for (unsigned i = 1; i < 4; i++) {
        CUgraphExecUpdateResultInfo info = {0};
        CUresult result = cu.cuGraphExecUpdate_v2(exec, graphs[i], &info);
        CUresult launched = cu.cuGraphLaunch(exec, stream), done = cu.cuStreamSynchronize(stream);
        say("update %u: %d result %d nodes %d %d, then %d %d word %u\n", i, (int)result, (int)info.result,
            info.errorNode != NULL, info.errorFromNode != NULL, (int)launched, (int)done, word(0));
    }
    void *arguments[] = {&memory, &twenty};
    CUgraphNodeParams params = kernel("add_to", arguments);
    SAY("set parameters of the inner node", cu.cuGraphExecNodeSetParams(exec, inner, &params));
    unsigned enabled = 9;
    SAY("inner enabled", cu.cuGraphNodeGetEnabled(exec, inner, &enabled));
    SAY("disable inner", cu.cuGraphNodeSetEnabled(exec, inner, 0));
    SAY("disable the conditional", cu.cuGraphNodeSetEnabled(exec, nodes[0], 0));
    SAY("launch", cu.cuGraphLaunch(exec, stream));
    SAY("finish", cu.cuStreamSynchronize(stream));
    say("word %u\n", word(0));
}

/* ---- edges with data ---- */

static void say_edges(const char *label, CUgraph graph)
{
    CUgraphNode from[8] = {0}, to[8] = {0};
    CUgraphEdgeData data[8];
    memset(data, 0x55, sizeof data);
    size_t count = 8;
    CUresult plain = cu.cuGraphGetEdges(graph, from, to, &count);
    say("%s: plain %d count %zu", label, (int)plain, count);
    count = 8;
    CUresult without = cu.cuGraphGetEdges_v2(graph, from, to, NULL, &count);
    say(", without data %d count %zu", (int)without, count);
    count = 8;
    CUresult full = cu.cuGraphGetEdges_v2(graph, from, to, data, &count);
    say(", with %d:", (int)full);
    for (size_t i = 0; full == CUDA_SUCCESS && i < count && i < 8; i++)
        say(" %u.%u.%u", data[i].from_port, data[i].to_port, data[i].type);
    say("\n");
}

static CUgraphEdgeData edge(unsigned from_port, unsigned to_port, unsigned type)
{
    return (CUgraphEdgeData){.from_port = (unsigned char)from_port,
                             .to_port = (unsigned char)to_port,
                             .type = (unsigned char)type};
}

static void edges(void)
{
    load();
    void *arguments[] = {&memory};
    for (unsigned type = 0; type < 3; type++)
        for (unsigned port = 0; port < 4; port++) {
            CUgraph graph = new_graph();
            CUgraphNode a = add_kernel(graph, NULL, "early", arguments),
                        b = add_kernel(graph, NULL, "early", arguments);
            CUgraphEdgeData data = edge(port, 0, type);
            char label[64];
            CUresult added = cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1);
            snprintf(label, sizeof label, "edge port %u type %u", port, type);
            say("%s: add %d\n", label, (int)added);
            say_edges(label, graph);
            launch(label, graph, 1, 0);
        }
    CUgraph graph = new_graph();
    CUgraphNode a = add_kernel(graph, NULL, "early", arguments),
                b = add_kernel(graph, NULL, "early", arguments), c = NULL, d = NULL;
    CUgraphEdgeData data = edge(0, 1, 0), read[4];
    SAY("to port 1", cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    data = edge(0, 0, 0);
    data.reserved[0] = 1;
    SAY("reserved byte", cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    SAY("empty node", cu.cuGraphAddEmptyNode(&c, graph, NULL, 0));
    data = edge(1, 0, 1);
    SAY("programmatic to an empty node", cu.cuGraphAddDependencies_v2(graph, &a, &c, &data, 1));
    SAY("programmatic from an empty node", cu.cuGraphAddDependencies_v2(graph, &c, &b, &data, 1));
    data = edge(1, 0, 0);
    SAY("port 1, default type, to an empty node", cu.cuGraphAddDependencies_v2(graph, &a, &c, &data, 1));
    say_edges("after it", graph);
    data = edge(1, 0, 1);
    SAY("programmatic", cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    SAY("programmatic again", cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    SAY("plain beside it", cu.cuGraphAddDependencies(graph, &a, &b, 1));
    data = edge(2, 0, 1);
    SAY("launch order beside it", cu.cuGraphAddDependencies_v2(graph, &a, &b, &data, 1));
    say_edges("of the graph", graph);
    size_t count = 4;
    CUgraphNode list[4];
    SAY("dependencies, plain", cu.cuGraphNodeGetDependencies(b, list, &count));
    count = 4;
    SAY("dependencies, count only", cu.cuGraphNodeGetDependencies(b, NULL, &count));
    say("count %zu\n", count);
    count = 4;
    SAY("dependencies without data", cu.cuGraphNodeGetDependencies_v2(b, list, NULL, &count));
    count = 4;
    memset(read, 0x55, sizeof read);
    SAY("dependencies with data", cu.cuGraphNodeGetDependencies_v2(b, list, read, &count));
    say("count %zu: %u.%u.%u\n", count, read[0].from_port, read[0].to_port, read[0].type);
    count = 4;
    SAY("dependents, plain", cu.cuGraphNodeGetDependentNodes(a, list, &count));
    count = 4;
    SAY("dependents with data", cu.cuGraphNodeGetDependentNodes_v2(a, list, read, &count));
    say("count %zu\n", count);
    data = edge(0, 0, 0);
    SAY("remove with zero data", cu.cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1));
    data = edge(2, 0, 1);
    SAY("remove with other data", cu.cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1));
    say_edges("after removing others", graph);
    SAY("remove plain", cu.cuGraphRemoveDependencies(graph, &a, &b, 1));
    say_edges("after removing plain", graph);
    data = edge(2, 0, 1);
    SAY("remove launch order", cu.cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1));
    data = edge(1, 0, 1);
    SAY("remove programmatic", cu.cuGraphRemoveDependencies_v2(graph, &a, &b, &data, 1));
    say_edges("after removing", graph);
    SAY("remove NULL data", cu.cuGraphRemoveDependencies_v2(graph, &a, &b, NULL, 1));
    CUgraphNodeParams params = kernel("early", arguments);
    SAY("add with data", cu.cuGraphAddNode_v2(&d, graph, &a, &data, 1, &params));
    CUgraphNodeParams empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    SAY("add empty with data", cu.cuGraphAddNode_v2(&d, graph, &a, &data, 1, &empty));
    say_edges("after adding", graph);
    CUgraph clone = NULL;
    SAY("clone", cu.cuGraphClone(&clone, graph));
    say_edges("of the clone", clone);
    CUgraph odd = new_graph();
    CUgraphNode any = NULL;
    CUgraphNodeParams invalid = {.type = (CUgraphNodeType)14};
    SAY("node of type 14", cu.cuGraphAddNode_v2(&any, odd, NULL, NULL, 0, &invalid));
    invalid.type = (CUgraphNodeType)99;
    SAY("node of type 99", cu.cuGraphAddNode_v2(&any, odd, NULL, NULL, 0, &invalid));
    invalid = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL};
    SAY("no external semaphores", cu.cuGraphAddNode_v2(&any, odd, NULL, NULL, 0, &invalid));
    invalid.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    SAY("no external semaphores to wait for", cu.cuGraphAddNode_v2(&any, odd, NULL, NULL, 0, &invalid));
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {0};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {0};
    SAY("signal node of none", cu.cuGraphAddExternalSemaphoresSignalNode(&any, odd, NULL, 0, &signal));
    SAY("wait node of none", cu.cuGraphAddExternalSemaphoresWaitNode(&any, odd, NULL, 0, &wait));
    SAY("signal node NULL", cu.cuGraphAddExternalSemaphoresSignalNode(&any, odd, NULL, 0, NULL));
    SAY("wait node NULL", cu.cuGraphAddExternalSemaphoresWaitNode(&any, odd, NULL, 0, NULL));
    SAY("signal parameters of another node", cu.cuGraphExternalSemaphoresSignalNodeGetParams(a, &signal));
    SAY("wait parameters of another node", cu.cuGraphExternalSemaphoresWaitNodeGetParams(a, &wait));
}

static CUresult launch_with(const char *name, CUlaunchAttribute attribute, CUstream in)
{
    void *arguments[] = {&memory};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = in,
                             .attrs = &attribute,
                             .numAttrs = 1};
    return cu.cuLaunchKernelEx(&config, get(name), arguments, NULL);
}

static void captured_edges(void)
{
    load();
    CUstream other = NULL;
    CUevent event = NULL;
    CUgraph graph = NULL;
    cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
    cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    CUlaunchAttribute serial = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value.programmaticStreamSerializationAllowed = 1};
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *data = NULL;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    size_t count = 0;
    SAY("begin", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("first, programmatic", launch_with("early", serial, stream));
    SAY("second, programmatic", launch_with("early", serial, stream));
    SAY("set", cu.cuMemsetD32Async(memory, 1, 4, stream));
    SAY("programmatic after a set", launch_with("early", serial, stream));
    SAY("end", cu.cuStreamEndCapture(stream, &graph));
    say_edges("serialized", graph);
    launch("serialized", graph, 1, 0);
    SAY("begin fork", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int at_start = 0; at_start < 2; at_start++) {
        CUlaunchAttribute fire = {
            .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
            .value.programmaticEvent = {.event = event, .flags = 0, .triggerAtBlockStart = at_start}};
        SAY("launch with an event", launch_with("early", fire, stream));
        SAY("wait for it", cu.cuStreamWaitEvent(other, event, 0));
        SAY("info", cu.cuStreamGetCaptureInfo_v3(other, &status, &id, NULL, &nodes, &data, &count));
        say("dependencies %zu data %d", count, data != NULL);
        for (size_t i = 0; data != NULL && i < count; i++)
            say(" %u.%u.%u", data[i].from_port, data[i].to_port, data[i].type);
        say("\n");
        data = NULL;
        SAY("info without data",
            cu.cuStreamGetCaptureInfo_v3(other, &status, &id, NULL, &nodes, NULL, &count));
        SAY("info v2", cu.cuStreamGetCaptureInfo_v2(other, &status, &id, NULL, &nodes, &count));
        SAY("plain launch after it", launch_with("early", (CUlaunchAttribute){0}, other));
    }
    CUlaunchAttribute complete = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                                  .value.launchCompletionEvent = {.event = event, .flags = 0}};
    SAY("launch with a completion event", launch_with("early", complete, stream));
    SAY("wait for that", cu.cuStreamWaitEvent(other, event, 0));
    SAY("programmatic launch after that", launch_with("early", serial, other));
    SAY("set after that", cu.cuMemsetD32Async(memory, 1, 4, other));
    SAY("record the end", cu.cuEventRecord(event, other));
    SAY("join", cu.cuStreamWaitEvent(stream, event, 0));
    SAY("end fork", cu.cuStreamEndCapture(stream, &graph));
    say_edges("forked", graph);
    launch("forked", graph, 1, 0);
    /* edges given by hand to a capture */
    SAY("begin by hand", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("launch by hand", launch_with("early", (CUlaunchAttribute){0}, stream));
    SAY("info by hand", cu.cuStreamGetCaptureInfo_v3(stream, &status, &id, NULL, &nodes, &data, &count));
    say("data of plain dependencies %d\n", data != NULL);
    CUgraphNode node = count > 0 ? nodes[0] : NULL;
    CUgraphEdgeData programmatic = edge(1, 0, 1);
    SAY("update", cu.cuStreamUpdateCaptureDependencies_v2(stream, &node, &programmatic, 1,
                                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    SAY("set after a programmatic dependency", cu.cuMemsetD32Async(memory, 1, 4, stream));
    SAY("end by hand", cu.cuStreamEndCapture(stream, &graph));
    say_edges("by hand", graph);
}

/* ---- updates ---- */

static void say_update(const char *label, CUgraph from, CUgraph to)
{
    CUgraphExec exec = NULL;
    CUgraphExecUpdateResultInfo info = {0};
    if (!step_begin(label))
        return;
    CUresult made = cu.cuGraphInstantiateWithFlags(&exec, from, 0);
    CUresult result = cu.cuGraphExecUpdate_v2(exec, to, &info);
    say("%s: %d %d result %d, nodes %d %d\n", label, (int)made, (int)result, (int)info.result,
        info.errorNode != NULL, info.errorFromNode != NULL);
    if (exec != NULL)
        cu.cuGraphExecDestroy(exec);
}

static CUgraph of_kernels(const char *one, const char *two, bool joined)
{
    uint32_t value = 1;
    void *arguments[] = {&memory, &value, &value};
    CUgraph graph = new_graph();
    CUgraphNode first = one != NULL ? add_kernel(graph, NULL, one, arguments) : NULL;
    if (two != NULL)
        add_kernel(graph, joined ? first : NULL, two, arguments);
    return graph;
}

static CUgraph of_set(unsigned width, unsigned height, unsigned bytes, unsigned offset)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory + offset,
                                   .pitch = 64,
                                   .elementSize = bytes,
                                   .width = width,
                                   .height = height,
                                   .value = 5};
    CUresult result = cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context);
    if (result != CUDA_SUCCESS)
        say("set node %d\n", (int)result);
    return graph;
}

static char host_bytes[1024];

static CUgraph of_copy(bool from_host, bool to_host, unsigned width, unsigned height)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUDA_MEMCPY3D copy = {.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .srcDevice = memory,
                          .srcHost = host_bytes,
                          .srcPitch = 64,
                          .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                          .dstDevice = memory + 512,
                          .dstHost = host_bytes + 512,
                          .dstPitch = 64,
                          .WidthInBytes = width,
                          .Height = height,
                          .Depth = 1};
    CUresult result = cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context);
    if (result != CUDA_SUCCESS)
        say("copy node %d\n", (int)result);
    return graph;
}

static void CUDA_CB nothing(void *data)
{
    (void)data;
}

static CUgraph of_child(CUgraph child)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child);
    return graph;
}

static CUgraph of_event(CUevent event, bool wait)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    if (wait)
        cu.cuGraphAddEventWaitNode(&node, graph, NULL, 0, event);
    else
        cu.cuGraphAddEventRecordNode(&node, graph, NULL, 0, event);
    return graph;
}

static CUgraph of_host(void)
{
    CUgraph graph = new_graph();
    CUgraphNode node;
    CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
    cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host);
    return graph;
}

static CUgraph of_cluster(unsigned size)
{
    CUgraph graph = new_graph();
    CUgraphNodeParams params = kernel("plain", (void *[]){&memory});
    CUgraphNode node;
    params.kernel.gridDimX = 4;
    cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params);
    CUkernelNodeAttrValue value = {.clusterDim = {size, 1, 1}};
    CUresult result = cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
    if (result != CUDA_SUCCESS)
        say("cluster %u: %d\n", size, (int)result);
    return graph;
}

static CUgraph of_cooperative(void)
{
    CUgraph graph = of_kernels("plain", NULL, false);
    CUgraphNode node = NULL;
    size_t count = 1;
    CUkernelNodeAttrValue value = {.cooperative = 1};
    cu.cuGraphGetNodes(graph, &node, &count);
    CUresult result = cu.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    if (result != CUDA_SUCCESS)
        say("cooperative: %d\n", (int)result);
    return graph;
}

static CUgraph of_programmatic(void)
{
    CUgraph graph = of_kernels("plain", "plain", false);
    CUgraphNode nodes[2] = {0};
    size_t count = 2;
    CUgraphEdgeData data = edge(1, 0, 1);
    cu.cuGraphGetNodes(graph, nodes, &count);
    cu.cuGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &data, 1);
    return graph;
}

static void update(void)
{
    load();
    CUevent one, two;
    cu.cuEventCreate(&one, 0);
    cu.cuEventCreate(&two, 0);
    say_update("same", of_kernels("plain", "plain", true), of_kernels("plain", "plain", true));
    say_update("other function", of_kernels("plain", NULL, false), of_kernels("early", NULL, false));
    say_update("other parameters", of_kernels("plain", NULL, false), of_kernels("add_to", NULL, false));
    say_update("edge added", of_kernels("plain", "plain", false), of_kernels("plain", "plain", true));
    say_update("edge removed", of_kernels("plain", "plain", true), of_kernels("plain", "plain", false));
    say_update("node added", of_kernels("plain", NULL, false), of_kernels("plain", "plain", false));
    say_update("node added behind", of_kernels("plain", NULL, false), of_kernels("plain", "plain", true));
    say_update("node removed", of_kernels("plain", "plain", false), of_kernels("plain", NULL, false));
    say_update("to empty", of_kernels("plain", NULL, false), new_graph());
    say_update("from empty", new_graph(), of_kernels("plain", NULL, false));
    say_update("empty to empty", new_graph(), new_graph());
    say_update("kernel to set", of_kernels("plain", NULL, false), of_set(4, 1, 4, 0));
    say_update("set to kernel", of_set(4, 1, 4, 0), of_kernels("plain", NULL, false));
    say_update("set elsewhere", of_set(4, 1, 4, 0), of_set(4, 1, 4, 64));
    say_update("set wider", of_set(4, 1, 4, 0), of_set(8, 1, 4, 0));
    say_update("set of bytes", of_set(4, 1, 4, 0), of_set(16, 1, 1, 0));
    say_update("set 1D to 2D", of_set(4, 1, 4, 0), of_set(4, 2, 4, 0));
    say_update("set 2D to 1D", of_set(4, 2, 4, 0), of_set(4, 1, 4, 0));
    say_update("set 2D to 2D elsewhere", of_set(4, 2, 4, 0), of_set(4, 2, 4, 64));
    say_update("set 2D to 2D taller", of_set(4, 2, 4, 0), of_set(4, 3, 4, 0));
    say_update("copy longer", of_copy(false, false, 16, 1), of_copy(false, false, 32, 1));
    say_update("copy to the host instead", of_copy(false, false, 16, 1), of_copy(false, true, 16, 1));
    say_update("copy from the host instead", of_copy(false, true, 16, 1), of_copy(true, false, 16, 1));
    say_update("copy 1D to 2D", of_copy(false, false, 16, 1), of_copy(false, false, 16, 2));
    say_update("copy 2D to 2D", of_copy(false, false, 16, 2), of_copy(false, false, 32, 2));
    say_update("copy 2D the same", of_copy(false, false, 16, 2), of_copy(false, false, 16, 2));
    say_update("copy 2D to 2D taller", of_copy(false, false, 16, 2), of_copy(false, false, 16, 3));
    say_update("set 2D to 2D wider", of_set(4, 2, 4, 0), of_set(8, 2, 4, 0));
    say_update("cooperative", of_kernels("plain", NULL, false), of_cooperative());
    say_update("not cooperative", of_cooperative(), of_kernels("plain", NULL, false));
    say_update("programmatic edge", of_kernels("plain", "plain", true), of_programmatic());
    say_update("host", of_host(), of_host());
    say_update("event", of_event(one, false), of_event(two, false));
    say_update("event to wait", of_event(one, false), of_event(one, true));
    say_update("child", of_child(of_set(4, 1, 4, 0)), of_child(of_set(4, 1, 4, 64)));
    say_update("child of another shape", of_child(of_set(4, 1, 4, 0)),
               of_child(of_kernels("plain", "plain", true)));
    say_update("child to kernel", of_child(of_set(4, 1, 4, 0)), of_kernels("plain", NULL, false));
    say_update("cluster added", of_kernels("plain", NULL, false), of_cluster(2));
    say_update("cluster changed", of_cluster(2), of_cluster(4));
    say_update("cluster same", of_cluster(2), of_cluster(2));

    CUgraphExec exec = NULL;
    CUgraph graph = of_kernels("plain", "plain", true);
    CUgraphNode nodes[2] = {0}, bad = NULL;
    size_t count = 2;
    cu.cuGraphGetNodes(graph, nodes, &count);
    SAY("instantiate", cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CUgraphExecUpdateResult what = (CUgraphExecUpdateResult)99;
    SAY("update, result NULL", cu.cuGraphExecUpdate(exec, graph, &bad, NULL));
    SAY("update, node NULL", cu.cuGraphExecUpdate(exec, graph, NULL, &what));
    SAY("update, info NULL", cu.cuGraphExecUpdate_v2(exec, graph, NULL));
    SAY("update, graph NULL", cu.cuGraphExecUpdate(exec, NULL, &bad, &what));
    SAY("update, instance NULL", cu.cuGraphExecUpdate(NULL, graph, &bad, &what));
    uint32_t value = 1;
    void *arguments[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS params = {.func = get("add_to"),
                                      .gridDimX = 1,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 1,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = arguments};
    SAY("set another function", cu.cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &params));
    params.gridDimX = 0;
    SAY("set grid 0", cu.cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &params));
    params.gridDimX = 1;
    params.func = NULL;
    SAY("set no function", cu.cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &params));
    SAY("set parameters NULL", cu.cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], NULL));
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    SAY("set as an empty node", cu.cuGraphExecNodeSetParams(exec, nodes[0], &any));
    SAY("set parameters as an empty node", cu.cuGraphNodeSetParams(nodes[0], &any));
    SAY("disable", cu.cuGraphNodeSetEnabled(exec, nodes[0], 0));
    unsigned enabled = 9;
    SAY("enabled", cu.cuGraphNodeGetEnabled(exec, nodes[0], &enabled));
    say("enabled %u\n", enabled);
    SAY("remove the node", cu.cuGraphDestroyNode(nodes[0]));
    SAY("set of a removed node", cu.cuGraphNodeSetEnabled(exec, nodes[0], 1));
    SAY("launch", cu.cuGraphLaunch(exec, stream));
    SAY("finish", cu.cuStreamSynchronize(stream));
}

/* ---- attributes ---- */

static void attributes(void)
{
    load();
    void *arguments[] = {&memory};
    CUgraph graph = new_graph();
    CUgraphNode a = add_kernel(graph, NULL, "plain", arguments), b = add_kernel(graph, a, "plain", arguments),
                empty = NULL;
    cu.cuGraphAddEmptyNode(&empty, graph, NULL, 0);
    for (int id = 0; id < 20; id++) {
        CUkernelNodeAttrValue value;
        memset(&value, 0x5a, sizeof value);
        CUresult read = cu.cuGraphKernelNodeGetAttribute(a, (CUkernelNodeAttrID)id, &value);
        unsigned words[4];
        memcpy(words, &value, sizeof words);
        say("attribute %d: get %d", id, (int)read);
        if (read == CUDA_SUCCESS)
            say(" %08x %08x %08x %08x", words[0], words[1], words[2], words[3]);
        memset(&value, 0, sizeof value);
        say(", set zeros %d", (int)cu.cuGraphKernelNodeSetAttribute(a, (CUkernelNodeAttrID)id, &value));
        if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) { /* it would change what follows */
            say("\n");
            continue;
        }
        value.cooperative = 1;
        say(", set 1 %d", (int)cu.cuGraphKernelNodeSetAttribute(b, (CUkernelNodeAttrID)id, &value));
        memset(&value, 0x5a, sizeof value);
        read = cu.cuGraphKernelNodeGetAttribute(b, (CUkernelNodeAttrID)id, &value);
        memcpy(words, &value, sizeof words);
        say(", get %d", (int)read);
        if (read == CUDA_SUCCESS)
            say(" %08x %08x %08x %08x", words[0], words[1], words[2], words[3]);
        say("\n");
    }
    CUkernelNodeAttrValue value = {.priority = -3};
    SAY("set priority -3", cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    value.priority = 9;
    SAY("get priority", cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say("priority %d\n", value.priority);
    value.priority = -100;
    SAY("set priority -100", cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    SAY("get priority", cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say("priority %d\n", value.priority);
    SAY("copy attributes", cu.cuGraphKernelNodeCopyAttributes(b, a));
    SAY("get priority", cu.cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say("priority %d\n", value.priority);
    SAY("copy to itself", cu.cuGraphKernelNodeCopyAttributes(a, a));
    SAY("copy to an empty node", cu.cuGraphKernelNodeCopyAttributes(empty, a));
    SAY("copy from an empty node", cu.cuGraphKernelNodeCopyAttributes(a, empty));
    SAY("copy from NULL", cu.cuGraphKernelNodeCopyAttributes(a, NULL));
    SAY("of an empty node", cu.cuGraphKernelNodeGetAttribute(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CUgraphNode c = add_kernel(graph, NULL, "plain", arguments),
                d = add_kernel(graph, NULL, "plain", arguments);
    value.priority = -3;
    SAY("set priority", cu.cuGraphKernelNodeSetAttribute(c, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    SAY("copy attributes of a plain node", cu.cuGraphKernelNodeCopyAttributes(d, c));
    SAY("get priority", cu.cuGraphKernelNodeGetAttribute(d, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say("priority %d\n", value.priority);
    /* attributes of a captured launch */
    CUlaunchAttribute priority = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -2};
    CUgraph captured = NULL;
    SAY("begin", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("launch", launch_with("plain", priority, stream));
    SAY("end", cu.cuStreamEndCapture(stream, &captured));
    CUgraphNode node = NULL;
    size_t count = 1;
    cu.cuGraphGetNodes(captured, &node, &count);
    SAY("get captured priority",
        cu.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    say("priority %d\n", value.priority);
}

/* ---- instances ---- */

static void instances(void)
{
    load();
    static const unsigned long long all_flags[] = {0, 1, 2, 4, 8, 9, 10, 12, 16, 5, 6, 3};
    for (size_t i = 0; i < sizeof all_flags / sizeof all_flags[0]; i++) {
        CUgraph graph = of_kernels("plain", NULL, false);
        CUgraphExec exec = NULL;
        cuuint64_t flags = 99;
        CUresult made = cu.cuGraphInstantiateWithFlags(&exec, graph, all_flags[i]);
        say("flags %llu: %d", all_flags[i], (int)made);
        if (made == CUDA_SUCCESS) {
            CUresult asked = cu.cuGraphExecGetFlags(exec, &flags);
            say(", get %d %llu", (int)asked, (unsigned long long)flags);
            say(", launch %d", (int)cu.cuGraphLaunch(exec, stream));
            say(", upload %d", (int)cu.cuGraphUpload(exec, stream));
            say(", finish %d", (int)cu.cuStreamSynchronize(stream));
            cu.cuGraphExecDestroy(exec);
        }
        for (int with_stream = 0; with_stream < 2; with_stream++) {
            CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = all_flags[i],
                                                    .hUploadStream = with_stream ? stream : NULL,
                                                    .result_out = (CUgraphInstantiateResult)77};
            made = cu.cuGraphInstantiateWithParams(&exec, graph, &params);
            say(", params%s %d %d", with_stream ? " with a stream" : "", (int)made, (int)params.result_out);
            if (made == CUDA_SUCCESS)
                cu.cuGraphExecDestroy(exec);
        }
        say("\n");
    }
    CUgraph cycle = of_kernels("plain", "plain", true);
    CUgraphNode nodes[2], error = NULL;
    size_t count = 2;
    cu.cuGraphGetNodes(cycle, nodes, &count);
    SAY("make a cycle", cu.cuGraphAddDependencies(cycle, &nodes[1], &nodes[0], 1));
    launch("cycle", cycle, 0, 0);
    char log[256] = "unset";
    CUgraphExec exec = NULL;
    SAY("cycle with a log", cu.cuGraphInstantiate_v2(&exec, cycle, &error, log, sizeof log));
    say("log \"%s\", node %d\n", log, error != NULL);
    SAY("roots of the cycle", cu.cuGraphGetRootNodes(cycle, NULL, &count));
    say("roots %zu\n", count);
    SAY("a node to itself", cu.cuGraphAddDependencies(cycle, &nodes[0], &nodes[0], 1));
    SAY("upload NULL", cu.cuGraphUpload(NULL, stream));
    SAY("launch NULL", cu.cuGraphLaunch(NULL, stream));
    SAY("flags NULL", cu.cuGraphExecGetFlags(NULL, NULL));
    CUgraph graph = of_kernels("plain", NULL, false);
    SAY("instance", cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    SAY("flags nowhere", cu.cuGraphExecGetFlags(exec, NULL));
    SAY("upload to the legacy stream", cu.cuGraphUpload(exec, NULL));
    SAY("begin", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("launch into a capture", cu.cuGraphLaunch(exec, stream));
    CUgraph captured = NULL;
    SAY("end", cu.cuStreamEndCapture(stream, &captured));
    size_t n = 9;
    SAY("nodes", captured != NULL ? cu.cuGraphGetNodes(captured, NULL, &n) : CUDA_ERROR_INVALID_VALUE);
    say("nodes %zu\n", n);
    SAY("begin again", cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SAY("upload into a capture", cu.cuGraphUpload(exec, stream));
    SAY("end again", cu.cuStreamEndCapture(stream, &captured));
    for (unsigned long long asked = 1; asked <= 8; asked *= 2) {
        CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = asked, .hUploadStream = stream};
        cuuint64_t flags = 99;
        CUresult made = cu.cuGraphInstantiateWithParams(&exec, graph, &params);
        CUresult got = cu.cuGraphExecGetFlags(exec, &flags);
        say("params with flags %llu: %d, get %d %llu\n", asked, (int)made, (int)got,
            (unsigned long long)flags);
    }
    /* a graph with an event, a host function or an allocation, to be launched from the device */
    CUevent event;
    cu.cuEventCreate(&event, 0);
    launch("of nothing", new_graph(), 1, 0);
    static const char *const labels[] = {"event", "host", "empty graph", "child", "copy from the host"};
    CUgraph others[] = {of_event(event, false), of_host(), new_graph(), of_child(of_set(4, 1, 4, 0)),
                        of_copy(true, false, 16, 1)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH};
        CUresult made = cu.cuGraphInstantiateWithParams(&exec, others[i], &params);
        say("for the device, %s: %d result %d node %d\n", labels[i], (int)made, (int)params.result_out,
            params.hErrNode_out != NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct section sections[] = {
        {"handles", handles},    {"bodies", bodies},
        {"loops", loops},        {"conditional-updates", conditional_updates},
        {"edges", edges},        {"captured-edges", captured_edges},
        {"update", update},      {"attributes", attributes},
        {"instances", instances}};
    return run_sections(argc, argv, sections, sizeof sections / sizeof sections[0]);
}
