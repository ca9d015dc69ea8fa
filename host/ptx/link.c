/* Linking (link.h). Modules are split into their top-level statements by the lexer alone: what stands inside
   a function is copied, names that have to differ are replaced token by token. A definition that does not
   count becomes an .extern declaration, so that every use still follows one. Debug sections are left out:
   nothing reads them. */
#include "ptx/link.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "ptx/lex.h"
#include "ptx/ptx.h"

struct span {
    const char *text;
    size_t bytes;
};

enum item_kind {
    ITEM_OTHER,    /* .file, .loc, .pragma: `rest` */
    ITEM_VARIABLE, /* `head` up to its name, `rest` from there, without the semicolon */
    ITEM_FUNCTION, /* `head` up to the body or semicolon, `rest` the body */
    ITEM_ENTRY,
    ITEM_ALIAS /* `rest`: .alias NAME, FUNCTION; */
};

/* A top-level statement, or one variable of it. */
struct item {
    enum item_kind kind;
    enum ptx_linkage linkage;
    bool is_defined;
    struct span name, head, rest;
    size_t plain_bytes; /* of a variable: `rest` without its initialiser */
    uint64_t size;      /* of a variable, in bits */
};

struct input {
    const char *name, *text;
    struct item *items;
    size_t n_items, capacity;
    uint32_t file_offset; /* added to the numbers of .file */
    uint32_t n_files;     /* numbers below this are used */
    struct clab_map renamed;
};

/* What all modules together know of a name. */
struct symbol {
    uint32_t first_input;
    bool is_shared; /* several inputs have it at top level */
    bool is_global; /* one of them lets others see it */
    const struct item *chosen;
    uint32_t chosen_input;
};

/* From this line of the linked text on stands what an input has at `from`. */
struct piece {
    uint32_t line;
    const struct input *input;
    const char *from;
};

struct ptx_linker {
    struct clab_arena arena;
    struct clab_map symbols;
    struct input **inputs;
    size_t n_inputs, capacity;
    struct span version, target;
    uint32_t version_number;
    struct ptx_target newest;
    struct clab_error twice; /* the first name that two inputs define */
    struct piece *pieces;
    size_t n_pieces, pieces_capacity;
    size_t counted_bytes; /* of the linked text, as far as its lines are counted */
    uint32_t line;        /* there; from 1 */
};

struct ptx_linker *ptx_linker_new(void)
{
    return calloc(1, sizeof(struct ptx_linker));
}

void ptx_linker_free(struct ptx_linker *linker)
{
    if (linker == NULL)
        return;
    for (size_t i = 0; i < linker->n_inputs; i++)
        clab_map_free(&linker->inputs[i]->renamed);
    clab_map_free(&linker->symbols);
    clab_arena_free(&linker->arena);
    free(linker);
}

/* ---- splitting a module ---- */

struct reader {
    struct ptx_linker *linker;
    struct input *input;
    struct ptx_lexer lexer;
    struct ptx_token token;
    struct clab_error *error;
    bool no_memory;
};

static void next(struct reader *reader)
{
    ptx_lex(&reader->lexer, &reader->token);
}

static bool is_dot(const struct reader *reader, const char *word)
{
    const struct ptx_token *token = &reader->token;
    return token->kind == PTX_TOKEN_DOT && token->bytes == strlen(word) &&
           memcmp(token->text, word, token->bytes) == 0;
}

static bool is_punct(const struct reader *reader, int punct)
{
    return reader->token.kind == PTX_TOKEN_PUNCT && reader->token.punct == punct;
}

static bool fail(struct reader *reader, const char *what)
{
    clab_error_set(reader->error, CLAB_PTX_SYNTAX, "%s", what);
    clab_error_at(reader->error, reader->input->name, reader->token.line, reader->token.column);
    return false;
}

/* From `first` to before the token at hand. */
static struct span span_to(const struct reader *reader, const char *first)
{
    return (struct span){first, (size_t)(reader->token.text - first)};
}

/* Steps over the token at hand; *depth counts the brackets that are open after it. False at the text's end.
 */
static bool step(struct reader *reader, unsigned *depth)
{
    if (reader->token.kind == PTX_TOKEN_END)
        return fail(reader, "the module ends inside a statement");
    if (is_punct(reader, '(') || is_punct(reader, '[') || is_punct(reader, '{'))
        (*depth)++;
    if (*depth > 0 && (is_punct(reader, ')') || is_punct(reader, ']') || is_punct(reader, '}')))
        (*depth)--;
    next(reader);
    return true;
}

/* To behind the end of a statement that has no name to link. */
static bool skip_to(struct reader *reader, int punct)
{
    unsigned depth = 0;
    while (depth > 0 || !is_punct(reader, punct))
        if (!step(reader, &depth))
            return false;
    return true;
}

static struct item *item_add(struct reader *reader, const struct item *item)
{
    struct input *input = reader->input;
    struct item *items = clab_arena_grow(&reader->linker->arena, input->items, input->n_items,
                                         &input->capacity, sizeof *items);
    if (items == NULL) {
        reader->no_memory = true;
        return NULL;
    }
    input->items = items;
    items[input->n_items] = *item;
    return &items[input->n_items++];
}

static bool read_version(struct reader *reader)
{
    struct ptx_linker *linker = reader->linker;
    struct span text = {reader->token.text, reader->token.bytes};
    char *end;
    unsigned long major = strtoul(text.text, &end, 10);
    uint32_t number = (uint32_t)(major * 100 + (*end == '.' ? strtoul(end + 1, NULL, 10) : 0));
    if (number > linker->version_number) {
        linker->version_number = number;
        linker->version = text;
    }
    next(reader);
    return true;
}

/* The chips in the order of their age, of one chip the ones with a suffix last. */
static int target_rank(const struct ptx_target *target)
{
    return target->sm * 4 + (target->suffix == 'a' ? 2 : target->suffix == 'f' ? 1 : 0);
}

static bool read_target(struct reader *reader)
{
    struct ptx_linker *linker = reader->linker;
    struct ptx_target target = {0};
    const char *first = reader->token.text;
    size_t bytes = 0;
    (void)ptx_target_parse(first, reader->token.bytes, &target);
    while (reader->token.kind == PTX_TOKEN_NAME || is_punct(reader, ',')) {
        bytes = (size_t)(reader->token.text + reader->token.bytes - first);
        next(reader);
    }
    if (linker->target.bytes == 0 || target_rank(&target) > target_rank(&linker->newest)) {
        linker->newest = target;
        linker->target = (struct span){first, bytes};
    }
    return true;
}

/* .file NUMBER "NAME" {, TIME, BYTES} and .loc have no end of their own: the next directive ends them. */
static bool read_file(struct reader *reader, const char *first)
{
    struct item item = {.kind = ITEM_OTHER};
    if (reader->token.kind == PTX_TOKEN_INT && reader->token.value >= reader->input->n_files)
        reader->input->n_files = (uint32_t)reader->token.value + 1;
    while (reader->token.kind != PTX_TOKEN_DOT && reader->token.kind != PTX_TOKEN_END)
        next(reader);
    item.rest = span_to(reader, first);
    return item_add(reader, &item) != NULL;
}

static bool read_alias(struct reader *reader, const char *first)
{
    struct item item = {.kind = ITEM_ALIAS, .is_defined = true};
    item.name = (struct span){reader->token.text, reader->token.bytes};
    if (!skip_to(reader, ';'))
        return false;
    next(reader);
    item.rest = span_to(reader, first);
    for (size_t i = reader->input->n_items; i-- > 0;) { /* its declaration has the linking directive */
        const struct item *declared = &reader->input->items[i];
        if (declared->name.bytes == item.name.bytes &&
            memcmp(declared->name.text, item.name.text, item.name.bytes) == 0) {
            item.linkage = declared->linkage;
            item.head = declared->head;
            break;
        }
    }
    return item_add(reader, &item) != NULL;
}

/* Bits of one element, from words such as .b8, .f32 and .v4. */
static uint64_t element_bits(struct span head)
{
    uint64_t bits = 32, lanes = 1;
    for (size_t i = 0; i + 2 < head.bytes; i++) {
        if (head.text[i] != '.' || strchr("busfv", head.text[i + 1]) == NULL ||
            strchr("0123456789", head.text[i + 2]) == NULL)
            continue;
        uint64_t value = strtoul(head.text + i + 2, NULL, 10);
        if (head.text[i + 1] == 'v')
            lanes = value;
        else
            bits = value;
    }
    return bits * lanes;
}

/* The variables of one statement, each an item of its own; the token at hand is the first one's name. */
static bool read_variables(struct reader *reader, struct item *item)
{
    item->kind = ITEM_VARIABLE;
    item->is_defined = item->linkage != PTX_LINK_EXTERN;
    for (;;) {
        unsigned depth = 0;
        bool plain = true;
        if (reader->token.kind != PTX_TOKEN_NAME)
            return fail(reader, "expected a variable's name");
        const char *first = reader->token.text;
        item->name = (struct span){first, reader->token.bytes};
        item->size = element_bits(item->head);
        while (depth > 0 || (!is_punct(reader, ',') && !is_punct(reader, ';'))) {
            if (plain && depth == 0 && is_punct(reader, '=')) {
                item->plain_bytes = span_to(reader, first).bytes;
                plain = false;
            }
            if (plain && depth > 0 && reader->token.kind == PTX_TOKEN_INT)
                item->size *= reader->token.value;
            if (!step(reader, &depth))
                return false;
        }
        item->rest = span_to(reader, first);
        if (plain)
            item->plain_bytes = item->rest.bytes;
        if (item_add(reader, item) == NULL)
            return false;
        bool more = is_punct(reader, ',');
        next(reader);
        if (!more)
            return true;
    }
}

/* The token at hand is behind the function's name. */
static bool read_function(struct reader *reader, struct item *item, const char *first)
{
    unsigned depth = 0;
    while (depth > 0 || (!is_punct(reader, ';') && !is_punct(reader, '{')))
        if (!step(reader, &depth))
            return false;
    item->head = span_to(reader, first);
    item->is_defined = is_punct(reader, '{');
    const char *body = reader->token.text;
    if (item->is_defined) {
        do {
            if (!step(reader, &depth))
                return false;
        } while (depth > 0);
        item->rest = span_to(reader, body);
    } else {
        next(reader);
    }
    if (item->kind == ITEM_ENTRY && item->linkage == PTX_LINK_NONE)
        item->linkage = PTX_LINK_VISIBLE;
    return item_add(reader, item) != NULL;
}

static bool read_declaration(struct reader *reader)
{
    static const struct {
        const char *word;
        enum ptx_linkage linkage;
    } directives[] = {{".visible", PTX_LINK_VISIBLE},
                      {".extern", PTX_LINK_EXTERN},
                      {".weak", PTX_LINK_WEAK},
                      {".common", PTX_LINK_COMMON}};
    struct item item = {.kind = ITEM_VARIABLE, .linkage = PTX_LINK_NONE};
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++)
        if (is_dot(reader, directives[i].word)) {
            item.linkage = directives[i].linkage;
            next(reader);
            break;
        }
    const char *first = reader->token.text;
    unsigned depth = 0;
    for (; depth > 0 || reader->token.kind != PTX_TOKEN_NAME;) {
        if (is_dot(reader, ".func"))
            item.kind = ITEM_FUNCTION;
        else if (is_dot(reader, ".entry"))
            item.kind = ITEM_ENTRY;
        if (!step(reader, &depth))
            return false;
    }
    if (item.kind == ITEM_VARIABLE) {
        item.head = span_to(reader, first);
        return read_variables(reader, &item);
    }
    item.name = (struct span){reader->token.text, reader->token.bytes};
    next(reader);
    return read_function(reader, &item, first);
}

static bool read_statement(struct reader *reader)
{
    const char *first = reader->token.text;
    if (reader->token.kind != PTX_TOKEN_DOT)
        return fail(reader, "expected a directive");
    if (is_dot(reader, ".version") || is_dot(reader, ".target") || is_dot(reader, ".address_size")) {
        bool is_version = is_dot(reader, ".version"), is_target = is_dot(reader, ".target");
        next(reader);
        if (is_version || is_target)
            return is_version ? read_version(reader) : read_target(reader);
        next(reader);
        return true;
    }
    if (is_dot(reader, ".section")) {
        unsigned depth = 0;
        if (!skip_to(reader, '{'))
            return false;
        do {
            if (!step(reader, &depth))
                return false;
        } while (depth > 0);
        return true;
    }
    if (is_dot(reader, ".file") || is_dot(reader, ".loc")) {
        next(reader);
        return read_file(reader, first);
    }
    if (is_dot(reader, ".alias")) {
        next(reader);
        return read_alias(reader, first);
    }
    if (is_dot(reader, ".pragma")) {
        struct item item = {.kind = ITEM_OTHER};
        if (!skip_to(reader, ';'))
            return false;
        next(reader);
        item.rest = span_to(reader, first);
        return item_add(reader, &item) != NULL;
    }
    return read_declaration(reader);
}

static uint32_t line_of(const struct input *input, const char *at)
{
    uint32_t line = 1;
    for (const char *c = input->text; (c = memchr(c, '\n', (size_t)(at - c))) != NULL; c++)
        line++;
    return line;
}

/* ---- names ---- */

/* An alias counts as strong, .weak or not: nvlink 13.0.88 refuses one beside a visible function and beside
   another alias, and prefers it to a weak function. */
static int strength(const struct item *item)
{
    if (item->kind == ITEM_ALIAS)
        return 3;
    return item->linkage == PTX_LINK_VISIBLE ? 3 : item->linkage == PTX_LINK_WEAK ? 2 : 1;
}

/* Enters an item's name. False when memory is out. */
static bool enter(struct ptx_linker *linker, uint32_t index, const struct item *item)
{
    struct symbol *symbol = clab_map_get(&linker->symbols, item->name.text, item->name.bytes);
    if (symbol == NULL) {
        symbol = clab_arena_alloc(&linker->arena, sizeof *symbol);
        if (symbol == NULL || !clab_map_set(&linker->symbols, item->name.text, item->name.bytes, symbol))
            return false;
        symbol->first_input = index;
    }
    symbol->is_shared = symbol->is_shared || symbol->first_input != index;
    symbol->is_global = symbol->is_global || item->linkage != PTX_LINK_NONE;
    if (item->linkage == PTX_LINK_NONE || !item->is_defined)
        return true;
    const struct item *old = symbol->chosen;
    if (old != NULL && strength(old) == 3 && strength(item) == 3 && linker->twice.status == CLAB_OK) {
        const struct input *here = linker->inputs[index], *first = linker->inputs[symbol->chosen_input];
        clab_error_set(&linker->twice, CLAB_LOAD,
                       "multiple definition of '%.*s' in '%s', first defined in '%s' (line %u)",
                       item->name.bytes < 400 ? (int)item->name.bytes : 400, item->name.text, here->name,
                       first->name, line_of(first, old->name.text));
        clab_error_at(&linker->twice, here->name, line_of(here, item->name.text), 0);
    }
    bool is_larger = old != NULL && strength(old) == 1 && strength(item) == 1 && item->size > old->size;
    if (old == NULL || strength(item) > strength(old) || is_larger) {
        symbol->chosen = item;
        symbol->chosen_input = index;
    }
    return true;
}

/* Gives a module's own names new ones where another module has them too. */
static bool rename_own(struct ptx_linker *linker, uint32_t index)
{
    struct input *input = linker->inputs[index];
    for (size_t i = 0; i < input->n_items; i++) {
        const struct item *item = &input->items[i];
        if (item->kind == ITEM_OTHER || item->linkage != PTX_LINK_NONE)
            continue;
        const struct symbol *symbol = clab_map_get(&linker->symbols, item->name.text, item->name.bytes);
        if (!symbol->is_shared || (symbol->first_input == index && !symbol->is_global) ||
            clab_map_get(&input->renamed, item->name.text, item->name.bytes) != NULL)
            continue;
        char *name = NULL;
        unsigned number = index + 1;
        do { /* until no module has it */
            name =
                clab_arena_printf(&linker->arena, "%.*s$%u", (int)item->name.bytes, item->name.text, number);
            number += (unsigned)linker->n_inputs;
        } while (name != NULL && clab_map_get(&linker->symbols, name, strlen(name)) != NULL);
        if (name == NULL || !clab_map_set(&input->renamed, item->name.text, item->name.bytes, name))
            return false;
    }
    return true;
}

clab_status ptx_linker_add(struct ptx_linker *linker, const char *text, size_t bytes, const char *name,
                           struct clab_error *error)
{
    struct input *input = clab_arena_alloc(&linker->arena, sizeof *input);
    struct input **inputs =
        clab_arena_grow(&linker->arena, linker->inputs, linker->n_inputs, &linker->capacity, sizeof *inputs);
    char *copy = clab_arena_strndup(&linker->arena, text, bytes);
    if (inputs != NULL)
        linker->inputs = inputs;
    if (input == NULL || inputs == NULL || copy == NULL ||
        (input->name = clab_arena_strdup(&linker->arena, name)) == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to link '%s'", name);
    uint32_t index = (uint32_t)linker->n_inputs;
    if (index > 0)
        input->file_offset = inputs[index - 1]->file_offset + inputs[index - 1]->n_files;
    input->text = copy;
    inputs[linker->n_inputs++] = input;

    struct reader reader = {.linker = linker, .input = input, .error = error};
    ptx_lexer_init(&reader.lexer, copy, bytes);
    next(&reader);
    bool good = true;
    while (good && reader.token.kind != PTX_TOKEN_END)
        good = read_statement(&reader);
    ptx_lexer_fini(&reader.lexer);
    bool has_memory = !reader.no_memory;
    for (size_t i = 0; i < input->n_items && good && has_memory; i++)
        has_memory = input->items[i].kind == ITEM_OTHER || enter(linker, index, &input->items[i]);
    if (!has_memory)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory to link '%s'", name);
    return good ? CLAB_OK : CLAB_PTX_SYNTAX;
}

bool ptx_linker_mentions(const struct ptx_linker *linker, const char *name)
{
    const struct symbol *symbol = clab_map_get(&linker->symbols, name, strlen(name));
    return symbol != NULL && symbol->is_global;
}

/* ---- writing ---- */

/* Notes where the next part of the linked text comes from. */
static bool note_piece(struct ptx_linker *linker, const struct clab_str *out, const struct input *input,
                       const char *from)
{
    struct piece *pieces = clab_arena_grow(&linker->arena, linker->pieces, linker->n_pieces,
                                           &linker->pieces_capacity, sizeof *pieces);
    if (pieces == NULL)
        return false;
    linker->pieces = pieces;
    for (; linker->counted_bytes < out->bytes; linker->counted_bytes++)
        linker->line += out->text[linker->counted_bytes] == '\n';
    pieces[linker->n_pieces++] = (struct piece){linker->line, input, from};
    return true;
}

/* A part of a module, with the names that it has now and its numbers of files. */
static bool write_span(struct clab_str *out, struct ptx_linker *linker, const struct input *input,
                       struct span span)
{
    if (span.bytes == 0)
        return true;
    if (!note_piece(linker, out, input, span.text))
        return false;
    if (input->renamed.count == 0 && input->file_offset == 0) {
        clab_str_add_bytes(out, span.text, span.bytes);
        return true;
    }
    char *copy = strndup(span.text, span.bytes);
    if (copy == NULL)
        return false;
    struct ptx_lexer lexer;
    struct ptx_token token;
    bool is_file = false; /* the next number is a file's */
    const char *done = copy;
    ptx_lexer_init(&lexer, copy, span.bytes);
    for (ptx_lex(&lexer, &token); token.kind != PTX_TOKEN_END; ptx_lex(&lexer, &token)) {
        const char *name = NULL;
        clab_str_add_bytes(out, done, (size_t)(token.text - done));
        done = token.text + token.bytes;
        if (token.kind == PTX_TOKEN_NAME)
            name = clab_map_get(&input->renamed, token.text, token.bytes);
        if (name != NULL)
            clab_str_add(out, name);
        else if (token.kind == PTX_TOKEN_INT && is_file)
            clab_str_addf(out, "%llu", (unsigned long long)token.value + input->file_offset);
        else
            clab_str_add_bytes(out, token.text, token.bytes);
        is_file = (token.bytes == 5 && memcmp(token.text, ".file", 5) == 0) ||
                  (token.bytes == 4 && memcmp(token.text, ".loc", 4) == 0) ||
                  (token.bytes == 10 && memcmp(token.text, "inlined_at", 10) == 0);
    }
    ptx_lexer_fini(&lexer);
    clab_str_add(out, done);
    free(copy);
    return true;
}

static const char *directive_of(enum ptx_linkage linkage)
{
    return linkage == PTX_LINK_VISIBLE  ? ".visible "
           : linkage == PTX_LINK_EXTERN ? ".extern "
           : linkage == PTX_LINK_WEAK   ? ".weak "
           : linkage == PTX_LINK_COMMON ? ".common "
                                        : "";
}

static bool has_word(struct span span, const char *word)
{
    size_t bytes = strlen(word);
    for (size_t i = 0; i + bytes <= span.bytes; i++)
        if (memcmp(span.text + i, word, bytes) == 0)
            return true;
    return false;
}

/* An item whose name another input's definition, or an earlier one, answers for: a declaration of that. */
static bool write_declaration(struct clab_str *out, struct ptx_linker *linker, const struct input *input,
                              const struct item *item, const struct symbol *symbol)
{
    if (item->kind == ITEM_ALIAS || item->kind == ITEM_ENTRY)
        return true; /* the declaration before it is enough; nothing can name an entry */
    clab_str_add(out, ".extern ");
    if (item->kind == ITEM_FUNCTION) {
        if (!write_span(out, linker, input, item->head))
            return false;
    } else {
        const struct input *other = linker->inputs[symbol->chosen_input];
        struct span plain = {symbol->chosen->rest.text, symbol->chosen->plain_bytes};
        if (!write_span(out, linker, other, symbol->chosen->head) || !write_span(out, linker, other, plain))
            return false;
    }
    clab_str_add(out, ";\n");
    return true;
}

static bool write_item(struct clab_str *out, struct ptx_linker *linker, uint32_t index,
                       const struct item *item, unsigned max_registers)
{
    const struct input *input = linker->inputs[index];
    const struct symbol *symbol =
        item->kind != ITEM_OTHER ? clab_map_get(&linker->symbols, item->name.text, item->name.bytes) : NULL;
    if (symbol != NULL && item->linkage != PTX_LINK_NONE && symbol->chosen != NULL &&
        symbol->chosen != item && symbol->chosen->kind != ITEM_ENTRY &&
        (item->is_defined || symbol->chosen_input != index) && item->linkage != PTX_LINK_EXTERN)
        return write_declaration(out, linker, input, item, symbol);
    if (symbol != NULL && symbol->chosen != NULL && symbol->chosen != item && item->kind == ITEM_ENTRY &&
        symbol->chosen_input != index)
        return true; /* a weak entry: another one counts */
    bool good = true;
    if (item->kind != ITEM_OTHER && item->kind != ITEM_ALIAS) {
        clab_str_add(out, directive_of(item->linkage));
        good = write_span(out, linker, input, item->head);
    }
    if (item->kind == ITEM_ENTRY && item->is_defined && max_registers > 0 &&
        !has_word(item->head, ".maxnreg"))
        clab_str_addf(out, "\n.maxnreg %u\n", max_registers);
    good = good && write_span(out, linker, input, item->rest);
    bool is_open = item->kind == ITEM_VARIABLE ||
                   ((item->kind == ITEM_FUNCTION || item->kind == ITEM_ENTRY) && !item->is_defined);
    clab_str_add(out, is_open ? ";\n" : "\n");
    return good;
}

const struct clab_error *ptx_linker_conflict(const struct ptx_linker *linker)
{
    return linker->twice.status != CLAB_OK ? &linker->twice : NULL;
}

clab_status ptx_linker_text(struct ptx_linker *linker, const char *target, unsigned max_registers,
                            char **out_text, struct clab_error *error)
{
    struct clab_str out = {0};
    bool good = true;
    if (linker->twice.status != CLAB_OK) {
        clab_error_copy(error, &linker->twice);
        return error->status;
    }
    if (linker->n_inputs == 0)
        clab_str_addf(&out, ".version 8.0\n.target %s\n", target);
    else
        clab_str_addf(&out, ".version %.*s\n.target %.*s\n", (int)linker->version.bytes, linker->version.text,
                      (int)linker->target.bytes, linker->target.text);
    clab_str_add(&out, ".address_size 64\n" PTX_LINKED_MARK "\n");
    linker->n_pieces = 0;
    linker->counted_bytes = 0;
    linker->line = 1;
    for (uint32_t i = 0; i < linker->n_inputs && good; i++)
        good = rename_own(linker, i);
    for (uint32_t i = 0; i < linker->n_inputs && good; i++) {
        clab_str_addf(&out, "\n// %s\n", linker->inputs[i]->name);
        for (size_t k = 0; k < linker->inputs[i]->n_items && good; k++)
            good = write_item(&out, linker, i, &linker->inputs[i]->items[k], max_registers);
    }
    *out_text = good ? clab_str_take(&out) : NULL;
    clab_str_free(&out);
    return *out_text != NULL ? CLAB_OK
                             : clab_error_set(error, CLAB_NO_MEMORY, "no memory for the linked image");
}

bool ptx_linker_place(const struct ptx_linker *linker, uint32_t line, const char **out_name,
                      uint32_t *out_line)
{
    size_t low = 0, high = linker->n_pieces; /* the last piece that begins at or before the line */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (linker->pieces[middle].line <= line)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    const struct piece *piece = &linker->pieces[low - 1];
    *out_name = piece->input->name;
    *out_line = line_of(piece->input, piece->from) + (line - piece->line);
    return true;
}

bool ptx_linker_declared(const struct ptx_linker *linker, const char *name, const char **out_name,
                         uint32_t *out_line)
{
    for (size_t i = 0; i < linker->n_inputs; i++)
        for (size_t k = 0; k < linker->inputs[i]->n_items; k++) {
            const struct item *item = &linker->inputs[i]->items[k];
            if (item->kind == ITEM_OTHER || item->linkage != PTX_LINK_EXTERN ||
                item->name.bytes != strlen(name) || memcmp(item->name.text, name, item->name.bytes) != 0)
                continue;
            *out_name = linker->inputs[i]->name;
            *out_line = line_of(linker->inputs[i], item->name.text);
            return true;
        }
    return false;
}
