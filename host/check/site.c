/* What the checker needs to know of an instruction (site.h). PTX ISA 9.0, "Memory Consistency Model":
   strength, semantics and scopes; defaults in the sections of the instructions. */
#include "check/site.h"

#include <stdlib.h>
#include <string.h>

#include "check/state.h"

const struct ptx_insn *site_insn(const struct site *site)
{
    return site->code && site->insn < site->code->function->n_insns ? &site->code->function->insns[site->insn]
                                                                    : NULL;
}

static uint8_t scope_of(const struct ptx_insn *insn, uint8_t by_default, bool *out_has)
{
    *out_has = true;
    if (ptx_has(insn, PTX_MOD_CTA)) {
        return SCOPE_CTA;
    }
    if (ptx_has(insn, PTX_MOD_CLUSTER)) {
        return SCOPE_CLUSTER;
    }
    if (ptx_has(insn, PTX_MOD_GPU) || ptx_has(insn, PTX_MOD_SYS) || ptx_has(insn, PTX_MOD_GL)) {
        return SCOPE_GPU;
    }
    *out_has = false;
    return by_default;
}

static void memory(struct site *site, const struct ptx_insn *insn)
{
    site->is_volatile = ptx_has(insn, PTX_MOD_VOLATILE) || ptx_has(insn, PTX_MOD_MMIO);
    site->acquire = ptx_has(insn, PTX_MOD_ACQUIRE) || ptx_has(insn, PTX_MOD_ACQ_REL);
    site->release = ptx_has(insn, PTX_MOD_RELEASE) || ptx_has(insn, PTX_MOD_ACQ_REL);
    site->strong =
        site->atomic || site->is_volatile || site->acquire || site->release || ptx_has(insn, PTX_MOD_RELAXED);
    site->scope = scope_of(insn, SCOPE_GPU, &site->has_scope);
    site->bytes = insn->n_types ? (uint8_t)emu_lane_bytes((enum ptx_type)insn->types[insn->n_types - 1]) : 0;
}

/* Registers that hold something made from a loaded value. */
struct made {
    unsigned char *of;
    bool reads;  /* pass 1 over an instruction: does it read one? */
    bool writes; /* pass 2: what it writes is another */
    bool more;
};

static void made_visit(void *context, uint32_t reg, bool written)
{
    struct made *made = context;
    if (!written) {
        made->reads |= made->of[reg];
    } else if (made->writes && !made->of[reg]) {
        made->of[reg] = made->more = true;
    }
}

/* Does a loop around the load branch on what it loads, as one that waits for a flag does? */
static bool polls(const struct site *site)
{
    const struct ptx_function *function = site->code->function;
    const struct ptx_insn *load = site_insn(site);
    bool looped = false, branches = false;
    for (uint32_t i = site->insn; i < function->n_insns; i++) {
        const struct ptx_insn *insn = &function->insns[i];
        looped |= insn->row == PTX_BRA && insn->n_operands && insn->operands[0].kind == PTX_OPERAND_LABEL &&
                  insn->operands[0].target <= site->insn;
    }
    if (!looped) {
        return false;
    }
    struct made made = {.of = check_alloc(function->n_regs), .writes = true, .more = true};
    ptx_insn_registers(load, made_visit, &made);
    while (made.more && !branches) {
        made.more = false;
        for (uint32_t i = 0; i < function->n_insns; i++) {
            const struct ptx_insn *insn = &function->insns[i];
            made.reads = made.writes = false;
            ptx_insn_registers(insn, made_visit, &made);
            branches |= made.reads && insn->row == PTX_BRA;
            made.writes = made.reads;
            ptx_insn_registers(insn, made_visit, &made);
        }
    }
    free(made.of);
    return branches;
}

static void fill(struct site *site)
{
    const struct ptx_insn *insn = site_insn(site);
    site->action = "";
    if (!insn) {
        return;
    }
    site->remote = insn->n_spaces > 0 && insn->spaces[0] == PTX_SPACE_SHARED_CLUSTER;
    site->aligned = ptx_has(insn, PTX_MOD_ALIGNED);
    switch (insn->row) {
    case PTX_LD:
    case PTX_LD_CACHED:
    case PTX_LD_VOLATILE:
    case PTX_LD_VOLATILE_PREFETCH:
    case PTX_LD_ORDERED:
    case PTX_LD_ORDERED_CACHED:
    case PTX_LD_MMIO:
    case PTX_LD_NC:
    case PTX_LDU:
    case PTX_LDMATRIX_M8N8:
        site->load = true;
        site->action = "load";
        site->read_only = insn->row == PTX_LD_NC;
        memory(site, insn);
        site->polls = site->is_volatile && polls(site);
        break;
    case PTX_ST:
    case PTX_ST_CACHED:
    case PTX_ST_VOLATILE:
    case PTX_ST_ORDERED:
    case PTX_ST_ORDERED_CACHED:
    case PTX_ST_MMIO:
    case PTX_STMATRIX_M8N8:
    case PTX_ST_BULK:
        site->store = true;
        site->action = "store";
        memory(site, insn);
        break;
    case PTX_ST_ASYNC_RELEASE:
    case PTX_RED_ASYNC_RELEASE:
        site->store = insn->row == PTX_ST_ASYNC_RELEASE;
        site->atomic = !site->store;
        site->action = site->store ? "store" : "atomic";
        memory(site, insn);
        break;
    case PTX_MEMBAR:
    case PTX_FENCE:
        site->action = "fence";
        site->scope = scope_of(insn, SCOPE_GPU, &site->has_scope);
        site->fence_acquire = !ptx_has(insn, PTX_MOD_RELEASE);
        site->fence_release = !ptx_has(insn, PTX_MOD_ACQUIRE);
        break;
    case PTX_FENCE_SYNC_RESTRICT_ACQUIRE:
    case PTX_FENCE_SYNC_RESTRICT_RELEASE:
        site->action = "fence";
        site->scope = SCOPE_CLUSTER;
        site->fence_acquire = insn->row == PTX_FENCE_SYNC_RESTRICT_ACQUIRE;
        site->fence_release = !site->fence_acquire;
        break;
    case PTX_FENCE_MBARRIER_INIT:
        site->action = "fence";
        site->mbarrier_init = true;
        break;
    case PTX_FENCE_PROXY_ASYNC:
    case PTX_FENCE_PROXY_ASYNC_ACQUIRE:
    case PTX_FENCE_PROXY_ASYNC_RELEASE:
        site->action = "proxy fence";
        /* The acquiring half lets the async proxy in; what others did must come through their releasing half.
         */
        site->proxy_async = insn->row != PTX_FENCE_PROXY_ASYNC_ACQUIRE;
        /* The one-way forms also make fences of relaxed waits and arrives. */
        site->scope = SCOPE_CLUSTER;
        site->fence_acquire = insn->row == PTX_FENCE_PROXY_ASYNC_ACQUIRE;
        site->fence_release = insn->row == PTX_FENCE_PROXY_ASYNC_RELEASE;
        site->proxy_shared = insn->n_spaces == 0 || insn->spaces[0] != PTX_SPACE_GLOBAL;
        site->proxy_global = insn->n_spaces == 0 || insn->spaces[0] == PTX_SPACE_GLOBAL;
        break;
    case PTX_FENCE_PROXY_TENSORMAP_ACQUIRE:
    case PTX_FENCE_PROXY_TENSORMAP_RELEASE:
        site->action = "proxy fence";
        site->map_acquire = insn->row == PTX_FENCE_PROXY_TENSORMAP_ACQUIRE;
        site->map_release = !site->map_acquire;
        break;
    case PTX_BAR_SYNC:
    case PTX_BAR_ARRIVE:
    case PTX_BAR_RED:
    case PTX_BAR_RED_POPC:
        site->aligned = true; /* bar is barrier with .aligned */
        site->action = "barrier";
        break;
    case PTX_BARRIER_SYNC:
    case PTX_BARRIER_ARRIVE:
    case PTX_BARRIER_RED:
    case PTX_BARRIER_RED_POPC:
        site->action = "barrier";
        break;
    case PTX_BARRIER_CLUSTER_ARRIVE:
        site->action = "cluster barrier arrive";
        site->release = !ptx_has(insn, PTX_MOD_RELAXED);
        break;
    case PTX_BARRIER_CLUSTER_WAIT:
        site->action = "cluster barrier wait";
        site->acquire = true;
        break;
    case PTX_MBARRIER_ARRIVE:
    case PTX_MBARRIER_ARRIVE_REMOTE:
    case PTX_MBARRIER_ARRIVE_EXPECT_TX:
    case PTX_MBARRIER_ARRIVE_EXPECT_TX_REMOTE:
    case PTX_MBARRIER_ARRIVE_NOCOMPLETE:
    case PTX_MBARRIER_ARRIVE_DROP:
    case PTX_MBARRIER_ARRIVE_DROP_REMOTE:
    case PTX_MBARRIER_ARRIVE_DROP_EXPECT_TX:
    case PTX_MBARRIER_ARRIVE_DROP_EXPECT_TX_REMOTE:
    case PTX_MBARRIER_ARRIVE_DROP_NOCOMPLETE:
        site->action = "mbarrier arrive";
        site->release = !ptx_has(insn, PTX_MOD_RELAXED);
        site->scope = scope_of(insn, SCOPE_CTA, &site->has_scope);
        break;
    case PTX_MBARRIER_TEST_WAIT:
    case PTX_MBARRIER_TEST_WAIT_PARITY:
    case PTX_MBARRIER_TRY_WAIT:
    case PTX_MBARRIER_TRY_WAIT_PARITY:
        site->action = "mbarrier wait";
        site->acquire = !ptx_has(insn, PTX_MOD_RELAXED);
        site->scope = scope_of(insn, SCOPE_CTA, &site->has_scope);
        break;
    case PTX_MBARRIER_INIT:
        site->action = "mbarrier init";
        break;
    case PTX_MBARRIER_INVAL:
        site->action = "mbarrier inval";
        break;
    case PTX_MBARRIER_EXPECT_TX:
        site->action = "mbarrier expect_tx";
        break;
    case PTX_MBARRIER_COMPLETE_TX:
        site->action = "mbarrier complete_tx";
        break;
    case PTX_CP_ASYNC_CA:
    case PTX_CP_ASYNC_CA_IGNORE:
    case PTX_CP_ASYNC_CG:
    case PTX_CP_ASYNC_CG_IGNORE:
        site->action = "cp.async";
        site->cp_async = true;
        break;
    case PTX_CP_ASYNC_BULK_COMMIT:
        site->bulk = true;
        break;
    case PTX_CP_ASYNC_BULK_WAIT:
        site->bulk = true;
        site->read = ptx_has(insn, PTX_MOD_READ);
        break;
    case PTX_CLC_TRY_CANCEL:
    case PTX_CLC_TRY_CANCEL_MULTICAST:
        site->action = "try_cancel";
        break;
    case PTX_CLC_IS_CANCELED:
    case PTX_CLC_FIRST_CTAID:
    case PTX_CLC_FIRST_CTAID_V4:
        site->action = "query_cancel";
        break;
    default: {
        const char *syntax = ptx_rows[insn->row].syntax, *class = ptx_rows[insn->row].class;
        if (class[0] == 'A' && class[1] == 'T') { /* ATOMIC: atom, red */
            site->atomic = true;
            site->action = "atomic";
            memory(site, insn);
            /* red returns nothing, so that it never acquires. */
            site->load = syntax[0] == 'a';
            site->acquire = site->acquire && site->load;
        } else if (class[0] == 'A' && class[1] == 'S') { /* ASYNC */
            site->action = "copy";
            site->tensor = strstr(syntax, "bulk.tensor") != NULL;
            site->strong = ptx_has(insn, PTX_MOD_REDUCE) || syntax[0] == 'r'; /* cp.reduce, red.async */
            site->scope = SCOPE_GPU;
        } else if (strcmp(class, "TEXTURE") == 0) { /* tex, tld4 */
            site->load = site->read_only = true;
            site->action = "texture fetch";
        } else if (strcmp(class, "SURFACE") == 0) { /* suld, sust, sured */
            site->load = site->read_only = strncmp(syntax, "suld", 4) == 0;
            site->store = strncmp(syntax, "sust", 4) == 0;
            site->atomic = site->strong = strncmp(syntax, "sured", 5) == 0;
            site->scope = SCOPE_GPU;
            site->action = site->load ? "surface load" : site->store ? "surface store" : "surface reduction";
        } else if (class[0] == 'W') {
            site->action = "warp operation";
        }
        break;
    }
    }
}

uint32_t site_make(struct sites *sites, const struct emu_code *code, uint32_t insn)
{
    if (code->index >= sites->n_codes) {
        const uint32_t n = code->index + 1;
        sites->numbers = check_grow(sites->numbers, n * sizeof *sites->numbers);
        for (uint32_t i = sites->n_codes; i < n; i++) {
            sites->numbers[i] = NULL;
        }
        sites->n_codes = n;
    }
    uint16_t **numbers = &sites->numbers[code->index];
    if (!*numbers) {
        *numbers = check_alloc((code->function->n_insns + 1) * sizeof **numbers);
    }
    sites->last_code = code;
    sites->last_numbers = *numbers;
    insn = insn < code->function->n_insns ? insn : code->function->n_insns;
    if ((*numbers)[insn]) {
        return (*numbers)[insn];
    }
    if (sites->n == 0) {
        sites->n = 1;
    }
    if (sites->n >= SITE_LIMIT) {
        return SITE_LIMIT - 1;
    }
    if (sites->n >= sites->capacity) {
        sites->capacity = sites->capacity ? 2 * sites->capacity : 64;
        sites->list = check_grow(sites->list, sites->capacity * sizeof *sites->list);
    }
    sites->list[sites->n] = (struct site){.code = code, .insn = insn};
    fill(&sites->list[sites->n]);
    (*numbers)[insn] = (uint16_t)sites->n;
    return sites->n++;
}

void sites_free(struct sites *sites)
{
    for (uint32_t i = 0; i < sites->n_codes; i++) {
        free(sites->numbers[i]);
    }
    free(sites->numbers);
    free(sites->list);
    *sites = (struct sites){0};
}
