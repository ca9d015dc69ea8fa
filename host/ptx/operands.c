/* Operands (PTX ISA 9.0, chapter 6 "Instruction Operands"): registers and their members, special registers,
   constants, addresses, vectors, pairs, and the lists of a call. A name that is not declared is taken for a
   label, to be resolved when its scope closes, and reported at once where no label can stand. */
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
        struct ptx_value offset;
        if (!ptx_constant(parser, &offset))
            return false;
        if (offset.is_float)
            return ptx_fail(parser, "an offset must be an integer");
        out->imm += offset.bits;
    }
    return true;
}

/* sym[index], where an address in brackets does not stand already. */
static bool index_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    struct ptx_value index;
    if (!out->var->is_array)
        return ptx_fail(parser, "'%s' is no array", out->var->name);
    ptx_next(parser);
    if (!ptx_constant(parser, &index))
        return false;
    if (index.is_float)
        return ptx_fail(parser, "an index must be an integer");
    if (!ptx_expect(parser, ']', "after the index"))
        return false;
    out->is_indexed = true;
    out->imm = index.bits * (ptx_types[out->var->type].bits / 8u) * out->var->vector;
    return true;
}

static bool name_read(struct ptx_parser *parser, struct ptx_operand *out)
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
            if (ptx_sregs[sreg].components > 1)
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
        if (parser->token.kind == PTX_TOKEN_DOT) {
            out->component = member_accept(parser, &out->imm);
            if (out->component < PTX_SELECT_B0 || out->component == PTX_COMPONENT_NONE)
                return ptx_fail(parser, "'%s' is no vector and has no such member", name->text);
        }
        return true;
    case PTX_BIND_VECTOR: {
        uint8_t member = member_accept(parser, NULL);
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
        return symbol_offset(parser, out);
    case PTX_BIND_FUNCTION:
        out->kind = PTX_OPERAND_SYMBOL;
        out->func = binding->function;
        return symbol_offset(parser, out);
    case PTX_BIND_RANGE:
        break;
    }
    return ptx_undeclared(parser, name);
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
        good = name_read(parser, &base);
        good = good && no_label(parser, &base);
        if (good && (base.kind == PTX_OPERAND_SINK || base.kind == PTX_OPERAND_SREG))
            good = ptx_fail(parser, "an address starts with a register, a variable or a number");
        if (good && base.func)
            good = ptx_fail(parser, "'%s' is a function", base.func->name);
        if (good && base.kind == PTX_OPERAND_SYMBOL) {
            out->imm = base.imm;
            base.imm = 0;
        } else if (good && ptx_is(parser, '+')) {
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
    if (!binding || (binding->depth && binding->depth == parser->depth))
        return ptx_parse_operand(parser, out);
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
        if (ptx_is(parser, '[') && out->kind == PTX_OPERAND_SYMBOL && out->var && out->imm == 0)
            return index_read(parser, out);
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

/* --- calls */

static bool list_or_nothing(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.kind = PTX_OPERAND_LIST, .component = PTX_COMPONENT_NONE};
    if (!ptx_accept(parser, '('))
        return true;
    return elements_read(parser, ')', out);
}

/* Bytes of a parameter or of what is passed for it; 0 when it cannot be told (a literal). */
uint64_t ptx_passed_bytes(const struct ptx_parser *parser, const struct ptx_operand *operand)
{
    const struct ptx_reg *regs = parser->regs.items;
    if (operand->kind == PTX_OPERAND_REG)
        return ptx_types[regs[operand->reg].type].bits / 8u;
    if (operand->kind == PTX_OPERAND_SYMBOL && operand->var && operand->var->space == PTX_SPACE_PARAM)
        return operand->var->bytes;
    return 0;
}

/* May it stand in the lists of a call: a register, a constant, or a .param variable of the body? */
static bool can_be_passed(struct ptx_parser *parser, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_REG)
        return !operand->negated || ptx_fail(parser, "an argument cannot be negated");
    if (operand->kind == PTX_OPERAND_INT || operand->kind == PTX_OPERAND_FLOAT ||
        operand->kind == PTX_OPERAND_SINK)
        return true;
    const struct ptx_function *function = parser->function;
    const struct ptx_var *var = operand->kind == PTX_OPERAND_SYMBOL ? operand->var : NULL;
    bool own = var && (var->function != function || var->index >= function->n_params ||
                       function->params[var->index] != var);
    if (own && var->space == PTX_SPACE_PARAM)
        return true;
    return ptx_fail(parser, "an argument is a register, a constant or a .param variable of this body");
}

/* Does a list of a call fit the declared parameters (or returns)? */
static bool list_fits(struct ptx_parser *parser, const struct ptx_operand *list,
                      struct ptx_var *const *params, uint32_t count, const char *what)
{
    if (list->n_elements != count)
        return ptx_fail(parser, "the call has %u %s, the function %u", (unsigned)list->n_elements, what,
                        (unsigned)count);
    for (uint32_t i = 0; i < count; i++) {
        if (!can_be_passed(parser, &list->elements[i]))
            return false;
        uint64_t bytes = ptx_passed_bytes(parser, &list->elements[i]);
        if (bytes && !params[i]->is_unsized && bytes != params[i]->bytes)
            return ptx_fail(parser, "%s %u: %llu bytes are passed, '%s' has %llu", what, (unsigned)i + 1,
                            (unsigned long long)bytes, params[i]->name, (unsigned long long)params[i]->bytes);
    }
    return true;
}

static bool call_fits(struct ptx_parser *parser, const struct ptx_operand operands[3],
                      struct ptx_var *const *params, uint32_t n_params, struct ptx_var *const *returns,
                      uint32_t n_returns)
{
    bool variadic = n_params > 0 && params[n_params - 1]->is_unsized; /* the last one stands for any number */
    return list_fits(parser, &operands[0], returns, n_returns, "returned values") &&
           (variadic || list_fits(parser, &operands[2], params, n_params, "arguments"));
}

/* call without a table: a function, whose header is known. */
static bool direct_call_fits(struct ptx_parser *parser, const struct ptx_operand operands[3])
{
    const struct ptx_function *callee = operands[1].func;
    if (operands[1].kind != PTX_OPERAND_FUNCTION)
        return ptx_fail(parser, "an indirect call needs a .callprototype or .calltargets list");
    if (callee->entry)
        return ptx_fail(parser, "'%s' is a kernel: only a function can be called", callee->name);
    return call_fits(parser, operands, callee->params, callee->n_params, callee->returns, callee->n_returns);
}

/* call{.uni} {(ret), }func{, (args)}{, table}: always LIST, FUNCTION or REG, LIST, and LABEL when there is a
 * table. */
bool ptx_parse_call(struct ptx_parser *parser, struct ptx_insn *insn)
{
    struct ptx_operand *operands = clab_arena_array(parser->arena, 4, sizeof *operands);
    if (!operands)
        return ptx_no_memory(parser);
    insn->operands = operands;
    insn->n_operands = 3;
    if (!list_or_nothing(parser, &operands[0]))
        return false;
    if (operands[0].elements && !ptx_expect(parser, ',', "after the returned values"))
        return false;
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected the function to call");
    operands[1] = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
    if (!name)
        return false;
    if (!ptx_lookup(parser, name))
        return !parser->failed && ptx_undeclared(parser, name);
    if (!name_read(parser, &operands[1]))
        return false;
    if (operands[1].kind == PTX_OPERAND_SYMBOL && operands[1].func && operands[1].imm == 0)
        operands[1].kind = PTX_OPERAND_FUNCTION;
    if (operands[1].kind != PTX_OPERAND_FUNCTION && operands[1].kind != PTX_OPERAND_REG)
        return ptx_fail(parser, "'%s' is neither a function nor a register", name->text);
    operands[2] = (struct ptx_operand){.kind = PTX_OPERAND_LIST, .component = PTX_COMPONENT_NONE};
    if (!ptx_accept(parser, ','))
        return direct_call_fits(parser, operands);
    if (ptx_is(parser, '(')) {
        if (!list_or_nothing(parser, &operands[2]))
            return false;
        if (!ptx_accept(parser, ','))
            return direct_call_fits(parser, operands);
    }
    if (!ptx_table_declared(parser) || !ptx_parse_operand(parser, &operands[3]))
        return false;
    if (operands[1].kind == PTX_OPERAND_FUNCTION)
        return ptx_fail(parser, "a function called by name takes no list of targets or prototype");
    if (operands[3].kind != PTX_OPERAND_LABEL)
        return ptx_fail(parser, "expected the name of a .callprototype or .calltargets list");
    insn->n_operands = 4;
    return true;
}
