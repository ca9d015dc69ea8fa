/* What became of the fences: PTX and SASS joined by the line of the PTX that each SASS instruction was made
   from (the assembler's -lineinfo, nvdisasm's -gp). */
#include <string.h>

#include "inspect/inspect.h"

static bool orders_memory(const struct clab_code_insn *insn)
{
    return insn->group == CLAB_GROUP_FENCE || insn->group == CLAB_GROUP_CLUSTER ||
           ptx_has(insn->ptx, PTX_MOD_ACQUIRE) || ptx_has(insn->ptx, PTX_MOD_RELEASE) ||
           ptx_has(insn->ptx, PTX_MOD_ACQ_REL);
}

static bool is_product(const struct clab_code_insn *insn)
{
    return insn->group == CLAB_GROUP_FENCE || insn->group == CLAB_GROUP_CLUSTER ||
           insn->group == CLAB_GROUP_MBARRIER || insn->group == CLAB_GROUP_BARRIER ||
           strstr(insn->opcode, ".STRONG.") != NULL;
}

/* The SASS of one PTX line, in order, by commas. */
static const char *products_of(const struct clab_listing *sass, uint32_t line, struct clab_arena *arena)
{
    struct clab_str text = {0};
    for (uint32_t i = 0; i < sass->n_insns; i++)
        if (sass->insns[i].ptx_line == line && is_product(&sass->insns[i]))
            clab_str_addf(&text, "%s%s", text.bytes > 0 ? ", " : "", sass->insns[i].opcode);
    const char *copy = text.failed ? NULL : clab_arena_strdup(arena, text.text != NULL ? text.text : "");
    clab_str_free(&text);
    return copy;
}

clab_status clab_fences_became(const struct clab_subject *subject, struct clab_arena *arena,
                               struct clab_became **out, size_t *out_count, struct clab_error *error)
{
    const struct clab_listing *ptx = &subject->listings[CLAB_LEVEL_PTX],
                              *sass = &subject->listings[CLAB_LEVEL_SASS];
    size_t capacity = 0;
    bool lines_known = false;
    *out = NULL;
    *out_count = 0;
    for (uint32_t i = 0; i < sass->n_insns && !lines_known; i++)
        lines_known = sass->insns[i].ptx_line != 0;
    for (uint32_t i = 0; i < ptx->n_insns && lines_known; i++) {
        const struct clab_code_insn *insn = &ptx->insns[i];
        if (!orders_memory(insn))
            continue;
        const char *products = products_of(sass, insn->address, arena);
        struct clab_became *row = NULL, *grown;
        for (size_t k = 0; k < *out_count && products != NULL && row == NULL; k++)
            if (strcmp((*out)[k].ptx, insn->opcode) == 0 && strcmp((*out)[k].sass, products) == 0)
                row = &(*out)[k];
        if (row == NULL && products != NULL &&
            (grown = clab_arena_grow(arena, *out, *out_count, &capacity, sizeof **out)) != NULL) {
            *out = grown;
            row = &grown[(*out_count)++];
            *row = (struct clab_became){.ptx = insn->opcode, .sass = products, .first_line = insn->address};
        }
        if (row == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the fences of '%s'", subject->entry);
        row->count++;
    }
    return CLAB_OK;
}
