/* A modelled register demand: the most 32-bit registers live at once, from liveness of the virtual registers.
   An estimate before any schedule, spill or rematerialisation; predicates are not counted (the hardware keeps
   them apart). A value of 8 or 16 bits takes a whole register, 64 bits two, 128 bits four. */
#include <string.h>

#include "ptx/forms.h"
#include "ptx/ptx.h"

#define NONE UINT32_MAX

char ptx_operand_role(const struct ptx_insn *insn, uint32_t index)
{
    const struct ptx_forms *forms = ptx_forms_get();
    if (!forms || index >= insn->n_operands)
        return 0;
    const struct ptx_form *form = &forms->forms[insn->row];
    uint32_t required = 0, at = 0;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        required += role->when ? ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)) : !role->optional;
    }
    uint32_t spare = insn->n_operands > required ? insn->n_operands - required : 0;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when && !ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)))
            continue;
        if (!role->when && role->optional) {
            if (!spare || (role->vector == PTX_ROLE_CLASS && insn->operands[at].kind != PTX_OPERAND_VECTOR))
                continue;
            spare--;
        }
        if (at++ == index)
            return role->letter;
    }
    return 0;
}

static void visit_operand(const struct ptx_operand *operand, bool written,
                          void (*visit)(void *, uint32_t, bool), void *context)
{
    switch (operand->kind) {
    case PTX_OPERAND_REG:
        visit(context, operand->reg, written);
        break;
    case PTX_OPERAND_ADDRESS:
        for (uint32_t i = 0; i < operand->n_elements; i++)
            visit_operand(&operand->elements[i], false, visit, context);
        break;
    case PTX_OPERAND_VECTOR:
    case PTX_OPERAND_LIST:
    case PTX_OPERAND_PAIR:
        for (uint32_t i = 0; i < operand->n_elements; i++)
            visit_operand(&operand->elements[i], written, visit, context);
        break;
    default:
        break;
    }
}

/* Calls visit(context, reg, written) for each register of an instruction: reads first, then writes. */
void ptx_insn_registers(const struct ptx_insn *insn, void (*visit)(void *, uint32_t, bool), void *context)
{
    bool call = insn->row == PTX_CALL;
    if (insn->has_guard)
        visit(context, insn->guard, false);
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        char role = ptx_operand_role(insn, i);
        bool written = call ? i == 0 : role == 'w';
        if (!written)
            visit_operand(&insn->operands[i], false, visit, context);
        if (role == 'x')
            visit_operand(&insn->operands[i], false, visit, context);
    }
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        char role = ptx_operand_role(insn, i);
        if (call ? i == 0 : role == 'w' || role == 'x')
            visit_operand(&insn->operands[i], true, visit, context);
    }
}

struct liveness {
    const struct ptx_function *function;
    const struct ptx_cfg *cfg;
    uint32_t n_shared; /* registers that live across blocks, renumbered */
    uint32_t *shared;  /* reg -> its number, NONE: local to blocks */
    uint32_t *shared_reg;
    uint32_t words;                      /* of a set */
    uint64_t *in, *out, *read, *written; /* sets by block */
    /* while scanning */
    uint32_t block;
    uint32_t *defined_in; /* reg -> block + 1 of its last write seen */
    unsigned char *live;  /* by reg */
    uint32_t pressure;
    bool guarded;
};

static uint32_t cost(const struct ptx_function *function, uint32_t reg)
{
    const struct ptx_type_info *type = &ptx_types[function->regs[reg].type];
    return type->class == PTX_CLASS_PRED ? 0 : type->bits <= 32 ? 1u : type->bits / 32u;
}

/* Pass 1: a register read in a block before that block writes it lives across blocks. */
static void find_shared(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    if (written) {
        if (!l->guarded)
            l->defined_in[reg] = l->block + 1;
    } else if (l->defined_in[reg] != l->block + 1 && l->shared[reg] == NONE) {
        l->shared[reg] = l->n_shared++;
    }
}

static void fill_sets(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    uint32_t number = l->shared[reg];
    if (number == NONE)
        return;
    uint64_t bit = UINT64_C(1) << (number % 64);
    size_t word = (size_t)l->block * l->words + number / 64;
    if (written) {
        if (!l->guarded)
            l->written[word] |= bit;
    } else if (!(l->written[word] & bit)) {
        l->read[word] |= bit;
    }
}

static void kill(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    if (written && !l->guarded && l->live[reg]) {
        l->live[reg] = 0;
        l->pressure -= cost(l->function, reg);
    }
}

static void raise_live(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    if (!written && !l->live[reg]) {
        l->live[reg] = 1;
        l->pressure += cost(l->function, reg);
    }
}

static void raise_written(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    if (written && !l->live[reg]) { /* a result that nobody reads still needs its register for a moment */
        l->live[reg] = 1;
        l->pressure += cost(l->function, reg);
    }
}

static void each_insn(struct liveness *l, void (*visit)(void *, uint32_t, bool))
{
    for (l->block = 0; l->block < l->cfg->n_blocks; l->block++) {
        const struct ptx_block *block = &l->cfg->blocks[l->block];
        for (uint32_t i = block->first; i < block->first + block->count; i++) {
            l->guarded = l->function->insns[i].has_guard;
            ptx_insn_registers(&l->function->insns[i], visit, l);
        }
    }
}

/* Backward data flow to a fixed point, from a work list in which a block stands at most once. */
static bool solve(struct liveness *l, struct clab_arena *arena)
{
    uint32_t n = l->cfg->n_blocks, head = 0, count = n;
    uint32_t *queue = clab_arena_array(arena, (size_t)n + 1, sizeof *queue);
    unsigned char *queued = clab_arena_alloc(arena, (size_t)n + 1);
    if (!queue || !queued)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        queue[i] = n - 1 - i;
        queued[i] = 1;
    }
    while (count) {
        uint32_t b = queue[head];
        head = head + 1 == n ? 0 : head + 1;
        count--;
        queued[b] = 0;
        const struct ptx_block *block = &l->cfg->blocks[b];
        uint64_t *in = l->in + (size_t)b * l->words, *out = l->out + (size_t)b * l->words;
        const uint64_t *read = l->read + (size_t)b * l->words, *written = l->written + (size_t)b * l->words;
        bool changed = false;
        for (uint32_t s = 0; s < block->n_succ; s++)
            for (uint32_t w = 0; w < l->words; w++)
                out[w] |= l->in[(size_t)block->succ[s] * l->words + w];
        for (uint32_t w = 0; w < l->words; w++) {
            uint64_t next = read[w] | (out[w] & ~written[w]);
            changed |= next != in[w];
            in[w] = next;
        }
        for (uint32_t p = 0; changed && p < block->n_pred; p++) {
            if (queued[block->pred[p]])
                continue;
            queued[block->pred[p]] = 1;
            queue[(head + count++) % n] = block->pred[p];
        }
    }
    return true;
}

/* The greatest pressure inside block b, walking it backwards from what is live at its end. */
static uint32_t block_pressure(struct liveness *l, uint32_t b)
{
    const struct ptx_block *block = &l->cfg->blocks[b];
    const uint64_t *out = l->out + (size_t)b * l->words, *in = l->in + (size_t)b * l->words;
    uint32_t most = 0;
    l->pressure = 0;
    for (uint32_t w = 0; w < l->words; w++) {
        for (uint64_t bits = out[w]; bits; bits &= bits - 1) {
            uint32_t reg = l->shared_reg[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            l->live[reg] = 1;
            l->pressure += cost(l->function, reg);
        }
    }
    most = l->pressure;
    for (uint32_t i = block->first + block->count; i-- > block->first;) {
        const struct ptx_insn *insn = &l->function->insns[i];
        l->guarded = insn->has_guard;
        ptx_insn_registers(insn, raise_written, l);
        most = l->pressure > most ? l->pressure : most;
        ptx_insn_registers(insn, kill, l);
        ptx_insn_registers(insn, raise_live, l);
        most = l->pressure > most ? l->pressure : most;
    }
    /* leave no register marked for the next block: neither this one's own nor those that live across */
    for (uint32_t w = 0; w < l->words; w++)
        for (uint64_t bits = out[w] | in[w]; bits; bits &= bits - 1)
            l->live[l->shared_reg[w * 64 + (uint32_t)__builtin_ctzll(bits)]] = 0;
    for (uint32_t i = block->first; i < block->first + block->count; i++) {
        l->guarded = false;
        ptx_insn_registers(&l->function->insns[i], kill, l);
    }
    return most;
}

clab_status ptx_live_estimate(const struct ptx_function *function, const struct ptx_cfg *cfg,
                              struct clab_arena *arena, uint32_t *out_registers, struct clab_error *error)
{
    enum {
        MOST_WORDS = 1 << 25
    }; /* 256 MiB a set: beyond it the answer is the sum of what lives across blocks */
    struct clab_arena scratch = {.limit_bytes = arena->limit_bytes};
    struct liveness l = {.function = function, .cfg = cfg};
    clab_status status = CLAB_OK;
    *out_registers = 0;
    l.shared = clab_arena_array(&scratch, (size_t)function->n_regs + 1, sizeof *l.shared);
    l.defined_in = clab_arena_array(&scratch, (size_t)function->n_regs + 1, sizeof *l.defined_in);
    l.shared_reg = clab_arena_array(&scratch, (size_t)function->n_regs + 1, sizeof *l.shared_reg);
    l.live = clab_arena_alloc(&scratch, (size_t)function->n_regs + 1);
    if (!l.shared || !l.defined_in || !l.shared_reg || !l.live)
        goto memory;
    for (uint32_t i = 0; i < function->n_regs; i++)
        l.shared[i] = NONE;
    each_insn(&l, find_shared);
    uint32_t across = 0;
    for (uint32_t i = 0; i < function->n_regs; i++) {
        if (l.shared[i] != NONE) {
            l.shared_reg[l.shared[i]] = i;
            across += cost(function, i);
        }
    }
    l.words = (l.n_shared + 63) / 64;
    size_t words = (size_t)l.words * cfg->n_blocks;
    if (words > MOST_WORDS) {
        *out_registers = across;
        goto done;
    }
    l.in = clab_arena_array(&scratch, words + 1, sizeof *l.in);
    l.out = clab_arena_array(&scratch, words + 1, sizeof *l.out);
    l.read = clab_arena_array(&scratch, words + 1, sizeof *l.read);
    l.written = clab_arena_array(&scratch, words + 1, sizeof *l.written);
    if (!l.in || !l.out || !l.read || !l.written)
        goto memory;
    each_insn(&l, fill_sets);
    if (!solve(&l, &scratch))
        goto memory;
    for (uint32_t b = 0; b < cfg->n_blocks; b++) {
        uint32_t here = block_pressure(&l, b);
        *out_registers = here > *out_registers ? here : *out_registers;
    }
    goto done;
memory:
    status = clab_error_set(error, CLAB_NO_MEMORY, "out of memory for the liveness of '%s'", function->name);
done:
    clab_arena_free(&scratch);
    return status;
}
