/* "Graph Management": instantiated graphs. An instance is a list of work in an order that the edges allow,
   run one after the other on the stream's thread: a legal schedule. The list is never changed while a launch
   of it is queued: an update makes a copy first, so that it affects later launches only, as documented.
   An instance for launches from the device is one like any other here: kernels that launch graphs are not
   emulated (their functions are missing). */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "emu/condition.h"

/* A child graph's step is followed by the child's; a conditional node's step by a marker for each of its
   bodies, and each marker by the body's steps. */
struct api_step {
    struct api_work work;
    unsigned long long node; /* the id of the node that it came from; 0: a marker */
    CUgraphNode handle;      /* of that node; it may be gone */
    CUgraphNodeType type;
    struct step_edge {
        size_t place; /* in the order of its graph's nodes */
        CUgraphNode handle;
        CUgraphEdgeData data;
    } * from; /* n_from, heap: for cuGraphExecUpdate's comparison, as the next two */
    size_t n_from;
    bool is_exit; /* nothing depends on it */
    bool disabled;
    size_t n_inside; /* the steps after it that belong to it */
    uint64_t condition;
    CUgraphConditionalNodeType decides;
    unsigned n_bodies;
};

/* What a launch refers to: counted, unchanged while more than the instance refers to it. */
struct api_exec {
    struct api_step *steps;
    size_t n_steps;
    uint64_t *before; /* n_steps rows, heap: what is before each; NULL until the hazard checker wants it */
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
    for (size_t i = 0; i < exec->n_steps; i++) {
        api_work_fini(&exec->steps[i].work);
        free(exec->steps[i].from);
    }
    for (size_t i = 0; i < exec->n_conditions; i++)
        api_condition_release(exec->conditions[i]);
    free(exec->conditions);
    free(exec->steps);
    free(exec->before);
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

/* --- the order of steps, for the hazard checker: a row of bits for each step, which are before it */

#define MOST_ORDERED 4096u /* steps; those of larger graphs count as ordered */

static size_t row_words(const struct api_exec *exec)
{
    return exec->n_steps / 64 + 1; /* bits are numbered from 1 */
}

static void bits_add(uint64_t *row, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        row[i / 64] |= UINT64_C(1) << (i % 64);
}

/* The steps from `first` to `end`, one graph's, after all that `outer` says (NULL: nothing). */
static void order_level(const struct api_exec *exec, size_t first, size_t end, const uint64_t *outer,
                        size_t *places)
{
    const size_t words = row_words(exec);
    size_t n = 0, *level = places + first;
    for (size_t i = first; i < end; i += 1 + exec->steps[i].n_inside) {
        const struct api_step *step = &exec->steps[i];
        uint64_t *row = exec->before + i * words;
        level[n++] = i;
        if (outer != NULL)
            memcpy(row, outer, words * sizeof *row);
        for (size_t k = 0; k < step->n_from; k++) {
            const size_t from = level[step->from[k].place - 1]; /* they are numbered from 1 */
            for (size_t w = 0; w < words; w++)
                row[w] |= exec->before[from * words + w];
            bits_add(row, from + 1, 1 + exec->steps[from].n_inside);
        }
        if (step->n_inside == 0)
            continue;
        if (step->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            order_level(exec, i + 1, i + 1 + step->n_inside, row, places);
            continue;
        }
        for (size_t body = i + 1; body < i + 1 + step->n_inside; body += 1 + exec->steps[body].n_inside)
            order_level(exec, body + 1, body + 1 + exec->steps[body].n_inside, row, places);
    }
}

/* Nothing is done when memory is out: the steps count as ordered. With the lock. */
static void order_steps(struct api_exec *exec)
{
    if (exec->before != NULL || exec->n_steps > MOST_ORDERED)
        return;
    size_t *places = calloc(exec->n_steps + 1, sizeof *places);
    exec->before = calloc(exec->n_steps + 1, row_words(exec) * sizeof *exec->before);
    if (places != NULL && exec->before != NULL) {
        order_level(exec, 0, exec->n_steps, NULL, places);
    } else {
        free(exec->before);
        exec->before = NULL;
    }
    free(places);
}

/* Runs one step, as a task of its own among those of the graph. */
static CUresult run_step(struct api_context *context, const struct api_exec *exec, struct api_step *step,
                         struct clab_error *error)
{
    struct api_thread *thread = api_thread();
    const struct check_task *whole = thread->task;
    struct check_task *task = NULL;
    if (whole != NULL && exec->before != NULL) {
        const size_t bytes = sizeof *task + whole->n * sizeof task->known[0];
        const size_t place = (size_t)(step - exec->steps);
        task = malloc(bytes);
        if (task != NULL) {
            memcpy(task, whole, bytes);
            task->node = (uint32_t)place + 1;
            task->before = exec->before + place * row_words(exec);
            thread->task = task;
        }
    }
    const CUresult result = api_work_run(context, &step->work, error);
    thread->task = whole;
    free(task);
    return result;
}

static CUresult run_steps(struct api_context *context, const struct api_exec *exec, struct api_step *first,
                          const struct api_step *end, struct clab_error *error);

static bool has_kernel(const struct api_step *first, const struct api_step *end)
{
    for (const struct api_step *step = first; step < end; step++)
        if (step->type == CU_GRAPH_NODE_TYPE_KERNEL)
            return true;
    return false;
}

/* Asks the condition and runs what it chooses; a loop asks again. */
static CUresult run_conditional(struct api_context *context, const struct api_exec *exec,
                                struct api_step *step, struct clab_error *error)
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
        if (step->decides == CU_GRAPH_COND_TYPE_WHILE && !has_kernel(body + 1, body + 1 + body->n_inside)) {
            clab_error_set(error, CLAB_DEADLOCK,
                           "a loop of a graph goes on for ever: its body has no kernel that "
                           "could change the condition");
            return CUDA_ERROR_LAUNCH_TIMEOUT; /* as of kernels that hang (api_work.c) */
        }
        result = run_steps(context, exec, body + 1, body + 1 + body->n_inside, error);
    } while (step->decides == CU_GRAPH_COND_TYPE_WHILE && result == CUDA_SUCCESS && !context->cancel);
    return result;
}

static CUresult run_steps(struct api_context *context, const struct api_exec *exec, struct api_step *first,
                          const struct api_step *end, struct clab_error *error)
{
    for (struct api_step *step = first; step < end && !context->cancel; step++) {
        if (step->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            CUresult result = run_conditional(context, exec, step, error);
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
        CUresult result = run_step(context, exec, step, error);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult api_exec_run(struct api_context *context, struct api_exec *exec, struct clab_error *error)
{
    struct emu_machine *machine = api_device()->machine;
    for (size_t i = 0; i < exec->n_conditions; i++) {
        emu_condition_open(machine, exec->conditions[i]->handle, true);
        if (exec->conditions[i]->assign)
            emu_condition_assign(machine, exec->conditions[i]->handle, exec->conditions[i]->initial);
    }
    if (api_thread()->task != NULL) {
        api_lock();
        order_steps(exec);
        api_unlock();
    }
    CUresult result = run_steps(context, exec, exec->steps, exec->steps + exec->n_steps, error);
    for (size_t i = 0; i < exec->n_conditions; i++)
        emu_condition_open(machine, exec->conditions[i]->handle, false);
    return result;
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

/* api_graph_order has just numbered the nodes. */
static CUresult edges_take(struct api_step *step, const struct api_node *node)
{
    if (node->n_from == 0)
        return CUDA_SUCCESS;
    step->from = calloc(node->n_from, sizeof *step->from);
    if (step->from == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    step->n_from = node->n_from;
    for (size_t i = 0; i < node->n_from; i++)
        step->from[i] = (struct step_edge){.place = node->from[i].node->mark,
                                           .handle = node->from[i].node->handle,
                                           .data = node->from[i].data};
    return CUDA_SUCCESS;
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
        const size_t place = exec->n_steps - 1;
        step->node = node->id;
        step->handle = node->handle;
        step->type = node->type;
        step->is_exit = node->is_exit;
        result = edges_take(step, node);
        if (result == CUDA_SUCCESS)
            result = api_work_copy(&node->work, &step->work);
        if (result == CUDA_SUCCESS && node->child != NULL) {
            result = append(exec, node->child, capacity);
            exec->steps[place].n_inside = exec->n_steps - place - 1;
        }
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
        const size_t bytes = old->steps[i].n_from * sizeof *old->steps[i].from;
        copy->steps[i] = old->steps[i];
        copy->steps[i].from = bytes > 0 ? malloc(bytes) : NULL;
        CUresult result = api_work_copy(&old->steps[i].work, &copy->steps[i].work);
        copy->n_steps = i + 1;
        if (result == CUDA_SUCCESS && bytes > 0 && copy->steps[i].from == NULL)
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
        if (result != CUDA_SUCCESS) {
            api_exec_release(copy);
            return result;
        }
        if (bytes > 0)
            memcpy(copy->steps[i].from, old->steps[i].from, bytes);
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

/* ---- what an instance may hold ---- */

/* The first node that the body of a conditional node cannot hold, or NULL: copies with pageable host memory
   among them, which the host would have to make. */
static const struct api_node *not_in_body(const struct api_graph *body)
{
    for (const struct api_node *node = body->nodes; node != NULL; node = node->next) {
        const struct api_node *inside = NULL;
        switch (node->type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            inside = not_in_body(node->child);
            break;
        case CU_GRAPH_NODE_TYPE_KERNEL:
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            if (!node->work.copy.to.device || !node->work.copy.from.device)
                return node;
            break;
        default:
            return node;
        }
        if (inside != NULL)
            return inside;
    }
    return NULL;
}

static const struct api_node *bad_body(const struct api_graph *graph)
{
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next) {
        const struct api_node *bad = node->child != NULL ? bad_body(node->child) : NULL;
        for (unsigned i = 0; bad == NULL && node->conditional != NULL && i < node->conditional->size; i++) {
            bad = not_in_body(node->conditional->bodies[i]);
            if (bad == NULL)
                bad = bad_body(node->conditional->bodies[i]);
        }
        if (bad != NULL)
            return bad;
    }
    return NULL;
}

/* The first node that a graph for launches from the device cannot hold, or NULL. */
static const struct api_node *not_for_device(const struct api_graph *graph)
{
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next) {
        const struct api_copy *copy = &node->work.copy;
        bool good = node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMSET ||
                    node->type == CU_GRAPH_NODE_TYPE_GRAPH ||
                    (node->type == CU_GRAPH_NODE_TYPE_MEMCPY && copy->to.device && copy->from.device);
        const struct api_node *inside = good && node->child != NULL ? not_for_device(node->child) : NULL;
        if (!good || inside != NULL)
            return good ? inside : node;
    }
    return NULL;
}

/* Why a graph cannot be instantiated: what CUDA_GRAPH_INSTANTIATE_PARAMS gives back. */
struct refusal {
    CUgraphInstantiateResult why;
    CUgraphNode node;
};

static CUresult refuse(struct refusal *refusal, CUgraphInstantiateResult why, const struct api_node *node,
                       const char *text)
{
    refusal->why = why;
    refusal->node = node != NULL ? node->handle : NULL;
    return api_set_error(CUDA_ERROR_INVALID_VALUE, "%s", text);
}

#define FLAG_AUTO_FREE ((unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
#define FLAG_UPLOAD    ((unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
#define FLAG_DEVICE    ((unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
#define FLAG_PRIORITY  ((unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static CUresult check_graph(const struct api_graph *graph, unsigned long long flags, struct refusal *refusal)
{
    const bool has_instance = emu_handle_get(EMU_HANDLE_EXEC, graph->instance) != NULL;
    if ((flags & ~(FLAG_AUTO_FREE | FLAG_UPLOAD | FLAG_DEVICE | FLAG_PRIORITY)) != 0 ||
        (flags & (FLAG_AUTO_FREE | FLAG_DEVICE)) == (FLAG_AUTO_FREE | FLAG_DEVICE))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "flags 0x%llx", flags);
    /* UNVERIFIED: the codes of a second instance (CUDA Driver API 13.0, cuGraphAddMemAllocNode,
       CU_GRAPH_NODE_TYPE_CONDITIONAL). */
    if (has_instance && (api_graph_has_memory(graph) || api_graph_has_conditional(graph)))
        return api_set_error(
            CUDA_ERROR_NOT_SUPPORTED,
            "a graph that has conditional nodes, or allocates or frees memory, has one instance");
    if (has_unused(graph))
        return refuse(refusal, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, NULL,
                      "a condition of the graph is asked by no node");
    const struct api_node *bad = bad_body(graph);
    if (bad != NULL)
        return refuse(
            refusal,
            bad->type == CU_GRAPH_NODE_TYPE_MEMCPY /* so an H200 */
                ? CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED
                : CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
            bad,
            "the body of a conditional node holds kernels, copies, sets, empty nodes, child graphs and "
            "conditional nodes");
    if ((flags & FLAG_DEVICE) == 0)
        return CUDA_SUCCESS;
    if (graph->n_nodes == 0)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "an empty graph for launches from the device");
    bad = not_for_device(graph);
    return bad == NULL ? CUDA_SUCCESS
                       : refuse(refusal, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, bad,
                                "a graph for launches from the device holds kernels, sets and copies between "
                                "device memory");
}

static CUresult instantiate(const char *call, CUgraphExec *out_handle, CUgraph hGraph,
                            unsigned long long flags, struct refusal *refusal)
{
    *refusal = (struct refusal){.why = CUDA_GRAPH_INSTANTIATE_ERROR};
    struct api_context *context; /* one must be usable, whatever the graph works in (H200) */
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(out_handle != NULL && graph != NULL);
    result = check_graph(graph, flags, refusal);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    struct instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    result = exec_new(graph, &instance->exec);
    if (result == CUDA_ERROR_INVALID_VALUE) /* recorded: a cycle */
        *refusal = (struct refusal){.why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
                                    .node = graph->nodes != NULL ? graph->nodes->handle : NULL};
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
    refusal->why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    instance->flags = flags;
    *out_handle = graph->instance = instance->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                             unsigned long long flags)
{
    struct refusal ignored;
    if ((flags & FLAG_UPLOAD) != 0) { /* there is no stream for it */
        API_ENTER();
        return api_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%llx", flags);
    }
    return instantiate(__func__, phGraphExec, hGraph, flags, &ignored);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                       char *logBuffer, size_t bufferSize)
{
    struct refusal ignored;
    if (phErrorNode != NULL)
        *phErrorNode = NULL;
    if (logBuffer != NULL && bufferSize > 0)
        logBuffer[0] = '\0';
    return instantiate(__func__, phGraphExec, hGraph, 0, &ignored);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                                    char *logBuffer, size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct refusal refusal;
    if (instantiateParams == NULL)
        return instantiate(__func__, phGraphExec, NULL, 0, &refusal);
    CUresult result = instantiate(__func__, phGraphExec, hGraph, instantiateParams->flags, &refusal);
    instantiateParams->hErrNode_out = refusal.node;
    instantiateParams->result_out = refusal.why;
    return result;
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
    *flags = instance->flags & (FLAG_AUTO_FREE | FLAG_DEVICE); /* the rest is forgotten, on the H200 */
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
    if (stream->capture != NULL) {
        api_capture_invalidate(stream->capture);
        return api_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "graph launches and uploads are not captured");
    }
    if (run) {
        for (size_t i = 0; i < instance->exec->n_steps; i++) {
            result = take_memory(context, instance, i);
            if (result != CUDA_SUCCESS)
                return api_result(result);
        }
        /* Events that the graph records are, from now on, recorded by this launch. */
        for (size_t i = 0; i < instance->exec->n_steps; i++)
            if (instance->exec->steps[i].work.kind == API_WORK_RECORD)
                api_event_place(instance->exec->steps[i].work.event.event, stream);
        api_exec_hold(instance->exec);
        work = (struct api_work){.kind = API_WORK_GRAPH, .exec = instance->exec};
    }
    const uint64_t before = stream->issued;
    result = api_submit(stream, &work, API_ASYNC);
    for (size_t i = 0; run && i < instance->exec->n_steps; i++)
        if (instance->exec->steps[i].work.kind == API_WORK_RECORD) {
            struct api_event *event = instance->exec->steps[i].work.event.event;
            api_order_keep(&event->order, stream);
            if (stream->issued == before)
                api_event_unplace(event, stream, 0);
        }
    return api_result(result);
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

static bool is_flat(const struct api_copy *copy)
{
    return copy->height <= 1 && copy->depth <= 1;
}

/* What a node of an instance does may change only so far. UNVERIFIED: cooperative kernels. */
static CUgraphExecUpdateResult compare_work(const struct api_work *old, const struct api_work *fresh)
{
    bool good = true;
    if (old->kind != fresh->kind)
        return CU_GRAPH_EXEC_UPDATE_SUCCESS; /* batches of operations */
    if (old->kind == API_WORK_SET) {
        const bool flat = old->set.height <= 1;
        good = flat == (fresh->set.height <= 1) &&
               (flat || (old->set.height == fresh->set.height && old->set.width == fresh->set.width &&
                         old->set.element_bytes == fresh->set.element_bytes));
    } else if (old->kind == API_WORK_COPY) {
        const struct api_copy *a = &old->copy, *b = &fresh->copy;
        good = a->to.device == b->to.device && a->from.device == b->from.device &&
               (is_flat(a) ? is_flat(b)
                           : a->width == b->width && a->height == b->height && a->depth == b->depth);
    } else if (old->kind == API_WORK_KERNEL && old->launch.cooperative != fresh->launch.cooperative) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
    return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

/* Replaces the step's work (taken over); ends the call. */
static CUresult replace(struct instance *instance, const struct api_node *node, CUgraphNodeType type,
                        CUresult made, struct api_work *work)
{
    if (made == CUDA_SUCCESS && node->type != type)
        made = api_set_error(CUDA_ERROR_INVALID_VALUE, "the node is of another kind");
    if (made == CUDA_SUCCESS && work->kind == API_WORK_KERNEL)
        made = api_attributes_keep(&find_step(instance, node)->work.launch, &work->launch);
    if (made == CUDA_SUCCESS &&
        compare_work(&find_step(instance, node)->work, work) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        made = api_set_error(CUDA_ERROR_INVALID_VALUE, "that cannot change in an instance");
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
    API_REQUIRE(isEnabled != NULL &&
                (node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                 node->type == CU_GRAPH_NODE_TYPE_MEMSET));
    *isEnabled = !find_step(instance, node)->disabled;
    return api_leave();
}

/* The nodes of one level of steps: those inside others are skipped. */
static size_t level_count(const struct api_step *first, const struct api_step *end, size_t *out_exits)
{
    size_t count = 0;
    *out_exits = 0;
    for (const struct api_step *step = first; step < end; step += 1 + step->n_inside) {
        count++;
        *out_exits += step->is_exit;
    }
    return count;
}

static const struct api_step *last_exit(const struct api_step *first, const struct api_step *end)
{
    const struct api_step *found = first;
    for (const struct api_step *step = first; step < end; step += 1 + step->n_inside)
        if (step->is_exit)
            found = step;
    return found;
}

/* The first dependency that is another one, or NULL. */
static const struct step_edge *other_edge(const struct api_step *old, const struct api_step *fresh)
{
    for (size_t i = 0; i < fresh->n_from; i++)
        if (fresh->from[i].place != old->from[i].place ||
            memcmp(&fresh->from[i].data, &old->from[i].data, sizeof fresh->from[i].data) != 0)
            return &fresh->from[i];
    return NULL;
}

/* Compares level by level; the steps of both are in an order that the edges allow. */
static CUgraphExecUpdateResult compare(const struct api_step *old, const struct api_step *old_end,
                                       const struct api_step *fresh, const struct api_step *fresh_end,
                                       CUgraphNode *out_node, CUgraphNode *out_from)
{
    size_t old_exits, fresh_exits;
    CUgraphExecUpdateResult what = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (level_count(old, old_end, &old_exits) != level_count(fresh, fresh_end, &fresh_exits))
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (old_exits != fresh_exits) {
        if (fresh_exits > old_exits)
            *out_node = last_exit(fresh, fresh_end)->handle;
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    while (fresh < fresh_end && what == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        if (fresh->type != old->type)
            what = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        else if (fresh->n_from != old->n_from)
            what = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        else if (other_edge(old, fresh) != NULL) {
            *out_from = other_edge(old, fresh)->handle;
            what = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        } else if (fresh->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
                   (fresh->decides != old->decides || fresh->n_bodies != old->n_bodies))
            what = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
        else
            what = compare_work(&old->work, &fresh->work);
        if (what != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            *out_node = fresh->handle;
        else
            what = compare(old + 1, old + 1 + old->n_inside, fresh + 1, fresh + 1 + fresh->n_inside, out_node,
                           out_from);
        old += 1 + old->n_inside;
        fresh += 1 + fresh->n_inside;
    }
    return what;
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
    struct api_step *step = find_step(instance, node), *first = step + 1;
    CUgraphNode ignored = NULL;
    const bool same = compare(first, first + step->n_inside, fresh->steps, fresh->steps + fresh->n_steps,
                              &ignored, &ignored) == CU_GRAPH_EXEC_UPDATE_SUCCESS;
    for (size_t i = 0; same && i < fresh->n_steps; i++) {
        const struct api_work old = first[i].work;
        first[i].work = fresh->steps[i].work;
        fresh->steps[i].work = old;
    }
    api_exec_release(fresh);
    return same ? api_leave() : api_fail(CUDA_ERROR_INVALID_VALUE, "the child graph has another shape");
}

/* Takes over the parameters of a graph of the same shape. */
static CUresult update(const char *call, CUgraphExec handle, CUgraph hGraph,
                       CUgraphExecUpdateResult *out_what, CUgraphNode *out_node, CUgraphNode *out_from)
{
    struct instance *instance;
    *out_what = CU_GRAPH_EXEC_UPDATE_ERROR;
    *out_node = *out_from = NULL;
    CUresult result = enter_instance(call, handle, &instance);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(graph != NULL);
    struct api_exec *fresh = NULL;
    result = exec_new(graph, &fresh);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    const struct api_exec *old = instance->exec;
    *out_what = compare(old->steps, old->steps + old->n_steps, fresh->steps, fresh->steps + fresh->n_steps,
                        out_node, out_from);
    if (*out_what != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        api_exec_release(fresh);
        return api_fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs in more than parameters");
    }
    for (size_t i = 0; i < fresh->n_steps; i++) { /* nodes keep the ids that the instance was made with */
        fresh->steps[i].node = old->steps[i].node;
        fresh->steps[i].handle = old->steps[i].handle;
        fresh->steps[i].disabled = old->steps[i].disabled;
    }
    api_exec_release(instance->exec);
    instance->exec = fresh;
    return api_leave();
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                      CUgraphExecUpdateResultInfo *resultInfo)
{
    CUgraphExecUpdateResultInfo info = {0};
    CUresult result =
        update(__func__, hGraphExec, hGraph, &info.result, &info.errorNode, &info.errorFromNode);
    if (resultInfo != NULL)
        *resultInfo = info;
    return result;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResult what;
    CUgraphNode node, from;
    CUresult result = update(__func__, hGraphExec, hGraph, &what, &node, &from);
    if (hErrorNode_out != NULL)
        *hErrorNode_out = node;
    if (updateResult_out != NULL)
        *updateResult_out = what;
    return result;
}
