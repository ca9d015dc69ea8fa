/* Which generic accesses go through a pointer that is known to lie in shared memory of the cluster: a forward
   data flow over the blocks. A register is marked by what makes such a pointer, stays marked through moves
   and additions, and is cleared when it is written otherwise; where paths meet, a mark on one of them is
   enough.

   PTX: mapa without .shared::cluster, and cvta.shared. SASS: PRMT with 0x654 (mapa), which makes the low
   word. */
#include <string.h>

#include "inspect/listing.h"

struct flow {
    struct clab_listing *listing;
    uint32_t n_registers;
    uint8_t *in;    /* [block][register] */
    uint8_t *state; /* of the block being followed */
    bool changed;
};

#define FLOW_LIMIT     ((size_t)1 << 28) /* marks; a kernel that needs more is left unmarked */
#define SASS_REGISTERS 512               /* R0 to R255, then UR0 to UR255 */

/* Number of a SASS register name, or UINT32_MAX. */
static uint32_t sass_register(const char *text, size_t bytes)
{
    const bool uniform = bytes > 2 && text[0] == 'U' && text[1] == 'R';
    const size_t skip = uniform ? 2 : 1;
    uint32_t number = 0;
    if (bytes <= skip || (!uniform && text[0] != 'R'))
        return UINT32_MAX;
    for (size_t i = skip; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9' || number > 255)
            return UINT32_MAX;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number > 255 ? UINT32_MAX : number + (uniform ? 256 : 0);
}

/* Whether a SASS operand list, from operand `first` on, reads a marked register; inside brackets only with
   `address`. */
static bool reads_marked(const struct flow *flow, const char *operands, uint32_t first, bool address)
{
    const char *start, *at;
    size_t bytes;
    for (uint32_t k = first; clab_operand(operands, k, &start, &bytes); k++) {
        bool is_name, inside = false, description = false;
        for (at = start; at < start + bytes;) {
            const size_t token = clab_token(at, &is_name);
            if (*at == '[')
                inside = !description;
            description = is_name && token == 4 && memcmp(at, "desc", 4) == 0;
            if (*at == ']')
                inside = false;
            const uint32_t reg = is_name ? sass_register(at, token) : UINT32_MAX;
            if (reg != UINT32_MAX && flow->state[reg] && (inside || !address))
                return true;
            at += token;
        }
    }
    return false;
}

static void step_sass(struct flow *flow, struct clab_code_insn *insn)
{
    static const char *const carriers[] = {"MOV*",   "IMAD.MOV*",  "IADD*", "VIADD*", "LEA*",  "UMOV*",
                                           "UIADD*", "IMAD.IADD*", "SEL*",  "R2UR*",  "ULEA*", "IMAD.U32*"};
    if (insn->is_generic)
        insn->is_mapped = reads_marked(flow, insn->operands, 0, true);
    const char *start;
    size_t bytes;
    if (insn->n_written == 0 || !clab_operand(insn->operands, 0, &start, &bytes))
        return;
    const uint32_t reg = sass_register(start, bytes);
    if (reg == UINT32_MAX)
        return;
    bool marked = insn->group == CLAB_GROUP_ADDRESS;
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers && !marked; i++)
        marked = clab_glob(carriers[i], insn->opcode) &&
                 reads_marked(flow, insn->operands, insn->n_written, false);
    flow->state[reg] = marked || (insn->guard[0] != '\0' && flow->state[reg]);
}

struct ptx_visit {
    struct flow *flow;
    bool reads_marked, writes, mark;
};

static void visit_ptx(void *context, uint32_t reg, bool written)
{
    struct ptx_visit *visit = context;
    if (written == visit->writes && !written)
        visit->reads_marked = visit->reads_marked || visit->flow->state[reg];
    if (written && visit->writes)
        visit->flow->state[reg] = visit->mark;
}

static bool makes_pointer(const struct ptx_insn *insn)
{
    const char *section = ptx_rows[insn->row].section;
    if (strcmp(section, "mapa") == 0)
        return insn->n_spaces == 0;
    return strcmp(section, "cvta") == 0 && !ptx_has(insn, PTX_MOD_TO) && insn->n_spaces > 0 &&
           strncmp(ptx_space_text[insn->spaces[0]], "shared", 6) == 0;
}

static bool carries_ptx(const struct clab_code_insn *insn)
{
    static const char *const sections[] = {"mov", "add", "sub", "mad", "selp", "cvt", "or"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(ptx_rows[insn->ptx->row].section, sections[i]) == 0)
            return true;
    return false;
}

static bool is_address_marked(const struct flow *flow, const struct ptx_insn *insn)
{
    for (uint32_t k = 0; k < insn->n_operands; k++) {
        const struct ptx_operand *operand = &insn->operands[k];
        if (operand->kind == PTX_OPERAND_ADDRESS && operand->n_elements > 0 &&
            operand->elements[0].kind == PTX_OPERAND_REG && flow->state[operand->elements[0].reg])
            return true;
    }
    return false;
}

static void step_ptx(struct flow *flow, struct clab_code_insn *insn)
{
    if (insn->is_generic)
        insn->is_mapped = is_address_marked(flow, insn->ptx);
    struct ptx_visit visit = {.flow = flow};
    ptx_insn_registers(insn->ptx, visit_ptx, &visit);
    visit.mark = makes_pointer(insn->ptx) || (carries_ptx(insn) && visit.reads_marked);
    visit.writes = true;
    if (insn->guard[0] == '\0' || visit.mark)
        ptx_insn_registers(insn->ptx, visit_ptx, &visit);
}

static void follow(struct flow *flow, uint32_t b)
{
    struct clab_listing *listing = flow->listing;
    const struct clab_code_block *block = &listing->blocks[b];
    memcpy(flow->state, flow->in + (size_t)b * flow->n_registers, flow->n_registers);
    for (uint32_t i = block->first; i < block->first + block->count; i++) {
        if (listing->level == CLAB_LEVEL_PTX)
            step_ptx(flow, &listing->insns[i]);
        else
            step_sass(flow, &listing->insns[i]);
    }
    for (uint32_t s = 0; s < block->n_succ; s++) {
        uint8_t *in = flow->in + (size_t)block->succ[s] * flow->n_registers;
        for (uint32_t r = 0; r < flow->n_registers; r++)
            if (flow->state[r] && !in[r])
                in[r] = 1, flow->changed = true;
    }
}

clab_status clab_listing_find_mapped(struct clab_listing *listing, struct clab_error *error)
{
    bool any = false;
    for (uint32_t i = 0; i < listing->n_insns && !any; i++)
        any = listing->insns[i].is_generic;
    if (!any)
        return CLAB_OK;
    struct flow flow = {.listing = listing};
    struct clab_arena arena = {0};
    flow.n_registers = listing->level == CLAB_LEVEL_PTX ? listing->function->n_regs + 1 : SASS_REGISTERS;
    if (((size_t)listing->n_blocks + 1) * flow.n_registers > FLOW_LIMIT)
        return CLAB_OK;
    flow.in = clab_arena_array(&arena, (size_t)listing->n_blocks + 1, flow.n_registers);
    flow.state = clab_arena_alloc(&arena, flow.n_registers);
    if (flow.in == NULL || flow.state == NULL) {
        clab_arena_free(&arena);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to follow the pointers of '%s'",
                              listing->entry);
    }
    do {
        flow.changed = false;
        for (uint32_t b = 0; b < listing->n_blocks; b++)
            follow(&flow, b);
    } while (flow.changed);
    clab_arena_free(&arena);
    for (uint32_t i = 0; i < listing->n_insns; i++) {
        struct clab_code_insn *insn = &listing->insns[i];
        if (insn->is_mapped)
            insn->what = clab_arena_printf(&listing->arena, "%s; could be .shared::cluster", insn->what);
        if (insn->what == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the listing of '%s'", listing->entry);
    }
    return CLAB_OK;
}
