/* Liveness of a function's registers: where each one is live, and from that a modelled register demand, the
   most 32-bit registers live at once. The demand is an estimate before any schedule, spill or
   rematerialisation; predicates are not counted (the hardware keeps them apart). A value of 8 or 16 bits
   takes a whole register, 64 bits two, 128 bits four.

   Every instruction i has two points: 2i, where it reads, and 2i + 1, where it writes. Each read and write is
   listed once, by register. Most registers live inside one block and are done with that list; the others take
   part in a backward data flow (Aho, Sethi, Ullman, 10.6), 64 of them at a time and only where one of them is
   live, so that the work follows what is live, not registers times blocks. A function that would need too
   many steps all the same has its remaining registers counted as live everywhere. */
#include <string.h>

#include "ptx/forms.h"
#include "ptx/ptx.h"

#define NONE UINT32_MAX

enum { MOST_LETTERS = 32 };

/* The role letters of the instruction's operands, in order; 0 past the last role. */
static void roles_of(const struct ptx_forms *forms, const struct ptx_insn *insn, char letters[MOST_LETTERS])
{
    const struct ptx_form *form = &forms->forms[insn->row];
    uint32_t required = 0, at = 0;
    for (unsigned i = 0; i < form->n_roles; i++) {
        const struct ptx_role *role = &form->roles[i];
        required += role->when ? ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)) : !role->optional;
    }
    uint32_t spare = insn->n_operands > required ? insn->n_operands - required : 0;
    for (unsigned i = 0; i < form->n_roles && at < MOST_LETTERS; i++) {
        const struct ptx_role *role = &form->roles[i];
        if (role->when && !ptx_has(insn, (enum ptx_mod)ptx_word_index(role->when)))
            continue;
        if (!role->when && role->optional) {
            if (!spare || (role->vector == PTX_ROLE_CLASS && insn->operands[at].kind != PTX_OPERAND_VECTOR))
                continue;
            spare--;
        }
        letters[at++] = role->letter;
    }
    while (at < MOST_LETTERS)
        letters[at++] = 0;
}

char ptx_operand_role(const struct ptx_insn *insn, uint32_t index)
{
    const struct ptx_forms *forms = ptx_forms_get();
    char letters[MOST_LETTERS];
    if (!forms || index >= insn->n_operands || index >= MOST_LETTERS)
        return 0;
    roles_of(forms, insn, letters);
    return letters[index];
}

static void visit_operand(const struct ptx_operand *operand, bool written,
                          void (*visit)(void *, uint32_t, bool), void *context)
{
    switch (operand->kind) {
    case PTX_OPERAND_REG:
        visit(context, operand->reg, written);
        break;
    case PTX_OPERAND_ADDRESS:
    case PTX_OPERAND_INDEXED:
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

static void insn_registers(const struct ptx_forms *forms, const struct ptx_insn *insn,
                           void (*visit)(void *, uint32_t, bool), void *context)
{
    char letters[MOST_LETTERS];
    if (insn->row == PTX_CALL) {
        memset(letters, 'r', sizeof letters);
        letters[0] = 'w';
    } else {
        roles_of(forms, insn, letters);
    }
    if (insn->has_guard)
        visit(context, insn->guard, false);
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (i >= MOST_LETTERS || letters[i] != 'w')
            visit_operand(&insn->operands[i], false, visit, context);
    for (uint32_t i = 0; i < insn->n_operands && i < MOST_LETTERS; i++)
        if (letters[i] == 'w' || letters[i] == 'x')
            visit_operand(&insn->operands[i], true, visit, context);
}

void ptx_insn_registers(const struct ptx_insn *insn, void (*visit)(void *, uint32_t, bool), void *context)
{
    const struct ptx_forms *forms = ptx_forms_get();
    if (forms)
        insn_registers(forms, insn, visit, context);
}

/* --- the list of reads and writes */

enum { EVENT_READ = 0, EVENT_WRITE = 1, EVENT_MAYBE = 2, EVENT_BITS = 2 }; /* MAYBE: a guarded write */

enum { BATCH = 64 };

struct liveness {
    const struct ptx_function *function;
    const struct ptx_cfg *cfg;
    struct ptx_span *spans; /* the result */
    /* Events in program order, then sorted by register. */
    uint32_t insn; /* being listed */
    bool guarded;
    uint32_t n_events;
    uint32_t *event_reg, *event, *sorted; /* insn << EVENT_BITS | kind */
    uint32_t *first;                      /* by register: its events are sorted[first[r]..first[r + 1]) */
    bool *free;                           /* by register: see is_free */
    int32_t *change, *spared; /* by point: registers more than before; those of them that are free */
    /* The data flow of one batch, by block; words are 0 between batches. */
    uint64_t *in, *out, *read, *killed, *touched;
    uint64_t *visited, *pending; /* a bit per block */
    uint64_t steps, most_steps;
};

static uint32_t count_operand(const struct ptx_operand *operand)
{
    uint32_t n = operand->kind == PTX_OPERAND_REG;
    for (uint32_t i = 0; i < operand->n_elements; i++)
        n += count_operand(&operand->elements[i]);
    return n;
}

static uint64_t most_events(const struct ptx_function *function)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < function->n_insns; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        n += insn->has_guard;
        for (uint32_t k = 0; k < insn->n_operands; k++)
            n += 2 * count_operand(&insn->operands[k]); /* what is read and written counts twice */
    }
    return n;
}

static void list_event(void *context, uint32_t reg, bool written)
{
    struct liveness *l = context;
    uint32_t kind = !written ? EVENT_READ : l->guarded ? EVENT_MAYBE : EVENT_WRITE;
    l->event_reg[l->n_events] = reg;
    l->event[l->n_events++] = l->insn << EVENT_BITS | kind;
}

static void list_events(struct liveness *l, const struct ptx_forms *forms)
{
    const struct ptx_function *function = l->function;
    for (l->insn = 0; l->insn < function->n_insns; l->insn++) {
        l->guarded = function->insns[l->insn].has_guard;
        insn_registers(forms, &function->insns[l->insn], list_event, l);
    }
    for (uint32_t i = 0; i < l->n_events; i++)
        l->first[l->event_reg[i] + 1]++;
    for (uint32_t r = 0; r < function->n_regs; r++)
        l->first[r + 1] += l->first[r];
    for (uint32_t i = 0; i < l->n_events; i++) /* each moves its register's start along … */
        l->sorted[l->first[l->event_reg[i]]++] = l->event[i];
    for (uint32_t r = function->n_regs; r > 0; r--) /* … to the next one's */
        l->first[r] = l->first[r - 1];
    l->first[0] = 0;
}

/* --- from events to spans and pressure */

/* What an instruction can read from the constant bank or spell as an immediate needs no register: the only
   value that a register is ever given is a parameter of the entry, a constant or an address, or one of those
   converted between generic and another space. */
static bool is_free(const struct liveness *l, uint32_t reg)
{
    const uint32_t *event = &l->sorted[l->first[reg]], *end = &l->sorted[l->first[reg + 1]];
    uint32_t writer = NONE;
    for (; event < end; event++) {
        if ((*event & ((1u << EVENT_BITS) - 1)) != EVENT_READ) {
            if (writer != NONE)
                return false;
            writer = *event >> EVENT_BITS;
        }
    }
    if (writer == NONE)
        return false;
    const struct ptx_insn *insn = &l->function->insns[writer];
    if (insn->has_guard || insn->n_operands != 2)
        return false;
    const struct ptx_operand *from = &insn->operands[1];
    switch (insn->row) {
    case PTX_LD:
        return l->function->entry && from->kind == PTX_OPERAND_ADDRESS &&
               from->elements[0].kind == PTX_OPERAND_SYMBOL && insn->n_spaces &&
               (insn->spaces[0] == PTX_SPACE_PARAM || insn->spaces[0] == PTX_SPACE_PARAM_ENTRY);
    case PTX_MOV:
        return from->kind == PTX_OPERAND_INT || from->kind == PTX_OPERAND_FLOAT ||
               from->kind == PTX_OPERAND_SYMBOL;
    case PTX_CVTA:
    case PTX_CVTA_TO:
        return from->kind == PTX_OPERAND_REG && l->free[from->reg];
    default:
        return false;
    }
}

static int32_t cost(const struct ptx_function *function, uint32_t reg)
{
    const struct ptx_type_info *type = &ptx_types[function->regs[reg].type];
    return type->class == PTX_CLASS_PRED ? 0 : type->bits <= 32 ? 1 : type->bits / 32;
}

static void live_at(struct liveness *l, uint32_t reg, uint32_t from, uint32_t to)
{
    struct ptx_span *span = &l->spans[reg];
    int32_t registers = cost(l->function, reg);
    l->change[from] += registers;
    l->change[to + 1] -= registers;
    if (l->free[reg]) {
        l->spared[from] += registers;
        l->spared[to + 1] -= registers;
    }
    span->first = from < span->first ? from : span->first;
    span->last = (to | 1) > span->last
                     ? to | 1
                     : span->last; /* what an instruction reads stays until it has written */
}

/* The stretches of one register inside one block, of which `events` (in order) are all its events. */
static void live_in_block(struct liveness *l, uint32_t reg, const struct ptx_block *block,
                          const uint32_t *events, uint32_t n, bool live)
{
    uint32_t end = 2 * (block->first + block->count) - 1;
    while (n-- > 0) {
        uint32_t insn = events[n] >> EVENT_BITS, kind = events[n] & ((1u << EVENT_BITS) - 1);
        if (kind == EVENT_READ) {
            end = live ? end : 2 * insn;
            live = true;
        } else if (!live) { /* a result that nobody reads still needs its register for a moment */
            live_at(l, reg, 2 * insn + 1, 2 * insn + 1);
        } else if (kind == EVENT_WRITE) {
            live_at(l, reg, 2 * insn + 1, end);
            live = false;
        }
    }
    if (live)
        live_at(l, reg, 2 * block->first, end);
}

/* How many of the events from `at` on lie in the block of the first of them. */
static uint32_t group_of(const struct liveness *l, uint32_t at, uint32_t end, uint32_t *out_block)
{
    const uint32_t b = l->cfg->block_of[l->sorted[at] >> EVENT_BITS], start = at;
    const struct ptx_block *block = &l->cfg->blocks[b];
    while (at < end && (l->sorted[at] >> EVENT_BITS) < block->first + block->count)
        at++;
    *out_block = b;
    return at - start;
}

/* Registers of one block only, which it writes before it reads them, are done at once. */
static bool is_local(const struct liveness *l, uint32_t reg, uint32_t *out_block)
{
    uint32_t at = l->first[reg], end = l->first[reg + 1];
    return (l->sorted[at] & ((1u << EVENT_BITS) - 1)) == EVENT_WRITE &&
           group_of(l, at, end, out_block) == end - at;
}

static void mark(uint64_t *set, uint32_t b)
{
    set[b / 64] |= UINT64_C(1) << (b % 64);
}

/* From the blocks in `pending` backwards to a fixed point: the last block first, since that is how far most
   of it has to go. */
static void flow(struct liveness *l)
{
    const uint32_t words = l->cfg->n_blocks / 64 + 1;
    for (bool again = true; again;) {
        again = false;
        l->steps += words / 8;
        for (uint32_t w = words; w-- > 0;) {
            while (l->pending[w]) {
                const uint32_t bit = 63 - (uint32_t)__builtin_clzll(l->pending[w]), b = w * 64 + bit;
                const struct ptx_block *block = &l->cfg->blocks[b];
                l->pending[w] &= ~(UINT64_C(1) << bit);
                l->steps += block->n_pred + 1;
                for (uint32_t p = 0; p < block->n_pred; p++) {
                    const uint32_t pred = block->pred[p];
                    const uint64_t out = l->out[pred] | l->in[b];
                    if (out == l->out[pred])
                        continue;
                    l->out[pred] = out;
                    mark(l->visited, pred);
                    const uint64_t in = l->read[pred] | (out & ~l->killed[pred]);
                    if (in != l->in[pred]) {
                        l->in[pred] = in;
                        mark(l->pending, pred);
                        again |= pred / 64 > w;
                    }
                }
            }
        }
    }
}

/* Registers of 32 bits that the members of a set take. */
static int32_t weight(uint64_t set, const uint64_t masks[5])
{
    int32_t registers = 0;
    for (unsigned c = 1; c <= 4; c++)
        if (set & masks[c])
            registers += (int32_t)c * __builtin_popcountll(set & masks[c]);
    return registers;
}

/* Where registers of the batch live that a block itself does not touch; then the words are 0 again. */
static void live_through(struct liveness *l, const uint32_t *regs, unsigned n)
{
    uint64_t masks[5] = {0}, free = 0, seen = 0; /* by cost */
    uint32_t last[BATCH] = {0};
    for (unsigned k = 0; k < n; k++)
        masks[cost(l->function, regs[k])] |= UINT64_C(1) << k;
    for (unsigned k = 0; k < n; k++)
        free |= (uint64_t)l->free[regs[k]] << k;
    for (uint32_t w = 0; w <= l->cfg->n_blocks / 64; w++) {
        for (uint64_t bits = l->visited[w]; bits; bits &= bits - 1) {
            uint32_t b = w * 64 + (uint32_t)__builtin_ctzll(bits);
            const struct ptx_block *block = &l->cfg->blocks[b];
            uint64_t through = l->out[b] & ~l->touched[b];
            int32_t registers = weight(through, masks);
            l->change[2 * block->first] += registers;
            l->change[2 * (block->first + block->count)] -= registers;
            if (through & free) {
                registers = weight(through & free, masks);
                l->spared[2 * block->first] += registers;
                l->spared[2 * (block->first + block->count)] -= registers;
            }
            for (uint64_t fresh = through & ~seen; fresh; fresh &= fresh - 1) {
                struct ptx_span *span = &l->spans[regs[__builtin_ctzll(fresh)]];
                span->first = 2 * block->first < span->first ? 2 * block->first : span->first;
            }
            seen |= through;
        }
    }
    seen = 0;
    for (uint32_t w = l->cfg->n_blocks / 64 + 1; w-- > 0;) {
        for (uint64_t bits = l->visited[w]; bits;) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(bits), b = w * 64 + bit;
            const struct ptx_block *block = &l->cfg->blocks[b];
            uint64_t through = l->out[b] & ~l->touched[b];
            for (uint64_t fresh = through & ~seen; fresh; fresh &= fresh - 1)
                last[__builtin_ctzll(fresh)] = 2 * (block->first + block->count) - 1;
            seen |= through;
            l->in[b] = l->out[b] = l->read[b] = l->killed[b] = l->touched[b] = 0;
            bits &= ~(UINT64_C(1) << bit);
        }
        l->visited[w] = 0;
    }
    for (unsigned k = 0; k < n; k++)
        if (last[k] > l->spans[regs[k]].last)
            l->spans[regs[k]].last = last[k];
}

static void batch_run(struct liveness *l, const uint32_t *regs, unsigned n)
{
    uint32_t b;
    for (unsigned k = 0; k < n; k++) {
        uint64_t bit = UINT64_C(1) << k;
        for (uint32_t at = l->first[regs[k]], end = l->first[regs[k] + 1], count; at < end; at += count) {
            count = group_of(l, at, end, &b);
            l->touched[b] |= bit;
            for (uint32_t i = at; i < at + count && !(l->killed[b] & bit); i++) {
                uint32_t kind = l->sorted[i] & ((1u << EVENT_BITS) - 1);
                l->read[b] |= kind == EVENT_READ ? bit : 0;
                l->killed[b] |= kind == EVENT_WRITE ? bit : 0;
            }
            l->in[b] |= l->read[b] & bit;
            mark(l->visited, b);
            if (l->read[b] & bit)
                mark(l->pending, b);
        }
    }
    flow(l);
    for (unsigned k = 0; k < n; k++) {
        for (uint32_t at = l->first[regs[k]], end = l->first[regs[k] + 1], count; at < end; at += count) {
            count = group_of(l, at, end, &b);
            live_in_block(l, regs[k], &l->cfg->blocks[b], &l->sorted[at], count, l->out[b] >> k & 1);
        }
    }
    live_through(l, regs, n);
}

static void all_registers(struct liveness *l)
{
    uint32_t batch[BATCH], b;
    unsigned n = 0;
    for (uint32_t r = 0; r < l->function->n_regs; r++) {
        uint32_t at = l->first[r], end = l->first[r + 1];
        if (at == end)
            continue;
        if (is_local(l, r, &b)) {
            live_in_block(l, r, &l->cfg->blocks[b], &l->sorted[at], end - at, false);
        } else if (l->steps > l->most_steps) {
            live_at(l, r, 0, 2 * l->function->n_insns - 1);
        } else {
            batch[n++] = r;
        }
        if (n == BATCH) {
            batch_run(l, batch, n);
            n = 0;
        }
    }
    if (n)
        batch_run(l, batch, n);
}

static bool tables_init(struct liveness *l, struct clab_arena *scratch)
{
    const size_t regs = (size_t)l->function->n_regs + 1, blocks = (size_t)l->cfg->n_blocks + 1;
    const uint64_t events = most_events(l->function) + 1;
    if (events >= UINT32_MAX >> EVENT_BITS)
        return false;
    l->event_reg = clab_arena_array(scratch, events, sizeof *l->event_reg);
    l->event = clab_arena_array(scratch, events, sizeof *l->event);
    l->sorted = clab_arena_array(scratch, events, sizeof *l->sorted);
    l->first = clab_arena_array(scratch, regs + 1, sizeof *l->first);
    l->free = clab_arena_array(scratch, regs, sizeof *l->free);
    l->spared = clab_arena_array(scratch, 2 * ((size_t)l->function->n_insns + 1), sizeof *l->spared);
    l->change = clab_arena_array(scratch, 2 * ((size_t)l->function->n_insns + 1), sizeof *l->change);
    uint64_t **words[] = {&l->in, &l->out, &l->read, &l->killed, &l->touched, &l->visited, &l->pending};
    bool good = l->event_reg && l->event && l->sorted && l->first && l->free && l->spared && l->change;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        good = (*words[i] = clab_arena_array(scratch, blocks, sizeof **words[i])) && good;
    return good;
}

/* What ptxas gives a function whose values need `live` registers at once. A stack pointer comes to them, and
   while there are few it spends some more on reading ahead; counts are even, and 4 at least. Against ptxas
   13.0.88 -v for sm_90 on 57 kernels from CUDA C++, ptx/ and tools/bench_emulator/: 77 % within a quarter,
   2 registers off in the median, 5.5 in the mean; with the small and odd kernels of tests/, 154 in all, 56 %,
   2 and 5.1 (2026-11-30). */
static uint32_t demand_of(uint32_t live)
{
    uint32_t roomy = live + (live + 4 < 8 ? live + 4 : 8), tight = live + 1;
    roomy = roomy > 32 ? 32 : roomy;
    return ((roomy > tight ? roomy : tight) + 1) / 2 * 2;
}

clab_status ptx_live_build(const struct ptx_function *function, const struct ptx_cfg *cfg,
                           struct clab_arena *arena, struct ptx_live *out_live, struct clab_error *error)
{
    const struct ptx_forms *forms = ptx_forms_get();
    struct clab_arena scratch = {.limit_bytes = arena->limit_bytes};
    struct liveness l = {
        .function = function, .cfg = cfg, .most_steps = 1000000 + 32 * (uint64_t)function->n_insns};
    *out_live = (struct ptx_live){0};
    l.spans = clab_arena_array(arena, (size_t)function->n_regs + 1, sizeof *l.spans);
    if (!forms || !l.spans || !tables_init(&l, &scratch)) {
        clab_arena_free(&scratch);
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for the liveness of '%s'",
                              function->name);
    }
    for (uint32_t r = 0; r < function->n_regs; r++)
        l.spans[r] = (struct ptx_span){.first = NONE};
    list_events(&l, forms);
    for (uint32_t r = 0; r < function->n_regs; r++)
        l.free[r] = l.first[r] < l.first[r + 1] && is_free(&l, r);
    all_registers(&l);
    int32_t live = 0, most = 0, needed = 0, most_needed = 0;
    for (uint32_t point = 0; point < 2 * function->n_insns; point++) {
        live += l.change[point];
        needed += l.change[point] - l.spared[point];
        most = live > most ? live : most;
        most_needed = needed > most_needed ? needed : most_needed;
    }
    out_live->spans = l.spans;
    out_live->registers = (uint32_t)most;
    out_live->demand = demand_of((uint32_t)most_needed);
    clab_arena_free(&scratch);
    return CLAB_OK;
}

clab_status ptx_live_estimate(const struct ptx_function *function, const struct ptx_cfg *cfg,
                              struct clab_arena *arena, uint32_t *out_registers, struct clab_error *error)
{
    struct ptx_live live;
    const clab_status status = ptx_live_build(function, cfg, arena, &live, error);
    *out_registers = live.registers;
    return status;
}
