/* Statements of a function body (PTX ISA 9.0, 4.3 "Statements", chapter 6 "Instruction Operands"): labels, directives,
   nested scopes, guarded instructions and their operands. A statement that cannot be read is recorded in its function
   and skipped up to its semicolon; parsing goes on with the next one. */
#include <stdio.h>
#include <string.h>

#include "ptx/parser.h"

enum { MAX_OPERANDS = 300 }; /* the longest list is tcgen05's x128 vector and its few companions */

static bool operand_read(struct ptx_parser *parser, struct ptx_operand *out);

static bool undeclared(struct ptx_parser *parser, const struct ptx_name *name)
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
        return ptx_fail_at(parser, use->line, use->column, use->source, "'%s' is not declared; did you mean '%s'?",
                           use->name->text, near);
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
    bool good = true;
    while (good && !ptx_is(parser, close)) {
        struct ptx_operand operand;
        good = parser->operands.count - first < MAX_OPERANDS || ptx_fail(parser, "too many operands");
        good = good && operand_read(parser, &operand) && no_label(parser, &operand);
        struct ptx_operand *kept = good ? ptx_list_add(parser, &parser->operands, sizeof *kept) : NULL;
        good = kept != NULL;
        if (good)
            *kept = operand;
        if (!good || !ptx_accept(parser, ','))
            break;
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

static bool vector_register(struct ptx_parser *parser, const struct ptx_binding *binding, struct ptx_operand *out)
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

/* .x .y .z .w (.r .g .b .a): 0 to 3; .b0 … .h1: PTX_SELECT_*; PTX_COMPONENT_NONE when the next token is neither. */
static uint8_t member_accept(struct ptx_parser *parser)
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
    return PTX_COMPONENT_NONE;
}

/* What follows a variable used as a value: + offset (ptxas knows no -: a negative one is `+-4`), [index]. */
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
    if (out->var && ptx_accept(parser, '[')) {
        uint32_t index;
        if (!ptx_constant_u32(parser, UINT32_MAX, &index) || !ptx_expect(parser, ']', "after the index"))
            return false;
        out->is_indexed = true;
        out->imm += (uint64_t)index * ptx_types[out->var->type].bits / 8 * out->var->vector;
    }
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
                return undeclared(parser, name);
            const struct ptx_sreg_info *info = &ptx_sregs[sreg];
            const struct ptx_module *module = parser->module;
            if (module->target.sm < info->sm)
                return ptx_fail(parser, "special register '%s' requires .target sm_%u or higher", info->text, info->sm);
            if (module->version < info->isa)
                return ptx_fail(parser, "special register '%s' requires PTX ISA .version %u.%u or later", info->text,
                                info->isa / 10, info->isa % 10);
            out->kind = PTX_OPERAND_SREG;
            out->sreg = sreg;
            ptx_next(parser);
            if (ptx_sregs[sreg].components > 1)
                out->component = member_accept(parser);
            return true;
        }
        if (token->bytes == 7 && memcmp(token->text, "WARP_SZ", 7) == 0)
            return undeclared(parser, name); /* operand_read takes it as a constant; here it has no place */
        out->kind = PTX_OPERAND_LABEL; /* resolved, or reported, when the scope closes */
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
            out->component = member_accept(parser);
            if (out->component < PTX_SELECT_B0 || out->component == PTX_COMPONENT_NONE)
                return ptx_fail(parser, "'%s' is no vector and has no such member", name->text);
        }
        return true;
    case PTX_BIND_VECTOR: {
        uint8_t member = member_accept(parser);
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
    return undeclared(parser, name);
}

/* After '[': a base, an offset, and for tensors and textures more elements. */
static bool address_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    size_t first = parser->operands.count;
    struct ptx_operand base = {.component = PTX_COMPONENT_NONE};
    out->kind = PTX_OPERAND_ADDRESS;
    parser->braces++; /* only so that recovery does not stop inside */
    bool good;
    if (parser->token.kind == PTX_TOKEN_NAME && !(parser->token.bytes == 7 && !memcmp(parser->token.text, "WARP_SZ", 7))) {
        good = name_read(parser, &base);
        good = good && no_label(parser, &base);
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
        good = good && operand_read(parser, &more) && no_label(parser, &more);
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

static bool operand_read(struct ptx_parser *parser, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.component = PTX_COMPONENT_NONE};
    const struct ptx_token *token = &parser->token;
    if (token->kind == PTX_TOKEN_NAME) {
        if (token->bytes == 7 && memcmp(token->text, "WARP_SZ", 7) == 0)
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
            struct ptx_token operator = *token;
            ptx_next(parser);
            if (parser->token.kind == PTX_TOKEN_NAME && memcmp(parser->token.text, "WARP_SZ", 7) != 0) {
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
            parser->token = operator;
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

/* call{.uni} {(ret), }func{, (args)}{, table}: always LIST, FUNCTION or REG, LIST, and LABEL when there is a table. */
static bool call_read(struct ptx_parser *parser, struct ptx_insn *insn)
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
        return !parser->failed && undeclared(parser, name);
    if (!name_read(parser, &operands[1]))
        return false;
    if (operands[1].kind == PTX_OPERAND_SYMBOL && operands[1].func && operands[1].imm == 0)
        operands[1].kind = PTX_OPERAND_FUNCTION;
    if (operands[1].kind != PTX_OPERAND_FUNCTION && operands[1].kind != PTX_OPERAND_REG)
        return ptx_fail(parser, "'%s' is neither a function nor a register", name->text);
    operands[2] = (struct ptx_operand){.kind = PTX_OPERAND_LIST, .component = PTX_COMPONENT_NONE};
    if (!ptx_accept(parser, ','))
        return true;
    if (ptx_is(parser, '(')) {
        if (!list_or_nothing(parser, &operands[2]))
            return false;
        if (!ptx_accept(parser, ','))
            return true;
    }
    if (!operand_read(parser, &operands[3]))
        return false;
    if (operands[3].kind == PTX_OPERAND_SYMBOL && operands[3].func) { /* call %r, (args), func: func as the prototype */
        struct ptx_table *table = clab_arena_alloc(parser->arena, sizeof *table);
        if (!table)
            return ptx_no_memory(parser);
        *table = (struct ptx_table){.kind = PTX_TABLE_PROTOTYPE,
                                    .name = operands[3].func->name,
                                    .params = operands[3].func->params,
                                    .n_params = operands[3].func->n_params,
                                    .returns = operands[3].func->returns,
                                    .n_returns = operands[3].func->n_returns};
        operands[3] = (struct ptx_operand){.kind = PTX_OPERAND_LABEL, .component = PTX_COMPONENT_NONE, .table = table};
    }
    if (operands[3].kind != PTX_OPERAND_LABEL)
        return ptx_fail(parser, "expected the name of a .callprototype or .calltargets list");
    insn->n_operands = 4;
    return true;
}

/* --- instructions */

/* The opcode at the current name: its text up to the last dotted qualifier, white space between them left out.
   Leaves the token after it current. */
static struct ptx_opcode *opcode_read(struct ptx_parser *parser)
{
    struct ptx_lexer *lexer = &parser->lexer;
    const char *start = parser->token.text;
    char joined[512];
    size_t bytes = parser->token.bytes;
    const char *text = start;
    for (;;) {
        const char *at = lexer->at;
        while (*at == '.' || ptx_name_char(*at) || (at[0] == ':' && at[1] == ':'))
            at += *at == ':' ? 2 : 1;
        size_t more = (size_t)(at - lexer->at);
        if (text == joined) {
            if (bytes + more >= sizeof joined) {
                ptx_fail(parser, "the instruction's name is too long");
                return NULL;
            }
            memcpy(joined + bytes, lexer->at, more);
        }
        bytes += more;
        lexer->at = at;
        const char *before = lexer->at;
        if (!ptx_lex_space(lexer) || lexer->at == before || *lexer->at != '.')
            break;
        if (text != joined) { /* white space inside: go on in a buffer */
            if (bytes >= sizeof joined) {
                ptx_fail(parser, "the instruction's name is too long");
                return NULL;
            }
            memcpy(joined, start, bytes);
            text = joined;
        }
    }
    struct ptx_name *name = ptx_intern(parser, text, bytes);
    if (!name)
        return NULL;
    if (!name->opcode) {
        name->opcode = ptx_opcode_read(&parser->scratch, text, bytes);
        if (!name->opcode) {
            ptx_no_memory(parser);
            return NULL;
        }
    }
    if (!name->opcode->root) {
        ptx_fail(parser, "%s", name->opcode->fault);
        return NULL;
    }
    ptx_next(parser);
    return name->opcode;
}

/* Moves the uses of labels from a temporary operand to where it was kept. */
static void pending_move(struct ptx_parser *parser, const struct ptx_operand *from, struct ptx_operand *to, size_t count)
{
    for (struct ptx_pending *use = parser->scopes[parser->depth].pending; use; use = use->next) {
        if (!use->operand || use->operand < from || use->operand >= from + count)
            break; /* newest first, and only this instruction's are unsettled */
        use->operand = to + (use->operand - from);
    }
}

/* sym[n] is the address of an element for mov, an access to it everywhere else (PTX ISA 9.0, 6.4.2 "Arrays"). */
static bool index_to_address(struct ptx_parser *parser, struct ptx_operand *operand)
{
    struct ptx_operand *base = clab_arena_alloc(parser->arena, sizeof *base);
    if (!base)
        return ptx_no_memory(parser);
    *base = *operand;
    base->imm = 0;
    *operand = (struct ptx_operand){.kind = PTX_OPERAND_ADDRESS,
                                    .component = PTX_COMPONENT_NONE,
                                    .imm = operand->imm,
                                    .elements = base,
                                    .n_elements = 1};
    return true;
}

static bool operands_read(struct ptx_parser *parser, struct ptx_insn *insn, bool is_mov)
{
    struct ptx_operand operands[16];
    unsigned count = 0;
    while (!ptx_is(parser, ';')) {
        if (count >= sizeof operands / sizeof operands[0])
            return ptx_fail(parser, "too many operands");
        if (!operand_read(parser, &operands[count]))
            return false;
        if (operands[count].kind == PTX_OPERAND_SYMBOL && operands[count].is_indexed && !is_mov &&
            !index_to_address(parser, &operands[count]))
            return false;
        count++;
        if (!ptx_accept(parser, ','))
            break;
    }
    insn->n_operands = count;
    insn->operands = clab_arena_array(parser->arena, count ? count : 1, sizeof *insn->operands);
    if (!insn->operands)
        return ptx_no_memory(parser);
    memcpy(insn->operands, operands, count * sizeof *operands);
    pending_move(parser, operands, insn->operands, count);
    return true;
}

static bool guard_read(struct ptx_parser *parser, struct ptx_insn *insn)
{
    insn->guard_negated = ptx_accept(parser, '!');
    insn->has_guard = true;
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected a predicate register after '@'");
    struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
    struct ptx_binding *binding = name ? ptx_lookup(parser, name) : NULL;
    if (!name || parser->failed)
        return false;
    if (!binding)
        return undeclared(parser, name);
    struct ptx_operand operand = {.component = PTX_COMPONENT_NONE};
    if (!name_read(parser, &operand))
        return false;
    const struct ptx_reg *regs = parser->regs.items;
    if (operand.kind != PTX_OPERAND_REG || regs[operand.reg].type != PTX_PRED)
        return ptx_fail(parser, "the guard '%s' is no predicate register", name->text);
    insn->guard = operand.reg;
    return true;
}

/* The column of operand `index` is not kept: the message names it instead. */
static bool insn_match(struct ptx_parser *parser, const struct ptx_opcode *opcode, struct ptx_insn *insn)
{
    const struct ptx_module *module = parser->module;
    struct ptx_match_context context = {.regs = parser->regs.items,
                                        .version = module->version,
                                        .target = module->target,
                                        .address_size = module->address_size};
    char why[512];
    uint32_t operand;
    why[0] = 0;
    if (ptx_match(&context, opcode, insn, why, sizeof why, &operand))
        return true;
    if (operand < insn->n_operands && insn->operands[operand].kind == PTX_OPERAND_LABEL && !insn->operands[operand].table) {
        const struct ptx_pending *use = parser->scopes[parser->depth].pending;
        for (; use && use->operand != &insn->operands[operand]; use = use->next)
            ;
        if (use) {
            const char *near = ptx_nearest_declared(parser, use->name);
            if (near)
                return ptx_fail_at(parser, use->line, use->column, use->source,
                                   "'%s' is not declared; did you mean '%s'?", use->name->text, near);
            return ptx_fail_at(parser, use->line, use->column, use->source, "'%s' is not declared", use->name->text);
        }
    }
    return ptx_fail_at(parser, insn->line, insn->column, module->text + insn->text_offset, "%s", why);
}

static bool insn_read(struct ptx_parser *parser)
{
    struct ptx_insn insn = {.line = parser->token.line, .column = parser->token.column};
    const char *start = parser->token.text;
    struct ptx_pending *pending = parser->scopes[parser->depth].pending;
    insn.text_offset = (uint32_t)(start - parser->module->text);
    insn.loc = parser->loc;
    if (ptx_accept(parser, '@') && !guard_read(parser, &insn))
        return false;
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected an instruction");
    insn.line = parser->token.line;
    insn.column = parser->token.column;
    const struct ptx_opcode *opcode = opcode_read(parser);
    if (!opcode)
        return false;
    memcpy(insn.mods, opcode->pattern.mods, sizeof insn.mods);
    memcpy(insn.types, opcode->pattern.types, sizeof insn.types);
    memcpy(insn.spaces, opcode->pattern.spaces, sizeof insn.spaces);
    memcpy(insn.mod_bits, opcode->pattern.mod_bits, sizeof insn.mod_bits);
    insn.n_mods = opcode->pattern.n_mods;
    insn.n_types = opcode->pattern.n_types;
    insn.n_spaces = opcode->pattern.n_spaces;
    bool is_call = opcode->candidates[0].row == PTX_CALL;
    bool good = is_call ? call_read(parser, &insn) : operands_read(parser, &insn, opcode->candidates[0].row == PTX_MOV);
    insn.text_bytes = (uint32_t)(parser->token.text - parser->module->text) - insn.text_offset;
    if (good && !ptx_is(parser, ';'))
        good = ptx_fail(parser, "expected ';' after the instruction");
    good = good && insn_match(parser, opcode, &insn);
    if (!good) { /* its labels must not be reported besides */
        parser->scopes[parser->depth].pending = pending;
        return false;
    }
    ptx_next(parser);
    struct ptx_insn *kept = ptx_list_add(parser, &parser->insns, sizeof *kept);
    if (!kept)
        return false;
    *kept = insn;
    return true;
}

/* --- labels and the tables behind them */

static bool branch_targets(struct ptx_parser *parser, struct ptx_table *table)
{
    struct ptx_list names = {0};
    do {
        if (parser->token.kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected a label");
        struct ptx_name **kept = ptx_list_add(parser, &names, sizeof *kept);
        struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
        if (!kept || !name)
            return false;
        *kept = name;
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    table->count = (uint32_t)names.count;
    table->targets = clab_arena_array(parser->arena, names.count, sizeof *table->targets);
    if (!table->targets)
        return ptx_no_memory(parser);
    for (uint32_t i = 0; i < table->count; i++)
        if (!ptx_label_use(parser, ((struct ptx_name **)names.items)[i], NULL, &table->targets[i]))
            return false;
    return true;
}

static bool call_targets(struct ptx_parser *parser, struct ptx_table *table)
{
    struct ptx_list functions = {0};
    do {
        if (parser->token.kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected a function");
        struct ptx_name *name = ptx_intern(parser, parser->token.text, parser->token.bytes);
        struct ptx_binding *binding = name ? ptx_lookup(parser, name) : NULL;
        if (!name)
            return false;
        if (!binding || binding->kind != PTX_BIND_FUNCTION)
            return ptx_fail(parser, "'%s' is not a declared function", name->text);
        struct ptx_function **kept = ptx_list_add(parser, &functions, sizeof *kept);
        if (!kept)
            return false;
        *kept = binding->function;
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    table->count = (uint32_t)functions.count;
    table->functions = ptx_list_copy(parser, &functions, sizeof *table->functions);
    return !parser->failed;
}

static bool prototype(struct ptx_parser *parser, struct ptx_table *table)
{
    if (ptx_is(parser, '(') && !ptx_parse_params(parser, false, &table->returns, &table->n_returns))
        return false;
    if (parser->token.kind != PTX_TOKEN_NAME)
        return ptx_fail(parser, "expected '_' in the prototype");
    ptx_next(parser);
    if (ptx_is(parser, '(') && !ptx_parse_params(parser, false, &table->params, &table->n_params))
        return false;
    while (parser->token.kind == PTX_TOKEN_DOT) { /* .noreturn, .abi_preserve n, .abi_preserve_control n */
        bool takes_number = ptx_is_dot(parser, ".abi_preserve") || ptx_is_dot(parser, ".abi_preserve_control");
        if (!takes_number && !ptx_is_dot(parser, ".noreturn"))
            return ptx_fail(parser, "unknown directive in a prototype");
        ptx_next(parser);
        uint32_t number;
        if (takes_number && !ptx_constant_u32(parser, 65535, &number))
            return false;
    }
    return true;
}

/* After `name :`. */
static bool label_read(struct ptx_parser *parser, struct ptx_name *name)
{
    enum ptx_table_kind kind;
    if (ptx_is_dot(parser, ".branchtargets"))
        kind = PTX_TABLE_BRANCH;
    else if (ptx_is_dot(parser, ".calltargets"))
        kind = PTX_TABLE_CALL;
    else if (ptx_is_dot(parser, ".callprototype"))
        kind = PTX_TABLE_PROTOTYPE;
    else
        return ptx_label_define(parser, name, NULL);
    ptx_next(parser);
    struct ptx_table *table = clab_arena_alloc(parser->arena, sizeof *table);
    struct ptx_table **kept = table ? ptx_list_add(parser, &parser->tables, sizeof *kept) : NULL;
    if (!table || !kept)
        return ptx_no_memory(parser);
    *kept = table;
    table->kind = kind;
    table->name = name->text;
    bool good = kind == PTX_TABLE_BRANCH ? branch_targets(parser, table)
                : kind == PTX_TABLE_CALL ? call_targets(parser, table)
                                         : prototype(parser, table);
    return good && ptx_label_define(parser, name, table) && ptx_expect(parser, ';', "after the directive");
}

/* --- statements */

static bool directive_read(struct ptx_parser *parser)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{".shared", PTX_SPACE_SHARED}, {".local", PTX_SPACE_LOCAL},   {".param", PTX_SPACE_PARAM},
                  {".global", PTX_SPACE_GLOBAL}, {".const", PTX_SPACE_CONST}, {".shared::cta", PTX_SPACE_SHARED}};
    if (ptx_accept_dot(parser, ".reg"))
        return ptx_parse_registers(parser);
    if (ptx_accept_dot(parser, ".loc"))
        return ptx_parse_loc(parser);
    if (ptx_accept_dot(parser, ".file"))
        return ptx_parse_file(parser);
    if (ptx_accept_dot(parser, ".pragma"))
        return ptx_parse_pragma(parser);
    enum ptx_linkage linkage = ptx_accept_dot(parser, ".extern") ? PTX_LINK_EXTERN : PTX_LINK_NONE;
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_accept_dot(parser, spaces[i].word))
            return ptx_parse_variables(parser, spaces[i].space, linkage);
    return ptx_fail(parser, "unknown directive in a function");
}

static bool statement_read(struct ptx_parser *parser)
{
    const struct ptx_token *token = &parser->token;
    if (token->kind == PTX_TOKEN_DOT)
        return directive_read(parser);
    if (token->kind == PTX_TOKEN_NAME) {
        /* A label? Look behind the name without giving up its token. */
        struct ptx_lexer ahead = parser->lexer;
        if (*ahead.at != '.' && ptx_lex_space(&ahead) && ahead.at[0] == ':' && ahead.at[1] != ':') {
            struct ptx_name *name = ptx_intern(parser, token->text, token->bytes);
            if (!name)
                return false;
            ptx_next(parser);
            ptx_next(parser);
            return label_read(parser, name);
        }
    }
    if (token->kind == PTX_TOKEN_NAME || ptx_is(parser, '@'))
        return insn_read(parser);
    if (ptx_accept(parser, ';'))
        return true;
    return ptx_fail(parser, "expected an instruction, a label or a directive");
}

/* Skips the rest of a statement that could not be read: to its ';', or to the '}' that ends its scope. */
static void recover(struct ptx_parser *parser)
{
    unsigned open = parser->braces;
    parser->braces = 0;
    parser->nesting = 0;
    parser->operands.count = 0;
    for (;; ptx_next(parser)) {
        if (parser->token.kind == PTX_TOKEN_END)
            return;
        if (ptx_is(parser, '{')) {
            open++;
        } else if (ptx_is(parser, '}')) {
            if (open == 0)
                return;
            open--;
        } else if (ptx_is(parser, ';')) {
            ptx_next(parser);
            return;
        }
    }
}

bool ptx_parse_body(struct ptx_parser *parser)
{
    unsigned outermost = parser->depth;
    for (;;) {
        bool good = true;
        if (parser->token.kind == PTX_TOKEN_END) {
            parser->in_body = false;
            return ptx_fail(parser, "expected '}' at the end of function '%s'", parser->function->name);
        }
        if (ptx_is(parser, '}')) {
            if (parser->depth == outermost)
                return true;
            ptx_next(parser);
            ptx_scope_close(parser);
        } else if (ptx_is(parser, '{')) {
            good = ptx_scope_open(parser);
            if (good)
                ptx_next(parser);
        } else {
            good = statement_read(parser);
        }
        if (parser->failed)
            return false;
        if (!good)
            recover(parser);
    }
}
