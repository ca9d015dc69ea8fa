/* A module back to PTX text: directives, variables with their initialisers, functions, labels at the
   instructions that they name. The text parses to the same module; comments, debug sections (and so .target
   debug), scopes and the names of registers that the scopes told apart are not kept (a register is printed
   with its number appended where two share a name). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptx/ptx.h"

/* Names that two registers or labels of one function share need a suffix. */
struct printer {
    struct clab_str *out;
    const struct ptx_module *module;
    const struct ptx_function *function;
    const bool *ambiguous;        /* by register */
    const bool *ambiguous_var;    /* by variable of the body */
    struct clab_map module_names; /* of its variables and functions */
};

static const char *linkage_text(enum ptx_linkage linkage)
{
    switch (linkage) {
    case PTX_LINK_EXTERN:
        return ".extern ";
    case PTX_LINK_VISIBLE:
        return ".visible ";
    case PTX_LINK_WEAK:
        return ".weak ";
    case PTX_LINK_COMMON:
        return ".common ";
    default:
        return "";
    }
}

/* The first register of the vector that this one is a member of, and how many there are; 1 for no vector. */
static uint32_t vector_of(const struct ptx_function *function, uint32_t reg, uint32_t *out_lanes)
{
    const char *dot = strchr(function->regs[reg].name, '.');
    *out_lanes = 1;
    if (!dot)
        return reg;
    const uint32_t first = reg - (dot[1] == 'w' ? 3u : (uint32_t)(dot[1] - 'x'));
    const size_t stem = (size_t)(dot - function->regs[reg].name);
    while (*out_lanes < 4 && first + *out_lanes < function->n_regs) {
        const char *next = function->regs[first + *out_lanes].name;
        if (strncmp(next, function->regs[reg].name, stem) != 0 || next[stem] != '.' || next[stem + 1] == 'x')
            break;
        ++*out_lanes;
    }
    return first;
}

static bool is_param(const struct ptx_function *function, uint32_t reg)
{
    for (uint32_t i = 0; i < function->n_params; i++)
        if (function->params[i]->space == PTX_SPACE_REG && function->params[i]->reg == reg)
            return true;
    for (uint32_t i = 0; i < function->n_returns; i++)
        if (function->returns[i]->space == PTX_SPACE_REG && function->returns[i]->reg == reg)
            return true;
    return false;
}

static void print_vector_name(struct printer *p, uint32_t first)
{
    const char *name = p->function->regs[first].name;
    clab_str_add_bytes(p->out, name, strcspn(name, "."));
    if (p->ambiguous[first])
        clab_str_addf(p->out, "_s%u", (unsigned)first);
}

static void print_reg(struct printer *p, uint32_t reg)
{
    const char *name = p->function->regs[reg].name;
    const char *dot = strchr(name, '.'); /* a member of a vector register */
    uint32_t lanes;
    if (dot) {
        print_vector_name(p, vector_of(p->function, reg, &lanes));
        clab_str_add(p->out, dot);
    } else if (p->ambiguous[reg])
        clab_str_addf(p->out, "%s_s%u", name, (unsigned)reg);
    else
        clab_str_add(p->out, name);
}

static void print_var_name(struct printer *p, const struct ptx_var *var)
{
    const struct ptx_function *function = p->function;
    clab_str_add(p->out, var->name);
    if (function && var->index < function->n_vars && function->vars[var->index] == var &&
        p->ambiguous_var[var->index])
        clab_str_addf(p->out, "_s%u", (unsigned)var->index);
}

static void print_offset(struct printer *p, uint64_t imm)
{
    if (imm)
        clab_str_addf(p->out, "+%" PRId64, (int64_t)imm);
}

static void print_table_name(struct printer *p, const struct ptx_table *table)
{
    clab_str_addf(p->out, "%s%s", strncmp(table->name, "$T_", 3) == 0 ? "" : "$T_", table->name);
}

static void print_operand(struct printer *p, const struct ptx_operand *operand);

static void print_list(struct printer *p, const struct ptx_operand *operand, const char *open,
                       const char *close)
{
    clab_str_add(p->out, open);
    for (uint32_t i = 0; i < operand->n_elements; i++) {
        if (i)
            clab_str_add(p->out, ", ");
        print_operand(p, &operand->elements[i]);
    }
    clab_str_add(p->out, close);
}

static void print_component(struct printer *p, const struct ptx_operand *operand)
{
    const uint8_t component = operand->component;
    static const char *const selectors[] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    if (component < 4)
        clab_str_addf(p->out, ".%c", "xyzw"[component]);
    else if (component >= PTX_SELECT_B0 && component <= PTX_SELECT_H1)
        clab_str_add(p->out, selectors[component - PTX_SELECT_B0]);
    else if (component == PTX_SELECT_HALVES || component == PTX_SELECT_BYTES)
        clab_str_addf(p->out, ".%c%0*" PRIx64, component == PTX_SELECT_HALVES ? 'h' : 'b',
                      (int)(operand->imm >> 16), operand->imm & 0xffff);
}

/* All members of a vector register in their order: where only a name may stand, it is one. */
static bool is_whole_vector(const struct ptx_function *function, const struct ptx_operand *operand)
{
    uint32_t lanes;
    const struct ptx_operand *elements = operand->elements;
    if (operand->n_elements < 2 || elements[0].kind != PTX_OPERAND_REG ||
        vector_of(function, elements[0].reg, &lanes) != elements[0].reg || lanes != operand->n_elements)
        return false;
    for (uint32_t i = 1; i < lanes; i++)
        if (elements[i].kind != PTX_OPERAND_REG || elements[i].reg != elements[0].reg + i)
            return false;
    return true;
}

static void print_operand(struct printer *p, const struct ptx_operand *operand)
{
    switch (operand->kind) {
    case PTX_OPERAND_REG:
        if (operand->negated)
            clab_str_add(p->out, p->function->regs[operand->reg].type == PTX_PRED ? "!" : "-");
        print_reg(p, operand->reg);
        print_component(p, operand);
        break;
    case PTX_OPERAND_SREG:
        clab_str_addf(p->out, "%s%s", operand->negated ? "!" : "", ptx_sregs[operand->sreg].text);
        print_component(p, operand);
        break;
    case PTX_OPERAND_INT:
        if (operand->is_unsigned)
            clab_str_addf(p->out, "%" PRIu64 "U", operand->imm);
        else
            clab_str_addf(p->out, "%" PRId64, (int64_t)operand->imm);
        break;
    case PTX_OPERAND_FLOAT:
        if (operand->is_f32_bits)
            clab_str_addf(p->out, "0f%08" PRIX64, operand->imm);
        else
            clab_str_addf(p->out, "0d%016" PRIX64, operand->imm);
        break;
    case PTX_OPERAND_SYMBOL:
        if (operand->var)
            print_var_name(p, operand->var);
        else
            clab_str_add(p->out, operand->func->name);
        if (operand->is_sum && !operand->imm)
            clab_str_add(p->out, "+0");
        print_offset(p, operand->imm);
        break;
    case PTX_OPERAND_INDEXED:
        print_var_name(p, operand->var);
        clab_str_add(p->out, "[");
        print_operand(p, &operand->elements[0]);
        print_offset(p, operand->imm);
        clab_str_add(p->out, "]");
        break;
    case PTX_OPERAND_LABEL:
        if (operand->table)
            print_table_name(p, operand->table);
        else
            clab_str_addf(p->out, "$L_%u", (unsigned)operand->target);
        break;
    case PTX_OPERAND_ADDRESS:
        if (operand->elements[0].kind == PTX_OPERAND_INDEXED) { /* these have no brackets around them */
            print_operand(p, &operand->elements[0]);
            break;
        }
        clab_str_add(p->out, "[");
        for (uint32_t i = 0; i < operand->n_elements; i++) {
            if (i)
                clab_str_add(p->out, ", ");
            print_operand(p, &operand->elements[i]);
            if (i == 0)
                print_offset(p, operand->imm);
        }
        clab_str_add(p->out, "]");
        break;
    case PTX_OPERAND_VECTOR:
        if (is_whole_vector(p->function, operand))
            print_vector_name(p, operand->elements[0].reg);
        else
            print_list(p, operand, "{", "}");
        break;
    case PTX_OPERAND_LIST:
        print_list(p, operand, "(", ")");
        break;
    case PTX_OPERAND_PAIR:
        print_operand(p, &operand->elements[0]);
        clab_str_add(p->out, "|");
        print_operand(p, &operand->elements[1]);
        break;
    case PTX_OPERAND_SINK:
        clab_str_add(p->out, "_");
        break;
    case PTX_OPERAND_FUNCTION:
        clab_str_add(p->out, operand->func->name);
        break;
    }
}

/* Almost any order is accepted, so: the qualifiers that are neither type nor space first, then spaces, then
   types, each in the order written. */
static void print_opcode(struct printer *p, const struct ptx_insn *insn)
{
    const char *syntax = ptx_rows[insn->row].syntax;
    clab_str_add_bytes(p->out, syntax, strcspn(syntax, ".{! "));
    for (unsigned i = 0; i < insn->n_mods; i++)
        clab_str_addf(p->out, ".%s", ptx_mod_text[insn->mods[i]]);
    for (unsigned i = 0; i < insn->n_spaces; i++)
        clab_str_addf(p->out, ".%s", ptx_space_text[insn->spaces[i]]);
    for (unsigned i = 0; i < insn->n_types; i++)
        clab_str_addf(p->out, ".%s", ptx_types[insn->types[i]].text);
}

static void print_call(struct printer *p, const struct ptx_insn *insn)
{
    clab_str_add(p->out, " ");
    if (insn->operands[0].n_elements) {
        print_operand(p, &insn->operands[0]);
        clab_str_add(p->out, ", ");
    }
    print_operand(p, &insn->operands[1]);
    if (insn->operands[2].n_elements || insn->n_operands > 3) {
        clab_str_add(p->out, ", ");
        print_operand(p, &insn->operands[2]);
    }
    if (insn->n_operands > 3) {
        clab_str_add(p->out, ", ");
        print_operand(p, &insn->operands[3]);
    }
}

static void print_insn(struct printer *p, const struct ptx_insn *insn)
{
    clab_str_add(p->out, "\t");
    if (insn->has_guard) {
        clab_str_add(p->out, insn->guard_negated ? "@!" : "@");
        print_reg(p, insn->guard);
        clab_str_add(p->out, " ");
    }
    print_opcode(p, insn);
    if (insn->row == PTX_CALL) {
        print_call(p, insn);
    } else {
        for (uint32_t i = 0; i < insn->n_operands; i++) {
            clab_str_add(p->out, i ? ", " : " ");
            print_operand(p, &insn->operands[i]);
        }
    }
    clab_str_add(p->out, ";\n");
}

static void print_declarator(struct printer *p, const struct ptx_var *var)
{
    const char *space = ptx_space_text[var->space];
    clab_str_addf(p->out, ".%s ", space);
    if (var->is_managed)
        clab_str_add(p->out, ".attribute(.managed) ");
    if (var->space == PTX_SPACE_REG) {
        if (var->vector > 1)
            clab_str_addf(p->out, ".v%u ", var->vector);
        clab_str_addf(p->out, ".%s %s", ptx_types[var->type].text, var->name);
        return;
    }
    if (var->align_bytes)
        clab_str_addf(p->out, ".align %u ", (unsigned)var->align_bytes);
    if (var->vector > 1)
        clab_str_addf(p->out, ".v%u ", var->vector);
    clab_str_addf(p->out, ".%s ", ptx_types[var->type].text);
    if (var->ptr) {
        clab_str_add(p->out, ".ptr ");
        if (var->ptr_space != PTX_SPACE_NONE)
            clab_str_addf(p->out, ".%s ", ptx_space_text[var->ptr_space]);
        clab_str_addf(p->out, ".align %u ", (unsigned)var->ptr_align);
    }
    print_var_name(p, var);
    if (!var->is_array)
        return;
    uint64_t element = (uint64_t)ptx_types[var->type].bits / 8 * var->vector;
    if (var->is_unsized)
        clab_str_add(p->out, "[]");
    else
        clab_str_addf(p->out, "[%" PRIu64 "]", element ? var->bytes / element : 0);
}

static void print_address(struct printer *p, const struct ptx_reloc *reloc)
{
    clab_str_add(p->out, reloc->generic ? "generic(" : "");
    if (reloc->var)
        print_var_name(p, reloc->var);
    else
        clab_str_add(p->out, reloc->func->name);
    clab_str_add(p->out, reloc->generic ? ")" : "");
    print_offset(p, (uint64_t)reloc->addend);
}

/* Initial values by scalar element, flat; trailing zeros are left out. */
static void print_values(struct printer *p, const struct ptx_var *var)
{
    uint64_t size = ptx_types[var->type].bits / 8u, used = var->bytes;
    uint64_t per_brace = var->vector;
    uint32_t next = 0;
    while (used > 0 && var->data[used - 1] == 0 &&
           (var->n_relocs == 0 || used > var->relocs[var->n_relocs - 1].offset + size))
        used--;
    uint64_t count = (used + size - 1) / size;
    clab_str_add(p->out, " = ");
    if (var->is_array || var->vector > 1)
        clab_str_add(p->out, "{");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i * size, bits = 0;
        if (i)
            clab_str_add(p->out, i % 16 ? ", " : ",\n\t");
        if (var->is_array && per_brace > 1 && i % per_brace == 0)
            clab_str_add(p->out, "{");
        if (next < var->n_relocs && var->relocs[next].offset == at) {
            const struct ptx_reloc *reloc = &var->relocs[next++];
            if (reloc->bytes == 1 && size == 1)
                clab_str_addf(p->out, "0x%" PRIX64 "(", UINT64_C(0xff) << reloc->shift);
            print_address(p, reloc);
            if (reloc->bytes == 1 && size == 1)
                clab_str_add(p->out, ")");
        } else {
            for (uint64_t b = 0; b < size && b < 8; b++)
                bits |= (uint64_t)var->data[at + b] << (8 * b);
            if (ptx_types[var->type].class == PTX_CLASS_FLOAT && size == 4)
                clab_str_addf(p->out, "0f%08" PRIX64, bits);
            else if (ptx_types[var->type].class == PTX_CLASS_FLOAT && size == 8)
                clab_str_addf(p->out, "0d%016" PRIX64, bits);
            else
                clab_str_addf(p->out, "%" PRIu64, bits);
        }
        if (var->is_array && per_brace > 1 && (i % per_brace == per_brace - 1 || i + 1 == count))
            clab_str_add(p->out, "}");
    }
    if (var->is_array || var->vector > 1)
        clab_str_add(p->out, "}");
}

static void print_var(struct printer *p, const struct ptx_var *var, const char *indent)
{
    clab_str_addf(p->out, "%s%s", indent, linkage_text(var->linkage));
    print_declarator(p, var);
    if (var->data && ptx_types[var->type].class != PTX_CLASS_OPAQUE)
        print_values(p, var);
    clab_str_add(p->out, ";\n");
}

static void print_params(struct printer *p, struct ptx_var *const *vars, uint32_t count)
{
    clab_str_add(p->out, "(");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            clab_str_add(p->out, ", ");
        print_declarator(p, vars[i]);
    }
    clab_str_add(p->out, ")");
}

static void print_triple(struct printer *p, const char *word, const uint32_t value[3])
{
    clab_str_addf(p->out, "\n%s %u, %u, %u", word, (unsigned)value[0], (unsigned)value[1],
                  (unsigned)value[2]);
}

static void print_directives(struct printer *p, const struct ptx_directives *d)
{
    if (d->has_maxntid)
        print_triple(p, ".maxntid", d->maxntid);
    if (d->has_reqntid)
        print_triple(p, ".reqntid", d->reqntid);
    if (d->minnctapersm)
        clab_str_addf(p->out, "\n.minnctapersm %u", (unsigned)d->minnctapersm);
    if (d->maxnctapersm)
        clab_str_addf(p->out, "\n.maxnctapersm %u", (unsigned)d->maxnctapersm);
    if (d->maxnreg)
        clab_str_addf(p->out, "\n.maxnreg %u", (unsigned)d->maxnreg);
    if (d->explicitcluster)
        clab_str_add(p->out, "\n.explicitcluster");
    if (d->has_reqnctapercluster)
        print_triple(p, ".reqnctapercluster", d->reqnctapercluster);
    if (d->maxclusterrank)
        clab_str_addf(p->out, "\n.maxclusterrank %u", (unsigned)d->maxclusterrank);
    if (d->blocksareclusters)
        clab_str_add(p->out, "\n.blocksareclusters");
    if (d->noreturn)
        clab_str_add(p->out, "\n.noreturn");
}

static void print_name(struct printer *p, const struct ptx_function *function)
{
    clab_str_addf(p->out, "\n%s%s", linkage_text(function->linkage), function->entry ? ".entry " : ".func ");
    if (function->n_returns) {
        print_params(p, function->returns, function->n_returns);
        clab_str_add(p->out, " ");
    }
    clab_str_add(p->out, function->name);
    print_params(p, function->params, function->n_params);
}

static void print_header(struct printer *p, const struct ptx_function *function)
{
    print_name(p, function);
    print_directives(p, &function->directives);
}

static void print_table(struct printer *p, const struct ptx_table *table)
{
    print_table_name(p, table);
    clab_str_add(p->out, ": ");
    switch (table->kind) {
    case PTX_TABLE_BRANCH:
        clab_str_add(p->out, ".branchtargets ");
        for (uint32_t i = 0; i < table->count; i++)
            clab_str_addf(p->out, "%s$L_%u", i ? ", " : "", (unsigned)table->targets[i]);
        break;
    case PTX_TABLE_CALL:
        clab_str_add(p->out, ".calltargets ");
        for (uint32_t i = 0; i < table->count; i++)
            clab_str_addf(p->out, "%s%s", i ? ", " : "", table->functions[i]->name);
        break;
    case PTX_TABLE_PROTOTYPE:
        clab_str_add(p->out, ".callprototype ");
        if (table->n_returns)
            print_params(p, table->returns, table->n_returns);
        clab_str_add(p->out, " _ ");
        print_params(p, table->params, table->n_params);
        break;
    }
    clab_str_add(p->out, ";\n");
}

static bool name_add(struct printer *p, struct clab_map *names, const char *text, bool *out_taken)
{
    /* A vector register goes by its first member, q.x. */
    const char *dot = strchr(text, '.');
    const size_t bytes = dot && dot[1] == 'x' ? (size_t)(dot - text) : strlen(text);
    *out_taken = clab_map_get(names, text, bytes) || clab_map_get(&p->module_names, text, bytes);
    if (!clab_map_set(names, text, bytes, p))
        p->out->failed = true;
    return *out_taken;
}

/* Marks the registers and variables of a body whose names something else has: scopes are not printed. */
static bool find_ambiguous(struct printer *p, struct clab_arena *scratch, const struct ptx_function *function)
{
    bool *regs = clab_arena_alloc(scratch, (size_t)function->n_regs + 1), taken;
    bool *vars = clab_arena_alloc(scratch, (size_t)function->n_vars + 1);
    struct clab_map names = {0};
    if (!regs || !vars)
        return false;
    for (uint32_t i = 0; i < function->n_params; i++)
        name_add(p, &names, function->params[i]->name, &taken);
    for (uint32_t i = 0; i < function->n_returns; i++)
        name_add(p, &names, function->returns[i]->name, &taken);
    for (uint32_t i = 0; i < function->n_regs; i++)
        if (!is_param(function, i))
            name_add(p, &names, function->regs[i].name, &regs[i]);
    for (uint32_t i = 0; i < function->n_vars; i++)
        name_add(p, &names, function->vars[i]->name, &vars[i]);
    clab_map_free(&names);
    p->ambiguous = regs;
    p->ambiguous_var = vars;
    return true;
}

static void print_body(struct printer *p, const struct ptx_function *function, struct clab_arena *scratch)
{
    bool *target = clab_arena_alloc(scratch, (size_t)function->n_insns + 1);
    if (!target || !find_ambiguous(p, scratch, function)) {
        p->out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < function->n_labels; i++)
        target[function->labels[i].insn] = true;
    clab_str_add(p->out, "\n{\n");
    for (uint32_t i = 0; i < function->n_regs; i++) {
        uint32_t lanes, first = vector_of(function, i, &lanes);
        if (is_param(function, first) || first != i)
            continue;
        clab_str_add(p->out, "\t.reg ");
        if (lanes > 1)
            clab_str_addf(p->out, ".v%u ", (unsigned)lanes);
        clab_str_addf(p->out, ".%s ", ptx_types[function->regs[i].type].text);
        if (lanes > 1)
            print_vector_name(p, i);
        else
            print_reg(p, i);
        clab_str_add(p->out, ";\n");
    }
    for (uint32_t i = 0; i < function->n_vars; i++)
        print_var(p, function->vars[i], "\t");
    for (uint32_t i = 0; i < function->n_tables; i++)
        print_table(p, function->tables[i]);
    for (uint32_t i = 0; i <= function->n_insns; i++) {
        if (target[i])
            clab_str_addf(p->out, "$L_%u:\n", (unsigned)i);
        if (i < function->n_insns)
            print_insn(p, &function->insns[i]);
    }
    clab_str_add(p->out, "}\n");
}

static void name_entries(const struct ptx_operand *operands, uint32_t count, bool *named)
{
    for (uint32_t i = 0; i < count; i++) {
        if (operands[i].func && operands[i].func->entry)
            named[operands[i].func->index] = true;
        name_entries(operands[i].elements, operands[i].elements ? operands[i].n_elements : 0, named);
    }
}

static void name_entries_of(struct ptx_var *const *vars, uint32_t count, bool *named)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0; r < vars[i]->n_relocs; r++)
            if (vars[i]->relocs[r].func && vars[i]->relocs[r].func->entry)
                named[vars[i]->relocs[r].func->index] = true;
}

/* Prototypes first, since variables and bodies may name any of them: of functions, and of the kernels whose
   address something takes. */
static void print_prototypes(struct printer *p, struct clab_arena *scratch)
{
    const struct ptx_module *module = p->module;
    bool *named = clab_arena_alloc(scratch, (size_t)module->n_functions + 1);
    if (!named) {
        p->out->failed = true;
        return;
    }
    name_entries_of(module->vars, module->n_vars, named);
    for (uint32_t i = 0; i < module->n_functions; i++) {
        const struct ptx_function *function = module->functions[i];
        name_entries_of(function->vars, function->n_vars, named);
        for (uint32_t n = 0; n < function->n_insns; n++)
            name_entries(function->insns[n].operands, function->insns[n].n_operands, named);
    }
    for (uint32_t i = 0; i < module->n_functions; i++) {
        if (module->functions[i]->entry && !named[module->functions[i]->index])
            continue;
        if (module->functions[i]->entry) /* whose directives come with its body */
            print_name(p, module->functions[i]);
        else
            print_header(p, module->functions[i]);
        clab_str_add(p->out, ";\n");
    }
}

void ptx_module_print(const struct ptx_module *module, struct clab_str *out)
{
    struct printer p = {.out = out, .module = module};
    bool taken;
    for (uint32_t i = 0; i < module->n_vars + module->n_functions; i++)
        name_add(&p, &p.module_names,
                 i < module->n_vars ? module->vars[i]->name : module->functions[i - module->n_vars]->name,
                 &taken);
    struct clab_arena scratch = {0};
    char suffix[2] = {module->target.suffix, 0};
    const unsigned sm = module->target.sm == 110 && module->version < 90 ? 101 : module->target.sm;
    clab_str_addf(out, ".version %u.%u\n.target sm_%u%s%s\n", module->version / 10, module->version % 10, sm,
                  suffix, module->target.texmode_independent ? ", texmode_independent" : "");
    if (module->version >= 23) /* it had none before */
        clab_str_addf(out, ".address_size %u\n", module->address_size);
    print_prototypes(&p, &scratch);
    for (uint32_t i = 0; i < module->n_vars; i++)
        print_var(&p, module->vars[i], "");
    for (uint32_t i = 0; i < 2 * module->n_functions; i++) { /* functions, then entries */
        const struct ptx_function *function = module->functions[i % module->n_functions];
        bool entries = i >= module->n_functions;
        if (!function->defined || function->error || function->alias || function->entry != entries)
            continue;
        p.function = function;
        print_header(&p, function);
        print_body(&p, function, &scratch);
    }
    for (uint32_t i = 0; i < module->n_functions; i++)
        if (module->functions[i]->alias)
            clab_str_addf(out, ".alias %s, %s;\n", module->functions[i]->name,
                          module->functions[i]->alias->name);
    clab_map_free(&p.module_names);
    clab_arena_free(&scratch);
}
