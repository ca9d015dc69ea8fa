/* Dominators of random graphs against the definition: a dominates b when b cannot be reached from the root
   without a; the immediate dominator is the one that all other strict dominators of b dominate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/dom.h"

enum { MOST_NODES = 14, GRAPHS = 4000 };

struct matrix {
    uint32_t n;
    bool edge[MOST_NODES][MOST_NODES];
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void reach(const struct matrix *m, uint32_t from, uint32_t without, bool *seen)
{
    if (from == without || seen[from])
        return;
    seen[from] = true;
    for (uint32_t to = 0; to < m->n; to++)
        if (m->edge[from][to])
            reach(m, to, without, seen);
}

static void check(const struct matrix *m)
{
    uint32_t first[MOST_NODES + 1], pred_first[MOST_NODES + 1], succ[MOST_NODES * MOST_NODES],
        pred[MOST_NODES * MOST_NODES], idom[MOST_NODES], edges = 0, pred_edges = 0;
    bool reached[MOST_NODES] = {false}, dominates[MOST_NODES][MOST_NODES] = {{false}};
    struct clab_arena arena = {0};
    for (uint32_t i = 0; i < m->n; i++) {
        first[i] = edges;
        pred_first[i] = pred_edges;
        for (uint32_t j = 0; j < m->n; j++) {
            if (m->edge[i][j])
                succ[edges++] = j;
            if (m->edge[j][i])
                pred[pred_edges++] = j;
        }
    }
    first[m->n] = edges;
    pred_first[m->n] = pred_edges;
    struct ptx_graph graph = {m->n, first, succ, pred_first, pred};
    assert_true(ptx_dominators(&graph, 0, &arena, idom));
    reach(m, 0, UINT32_MAX, reached);
    for (uint32_t a = 0; a < m->n; a++) {
        bool seen[MOST_NODES] = {false};
        reach(m, 0, a, seen);
        for (uint32_t b = 0; b < m->n; b++)
            dominates[a][b] = reached[b] && !seen[b];
    }
    for (uint32_t b = 0; b < m->n; b++) {
        uint32_t wanted = UINT32_MAX;
        for (uint32_t a = 0; a < m->n && b != 0 && reached[b]; a++) {
            bool nearest = a != b && dominates[a][b];
            for (uint32_t c = 0; c < m->n && nearest; c++)
                nearest = c == b || !dominates[c][b] || dominates[c][a];
            if (nearest)
                wanted = a;
        }
        assert_int_equal(idom[b], wanted);
    }
    clab_arena_free(&arena);
}

static void random_graphs(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    for (unsigned g = 0; g < GRAPHS; g++) {
        struct matrix m = {.n = 1 + next_random(&seed) % MOST_NODES};
        uint32_t edges = next_random(&seed) % (3 * m.n);
        for (uint32_t e = 0; e < edges; e++)
            m.edge[next_random(&seed) % m.n][next_random(&seed) % m.n] = true;
        check(&m);
    }
}

/* A chain of a million blocks must not use the C stack, nor quadratic time. */
static void long_chain(void **state)
{
    (void)state;
    enum { N = 1000000 };
    struct clab_arena arena = {0};
    uint32_t *first = clab_arena_array(&arena, N + 1, sizeof *first);
    uint32_t *pred_first = clab_arena_array(&arena, N + 1, sizeof *pred_first);
    uint32_t *succ = clab_arena_array(&arena, N, sizeof *succ),
             *pred = clab_arena_array(&arena, N, sizeof *pred);
    uint32_t *idom = clab_arena_array(&arena, N, sizeof *idom);
    assert_true(first && pred_first && succ && pred && idom);
    for (uint32_t i = 0; i < N; i++) {
        first[i] = i;
        succ[i] = i + 1;
        pred_first[i] = i ? i - 1 : 0;
        if (i)
            pred[i - 1] = i - 1;
    }
    first[N] = N - 1;
    pred_first[N] = N - 1;
    struct ptx_graph graph = {N, first, succ, pred_first, pred};
    assert_true(ptx_dominators(&graph, 0, &arena, idom));
    for (uint32_t i = 1; i < N; i++)
        assert_true(idom[i] == i - 1);
    clab_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs), cmocka_unit_test(long_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
