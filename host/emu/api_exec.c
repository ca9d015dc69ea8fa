/* "Graph Management": instantiated graphs. An instance is a list of work in an order that the edges allow,
   run one after the other on the stream's thread: a legal schedule. The list is never changed while a launch
   of it is queued: an update makes a copy first, so that it affects later launches only, as documented.
   Leaves out: device-side launch, user objects. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

/* A conditional node's step is followed by a marker for each of its bodies, and each marker by the body's
 * steps.
 */
struct api_step {
    struct api_work work;
    unsigned long long node; /* the id of the node that it came from; 0: a marker */
    CUgraphNodeType type;
    size_t n_from; /* for cuGraphExecUpdate's comparison */
    bool disabled;
    size_t n_inside; /* CONDITIONAL, marker: the steps after it that belong to it */
    uint64_t condition;
    CUgraphConditionalNodeType decides;
    unsigned n_bodies;
};

/* What a launch refers to: counted, unchanged while more than the instance refers to it. */
struct api_exec {
    struct api_step *steps;
    size_t n_steps;
    unsigned refs;
    struct api_retainer retained;
    struct api_condition **conditions; /* references are held */
    size_t n_conditions;
};

struct instance {
    CUgraphExec handle;
    struct api_exec *exec;
    unsigned long long flags;
};

void api_exec_hold(struct api_exec *exec)
{
    exec->refs++;
}

void api_exec_release(struct api_exec *exec)
{
    if (--exec->refs > 0)
        return;
    for (size_t i = 0; i < exec->n_steps; i++)
        api_work_fini(&exec->steps[i].work);
    for (size_t i = 0; i < exec->n_conditions; i++)
        api_condition_release(exec->conditions[i]);
    free(exec->conditions);
    free(exec->steps);
    api_retainer_fini(&exec->retained);
    free(exec);
}

/* An event of a wait node: waits for what it was last recorded as. */
static void wait_for_event(struct api_context *context, struct api_event *event)
{
    api_lock();
    struct api_stream *stream = event->stream;
    uint64_t issued = event->issued;
    if (event->shared != NULL) {
        const uint64_t last = api_shared_event_last(event);
        api_unlock();
        api_shared_event_wait(event, last, &context->cancel);
        return;
    }
    if (stream != NULL) {
        stream->refs++;
        while (stream->completed < issued && !context->cancel)
            api_wait_for_change();
        api_stream_release(stream);
    }
    api_unlock();
}

static CUresult run_steps(struct api_context *context, struct api_step *first, const struct api_step *end,
                          struct clab_error *error);

/* Asks the condition and runs what it chooses; a loop asks again. */
static CUresult run_conditional(struct api_context *context, struct api_step *step, struct clab_error *error)
{
    CUresult result = CUDA_SUCCESS;
    do {
        uint32_t value = emu_condition_get(api_device()->machine, step->condition), choice = value;
        if (step->decides != CU_GRAPH_COND_TYPE_SWITCH)
            choice = value != 0 ? 0 : 1;
        if (choice >= step->n_bodies)
            break;
        struct api_step *body = step + 1;
        for (uint32_t i = 0; i < choice; i++)
            body += 1 + body->n_inside;
        result = run_steps(context, body + 1, body + 1 + body->n_inside, error);
    } while (step->decides == CU_GRAPH_COND_TYPE_WHILE && result == CUDA_SUCCESS && !context->cancel);
    return result;
}

static CUresult run_steps(struct api_context *context, struct api_step *first, const struct api_step *end,
                          struct clab_error *error)
{
    for (struct api_step *step = first; step < end && !context->cancel; step++) {
        if (step->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            CUresult result = run_conditional(context, step, error);
            if (result != CUDA_SUCCESS)
                return result;
            step += step->n_inside;
            continue;
        }
        if (step->disabled)
            continue;
        if (step->work.kind == API_WORK_WAIT) {
            wait_for_event(context, step->work.event.event);
            continue;
        }
        CUresult result = api_work_run(context, &step->work, error);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult api_exec_run(struct api_context *context, struct api_exec *exec, struct clab_error *error)
{
    for (size_t i = 0; i < exec->n_conditions; i++)
        if (exec->conditions[i]->assign)
            emu_condition_set(api_device()->machine, exec->conditions[i]->handle,
                              exec->conditions[i]->initial);
    return run_steps(context, exec->steps, exec->steps + exec->n_steps, error);
}

/* A new step at the end; NULL when memory is out. */
static struct api_step *step_new(struct api_exec *exec, size_t *capacity)
{
    if (exec->n_steps == *capacity) {
        size_t more = *capacity == 0 ? 16 : *capacity * 2;
        struct api_step *grown = realloc(exec->steps, more * sizeof *grown);
        if (grown == NULL) {
            api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
            return NULL;
        }
        exec->steps = grown;
        *capacity = more;
    }
    struct api_step *step = &exec->steps[exec->n_steps++];
    *step = (struct api_step){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return step;
}

static CUresult append(struct api_exec *exec, const struct api_graph *graph, size_t *capacity);

static CUresult append_bodies(struct api_exec *exec, const struct api_conditional *conditional,
                              size_t *capacity)
{
    CUresult result = CUDA_SUCCESS;
    const size_t place = exec->n_steps - 1;
    exec->steps[place].condition = conditional->condition->handle;
    exec->steps[place].decides = conditional->type;
    exec->steps[place].n_bodies = conditional->size;
    for (unsigned i = 0; i < conditional->size && result == CUDA_SUCCESS; i++) {
        const size_t marker = exec->n_steps;
        if (step_new(exec, capacity) == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        result = append(exec, conditional->bodies[i], capacity);
        exec->steps[marker].n_inside = exec->n_steps - marker - 1;
    }
    exec->steps[place].n_inside = exec->n_steps - place - 1;
    return result;
}

/* Appends the steps of a graph, those of graphs inside it in their place. */
static CUresult append(struct api_exec *exec, const struct api_graph *graph, size_t *capacity)
{
    struct api_node **order;
    CUresult result = api_graph_order(graph, &order);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++) {
        struct api_node *node = order[i];
        struct api_step *step = step_new(exec, capacity);
        if (step == NULL) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        }
        step->node = node->id;
        step->type = node->type;
        step->n_from = node->n_from;
        result = api_work_copy(&node->work, &step->work);
        if (result == CUDA_SUCCESS && node->child != NULL)
            result = append(exec, node->child, capacity);
        if (result == CUDA_SUCCESS && node->conditional != NULL)
            result = append_bodies(exec, node->conditional, capacity);
    }
    free(order);
    return result;
}

static bool conditions_copy(struct api_exec *exec, struct api_condition *const *from, size_t count)
{
    if (count == 0)
        return true;
    struct api_condition **grown =
        realloc(exec->conditions, (exec->n_conditions + count) * sizeof(struct api_condition *));
    if (grown == NULL)
        return false;
    exec->conditions = grown;
    for (size_t i = 0; i < count; i++) {
        from[i]->refs++;
        grown[exec->n_conditions++] = from[i];
    }
    return true;
}

/* The user objects and conditions of a graph and of the graphs inside it. */
static bool retain_all(struct api_exec *exec, const struct api_graph *graph)
{
    if (!api_retainer_copy(&exec->retained, &graph->retained) ||
        !conditions_copy(exec, graph->conditions, graph->n_conditions))
        return false;
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next) {
        if (node->child != NULL && !retain_all(exec, node->child))
            return false;
        for (unsigned i = 0; node->conditional != NULL && i < node->conditional->size; i++)
            if (!retain_all(exec, node->conditional->bodies[i]))
                return false;
    }
    return true;
}

/* Is a condition of the graph asked by no node? */
static bool has_unused(const struct api_graph *graph)
{
    for (size_t i = 0; i < graph->n_conditions; i++)
        if (!graph->conditions[i]->used)
            return true;
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next)
        for (unsigned i = 0; node->conditional != NULL && i < node->conditional->size; i++)
            if (has_unused(node->conditional->bodies[i]))
                return true;
    return false;
}

static CUresult exec_new(const struct api_graph *graph, struct api_exec **out_exec)
{
    size_t capacity = 0;
    struct api_exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    exec->refs = 1;
    CUresult result = append(exec, graph, &capacity);
    if (result == CUDA_SUCCESS && !retain_all(exec, graph))
        result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    if (result != CUDA_SUCCESS) {
        api_exec_release(exec);
        return result;
    }
    *out_exec = exec;
    return CUDA_SUCCESS;
}

/* Makes the instance's list its own, for a change. */
static CUresult make_own(struct instance *instance)
{
    struct api_exec *old = instance->exec;
    if (old->refs == 1)
        return CUDA_SUCCESS;
    struct api_exec *copy = calloc(1, sizeof *copy);
    if (copy != NULL)
        copy->steps = calloc(old->n_steps > 0 ? old->n_steps : 1, sizeof *copy->steps);
    if (copy == NULL || copy->steps == NULL) {
        free(copy);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    }
    copy->refs = 1;
    for (size_t i = 0; i < old->n_steps; i++) {
        copy->steps[i] = old->steps[i];
        CUresult result = api_work_copy(&old->steps[i].work, &copy->steps[i].work);
        if (result != CUDA_SUCCESS) {
            copy->n_steps = i;
            api_exec_release(copy);
            return result;
        }
        copy->n_steps = i + 1;
    }
    if (!api_retainer_copy(&copy->retained, &old->retained) ||
        !conditions_copy(copy, old->conditions, old->n_conditions)) {
        api_exec_release(copy);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    }
    api_exec_release(old);
    instance->exec = copy;
    return CUDA_SUCCESS;
}

/* ---- calls ---- */

/* `out_why` may be NULL. */
static CUresult instantiate(const char *call, CUgraphExec *out_handle, CUgraph hGraph,
                            unsigned long long flags, CUgraphInstantiateResult *out_why)
{
    CUgraphInstantiateResult ignored;
    CUgraphInstantiateResult *why = out_why != NULL ? out_why : &ignored;
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(out_handle != NULL && graph != NULL);
    unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                               CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                               CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "launching graphs from kernels is not emulated");
    if ((flags & ~known) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown flags in 0x%llx", flags);
    /* UNVERIFIED: the code of a second instance (CUDA Driver API 13.0, cuGraphAddMemAllocNode). */
    if (emu_handle_get(EMU_HANDLE_EXEC, graph->instance) != NULL && api_graph_has_memory(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory has one instance");
    if (emu_handle_get(EMU_HANDLE_EXEC, graph->instance) != NULL && api_graph_has_conditional(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes has one instance");
    if (has_unused(graph)) {
        *why = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return api_fail(CUDA_ERROR_INVALID_VALUE, "a condition of the graph is asked by no node");
    }
    struct instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    result = exec_new(graph, &instance->exec);
    if (result == CUDA_ERROR_INVALID_VALUE)
        *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    if (result == CUDA_SUCCESS) {
        instance->handle = emu_handle_new(EMU_HANDLE_EXEC, instance);
        if (instance->handle == NULL) {
            api_exec_release(instance->exec);
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
        }
    }
    if (result != CUDA_SUCCESS) {
        free(instance);
        return api_result(result);
    }
    *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    instance->flags = flags;
    *out_handle = graph->instance = instance->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    return instantiate(__func__, phGraphExec, hGraph, flags, NULL);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                       char *logBuffer, size_t bufferSize)
{
    if (phErrorNode != NULL)
        *phErrorNode = NULL;
    if (logBuffer != NULL && bufferSize > 0)
        logBuffer[0] = '\0';
    return instantiate(__func__, phGraphExec, hGraph, 0, NULL);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                    char *logBuffer, size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (instantiateParams == NULL)
        return instantiate(__func__, phGraphExec, NULL, 0, NULL);
    instantiateParams->hErrNode_out = NULL;
    return instantiate(__func__, phGraphExec, hGraph, instantiateParams->flags,
                       &instantiateParams->result_out);
}

static CUresult enter_instance(const char *call, CUgraphExec handle, struct instance **out_instance)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_instance = emu_handle_get(EMU_HANDLE_EXEC, handle);
    return *out_instance != NULL ? CUDA_SUCCESS
                                 : api_fail(CUDA_ERROR_INVALID_VALUE, "not a live instance of a graph");
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    struct instance *instance;
    CUresult result = enter_instance(__func__, hGraphExec, &instance);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(flags != NULL);
    *flags = instance->flags;
    return api_leave();
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct instance *instance;
    CUresult result = enter_instance(__func__, hGraphExec, &instance);
    if (result != CUDA_SUCCESS)
        return result;
    emu_handle_free(hGraphExec);
    api_exec_release(instance->exec);
    free(instance);
    return api_leave();
}

/* Memory of an allocation node is there from the launch on, so that later calls may name it. Memory that an
   earlier launch left must be freed first, unless the instance does so by itself. */
static CUresult take_memory(struct api_context *context, const struct instance *instance, size_t index)
{
    const struct api_exec *exec = instance->exec;
    const struct api_work *work = &exec->steps[index].work;
    bool freed = (instance->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    if (work->kind != API_WORK_ALLOC)
        return CUDA_SUCCESS;
    for (size_t i = index + 1; i < exec->n_steps && !freed; i++)
        freed = exec->steps[i].work.kind == API_WORK_FREE &&
                exec->steps[i].work.memory.address == work->memory.address;
    const struct api_allocation *there = api_allocation_find(work->memory.address);
    if (there != NULL && !there->free_queued && !freed)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "memory of an allocation node is not freed yet");
    return api_graph_memory_take(context, work->memory.address, work->memory.bytes);
}

static CUresult submit(const char *call, CUgraphExec handle, CUstream hStream, bool run)
{
    struct api_context *context;
    struct api_stream *stream;
    CUresult result = api_enter_for(call, hStream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct instance *instance = emu_handle_get(EMU_HANDLE_EXEC, handle);
    if (instance == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a live instance of a graph");
    result = api_stream_get(context, hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = api_capture_refuse(stream);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct api_work work = {.kind = API_WORK_EMPTY};
    if (run) {
        /* Events that the graph records are, from now on, recorded by this launch. */
        for (size_t i = 0; stream->capture == NULL && i < instance->exec->n_steps; i++)
            if (instance->exec->steps[i].work.kind == API_WORK_RECORD)
                api_event_place(instance->exec->steps[i].work.event.event, stream);
        for (size_t i = 0; stream->capture == NULL && i < instance->exec->n_steps; i++) {
            result = take_memory(context, instance, i);
            if (result != CUDA_SUCCESS)
                return api_result(result);
        }
        api_exec_hold(instance->exec);
        work = (struct api_work){.kind = API_WORK_GRAPH, .exec = instance->exec};
    }
    return api_result(api_submit(stream, &work, API_ASYNC));
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    return submit(__func__, hGraphExec, hStream, true);
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    return submit(__func__, hGraphExec, hStream, false);
}

/* ---- updates ---- */

static struct api_step *find_step(const struct instance *instance, const struct api_node *node)
{
    for (size_t i = 0; i < instance->exec->n_steps; i++)
        if (instance->exec->steps[i].node == node->id)
            return &instance->exec->steps[i];
    return NULL;
}

/* Enters with an instance and a node of the graph that it was made from. */
static CUresult enter_step(const char *call, CUgraphExec handle, CUgraphNode hNode,
                           struct instance **out_instance, struct api_node **out_node)
{
    CUresult result = enter_instance(call, handle, out_instance);
    if (result != CUDA_SUCCESS)
        return result;
    *out_node = emu_handle_get(EMU_HANDLE_NODE, hNode);
    if (*out_node == NULL || find_step(*out_instance, *out_node) == NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "not a node of the graph that the instance was made from");
    return CUDA_SUCCESS;
}

/* Replaces the step's work (taken over); ends the call. */
static CUresult replace(struct instance *instance, const struct api_node *node, CUgraphNodeType type,
                        CUresult made, struct api_work *work)
{
    if (made == CUDA_SUCCESS && node->type != type)
        made = api_set_error(CUDA_ERROR_INVALID_VALUE, "the node is of another kind");
    if (made == CUDA_SUCCESS)
        made = make_own(instance);
    if (made != CUDA_SUCCESS) {
        api_work_fini(work);
        return api_result(made);
    }
    struct api_step *step = find_step(instance, node);
    api_work_fini(&step->work);
    step->work = *work;
    return api_leave();
}

#define SET_PARAMS(type, params, make)                                             \
    struct instance *instance;                                                     \
    struct api_node *node;                                                         \
    struct api_work work = {.kind = API_WORK_EMPTY};                               \
    CUresult entered_ = enter_step(__func__, hGraphExec, hNode, &instance, &node); \
    if (entered_ != CUDA_SUCCESS)                                                  \
        return entered_;                                                           \
    API_REQUIRE((params) != NULL);                                                 \
    CUresult made_ = (make);                                                       \
    if (made_ != CUDA_SUCCESS)                                                     \
        return api_result(made_);                                                  \
    return replace(instance, node, (type), made_, &work)

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    SET_PARAMS(CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, api_kernel_work(nodeParams, &work));
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    if (nodeParams == NULL)
        return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, NULL);
    CUDA_KERNEL_NODE_PARAMS wide = {0};
    memcpy(&wide, nodeParams, sizeof *nodeParams); /* the older struct is the newer one's beginning */
    wide.kern = NULL;
    wide.ctx = NULL;
    return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &wide);
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx;
    SET_PARAMS(CU_GRAPH_NODE_TYPE_MEMCPY, copyParams, api_copy_work(copyParams, &work));
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    (void)ctx;
    SET_PARAMS(CU_GRAPH_NODE_TYPE_MEMSET, memsetParams, api_set_work(memsetParams, &work));
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    SET_PARAMS(CU_GRAPH_NODE_TYPE_HOST, nodeParams, api_host_work(nodeParams, &work));
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    SET_PARAMS(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams,
               api_batch_work(nodeParams->count, nodeParams->paramArray, nodeParams->flags, &work));
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    SET_PARAMS(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, api_event_work(event, API_WORK_RECORD, &work));
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    SET_PARAMS(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, api_event_work(event, API_WORK_WAIT, &work));
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUgraphNodeParams *nodeParams)
{
    if (nodeParams != NULL && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
    SET_PARAMS(nodeParams->type, nodeParams, api_any_work(nodeParams, &work));
}

/* The steps of a child graph come right after its node's own. */
CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    CUgraph childGraph)
{
    struct instance *instance;
    struct api_node *node;
    struct api_exec *fresh = NULL;
    CUresult result = enter_step(__func__, hGraphExec, hNode, &instance, &node);
    if (result != CUDA_SUCCESS)
        return result;
    const struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, childGraph);
    API_REQUIRE(graph != NULL && node->type == CU_GRAPH_NODE_TYPE_GRAPH);
    result = make_own(instance);
    if (result == CUDA_SUCCESS)
        result = exec_new(graph, &fresh);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct api_step *first = find_step(instance, node) + 1;
    const size_t left = instance->exec->n_steps - (size_t)(first - instance->exec->steps);
    bool same = graph->n_nodes == node->child->n_nodes && fresh->n_steps <= left;
    for (size_t i = 0; same && i < fresh->n_steps; i++)
        same = fresh->steps[i].type == first[i].type && fresh->steps[i].n_from == first[i].n_from;
    for (size_t i = 0; same && i < fresh->n_steps; i++) {
        const struct api_work old = first[i].work;
        first[i].work = fresh->steps[i].work;
        fresh->steps[i].work = old;
    }
    api_exec_release(fresh);
    return same ? api_leave() : api_fail(CUDA_ERROR_INVALID_VALUE, "the child graph has another shape");
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    struct instance *instance;
    struct api_node *node;
    CUresult result = enter_step(__func__, hGraphExec, hNode, &instance, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                node->type == CU_GRAPH_NODE_TYPE_MEMSET);
    result = make_own(instance);
    if (result == CUDA_SUCCESS)
        find_step(instance, node)->disabled = isEnabled == 0;
    return api_result(result);
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
    struct instance *instance;
    struct api_node *node;
    CUresult result = enter_step(__func__, hGraphExec, hNode, &instance, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(isEnabled != NULL);
    *isEnabled = !find_step(instance, node)->disabled;
    return api_leave();
}

/* Takes over the parameters of a graph of the same shape. */
static CUresult update(const char *call, CUgraphExec handle, CUgraph hGraph,
                       CUgraphExecUpdateResult *out_what)
{
    struct instance *instance;
    CUresult result = enter_instance(call, handle, &instance);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(graph != NULL && out_what != NULL);
    struct api_exec *fresh = NULL;
    *out_what = CU_GRAPH_EXEC_UPDATE_ERROR;
    result = exec_new(graph, &fresh);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    const struct api_exec *old = instance->exec;
    *out_what = fresh->n_steps == old->n_steps ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                               : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < fresh->n_steps && *out_what == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++) {
        if (fresh->steps[i].type != old->steps[i].type)
            *out_what = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        else if (fresh->steps[i].n_from != old->steps[i].n_from)
            *out_what = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    if (*out_what != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        api_exec_release(fresh);
        return api_fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs in more than parameters");
    }
    for (size_t i = 0; i < fresh->n_steps; i++) { /* nodes keep the ids that the instance was made with */
        fresh->steps[i].node = old->steps[i].node;
        fresh->steps[i].disabled = old->steps[i].disabled;
    }
    api_exec_release(instance->exec);
    instance->exec = fresh;
    return api_leave();
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    CUgraphExecUpdateResult what = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUresult result = update(__func__, hGraphExec, hGraph, resultInfo != NULL ? &what : NULL);
    if (resultInfo != NULL)
        *resultInfo = (CUgraphExecUpdateResultInfo){.result = what};
    return result;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    if (hErrorNode_out != NULL)
        *hErrorNode_out = NULL;
    return update(__func__, hGraphExec, hGraph, updateResult_out);
}
