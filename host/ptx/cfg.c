/* The control-flow graph of a function: basic blocks, their edges, immediate dominators and postdominators. A
   block ends at bra, brx.idx, ret, exit and trap (PTX ISA 9.0, 9.7.12 "Control Flow Instructions", 9.7.19
   "trap") and before a label that something branches to. Calls are ordinary instructions. Left out: edges of
   indirect calls and of exits inside callees. */
#include <string.h>

#include "ptx/dom.h"
#include "ptx/ptx.h"

#define NONE UINT32_MAX

static bool ends_block(const struct ptx_insn *insn)
{
    switch (insn->row) {
    case PTX_BRA:
    case PTX_BRX_IDX:
    case PTX_RET:
    case PTX_EXIT:
    case PTX_TRAP:
        return true;
    default:
        return false;
    }
}

/* Does control go on to the next instruction? */
static bool falls_through(const struct ptx_insn *insn)
{
    return !ends_block(insn) || insn->has_guard;
}

/* The branch targets of an instruction: *out borrowed. */
static uint32_t targets_of(const struct ptx_insn *insn, const uint32_t **out)
{
    if (insn->row == PTX_BRA && insn->n_operands == 1) {
        *out = &insn->operands[0].target;
        return 1;
    }
    if (insn->row == PTX_BRX_IDX && insn->n_operands == 2 && insn->operands[1].table) {
        *out = insn->operands[1].table->targets;
        return insn->operands[1].table->count;
    }
    return 0;
}

static clab_status no_memory(struct clab_error *error, const struct ptx_function *function)
{
    return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for the control flow of '%s'",
                          function->name);
}

/* Marks the first instruction of each block; the number of blocks. */
static uint32_t find_leaders(const struct ptx_function *function, unsigned char *leader)
{
    uint32_t n = function->n_insns, blocks = 0;
    if (n)
        leader[0] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *targets = NULL;
        uint32_t count = targets_of(&function->insns[i], &targets);
        for (uint32_t t = 0; t < count; t++)
            if (targets[t] < n)
                leader[targets[t]] = 1;
        if (ends_block(&function->insns[i]) && i + 1 < n)
            leader[i + 1] = 1;
    }
    for (uint32_t i = 0; i < n; i++)
        blocks += leader[i];
    return blocks;
}

/* Successors of block b into out[0..), each once; n_blocks stands for leaving the function. `seen[x] == b +
 * 1` marks. */
static uint32_t successors(const struct ptx_function *function, const struct ptx_cfg *cfg, uint32_t b,
                           uint32_t *seen, uint32_t *out)
{
    const struct ptx_block *block = &cfg->blocks[b];
    const struct ptx_insn *last = &function->insns[block->first + block->count - 1];
    const uint32_t *targets = NULL;
    uint32_t count = targets_of(last, &targets), found = 0;
    for (uint32_t t = 0; t <= count; t++) {
        uint32_t next;
        if (t < count)
            next = targets[t] < function->n_insns ? cfg->block_of[targets[t]] : cfg->n_blocks;
        else if (falls_through(last))
            next = b + 1; /* the last block's is n_blocks: falling off the end leaves */
        else
            break;
        if (seen[next] == b + 1)
            continue;
        seen[next] = b + 1;
        if (out)
            out[found] = next;
        found++;
    }
    if (last->row == PTX_RET || last->row == PTX_EXIT || last->row == PTX_TRAP) {
        if (seen[cfg->n_blocks] != b + 1) {
            if (out)
                out[found] = cfg->n_blocks;
            found++;
        }
    }
    return found;
}

clab_status ptx_cfg_build(const struct ptx_function *function, struct clab_arena *arena,
                          struct ptx_cfg *out_cfg, struct clab_error *error)
{
    struct ptx_cfg *cfg = out_cfg;
    uint32_t n = function->n_insns;
    *cfg = (struct ptx_cfg){0};
    struct clab_arena scratch = {0};
    unsigned char *leader = clab_arena_alloc(&scratch, (size_t)n + 1);
    cfg->block_of = clab_arena_array(arena, (size_t)n + 1, sizeof *cfg->block_of);
    if (!leader || !cfg->block_of)
        goto memory;
    cfg->n_blocks = find_leaders(function, leader);
    uint32_t nb = cfg->n_blocks;
    cfg->blocks = clab_arena_array(arena, (size_t)nb + 1, sizeof *cfg->blocks);
    if (!cfg->blocks)
        goto memory;
    for (uint32_t i = 0, b = NONE; i < n; i++) {
        if (leader[i]) {
            b++;
            cfg->blocks[b].first = i;
        }
        cfg->blocks[b].count++;
        cfg->block_of[i] = b;
    }

    /* Edges, with the way out of the function as block number nb. */
    uint32_t *seen = clab_arena_array(&scratch, (size_t)nb + 1, sizeof *seen);
    uint32_t *succ_first = clab_arena_array(&scratch, (size_t)nb + 2, sizeof *succ_first);
    uint32_t *pred_first = clab_arena_array(&scratch, (size_t)nb + 3, sizeof *pred_first);
    if (!seen || !succ_first || !pred_first)
        goto memory;
    uint64_t edges = 0, most = (uint64_t)n * 64 + (1u << 20);
    for (uint32_t b = 0; b < nb; b++) {
        edges += successors(function, cfg, b, seen, NULL);
        succ_first[b + 1] = (uint32_t)edges;
        if (edges > most) {
            clab_arena_free(&scratch);
            return clab_error_set(
                error, CLAB_UNSUPPORTED,
                "the control flow of '%s' has more than %llu edges: its brx.idx lists are too long",
                function->name, (unsigned long long)most);
        }
    }
    succ_first[nb + 1] = (uint32_t)edges;
    uint32_t *succ = clab_arena_array(arena, (size_t)edges + 1, sizeof *succ);
    uint32_t *pred = clab_arena_array(arena, (size_t)edges + 1, sizeof *pred);
    uint32_t *idom = clab_arena_array(&scratch, (size_t)nb + 1, sizeof *idom);
    if (!succ || !pred || !idom)
        goto memory;
    memset(seen, 0, ((size_t)nb + 1) * sizeof *seen);
    for (uint32_t b = 0; b < nb; b++)
        successors(function, cfg, b, seen, succ + succ_first[b]);
    for (uint32_t e = 0; e < edges; e++)
        pred_first[succ[e] + 2]++;
    for (uint32_t b = 0; b < nb + 1; b++)
        pred_first[b + 2] += pred_first[b + 1];
    for (uint32_t b = 0; b < nb; b++)
        for (uint32_t e = succ_first[b]; e < succ_first[b + 1]; e++)
            pred[pred_first[succ[e] + 1]++] = b;

    struct ptx_graph forward = {nb + 1, succ_first, succ, pred_first, pred};
    struct ptx_graph backward = {nb + 1, pred_first, pred, succ_first, succ};
    if (nb && !ptx_dominators(&forward, 0, &scratch, idom))
        goto memory;
    for (uint32_t b = 0; b < nb; b++)
        cfg->blocks[b].idom = idom[b];
    if (nb && !ptx_dominators(&backward, nb, &scratch, idom))
        goto memory;
    for (uint32_t b = 0; b < nb; b++) {
        struct ptx_block *block = &cfg->blocks[b];
        block->ipdom = idom[b] == nb ? NONE : idom[b];
        block->succ = succ + succ_first[b];
        block->pred = pred + pred_first[b];
        block->n_pred = pred_first[b + 1] - pred_first[b];
        /* the way out is no block: drop it from the list (it is there once at most) */
        for (uint32_t e = succ_first[b]; e < succ_first[b + 1]; e++)
            if (succ[e] != nb)
                block->succ[block->n_succ++] = succ[e];
    }
    clab_arena_free(&scratch);
    return CLAB_OK;
memory:
    clab_arena_free(&scratch);
    return no_memory(error, function);
}
