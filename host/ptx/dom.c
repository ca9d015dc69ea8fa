/* Dominators by semidominators (Lengauer and Tarjan 1979, with path compression; the immediate dominator is
   then the nearest common ancestor, as in Georgiadis's SEMI-NCA). Iterative throughout, so that a long chain
   of blocks does not use the C stack. */
#include "ptx/dom.h"

#define NONE UINT32_MAX

struct work {
    uint32_t *number; /* node -> depth-first number, NONE unreached */
    uint32_t *node;   /* depth-first number -> node */
    uint32_t *parent; /* all below by depth-first number */
    uint32_t *semi, *label, *ancestor, *idom, *stack, *cursor;
};

static bool work_init(struct work *work, uint32_t n, struct clab_arena *arena)
{
    uint32_t **arrays[] = {&work->number,   &work->node, &work->parent, &work->semi,  &work->label,
                           &work->ancestor, &work->idom, &work->stack,  &work->cursor};
    for (unsigned i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i] = clab_arena_array(arena, n ? n : 1, sizeof(uint32_t));
        if (!*arrays[i])
            return false;
    }
    return true;
}

/* Numbers the nodes reached from root; the count. */
static uint32_t number_nodes(const struct ptx_graph *graph, uint32_t root, struct work *work)
{
    uint32_t count = 0, depth = 0;
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        work->number[i] = NONE;
    work->number[root] = 0;
    work->node[0] = root;
    work->parent[0] = NONE;
    work->cursor[root] = graph->succ_first[root];
    work->stack[depth++] = root;
    count = 1;
    while (depth) {
        uint32_t at = work->stack[depth - 1];
        if (work->cursor[at] == graph->succ_first[at + 1]) {
            depth--;
            continue;
        }
        uint32_t next = graph->succ[work->cursor[at]++];
        if (work->number[next] != NONE)
            continue;
        work->number[next] = count;
        work->node[count] = next;
        work->parent[count] = work->number[at];
        work->cursor[next] = graph->succ_first[next];
        work->stack[depth++] = next;
        count++;
    }
    return count;
}

/* The number with the least semidominator on the linked path above v; shortens that path. */
static uint32_t evaluate(struct work *work, uint32_t v)
{
    uint32_t depth = 0, at = v;
    if (work->ancestor[v] == NONE)
        return v;
    while (work->ancestor[work->ancestor[at]] != NONE) {
        work->stack[depth++] = at;
        at = work->ancestor[at];
    }
    while (depth) {
        uint32_t below = work->stack[--depth], above = work->ancestor[below];
        if (work->semi[work->label[above]] < work->semi[work->label[below]])
            work->label[below] = work->label[above];
        work->ancestor[below] = work->ancestor[above];
    }
    return work->label[v];
}

bool ptx_dominators(const struct ptx_graph *graph, uint32_t root, struct clab_arena *arena,
                    uint32_t *out_idom)
{
    struct work work;
    if (!work_init(&work, graph->n_nodes, arena))
        return false;
    uint32_t count = number_nodes(graph, root, &work);
    for (uint32_t i = 0; i < count; i++) {
        work.semi[i] = work.label[i] = i;
        work.ancestor[i] = NONE;
        work.idom[i] = work.parent[i];
    }
    for (uint32_t w = count; w-- > 1;) {
        uint32_t node = work.node[w];
        for (uint32_t e = graph->pred_first[node]; e < graph->pred_first[node + 1]; e++) {
            uint32_t v = work.number[graph->pred[e]];
            if (v == NONE)
                continue;
            uint32_t u = evaluate(&work, v);
            if (work.semi[u] < work.semi[w])
                work.semi[w] = work.semi[u];
        }
        work.ancestor[w] = work.parent[w];
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        out_idom[i] = NONE;
    for (uint32_t w = 1; w < count; w++) {
        while (work.idom[w] > work.semi[w])
            work.idom[w] = work.idom[work.idom[w]];
        out_idom[work.node[w]] = work.node[work.idom[w]];
    }
    return true;
}
