/* Statements of a function body (PTX ISA 9.0, 4.3 "Statements"): labels, directives, nested scopes, guarded
   instructions. A statement that cannot be read is recorded in its function and skipped up to its semicolon;
   parsing goes on with the next one. */
#include <string.h>

#include "ptx/parser.h"

/* Names of which a part is no instruction, or another one: no white space may stand inside (ptxas 13.0.88).
   `glued`: qualifiers before the first white space. */
static bool is_glued(const char *text, size_t bytes, unsigned glued)
{
    static const char *const names[] = {"mul.lo",
                                        "mul.hi",
                                        "mul.wide",
                                        "mad.lo",
                                        "mad.hi",
                                        "mad.wide",
                                        "madc.lo",
                                        "madc.hi",
                                        "div.full",
                                        "bar.warp",
                                        "barrier.cluster.arrive",
                                        "barrier.cluster.wait",
                                        "fence.proxy",
                                        "membar.proxy",
                                        "createpolicy.range",
                                        "st.async",
                                        "red.async",
                                        "mbarrier.init",
                                        "mbarrier.inval",
                                        "mbarrier.expect_tx",
                                        "mbarrier.complete_tx",
                                        "mbarrier.arrive",
                                        "mbarrier.arrive.expect_tx",
                                        "mbarrier.arrive_drop.expect_tx",
                                        "cvta.to",
                                        "dp2a.lo",
                                        "dp2a.hi",
                                        "shf.l",
                                        "shf.r",
                                        "bar.red",
                                        "barrier.red",
                                        "barrier.cta",
                                        "mul24.lo",
                                        "mul24.hi",
                                        "mad24.lo",
                                        "mad24.hi",
                                        "createpolicy.fractional",
                                        "pmevent.mask",
                                        "mbarrier.arrive_drop",
                                        "mbarrier.test_wait",
                                        "mbarrier.test_wait.parity",
                                        "mbarrier.try_wait",
                                        "mbarrier.try_wait.parity",
                                        "mbarrier.pending_count",
                                        "cp.async",
                                        "cp.async.commit_group",
                                        "cp.async.wait_group",
                                        "cp.async.wait_all",
                                        "cp.async.mbarrier.arrive",
                                        "cp.async.bulk",
                                        "cp.async.bulk.commit_group",
                                        "cp.async.bulk.wait_group",
                                        "cp.async.bulk.prefetch"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t length = strlen(names[i]);
        unsigned dots = 0;
        if (length > bytes || memcmp(text, names[i], length) != 0 || (length < bytes && text[length] != '.'))
            continue;
        for (const char *at = names[i]; *at; at++)
            dots += *at == '.' ? 1u : 0u;
        if (glued < dots)
            return false;
    }
    return true;
}

/* The opcode at the current name: its text up to the last dotted qualifier, white space between them left
   out. Leaves the token after it current. */
static struct ptx_opcode *opcode_read(struct ptx_parser *parser)
{
    struct ptx_lexer *lexer = &parser->lexer;
    const char *start = parser->token.text;
    char joined[512];
    size_t bytes = parser->token.bytes;
    const char *text = start;
    unsigned glued = 0; /* qualifiers before the first white space */
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
            for (size_t i = 0; i < bytes; i++)
                glued += joined[i] == '.' ? 1u : 0u;
        }
    }
    struct ptx_name *name = ptx_intern(parser, text, bytes);
    if (!name)
        return NULL;
    if (!name->opcode) {
        enum { MOST_SUGGESTIONS = 256 };
        bool suggest = !parser->function->error && parser->suggestions < MOST_SUGGESTIONS;
        name->opcode = ptx_opcode_read(&parser->scratch, text, bytes, suggest);
        if (!name->opcode) {
            ptx_no_memory(parser);
            return NULL;
        }
    }
    if (!name->opcode->root) {
        parser->suggestions++;
        ptx_fail(parser, "%s", name->opcode->fault);
        return NULL;
    }
    if (text == joined && !is_glued(text, bytes, glued)) {
        ptx_fail(parser, "no white space may stand in the instruction's name before its qualifiers");
        return NULL;
    }
    ptx_next(parser);
    return name->opcode;
}

/* Moves the uses of labels from a temporary operand to where it was kept. */
static void pending_move(struct ptx_parser *parser, const struct ptx_operand *from, struct ptx_operand *to,
                         size_t count)
{
    for (struct ptx_pending *use = parser->scopes[parser->depth].pending; use; use = use->next) {
        if (!use->operand || use->operand < from || use->operand >= from + count)
            break; /* newest first, and only this instruction's are unsettled */
        use->operand = to + (use->operand - from);
    }
}

/* sym[n] is an access to an element for ld and st, its address everywhere else (PTX ISA 9.0, 6.4.2 "Arrays").
 */
static bool index_to_address(struct ptx_parser *parser, struct ptx_operand *operand)
{
    struct ptx_operand *base = clab_arena_alloc(parser->arena, sizeof *base);
    if (!base)
        return ptx_no_memory(parser);
    *base = *operand;
    const bool indexed = operand->kind == PTX_OPERAND_INDEXED; /* keeps its imm: that is part of the index */
    base->imm = indexed ? operand->imm : 0;
    *operand = (struct ptx_operand){.kind = PTX_OPERAND_ADDRESS,
                                    .component = PTX_COMPONENT_NONE,
                                    .imm = indexed ? 0 : operand->imm,
                                    .elements = base,
                                    .n_elements = 1};
    return true;
}

static bool operands_read(struct ptx_parser *parser, struct ptx_insn *insn, const struct ptx_opcode *opcode)
{
    const enum ptx_row row = opcode->candidates[0].row; /* of several forms, the first */
    const bool is_access = row == PTX_LDU || strcmp(ptx_rows[row].section, "ld") == 0 ||
                           strcmp(ptx_rows[row].section, "ld.global.nc") == 0 ||
                           strcmp(ptx_rows[row].section, "st") == 0;
    struct ptx_operand operands[16];
    unsigned count = 0;
    bool more = !ptx_is(parser, ';');
    while (more) {
        if (count >= sizeof operands / sizeof operands[0])
            return ptx_fail(parser, "too many operands");
        if (row == PTX_BRX_IDX && count == 1 && !ptx_table_declared(parser))
            return false;
        if (row == PTX_BRA ? !ptx_parse_label(parser, &operands[count])
                           : !ptx_parse_operand(parser, &operands[count]))
            return false;
        if (operands[count].kind == PTX_OPERAND_SYMBOL && ptx_is(parser, '[')) {
            if (!ptx_parse_index(parser, &operands[count]) ||
                (is_access && !index_to_address(parser, &operands[count])))
                return false;
        }
        count++;
        more = ptx_accept(parser, ',');
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
        return ptx_undeclared(parser, name);
    struct ptx_operand operand = {.component = PTX_COMPONENT_NONE};
    if (!ptx_parse_operand(parser, &operand))
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
    if (operand < insn->n_operands && insn->operands[operand].kind == PTX_OPERAND_LABEL &&
        !insn->operands[operand].table) {
        const struct ptx_pending *use = parser->scopes[parser->depth].pending;
        for (; use && use->operand != &insn->operands[operand]; use = use->next)
            ;
        if (use) {
            const char *near = ptx_nearest_declared(parser, use->name);
            if (near)
                return ptx_fail_at(parser, use->line, use->column, use->source,
                                   "'%s' is not declared; did you mean '%s'?", use->name->text, near);
            return ptx_fail_at(parser, use->line, use->column, use->source, "'%s' is not declared",
                               use->name->text);
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
    bool good = is_call ? ptx_parse_call(parser, &insn) : operands_read(parser, &insn, opcode);
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

/* One label, or with <n> behind it, name0 to name(n - 1). */
static bool label_range(struct ptx_parser *parser, struct ptx_name *name, struct ptx_list *names)
{
    enum { MOST = 1 << 16 };
    uint32_t count = 1;
    bool range = ptx_accept(parser, '<');
    if (range &&
        (!ptx_number_u32(parser, MOST, &count) || !ptx_expect(parser, '>', "after the number of labels")))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct ptx_name *each = name;
        if (range) {
            const char *text = clab_arena_printf(&parser->scratch, "%s%u", name->text, (unsigned)i);
            each = text ? ptx_intern(parser, text, strlen(text)) : NULL;
        }
        struct ptx_name **kept = each ? ptx_list_add(parser, names, sizeof *kept) : NULL;
        if (!kept)
            return ptx_no_memory(parser);
        *kept = each;
    }
    return true;
}

static bool branch_targets(struct ptx_parser *parser, struct ptx_table *table)
{
    struct ptx_list names = {0};
    do {
        struct ptx_name *name;
        if (!ptx_expect_name(parser, "a label", &name) || !label_range(parser, name, &names))
            return false;
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
    if (!ptx_is_name(parser, "_"))
        return ptx_fail(parser, "expected '_' in the prototype");
    ptx_next(parser);
    if (ptx_is(parser, '(') && !ptx_parse_params(parser, false, &table->params, &table->n_params))
        return false;
    struct ptx_directives directives = {0};
    while (parser->token.kind == PTX_TOKEN_DOT)
        if (!ptx_function_directive(parser, &directives))
            return false;
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
    if (kind != PTX_TABLE_BRANCH &&
        !ptx_needs(parser, kind == PTX_TABLE_CALL ? PTX_FEATURE_CALLTARGETS : PTX_FEATURE_CALLPROTOTYPE))
        return false;
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
    } spaces[] = {{".shared", PTX_SPACE_SHARED}, {".local", PTX_SPACE_LOCAL},
                  {".param", PTX_SPACE_PARAM},   {".global", PTX_SPACE_GLOBAL},
                  {".const", PTX_SPACE_CONST},   {".shared::cta", PTX_SPACE_SHARED}};
    if (ptx_accept_dot(parser, ".reg"))
        return ptx_parse_registers(parser);
    if (ptx_accept_dot(parser, ".loc"))
        return ptx_parse_loc(parser);
    if (ptx_accept_dot(parser, ".pragma"))
        return ptx_parse_pragma(parser, PTX_PRAGMA_BODY);
    if (ptx_accept_dot(parser, ".target"))
        return ptx_parse_target(parser);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_accept_dot(parser, spaces[i].word))
            return ptx_parse_variables(parser, spaces[i].space, PTX_LINK_NONE);
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
