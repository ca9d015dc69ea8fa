/* "Graph Management": memory allocation and free nodes, batches of stream memory operations, and changes of
   event nodes. Memory itself: api_graph_memory.c. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- allocation and free ---- */

CUresult api_alloc_work(const CUmemPoolProps *props, size_t bytes, struct api_work *out_work)
{
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->location.id != 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE,
                             "an allocation node allocates plain memory of device 0");
    return api_graph_memory_new(bytes, out_work);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                        const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    API_ENTER();
    API_REQUIRE(nodeParams != NULL);
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = api_alloc_work(&nodeParams->poolProps, nodeParams->bytesize, &work);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    const uint64_t address = work.memory.address;
    result = api_node_add_call(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                               CU_GRAPH_NODE_TYPE_MEM_ALLOC, &work, NULL);
    if (result == CUDA_SUCCESS)
        nodeParams->dptr = address;
    return result;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = node->work.memory.bytes,
        .dptr = node->work.memory.address,
    };
    return api_leave();
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    API_ENTER();
    if (!api_graph_memory_is(dptr))
        return api_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not of an allocation node",
                        (unsigned long long)dptr);
    const struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    for (const struct api_node *node = graph != NULL ? graph->nodes : NULL; node != NULL; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->work.memory.address == dptr)
            return api_fail(CUDA_ERROR_INVALID_VALUE, "the graph frees 0x%llx already",
                            (unsigned long long)dptr);
    struct api_work work = {.kind = API_WORK_FREE, .memory = {.address = dptr}};
    return api_node_add_call(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                             CU_GRAPH_NODE_TYPE_MEM_FREE, &work, NULL);
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *dptr_out = node->work.memory.address;
    return api_leave();
}

/* ---- batches ---- */

CUresult api_batch_work(unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags,
                        struct api_work *out_work)
{
    if (flags != 0 || count == 0 || count > 256 || ops == NULL)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u operations, flags 0x%x", count, flags);
    struct api_work *items = calloc(count, sizeof *items);
    CUstreamBatchMemOpParams *kept = calloc(count, sizeof *kept);
    if (items == NULL || kept == NULL) {
        free(items);
        free(kept);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u operations", count);
    }
    memcpy(kept, ops, count * sizeof *kept);
    for (unsigned i = 0; i < count; i++) {
        CUresult result = api_memory_op_work(&ops[i], &items[i]);
        if (result != CUDA_SUCCESS) {
            free(items);
            free(kept);
            return result;
        }
    }
    *out_work = (struct api_work){.kind = API_WORK_BATCH, .batch = {items, kept, count}};
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                          const CUgraphNode *dependencies, size_t numDependencies,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    API_ENTER();
    API_REQUIRE(nodeParams != NULL);
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = api_batch_work(nodeParams->count, nodeParams->paramArray, nodeParams->flags, &work);
    return result != CUDA_SUCCESS
               ? api_result(result)
               : api_node_add_call(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                   CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &work, NULL);
}

/* The operations are lent until the node changes. */
CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                                CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, &node);
    if (result != CUDA_SUCCESS)
        return result;
    const bool batch = node->work.kind == API_WORK_BATCH; /* captured single operations are none */
    const struct api_context *context = api_context_get(NULL);
    *nodeParams_out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
        .ctx = context != NULL ? context->handle : NULL,
        .count = batch ? node->work.batch.count : 0,
        .paramArray = batch ? node->work.batch.ops : NULL,
    };
    return api_leave();
}

/* Replaces a node's work; ends the call. */
static CUresult replace(struct api_node *node, CUresult made, struct api_work *work)
{
    if (made != CUDA_SUCCESS)
        return api_result(made);
    api_work_fini(&node->work);
    node->work = *work;
    return api_leave();
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                                const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct api_node *node;
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = enter_node(__func__, hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams, &node);
    if (result != CUDA_SUCCESS)
        return result;
    return replace(node, api_batch_work(nodeParams->count, nodeParams->paramArray, nodeParams->flags, &work),
                   &work);
}

/* ---- event nodes ---- */

static CUresult set_event(const char *call, CUgraphNode hNode, CUgraphNodeType type, enum api_work_kind kind,
                          CUevent event)
{
    struct api_node *node;
    struct api_work work = {.kind = API_WORK_EMPTY};
    CUresult result = enter_node(call, hNode, type, &work, &node);
    return result != CUDA_SUCCESS ? result : replace(node, api_event_work(event, kind, &work), &work);
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(__func__, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, API_WORK_RECORD, event);
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(__func__, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, API_WORK_WAIT, event);
}
