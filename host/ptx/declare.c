/* Declarations (PTX ISA 9.0, 5.2 "Types", 5.4 "Variables", 6.2 and 7.1 parameters): registers, variables with
   alignment, vectors, dimensions and attributes, parameters of functions and prototypes. Left out:
   module-scope .reg and .local (the ABI has none), .tex variables of PTX 1.x. */
#include <string.h>

#include "ptx/parser.h"

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
    const enum ptx_type_class class = ptx_types[*out].class;
    if ((*out == PTX_B128 && !ptx_needs(parser, PTX_FEATURE_B128)) ||
        (*out == PTX_F16X2 && !ptx_needs(parser, PTX_FEATURE_F16X2)) ||
        (class == PTX_CLASS_OPAQUE && !ptx_needs(parser, PTX_FEATURE_OPAQUE)))
        return false;
    if (!type_declarable(*out, memory))
        return ptx_fail(parser, "a %s cannot have type .%s", memory ? "variable" : "register",
                        ptx_types[*out].text);
    ptx_next(parser);
    return true;
}

static uint8_t accept_vector(struct ptx_parser *parser)
{
    return ptx_accept_dot(parser, ".v2") ? 2 : ptx_accept_dot(parser, ".v4") ? 4 : 1;
}

static bool align_read(struct ptx_parser *parser, uint32_t *out)
{
    if (!ptx_number_u32(parser, 1u << 20, out))
        return false;
    if (*out == 0 || (*out & (*out - 1)) != 0)
        return ptx_fail(parser, "an alignment must be a power of two");
    return true;
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

/* After .reg: {.align n}{.vN}.type. The alignment is read and dropped. */
static bool register_type(struct ptx_parser *parser, struct declaration *out)
{
    uint32_t ignored;
    *out = (struct declaration){.vector = 1};
    if (ptx_accept_dot(parser, ".align") && !align_read(parser, &ignored))
        return false;
    out->vector = accept_vector(parser);
    if (!expect_type(parser, false, &out->type))
        return false;
    if (out->vector > 1 && (out->type == PTX_PRED || out->vector * ptx_types[out->type].bits > 128))
        return ptx_fail(parser, "a vector register has at most 128 bits and no predicates");
    return true;
}

bool ptx_parse_registers(struct ptx_parser *parser)
{
    struct declaration declaration;
    if (!register_type(parser, &declaration))
        return false;
    if (ptx_accept(parser, ';')) /* none at all: ptxas 13.0 takes it */
        return true;
    do {
        struct ptx_name *name;
        uint32_t count = 0;
        bool range = false;
        if (!ptx_expect_name(parser, "a register's name", &name))
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
        if (!ptx_reg_declare(parser, name, declaration.type, declaration.vector, range, count))
            return false;
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after the registers");
}

/* .attribute(.managed), .attribute(.unified(a, b)) */
bool ptx_parse_attribute(struct ptx_parser *parser, bool *out_managed)
{
    if (!ptx_needs(parser, PTX_FEATURE_ATTRIBUTE) || !ptx_expect(parser, '(', "after .attribute"))
        return false;
    do {
        if (ptx_accept_dot(parser, ".managed")) {
            *out_managed = true;
        } else if (ptx_accept_dot(parser, ".unified")) {
            struct ptx_value id;
            if (!ptx_needs(parser, PTX_FEATURE_UNIFIED) || !ptx_expect(parser, '(', "after .unified") ||
                !ptx_constant(parser, &id) || !ptx_expect(parser, ',', "in .unified") ||
                !ptx_constant(parser, &id) || !ptx_expect(parser, ')', "after .unified"))
                return false;
        } else {
            return ptx_fail(parser, "unknown attribute");
        }
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ')', "after the attributes");
}

/* .ptr{.space}{.align n}, after .ptr (PTX ISA 9.0, 7.1 ".ptr"). */
static bool pointer_read(struct ptx_parser *parser, struct declaration *out)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{".global", PTX_SPACE_GLOBAL},
                  {".const", PTX_SPACE_CONST},
                  {".shared", PTX_SPACE_SHARED},
                  {".local", PTX_SPACE_LOCAL}};
    out->ptr = true;
    out->ptr_align = 4;
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0] && !out->ptr_space; i++)
        if (ptx_accept_dot(parser, spaces[i].word))
            out->ptr_space = spaces[i].space;
    return !ptx_accept_dot(parser, ".align") || align_read(parser, &out->ptr_align);
}

/* {.attribute(…)}{.align n}{.vN}.type{.ptr …}: attributes and alignments in any order. A parameter has no
   attribute, and its alignment may follow the type; .ptr is for parameters of kernels. */
static bool declaration_read(struct ptx_parser *parser, bool param, struct declaration *out)
{
    *out = (struct declaration){.vector = 1};
    for (;;) {
        if (ptx_accept_dot(parser, ".align")) {
            if (!align_read(parser, &out->align_bytes))
                return false;
        } else if (!param && ptx_accept_dot(parser, ".attribute")) {
            if (!ptx_parse_attribute(parser, &out->managed))
                return false;
        } else {
            break;
        }
    }
    out->vector = accept_vector(parser);
    if (!expect_type(parser, true, &out->type))
        return false;
    if (out->vector > 1 && ptx_types[out->type].bits * out->vector > 128)
        return ptx_fail(parser, "a vector has at most 128 bits");
    if (!param)
        return true;
    if (ptx_accept_dot(parser, ".align") && !align_read(parser, &out->align_bytes))
        return false;
    if (ptx_types[out->type].class == PTX_CLASS_PACKED ||
        (ptx_types[out->type].class == PTX_CLASS_OPAQUE && !parser->reads_entry))
        return ptx_fail(parser, "a parameter cannot have type .%s", ptx_types[out->type].text);
    if (!ptx_accept_dot(parser, ".ptr"))
        return true;
    if (parser->reads_entry)
        return ptx_needs(parser, PTX_FEATURE_PTR) && pointer_read(parser, out);
    return ptx_fail(parser, ".ptr is for parameters of kernels");
}

/* [n][m]…: the bytes of the whole, `dims` filled; an empty first dimension makes it unsized. */
static bool dimensions_read(struct ptx_parser *parser, struct ptx_var *var, uint64_t *dims, unsigned *n_dims)
{
    uint64_t bytes = (uint64_t)ptx_types[var->type].bits / 8 * var->vector;
    *n_dims = 0;
    while (ptx_accept(parser, '[')) {
        struct ptx_value value = {0};
        if (*n_dims >= PTX_MAX_DIMENSIONS)
            return ptx_fail(parser, "more than %d dimensions", PTX_MAX_DIMENSIONS);
        var->is_array = true;
        if (ptx_is(parser, ']')) {
            if (*n_dims > 0)
                return ptx_fail(parser, "only the first dimension can be left open");
            var->is_unsized = true;
        } else {
            if (parser->token.kind != PTX_TOKEN_INT)
                return ptx_fail(parser, "expected the number of elements");
            value.bits = parser->token.value;
            ptx_next(parser);
            if (value.bits == 0 && *n_dims > 0)
                return ptx_fail(parser, "an inner dimension must be positive");
            if (value.bits && bytes > (UINT64_C(1) << 62) / value.bits)
                return ptx_fail(parser, "'%s' is too large", var->name);
            bytes *= value.bits ? value.bits : 1;
            if (value.bits == 0)
                var->is_unsized = true; /* [0]: like an open one */
        }
        var->shape = (var->shape ^ (*n_dims ? (uint32_t)value.bits : 1)) * 16777619u;
        dims[(*n_dims)++] = value.bits;
        if (!ptx_expect(parser, ']', "after the dimension"))
            return false;
    }
    var->bytes = var->is_unsized ? 0 : bytes;
    return true;
}

static struct ptx_var *var_new(struct ptx_parser *parser, const struct declaration *declaration,
                               enum ptx_space space, enum ptx_linkage linkage, struct ptx_name *name)
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

/* The second declaration of a module variable (.extern before its definition): the binding stays, its
   variable takes the definition. */
static bool var_again(struct ptx_parser *parser, struct ptx_var *old, const struct ptx_var *new)
{
    if (old->space != new->space || old->type != new->type || old->vector != new->vector ||
        old->is_array != new->is_array || old->shape != new->shape ||
        (!old->is_unsized && !new->is_unsized && old->bytes != new->bytes))
        return ptx_fail(parser, "'%s' was declared before with another type", old->name);
    bool old_declares = old->linkage == PTX_LINK_EXTERN, new_declares = new->linkage == PTX_LINK_EXTERN;
    if (!old_declares && !new_declares)
        return ptx_fail(parser, "'%s' is already defined", old->name);
    if (new_declares)
        return true;
    if (new->linkage == PTX_LINK_NONE && !parser->linked)
        return ptx_fail(parser, "'%s' was declared .extern and needs .visible, .weak or .common", old->name);
    uint32_t index = old->index;
    *old = *new;
    old->index = index;
    return true;
}

/* Only an array of them may stand without .target texmode_independent (ptxas 13.0). */
static bool sampler_check(struct ptx_parser *parser, const struct ptx_var *var)
{
    return var->type != PTX_SAMPLERREF || var->is_array || parser->module->target.texmode_independent ||
           ptx_fail(parser, "a .samplerref needs .target texmode_independent");
}

/* After the state space. */
bool ptx_parse_variables(struct ptx_parser *parser, enum ptx_space space, enum ptx_linkage linkage)
{
    struct declaration declaration;
    if (!declaration_read(parser, false, &declaration))
        return false;
    bool opaque = ptx_types[declaration.type].class == PTX_CLASS_OPAQUE;
    if (opaque && (space != PTX_SPACE_GLOBAL || parser->depth))
        return ptx_fail(parser, "a .%s is declared in .global at module level",
                        ptx_types[declaration.type].text);
    if (space != PTX_SPACE_GLOBAL && (declaration.managed || linkage == PTX_LINK_COMMON))
        return ptx_fail(parser, "%s is for .global variables only",
                        declaration.managed ? ".attribute(.managed)" : ".common");
    do {
        struct ptx_name *name;
        uint64_t dims[PTX_MAX_DIMENSIONS];
        unsigned n_dims;
        if (!ptx_expect_name(parser, "a variable's name", &name))
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
        if (space == PTX_SPACE_PARAM && n_dims == 0 &&
            (declaration.vector > 1 || ptx_types[declaration.type].class == PTX_CLASS_PACKED))
            return ptx_fail(parser, "a parameter is neither a vector nor packed, unless it is an array");
        if (!sampler_check(parser, var))
            return false;
        bool again = name->binding && name->binding->depth == parser->depth &&
                     name->binding->kind == PTX_BIND_VAR && parser->depth == 0;
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
    if (in_register && parser->reads_entry)
        return ptx_fail(parser, "a kernel's parameter is declared .param, not .reg");
    if (!in_register && !parser->reads_entry && !ptx_needs(parser, PTX_FEATURE_PARAM))
        return false;
    ptx_next(parser);
    if (in_register ? !register_type(parser, &declaration) : !declaration_read(parser, true, &declaration))
        return false;
    if (!ptx_expect_name(parser, "a parameter's name", &name))
        return false;
    struct ptx_var *var =
        var_new(parser, &declaration, in_register ? PTX_SPACE_REG : PTX_SPACE_PARAM, PTX_LINK_NONE, name);
    struct ptx_var **kept = var ? ptx_list_add(parser, list, sizeof *kept) : NULL;
    if (!kept)
        return false;
    *kept = var;
    uint64_t dims[PTX_MAX_DIMENSIONS];
    unsigned n_dims;
    if (!dimensions_read(parser, var, dims, &n_dims))
        return false;
    if (!sampler_check(parser, var))
        return false;
    if (n_dims > 1)
        return ptx_fail(parser, "a parameter has at most one dimension");
    if (in_register && n_dims > 0)
        return ptx_fail(parser, "a register is no array");
    if (!in_register && declaration.vector > 1 && n_dims == 0)
        return ptx_fail(parser, "a parameter is no vector");
    if (var->is_unsized && !parser->reads_entry && !ptx_needs(parser, PTX_FEATURE_UNSIZED_PARAM))
        return false;
    if (var->is_unsized && parser->reads_entry)
        return ptx_fail(parser, "a kernel's parameter must have a size");
    if (list->count > 1 && ((struct ptx_var **)list->items)[list->count - 2]->is_unsized)
        return ptx_fail(parser, "only the last parameter may be left open");
    var->index = (uint32_t)(list->count - 1);
    if (!bind)
        return true;
    var->function = parser->function;
    if (declaration.vector > 1 && in_register) {
        if (!ptx_reg_declare(parser, name, declaration.type, declaration.vector, false, 0))
            return false;
        var->reg = name->binding->reg;
        return true;
    }
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
    bool more = !ptx_is(parser, ')');
    while (more) {
        if (!param_read(parser, bind, &list))
            return false;
        more = ptx_accept(parser, ',');
    }
    if (!ptx_expect(parser, ')', "after the parameters"))
        return false;
    *out_count = (uint32_t)list.count;
    *out_vars = ptx_list_copy(parser, &list, sizeof **out_vars);
    return !parser->failed;
}
