/* Modules (PTX ISA 9.0, chapters 4 and 11): the directives outside functions, and the public entry points.
 * Debug sections are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ptx/link.h"
#include "ptx/parser.h"

/* --- other directives */

bool ptx_parse_file(struct ptx_parser *parser)
{
    enum { MOST = 1 << 16 };
    uint32_t index;
    if (!ptx_number_u32(parser, MOST, &index))
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
    return true;
}

static bool word_expect(struct ptx_parser *parser, const char *word)
{
    if (!ptx_is_name(parser, word))
        return ptx_fail(parser, "expected %s", word);
    ptx_next(parser);
    return true;
}

/* The .loc of a call that was inlined. Compilers write it before what was inlined there, mostly a few lines
   before; one that is further away, or not there, is added without a caller of its own. */
static bool caller_find(struct ptx_parser *parser, const struct ptx_loc *at, uint32_t *out_caller)
{
    enum { FURTHEST = 256 };
    const struct ptx_loc *all = parser->module_locs.items;
    const size_t count = parser->module_locs.count;
    for (size_t i = count; i > 0 && i + FURTHEST > count; i--) {
        const struct ptx_loc *loc = &all[i - 1];
        if (loc->file == at->file && loc->line == at->line && loc->column == at->column) {
            *out_caller = (uint32_t)i;
            return true;
        }
    }
    struct ptx_loc *kept = ptx_list_add(parser, &parser->module_locs, sizeof *kept);
    if (!kept)
        return false;
    *kept = *at;
    *out_caller = (uint32_t)parser->module_locs.count;
    return true;
}

/* .loc file line column{, function_name label{+offset}, inlined_at file line column} */
bool ptx_parse_loc(struct ptx_parser *parser)
{
    struct ptx_loc loc = {0}, at = {0};
    bool inlined = false;
    if (!ptx_number_u32(parser, UINT32_MAX, &loc.file) || !ptx_number_u32(parser, UINT32_MAX, &loc.line) ||
        !ptx_number_u32(parser, UINT32_MAX, &loc.column))
        return false;
    if (ptx_accept(parser, ',')) {
        struct ptx_name *label;
        uint32_t ignored;
        if (!word_expect(parser, "function_name") || !ptx_expect_name(parser, "a label", &label) ||
            (ptx_accept(parser, '+') && !ptx_number_u32(parser, UINT32_MAX, &ignored)) ||
            !ptx_expect(parser, ',', "after the function's name") || !word_expect(parser, "inlined_at"))
            return false;
        inlined = true;
        if (!ptx_number_u32(parser, UINT32_MAX, &at.file) || !ptx_number_u32(parser, UINT32_MAX, &at.line) ||
            !ptx_number_u32(parser, UINT32_MAX, &at.column))
            return false;
    }
    if (inlined && !caller_find(parser, &at, &loc.caller))
        return false;
    struct ptx_loc *kept = ptx_list_add(parser, &parser->module_locs, sizeof *kept);
    if (!kept)
        return false;
    *kept = loc;
    parser->loc = (uint32_t)parser->module_locs.count;
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
        return true;
    }
    if (place == PTX_PRAGMA_MODULE && (word != 8 || memcmp(text, "nounroll", word) != 0))
        return ptx_fail(parser, "unknown pragma '%.*s'", bytes < 60 ? (int)bytes : 60, text);
    return true;
}

bool ptx_parse_pragma(struct ptx_parser *parser, enum ptx_pragma_place place)
{
    do {
        if (parser->token.kind != PTX_TOKEN_STRING)
            return ptx_fail(parser, "expected the pragma in quotes");
        if (!pragma_check(parser, place))
            return false;
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    return ptx_expect(parser, ';', "after .pragma");
}

/* .section name { … }: debug data, skipped. */
bool ptx_parse_section(struct ptx_parser *parser)
{
    parser->has_section = true;
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
    if (parser->has_version)
        return ptx_fail(parser, "expected one .version only");
    /* 9.0 is lexed as a decimal number: read its text, not its value */
    const struct ptx_token *token = &parser->token;
    unsigned major = 0, minor = 0;
    uint32_t i = 0;
    const char *before = token->text;
    while (before > parser->module->text && (before[-1] == ' ' || before[-1] == '\t'))
        before--;
    if (before - parser->module->text < 8 || memcmp(before - 8, ".version", 8) != 0)
        return ptx_fail(parser, "nothing but blanks may stand between .version and its number");
    for (; i < token->bytes && token->text[i] >= '0' && token->text[i] <= '9' && major < 100; i++)
        major = major * 10 + (unsigned)(token->text[i] - '0');
    bool good = i > 0 && i + 1 < token->bytes && token->text[i] == '.';
    for (i++; i < token->bytes && good; i++) { /* two numbers: 9.00 is 9.0, and 7.80 is no version */
        minor = minor * 10 + (unsigned)(token->text[i] - '0');
        good = token->text[i] >= '0' && token->text[i] <= '9' && minor < 10;
    }
    if (token->kind != PTX_TOKEN_FLOAT || !good)
        return ptx_fail(parser, "expected a version such as 9.0");
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
    bool has_sm = false, unified = false;
    do {
        const struct ptx_token *token = &parser->token;
        if (token->kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected a target such as sm_90");
        struct ptx_target read;
        if (ptx_target_parse(token->text, token->bytes, &read)) {
            target->sm = read.sm; /* the last one counts */
            target->suffix = read.suffix;
            has_sm = true;
        } else if (!has_sm) {
            return ptx_fail(parser, "expected a target such as sm_90 first");
        } else if (ptx_is_name(parser, "debug")) {
            target->debug = true;
        } else if (ptx_is_name(parser, "texmode_independent")) {
            target->texmode_independent = true;
        } else if (ptx_is_name(parser, "texmode_unified")) {
            unified = true;
        } else if (ptx_is_name(parser, "map_f64_to_f32") && target->sm < 13) {
            ; /* for chips without .f64 */
        } else {
            return ptx_fail(parser, "'%.*s' is not a target", (int)(token->bytes < 40 ? token->bytes : 40),
                            token->text);
        }
        ptx_next(parser);
    } while (ptx_accept(parser, ','));
    if (unified && target->texmode_independent)
        return ptx_fail(parser, "texmode_independent and texmode_unified contradict each other");
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
    if (ptx_accept_dot(parser, ".target")) {
        parser->may_size = !parser->has_target;
        return target_read(parser);
    }
    if (!parser->has_target)
        return ptx_fail(parser, "expected .target after .version");
    if (ptx_is_dot(parser, ".address_size") && parser->may_size) {
        uint32_t size;
        ptx_next(parser);
        parser->may_size = false;
        if (!ptx_number_u32(parser, 64, &size))
            return false;
        if (size != 32 && size != 64)
            return ptx_fail(parser, "an address size is 32 or 64");
        if (size == 32 && parser->module->target.sm >= 90) /* as ptxas 13.0 refuses it */
            return ptx_fail(parser, "32-bit addresses are not supported on sm_90 or higher");
        parser->module->address_size = (uint8_t)size;
        return true;
    }
    parser->may_size = false;
    if (ptx_accept_dot(parser, ".file"))
        return ptx_parse_file(parser);
    if (ptx_accept_dot(parser, ".section"))
        return ptx_parse_section(parser);
    if (ptx_accept_dot(parser, ".pragma"))
        return ptx_parse_pragma(parser, PTX_PRAGMA_MODULE);
    if (ptx_accept_dot(parser, ".alias"))
        return ptx_parse_alias(parser);
    linkage_read(parser, &linkage);
    if (ptx_accept_dot(parser, ".entry"))
        return ptx_parse_function(parser, linkage, true);
    if (ptx_accept_dot(parser, ".func"))
        return ptx_parse_function(parser, linkage, false);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_accept_dot(parser, spaces[i].word))
            return ptx_parse_variables(parser, spaces[i].space, linkage);
    return ptx_fail(parser, "expected a directive such as .entry, .func or .global");
}

/* ptxas 13.0 and the driver's JIT refuse a text for one byte beyond ASCII, in a comment too. */
static bool is_ascii(struct ptx_parser *parser)
{
    const char *text = parser->module->text, *line_start = text;
    uint32_t line = 1;
    uint64_t any = 0;
    for (size_t i = 0; i < parser->module->text_bytes; i++)
        any |= (unsigned char)text[i];
    for (size_t i = 0; (any & 0x80) && i < parser->module->text_bytes; i++) {
        if (text[i] == '\n')
            line++, line_start = text + i + 1;
        else if ((unsigned char)text[i] & 0x80)
            return ptx_fail_at(parser, line, (uint32_t)(text + i - line_start) + 1, text + i,
                               "PTX holds ASCII characters only, also in comments");
    }
    return true;
}

static bool module_read(struct ptx_parser *parser)
{
    if (!is_ascii(parser))
        return false;
    ptx_next(parser);
    while (parser->token.kind != PTX_TOKEN_END) {
        if (!module_directive(parser))
            return false;
    }
    if (!parser->has_version)
        return ptx_fail(parser, "expected .version first");
    if (!parser->has_target)
        return ptx_fail(parser, "expected .target after .version");
    ptx_aliases_apply(parser);
    if (!ptx_all_defined(parser))
        return false;
    if (parser->module->target.debug && !parser->has_section)
        return ptx_fail(parser, ".target debug without a .section of debug data");
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
        char start[200];
        snprintf(start, sizeof start, "%s", module->text);
        parser.linked = strstr(start, PTX_LINKED_MARK) != NULL;
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
