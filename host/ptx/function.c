/* Functions (PTX ISA 9.0, 11.2 "Specifying Kernel Entry Points and Functions", 11.4, 11.7, 11.8): headers,
   performance and cluster directives, redeclarations, aliases, and what the labels of a body must suit. As
   ptxas 13.0 judges them. */
#include <string.h>

#include "ptx/parser.h"

/* One to three numbers. */
static bool triple_read(struct ptx_parser *parser, bool positive, uint32_t out[3])
{
    out[0] = out[1] = out[2] = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (!ptx_number_u32(parser, INT32_MAX, &out[i]))
            return false;
        if (positive && out[i] == 0)
            return ptx_fail(parser, "a dimension must be positive");
        if (!ptx_accept(parser, ','))
            break;
    }
    return true;
}

/* .reqnctapercluster: a dimension of 0 is as good as no directive. */
static bool cluster_read(struct ptx_parser *parser, struct ptx_directives *d)
{
    uint32_t *size = d->reqnctapercluster;
    if (!triple_read(parser, false, size))
        return false;
    d->has_reqnctapercluster = size[0] && size[1] && size[2];
    return true;
}

static bool positive_read(struct ptx_parser *parser, uint32_t *out)
{
    if (!ptx_number_u32(parser, INT32_MAX, out))
        return false;
    return *out > 0 || ptx_fail(parser, "the number must be positive");
}

/* Directives of a kernel between its header and its body (PTX ISA 9.0, 11.4, 11.7). False, without a failure,
   when the next token is none. */
static bool kernel_directive(struct ptx_parser *parser, struct ptx_directives *d)
{
    if (ptx_accept_dot(parser, ".maxntid"))
        return ptx_needs(parser, PTX_FEATURE_MAXNTID) &&
               (d->has_maxntid = triple_read(parser, true, d->maxntid));
    if (ptx_accept_dot(parser, ".reqntid"))
        return ptx_needs(parser, PTX_FEATURE_REQNTID) &&
               (d->has_reqntid = triple_read(parser, true, d->reqntid));
    if (ptx_accept_dot(parser, ".reqnctapercluster"))
        return ptx_needs(parser, PTX_FEATURE_REQNCTAPERCLUSTER) && cluster_read(parser, d);
    if (ptx_accept_dot(parser, ".explicitcluster"))
        return ptx_needs(parser, PTX_FEATURE_EXPLICITCLUSTER) && (d->explicitcluster = true);
    if (ptx_accept_dot(parser, ".blocksareclusters"))
        return ptx_needs(parser, PTX_FEATURE_BLOCKSARECLUSTERS) && (d->blocksareclusters = true);
    if (ptx_accept_dot(parser, ".minnctapersm"))
        return ptx_needs(parser, PTX_FEATURE_MINNCTAPERSM) && positive_read(parser, &d->minnctapersm);
    if (ptx_accept_dot(parser, ".maxnreg"))
        return ptx_needs(parser, PTX_FEATURE_MAXNREG) && positive_read(parser, &d->maxnreg);
    if (ptx_accept_dot(parser, ".maxclusterrank"))
        return ptx_needs(parser, PTX_FEATURE_MAXCLUSTERRANK) &&
               ptx_number_u32(parser, INT32_MAX, &d->maxclusterrank);
    if (ptx_accept_dot(parser, ".pragma"))
        return ptx_parse_pragma(parser, PTX_PRAGMA_KERNEL);
    return ptx_fail(parser, "unknown directive of a function");
}

/* .abi_preserve n, .abi_preserve_control n: registers that a function keeps (undocumented limits: ptxas). */
static bool preserve_read(struct ptx_parser *parser, uint32_t *out, uint32_t limit)
{
    if (*out)
        return ptx_fail(parser, "this directive stands here already");
    if (!ptx_needs(parser, PTX_FEATURE_ABI_PRESERVE) || !ptx_number_u32(parser, limit, out))
        return false;
    ++*out; /* 0: not given */
    return true;
}

/* Directives of a function, likewise. .noreturn comes first, and once. */
bool ptx_function_directive(struct ptx_parser *parser, struct ptx_directives *d)
{
    enum { MOST_REGISTERS = 255, MOST_CONTROL = 65535 };
    if (ptx_is_dot(parser, ".noreturn") && !d->noreturn && !d->preserve && !d->preserve_control) {
        ptx_next(parser);
        return ptx_needs(parser, PTX_FEATURE_NORETURN) && (d->noreturn = true);
    }
    if (ptx_accept_dot(parser, ".abi_preserve"))
        return preserve_read(parser, &d->preserve, MOST_REGISTERS);
    if (ptx_accept_dot(parser, ".abi_preserve_control"))
        return preserve_read(parser, &d->preserve_control, MOST_CONTROL);
    return ptx_fail(parser, "unknown directive of a function");
}

static bool directives_read(struct ptx_parser *parser, struct ptx_function *function)
{
    struct ptx_directives *d = &function->directives;
    uint32_t ignored;
    while (parser->token.kind == PTX_TOKEN_DOT) {
        bool good;
        d->has_any = true;
        if (ptx_accept_dot(parser, ".local_maxnreg")) /* undocumented; ptxas 13.0 takes it */
            good =
                ptx_needs(parser, PTX_FEATURE_LOCAL_MAXNREG) && ptx_number_u32(parser, INT32_MAX, &ignored);
        else
            good = function->entry ? kernel_directive(parser, d) : ptx_function_directive(parser, d);
        if (!good)
            return false;
    }
    if (d->has_reqnctapercluster && d->maxclusterrank)
        return ptx_fail(parser, ".reqnctapercluster and .maxclusterrank contradict each other");
    if (d->has_reqntid && d->has_maxntid)
        return ptx_fail(parser, ".reqntid and .maxntid contradict each other");
    if (d->blocksareclusters && (!d->has_reqntid || !d->has_reqnctapercluster))
        return ptx_fail(parser, ".blocksareclusters needs .reqntid and .reqnctapercluster");
    if (d->noreturn && function->n_returns)
        return ptx_fail(parser, "a function that returns a value cannot be .noreturn");
    return true;
}

/* Does every function that an indirect call may reach take what it passes? */
static bool table_fits(struct ptx_parser *parser, const struct ptx_insn *insn, const struct ptx_table *table)
{
    uint32_t count = table->kind == PTX_TABLE_CALL ? table->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct ptx_function *function = table->kind == PTX_TABLE_CALL ? table->functions[i] : NULL;
        if (function ? !ptx_call_fits(parser, insn->operands, function->params, function->n_params,
                                      function->returns, function->n_returns)
                     : !ptx_call_fits(parser, insn->operands, table->params, table->n_params, table->returns,
                                      table->n_returns))
            return false;
    }
    return true;
}

/* What its labels turned out to be must suit each instruction: bra a plain label, brx.idx a list of labels,
   an indirect call a prototype or list of functions that its arguments fit. */
static bool labels_check(struct ptx_parser *parser)
{
    const struct ptx_insn *insns = parser->insns.items;
    for (size_t i = 0; i < parser->insns.count; i++) {
        const struct ptx_insn *insn = &insns[i];
        const struct ptx_operand *label = insn->n_operands ? &insn->operands[insn->n_operands - 1] : NULL;
        const char *source = parser->module->text + insn->text_offset;
        if (!label || label->kind != PTX_OPERAND_LABEL)
            continue;
        const struct ptx_table *table = label->table;
        if (insn->row == PTX_BRA && table)
            return ptx_fail_at(parser, insn->line, insn->column, source, "'%s' is a list, not a label",
                               table->name);
        if (insn->row == PTX_BRX_IDX && (!table || table->kind != PTX_TABLE_BRANCH))
            return ptx_fail_at(parser, insn->line, insn->column, source,
                               "brx.idx needs a .branchtargets list");
        if (insn->row != PTX_CALL)
            continue;
        if (!table || table->kind == PTX_TABLE_BRANCH)
            return ptx_fail_at(parser, insn->line, insn->column, source,
                               "an indirect call needs a .callprototype or .calltargets list");
        if (!table_fits(parser, insn, table))
            return false;
    }
    return true;
}

/* The body's lists become the function's. */
static bool function_finish(struct ptx_parser *parser, struct ptx_function *function)
{
    function->n_regs = (uint32_t)parser->regs.count;
    function->n_insns = (uint32_t)parser->insns.count;
    function->n_vars = (uint32_t)parser->vars.count;
    function->n_labels = (uint32_t)parser->labels.count;
    function->n_tables = (uint32_t)parser->tables.count;
    function->regs = ptx_list_copy(parser, &parser->regs, sizeof *function->regs);
    function->insns = ptx_list_copy(parser, &parser->insns, sizeof *function->insns);
    function->vars = ptx_list_copy(parser, &parser->vars, sizeof *function->vars);
    function->labels = ptx_list_copy(parser, &parser->labels, sizeof *function->labels);
    function->tables = ptx_list_copy(parser, &parser->tables, sizeof *function->tables);
    return !parser->failed;
}

static struct ptx_function *function_declare(struct ptx_parser *parser, struct ptx_name *name, bool entry)
{
    struct ptx_binding *binding = name->binding;
    if (binding && binding->depth == 0) {
        if (binding->kind != PTX_BIND_FUNCTION || binding->function->entry != entry) {
            ptx_fail(parser, "'%s' was declared before as something else", name->text);
            return NULL;
        }
        return binding->function;
    }
    struct ptx_function *function = clab_arena_alloc(parser->arena, sizeof *function);
    struct ptx_function **kept =
        function ? ptx_list_add(parser, &parser->module_functions, sizeof *kept) : NULL;
    if (!kept) {
        ptx_no_memory(parser);
        return NULL;
    }
    *kept = function;
    function->name = name->text;
    function->entry = entry;
    function->index = (uint32_t)(parser->module_functions.count - 1);
    binding = ptx_bind(parser, name, PTX_BIND_FUNCTION);
    if (!binding)
        return NULL;
    binding->function = function;
    return function;
}

/* Are the parameters (or returned values) of two headers the same? Names may differ. */
static bool params_agree(struct ptx_var *const *a, uint32_t n_a, struct ptx_var *const *b, uint32_t n_b)
{
    bool agree = n_a == n_b;
    for (uint32_t i = 0; agree && i < n_a; i++)
        agree = a[i]->type == b[i]->type && a[i]->vector == b[i]->vector && a[i]->space == b[i]->space &&
                a[i]->bytes == b[i]->bytes && a[i]->is_array == b[i]->is_array &&
                a[i]->align_bytes == b[i]->align_bytes;
    return agree;
}

static bool headers_agree(const struct ptx_function *a, const struct ptx_function *b)
{
    return params_agree(a->params, a->n_params, b->params, b->n_params) &&
           params_agree(a->returns, a->n_returns, b->returns, b->n_returns);
}

static bool sizes_agree_in(struct ptx_var *const *a, uint32_t n_a, struct ptx_var *const *b, uint32_t n_b)
{
    bool agree = n_a == n_b;
    for (uint32_t i = 0; agree && i < n_a; i++)
        agree = a[i]->bytes == b[i]->bytes;
    return agree;
}

/* What nvlink 13.0 asks of the prototypes of two modules. */
static bool sizes_agree(const struct ptx_function *a, const struct ptx_function *b)
{
    return sizes_agree_in(a->params, a->n_params, b->params, b->n_params) &&
           sizes_agree_in(a->returns, a->n_returns, b->returns, b->n_returns);
}

/* A header after an earlier one of the same name, as ptxas 13.0 judges it: once defined, nothing may follow.
 */
static bool redeclaration_check(struct ptx_parser *parser, const struct ptx_function *old,
                                const struct ptx_function *new, enum ptx_linkage linkage)
{
    bool hides =
        (old->linkage == PTX_LINK_VISIBLE || old->linkage == PTX_LINK_WEAK) && linkage == PTX_LINK_NONE;
    if (parser->linked && (old->linkage == PTX_LINK_EXTERN || linkage == PTX_LINK_EXTERN))
        return sizes_agree(old, new) || ptx_fail(parser, "the prototypes of '%s' do not match", old->name);
    if (old->defined)
        return ptx_fail(parser, "function '%s' is already defined", old->name);
    if (!headers_agree(old, new))
        return ptx_fail(parser, "'%s' was declared before with other parameters", old->name);
    if ((old->linkage != linkage && !hides) || old->directives.noreturn != new->directives.noreturn ||
        old->directives.preserve != new->directives.preserve ||
        old->directives.preserve_control != new->directives.preserve_control)
        return ptx_fail(parser, "'%s' was declared before with another linkage or other directives",
                        old->name);
    return true;
}

/* Bytes that a kernel's parameters take. 32764 from .version 8.1 and sm_70 on, 4352 before. */
static bool parameter_space_check(struct ptx_parser *parser, const struct ptx_function *header)
{
    const struct ptx_module *module = parser->module;
    uint64_t bytes = 0, limit = module->version >= 81 && module->target.sm >= 70 ? 32764 : 4352;
    for (uint32_t i = 0; i < header->n_params && bytes <= limit; i++) {
        uint32_t align = header->params[i]->align_bytes ? header->params[i]->align_bytes : 1;
        bytes = (bytes + align - 1) / align * align + header->params[i]->bytes;
    }
    return bytes <= limit ||
           ptx_fail(parser, "the kernel's parameters take more than %u bytes", (unsigned)limit);
}

static bool returns_check(struct ptx_parser *parser, const struct ptx_function *header)
{
    for (uint32_t i = 0; i < header->n_returns; i++) {
        if (header->n_returns > 1 && header->returns[i]->space == PTX_SPACE_PARAM)
            return ptx_fail(parser, "a function returns one .param, or several .reg");
    }
    return true;
}

/* From the name on: parameters and directives. */
static bool header_read(struct ptx_parser *parser, struct ptx_function *header, struct ptx_function **out)
{
    struct ptx_name *name;
    if (!header->entry && ptx_is(parser, '(') &&
        !ptx_parse_params(parser, true, &header->returns, &header->n_returns))
        return false;
    if (!ptx_expect_name(parser, "a function's name", &name))
        return false;
    parser->depth--; /* the parameters' scope is the body's; the function's own name belongs outside */
    struct ptx_function *function = function_declare(parser, name, header->entry);
    parser->depth++;
    if (!function)
        return false;
    parser->function = *out = function;
    parser->reads_entry = header->entry;
    bool good = !ptx_is(parser, '(') || ptx_parse_params(parser, true, &header->params, &header->n_params);
    parser->reads_entry = false;
    return good && directives_read(parser, header) &&
           (header->entry ? parameter_space_check(parser, header) : returns_check(parser, header));
}

static void header_keep(struct ptx_function *function, const struct ptx_function *header,
                        enum ptx_linkage linkage, uint32_t line)
{
    if (!function->line || linkage != PTX_LINK_NONE)
        function->linkage = linkage;
    function->params = header->params;
    function->n_params = header->n_params;
    function->returns = header->returns;
    function->n_returns = header->n_returns;
    function->directives = header->directives;
    function->line = line;
    for (uint32_t i = 0; i < function->n_params; i++)
        function->params[i]->function = function;
    for (uint32_t i = 0; i < function->n_returns; i++)
        function->returns[i]->function = function;
}

/* After .entry or .func, up to the body's end or the prototype's semicolon. */
bool ptx_parse_function(struct ptx_parser *parser, enum ptx_linkage linkage, bool entry)
{
    uint32_t line = parser->token.line;
    struct ptx_function header = {.entry = entry}, *function = NULL;
    parser->regs.count = parser->insns.count = parser->vars.count = parser->labels.count =
        parser->tables.count = 0;
    parser->nested_ranges = 0;
    parser->loc = 0;
    parser->function = NULL;
    if (linkage == PTX_LINK_COMMON)
        return ptx_fail(parser, ".common is for .global variables only");
    if (!entry && ptx_accept_dot(parser, ".attribute")) {
        bool managed = false;
        if (!ptx_parse_attribute(parser, &managed))
            return false;
        if (managed)
            return ptx_fail(parser, ".managed is for variables");
    }
    if (!ptx_scope_open(parser) || !header_read(parser, &header, &function))
        return false;
    bool body = ptx_is(parser, '{');
    if (body && linkage == PTX_LINK_EXTERN)
        return ptx_fail(parser, "an .extern function has no body");
    if (function->line && !redeclaration_check(parser, function, &header, linkage))
        return false;
    if (body || !function->defined) /* else the declaration of another module, linked after the definition */
        header_keep(function, &header, linkage, line);
    if (body) {
        function->defined = true;
        parser->in_body = true;
        parser->braces = 0;
        ptx_next(parser);
        bool good = ptx_parse_body(parser);
        if (!good)
            return false;
        if (ptx_scope_close(parser))
            labels_check(parser);
        parser->in_body = false;
        if (parser->failed || !function_finish(parser, function))
            return false;
        parser->function = NULL;
        return ptx_expect(parser, '}', "at the end of the function");
    }
    ptx_scope_close(parser);
    parser->function = NULL;
    if (ptx_is(parser, ';') && entry && header.directives.has_any)
        return ptx_fail(parser, "directives stand at a kernel's body, not at its declaration");
    return ptx_expect(parser, ';', "after the function's header, or its body in braces");
}

/* .alias a, b; (PTX ISA 9.0, 11.8 ".alias") */
struct alias {
    struct ptx_function *alias, *target;
};

static bool alias_check(struct ptx_parser *parser, const struct ptx_function *alias,
                        const struct ptx_function *target)
{
    const struct alias *others = parser->aliases.items;
    bool is_alias = false;
    for (size_t i = 0; i < parser->aliases.count; i++) {
        if (others[i].alias == alias)
            return ptx_fail(parser, "'%s' is already an alias", alias->name);
        is_alias |= others[i].alias == target;
    }
    if (alias->entry || target->entry)
        return ptx_fail(parser, "a kernel has no alias");
    if (alias == target)
        return ptx_fail(parser, "'%s' cannot be an alias of itself", alias->name);
    if (alias->defined)
        return ptx_fail(parser, "function '%s' is already defined", alias->name);
    if (target->linkage == PTX_LINK_EXTERN)
        return ptx_fail(parser, "'%s' is .extern and has no alias", target->name);
    if (target->linkage == PTX_LINK_WEAK)
        return ptx_fail(parser, "'%s' is .weak and has no alias", target->name);
    if (!target->defined && !is_alias)
        return ptx_fail(parser, "'%s' is not defined yet", target->name);
    if (alias->directives.noreturn != target->directives.noreturn)
        return ptx_fail(parser, "one of '%s' and '%s' is .noreturn", alias->name, target->name);
    if (!headers_agree(alias, target))
        return ptx_fail(parser, "'%s' and '%s' have different parameters", alias->name, target->name);
    return true;
}

bool ptx_parse_alias(struct ptx_parser *parser)
{
    if (!ptx_needs(parser, PTX_FEATURE_ALIAS))
        return false;
    struct ptx_function *functions[2];
    for (unsigned i = 0; i < 2; i++) {
        struct ptx_name *name;
        if ((i && !ptx_expect(parser, ',', "in .alias")) ||
            !ptx_expect_name(parser, "a function's name", &name))
            return false;
        if (!name->binding || name->binding->kind != PTX_BIND_FUNCTION)
            return ptx_fail(parser, "'%s' is not a declared function", name->text);
        functions[i] = name->binding->function;
    }
    if (!alias_check(parser, functions[0], functions[1]))
        return false;
    struct alias *kept = ptx_list_add(parser, &parser->aliases, sizeof *kept);
    if (!kept)
        return false;
    *kept = (struct alias){functions[0], functions[1]};
    return ptx_expect(parser, ';', "after .alias");
}

/* At the end: a function that is only declared must be .extern. */
bool ptx_all_defined(struct ptx_parser *parser)
{
    struct ptx_function *const *functions = parser->module_functions.items;
    for (size_t i = 0; i < parser->module_functions.count; i++)
        if (!functions[i]->defined && functions[i]->linkage != PTX_LINK_EXTERN)
            return ptx_fail_at(parser, functions[i]->line, 1, NULL,
                               "'%s' is declared, but neither defined nor .extern", functions[i]->name);
    return true;
}

/* At the end, when every body is known: an alias shares its target's. */
void ptx_aliases_apply(struct ptx_parser *parser)
{
    const struct alias *aliases = parser->aliases.items;
    for (size_t i = 0; i < parser->aliases.count; i++) {
        struct ptx_function *alias = aliases[i].alias, *target = aliases[i].target;
        if (alias->defined || !target->defined)
            continue;
        struct ptx_function copy = *target;
        copy.name = alias->name;
        copy.index = alias->index;
        copy.linkage = alias->linkage;
        copy.alias = target;
        *alias = copy;
    }
}
