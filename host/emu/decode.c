/* Decodes one PTX function into operations: walks the blocks of its control-flow graph in program order,
   calls the emitter of each instruction's row, and places joins.

   requires: the function parsed without error; the image's layout of shared variables done. breaks: nothing.

   Lanes that part at a conditional branch meet again at its block's immediate post-dominator, which therefore
   starts with a join operation. A branch over a short region without loops, barriers, collectives, calls or
   exits needs no fragments: both sides run in place under a mask (see ops_control.c). Leaves out: any
   optimisation across instructions. */
#include <string.h>

#include "emu/emitting.h"

#define REGION_BLOCKS 64   /* of a region that is run in place, or a polling loop */
#define POLL_INSNS    1024 /* of a polling loop */

/* Fuel that a backward branch takes; launch.c gives a slice 65536. A loop that only polls gives way soon. */
#define WEIGHT_PLAIN 1
#define WEIGHT_POLL  8192

enum block_flag {
    BLOCK_SIMPLE = 1, /* nothing that can wait, leave or be counted apart: may run in place */
    BLOCK_POLLS = 2,  /* reads something that another thread may change */
    BLOCK_WORKS = 4,  /* writes memory, or takes part in a barrier */
    BLOCK_JOIN = 8,   /* starts with a join */
    BLOCK_SPINS = 16  /* part of a polling loop */
};

struct flow {
    struct ptx_cfg cfg;
    uint8_t *flags;          /* enum block_flag, by block */
    uint32_t *weights;       /* of the block's backward branch */
    uint32_t *number, *last; /* of the dominator tree, by block: see number_dominators */
    uint32_t *mark;          /* scratch, by block */
    uint32_t *reg_mark;      /* scratch, by register */
    uint32_t *stack;
    uint32_t mark_now;
};

static bool class_is(const struct ptx_insn *insn, const char *name)
{
    return strcmp(ptx_rows[insn->row].class, name) == 0;
}

static bool head_is(const struct ptx_insn *insn, const char *head)
{
    return strncmp(ptx_rows[insn->row].syntax, head, strlen(head)) == 0;
}

/* atom.add or atom.or of 0 and their like read without changing. */
static bool adds_nothing(const struct ptx_insn *insn)
{
    const struct ptx_operand *last = &insn->operands[insn->n_operands - 1];
    return insn->n_operands == 3 && last->kind == PTX_OPERAND_INT && last->imm == 0 &&
           (ptx_has(insn, PTX_MOD_ADD) || ptx_has(insn, PTX_MOD_OR) || ptx_has(insn, PTX_MOD_XOR));
}

/* Whether an instruction reads what another thread may change meanwhile. */
static bool polls(const struct ptx_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        if (emu_reads_clock(&insn->operands[i])) {
            return true;
        }
    }
    if (class_is(insn, "ATOMIC")) {
        return ptx_has(insn, PTX_MOD_CAS) || ptx_has(insn, PTX_MOD_EXCH) || adds_nothing(insn);
    }
    return head_is(insn, "mbarrier.t") || head_is(insn, "nanosleep") ||
           (head_is(insn, "ld") && (ptx_has(insn, PTX_MOD_VOLATILE) || ptx_has(insn, PTX_MOD_ACQUIRE) ||
                                    ptx_has(insn, PTX_MOD_RELAXED)));
}

/* After which observed code may give way to others (ops_memory.c, ops_atomic.c, ops_barrier.c). */
static bool gives_way(const struct ptx_insn *insn)
{
    return class_is(insn, "ATOMIC") || class_is(insn, "FENCE") ||
           (class_is(insn, "MEMORY") && (ptx_has(insn, PTX_MOD_VOLATILE) || ptx_has(insn, PTX_MOD_RELAXED) ||
                                         ptx_has(insn, PTX_MOD_ACQUIRE) || ptx_has(insn, PTX_MOD_RELEASE)));
}

static uint8_t classify(const struct ptx_insn *insn, bool observed)
{
    static const char *const simple[] = {"ALU", "FLOAT", "MOVE", "MEMORY", "ATOMIC", "FENCE"};
    uint8_t flags = 0;
    if (insn->row == PTX_BRA) {
        return BLOCK_SIMPLE;
    }
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        flags |= class_is(insn, simple[i]) ? BLOCK_SIMPLE : 0;
    }
    if (observed && gives_way(insn)) { /* which a region in place cannot */
        flags = 0;
    }
    if (polls(insn)) {
        flags |= BLOCK_POLLS;
    } else if (class_is(insn, "BARRIER") || class_is(insn, "ASYNC") || class_is(insn, "CONTROL") ||
               class_is(insn, "ATOMIC") || head_is(insn, "st")) {
        flags |= BLOCK_WORKS;
    }
    return flags;
}

static void classify_blocks(const struct ptx_function *function, struct flow *flow, bool observed)
{
    for (uint32_t b = 0; b < flow->cfg.n_blocks; b++) {
        const struct ptx_block *block = &flow->cfg.blocks[b];
        uint8_t all = BLOCK_SIMPLE, any = 0;
        for (uint32_t i = 0; i < block->count; i++) {
            const uint8_t flags = classify(&function->insns[block->first + i], observed);
            all &= flags;
            any |= flags & (BLOCK_POLLS | BLOCK_WORKS);
        }
        flow->flags[b] = all | any;
        flow->weights[b] = WEIGHT_PLAIN;
    }
}

/* Numbers the tree of immediate dominators: the blocks that a block dominates are those numbered from its own
   number to its last. Blocks that nothing reaches have number 0 and dominate none. */
static void number_dominators(struct flow *flow)
{
    const struct ptx_cfg *cfg = &flow->cfg;
    uint32_t *child = flow->stack, *sibling = flow->mark; /* block + 1; free until now, and again after */
    uint32_t number = 0, at = 0;
    if (cfg->n_blocks == 0) {
        return;
    }
    for (uint32_t b = cfg->n_blocks; b-- > 1;) {
        const uint32_t parent = cfg->blocks[b].idom;
        if (parent != UINT32_MAX) {
            sibling[b] = child[parent];
            child[parent] = b + 1;
        }
    }
    for (;;) {
        if (flow->number[at] == 0) {
            flow->number[at] = ++number;
        }
        if (child[at]) { /* down to the first that is left */
            const uint32_t next = child[at] - 1;
            child[at] = sibling[next];
            at = next;
            continue;
        }
        flow->last[at] = number;
        if (at == 0) {
            break;
        }
        at = cfg->blocks[at].idom;
    }
    memset(flow->stack, 0, (cfg->n_blocks + 1) * sizeof *flow->stack);
    memset(flow->mark, 0, (cfg->n_blocks + 1) * sizeof *flow->mark);
}

static bool dominates(const struct flow *flow, uint32_t a, uint32_t b)
{
    return flow->number[a] != 0 && flow->number[a] <= flow->number[b] && flow->number[b] <= flow->last[a];
}

static bool reg_tainted(const struct flow *flow, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_REG) {
        return flow->reg_mark[operand->reg] == flow->mark_now;
    }
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        if (reg_tainted(flow, &operand->elements[i])) {
            return true;
        }
    }
    return false;
}

static void reg_taint(struct flow *flow, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_REG) {
        flow->reg_mark[operand->reg] = flow->mark_now;
    }
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        reg_taint(flow, &operand->elements[i]);
    }
}

/* Whether a branch of the loop (blocks marked with mark_now, from `first` to `last`) depends on what the loop
   polls. In a loop without work the first operand of an instruction is what it writes. Two passes carry a
   value round. */
static bool loop_polls(struct flow *flow, const struct ptx_function *function, uint32_t first, uint32_t last)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t b = first; b <= last; b++) {
            const struct ptx_block *block = &flow->cfg.blocks[b];
            for (uint32_t i = 0; flow->mark[b] == flow->mark_now && i < block->count; i++) {
                const struct ptx_insn *insn = &function->insns[block->first + i];
                bool tainted = polls(insn);
                if (insn->has_guard && flow->reg_mark[insn->guard] == flow->mark_now) {
                    tainted = true;
                    if (insn->row == PTX_BRA) {
                        return true;
                    }
                }
                if (head_is(insn, "nanosleep")) {
                    return true;
                }
                for (uint32_t k = 1; k < insn->n_operands; k++) {
                    tainted |= reg_tainted(flow, &insn->operands[k]);
                }
                if (tainted && insn->n_operands > 0) {
                    reg_taint(flow, &insn->operands[0]);
                }
            }
        }
    }
    return false;
}

/* Natural loops of back edges b -> header: one that polls and does no work gives way soon, and is counted
 * apart. */
static void weigh_loops(struct flow *flow, const struct ptx_function *function)
{
    const struct ptx_cfg *cfg = &flow->cfg;
    for (uint32_t b = 0; b < cfg->n_blocks; b++) {
        for (uint32_t s = 0; s < cfg->blocks[b].n_succ; s++) {
            const uint32_t header = cfg->blocks[b].succ[s];
            if (header > b || !dominates(flow, header, b)) {
                continue;
            }
            uint32_t n = 0, visited = 0, insns = cfg->blocks[header].count, first = header, last = b;
            uint8_t any = flow->flags[header];
            flow->mark_now++;
            flow->mark[header] = flow->mark_now;
            if (flow->mark[b] != flow->mark_now) {
                flow->mark[b] = flow->mark_now;
                flow->stack[n++] = b;
            }
            /* A loop that does more than poll, or is larger than one that polls would be, is left alone. */
            while (n > 0 && visited < REGION_BLOCKS && insns < POLL_INSNS && !(any & BLOCK_WORKS)) {
                const uint32_t at = flow->stack[--n];
                visited += 1 + cfg->blocks[at].n_pred / 8;
                insns += cfg->blocks[at].count;
                any |= flow->flags[at];
                first = at < first ? at : first;
                last = at > last ? at : last;
                for (uint32_t p = 0; p < cfg->blocks[at].n_pred; p++) {
                    const uint32_t pred = cfg->blocks[at].pred[p];
                    if (flow->mark[pred] != flow->mark_now) {
                        flow->mark[pred] = flow->mark_now;
                        flow->stack[n++] = pred;
                    }
                }
            }
            if (n > 0 || !(any & BLOCK_POLLS) || (any & BLOCK_WORKS) || insns >= POLL_INSNS ||
                last - first > 4 * REGION_BLOCKS || !loop_polls(flow, function, first, last)) {
                continue;
            }
            flow->weights[b] = WEIGHT_POLL;
            for (uint32_t at = first; at <= last; at++) {
                flow->flags[at] |= flow->mark[at] == flow->mark_now ? BLOCK_SPINS : 0;
            }
        }
    }
}

/* Whether all that lies between block `from` and `join` is simple and without loops. Depth-first; blocks on
   the path have mark 2 * now, finished ones 2 * now + 1. */
static bool region_walk(struct flow *flow, uint32_t at, uint32_t join, uint32_t *count)
{
    if (at == join) {
        return true;
    }
    if (flow->mark[at] == flow->mark_now + 1) {
        return true;
    }
    if (flow->mark[at] == flow->mark_now || ++*count > REGION_BLOCKS || !(flow->flags[at] & BLOCK_SIMPLE) ||
        (flow->flags[at] & BLOCK_JOIN) || flow->cfg.blocks[at].n_succ == 0) {
        return false;
    }
    flow->mark[at] = flow->mark_now;
    for (uint32_t s = 0; s < flow->cfg.blocks[at].n_succ; s++) {
        const uint32_t succ = flow->cfg.blocks[at].succ[s];
        if (succ <= at || !region_walk(flow, succ, join, count)) {
            return false;
        }
    }
    flow->mark[at] = flow->mark_now + 1;
    return true;
}

static bool region_inplace(struct flow *flow, uint32_t b, uint32_t join)
{
    uint32_t count = 0;
    if (join <= b) {
        return false; /* a loop's head: the branch goes back, and must be able to give way */
    }
    flow->mark_now += 2;
    flow->mark[b] = flow->mark_now; /* a way back to the branch is a loop */
    for (uint32_t s = 0; s < flow->cfg.blocks[b].n_succ; s++) {
        const uint32_t succ = flow->cfg.blocks[b].succ[s];
        if (succ <= b || !region_walk(flow, succ, join, &count)) {
            return false;
        }
    }
    return true;
}

static const struct ptx_insn *last_insn(const struct ptx_function *function, const struct ptx_block *block)
{
    return block->count ? &function->insns[block->first + block->count - 1] : NULL;
}

static bool may_diverge(const struct ptx_insn *insn)
{
    return insn && ((insn->row == PTX_BRA && insn->has_guard) || insn->row == PTX_BRX_IDX);
}

static void place_joins(const struct ptx_function *function, struct flow *flow, bool *inplace)
{
    /* A region with a join inside cannot run in place: emu_join speaks for the whole fragment. Giving one up
       makes a join, which may lie in another; when that does not settle soon, none runs in place. */
    unsigned passes = 0;
    memset(inplace, 0, flow->cfg.n_blocks * sizeof *inplace);
    for (bool changed = true; changed;) {
        passes++;
        changed = false;
        for (uint32_t b = 0; b < flow->cfg.n_blocks; b++) {
            const struct ptx_block *block = &flow->cfg.blocks[b];
            const struct ptx_insn *insn = last_insn(function, block);
            inplace[b] = false;
            if (!may_diverge(insn) || block->ipdom == UINT32_MAX) {
                continue;
            }
            inplace[b] = passes <= 16 && insn->row == PTX_BRA && region_inplace(flow, b, block->ipdom);
            if (!inplace[b] && !(flow->flags[block->ipdom] & BLOCK_JOIN)) {
                flow->flags[block->ipdom] |= BLOCK_JOIN;
                changed = true;
            }
        }
    }
}

static void emit_insn(struct emu_emit *emit, uint32_t index)
{
    emu_emit_begin(emit, index);
    const struct ptx_insn *insn = emit->insn;
    emu_emitter *emitter = emit->image->set->emitters[insn->row];
    if (!emitter) {
        char text[200];
        ptx_insn_text(emit->ptx, insn, text, sizeof text);
        emu_unsupported(emit, "%s", text);
        return;
    }
    const clab_status status = emitter(emit, insn);
    if (status != CLAB_OK && emit->status == CLAB_OK) {
        emu_emit_error(emit, status, "cannot decode this instruction");
    }
    emu_emit_end(emit);
}

/* Copies the operations to the image and turns instruction indices into pointers. */
static bool finish(struct emu_emit *emit)
{
    struct emu_code *code = emit->code;
    code->n_ops = (uint32_t)emit->n_ops;
    code->ops = clab_arena_array(&emit->image->arena, emit->n_ops, sizeof *code->ops);
    code->consts = clab_arena_array(&emit->image->arena, emit->n_consts + 1, sizeof *code->consts);
    if (!code->ops || !code->consts) {
        return false;
    }
    memcpy(code->ops, emit->ops, emit->n_ops * sizeof *code->ops);
    for (int rank = 1; rank >= 0; rank--) {
        for (size_t i = 0; i < emit->n_consts; i++) {
            if (emit->consts[i].rank == (rank != 0)) {
                code->consts[code->n_consts++] = emit->consts[i];
            }
        }
        code->n_rank_consts = rank ? code->n_consts : code->n_rank_consts;
    }
    for (size_t i = 0; i < emit->n_fixes; i++) {
        const struct emu_fix *fix = &emit->fixes[i];
        struct emu_op *op = &code->ops[fix->op];
        const struct emu_op *target = fix->target == UINT32_MAX ? NULL : &code->ops[code->op_of[fix->target]];
        if (fix->slot) {
            *fix->slot = target;
        } else {
            op->target = target;
        }
        op->imm = fix->join == UINT32_MAX ? 0 : (uint64_t)(uintptr_t)&code->ops[code->op_of[fix->join]];
    }
    for (uint32_t i = 0; i < code->n_ops; i++) {
        struct emu_op *op = &code->ops[i];
        if (op->u8[0] == 1 && op->full == emit->framework->branch_full) { /* emu_guard_branch */
            op->target = op + op->imm;
            op->imm = (uint64_t)(uintptr_t)op->target;
        }
    }
    code->file_bytes = (emit->file_bytes + 63) & ~UINT32_C(63);
    code->local_bytes = emit->local_bytes;
    code->reg_rows = emit->reg_rows;
    code->registers = emit->live.demand;
    return true;
}

/* NULL when there are none, or memory is out (the error is recorded). */
static const struct emu_carried *carried(struct emu_emit *emit, struct ptx_var *const *vars, uint32_t n,
                                         const struct emu_slot *slots)
{
    enum { MAX_LANES = 4 }; /* of a vector register */
    struct emu_carried *list = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (vars[i]->space != PTX_SPACE_REG || vars[i]->type == PTX_PRED) {
            continue;
        }
        if (!list && !(list = emu_emit_alloc(emit, sizeof *list + MAX_LANES * n * sizeof *list->items))) {
            return NULL;
        }
        const uint32_t bytes = slots[i].bytes / vars[i]->vector;
        for (uint32_t k = 0; k < vars[i]->vector; k++) {
            list->items[list->n].row = emit->reg_rows[vars[i]->reg + k];
            list->items[list->n].place = slots[i].offset + k * bytes;
            list->items[list->n++].bytes = bytes;
        }
    }
    return list;
}

static bool flow_build(const struct ptx_function *function, struct clab_arena *arena, struct flow *flow,
                       struct emu_emit *emit)
{
    if (ptx_cfg_build(function, arena, &flow->cfg, emit->error) != CLAB_OK ||
        ptx_live_build(function, &flow->cfg, arena, &emit->live, emit->error) != CLAB_OK) {
        emit->status = emit->error ? emit->error->status : CLAB_NO_MEMORY;
        return true;
    }
    const size_t n = flow->cfg.n_blocks + 1;
    flow->flags = clab_arena_array(arena, n, sizeof *flow->flags);
    flow->weights = clab_arena_array(arena, n, sizeof *flow->weights);
    flow->number = clab_arena_array(arena, n, sizeof *flow->number);
    flow->last = clab_arena_array(arena, n, sizeof *flow->last);
    flow->mark = clab_arena_array(arena, n, sizeof *flow->mark);
    flow->stack = clab_arena_array(arena, n, sizeof *flow->stack);
    flow->reg_mark = clab_arena_array(arena, function->n_regs + 1, sizeof *flow->reg_mark);
    return flow->flags && flow->weights && flow->number && flow->last && flow->mark && flow->stack &&
           flow->reg_mark;
}

static clab_status decode_body(struct emu_emit *emit)
{
    const struct ptx_function *function = emit->function;
    struct flow flow = {0};
    if (!flow_build(function, &emit->scratch, &flow, emit)) {
        return emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", function->name);
    }
    if (emit->status != CLAB_OK) {
        return emit->status;
    }
    bool *inplace = clab_arena_array(&emit->scratch, flow.cfg.n_blocks + 1, sizeof *inplace);
    emit->code->op_of =
        clab_arena_array(&emit->image->arena, function->n_insns + 1, sizeof *emit->code->op_of);
    if (!inplace || !emit->code->op_of || !emu_emit_init(emit)) {
        return emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", function->name);
    }
    classify_blocks(function, &flow, emit->image->set->hooks);
    number_dominators(&flow);
    weigh_loops(&flow, function);
    place_joins(function, &flow, inplace);
    emu_emit_begin(emit, 0);
    const struct emu_carried *taken = carried(emit, function->params, function->n_params, emit->code->params);
    emit->returned = carried(emit, function->returns, function->n_returns, emit->code->returns);
    if (taken) {
        emu_push_unguarded(emit, emit->framework->carry_in, NULL)->extra = taken;
    }
    for (uint32_t b = 0; b < flow.cfg.n_blocks && emit->status == CLAB_OK; b++) {
        const struct ptx_block *block = &flow.cfg.blocks[b];
        emit->join_insn = block->ipdom == UINT32_MAX ? UINT32_MAX : flow.cfg.blocks[block->ipdom].first;
        emit->inplace = inplace[b];
        emit->weight = flow.weights[b];
        const bool spins = flow.flags[b] & BLOCK_SPINS;
        for (uint32_t i = block->first; i < block->first + block->count && emit->status == CLAB_OK; i++) {
            emit->code->op_of[i] = (uint32_t)emit->n_ops;
            if (i == block->first && (flow.flags[b] & BLOCK_JOIN)) {
                emu_emit_begin(emit, i);
                emu_push_unguarded(emit, emit->framework->join_full, emit->framework->join_masked)->u8[1] = 1;
            }
            if (i == block->first && spins != emit->spin) {
                /* These count for the stretch before them, so they are of the old kind. */
                emu_emit_begin(emit, i);
                emu_push_unguarded(emit, emit->framework->count, emit->framework->count);
                emit->spin = spins;
            }
            emit_insn(emit, i);
        }
    }
    emu_emit_begin(emit, function->n_insns);
    emit->code->op_of[function->n_insns] = (uint32_t)emit->n_ops;
    if (emit->returned) {
        emu_push_unguarded(emit, emit->framework->carry_out, NULL)->extra = emit->returned;
    }
    emu_push_unguarded(emit, emit->framework->end, emit->framework->end);
    if (emit->status == CLAB_OK && !finish(emit)) {
        return emu_emit_error(emit, CLAB_NO_MEMORY, "out of memory while decoding '%s'", function->name);
    }
    return emit->status;
}

clab_status emu_decode(struct emu_image *image, const struct ptx_module *ptx, const struct emu_layout *layout,
                       struct emu_code *code, struct clab_error *error)
{
    if (code->function->error) {
        clab_error_copy(error, code->function->error);
        return code->function->error->status;
    }
    struct emu_emit emit = {.image = image,
                            .ptx = ptx,
                            .function = code->function,
                            .layout = layout,
                            .framework = image->set->framework,
                            .code = code,
                            .error = error};
    const clab_status status = decode_body(&emit);
    emu_emit_fini(&emit);
    return status;
}
