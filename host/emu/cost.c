/* Modelled cost of code (cost.h): latencies by kind of instruction from cost.def, and an in-order scoreboard
   over each block, as the compiler's control codes have it for the hardware. */
#include "emu/cost.h"

#include <string.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_one_of(const char *syntax, const char *const *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (begins(syntax, heads[i]))
            return true;
    return false;
}

#define IS_ONE_OF(syntax, ...)                            \
    is_one_of(syntax, (const char *const[]){__VA_ARGS__}, \
              sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))

static bool is_f64(const struct ptx_insn *insn)
{
    return insn->n_types > 0 && insn->types[0] == PTX_F64;
}

static bool is_float(const struct ptx_insn *insn)
{
    return insn->n_types > 0 && ptx_types[insn->types[0]].class == PTX_CLASS_FLOAT;
}

static uint32_t load_latency(const struct ptx_insn *insn)
{
    switch (insn->n_spaces > 0 ? (enum ptx_space)insn->spaces[0] : PTX_SPACE_COUNT) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CTA:
        return EMU_COST_SHARED;
    case PTX_SPACE_SHARED_CLUSTER:
        return EMU_COST_REMOTE;
    case PTX_SPACE_GLOBAL:
        return ptx_has(insn, PTX_MOD_CS) ? EMU_COST_STREAM : EMU_COST_GLOBAL;
    case PTX_SPACE_PARAM:
        return EMU_COST_ALU; /* of a kernel: constants */
    case PTX_SPACE_COUNT:
        return EMU_COST_GLOBAL; /* generic: mostly that */
    default:
        return EMU_COST_LOCAL;
    }
}

static uint32_t atomic_latency(const struct ptx_insn *insn, const char *syntax)
{
    const bool near = insn->n_spaces > 0 &&
                      (insn->spaces[0] == PTX_SPACE_SHARED || insn->spaces[0] == PTX_SPACE_SHARED_CTA);
    const bool remote = insn->n_spaces > 0 && insn->spaces[0] == PTX_SPACE_SHARED_CLUSTER;
    if (begins(syntax, "red"))
        return EMU_COST_STORE;
    return near ? EMU_COST_SHARED_ATOMIC : remote ? EMU_COST_REMOTE : EMU_COST_GLOBAL_ATOMIC;
}

static uint32_t barrier_latency(const char *syntax)
{
    if (begins(syntax, "barrier.cluster"))
        return strstr(syntax, "arrive") != NULL ? EMU_COST_STORE : EMU_COST_CLUSTER_BARRIER;
    return begins(syntax, "mbarrier") ? EMU_COST_MBARRIER : EMU_COST_BARRIER;
}

static uint32_t arithmetic_latency(const struct ptx_insn *insn, const char *syntax)
{
    if (IS_ONE_OF(syntax, "div", "rem", "sqrt"))
        return is_float(insn) ? EMU_COST_DIVIDE_FLOAT : EMU_COST_DIVIDE_INT;
    if (IS_ONE_OF(syntax, "ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "tanh", "popc", "clz", "bfind"))
        return EMU_COST_APPROX;
    if (IS_ONE_OF(syntax, "mul.{", "mad.{") && ptx_types[insn->types[0]].bits == 64 && !is_float(insn))
        return EMU_COST_WIDE;
    return is_f64(insn) ? EMU_COST_F64 : EMU_COST_ALU;
}

/* From issue to the arrival of what the instruction writes. */
static uint32_t latency(const struct ptx_insn *insn)
{
    const char *syntax = ptx_rows[insn->row].syntax, *class = ptx_rows[insn->row].class;
    if (strcmp(class, "MEMORY") == 0)
        return begins(syntax, "ld") ? load_latency(insn) : EMU_COST_STORE;
    if (strcmp(class, "ATOMIC") == 0)
        return atomic_latency(insn, syntax);
    if (strcmp(class, "BARRIER") == 0)
        return barrier_latency(syntax);
    if (strcmp(class, "WARP") == 0)
        return begins(syntax, "redux") ? EMU_COST_REDUX : EMU_COST_WARP;
    if (strcmp(class, "FENCE") == 0)
        return ptx_has(insn, PTX_MOD_CTA) || begins(syntax, "fence.proxy") || begins(syntax, "fence.mbarrier")
                   ? EMU_COST_FENCE_NEAR
                   : EMU_COST_FENCE;
    return arithmetic_latency(insn, syntax);
}

/* Instructions that the warp does not go past before they are done, whether or not anything reads their
 * result. */
static bool holds(const struct ptx_insn *insn)
{
    const char *class = ptx_rows[insn->row].class;
    return strcmp(class, "BARRIER") == 0 || strcmp(class, "FENCE") == 0;
}

struct scoreboard {
    uint64_t *arrives; /* by register */
    uint64_t issue, arrival, last;
    bool *is_read; /* by register: anywhere */
};

static void note_read(void *context, uint32_t reg, bool written)
{
    struct scoreboard *board = context;
    board->is_read[reg] |= !written;
}

static void read_one(void *context, uint32_t reg, bool written)
{
    struct scoreboard *board = context;
    if (!written && board->arrives[reg] > board->issue)
        board->issue = board->arrives[reg];
}

static void write_one(void *context, uint32_t reg, bool written)
{
    struct scoreboard *board = context;
    if (!written)
        return;
    board->arrives[reg] = board->arrival;
    if (board->is_read[reg] && board->arrival > board->last)
        board->last = board->arrival;
}

uint32_t *emu_cost_schedule(const struct ptx_function *function, const struct ptx_cfg *cfg,
                            struct clab_arena *arena, struct clab_arena *scratch)
{
    uint32_t *before = clab_arena_array(arena, function->n_insns + 1, sizeof *before);
    struct scoreboard board = {
        .arrives = clab_arena_array(scratch, function->n_regs + 1, sizeof *board.arrives),
        .is_read = clab_arena_array(scratch, function->n_regs + 1, sizeof *board.is_read)};
    if (before == NULL || board.arrives == NULL || board.is_read == NULL)
        return NULL;
    for (uint32_t i = 0; i < function->n_insns; i++)
        ptx_insn_registers(&function->insns[i], note_read, &board);
    uint64_t now = 0;
    for (uint32_t b = 0; b < cfg->n_blocks; b++) {
        const struct ptx_block *block = &cfg->blocks[b];
        board.last = now;
        for (uint32_t i = block->first; i < block->first + block->count; i++) {
            const struct ptx_insn *insn = &function->insns[i];
            before[i] = (uint32_t)now;
            board.issue = now;
            ptx_insn_registers(insn, read_one, &board);
            board.arrival = board.issue + latency(insn);
            ptx_insn_registers(insn, write_one, &board);
            now = holds(insn) ? board.arrival : board.issue + EMU_COST_ISSUE;
        }
        const bool branches =
            block->count > 0 && function->insns[block->first + block->count - 1].row == PTX_BRA;
        now = (board.last > now ? board.last : now) + (branches ? EMU_COST_BRANCH : 0);
        /* The branch's own cost counts whether or not it is taken, as that of its block. */
        before[block->first + block->count] = (uint32_t)now;
    }
    before[function->n_insns] = (uint32_t)now;
    return before;
}
