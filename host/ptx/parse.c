/* Modules (PTX ISA 9.0, chapters 4, 5.4 and 11): the directives outside function bodies, variables, registers, function
   headers, and the public entry points. Left out: module-scope .reg and .local (the ABI has none), .tex variables of
   PTX 1.x. Debug sections are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/parser.h"

/* --- failures and tokens */

static void source_line(const struct ptx_parser *parser, const char *source, struct clab_error *error)
{
    const char *text = parser->module->text, *end = text + parser->module->text_bytes;
    if (!source || source < text || source > end)
        return;
    const char *first = source, *last = source;
    while (first > text && first[-1] != '\n' && source - first < 200)
        first--;
    while (last < end && *last != '\n' && *last != '\r' && last - first < (long)sizeof error->source_line - 1)
        last++;
    snprintf(error->source_line, sizeof error->source_line, "%.*s", (int)(last - first), first);
}

/* Where the next failure is to be recorded; NULL: it is not the first of its function. */
static struct clab_error *failure(struct ptx_parser *parser)
{
    if (!parser->in_body) {
        if (parser->failed && parser->error && parser->error->status != CLAB_OK)
            return NULL;
        parser->failed = true;
        return parser->error;
    }
    struct ptx_function *function = parser->function;
    if (function->error)
        return NULL;
    function->error = clab_arena_alloc(parser->arena, sizeof *function->error);
    if (!function->error)
        ptx_no_memory(parser);
    return function->error;
}

static bool vfail(struct ptx_parser *parser, uint32_t line, uint32_t column, const char *source, const char *format,
                  va_list args)
{
    struct clab_error each = {0};
    struct clab_error *error = failure(parser);
    bool listened = parser->in_body && parser->options && parser->options->fault;
    if (!error && listened && !parser->failed)
        error = &each;
    if (!error)
        return false;
    clab_error_vset(error, CLAB_PTX_SYNTAX, format, args);
    clab_error_at(error, parser->module->name, line, column);
    source_line(parser, source, error);
    if (parser->in_body)
        snprintf(error->kernel, sizeof error->kernel, "%s", parser->function->name);
    if (listened)
        parser->options->fault(parser->options->fault_context, error);
    return false;
}

bool ptx_fail_at(struct ptx_parser *parser, uint32_t line, uint32_t column, const char *source, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfail(parser, line, column, source, format, args);
    va_end(args);
    return false;
}

bool ptx_fail(struct ptx_parser *parser, const char *format, ...)
{
    const struct ptx_token *token = &parser->token;
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (token->kind == PTX_TOKEN_BAD)
        return ptx_fail_at(parser, token->line, token->column, token->text, "%s", token->what);
    if (strncmp(text, "expected", 8) != 0)
        return ptx_fail_at(parser, token->line, token->column, token->text, "%s", text);
    if (token->kind == PTX_TOKEN_END)
        return ptx_fail_at(parser, token->line, token->column, token->text, "%s, found the end of the file", text);
    return ptx_fail_at(parser, token->line, token->column, token->text, "%s, found '%.*s'", text,
                       token->bytes < 60 ? (int)token->bytes : 60, token->text);
}

bool ptx_no_memory(struct ptx_parser *parser)
{
    parser->failed = true;
    parser->in_body = false;
    if (parser->error && parser->error->status != CLAB_NO_MEMORY)
        clab_error_set(parser->error, CLAB_NO_MEMORY, "out of memory while reading '%s'", parser->module->name);
    return false;
}

void ptx_next(struct ptx_parser *parser)
{
    ptx_lex(&parser->lexer, &parser->token);
}

bool ptx_is(const struct ptx_parser *parser, int punct)
{
    return parser->token.kind == PTX_TOKEN_PUNCT && parser->token.punct == punct;
}

bool ptx_accept(struct ptx_parser *parser, int punct)
{
    if (!ptx_is(parser, punct))
        return false;
    ptx_next(parser);
    return true;
}

bool ptx_expect(struct ptx_parser *parser, int punct, const char *where)
{
    return ptx_accept(parser, punct) || ptx_fail(parser, "expected '%c' %s", punct, where);
}

bool ptx_is_dot(const struct ptx_parser *parser, const char *word)
{
    const struct ptx_token *token = &parser->token;
    return token->kind == PTX_TOKEN_DOT && strncmp(word, token->text, token->bytes) == 0 && word[token->bytes] == 0;
}

bool ptx_accept_dot(struct ptx_parser *parser, const char *word)
{
    if (!ptx_is_dot(parser, word))
        return false;
    ptx_next(parser);
    return true;
}

static bool expect_name(struct ptx_parser *parser, const char *what, struct ptx_name **out)
{
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected %s", what);
    *out = ptx_intern(parser, parser->token.text, parser->token.bytes);
    if (*out)
        ptx_next(parser);
    return *out != NULL;
}

void *ptx_list_add(struct ptx_parser *parser, struct ptx_list *list, size_t size)
{
    if (list->count >= list->capacity) {
        void *grown = clab_arena_grow(&parser->scratch, list->items, list->count, &list->capacity, size);
        if (!grown) {
            ptx_no_memory(parser);
            return NULL;
        }
        list->items = grown;
    }
    void *item = (char *)list->items + list->count++ * size;
    memset(item, 0, size);
    return item;
}

void *ptx_list_copy(struct ptx_parser *parser, const struct ptx_list *list, size_t size)
{
    if (list->count == 0)
        return NULL;
    void *copy = clab_arena_array(parser->arena, list->count, size);
    if (!copy) {
        ptx_no_memory(parser);
        return NULL;
    }
    memcpy(copy, list->items, list->count * size);
    return copy;
}

/* --- types, registers, variables */

enum ptx_type ptx_type_of(const struct ptx_token *token)
{
    if (token->kind != PTX_TOKEN_DOT)
        return PTX_NONE;
    ptx_word word = ptx_word_get(token->text + 1, token->bytes - 1);
    return (word & PTX_WORD_KIND) == PTX_WORD_TYPE ? (enum ptx_type)ptx_word_index(word) : PTX_NONE;
}

/* May a register (or, with `memory`, a variable) have this type? (PTX ISA 9.0, 5.2 "Types") */
static bool type_declarable(enum ptx_type type, bool memory)
{
    const struct ptx_type_info *info = &ptx_types[type];
    if (type == PTX_PRED)
        return !memory;
    if (info->class == PTX_CLASS_OPAQUE)
        return memory;
    if (info->class == PTX_CLASS_PACKED)
        return type == PTX_F16X2;
    if (info->class == PTX_CLASS_FLOAT)
        return type == PTX_F16 || type == PTX_F32 || type == PTX_F64;
    return info->bits >= 8 && info->bits <= 128 && type != PTX_B4X16 && type != PTX_B4X16_P64 &&
           type != PTX_B6X16_P32 && type != PTX_B6P2X16;
}

static bool expect_type(struct ptx_parser *parser, bool memory, enum ptx_type *out)
{
    *out = ptx_type_of(&parser->token);
    if (*out == PTX_NONE)
        return ptx_fail(parser, "expected a type such as .b32");
    if (!type_declarable(*out, memory))
        return ptx_fail(parser, "a %s cannot have type .%s", memory ? "variable" : "register", ptx_types[*out].text);
    ptx_next(parser);
    return true;
}

static uint8_t accept_vector(struct ptx_parser *parser)
{
    return ptx_accept_dot(parser, ".v2") ? 2 : ptx_accept_dot(parser, ".v4") ? 4 : 1;
}

/* After .reg. */
bool ptx_parse_registers(struct ptx_parser *parser)
{
    unsigned lanes = accept_vector(parser);
    enum ptx_type type;
    if (!expect_type(parser, false, &type))
        return false;
    if (lanes > 1 && (type == PTX_PRED || lanes * ptx_types[type].bits > 128))
        return ptx_fail(parser, "a vector register has at most 128 bits and no predicates");
    do {
        struct ptx_name *name;
        uint32_t count = 0;
        bool range = false;
        if (!expect_name(parser, "a register's name", &name))
            return false;
        if (ptx_accept(parser, '<')) {
            range = true;
            if (parser->token.kind != PTX_TOKEN_INT || parser->token.value > UINT32_MAX)
                return ptx_fail(parser, "expected the number of registers");
            count = (uint32_t)parser->token.value;
            ptx_next(parser);
            if (!ptx_expect(parser, '>', "after the number of registers"))
                return false;
        }
        if (!ptx_reg_declare(parser, name, type, lanes, range, count))
            return false;
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after the registers");
}

struct declaration {
    enum ptx_type type;
    uint8_t vector;
    uint32_t align_bytes; /* 0 none given */
    bool ptr;
    enum ptx_space ptr_space;
    uint32_t ptr_align;
    bool managed;
};

static bool align_read(struct ptx_parser *parser, uint32_t *out)
{
    if (!ptx_constant_u32(parser, 1u << 20, out))
        return false;
    if (*out == 0 || (*out & (*out - 1)) != 0)
        return ptx_fail(parser, "an alignment must be a power of two");
    return true;
}

/* .attribute(.managed), .attribute(.unified(a, b)) */
static bool attribute_read(struct ptx_parser *parser, struct declaration *out)
{
    if (!ptx_expect(parser, '(', "after .attribute"))
        return false;
    do {
        if (ptx_accept_dot(parser, ".managed")) {
            out->managed = true;
        } else if (ptx_accept_dot(parser, ".unified")) {
            struct ptx_value id;
            if (!ptx_expect(parser, '(', "after .unified") || !ptx_constant(parser, &id) ||
                !ptx_expect(parser, ',', "in .unified") || !ptx_constant(parser, &id) ||
                !ptx_expect(parser, ')', "after .unified"))
                return false;
        } else {
            return ptx_fail(parser, "unknown attribute");
        }
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ')', "after the attributes");
}

/* Alignment, vector, type and .ptr in any order that has the type once. */
static bool declaration_read(struct ptx_parser *parser, bool param, struct declaration *out)
{
    *out = (struct declaration){.vector = 1};
    for (;;) {
        enum ptx_type type = ptx_type_of(&parser->token);
        if (ptx_accept_dot(parser, ".align")) {
            if (!align_read(parser, &out->align_bytes))
                return false;
        } else if (ptx_is_dot(parser, ".v2") || ptx_is_dot(parser, ".v4")) {
            out->vector = accept_vector(parser);
        } else if (ptx_accept_dot(parser, ".attribute")) {
            if (!attribute_read(parser, out))
                return false;
        } else if (param && ptx_accept_dot(parser, ".ptr")) {
            out->ptr = true;
            out->ptr_align = 4;
            if (ptx_accept_dot(parser, ".global"))
                out->ptr_space = PTX_SPACE_GLOBAL;
            else if (ptx_accept_dot(parser, ".const"))
                out->ptr_space = PTX_SPACE_CONST;
            else if (ptx_accept_dot(parser, ".shared"))
                out->ptr_space = PTX_SPACE_SHARED;
            else if (ptx_accept_dot(parser, ".local"))
                out->ptr_space = PTX_SPACE_LOCAL;
            if (ptx_accept_dot(parser, ".align") && !align_read(parser, &out->ptr_align))
                return false;
        } else if (type != PTX_NONE && out->type == PTX_NONE) {
            if (!expect_type(parser, true, &out->type))
                return false;
        } else {
            break;
        }
    }
    if (out->type == PTX_NONE)
        return ptx_fail(parser, "expected a type such as .b32");
    return true;
}

enum { MAX_DIMENSIONS = 4 };

/* [n][m]…: the bytes of the whole, `dims` filled; an empty first dimension makes it unsized. */
static bool dimensions_read(struct ptx_parser *parser, struct ptx_var *var, uint64_t *dims, unsigned *n_dims)
{
    uint64_t bytes = (uint64_t)ptx_types[var->type].bits / 8 * var->vector;
    *n_dims = 0;
    while (ptx_accept(parser, '[')) {
        struct ptx_value value = {0};
        if (*n_dims >= MAX_DIMENSIONS)
            return ptx_fail(parser, "more than %d dimensions", MAX_DIMENSIONS);
        var->is_array = true;
        if (ptx_is(parser, ']')) {
            if (*n_dims > 0)
                return ptx_fail(parser, "only the first dimension can be left open");
            var->is_unsized = true;
        } else {
            if (!ptx_constant(parser, &value))
                return false;
            if (value.is_float || (!value.is_unsigned && (int64_t)value.bits < 0))
                return ptx_fail(parser, "a dimension must be a non-negative integer");
            if (value.bits == 0 && *n_dims > 0)
                return ptx_fail(parser, "an inner dimension must be positive");
            if (value.bits && bytes > (UINT64_C(1) << 62) / value.bits)
                return ptx_fail(parser, "'%s' is too large", var->name);
            bytes *= value.bits ? value.bits : 1;
            if (value.bits == 0)
                var->is_unsized = true; /* [0]: like an open one */
        }
        dims[(*n_dims)++] = value.bits;
        if (!ptx_expect(parser, ']', "after the dimension"))
            return false;
    }
    var->bytes = var->is_unsized ? 0 : bytes;
    return true;
}

static struct ptx_var *var_new(struct ptx_parser *parser, const struct declaration *declaration, enum ptx_space space,
                               enum ptx_linkage linkage, struct ptx_name *name)
{
    struct ptx_var *var = clab_arena_alloc(parser->arena, sizeof *var);
    if (!var) {
        ptx_no_memory(parser);
        return NULL;
    }
    uint32_t natural = ptx_types[declaration->type].bits / 8u * declaration->vector;
    *var = (struct ptx_var){.name = name->text,
                            .space = space,
                            .linkage = linkage,
                            .type = declaration->type,
                            .vector = declaration->vector,
                            .align_bytes = declaration->align_bytes ? declaration->align_bytes : natural,
                            .ptr = declaration->ptr,
                            .ptr_space = declaration->ptr_space,
                            .ptr_align = declaration->ptr_align,
                            .is_managed = declaration->managed,
                            .line = parser->token.line};
    return var;
}

/* The list that a variable belongs to, its index there set. */
static bool var_keep(struct ptx_parser *parser, struct ptx_var *var)
{
    struct ptx_list *list = parser->depth ? &parser->vars : &parser->module_vars;
    struct ptx_var **kept = ptx_list_add(parser, list, sizeof *kept);
    if (!kept)
        return false;
    *kept = var;
    var->index = (uint32_t)(list->count - 1);
    var->function = parser->depth ? parser->function : NULL;
    return true;
}

/* The second declaration of a module variable (.extern before its definition): the binding stays, its variable takes
   the definition. */
static bool var_again(struct ptx_parser *parser, struct ptx_var *old, const struct ptx_var *new)
{
    if (old->space != new->space || old->type != new->type || old->vector != new->vector)
        return ptx_fail(parser, "'%s' was declared before with another type", old->name);
    bool old_declares = old->linkage == PTX_LINK_EXTERN, new_declares = new->linkage == PTX_LINK_EXTERN;
    if (!old_declares && !new_declares && old->linkage != PTX_LINK_WEAK && old->linkage != PTX_LINK_COMMON)
        return ptx_fail(parser, "'%s' is already defined", old->name);
    if (new_declares)
        return true;
    uint32_t index = old->index;
    *old = *new;
    old->index = index;
    return true;
}

/* After the state space. */
bool ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, enum ptx_linkage linkage)
{
    struct declaration declaration;
    if (!declaration_read(parser, false, &declaration))
        return false;
    do {
        struct ptx_name *name;
        uint64_t dims[MAX_DIMENSIONS];
        unsigned n_dims;
        if (!expect_name(parser, "a variable's name", &name))
            return false;
        struct ptx_var *var = var_new(parser, &declaration, space, linkage, name);
        if (!var)
            return false;
        if (ptx_is(parser, '<')) { /* .param .b32 p<3>: parametrised names */
            ptx_next(parser);
            uint32_t count = (uint32_t)parser->token.value;
            if (parser->token.kind != PTX_TOKEN_INT || parser->token.value > 4096)
                return ptx_fail(parser, "expected the number of variables, at most 4096");
            ptx_next(parser);
            if (!ptx_expect(parser, '>', "after the number of variables"))
                return false;
            for (uint32_t i = 0; i < count; i++) {
                const char *text = clab_arena_printf(parser->arena, "%s%u", name->text, (unsigned)i);
                struct ptx_name *each = text ? ptx_intern(parser, text, strlen(text)) : NULL;
                struct ptx_binding *binding = each ? ptx_bind(parser, each, PTX_BIND_VAR) : NULL;
                struct ptx_var *one = binding ? var_new(parser, &declaration, space, linkage, each) : NULL;
                if (!one)
                    return parser->failed ? false : ptx_fail(parser, "cannot declare '%s'", name->text);
                one->bytes = (uint64_t)ptx_types[one->type].bits / 8 * one->vector;
                binding->var = one;
                if (!var_keep(parser, one))
                    return false;
            }
            continue;
        }
        if (!dimensions_read(parser, var, dims, &n_dims))
            return false;
        bool again = name->binding && name->binding->depth == parser->depth && name->binding->kind == PTX_BIND_VAR &&
                     parser->depth == 0;
        struct ptx_binding *binding = again ? name->binding : ptx_bind(parser, name, PTX_BIND_VAR);
        if (!binding)
            return false;
        if (!again) {
            binding->var = var;
            if (!var_keep(parser, var))
                return false;
        }
        if (ptx_accept(parser, '=')) {
            if (linkage == PTX_LINK_EXTERN)
                return ptx_fail(parser, "an .extern variable cannot be initialised");
            if (!ptx_initialiser(parser, var, dims, n_dims))
                return false;
        } else if (var->is_unsized && linkage != PTX_LINK_EXTERN) {
            return ptx_fail(parser, "'%s' has no size: only .extern variables may leave it open", name->text);
        }
        if (again && !var_again(parser, binding->var, var))
            return false;
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after the variable");
}

/* One parameter: .param … name, or .reg .b32 name of an old-style .func. */
static bool param_read(struct ptx_parser *parser, bool bind, struct ptx_list *list)
{
    struct declaration declaration = {.vector = 1};
    struct ptx_name *name;
    bool in_register = ptx_is_dot(parser, ".reg");
    if (!in_register && !ptx_is_dot(parser, ".param"))
        return ptx_fail(parser, "expected .param or .reg");
    ptx_next(parser);
    if (in_register ? !expect_type(parser, false, &declaration.type) : !declaration_read(parser, true, &declaration))
        return false;
    if (!expect_name(parser, "a parameter's name", &name))
        return false;
    struct ptx_var *var =
        var_new(parser, &declaration, in_register ? PTX_SPACE_REG : PTX_SPACE_PARAM, PTX_LINK_NONE, name);
    struct ptx_var **kept = var ? ptx_list_add(parser, list, sizeof *kept) : NULL;
    if (!kept)
        return false;
    *kept = var;
    uint64_t dims[MAX_DIMENSIONS];
    unsigned n_dims;
    if (!dimensions_read(parser, var, dims, &n_dims))
        return false;
    var->index = (uint32_t)(list->count - 1);
    if (!bind)
        return true;
    var->function = parser->function;
    struct ptx_binding *binding = ptx_bind(parser, name, PTX_BIND_VAR);
    if (!binding)
        return false;
    binding->var = var;
    if (in_register)
        var->reg = ptx_reg_add(parser, name->text, declaration.type);
    return !parser->failed;
}

bool ptx_parse_params(struct ptx_parser *parser, bool bind, struct ptx_var ***out_vars, uint32_t *out_count)
{
    struct ptx_list list = {0};
    if (!ptx_expect(parser, '(', "before the parameters"))
        return false;
    while (!ptx_is(parser, ')')) {
        if (!param_read(parser, bind, &list))
            return false;
        if (!ptx_accept(parser, ','))
            break;
    }
    if (!ptx_expect(parser, ')', "after the parameters"))
        return false;
    *out_count = (uint32_t)list.count;
    *out_vars = ptx_list_copy(parser, &list, sizeof **out_vars);
    return !parser->failed;
}

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
        } else if (ptx_accept_dot(parser, ".abi_preserve") || ptx_accept_dot(parser, ".abi_preserve_control")) {
            if (!ptx_constant_u32(parser, 65535, &ignored))
                return false;
        } else if (ptx_accept_dot(parser, ".pragma")) {
            if (!ptx_parse_pragma(parser))
                return false;
        } else if (ptx_accept_dot(parser, ".attribute")) {
            struct declaration unused = {0};
            if (!attribute_read(parser, &unused))
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
    struct ptx_function **kept = function ? ptx_list_add(parser, &parser->module_functions, sizeof *kept) : NULL;
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
    parser->regs.count = parser->insns.count = parser->vars.count = parser->labels.count = parser->tables.count = 0;
    parser->nested_ranges = 0;
    parser->loc = 0;
    parser->function = NULL;
    if (ptx_accept_dot(parser, ".attribute")) {
        struct declaration unused = {0};
        if (!attribute_read(parser, &unused))
            return false;
    }
    /* The parameters' scope is the body's; the function's own name belongs outside. */
    if (!ptx_scope_open(parser))
        return false;
    if (!entry && ptx_is(parser, '(') && !ptx_parse_params(parser, true, &header.returns, &header.n_returns))
        return false;
    if (!expect_name(parser, "a function's name", &name))
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
        ptx_scope_close(parser);
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
        if ((i && !ptx_expect(parser, ',', "in .alias")) || !expect_name(parser, "a function's name", &name))
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
    module->files[index] = clab_arena_strndup(parser->arena, parser->token.text + 1, parser->token.bytes - 2);
    if (!module->files[index])
        return ptx_no_memory(parser);
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
    if (!ptx_constant_u32(parser, UINT32_MAX, &loc.file) || !ptx_constant_u32(parser, UINT32_MAX, &loc.line) ||
        !ptx_constant_u32(parser, UINT32_MAX, &loc.column))
        return false;
    while (ptx_accept(parser, ',')) {
        struct ptx_name *word, *label;
        struct ptx_value value;
        if (!expect_name(parser, "function_name or inlined_at", &word))
            return false;
        if (strcmp(word->text, "function_name") == 0) {
            if (!expect_name(parser, "a label", &label))
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
    if (parser->options && parser->options->max_version && parser->module->version > parser->options->max_version) {
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
        } else if (token->bytes == 5 && memcmp(token->text, "debug", 5) == 0) {
            target->debug = true;
        } else if (token->bytes == 19 && memcmp(token->text, "texmode_independent", 19) == 0) {
            target->texmode_independent = true;
        } else if (!(token->bytes == 15 && memcmp(token->text, "texmode_unified", 15) == 0) &&
                   !(token->bytes == 17 && memcmp(token->text, "map_f64_to_f32", 14) == 0) &&
                   !(token->bytes == 14 && memcmp(token->text, "map_f64_to_f32", 14) == 0)) {
            return ptx_fail(parser, "'%.*s' is not a target", (int)(token->bytes < 40 ? token->bytes : 40), token->text);
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
    if (parser->module->version < least) {
        ptx_fail(parser, "PTX .version %u.%u does not support .target sm_%u%s, which needs %u.%u",
                 parser->module->version / 10, parser->module->version % 10, target->sm, suffix, least / 10, least % 10);
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
    } words[] = {{".extern", PTX_LINK_EXTERN}, {".visible", PTX_LINK_VISIBLE}, {".weak", PTX_LINK_WEAK},
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
    } spaces[] = {{".global", PTX_SPACE_GLOBAL}, {".const", PTX_SPACE_CONST}, {".shared", PTX_SPACE_SHARED},
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

clab_status ptx_parse(const char *text, size_t bytes, const char *name, const struct ptx_parse_options *options,
                      struct ptx_module **out_module, struct clab_error *error)
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
    struct ptx_parser parser = {.module = module, .arena = &module->arena, .error = record, .options = options};
    if (options) {
        module->arena.limit_bytes = options->limit_bytes;
        parser.scratch.limit_bytes = options->limit_bytes;
    }
    module->address_size = 32; /* 11.1.3: the default */
    module->text_bytes = bytes;
    module->name = clab_arena_strdup(&module->arena, name ? name : "ptx");
    char *copy = clab_arena_strndup(&module->arena, text, bytes);
    module->text = copy;
    clab_status status = CLAB_OK;
    const struct ptx_forms *forms = ptx_forms_get();
    if (!module->name || !copy || !forms) {
        status = clab_error_set(record, CLAB_NO_MEMORY, "out of memory while reading '%s'", name ? name : "ptx");
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
