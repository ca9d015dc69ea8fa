/* A PTX entry as a listing: the text of its statements, blocks from the control-flow graph, source lines from
   .loc (PTX ISA 9.0, 11.5.3 "Debugging Directives: .loc"). Bodies of called functions are not in it. */
#include "inspect/listing.h"

#include <ctype.h>
#include <string.h>

/* Canonical prefix of a register, as NVIDIA's compilers name them. */
static const char *register_prefix(enum ptx_type type)
{
    switch (ptx_types[type].class) {
    case PTX_CLASS_PRED:
        return "p";
    case PTX_CLASS_FLOAT:
        return ptx_types[type].bits == 64 ? "fd" : "f";
    default:
        return ptx_types[type].bits == 64    ? "rd"
               : ptx_types[type].bits == 128 ? "rq"
               : ptx_types[type].bits == 16  ? "rs"
                                             : "r";
    }
}

static bool add_name(struct clab_listing *out, const char *text, enum clab_name_kind kind, const char *prefix,
                     uint32_t ordinal)
{
    struct clab_name *name = clab_arena_alloc(&out->arena, sizeof *name);
    if (name == NULL)
        return false;
    *name = (struct clab_name){.kind = kind, .prefix = prefix, .ordinal = ordinal};
    return clab_map_set(&out->names, text, strlen(text), name);
}

static bool add_names(struct clab_listing *out, const struct ptx_function *function,
                      const struct ptx_cfg *cfg)
{
    bool good = true;
    for (uint32_t i = 0; i < function->n_regs && good; i++)
        good = add_name(out, function->regs[i].name, CLAB_NAME_REGISTER,
                        register_prefix(function->regs[i].type), 0);
    for (uint32_t i = 0; i < function->n_params && good; i++)
        good = add_name(out, function->params[i]->name, CLAB_NAME_PARAMETER, "param", i);
    /* Variables are told apart as registers are: by what they are used for. */
    for (unsigned pass = 0; pass < 2; pass++) {
        struct ptx_var *const *vars = pass == 0 ? out->module->vars : function->vars;
        const uint32_t n = pass == 0 ? out->module->n_vars : function->n_vars;
        for (uint32_t i = 0; i < n && good; i++)
            good = add_name(out, vars[i]->name, CLAB_NAME_REGISTER, "var", 0);
    }
    for (uint32_t i = 0; i < function->n_labels && good; i++) {
        const uint32_t at = function->labels[i].insn;
        const uint32_t block = at < function->n_insns ? cfg->block_of[at] : cfg->n_blocks;
        good = add_name(out, function->labels[i].name, CLAB_NAME_LABEL, "L", block);
        if (good && block < cfg->n_blocks && cfg->blocks[block].first == at &&
            out->blocks[block].label[0] == '\0')
            out->blocks[block].label = clab_arena_strdup(&out->arena, function->labels[i].name);
    }
    return good;
}

/* "@!p ld.global.f32 d, [a]" cut in place. */
static void cut(char *text, struct clab_code_insn *insn)
{
    insn->guard = "";
    if (*text == '@') {
        insn->guard = text;
        if (text[1] == '!' && text[2] == ' ') /* "@! p": no blank inside */
            memmove(text + 2, text + 3, strlen(text + 2));
        text += strcspn(text, " ");
        if (*text != '\0')
            *text++ = '\0';
    }
    insn->opcode = text;
    text += strcspn(text, " ({[");
    if (*text == ' ')
        *text++ = '\0';
    insn->operands = text;
}

static uint8_t count_written(const struct ptx_insn *insn)
{
    uint8_t n = 0;
    while (n < insn->n_operands && (ptx_operand_role(insn, n) == 'w' || ptx_operand_role(insn, n) == 'x'))
        n++;
    return n;
}

static bool fill_insns(struct clab_listing *out, const struct ptx_cfg *cfg)
{
    const struct ptx_module *module = out->module;
    const struct ptx_function *function = out->function;
    for (uint32_t i = 0; i < out->n_insns; i++) {
        const struct ptx_insn *from = &function->insns[i];
        struct clab_code_insn *insn = &out->insns[i];
        char *text = clab_arena_alloc(&out->arena, (size_t)from->text_bytes + 2);
        if (text == NULL)
            return false;
        ptx_insn_text(module, from, text, (size_t)from->text_bytes + 1);
        cut(text, insn);
        insn->ptx = from;
        insn->address = insn->ptx_line = from->line;
        insn->block = cfg->block_of[i];
        insn->n_written = count_written(from);
        if (from->loc != 0) {
            const struct ptx_loc *loc = &module->locs[from->loc - 1];
            const char *file = loc->file < module->n_files ? module->files[loc->file] : NULL;
            insn->place.file = file != NULL ? clab_arena_strdup(&out->arena, file) : NULL;
            insn->place.line = loc->line;
        }
    }
    return true;
}

clab_status clab_ptx_listing(const struct ptx_module *module, const struct ptx_function *function,
                             struct clab_listing *out, struct clab_error *error)
{
    struct ptx_cfg cfg;
    memset(out, 0, sizeof *out);
    out->level = CLAB_LEVEL_PTX;
    out->module = module;
    out->function = function;
    out->target = module->target;
    clab_status status = ptx_cfg_build(function, &out->arena, &cfg, error);
    if (status != CLAB_OK)
        return status;
    out->entry = clab_arena_strdup(&out->arena, function->name);
    out->n_insns = function->n_insns;
    out->n_blocks = cfg.n_blocks;
    out->insns = clab_arena_array(&out->arena, (size_t)out->n_insns + 1, sizeof *out->insns);
    out->blocks = clab_arena_array(&out->arena, (size_t)out->n_blocks + 1, sizeof *out->blocks);
    bool good = out->entry != NULL && out->insns != NULL && out->blocks != NULL;
    for (uint32_t b = 0; b < out->n_blocks && good; b++)
        out->blocks[b] = (struct clab_code_block){.first = cfg.blocks[b].first,
                                                  .count = cfg.blocks[b].count,
                                                  .label = "",
                                                  .succ = cfg.blocks[b].succ,
                                                  .n_succ = cfg.blocks[b].n_succ};
    good = good && fill_insns(out, &cfg) && add_names(out, function, &cfg);
    if (!good) {
        clab_listing_free(out);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the listing of '%s'", function->name);
    }
    status = clab_listing_classify(out, error);
    return status == CLAB_OK ? clab_listing_find_mapped(out, error) : status;
}
