/* Operands (PTX ISA 9.0, chapter 6 "Instruction Operands"): registers and their members, special registers,
   constants, addresses, vectors, pairs, elements of arrays. A name that is not declared is taken for a label,
   to be resolved when its scope closes, and reported at once where no label can stand. Calls: call.c. */
#include <string.h>

#include "ptx/parser.h"

enum { MAX_OPERANDS = 300 }; /* the longest list is tcgen05's x128 vector and its few companions */

bool ptx_undeclared(struct ptx_parser *parser, const struct ptx_name *name)
{
    const char *near = ptx_nearest_declared(parser, name);
    return near ? ptx_fail(parser, "'%s' is not declared; did you mean '%s'?", name->text, near)
                : ptx_fail(parser, "'%s' is not declared", name->text);
}

/* A name that was taken for a label, where no label can be: it is an undeclared register or variable. */
static bool no_label(struct ptx_parser *parser, const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OPERAND_LABEL)
        return true;
    const struct ptx_pending *use = parser->scopes[parser->depth].pending;
    const char *near = ptx_nearest_declared(parser, use->name);
    if (near)
        return ptx_fail_at(parser, use->line, use->column, use->source,
                           "'%s' is not declared; did you mean '%s'?", use->name->text, near);
    return ptx_fail_at(parser, use->line, use->column, use->source, "'%s' is not declared", use->name->text);
}

static struct ptx_operand *elements_of(struct ptx_parser *parser, size_t first)
{
    const struct ptx_operand *items = parser->operands.items;
    size_t count = parser->operands.count - first;
    struct ptx_operand *copy = clab_arena_array(parser->arena, count ? count : 1, sizeof *copy);
    if (!copy) {
        ptx_no_memory(parser);
        return NULL;
    }
    if (count)
        memcpy(copy, items + first, count * sizeof *copy);
    parser->operands.count = first;
    return copy;
}

/* Operands between brackets of some kind, `close` included, as `out`'s elements. */
static bool elements_read(struct ptx_parser *parser, int close, struct ptx_operand *out)
{
    size_t first = parser->operands.count;
    if (parser->nesting >= PTX_MAX_NESTING)
        return ptx_fail(parser, "operands are nested too deeply");
    parser->nesting++;
    bool good = true, more = !ptx_is(parser, close);
    while (more) {
        struct ptx_operand operand;
        good = parser->operands.count - first < MAX_OPERANDS || ptx_fail(parser, "too many operands");
        good = good && ptx_parse_operand(parser, &operand) && no_label(parser, &operand);
        if (good && operand.is_sum)
            good = ptx_fail(parser, "an address with an offset cannot be part of a list");
        struct ptx_operand *kept = good ? ptx_list_add(parser, &parser->operands, sizeof *kept) : NULL;
        good = kept != NULL;
        if (good)
            *kept = operand;
        more = good && ptx_accept(parser, ',');
    }
    parser->nesting--;
    if (!good) {
        parser->operands.count = first;
        return false;
    }
    out->n_elements = (uint32_t)(parser->operands.count - first);
    out->elements = elements_of(parser, first);
    return out->elements && ptx_expect(parser, close, "after the list");
}

static bool vector_register(struct ptx_parser *parser, const struct ptx_binding *binding,
                            struct ptx_operand *out)
{
    out->kind = PTX_OPERAND_VECTOR;
    out->n_elements = binding->lanes;
    out->elements = clab_arena_array(parser->arena, binding->lanes, sizeof *out->elements);
    if (!out->elements)
        return ptx_no_memory(parser);
    for (uint32_t i = 0; i < binding->lanes; i++)
        out->elements[i] = (struct ptx_operand){
            .kind = PTX_OPERAND_REG, .component = PTX_COMPONENT_NONE, .reg = binding->reg + i};
    return true;
}

/* .h10, .b3210: PTX_SELECT_HALVES, PTX_SELECT_BYTES. */
static uint8_t digits_accept(struct ptx_parser *parser, uint64_t *out_digits)
{
    const struct ptx_token *token = &parser->token;
    if (!out_digits || token->bytes < 4 || token->bytes > 6 ||
        (token->text[1] != 'h' && token->text[1] != 'b'))
        return PTX_COMPONENT_NONE;
    uint64_t digits = 0;
    for (size_t i = 2; i < token->bytes; i++) {
        if (token->text[i] < '0' || token->text[i] > '7')
            return PTX_COMPONENT_NONE;
        digits = digits << 4 | (uint64_t)(token->text[i] - '0');
    }
    *out_digits = digits | (uint64_t)(token->bytes - 2) << 16;
    const uint8_t component = token->text[1] == 'h' ? PTX_SELECT_HALVES : PTX_SELECT_BYTES;
    ptx_next(parser);
    return component;
}

/* .x .y .z .w (.r .g .b .a): 0 to 3; .b0 … .h1: PTX_SELECT_*; PTX_COMPONENT_NONE when the next token is
 * neither. */
static uint8_t member_accept(struct ptx_parser *parser, uint64_t *out_digits)
{
    static const char *const members[] = {".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a"};
    static const char *const selectors[] = {".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    if (parser->token.kind != PTX_TOKEN_DOT)
        return PTX_COMPONENT_NONE;
    for (unsigned i = 0; i < 8; i++)
        if (ptx_accept_dot(parser, members[i]))
            return (uint8_t)(i & 3);
    for (unsigned i = 0; i < 6; i++)
        if (ptx_accept_dot(parser, selectors[i]))
            return (uint8_t)(PTX_SELECT_B0 + i);
    return digits_accept(parser, out_digits);
}

/* What follows a variable used as a value: + offset (ptxas knows no -: a negative one is `+-4`). */
static bool symbol_offset(struct ptx_parser *parser, struct ptx_operand *out)
{
    while (ptx_accept(parser, '+')) {
        out->is_sum = true;
        struct ptx_value offset;
        if (!ptx_constant(parser, &offset))
            return false;
        if (offset.is_float)
            return ptx_fail(parser, "an offset must be an integer");
        out->imm += offset.bits;
    }
    return true;
}

/* `plain`: where neither a member nor an offset may follow. */
static bool name_base(struct ptx_parser *parser, struct ptx_operand *out, bool plain)
{
    const struct ptx_token *token = &parser->token;
    if (token->bytes == 1 && token->text[0] == '_') {
        out->kind = PTX_OPERAND_SINK;
        ptx_next(parser);
        return true;
    }
    struct ptx_name *name = ptx_intern(parser, token->text, token->bytes);
    if (!name)
        return false;
    struct ptx_binding *binding = ptx_lookup(parser, name);
    if (parser->failed)
        return false;
    if (!binding) {
        if (name->text[0] == '%') {
            enum ptx_sreg sreg = ptx_sreg_get(parser, name);
            if (sreg == PTX_SREG_COUNT)
                return ptx_undeclared(parser, name);
            const struct ptx_sreg_info *info = &ptx_sregs[sreg];
            const struct ptx_module *module = parser->module;
            if (module->target.sm < info->sm)
                return ptx_fail(parser, "special register '%s' requires .target sm_%u or higher", info->text,
                                info->sm);
            if (module->version < info->isa)
                return ptx_fail(parser, "special register '%s' requires PTX ISA .version %u.%u or later",
                                info->text, info->isa / 10, info->isa % 10);
            out->kind = PTX_OPERAND_SREG;
            out->sreg = sreg;
            ptx_next(parser);
            if (ptx_sregs[sreg].components > 1 && !plain)
                out->component = member_accept(parser, NULL);
            return true;
        }
        if (ptx_is_name(parser, "WARP_SZ"))
            return ptx_undeclared(parser,
                                  name); /* operand_read takes it as a constant; here it has no place */
        out->kind = PTX_OPERAND_LABEL;   /* resolved, or reported, when the scope closes */
        out->func = NULL;
        out->elements = NULL;
        if (!ptx_label_use(parser, name, out, NULL))
            return false;
        ptx_next(parser);
        return true;
    }
    ptx_next(parser);
    switch (binding->kind) {
    case PTX_BIND_REG:
        out->kind = PTX_OPERAND_REG;
        out->reg = binding->reg;
        if (parser->token.kind == PTX_TOKEN_DOT && !plain) {
            out->component = member_accept(parser, &out->imm);
            if (out->component < PTX_SELECT_B0 || out->component == PTX_COMPONENT_NONE)
                return ptx_fail(parser, "'%s' is no vector and has no such member", name->text);
        }
        return true;
    case PTX_BIND_VECTOR: {
        uint8_t member = plain ? PTX_COMPONENT_NONE : member_accept(parser, NULL);
        if (member == PTX_COMPONENT_NONE)
            return vector_register(parser, binding, out);
        if (member >= binding->lanes)
            return ptx_fail(parser, "'%s' has %u members", name->text, binding->lanes);
        out->kind = PTX_OPERAND_REG;
        out->reg = binding->reg + member;
        return true;
    }
    case PTX_BIND_VAR:
        if (binding->var->space == PTX_SPACE_REG) {
            out->kind = PTX_OPERAND_REG;
            out->reg = binding->var->reg;
            return true;
        }
        out->kind = PTX_OPERAND_SYMBOL;
        out->var = binding->var;
        return plain || symbol_offset(parser, out);
    case PTX_BIND_FUNCTION:
        out->kind = PTX_OPERAND_SYMBOL;
        out->func = binding->function;
        return plain || symbol_offset(parser, out);
    case PTX_BIND_RANGE:
        break;
    }
    return ptx_undeclared(parser, name);
}

static bool name_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    return name_base(parser, out, false);
}

/* What may index an array besides a constant: a register, a special register, or (as ptxas 13.0 takes it) the
   address of a variable. */
static bool index_operand(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    if (!name_base(parser, out, true) || !no_label(parser, out))
        return false;
    if (out->kind != PTX_OPERAND_REG && out->kind != PTX_OPERAND_SREG && !out->var)
        return ptx_fail(parser, "an index is a constant, a register or a variable");
    if (out->kind == PTX_OPERAND_SREG && ptx_sregs[out->sreg].components > 1)
        return ptx_fail(parser, "a special register with members is no index");
    if (out->kind == PTX_OPERAND_REG) {
        const struct ptx_reg *regs = parser->regs.items;
        const struct ptx_type_info *type = &ptx_types[regs[out->reg].type];
        if (type->bits < 8 || type->bits > 64 || type->class == PTX_CLASS_FLOAT ||
            type->class == PTX_CLASS_PACKED)
            return ptx_fail(parser, "an index register must be an integer or .b register of 8 to 64 bits");
    }
    return symbol_offset(parser, out);
}

bool ptx_parse_index(struct ptx_parser *parser, struct ptx_operand *out)
{
    if (!out->var || !out->var->is_array)
        return ptx_fail(parser, "'%s' is no array", out->var ? out->var->name : out->func->name);
    if (out->imm)
        return ptx_fail(parser, "an index follows the array's name");
    ptx_next(parser);
    if (parser->token.kind == PTX_TOKEN_NAME && !ptx_is_name(parser, "WARP_SZ")) {
        struct ptx_operand *index = clab_arena_alloc(parser->arena, sizeof *index);
        if (!index)
            return ptx_no_memory(parser);
        if (!index_operand(parser, index))
            return false;
        out->kind = PTX_OPERAND_INDEXED;
        if (index->kind != PTX_OPERAND_SYMBOL) {
            out->imm = index->imm;
            index->imm = 0;
        }
        out->elements = index;
        out->n_elements = 1;
        return ptx_expect(parser, ']', "after the index");
    }
    struct ptx_value index;
    if (!ptx_constant(parser, &index))
        return false;
    if (index.is_float)
        return ptx_fail(parser, "an index must be an integer");
    out->is_indexed = true;
    out->imm = (uint64_t)(int32_t)((uint32_t)index.bits * (ptx_types[out->var->type].bits / 8u));
    return ptx_expect(parser, ']', "after the index");
}

/* After '[': a base, an offset, and for tensors and textures more elements. */
static bool address_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    size_t first = parser->operands.count;
    struct ptx_operand base = {.component = PTX_COMPONENT_NONE};
    out->kind = PTX_OPERAND_ADDRESS;
    parser->braces++; /* only so that recovery does not stop inside */
    bool good;
    if (parser->token.kind == PTX_TOKEN_NAME && !ptx_is_name(parser, "WARP_SZ")) {
        good = name_base(parser, &base, true);
        good = good && no_label(parser, &base);
        const bool members = base.kind == PTX_OPERAND_SREG && ptx_sregs[base.sreg].components > 1;
        if (good && (base.kind == PTX_OPERAND_SINK || base.kind == PTX_OPERAND_VECTOR || members))
            good = ptx_fail(parser, "an address starts with a register, a variable or a number");
        if (good && base.func)
            good = ptx_fail(parser, "'%s' is a function", base.func->name);
        if (good && ptx_is(parser, '+')) {
            struct ptx_operand sum = {.imm = 0};
            good = symbol_offset(parser, &sum);
            out->imm = sum.imm;
        }
    } else {
        struct ptx_value value;
        good = ptx_constant(parser, &value);
        if (good && value.is_float)
            good = ptx_fail(parser, "an address must be an integer");
        base.kind = PTX_OPERAND_INT;
        base.imm = value.bits;
    }
    struct ptx_operand *kept = good ? ptx_list_add(parser, &parser->operands, sizeof *kept) : NULL;
    good = kept != NULL;
    if (good)
        *kept = base;
    while (good && ptx_accept(parser, ',')) {
        struct ptx_operand more;
        good = parser->operands.count - first < 8 || ptx_fail(parser, "too many parts in the address");
        good = good && ptx_parse_operand(parser, &more) && no_label(parser, &more);
        kept = good ? ptx_list_add(parser, &parser->operands, sizeof *kept) : NULL;
        good = kept != NULL;
        if (good)
            *kept = more;
    }
    good = good && ptx_expect(parser, ']', "after the address");
    parser->braces--;
    if (!good) {
        parser->operands.count = first;
        return false;
    }
    out->n_elements = (uint32_t)(parser->operands.count - first);
    out->elements = elements_of(parser, first);
    return out->elements != NULL;
}

static bool constant_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    struct ptx_value value;
    if (!ptx_constant(parser, &value))
        return false;
    out->kind = value.is_float ? PTX_OPERAND_FLOAT : PTX_OPERAND_INT;
    out->imm = value.bits;
    out->is_f32_bits = value.is_f32_bits;
    out->is_exact = value.is_exact;
    out->is_unsigned = value.is_unsigned;
    return true;
}

bool ptx_parse_plain(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    if (parser->token.kind == PTX_TOKEN_NAME && !ptx_is_name(parser, "WARP_SZ"))
        return name_base(parser, out, true) && no_label(parser, out);
    return constant_read(parser, out);
}

static bool pair_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    struct ptx_operand *pair = clab_arena_array(parser->arena, 2, sizeof *pair);
    if (!pair)
        return ptx_no_memory(parser);
    pair[0] = *out;
    pair[1] = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    ptx_next(parser);
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected a register after '|'");
    if (!no_label(parser, &pair[0]) || !name_read(parser, &pair[1]) || !no_label(parser, &pair[1]))
        return false;
    *out = (struct ptx_operand){
        .kind = PTX_OPERAND_PAIR, .component = PTX_COMPONENT_NONE, .elements = pair, .n_elements = 2};
    return true;
}

/* A list of targets or a prototype must stand before its use. */
bool ptx_table_declared(struct ptx_parser *parser)
{
    if (parser->token.kind != PTX_TOKEN_NAME)
        return true;
    const struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
    if (!name)
        return false;
    return name->binding || (name->label && name->label->table) ||
           ptx_fail(parser, "'%s' is not declared here as a list of targets or a prototype", name->text);
}

/* The target of bra. A label may have the name of something in an outer scope. */
bool ptx_parse_label(struct ptx_parser *parser, struct ptx_operand *out)
{
    struct ptx_name *name = NULL;
    if (parser->token.kind == PTX_TOKEN_NAME) {
        name = ptx_intern(parser, parser->token.text, parser->token.bytes);
        if (!name)
            return false;
    }
    const struct ptx_binding *binding = name ? ptx_lookup(parser, name) : NULL;
    if (parser->failed)
        return false;
    const bool known = name && name->label && !name->label->table;
    const bool percent = name && name->text[0] == '%' && ptx_sreg_get(parser, name) == PTX_SREG_COUNT;
    if (binding ? binding->depth && binding->depth == parser->depth : !known && !percent)
        return ptx_parse_operand(parser, out);
    if (binding && !name->label) /* ptxas takes it for the other thing as long as it knows no label */
        return ptx_fail(parser, "'%s' is no label yet, and the name of something else", name->text);
    *out = (struct ptx_operand){.kind = PTX_OPERAND_LABEL, .component = PTX_COMPONENT_NONE};
    if (!ptx_label_use(parser, name, out, NULL))
        return false;
    ptx_next(parser);
    return true;
}

bool ptx_parse_operand(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    const struct ptx_token *token = &parser->token;
    if (token->kind == PTX_TOKEN_NAME) {
        if (ptx_is_name(parser, "WARP_SZ"))
            return constant_read(parser, out);
        if (!name_read(parser, out))
            return false;
        if (ptx_is(parser, '|'))
            return pair_read(parser, out);
        return true;
    }
    if (token->kind == PTX_TOKEN_INT || token->kind == PTX_TOKEN_FLOAT)
        return constant_read(parser, out);
    if (token->kind == PTX_TOKEN_PUNCT) {
        switch (token->punct) {
        case '{': {
            ptx_next(parser);
            parser->braces++;
            out->kind = PTX_OPERAND_VECTOR;
            bool good = elements_read(parser, '}', out);
            for (uint32_t i = 0; good && i < out->n_elements; i++)
                if (out->elements[i].kind == PTX_OPERAND_VECTOR)
                    good = ptx_fail(parser, "a vector cannot be part of a vector");
            if (good)
                parser->braces--;
            return good && ptx_is(parser, '|') ? pair_read(parser, out) : good;
        }
        case '[':
            ptx_next(parser);
            return address_read(parser, out);
        case '!':
        case '-': {
            /* !p and -a before a register; else an operator of a constant */
            struct ptx_lexer saved = parser->lexer;
            struct ptx_token sign = *token;
            ptx_next(parser);
            if (parser->token.kind == PTX_TOKEN_NAME && !ptx_is_name(parser, "WARP_SZ")) {
                bool good = name_read(parser, out);
                good = good && no_label(parser, out);
                if (good && out->kind != PTX_OPERAND_REG && out->kind != PTX_OPERAND_SREG)
                    return ptx_fail(parser, "only a register can be negated");
                out->negated = true;
                return good;
            }
            void *locale = parser->lexer.locale;
            parser->lexer = saved;
            parser->lexer.locale = locale;
            parser->token = sign;
            return constant_read(parser, out);
        }
        case '(':
        case '+':
        case '~':
            return constant_read(parser, out);
        default:
            break;
        }
    }
    return ptx_fail(parser, "expected an operand");
}
