/* "Graph Management": cuGraphDebugDotPrint, a graph as text for Graphviz. The real driver's text is not
   documented; this one names the nodes by their kind and, where asked for, says what they do. */
#include "emu/api_graph.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *kind_name(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return "memset";
    case CU_GRAPH_NODE_TYPE_HOST:
        return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return "child graph";
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return "empty";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return "event wait";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "event record";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return "mem alloc";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return "mem free";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return "batch mem op";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return "conditional";
    default:
        return "node";
    }
}

/* What a node does, after its kind. */
static void describe(FILE *file, const struct api_node *node, unsigned flags)
{
    const struct api_work *work = &node->work;
    const bool all = (flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) != 0;
    if (work->kind == API_WORK_KERNEL) {
        const struct api_launch *launch = &work->launch;
        fprintf(file, "\\n%s", launch->function->info.function->name);
        if (all || (flags & CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS) != 0)
            fprintf(file, "\\ngrid %u %u %u, block %u %u %u, %u bytes shared", launch->grid[0],
                    launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
                    launch->dynamic_shared_bytes);
    }
    if (work->kind == API_WORK_COPY && (all || (flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS) != 0))
        fprintf(file, "\\n%llu x %llu x %llu bytes", (unsigned long long)work->copy.width,
                (unsigned long long)work->copy.height, (unsigned long long)work->copy.depth);
    if (work->kind == API_WORK_SET && (all || (flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS) != 0))
        fprintf(file, "\\n%llu x %llu elements of %u bytes, value 0x%x", (unsigned long long)work->set.width,
                (unsigned long long)work->set.height, work->set.element_bytes, work->set.value);
    if (all || (flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) != 0)
        fprintf(file, "\\n%p", (void *)node->handle);
}

static void print(FILE *file, const struct api_graph *graph, unsigned flags)
{
    for (const struct api_node *node = graph->nodes; node != NULL; node = node->next) {
        fprintf(file, "  \"node_%llu\" [label=\"%s", node->id, kind_name(node->type));
        describe(file, node, flags);
        fprintf(file, "\"];\n");
        for (size_t i = 0; i < node->n_from; i++)
            fprintf(file, "  \"node_%llu\" -> \"node_%llu\"%s;\n", node->from[i].node->id, node->id,
                    api_edge_is_plain(&node->from[i].data) ? "" : " [style=dashed]");
        if (node->child != NULL) {
            fprintf(file, "  subgraph \"cluster_%llu\" {\n", node->id);
            print(file, node->child, flags);
            fprintf(file, "  }\n");
        }
        for (unsigned i = 0; node->conditional != NULL && i < node->conditional->size; i++) {
            fprintf(file, "  subgraph \"cluster_%llu_%u\" {\n", node->id, i);
            print(file, node->conditional->bodies[i], flags);
            fprintf(file, "  }\n");
        }
    }
}

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    API_ENTER();
    const struct api_graph *graph = emu_handle_get(EMU_HANDLE_GRAPH, hGraph);
    API_REQUIRE(graph != NULL && path != NULL && flags < 1u << 16);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return api_fail(CUDA_ERROR_OPERATING_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    fprintf(file, "digraph graph_%p {\n  node [shape=box];\n", (void *)hGraph);
    print(file, graph, flags);
    fprintf(file, "}\n");
    return fclose(file) == 0
               ? api_leave()
               : api_fail(CUDA_ERROR_OPERATING_SYSTEM, "cannot write %s: %s", path, strerror(errno));
}
