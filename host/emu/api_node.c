/* "Graph Management": nodes by kind: kernels, copies, sets, host functions, events, child graphs, and their
   parameters. Memory nodes and batches: api_node_memory.c; conditional nodes: api_conditional.c. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

#include "emu/api_transfer.h"

/* ---- parameters to work ---- */

/* The context that a node works in: its own, or the current one. */
static CUresult context_of(CUcontext handle, struct api_context **out_context)
{
    *out_context = api_context_get(handle);
    return *out_context != NULL ? CUDA_SUCCESS
                                : api_set_error(CUDA_ERROR_INVALID_CONTEXT, "no live context for the node");
}

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, CUcontext handle,
                            struct api_work *out_work)
{
    const CUfunction function = params->func != NULL ? params->func : (CUfunction)params->kern;
    struct api_context *context;
    if (emu_handle_get(EMU_HANDLE_FUNCTION, function) == NULL &&
        emu_handle_get(EMU_HANDLE_KERNEL, function) == NULL) /* before the context, on the H200 */
        return api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live function");
    CUresult result = context_of(handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (context->sticky != CUDA_SUCCESS)
        return api_copy_error(context->sticky, &context->fault);
    CUlaunchConfig config = {
        .gridDimX = params->gridDimX,
        .gridDimY = params->gridDimY,
        .gridDimZ = params->gridDimZ,
        .blockDimX = params->blockDimX,
        .blockDimY = params->blockDimY,
        .blockDimZ = params->blockDimZ,
        .sharedMemBytes = params->sharedMemBytes,
    };
    return api_launch_prepare(context, handle != NULL ? api_green_of(handle) : api_green_current(), &config,
                              function, params->kernelParams, params->extra, false, out_work);
}

CUresult api_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, struct api_work *out_work)
{
    return kernel_work(params, params->ctx, out_work);
}

CUresult api_copy_work(const CUDA_MEMCPY3D *params, struct api_work *out_work)
{
    struct api_copy copy;
    CUresult result = params->WidthInBytes == 0 || params->Height == 0 || params->Depth == 0
                          ? api_set_error(CUDA_ERROR_INVALID_VALUE, "a node that copies nothing")
                          : api_copy_from_3d(params, &copy);
    if (result != CUDA_SUCCESS)
        return result;
    copy.given = malloc(sizeof *copy.given);
    if (copy.given == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a copy's parameters");
    *copy.given = *params;
    *out_work = (struct api_work){.kind = API_WORK_COPY, .copy = copy};
    return result;
}

CUresult api_set_work(const CUDA_MEMSET_NODE_PARAMS *params, struct api_work *out_work)
{
    if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "elements of %u bytes", params->elementSize);
    if (params->width == 0 || params->height == 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "a node that sets nothing");
    CUresult result =
        api_set_check(params->dst, params->pitch, params->elementSize, params->width, params->height);
    *out_work = (struct api_work){
        .kind = API_WORK_SET,
        .set = {params->dst, params->pitch, params->width, params->height, params->elementSize,
                params->value},
    };
    return result;
}

CUresult api_host_work(const CUDA_HOST_NODE_PARAMS *params, struct api_work *out_work)
{
    if (params->fn == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the host function is NULL");
    *out_work = (struct api_work){.kind = API_WORK_HOST, .host = {params->fn, params->userData}};
    return CUDA_SUCCESS;
}

CUresult api_event_work(CUevent handle, enum api_work_kind kind, struct api_work *out_work)
{
    struct api_event *event = emu_handle_get(EMU_HANDLE_EVENT, handle);
    if (event == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "not a live event");
    event->refs++;
    *out_work = (struct api_work){.kind = kind, .event = {event, 0, 0}};
    return CUDA_SUCCESS;
}

/* ---- adding ---- */

CUresult api_node_add_to(CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                         size_t count, CUgraphNodeType type, struct api_work *work,
                         struct api_node **out_node)
{
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    struct api_edge *from = NULL;
    CUresult result = CUDA_SUCCESS;
    if (graph == NULL)
        result = api_set_error(CUDA_ERROR_INVALID_VALUE, "not a live graph");
    if (result == CUDA_SUCCESS)
        result = api_edges_get(graph, dependencies, data, count, &from);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = api_edge_check(&from[i], type);
    if (result == CUDA_SUCCESS)
        result = api_node_add(graph, type, work, from, count, out_node);
    free(from);
    if (result != CUDA_SUCCESS)
        api_work_fini(work);
    return result;
}

CUresult api_node_add_call(CUgraphNode *out_handle, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, CUgraphNodeType type,
                           struct api_work *work, struct api_graph *child)
{
    struct api_node *node = NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (out_handle != NULL) {
        result = api_node_add_to(hGraph, dependencies, data, count, type, work, &node);
    } else {
        api_set_error(result, "no place for the node");
        api_work_fini(work);
    }
    if (result != CUDA_SUCCESS) {
        if (child != NULL)
            api_graph_free(child);
        return api_result(result);
    }
    node->child = child;
    if (child != NULL)
        child->parent = node;
    *out_handle = node->handle;
    return api_leave();
}

/* Enters, makes work of parameters (unless they are NULL), adds it. */
#define ADD(type, make)                              \
    API_ENTER();                                     \
    struct api_work work = {.kind = API_WORK_EMPTY}; \
    CUresult made_ = (make);                         \
    if (made_ != CUDA_SUCCESS)                       \
        return api_result(made_);                    \
    return api_node_add_call(phGraphNode, hGraph, dependencies, NULL, numDependencies, type, &work, NULL)

static CUresult null_params(void)
{
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "the parameters are NULL");
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    ADD(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams == NULL ? null_params() : api_kernel_work(nodeParams, &work));
}

static CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = old->func,
        .gridDimX = old->gridDimX,
        .gridDimY = old->gridDimY,
        .gridDimZ = old->gridDimZ,
        .blockDimX = old->blockDimX,
        .blockDimY = old->blockDimY,
        .blockDimZ = old->blockDimZ,
        .sharedMemBytes = old->sharedMemBytes,
        .kernelParams = old->kernelParams,
        .extra = old->extra,
    };
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (nodeParams == NULL)
        return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, NULL);
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);
    return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &wide);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx; /* one device: the addresses say everything */
    ADD(CU_GRAPH_NODE_TYPE_MEMCPY, copyParams == NULL ? null_params() : api_copy_work(copyParams, &work));
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    (void)ctx;
    ADD(CU_GRAPH_NODE_TYPE_MEMSET, memsetParams == NULL ? null_params() : api_set_work(memsetParams, &work));
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    ADD(CU_GRAPH_NODE_TYPE_HOST, nodeParams == NULL ? null_params() : api_host_work(nodeParams, &work));
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies)
{
    ADD(CU_GRAPH_NODE_TYPE_EMPTY, CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                           const CUgraphNode *dependencies, size_t numDependencies,
                                           CUevent event)
{
    ADD(CU_GRAPH_NODE_TYPE_EVENT_RECORD, api_event_work(event, API_WORK_RECORD, &work));
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                         const CUgraphNode *dependencies, size_t numDependencies,
                                         CUevent event)
{
    ADD(CU_GRAPH_NODE_TYPE_WAIT_EVENT, api_event_work(event, API_WORK_WAIT, &work));
}

static CUresult add_child(CUgraphNode *out_handle, CUgraph hGraph, const CUgraphNode *dependencies,
                          const CUgraphEdgeData *data, size_t count, CUgraph childGraph)
{
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, childGraph);
    struct api_work work = {.kind = API_WORK_EMPTY};
    if (graph == NULL || childGraph == hGraph)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "no live child graph");
    if (api_graph_has_memory(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory cannot be cloned");
    if (api_graph_has_conditional(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes cannot be a child");
    struct api_graph *child = api_graph_clone(graph);
    if (child == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    return api_node_add_call(out_handle, hGraph, dependencies, data, count, CU_GRAPH_NODE_TYPE_GRAPH, &work,
                             child);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          CUgraph childGraph)
{
    API_ENTER();
    return add_child(phGraphNode, hGraph, dependencies, NULL, numDependencies, childGraph);
}

/* The form that takes any kind. The structs of this form repeat the older ones with a context. */
CUresult api_any_work(const CUgraphNodeParams *params, struct api_work *out_work)
{
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &params->kernel;
        CUDA_KERNEL_NODE_PARAMS old = {
            .func = kernel->func,
            .gridDimX = kernel->gridDimX,
            .gridDimY = kernel->gridDimY,
            .gridDimZ = kernel->gridDimZ,
            .blockDimX = kernel->blockDimX,
            .blockDimY = kernel->blockDimY,
            .blockDimZ = kernel->blockDimZ,
            .sharedMemBytes = kernel->sharedMemBytes,
            .kernelParams = kernel->kernelParams,
            .extra = kernel->extra,
            .kern = kernel->kern,
        };
        return kernel_work(&old, kernel->ctx, out_work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return api_copy_work(&params->memcpy.copyParams, out_work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS old = {
            .dst = params->memset.dst,
            .pitch = params->memset.pitch,
            .value = params->memset.value,
            .elementSize = params->memset.elementSize,
            .width = params->memset.width,
            .height = params->memset.height,
        };
        return api_set_work(&old, out_work);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
        CUDA_HOST_NODE_PARAMS old = {.fn = params->host.fn, .userData = params->host.userData};
        return api_host_work(&old, out_work);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return api_event_work(params->eventRecord.event, API_WORK_RECORD, out_work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return api_event_work(params->eventWait.event, API_WORK_WAIT, out_work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        *out_work = (struct api_work){.kind = API_WORK_FREE, .memory = {.address = params->free.dptr}};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return api_batch_work(params->memOp.count, params->memOp.paramArray, params->memOp.flags, out_work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        return api_external_work(params->extSemSignal.numExtSems);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return api_external_work(params->extSemWait.numExtSems);
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "graph node type %d", (int)params->type);
    }
}

static CUresult add_any(const char *call, CUgraphNode *out_handle, CUgraph hGraph,
                        const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                        CUgraphNodeParams *params)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(params != NULL);
    API_REQUIRE(params->reserved0[0] == 0 && params->reserved0[1] == 0 && params->reserved0[2] == 0 &&
                params->reserved2 == 0);
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return add_child(out_handle, hGraph, dependencies, data, count, params->graph.graph);
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return api_conditional_add(out_handle, hGraph, dependencies, data, count, &params->conditional);
    struct api_work work = {.kind = API_WORK_EMPTY};
    const bool allocates = params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    result = allocates ? api_alloc_work(&params->alloc.poolProps, params->alloc.bytesize, &work)
                       : api_any_work(params, &work);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    const uint64_t address = allocates ? work.memory.address : 0;
    result = api_node_add_call(out_handle, hGraph, dependencies, data, count, params->type, &work, NULL);
    if (result == CUDA_SUCCESS && allocates)
        params->alloc.dptr = address;
    return result;
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    return add_any(__func__, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams)
{
    return add_any(__func__, phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

/* ---- parameters of a node ---- */

static CUresult enter_node(const char *call, CUgraphNode handle, CUgraphNodeType type, const void *params,
                           struct api_node **out_node)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_node = emu_handle_get(EMU_HANDLE_NODE, handle);
    if (*out_node == NULL || (*out_node)->type != type || params == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live node of that kind, or no parameters");
    return CUDA_SUCCESS;
}

static void replace(struct api_node *node, struct api_work *work)
{
    api_work_fini(&node->work);
    node->work = *work;
    free(node->param_pointers);
    node->param_pointers = NULL;
}

/* Lends pointers into the node's parameter block. */
static CUresult read_kernel(struct api_node *node, CUDA_KERNEL_NODE_PARAMS *out)
{
    struct api_launch *launch = &node->work.launch;
    const struct emu_kernel_info *info = &launch->function->info;
    if (node->param_pointers == NULL && info->n_params > 0) {
        node->param_pointers = calloc(info->n_params, sizeof(void *));
        if (node->param_pointers == NULL)
            return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the parameters");
        for (uint32_t i = 0; i < info->n_params; i++)
            node->param_pointers[i] = (unsigned char *)launch->params + info->param_offsets[i];
    }
    *out = (CUDA_KERNEL_NODE_PARAMS){
        .func = launch->function->handle,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->dynamic_shared_bytes,
        .kernelParams = node->param_pointers,
        .ctx = launch->green != NULL                       ? (CUcontext)launch->green->handle
               : launch->function->module->context != NULL ? launch->function->module->context->handle
                                                           : NULL,
    };
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);
    return result != CUDA_SUCCESS ? result : api_result(read_kernel(node, nodeParams));
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    struct api_node *node;
    CUDA_KERNEL_NODE_PARAMS wide;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    result = read_kernel(node, &wide);
    if (result == CUDA_SUCCESS)
        memcpy(nodeParams, &wide, sizeof *nodeParams); /* the older struct is the newer one's beginning */
    return api_result(result);
}

/* A replaced kernel keeps its cluster and its cooperative attribute, which are set apart from the parameters.
 */
static CUresult set_kernel(struct api_node *node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct api_work work;
    CUresult result = api_kernel_work(params, &work);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_attributes_keep(&node->work.launch, &work.launch);
    if (result == CUDA_SUCCESS)
        replace(node, &work);
    else
        api_work_fini(&work);
    return result;
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);
    return result != CUDA_SUCCESS ? result : api_result(set_kernel(node, nodeParams));
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);
    return api_result(set_kernel(node, &wide));
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    const struct api_copy *copy = &node->work.copy;
    if (copy->given != NULL) {
        *nodeParams = *copy->given;
        return api_leave();
    }
    const struct api_copy_side *to = &copy->to, *from = &copy->from;
    *nodeParams = (CUDA_MEMCPY3D){
        .srcMemoryType = from->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .srcHost = from->device ? NULL : (void *)(uintptr_t)from->address,
        .srcDevice = from->device ? from->address : 0,
        .srcPitch = from->pitch,
        .srcHeight = from->pitch != 0 ? from->slice_pitch / from->pitch : 0,
        .dstMemoryType = to->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = to->device ? NULL : (void *)(uintptr_t)to->address,
        .dstDevice = to->device ? to->address : 0,
        .dstPitch = to->pitch,
        .dstHeight = to->pitch != 0 ? to->slice_pitch / to->pitch : 0,
        .WidthInBytes = copy->width,
        .Height = copy->height,
        .Depth = copy->depth,
    };
    return api_leave();
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    struct api_node *node;
    struct api_work work;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_copy_work(nodeParams, &work);
    if (result == CUDA_SUCCESS)
        replace(node, &work);
    return api_result(result);
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *nodeParams = (CUDA_MEMSET_NODE_PARAMS){
        .dst = node->work.set.address,
        .pitch = node->work.set.pitch,
        .value = node->work.set.value,
        .elementSize = node->work.set.element_bytes,
        .width = node->work.set.width,
        .height = node->work.set.height,
    };
    return api_leave();
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    struct api_work work;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_set_work(nodeParams, &work);
    if (result == CUDA_SUCCESS)
        replace(node, &work);
    return api_result(result);
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *nodeParams = (CUDA_HOST_NODE_PARAMS){.fn = node->work.host.function, .userData = node->work.host.data};
    return api_leave();
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    struct api_work work;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_host_work(nodeParams, &work);
    if (result == CUDA_SUCCESS)
        replace(node, &work);
    return api_result(result);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *event_out = node->work.event.event->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *event_out = node->work.event.event->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *phGraph = node->child->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    API_ENTER();
    struct api_node *node = emu_handle_get(EMU_HANDLE_NODE, hNode);
    struct api_work work = {.kind = API_WORK_EMPTY};
    API_REQUIRE(node != NULL && nodeParams != NULL && nodeParams->type == node->type);
    if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "the parameters of a conditional node do not change");
    CUresult result = api_any_work(nodeParams, &work);
    if (result == CUDA_SUCCESS && work.kind == API_WORK_KERNEL)
        result = api_attributes_keep(&node->work.launch, &work.launch);
    if (result == CUDA_SUCCESS)
        replace(node, &work);
    else
        api_work_fini(&work);
    return api_result(result);
}
