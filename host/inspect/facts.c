/* The facts of notes.def. Each is a function of a listing and of the kernel's resources. "Since", "after" and
   "between" go by the order of the text, which is a kernel's order but for loops. */
#include "inspect/facts.h"

#include <string.h>

void clab_hit(struct clab_hits *hits, uint32_t insn)
{
    uint32_t *grown =
        clab_arena_grow(hits->arena, hits->insns, hits->count, &hits->capacity, sizeof *hits->insns);
    if (grown == NULL) {
        hits->failed = true;
        return;
    }
    hits->insns = grown;
    hits->insns[hits->count++] = insn;
}

#define FACT(name)                                                                               \
    static bool name(const struct clab_listing *listing, const struct clab_resources *resources, \
                     struct clab_hits *hits)
#define EACH(i) (uint32_t i = 0; i < listing->n_insns; i++)

static bool is_section(const struct clab_code_insn *insn, const char *section)
{
    return insn->ptx != NULL && strcmp(ptx_rows[insn->ptx->row].section, section) == 0;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool has_space(const struct clab_code_insn *insn, enum ptx_space space)
{
    for (unsigned i = 0; insn->ptx != NULL && i < insn->ptx->n_spaces; i++)
        if (insn->ptx->spaces[i] == space)
            return true;
    return false;
}

static bool is_arrive(const struct clab_code_insn *insn)
{
    return insn->group == CLAB_GROUP_CLUSTER && strstr(insn->opcode, ".arrive") != NULL;
}

static bool is_wait(const struct clab_code_insn *insn)
{
    return insn->group == CLAB_GROUP_CLUSTER && strstr(insn->opcode, ".wait") != NULL;
}

static bool is_store(const struct clab_code_insn *insn)
{
    return insn->ptx != NULL && insn->ptx->n_operands > 0 && ptx_operand_role(insn->ptx, 0) == 'a';
}

/* Touches another CTA's shared memory, by its own words or through a mapped pointer. */
static bool is_remote(const struct clab_code_insn *insn)
{
    return insn->is_mapped || insn->group == CLAB_GROUP_REMOTE ||
           (insn->group == CLAB_GROUP_ATOMIC && has_space(insn, PTX_SPACE_SHARED_CLUSTER)) ||
           ((insn->group == CLAB_GROUP_ASYNC || insn->group == CLAB_GROUP_MBARRIER ||
             insn->group == CLAB_GROUP_BULK || insn->group == CLAB_GROUP_TENSOR) &&
            has_space(insn, PTX_SPACE_SHARED_CLUSTER)) ||
           begins(insn->opcode, "st.async") || begins(insn->opcode, "red.async") ||
           (insn->ptx != NULL && ptx_has(insn->ptx, PTX_MOD_MULTICAST__CLUSTER));
}

static bool names_cluster_register(const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_SREG && strstr(ptx_sregs[operand->sreg].text, "cluster") != NULL)
        return true;
    for (uint32_t i = 0; i < operand->n_elements; i++)
        if (names_cluster_register(&operand->elements[i]))
            return true;
    return false;
}

static bool uses_cluster_register(const struct clab_code_insn *insn)
{
    for (uint32_t k = 0; insn->ptx != NULL && k < insn->ptx->n_operands; k++)
        if (names_cluster_register(&insn->ptx->operands[k]))
            return true;
    return false;
}

static uint64_t required_ctas(const struct clab_resources *resources)
{
    return (uint64_t)resources->cluster[0] * resources->cluster[1] * resources->cluster[2];
}

/* --- cluster barriers */

/* Writes that the arrive may have to publish: to shared memory of either window, or anywhere through a
   generic pointer. */
static bool publishes(const struct clab_code_insn *insn)
{
    const bool writes = is_store(insn) || insn->group == CLAB_GROUP_ATOMIC ||
                        insn->group == CLAB_GROUP_ASYNC || insn->group == CLAB_GROUP_BULK ||
                        insn->group == CLAB_GROUP_MBARRIER || insn->group == CLAB_GROUP_MATRIX ||
                        insn->group == CLAB_GROUP_CALL;
    return writes && !has_space(insn, PTX_SPACE_GLOBAL) && !has_space(insn, PTX_SPACE_LOCAL) &&
           !has_space(insn, PTX_SPACE_PARAM);
}

FACT(quiet_release)
{
    (void)resources;
    bool after_wait = false, published = false;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            if (is_arrive(insn)) {
                if (after_wait && !published && !ptx_has(insn->ptx, PTX_MOD_RELAXED))
                    clab_hit(hits, i);
                after_wait = false;
            } else if (is_wait(insn)) {
                after_wait = true;
                published = false;
            } else {
                /* A store to global memory may be meant for the peers too. */
                published =
                    published || publishes(insn) ||
                    (is_store(insn) && has_space(insn, PTX_SPACE_GLOBAL) && insn->group == CLAB_GROUP_MEMORY);
            }
        }
    return hits->count > 0;
}

FACT(unpaired_barrier)
{
    (void)resources;
    uint32_t arrives = 0, waits = 0;
    for
        EACH(i)
        {
            arrives += is_arrive(&listing->insns[i]);
            waits += is_wait(&listing->insns[i]);
            if (is_arrive(&listing->insns[i]) || is_wait(&listing->insns[i]))
                clab_hit(hits, i);
        }
    return (arrives == 0) != (waits == 0);
}

FACT(barrier_without_remote)
{
    (void)resources;
    bool remote = false;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            remote = remote || is_remote(insn) || is_section(insn, "mapa") ||
                     insn->group == CLAB_GROUP_CALL || insn->group == CLAB_GROUP_CLC ||
                     insn->group == CLAB_GROUP_TENSOR;
            if (insn->group == CLAB_GROUP_CLUSTER)
                clab_hit(hits, i);
        }
    return hits->count > 0 && !remote;
}

FACT(unused_cluster)
{
    (void)hits;
    if (!resources->explicit_cluster && required_ctas(resources) <= 1)
        return false;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            if (insn->group == CLAB_GROUP_CLUSTER || is_remote(insn) || is_section(insn, "mapa") ||
                is_section(insn, "getctarank") || insn->group == CLAB_GROUP_CALL ||
                insn->group == CLAB_GROUP_CLC || insn->group == CLAB_GROUP_TENSOR ||
                uses_cluster_register(insn))
                return false;
        }
    return true;
}

FACT(non_portable)
{
    (void)listing, (void)hits;
    return required_ctas(resources) > 8 && required_ctas(resources) <= 16;
}

FACT(too_large)
{
    (void)listing, (void)hits;
    return required_ctas(resources) > 16;
}

/* --- distributed shared memory */

FACT(mapped_generic)
{
    (void)resources;
    for
        EACH(i)
    if (listing->insns[i].is_mapped)
        clab_hit(hits, i);
    return hits->count > 0;
}

static bool is_rank_register(const struct clab_listing *listing, uint32_t before,
                             const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_SREG)
        return operand->sreg == PTX_SREG_CLUSTER_CTARANK;
    if (operand->kind != PTX_OPERAND_REG)
        return false;
    for (uint32_t i = before; i-- > 0;) {
        const struct ptx_insn *insn = listing->insns[i].ptx;
        if (insn->n_operands > 0 && ptx_operand_role(insn, 0) == 'w' &&
            insn->operands[0].kind == PTX_OPERAND_REG && insn->operands[0].reg == operand->reg)
            return insn->n_operands > 1 && insn->operands[1].kind == PTX_OPERAND_SREG &&
                   insn->operands[1].sreg == PTX_SREG_CLUSTER_CTARANK;
    }
    return false;
}

FACT(own_rank)
{
    (void)resources;
    for
        EACH(i)
    if (is_section(&listing->insns[i], "mapa") && listing->insns[i].ptx->n_operands == 3 &&
        is_rank_register(listing, i, &listing->insns[i].ptx->operands[2]))
        clab_hit(hits, i);
    return hits->count > 0;
}

/* Whether control can come back to a block. */
static bool is_in_loop(const struct clab_listing *listing, uint32_t block, struct clab_hits *hits)
{
    bool *seen = clab_arena_array(hits->arena, (size_t)listing->n_blocks + 1, sizeof *seen);
    uint32_t *queue = clab_arena_array(hits->arena, (size_t)listing->n_blocks + 1, sizeof *queue), n = 0;
    if (seen == NULL || queue == NULL) {
        hits->failed = true;
        return false;
    }
    queue[n++] = block;
    for (uint32_t at = 0; at < n; at++) {
        const struct clab_code_block *from = &listing->blocks[queue[at]];
        for (uint32_t s = 0; s < from->n_succ; s++) {
            if (from->succ[s] == block)
                return true;
            if (!seen[from->succ[s]]) {
                seen[from->succ[s]] = true;
                queue[n++] = from->succ[s];
            }
        }
    }
    return false;
}

FACT(window_in_loop)
{
    (void)resources;
    for
        EACH(i)
    if (strstr(listing->insns[i].operands, "SR_SWINHI") != NULL &&
        is_in_loop(listing, listing->insns[i].block, hits))
        clab_hit(hits, i);
    return hits->count > 0;
}

FACT(remote_without_barrier)
{
    (void)resources;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            if (insn->group == CLAB_GROUP_CLUSTER || insn->group == CLAB_GROUP_CALL)
                return false;
            /* A bulk copy names .shared::cluster for its own CTA too. */
            if (is_remote(insn) &&
                (insn->group != CLAB_GROUP_BULK || ptx_has(insn->ptx, PTX_MOD_MULTICAST__CLUSTER)))
                clab_hit(hits, i);
        }
    return hits->count > 0;
}

FACT(remote_after_barriers)
{
    (void)resources;
    uint32_t last = UINT32_MAX;
    for
        EACH(i)
    if (is_arrive(&listing->insns[i]))
        last = i;
    for (uint32_t i = last == UINT32_MAX ? listing->n_insns : last; i < listing->n_insns; i++) {
        const struct clab_code_insn *insn = &listing->insns[i];
        if ((insn->is_mapped || insn->group == CLAB_GROUP_REMOTE) && !is_store(insn))
            clab_hit(hits, i);
    }
    return hits->count > 0;
}

FACT(mapa_of_symbol)
{
    (void)resources;
    for
        EACH(i)
        {
            const struct ptx_insn *insn = listing->insns[i].ptx;
            if (is_section(&listing->insns[i], "mapa") && insn->n_spaces == 0 && insn->n_operands > 1 &&
                insn->operands[1].kind == PTX_OPERAND_SYMBOL)
                clab_hit(hits, i);
        }
    return hits->count > 0;
}

/* --- mbarriers, fences */

FACT(mbarrier_count)
{
    (void)resources;
    for
        EACH(i)
        {
            const struct ptx_insn *insn = listing->insns[i].ptx;
            if (is_section(&listing->insns[i], "mbarrier.init") && insn->n_operands > 1 &&
                insn->operands[1].kind == PTX_OPERAND_INT &&
                (insn->operands[1].imm == 0 || insn->operands[1].imm >= UINT64_C(1) << 20))
                clab_hit(hits, i);
        }
    return hits->count > 0;
}

FACT(init_unfenced)
{
    (void)resources;
    bool pending = false;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            if (is_section(insn, "mbarrier.init"))
                pending = true;
            else if (insn->group == CLAB_GROUP_FENCE && !begins(insn->opcode, "fence.proxy"))
                pending = false;
            else if (is_arrive(insn) && pending) {
                if (ptx_has(insn->ptx, PTX_MOD_RELAXED))
                    clab_hit(hits, i);
                pending = false;
            }
        }
    return hits->count > 0;
}

FACT(sequential)
{
    (void)resources;
    for
        EACH(i)
    if (is_section(&listing->insns[i], "membar") ||
        (listing->insns[i].group == CLAB_GROUP_FENCE && ptx_has(listing->insns[i].ptx, PTX_MOD_SC)))
        clab_hit(hits, i);
    return hits->count > 0;
}

FACT(system_scope)
{
    (void)resources;
    for
        EACH(i)
    if (ptx_has(listing->insns[i].ptx, PTX_MOD_SYS) && !ptx_has(listing->insns[i].ptx, PTX_MOD_RELAXED))
        clab_hit(hits, i);
    return hits->count > 0;
}

/* --- bulk copies */

static bool is_multicast(const struct clab_code_insn *insn)
{
    return insn->group == CLAB_GROUP_BULK && ptx_has(insn->ptx, PTX_MOD_MULTICAST__CLUSTER);
}

FACT(multicast_12x)
{
    (void)resources;
    for
        EACH(i)
    if (listing->target.sm >= 120 && listing->insns[i].group == CLAB_GROUP_BULK &&
        begins(listing->insns[i].opcode, "cp.async.bulk") &&
        has_space(&listing->insns[i], PTX_SPACE_SHARED_CLUSTER) &&
        has_space(&listing->insns[i], PTX_SPACE_GLOBAL))
        clab_hit(hits, i);
    return hits->count > 0;
}

FACT(multicast_plain)
{
    (void)resources;
    for
        EACH(i)
    if (listing->target.sm < 120 && listing->target.suffix == 0 && is_multicast(&listing->insns[i]))
        clab_hit(hits, i);
    return hits->count > 0;
}

FACT(bulk_size_0)
{
    (void)resources;
    for
        EACH(i)
        {
            const struct clab_code_insn *insn = &listing->insns[i];
            if (insn->group != CLAB_GROUP_BULK || strstr(insn->opcode, "group") == insn->opcode)
                continue;
            /* The size stands right behind the addresses of destination and source. */
            for (uint32_t k = 1; k < insn->ptx->n_operands && strstr(insn->opcode, ".tensor") == NULL; k++)
                if (insn->ptx->operands[k - 1].kind == PTX_OPERAND_ADDRESS &&
                    insn->ptx->operands[k].kind == PTX_OPERAND_INT && insn->ptx->operands[k].imm == 0)
                    clab_hit(hits, i);
        }
    return hits->count > 0;
}

FACT(syscalls)
{
    (void)resources;
    for
        EACH(i)
    if (begins(listing->insns[i].opcode, "CALL.ABS"))
        clab_hit(hits, i);
    return listing->syscalls != NULL && hits->count > 0; /* the names are the whole cubin's */
}

/* --- everything else */

FACT(barrier_in_loop)
{
    (void)resources;
    for
        EACH(i)
    if (listing->insns[i].group == CLAB_GROUP_BARRIER && is_in_loop(listing, listing->insns[i].block, hits))
        clab_hit(hits, i);
    return hits->count > 0;
}

static void hit_local(const struct clab_listing *listing, struct clab_hits *hits)
{
    for
        EACH(i)
    if (listing->insns[i].group == CLAB_GROUP_LOCAL)
        clab_hit(hits, i);
}

FACT(spills)
{
    if (resources->spill_store_bytes <= 0 && resources->spill_load_bytes <= 0)
        return false;
    hit_local(listing, hits);
    return true;
}

/* With spills the stack frame is larger than what they need only if something else lies in it. */
FACT(local_memory)
{
    hit_local(listing, hits);
    const int spilled = resources->spill_store_bytes > 0 ? resources->spill_store_bytes : 0;
    return hits->count > 0 && (spilled == 0 || resources->stack_bytes > spilled);
}

static const struct {
    const char *name;
    clab_fact *fact;
} facts[] = {
#define ROW(name)   \
    {               \
#name, name \
    }
    ROW(quiet_release),
    ROW(unpaired_barrier),
    ROW(barrier_without_remote),
    ROW(unused_cluster),
    ROW(non_portable),
    ROW(too_large),
    ROW(mapped_generic),
    ROW(own_rank),
    ROW(window_in_loop),
    ROW(mapa_of_symbol),
    ROW(remote_without_barrier),
    ROW(remote_after_barriers),
    ROW(mbarrier_count),
    ROW(init_unfenced),
    ROW(sequential),
    ROW(system_scope),
    ROW(multicast_12x),
    ROW(multicast_plain),
    ROW(bulk_size_0),
    ROW(syscalls),
    ROW(barrier_in_loop),
    ROW(spills),
    ROW(local_memory),
#undef ROW
};

clab_fact *clab_fact_get(const char *name)
{
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(facts[i].name, name) == 0)
            return facts[i].fact;
    return NULL;
}
