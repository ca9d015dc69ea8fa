/* Modules (PTX ISA 9.0, chapters 4 and 11): the directives outside functions, and the public entry points.
 * Debug sections: debug.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ptx/link.h"
#include "ptx/parser.h"

static bool version_too_old(struct ptx_parser *parser)
{
    const struct ptx_module *module = parser->module;
    const char suffix[2] = {module->target.suffix, 0};
    ptx_fail(parser, "PTX .version %u.%u does not support .target sm_%u%s, which needs %u.%u",
             module->version / 10, module->version % 10, module->target.sm, suffix,
             parser->least_version / 10, parser->least_version % 10);
    if (parser->error)
        parser->error->status = CLAB_PTX_TARGET;
    return false;
}

/* --- other directives */

/* The versions there are, as ptxas 13.0.88 knows them; what is newer than the last is unknown, not wrong. */
static bool version_exists(unsigned version)
{
    static const uint8_t last[] = {0, 15, 23, 32, 43, 51, 65, 78, 88, PTX_VERSION_KNOWN};
    const unsigned major = version / 10;
    return version >= PTX_VERSION_KNOWN || (major > 0 && version <= last[major]);
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
    if (!version_exists(parser->module->version))
        return ptx_fail(parser, "there is no PTX ISA .version %u.%u", major, minor);
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

/* sm_90, compute_90: the same. The number ends at the first character that is no digit, and of what follows
   only a last a or f counts (ptxas 13.0.88 takes sm_90x for sm_90 and sm_90xa for sm_90a). */
static bool target_name(const struct ptx_token *token, struct ptx_target *out)
{
    char name[16];
    const size_t stem = token->bytes > 3 && memcmp(token->text, "sm_", 3) == 0        ? 3
                        : token->bytes > 8 && memcmp(token->text, "compute_", 8) == 0 ? 8
                                                                                      : 0;
    if (!stem)
        return false;
    const size_t digits = strspn(token->text + stem, "0123456789");
    const char last = token->text[token->bytes - 1];
    if (digits == 0 || digits > 6)
        return false;
    const unsigned sm = (unsigned)strtoul(token->text + stem, NULL, 10);
    const int length =
        snprintf(name, sizeof name, "sm_%u%.*s", sm, last == 'a' || last == 'f' ? 1 : 0, &last);
    return ptx_target_parse(name, (size_t)length, out);
}

bool ptx_parse_target(struct ptx_parser *parser)
{
    struct ptx_target *target = &parser->module->target;
    bool has_sm = false, unified = false, is_101 = false;
    do {
        const struct ptx_token *token = &parser->token;
        if (token->kind != PTX_TOKEN_NAME)
            return ptx_fail(parser, "expected a target such as sm_90");
        struct ptx_target read;
        if (target_name(token, &read)) {
            target->sm = read.sm; /* the last one counts */
            target->suffix = read.suffix;
            is_101 = strstr(token->text, "_101") ==
                     token->text + strcspn(token->text, "_"); /* sm_110's former name */
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
    if (is_101)
        least = target->suffix == 'f' ? 88 : 86;
    char suffix[2] = {target->suffix, 0};
    if (least == 0)
        return ptx_fail(parser, "'sm_%u%s' is not a target", target->sm, suffix);
    parser->least_version = (uint16_t)least;
    const bool may_wait = parser->options && parser->options->any_target;
    return parser->module->version >= least || may_wait || version_too_old(parser);
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
            return (*out != PTX_LINK_WEAK || ptx_needs(parser, PTX_FEATURE_WEAK)) &&
                   (*out != PTX_LINK_COMMON || ptx_needs(parser, PTX_FEATURE_COMMON));
        }
    }
    return false;
}

static bool module_directive(struct ptx_parser *parser)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{".global", PTX_SPACE_GLOBAL}, {".const", PTX_SPACE_CONST}, {".shared", PTX_SPACE_SHARED}};
    enum ptx_linkage linkage;
    if (ptx_accept_dot(parser, ".version"))
        return version_read(parser);
    if (!parser->has_version)
        return ptx_fail(parser, "expected .version first");
    if (ptx_is_dot(parser, ".target") && (!parser->has_target || parser->may_size)) {
        ptx_next(parser);
        parser->may_size = true;
        return ptx_parse_target(parser);
    }
    if (!parser->has_target)
        return ptx_fail(parser, "expected .target after .version");
    if (ptx_is_dot(parser, ".address_size") && parser->may_size) {
        uint32_t size;
        ptx_next(parser);
        parser->may_size = false;
        if (!ptx_needs(parser, PTX_FEATURE_ADDRESS_SIZE) || !ptx_number_u32(parser, 64, &size))
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
    if (!linkage_read(parser, &linkage) && linkage != PTX_LINK_NONE)
        return false;
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
    if (parser->module_functions.count > 0 && parser->module->version < parser->least_version)
        return version_too_old(parser);
    ptx_aliases_apply(parser);
    if (!ptx_sections_check(parser) || !ptx_all_defined(parser))
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
    clab_map_free(&parser.places);
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
