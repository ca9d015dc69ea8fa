/* Debug information and pragmas (PTX ISA 9.0, 11.5): .file, .loc, .section, .pragma. The text of sections is
   checked, as ptxas 13.0 checks it, and not kept. */
#include <string.h>

#include "base/str.h"
#include "ptx/parser.h"

bool ptx_parse_file(struct ptx_parser *parser)
{
    enum { MOST = 1 << 16 }; /* files beyond have no name in messages */
    uint32_t index;
    if (!ptx_number_u32(parser, UINT32_MAX, &index))
        return false;
    if (parser->token.kind != PTX_TOKEN_STRING)
        return ptx_fail(parser, "expected the file's name in quotes");
    struct ptx_module *module = parser->module;
    if (index < MOST && index >= parser->n_files) {
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
    if (index < MOST) {
        if (index < module->n_files && module->files[index])
            return ptx_fail(parser, "file %u is already declared", (unsigned)index);
        module->n_files = index >= module->n_files ? index + 1 : module->n_files;
        char *name = clab_arena_strndup(parser->arena, parser->token.text + 1, parser->token.bytes - 2);
        if (!name)
            return ptx_no_memory(parser);
        clab_unescape(name);
        module->files[index] = name;
    }
    ptx_next(parser);
    if (!ptx_is(parser, ','))
        return true;
    if (!ptx_needs(parser, PTX_FEATURE_FILE_DETAILS))
        return false;
    for (unsigned i = 0; i < 2 && ptx_accept(parser, ','); i++) { /* time stamp, size */
        struct ptx_value value;
        if (!ptx_constant(parser, &value))
            return false;
    }
    return true;
}

static bool word_expect(struct ptx_parser *parser, const char *word)
{
    if (!ptx_is_name(parser, word))
        return ptx_fail(parser, "expected %s", word);
    ptx_next(parser);
    return true;
}

/* A place that .loc named: inlined_at may name such ones only. 1 + index of the last .loc of the place; 0:
 * none. */
static uint32_t loc_seen(const struct ptx_parser *parser, const uint32_t place[3])
{
    return (uint32_t)(uintptr_t)clab_map_get(&parser->places, (const char *)place, 3 * sizeof *place);
}

/* The newest .loc, `number` counted from 1, has that place. */
static bool loc_note(struct ptx_parser *parser, const uint32_t place[3], uint32_t number)
{
    uint32_t *key = clab_arena_array(&parser->scratch, 3, sizeof *key);
    if (!key)
        return ptx_no_memory(parser);
    memcpy(key, place, 3 * sizeof *key);
    return clab_map_set(&parser->places, (const char *)key, 3 * sizeof *key, (void *)(uintptr_t)number) ||
           ptx_no_memory(parser);
}

/* , function_name label{+offset}, inlined_at file line column */
static bool inlined_read(struct ptx_parser *parser, uint32_t *out_caller)
{
    struct ptx_name *label;
    uint32_t ignored, at[3];
    const uint32_t line = parser->token.line, column = parser->token.column;
    if (!ptx_needs(parser, PTX_FEATURE_INLINED_AT) || !word_expect(parser, "function_name") ||
        !ptx_expect_name(parser, "a label", &label) ||
        (ptx_accept(parser, '+') && !ptx_number_u32(parser, UINT32_MAX, &ignored)) ||
        !ptx_expect(parser, ',', "after the function's name") || !word_expect(parser, "inlined_at"))
        return false;
    for (unsigned i = 0; i < 3; i++)
        if (!ptx_number_u32(parser, UINT32_MAX, &at[i]))
            return false;
    *out_caller = loc_seen(parser, at);
    if (*out_caller == 0)
        return ptx_fail_at(parser, line, column, NULL, "inlined_at %u %u %u: no .loc before has that place",
                           (unsigned)at[0], (unsigned)at[1], (unsigned)at[2]);
    if (label->in_section || label->is_awaited)
        return true;
    struct ptx_name **kept = ptx_list_add(parser, &parser->function_names, sizeof *kept);
    if (!kept)
        return false;
    *kept = label;
    return label->is_awaited = true;
}

/* .loc file line column{, function_name label{+offset}, inlined_at file line column} */
bool ptx_parse_loc(struct ptx_parser *parser)
{
    uint32_t place[3], caller = 0;
    for (unsigned i = 0; i < 3; i++)
        if (!ptx_number_u32(parser, UINT32_MAX, &place[i]))
            return false;
    if (ptx_accept(parser, ',') && !inlined_read(parser, &caller))
        return false;
    struct ptx_loc *kept = ptx_list_add(parser, &parser->module_locs, sizeof *kept);
    parser->loc = (uint32_t)parser->module_locs.count;
    if (!kept || !loc_note(parser, place, parser->loc))
        return false;
    *kept = (struct ptx_loc){place[0], place[1], place[2], caller};
    return true;
}

bool ptx_insn_place(const struct ptx_module *module, const struct ptx_insn *insn, unsigned level,
                    const char **out_file, uint32_t *out_line, uint32_t *out_column)
{
    uint32_t at = insn->loc;
    for (; level > 0 && at > 0 && at <= module->n_locs; level--)
        at = module->locs[at - 1].caller;
    if (at == 0 || at > module->n_locs)
        return false;
    const struct ptx_loc *loc = &module->locs[at - 1];
    if (loc->line == 0 || loc->file >= module->n_files || module->files[loc->file] == NULL)
        return false;
    *out_file = module->files[loc->file];
    *out_line = loc->line;
    *out_column = loc->column;
    return true;
}

/* May a pragma stand there? (PTX ISA 9.0, 11.5: each says where; ptxas 13.0 passes over unknown ones inside
   functions only.) */
static bool pragma_check(struct ptx_parser *parser, enum ptx_pragma_place place)
{
    static const struct {
        const char *word;
        bool takes_value;
    } local[] = {{"used_bytes_mask", true}, {"enable_smem_spilling", false}, {"frequency", true}};
    const char *text = parser->token.text + 1;
    size_t bytes = parser->token.bytes - 2, word = 0;
    while (word < bytes && text[word] != ' ')
        word++;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if (word != strlen(local[i].word) || memcmp(text, local[i].word, word) != 0)
            continue;
        if (place != PTX_PRAGMA_BODY)
            return ptx_fail(parser, "pragma %s is for function bodies only", local[i].word);
        if (local[i].takes_value && word == bytes)
            return ptx_fail(parser, "pragma %s needs a value", local[i].word);
        if (strcmp(local[i].word, "frequency") == 0 && (text[word + 1] < '0' || text[word + 1] > '9'))
            return ptx_fail(parser, "pragma frequency needs a number");
        return true;
    }
    if (word == strlen("abi_param_reg") && memcmp(text, "abi_param_reg", word) == 0)
        return place != PTX_PRAGMA_BODY ||
               ptx_fail(parser, "pragma abi_param_reg is not for bodies of functions");
    if (place == PTX_PRAGMA_MODULE && (bytes != 8 || memcmp(text, "nounroll", bytes) != 0))
        return ptx_fail(parser, "unknown pragma '%.*s'", bytes < 60 ? (int)bytes : 60, text);
    return true;
}

bool ptx_parse_pragma(struct ptx_parser *parser, enum ptx_pragma_place place)
{
    if (!ptx_needs(parser, PTX_FEATURE_PRAGMA))
        return false;
    do {
        if (parser->token.kind != PTX_TOKEN_STRING)
            return ptx_fail(parser, "expected the pragma in quotes");
        if (!pragma_check(parser, place))
            return false;
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after .pragma");
}

/* One value of .b8 to .b64: an integer with a sign, in the type's range; true with *out_number false when the
   next token is none. */
static bool number_read(struct ptx_parser *parser, enum ptx_type type, bool *out_number)
{
    const bool negative = ptx_accept(parser, '-');
    const unsigned bits = ptx_types[type].bits;
    *out_number = parser->token.kind == PTX_TOKEN_INT;
    if (!*out_number)
        return !negative || ptx_fail(parser, "expected a number");
    const uint64_t value = parser->token.value;
    if (negative ? bits < 64 && value > UINT64_C(1) << (bits - 1) : bits < 32 && value >> bits)
        return ptx_fail(parser, "the value does not fit .b%u", bits);
    ptx_next(parser);
    return true;
}

/* label{+offset}, label - label, or the name of a section: .b32 and .b64. */
static bool address_read(struct ptx_parser *parser)
{
    struct ptx_name *label;
    uint32_t ignored;
    if (parser->token.kind == PTX_TOKEN_DOT && ptx_type_of(&parser->token) == PTX_NONE) {
        ptx_next(parser);
        return !ptx_accept(parser, '+') || ptx_number_u32(parser, UINT32_MAX, &ignored);
    }
    if (ptx_is_name(parser, "WARP_SZ") || !ptx_expect_name(parser, "a number or a label", &label))
        return ptx_fail(parser, "expected a number or a label");
    if (ptx_accept(parser, '-'))
        return ptx_expect_name(parser, "a label", &label);
    return !ptx_accept(parser, '+') || ptx_number_u32(parser, UINT32_MAX, &ignored);
}

static bool data_read(struct ptx_parser *parser)
{
    const enum ptx_type type = ptx_type_of(&parser->token);
    if (type != PTX_B8 && type != PTX_B16 && type != PTX_B32 && type != PTX_B64)
        return ptx_fail(parser, "expected .b8, .b16, .b32, .b64 or a label");
    ptx_next(parser);
    bool number, first = true;
    do {
        if (!number_read(parser, type, &number))
            return false;
        if (!number)
            return (first && (type == PTX_B32 || type == PTX_B64) && address_read(parser)) ||
                   (!parser->failed && ptx_fail(parser, "expected a number"));
        first = false;
    } while (ptx_accept(parser, ','));
    return true;
}

/* .section .name { label: .b8 1, 2 .b32 label … } */
bool ptx_parse_section(struct ptx_parser *parser)
{
    parser->has_section = true;
    if (!ptx_needs(parser, PTX_FEATURE_SECTION))
        return false;
    if (parser->token.kind != PTX_TOKEN_DOT || ptx_type_of(&parser->token) != PTX_NONE)
        return ptx_fail(parser, "expected the name of a section, such as .debug_info");
    ptx_next(parser);
    if (!ptx_expect(parser, '{', "after the section's name"))
        return false;
    while (!ptx_is(parser, '}')) {
        if (parser->token.kind != PTX_TOKEN_NAME) {
            if (!data_read(parser))
                return false;
            continue;
        }
        struct ptx_name *label;
        if (!ptx_needs(parser, PTX_FEATURE_SECTION_LABEL) || !ptx_expect_name(parser, "a label", &label))
            return false;
        if (label->in_section)
            return ptx_fail(parser, "label '%s' is already defined in a section", label->text);
        label->in_section = true;
        if (!ptx_expect(parser, ':', "after the label"))
            return false;
    }
    ptx_next(parser);
    return true;
}

bool ptx_sections_check(struct ptx_parser *parser)
{
    struct ptx_name *const *names = parser->function_names.items;
    for (size_t i = 0; i < parser->function_names.count; i++)
        if (!names[i]->in_section)
            return ptx_fail(parser, "function_name %s: no section has that label", names[i]->text);
    return true;
}
