/* "Graph Management": conditions (cuGraphConditionalHandleCreate) and conditional nodes. The value of a
   condition is the machine's (condition.c), since kernels set it; running the node's bodies is api_exec.c's.
 */
#include "emu/api_graph.h"

#include <stdlib.h>

#include "emu/condition.h"

/* Bodies of a switch: no limit is documented. */
#define MAX_BODIES 65536u

struct api_condition *api_condition_new(struct api_graph *graph, CUcontext context, uint32_t initial,
                                        bool assign)
{
    struct api_condition **grown =
        realloc(graph->conditions, (graph->n_conditions + 1) * sizeof(struct api_condition *));
    if (grown == NULL)
        return NULL;
    graph->conditions = grown;
    struct api_condition *condition = calloc(1, sizeof *condition);
    if (condition == NULL)
        return NULL;
    *condition = (struct api_condition){.handle = emu_condition_new(api_device()->machine),
                                        .context = context,
                                        .initial = initial,
                                        .assign = assign,
                                        .refs = 1};
    if (condition->handle == 0) {
        free(condition);
        return NULL;
    }
    graph->conditions[graph->n_conditions++] = condition;
    return condition;
}

void api_condition_release(struct api_condition *condition)
{
    if (--condition->refs > 0)
        return;
    emu_condition_free(api_device()->machine, condition->handle);
    free(condition);
}

void api_conditions_free(struct api_graph *graph)
{
    for (size_t i = 0; i < graph->n_conditions; i++)
        api_condition_release(graph->conditions[i]);
    free(graph->conditions);
}

void api_conditional_free(struct api_conditional *conditional)
{
    for (unsigned i = 0; conditional->bodies != NULL && i < conditional->size; i++)
        if (conditional->bodies[i] != NULL)
            api_graph_free(conditional->bodies[i]);
    if (conditional->condition != NULL) {
        conditional->condition->used = false;
        api_condition_release(conditional->condition);
    }
    free(conditional->bodies);
    free(conditional->handles);
    free(conditional);
}

bool api_graph_has_conditional(const struct api_graph *graph)
{
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next)
        if (node->conditional != NULL || (node->child != NULL && api_graph_has_conditional(node->child)))
            return true;
    return false;
}

/* A condition of the graph or of one that it is a part of. */
static struct api_condition *find(const struct api_graph *graph, CUgraphConditionalHandle handle)
{
    for (;;) {
        for (size_t i = 0; i < graph->n_conditions; i++)
            if (graph->conditions[i]->handle == handle)
                return graph->conditions[i];
        if (graph->parent == NULL)
            return NULL;
        graph = graph->parent->graph;
    }
}

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                                CUcontext ctx, unsigned int defaultLaunchValue,
                                                unsigned int flags)
{
    API_ENTER();
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(pHandle_out != NULL && graph != NULL &&
                (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) == 0);
    const struct api_context *context = ctx != NULL ? api_context_get(ctx) : NULL;
    if (context == NULL) /* the current one is not meant by NULL, on the H200 */
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no live context for the condition");
    struct api_condition *condition = api_condition_new(graph, context->handle, defaultLaunchValue,
                                                        (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0);
    if (condition == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a condition");
    *pHandle_out = condition->handle;
    return api_leave();
}

static CUresult check_size(const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    unsigned most = 0;
    switch (params->type) {
    case CU_GRAPH_COND_TYPE_IF:
        most = 2;
        break;
    case CU_GRAPH_COND_TYPE_WHILE:
        most = 1;
        break;
    case CU_GRAPH_COND_TYPE_SWITCH:
        most = MAX_BODIES;
        break;
    default:
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "conditional node type %d", (int)params->type);
    }
    if (params->size == 0 || params->size > most)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u bodies: wanted 1 to %u", params->size, most);
    return CUDA_SUCCESS;
}

/* With its bodies, empty; NULL when memory is out. */
static struct api_conditional *conditional_new(const CUDA_CONDITIONAL_NODE_PARAMS *params,
                                               struct api_condition *condition)
{
    struct api_conditional *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->type = params->type;
    made->size = params->size;
    made->bodies = calloc(params->size, sizeof(struct api_graph *));
    made->handles = calloc(params->size, sizeof(CUgraph));
    bool good = made->bodies != NULL && made->handles != NULL;
    for (unsigned i = 0; good && i < params->size; i++) {
        made->bodies[i] = api_graph_new();
        good = made->bodies[i] != NULL;
        if (good)
            made->handles[i] = made->bodies[i]->handle;
    }
    if (!good) {
        api_conditional_free(made);
        return NULL;
    }
    made->condition = condition;
    condition->refs++;
    condition->used = true;
    return made;
}

CUresult api_conditional_add(CUgraphNode *out_handle, CUgraph hGraph, const CUgraphNode *dependencies,
                             const CUgraphEdgeData *data, size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    const struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    struct api_work work = {.kind = API_WORK_EMPTY};
    API_REQUIRE(graph != NULL && out_handle != NULL);
    CUresult result = check_size(params);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct api_condition *condition = find(graph, params->handle);
    if (condition == NULL || condition->used)
        return api_fail(CUDA_ERROR_INVALID_VALUE,
                        "the handle is none of the graph's, or has its node already");
    const struct api_context *context = params->ctx != NULL ? api_context_get(params->ctx) : NULL;
    if (context == NULL)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "no live context for the node");
    API_REQUIRE(context->handle == condition->context);
    struct api_conditional *made = conditional_new(params, condition);
    if (made == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u graphs", params->size);
    struct api_node *node = NULL;
    result = api_node_add_to(hGraph, dependencies, data, count, CU_GRAPH_NODE_TYPE_CONDITIONAL, &work, &node);
    if (result != CUDA_SUCCESS) {
        api_conditional_free(made);
        return api_result(result);
    }
    node->conditional = made;
    for (unsigned i = 0; i < made->size; i++)
        made->bodies[i]->parent = node;
    params->phGraph_out = made->handles;
    *out_handle = node->handle;
    return api_leave();
}
