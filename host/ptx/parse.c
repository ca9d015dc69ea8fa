/* Modules (PTX ISA 9.0, chapters 4 and 11): the directives outside function bodies, function headers, and the
   public entry points. Debug sections are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ptx/parser.h"

/* --- functions */

static bool triple_read(struct ptx_parser *parser, uint32_t out[3])
{
    out[0] = out[1] = out[2] = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (!ptx_constant_u32(parser, INT32_MAX, &out[i]))
            return false;
        if (!ptx_accept(parser, ','))
            break;
    }
    return true;
}

/* Performance and cluster directives between a function's header and its body (PTX ISA 9.0, 11.4, 11.7). */
static bool directives_read(struct ptx_parser *parser, struct ptx_function *function)
{
    struct ptx_directives *d = &function->directives;
    uint32_t ignored;
    while (parser->token.kind == PTX_TOKEN_DOT) {
        if (ptx_accept_dot(parser, ".maxntid")) {
            d->has_maxntid = true;
            if (!triple_read(parser, d->maxntid))
                return false;
        } else if (ptx_accept_dot(parser, ".reqntid")) {
            d->has_reqntid = true;
            if (!triple_read(parser, d->reqntid))
                return false;
        } else if (ptx_accept_dot(parser, ".reqnctapercluster")) {
            d->has_reqnctapercluster = true;
            if (!triple_read(parser, d->reqnctapercluster))
                return false;
        } else if (ptx_accept_dot(parser, ".explicitcluster")) {
            d->explicitcluster = true;
        } else if (ptx_accept_dot(parser, ".blocksareclusters")) {
            d->blocksareclusters = true;
        } else if (ptx_accept_dot(parser, ".noreturn")) {
            d->noreturn = true;
        } else if (ptx_accept_dot(parser, ".minnctapersm")) {
            if (!ptx_constant_u32(parser, INT32_MAX, &d->minnctapersm))
                return false;
        } else if (ptx_accept_dot(parser, ".maxnctapersm")) {
            if (!ptx_constant_u32(parser, INT32_MAX, &d->maxnctapersm))
                return false;
        } else if (ptx_accept_dot(parser, ".maxnreg")) {
            if (!ptx_constant_u32(parser, INT32_MAX, &d->maxnreg))
                return false;
        } else if (ptx_accept_dot(parser, ".maxclusterrank")) {
            if (!ptx_constant_u32(parser, INT32_MAX, &d->maxclusterrank))
                return false;
        } else if (ptx_accept_dot(parser, ".abi_preserve") ||
                   ptx_accept_dot(parser, ".abi_preserve_control")) {
            if (!ptx_constant_u32(parser, 65535, &ignored))
                return false;
        } else if (ptx_accept_dot(parser, ".pragma")) {
            if (!ptx_parse_pragma(parser))
                return false;
        } else if (ptx_accept_dot(parser, ".attribute")) {
            bool unused;
            if (!ptx_parse_attribute(parser, &unused))
                return false;
        } else {
            return ptx_fail(parser, "unknown directive of a function");
        }
    }
    if (d->has_reqnctapercluster && d->maxclusterrank)
        return ptx_fail(parser, ".reqnctapercluster and .maxclusterrank contradict each other");
    if (d->has_reqntid && d->has_maxntid)
        return ptx_fail(parser, ".reqntid and .maxntid contradict each other");
    if (d->blocksareclusters && (!d->has_reqntid || !d->has_reqnctapercluster))
        return ptx_fail(parser, ".blocksareclusters needs .reqntid and .reqnctapercluster");
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
        const struct ptx_function *first =
            table->kind == PTX_TABLE_CALL && table->count ? table->functions[0] : NULL;
        uint32_t n_params = first ? first->n_params : table->n_params;
        uint32_t n_returns = first ? first->n_returns : table->n_returns;
        if (insn->operands[0].n_elements != n_returns || insn->operands[2].n_elements != n_params)
            return ptx_fail_at(parser, insn->line, insn->column, source,
                               "the call has %u arguments and %u returned values, '%s' %u and %u",
                               (unsigned)insn->operands[2].n_elements, (unsigned)insn->operands[0].n_elements,
                               table->name, (unsigned)n_params, (unsigned)n_returns);
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

/* After .entry or .func, up to the body's end or the prototype's semicolon. */
static bool function_read(struct ptx_parser *parser, enum ptx_linkage linkage, bool entry)
{
    struct ptx_name *name;
    uint32_t line = parser->token.line;
    struct ptx_function header = {.entry = entry};
    parser->regs.count = parser->insns.count = parser->vars.count = parser->labels.count =
        parser->tables.count = 0;
    parser->nested_ranges = 0;
    parser->loc = 0;
    parser->function = NULL;
    if (ptx_accept_dot(parser, ".attribute")) {
        bool unused;
        if (!ptx_parse_attribute(parser, &unused))
            return false;
    }
    /* The parameters' scope is the body's; the function's own name belongs outside. */
    if (!ptx_scope_open(parser))
        return false;
    if (!entry && ptx_is(parser, '(') && !ptx_parse_params(parser, true, &header.returns, &header.n_returns))
        return false;
    if (!ptx_expect_name(parser, "a function's name", &name))
        return false;
    parser->depth--;
    struct ptx_function *function = function_declare(parser, name, entry);
    parser->depth++;
    if (!function)
        return false;
    parser->function = function;
    if (ptx_is(parser, '(') && !ptx_parse_params(parser, true, &header.params, &header.n_params))
        return false;
    if (!directives_read(parser, &header))
        return false;
    bool body = ptx_is(parser, '{');
    if (body && function->defined)
        return ptx_fail(parser, "function '%s' is already defined", function->name);
    if (body || !function->defined) {
        function->params = header.params;
        function->n_params = header.n_params;
        function->returns = header.returns;
        function->n_returns = header.n_returns;
        function->directives = header.directives;
        function->line = line;
        function->linkage = linkage;
        for (uint32_t i = 0; i < function->n_params; i++)
            function->params[i]->function = function;
        for (uint32_t i = 0; i < function->n_returns; i++)
            function->returns[i]->function = function;
    }
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
    ptx_accept(parser, ';');
    return !parser->failed;
}

/* .alias a, b; */
struct alias {
    struct ptx_function *alias, *target;
};

static bool alias_read(struct ptx_parser *parser)
{
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
    struct alias *kept = ptx_list_add(parser, &parser->aliases, sizeof *kept);
    if (!kept)
        return false;
    *kept = (struct alias){functions[0], functions[1]};
    return ptx_expect(parser, ';', "after .alias");
}

/* At the end, when every body is known: an alias shares its target's. */
static void aliases_apply(struct ptx_parser *parser)
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

/* --- other directives */

bool ptx_parse_file(struct ptx_parser *parser)
{
    enum { MOST = 1 << 16 };
    uint32_t index, ignored;
    if (!ptx_constant_u32(parser, MOST, &index))
        return false;
    if (parser->token.kind != PTX_TOKEN_STRING)
        return ptx_fail(parser, "expected the file's name in quotes");
    struct ptx_module *module = parser->module;
    if (index >= parser->n_files) {
        uint32_t capacity = parser->n_files ? parser->n_files : 16;
        while (capacity <= index)
            capacity *= 2;
        const char **files = clab_arena_array(parser->arena, capacity, sizeof *files);
        if (!files)
            return ptx_no_memory(parser);
        if (module->n_files)
            memcpy(files, module->files, module->n_files * sizeof *files);
        module->files = files;
        parser->n_files = capacity;
    }
    if (index >= module->n_files)
        module->n_files = index + 1;
    char *name = clab_arena_strndup(parser->arena, parser->token.text + 1, parser->token.bytes - 2);
    if (!name)
        return ptx_no_memory(parser);
    clab_unescape(name);
    module->files[index] = name;
    ptx_next(parser);
    while (ptx_accept(parser, ',')) { /* time stamp, size */
        struct ptx_value value;
        if (!ptx_constant(parser, &value))
            return false;
    }
    (void)ignored;
    ptx_accept(parser, ';');
    return true;
}

/* .loc file line column{, function_name label{+offset}{, inlined_at file line column}} */
bool ptx_parse_loc(struct ptx_parser *parser)
{
    struct ptx_loc loc;
    if (!ptx_constant_u32(parser, UINT32_MAX, &loc.file) ||
        !ptx_constant_u32(parser, UINT32_MAX, &loc.line) ||
        !ptx_constant_u32(parser, UINT32_MAX, &loc.column))
        return false;
    while (ptx_accept(parser, ',')) {
        struct ptx_name *word, *label;
        struct ptx_value value;
        if (!ptx_expect_name(parser, "function_name or inlined_at", &word))
            return false;
        if (strcmp(word->text, "function_name") == 0) {
            if (!ptx_expect_name(parser, "a label", &label))
                return false;
            if (ptx_accept(parser, '+') && !ptx_constant(parser, &value))
                return false;
        } else if (strcmp(word->text, "inlined_at") == 0) {
            for (unsigned i = 0; i < 3; i++)
                if (!ptx_constant(parser, &value))
                    return false;
        } else {
            return ptx_fail(parser, "expected function_name or inlined_at");
        }
    }
    ptx_accept(parser, ';');
    struct ptx_loc *kept = ptx_list_add(parser, &parser->module_locs, sizeof *kept);
    if (!kept)
        return false;
    *kept = loc;
    parser->loc = (uint32_t)parser->module_locs.count;
    return true;
}

bool ptx_parse_pragma(struct ptx_parser *parser)
{
    do {
        if (parser->token.kind != PTX_TOKEN_STRING)
            return ptx_fail(parser, "expected the pragma in quotes");
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after .pragma");
}

/* .section name { … }: debug data, skipped. */
bool ptx_parse_section(struct ptx_parser *parser)
{
    while (!ptx_is(parser, '{')) {
        if (parser->token.kind == PTX_TOKEN_END)
            return ptx_fail(parser, "expected '{' after .section");
        ptx_next(parser);
    }
    while (!ptx_is(parser, '}')) {
        if (parser->token.kind == PTX_TOKEN_END)
            return ptx_fail(parser, "expected '}' at the end of the section");
        ptx_next(parser);
    }
    ptx_next(parser);
    return true;
}

static bool version_read(struct ptx_parser *parser)
{
    /* 9.0 is lexed as a decimal number: read its text, not its value */
    const struct ptx_token *token = &parser->token;
    unsigned major = 0, minor = 0;
    uint32_t i = 0;
    for (; i < token->bytes && token->text[i] >= '0' && token->text[i] <= '9' && major < 100; i++)
        major = major * 10 + (unsigned)(token->text[i] - '0');
    bool good = i > 0 && i + 2 == token->bytes && token->text[i] == '.' && token->text[i + 1] >= '0' &&
                token->text[i + 1] <= '9';
    if (token->kind != PTX_TOKEN_FLOAT || !good)
        return ptx_fail(parser, "expected a version such as 9.0");
    minor = (unsigned)(token->text[i + 1] - '0');
    parser->module->version = (uint16_t)(major * 10 + minor);
    parser->has_version = true;
    if (parser->options && parser->options->max_version &&
        parser->module->version > parser->options->max_version) {
        ptx_fail(parser, "unsupported .version %u.%u; the newest one accepted is %u.%u", major, minor,
                 parser->options->max_version / 10, parser->options->max_version % 10);
        if (parser->error)
            parser->error->status = CLAB_LOAD;
        return false;
    }
    ptx_next(parser);
    return true;
}

static bool target_read(struct ptx_parser *parser)
{
    struct ptx_target *target = &parser->module->target;
    bool has_sm = false;
    do {
        const struct ptx_token *token = &parser->token;
        if (token->kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected a target such as sm_90");
        struct ptx_target read;
        if (!has_sm && ptx_target_parse(token->text, token->bytes, &read)) {
            target->sm = read.sm;
            target->suffix = read.suffix;
            has_sm = true;
        } else if (ptx_is_name(parser, "debug")) {
            target->debug = true;
        } else if (ptx_is_name(parser, "texmode_independent")) {
            target->texmode_independent = true;
        } else if (!ptx_is_name(parser, "texmode_unified") && !ptx_is_name(parser, "map_f64_to_f32")) {
            return ptx_fail(parser, "'%.*s' is not a target", (int)(token->bytes < 40 ? token->bytes : 40),
                            token->text);
        }
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    if (!has_sm)
        return ptx_fail(parser, ".target names no architecture");
    parser->has_target = true;
    uint16_t least = ptx_target_isa(*target);
    char suffix[2] = {target->suffix, 0};
    if (least == 0)
        return ptx_fail(parser, "'sm_%u%s' is not a target", target->sm, suffix);
    if (parser->module->version < least && !(parser->options && parser->options->any_target)) {
        ptx_fail(parser, "PTX .version %u.%u does not support .target sm_%u%s, which needs %u.%u",
                 parser->module->version / 10, parser->module->version % 10, target->sm, suffix, least / 10,
                 least % 10);
        if (parser->error)
            parser->error->status = CLAB_PTX_TARGET;
        return false;
    }
    return true;
}

static bool linkage_read(struct ptx_parser *parser, enum ptx_linkage *out)
{
    static const struct {
        const char *word;
        enum ptx_linkage linkage;
    } words[] = {{".extern", PTX_LINK_EXTERN},
                 {".visible", PTX_LINK_VISIBLE},
                 {".weak", PTX_LINK_WEAK},
                 {".common", PTX_LINK_COMMON}};
    *out = PTX_LINK_NONE;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (ptx_accept_dot(parser, words[i].word)) {
            *out = words[i].linkage;
            return true;
        }
    }
    return false;
}

static bool module_directive(struct ptx_parser *parser)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{".global", PTX_SPACE_GLOBAL},
                  {".const", PTX_SPACE_CONST},
                  {".shared", PTX_SPACE_SHARED},
                  {".shared::cta", PTX_SPACE_SHARED}};
    enum ptx_linkage linkage;
    if (ptx_accept_dot(parser, ".version"))
        return version_read(parser);
    if (!parser->has_version)
        return ptx_fail(parser, "expected .version first");
    if (ptx_accept_dot(parser, ".target"))
        return target_read(parser);
    if (!parser->has_target)
        return ptx_fail(parser, "expected .target after .version");
    if (ptx_accept_dot(parser, ".address_size")) {
        uint32_t size;
        if (!ptx_constant_u32(parser, 64, &size))
            return false;
        if (size != 32 && size != 64)
            return ptx_fail(parser, "an address size is 32 or 64");
        if (size == 32 && parser->module->target.sm >= 90) /* as ptxas 13.0 refuses it */
            return ptx_fail(parser, "32-bit addresses are not supported on sm_90 or higher");
        parser->module->address_size = (uint8_t)size;
        return true;
    }
    if (ptx_accept_dot(parser, ".file"))
        return ptx_parse_file(parser);
    if (ptx_accept_dot(parser, ".section"))
        return ptx_parse_section(parser);
    if (ptx_accept_dot(parser, ".pragma"))
        return ptx_parse_pragma(parser);
    if (ptx_accept_dot(parser, ".loc"))
        return ptx_parse_loc(parser);
    if (ptx_accept_dot(parser, ".alias"))
        return alias_read(parser);
    linkage_read(parser, &linkage);
    if (ptx_accept_dot(parser, ".entry"))
        return function_read(parser, linkage, true);
    if (ptx_accept_dot(parser, ".func"))
        return function_read(parser, linkage, false);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_accept_dot(parser, spaces[i].word))
            return ptx_parse_variables(parser, spaces[i].space, linkage);
    return ptx_fail(parser, "expected a directive such as .entry, .func or .global");
}

static bool module_read(struct ptx_parser *parser)
{
    ptx_next(parser);
    while (parser->token.kind != PTX_TOKEN_END) {
        if (ptx_accept(parser, ';'))
            continue;
        if (!module_directive(parser))
            return false;
    }
    if (!parser->has_version)
        return ptx_fail(parser, "expected .version first");
    if (!parser->has_target)
        return ptx_fail(parser, "expected .target after .version");
    aliases_apply(parser);
    struct ptx_module *module = parser->module;
    module->n_vars = (uint32_t)parser->module_vars.count;
    module->n_functions = (uint32_t)parser->module_functions.count;
    module->n_locs = (uint32_t)parser->module_locs.count;
    module->vars = ptx_list_copy(parser, &parser->module_vars, sizeof *module->vars);
    module->functions = ptx_list_copy(parser, &parser->module_functions, sizeof *module->functions);
    module->locs = ptx_list_copy(parser, &parser->module_locs, sizeof *module->locs);
    return !parser->failed;
}

/* --- public */

clab_status ptx_parse(const char *text, size_t bytes, const char *name,
                      const struct ptx_parse_options *options, struct ptx_module **out_module,
                      struct clab_error *error)
{
    struct clab_error own = {0};
    struct clab_error *record = error ? error : &own;
    *out_module = NULL;
    clab_error_clear(record);
    if (bytes && text[bytes - 1] == 0)
        bytes--;
    if (bytes > UINT32_MAX / 2)
        return clab_error_set(record, CLAB_PTX_SYNTAX, "the PTX text is larger than 2 GiB");
    struct ptx_module *module = calloc(1, sizeof *module);
    if (!module)
        return clab_error_set(record, CLAB_NO_MEMORY, "out of memory while reading '%s'", name);
    struct ptx_parser parser = {
        .module = module, .arena = &module->arena, .error = record, .options = options};
    if (options) {
        module->arena.limit_bytes = options->limit_bytes;
        parser.scratch.limit_bytes = options->limit_bytes;
    }
    module->address_size = 64; /* without .address_size: what ptxas 13.0 assumes (the manual says 32) */
    module->text_bytes = bytes;
    module->name = clab_arena_strdup(&module->arena, name ? name : "ptx");
    char *copy = clab_arena_strndup(&module->arena, text, bytes);
    module->text = copy;
    clab_status status = CLAB_OK;
    const struct ptx_forms *forms = ptx_forms_get();
    if (!module->name || !copy || !forms) {
        status =
            clab_error_set(record, CLAB_NO_MEMORY, "out of memory while reading '%s'", name ? name : "ptx");
    } else if (forms->fault) {
        status = clab_error_set(record, CLAB_INTERNAL, "insn.def: row %s cannot be read", forms->fault);
    } else {
        ptx_lexer_init(&parser.lexer, module->text, bytes);
        if (!module_read(&parser) || parser.failed)
            status = record->status != CLAB_OK
                         ? record->status
                         : clab_error_set(record, CLAB_INTERNAL, "'%s' could not be read", module->name);
        ptx_lexer_fini(&parser.lexer);
    }
    clab_arena_free(&parser.scratch);
    if (status != CLAB_OK) {
        ptx_module_free(module);
        clab_error_clear(&own);
        return status;
    }
    *out_module = module;
    return CLAB_OK;
}

void ptx_module_free(struct ptx_module *module)
{
    if (!module)
        return;
    clab_arena_free(&module->arena);
    free(module);
}

struct ptx_function *ptx_function_get(const struct ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->n_functions; i++)
        if (strcmp(module->functions[i]->name, name) == 0)
            return module->functions[i];
    return NULL;
}

void ptx_insn_text(const struct ptx_module *module, const struct ptx_insn *insn, char *out_text, size_t size)
{
    size_t used = 0;
    const char *at = module->text + insn->text_offset, *end = at + insn->text_bytes;
    bool space = false;
    for (; at < end && used + 1 < size; at++) {
        if (at[0] == '/' && at + 1 < end && at[1] == '/') {
            while (at + 1 < end && at[1] != '\n')
                at++;
            space = true;
        } else if (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') {
            space = true;
        } else {
            if (space && used && used + 2 < size)
                out_text[used++] = ' ';
            space = false;
            out_text[used++] = *at;
        }
    }
    if (size)
        out_text[used] = 0;
}
