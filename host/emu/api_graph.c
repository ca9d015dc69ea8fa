/* "Graph Management": graphs as nodes and edges: making, copying, asking, taking apart. What nodes do is
   api_node.c's, running them api_exec.c's. */
#include "emu/api_graph.h"

#include <stdlib.h>
#include <string.h>

static unsigned long long next_node_id = 1;

struct api_graph *api_graph_new(void)
{
    struct api_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return NULL;
    graph->tail = &graph->nodes;
    graph->handle = emu_handle_new(EMU_HANDLE_GRAPH, graph);
    if (graph->handle == NULL) {
        free(graph);
        return NULL;
    }
    return graph;
}

static void node_free(struct api_node *node)
{
    emu_handle_free(node->handle);
    api_work_fini(&node->work);
    if (node->child != NULL)
        api_graph_free(node->child);
    if (node->conditional != NULL)
        api_conditional_free(node->conditional);
    free(node->param_pointers);
    free(node->from);
    free(node);
}

void api_graph_free(struct api_graph *graph)
{
    while (graph->nodes != NULL) {
        struct api_node *node = graph->nodes;
        graph->nodes = node->next;
        node_free(node);
    }
    emu_handle_free(graph->handle);
    api_conditions_free(graph);
    api_retainer_fini(&graph->retained);
    free(graph);
}

bool api_edge_is_plain(const CUgraphEdgeData *data)
{
    return memcmp(data, &(CUgraphEdgeData){0}, sizeof *data) == 0;
}

static bool depends_on(const struct api_node *node, const struct api_node *from)
{
    for (size_t i = 0; i < node->n_from; i++)
        if (node->from[i].node == from)
            return true;
    return false;
}

/* Only kernels start something before they end, and only kernels can make use of it. */
CUresult api_edge_check(const struct api_edge *from, CUgraphNodeType to)
{
    const CUgraphEdgeData *data = &from->data;
    const bool kernels = from->node->type == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
    const bool ordered = data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
               early = data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    const bool good = data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                          ? ordered || early
                          : data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && ordered; /* so the H200 */
    if (api_edge_is_plain(data))
        return CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof data->reserved; i++)
        if (data->reserved[i] != 0)
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "an edge's reserved bytes are not zero");
    if (!good || data->to_port != 0 || !kernels)
        return api_set_error(
            CUDA_ERROR_INVALID_VALUE,
            "an edge of type %u from port %u to port %u: wanted programmatic, from a kernel's "
            "port 1 or 2 to a kernel",
            data->type, data->from_port, data->to_port);
    return CUDA_SUCCESS;
}

static bool edge_add(struct api_node *node, const struct api_edge *from)
{
    if (node->n_from == node->from_capacity) {
        size_t capacity = node->from_capacity == 0 ? 4 : node->from_capacity * 2;
        struct api_edge *grown = realloc(node->from, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        node->from = grown;
        node->from_capacity = capacity;
    }
    node->from[node->n_from++] = *from;
    return true;
}

CUresult api_node_add(struct api_graph *graph, CUgraphNodeType type, struct api_work *work,
                      const struct api_edge *from, size_t n_from, struct api_node **out_node)
{
    CUresult result = CUDA_SUCCESS;
    struct api_node *node = calloc(1, sizeof *node);
    if (node != NULL)
        node->handle = emu_handle_new(EMU_HANDLE_NODE, node);
    if (node == NULL || node->handle == NULL)
        result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph node");
    for (size_t i = 0; i < n_from && result == CUDA_SUCCESS; i++) {
        if (from[i].node->graph != graph || depends_on(node, from[i].node))
            result = api_set_error(CUDA_ERROR_INVALID_VALUE,
                                   "dependency %zu is given twice or of another graph", i);
        else if (!edge_add(node, &from[i]))
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a dependency");
    }
    if (result != CUDA_SUCCESS) {
        api_work_fini(work);
        if (node != NULL)
            node_free(node);
        return result;
    }
    node->graph = graph;
    node->type = type;
    node->work = *work;
    *work = (struct api_work){.kind = API_WORK_EMPTY};
    node->id = next_node_id++;
    *graph->tail = node;
    graph->tail = &node->next;
    graph->n_nodes++;
    *out_node = node;
    return CUDA_SUCCESS;
}

CUresult api_edges_get(struct api_graph *graph, const CUgraphNode *handles, const CUgraphEdgeData *data,
                       size_t count, struct api_edge **out_edges)
{
    *out_edges = NULL;
    if (count == 0)
        return CUDA_SUCCESS;
    if (handles == NULL || count > (size_t)1 << 24)
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%zu dependencies, but no list", count);
    struct api_edge *edges = calloc(count, sizeof *edges);
    if (edges == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu dependencies", count);
    for (size_t i = 0; i < count; i++) {
        edges[i].node = emu_handle_get(EMU_HANDLE_NODE, handles[i]);
        if (data != NULL)
            edges[i].data = data[i];
        if (edges[i].node == NULL || (graph != NULL && edges[i].node->graph != graph)) {
            free(edges);
            return api_set_error(CUDA_ERROR_INVALID_VALUE, "node %zu is not a live node of the graph", i);
        }
    }
    *out_edges = edges;
    return CUDA_SUCCESS;
}

CUresult api_graph_order(const struct api_graph *graph, struct api_node ***out_nodes)
{
    struct api_node **order = calloc(graph->n_nodes > 0 ? graph->n_nodes : 1, sizeof(struct api_node *));
    size_t done = 0;
    if (order == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu nodes", graph->n_nodes);
    for (struct api_node *node = graph->nodes; node != NULL; node = node->next) {
        node->mark = 0;
        node->is_exit = true;
    }
    /* Most graphs are added in such an order already: then one round does it. */
    for (bool progress = true; progress && done < graph->n_nodes;) {
        progress = false;
        for (struct api_node *node = graph->nodes; node != NULL; node = node->next) {
            bool ready = node->mark == 0;
            for (size_t i = 0; i < node->n_from && ready; i++)
                ready = node->from[i].node->mark != 0;
            if (!ready)
                continue;
            for (size_t i = 0; i < node->n_from; i++)
                node->from[i].node->is_exit = false;
            order[done++] = node;
            node->mark = done;
            progress = true;
        }
    }
    if (done < graph->n_nodes) {
        free(order);
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "the graph has a cycle");
    }
    *out_nodes = order;
    return CUDA_SUCCESS;
}

struct api_graph *api_graph_clone(const struct api_graph *graph)
{
    struct api_graph *copy = api_graph_new();
    struct api_node **made = calloc(graph->n_nodes > 0 ? graph->n_nodes : 1, sizeof(struct api_node *));
    size_t index = 0;
    bool good = copy != NULL && made != NULL && api_retainer_copy(&copy->retained, &graph->retained);
    for (struct api_node *node = graph->nodes; node != NULL && good; node = node->next) {
        struct api_work work;
        good = api_work_copy(&node->work, &work) == CUDA_SUCCESS &&
               api_node_add(copy, node->type, &work, NULL, 0, &made[index]) == CUDA_SUCCESS;
        if (!good)
            break;
        made[index]->origin = node->id;
        if (node->child != NULL) {
            made[index]->child = api_graph_clone(node->child);
            good = made[index]->child != NULL;
            if (good)
                made[index]->child->parent = made[index];
        }
        node->mark = index++;
    }
    index = 0;
    for (struct api_node *node = graph->nodes; node != NULL && good; node = node->next, index++)
        for (size_t i = 0; i < node->n_from && good; i++)
            good = edge_add(made[index], &(struct api_edge){.node = made[node->from[i].node->mark],
                                                            .data = node->from[i].data});
    free(made);
    if (!good && copy != NULL) {
        api_graph_free(copy);
        copy = NULL;
    }
    return copy;
}

bool api_graph_has_memory(const struct api_graph *graph)
{
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
            (node->child != NULL && api_graph_has_memory(node->child)))
            return true;
    return false;
}

/* ---- calls ---- */

static CUresult enter_graph(const char *call, CUgraph handle, struct api_graph **out_graph)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_graph = emu_handle_get(EMU_HANDLE_GRAPH, handle);
    return *out_graph != NULL ? CUDA_SUCCESS : api_fail(CUDA_ERROR_INVALID_VALUE, "not a live graph");
}

static CUresult enter_node(const char *call, CUgraphNode handle, struct api_node **out_node)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    *out_node = emu_handle_get(EMU_HANDLE_NODE, handle);
    return *out_node != NULL ? CUDA_SUCCESS : api_fail(CUDA_ERROR_INVALID_VALUE, "not a live graph node");
}

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    API_ENTER();
    API_REQUIRE(phGraph != NULL && flags == 0);
    struct api_graph *graph = api_graph_new();
    if (graph == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    *phGraph = graph->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    struct api_graph *graph;
    CUresult result = enter_graph(__func__, hGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    if (graph->capture != NULL)
        return api_fail(CUDA_ERROR_ILLEGAL_STATE, "the graph is being captured into");
    if (graph->parent != NULL)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "the graph belongs to a node");
    api_graph_free(graph);
    return api_leave();
}

CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    struct api_graph *graph;
    CUresult result = enter_graph(__func__, originalGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(phGraphClone != NULL);
    if (api_graph_has_memory(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory cannot be cloned");
    if (api_graph_has_conditional(graph) || graph->n_conditions > 0 ||
        (graph->parent != NULL && graph->parent->conditional != NULL))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes cannot be cloned");
    struct api_graph *copy = api_graph_clone(graph);
    if (copy == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    *phGraphClone = copy->handle;
    return api_leave();
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
    struct api_graph *graph;
    CUresult result = enter_graph(__func__, hClonedGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_node *original = emu_handle_get(EMU_HANDLE_NODE, hOriginalNode);
    API_REQUIRE(phNode != NULL && original != NULL);
    for (struct api_node *node = graph->nodes; node != NULL; node = node->next)
        if (node->origin == original->id) {
            *phNode = node->handle;
            return api_leave();
        }
    return api_fail(CUDA_ERROR_INVALID_VALUE, "the graph is no clone of the node's");
}

/* Hands out handles: the count alone when there is no room, else as many as fit, the rest set to NULL. */
static CUresult list(CUgraphNode *out, size_t *count, CUgraphNode (*next)(void *), void *state, size_t total)
{
    if (out != NULL) {
        for (size_t i = 0; i < *count; i++)
            out[i] = i < total ? next(state) : NULL;
        if (*count > total)
            *count = total;
    } else {
        *count = total;
    }
    return api_leave();
}

struct walk {
    const struct api_node *node, *to;
    size_t index;
};

static CUgraphNode next_node(void *state)
{
    struct walk *walk = state;
    CUgraphNode handle = walk->node->handle;
    walk->node = walk->node->next;
    return handle;
}

static CUgraphNode next_root(void *state)
{
    struct walk *walk = state;
    while (walk->node->n_from > 0)
        walk->node = walk->node->next;
    return next_node(state);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    struct api_graph *graph;
    CUresult result = enter_graph(__func__, hGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(numNodes != NULL && (nodes == NULL || *numNodes > 0));
    return list(nodes, numNodes, next_node, &(struct walk){.node = graph->nodes}, graph->n_nodes);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    struct api_graph *graph;
    CUresult result = enter_graph(__func__, hGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(numRootNodes != NULL);
    size_t roots = 0;
    for (struct api_node *node = graph->nodes; node != NULL; node = node->next)
        roots += node->n_from == 0;
    return list(rootNodes, numRootNodes, next_root, &(struct walk){.node = graph->nodes}, roots);
}

/* One edge of those that a query hands out: the first *count of them, as far as there is room. */
struct edge_list {
    CUgraphNode *from, *to; /* either may be NULL */
    CUgraphEdgeData *data;
    size_t room, total;
    bool lossy; /* one has data, and there is no room for any */
};

static void edge_list_add(struct edge_list *edges, const struct api_edge *edge, const struct api_node *to)
{
    const size_t place = edges->total++;
    if (edges->from == NULL && edges->to == NULL)
        return;
    edges->lossy = edges->lossy || (edges->data == NULL && !api_edge_is_plain(&edge->data));
    if (place >= edges->room)
        return;
    if (edges->from != NULL)
        edges->from[place] = edge->node->handle;
    if (edges->to != NULL)
        edges->to[place] = to->handle;
    if (edges->data != NULL)
        edges->data[place] = edge->data;
}

/* Ends the query. */
static CUresult edge_list_end(struct edge_list *edges, size_t *count)
{
    if (edges->lossy)
        return api_fail(CUDA_ERROR_LOSSY_QUERY, "edges have data that the call has no room for");
    if (edges->from == NULL && edges->to == NULL) {
        *count = edges->total;
        return api_leave();
    }
    for (size_t i = edges->total; i < *count; i++) {
        if (edges->from != NULL)
            edges->from[i] = NULL;
        if (edges->to != NULL)
            edges->to[i] = NULL;
    }
    if (*count > edges->total)
        *count = edges->total;
    return api_leave();
}

static CUresult edges(const char *call, CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                      CUgraphEdgeData *data, size_t *count)
{
    struct api_graph *graph;
    CUresult result = enter_graph(call, hGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count != NULL && (from == NULL) == (to == NULL));
    struct edge_list found = {.from = from, .to = to, .data = data, .room = *count};
    for (struct api_node *node = graph->nodes; node != NULL; node = node->next)
        for (size_t i = 0; i < node->n_from; i++)
            edge_list_add(&found, &node->from[i], node);
    return edge_list_end(&found, count);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return edges(__func__, hGraph, from, to, NULL, numEdges);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                    CUgraphEdgeData *edgeData, size_t *numEdges)
{
    return edges(__func__, hGraph, from, to, edgeData, numEdges);
}

static CUresult dependencies(const char *call, CUgraphNode hNode, CUgraphNode *nodes, CUgraphEdgeData *data,
                             size_t *count)
{
    struct api_node *node;
    CUresult result = enter_node(call, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count != NULL);
    struct edge_list found = {.from = nodes, .data = data, .room = *count};
    for (size_t i = 0; i < node->n_from; i++)
        edge_list_add(&found, &node->from[i], node);
    return edge_list_end(&found, count);
}

static CUresult dependents(const char *call, CUgraphNode hNode, CUgraphNode *nodes, CUgraphEdgeData *data,
                           size_t *count)
{
    struct api_node *node;
    CUresult result = enter_node(call, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count != NULL);
    struct edge_list found = {.to = nodes, .data = data, .room = *count};
    for (struct api_node *other = node->graph->nodes; other != NULL; other = other->next)
        for (size_t i = 0; i < other->n_from; i++)
            if (other->from[i].node == node)
                edge_list_add(&found, &other->from[i], other);
    return edge_list_end(&found, count);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *nodes, size_t *numDependencies)
{
    return dependencies(__func__, hNode, nodes, NULL, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *nodes,
                                               CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    return dependencies(__func__, hNode, nodes, edgeData, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                              size_t *numDependentNodes)
{
    return dependents(__func__, hNode, dependentNodes, NULL, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                                 CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
    return dependents(__func__, hNode, dependentNodes, edgeData, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(type != NULL);
    *type = node->type;
    return api_leave();
}

/* Whatever its data, as an H200's driver does. False when there is none. */
static bool edge_remove(struct api_node *node, const struct api_node *from)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->n_from; i++) {
        const struct api_edge *edge = &node->from[i];
        if (edge->node != from)
            node->from[kept++] = *edge;
    }
    const bool found = kept < node->n_from;
    node->n_from = kept;
    return found;
}

static CUresult change_edges(const char *call, CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *data, size_t count, bool add)
{
    struct api_graph *graph;
    struct api_edge *sources = NULL, *targets = NULL;
    CUresult result = enter_graph(call, hGraph, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    /* UNVERIFIED: the code, here and in cuGraphDestroyNode (CUDA Driver API 13.0, cuGraphRemoveDependencies).
     */
    if (!add && count > 0 && api_graph_has_memory(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory keeps its edges");
    result = api_edges_get(graph, from, data, count, &sources);
    if (result == CUDA_SUCCESS)
        result = api_edges_get(graph, to, NULL, count, &targets);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        struct api_node *target = targets[i].node;
        if (!add) {
            if (!edge_remove(target, sources[i].node))
                result = api_set_error(CUDA_ERROR_INVALID_VALUE, "there is no such edge %zu", i);
            continue;
        }
        if (sources[i].node == target || depends_on(target, sources[i].node))
            result = api_set_error(CUDA_ERROR_INVALID_VALUE, "edge %zu exists, or is of a node to itself", i);
        else
            result = api_edge_check(&sources[i], target->type);
        if (result == CUDA_SUCCESS && !edge_add(target, &sources[i]))
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an edge");
    }
    free(sources);
    free(targets);
    return api_result(result);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                        size_t numDependencies)
{
    return change_edges(__func__, hGraph, from, to, NULL, numDependencies, true);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change_edges(__func__, hGraph, from, to, edgeData, numDependencies, true);
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                           size_t numDependencies)
{
    return change_edges(__func__, hGraph, from, to, NULL, numDependencies, false);
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change_edges(__func__, hGraph, from, to, edgeData, numDependencies, false);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    struct api_node *node;
    CUresult result = enter_node(__func__, hNode, &node);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_graph *graph = node->graph;
    if (graph->capture != NULL)
        return api_fail(CUDA_ERROR_NOT_PERMITTED, "the graph is being captured into");
    if (api_graph_has_memory(graph))
        return api_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory keeps its nodes");
    for (struct api_node *other = graph->nodes; other != NULL; other = other->next)
        edge_remove(other, node);
    for (struct api_node **link = &graph->nodes; *link != NULL; link = &(*link)->next)
        if (*link == node) {
            *link = node->next;
            if (graph->tail == &node->next)
                graph->tail = link;
            break;
        }
    graph->n_nodes--;
    node_free(node);
    return api_leave();
}
