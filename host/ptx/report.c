/* What the parser's files share: failures with their place and source line, tokens, growing lists. A failure
   inside a body belongs to its function, the first one only; any other one ends the module. */
#include <stdio.h>
#include <string.h>

#include "ptx/parser.h"

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

static bool vfail(struct ptx_parser *parser, uint32_t line, uint32_t column, const char *source,
                  const char *format, va_list args)
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

bool ptx_fail_at(struct ptx_parser *parser, uint32_t line, uint32_t column, const char *source,
                 const char *format, ...)
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
        return ptx_fail_at(parser, token->line, token->column, token->text, "%s, found the end of the file",
                           text);
    return ptx_fail_at(parser, token->line, token->column, token->text, "%s, found '%.*s'", text,
                       token->bytes < 60 ? (int)token->bytes : 60, token->text);
}

bool ptx_no_memory(struct ptx_parser *parser)
{
    parser->failed = true;
    parser->in_body = false;
    if (parser->error && parser->error->status != CLAB_NO_MEMORY)
        clab_error_set(parser->error, CLAB_NO_MEMORY, "out of memory while reading '%s'",
                       parser->module->name);
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
    return token->kind == PTX_TOKEN_DOT && strncmp(word, token->text, token->bytes) == 0 &&
           word[token->bytes] == 0;
}

bool ptx_is_name(const struct ptx_parser *parser, const char *name)
{
    const struct ptx_token *token = &parser->token;
    return token->kind == PTX_TOKEN_NAME && strncmp(name, token->text, token->bytes) == 0 &&
           name[token->bytes] == 0;
}

bool ptx_accept_dot(struct ptx_parser *parser, const char *word)
{
    if (!ptx_is_dot(parser, word))
        return false;
    ptx_next(parser);
    return true;
}

bool ptx_expect_name(struct ptx_parser *parser, const char *what, struct ptx_name **out)
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

bool ptx_needs(struct ptx_parser *parser, enum ptx_feature feature)
{
    static const struct {
        const char *text;
        uint16_t isa, sm;
    } features[] = {
#define PTX_FEATURE(id, text, isa, sm) {text, isa, sm},
#include "ptx/features.def"
#undef PTX_FEATURE
    };
    const struct ptx_module *module = parser->module;
    if (module->version < features[feature].isa)
        return ptx_fail(parser, "%s requires PTX ISA .version %u.%u or later", features[feature].text,
                        features[feature].isa / 10, features[feature].isa % 10);
    if (module->target.sm < features[feature].sm)
        return ptx_fail(parser, "%s requires .target sm_%u or higher", features[feature].text,
                        features[feature].sm);
    return true;
}
