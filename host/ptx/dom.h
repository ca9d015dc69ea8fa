/* Dominators of a directed graph. */
#ifndef CLAB_PTX_DOM_H
#define CLAB_PTX_DOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Edges as lists by node: targets[first[n] .. first[n + 1]). */
struct ptx_graph {
    uint32_t n_nodes;
    const uint32_t *succ_first, *succ, *pred_first, *pred;
};
/* out_idom[n] is the immediate dominator of n as seen from `root`; UINT32_MAX for root and for what it does
   not reach. Time is nearly linear in the edges. Scratch memory from `arena`. False when memory is out. */
bool ptx_dominators(const struct ptx_graph *graph, uint32_t root, struct clab_arena *arena,
                    uint32_t *out_idom);

#endif
