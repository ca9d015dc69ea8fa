/* What tells the targets of one chip apart in CUDA C++ are the macros __CUDA_ARCH_FEAT_SM100_ALL,
   __CUDA_ARCH_SPECIFIC__ and __CUDA_ARCH_FAMILY_SPECIFIC__ (CUDA C++ Programming Guide 13.0,
   "Architecture-Specific Features", "Family-Specific Features"), and names that CUDA's headers make of them:
   NV_HAS_FEATURE_SM_90a, __CUDA_HAS_ARCH_SPECIFIC. NVRTC's front end tells which files it opened
   (-Xcudafe --trace_includes; no documented option: where NVRTC refuses it, each target is compiled), and
   each of them is looked through for these names. In the user's files none may stand, not even in a comment,
   nor a piece that could be made into one: ## makes a file one that looks. In CUDA's own files one may stand

   - in a condition that encloses nothing but definitions of such names;
   - in cuda/__ptx/instructions, in a condition whose #else calls a function
     __cuda_ptx_..._is_not_supported_before_SM_...: libcu++'s wrappers of instructions. That call stays in the
   PTX where the wrapper is used (measured: NVRTC 13.0.88, 2026-11-30), so PTX without it comes of none.

   Anywhere else it makes the source one that looks. That the code generator gives the same code for the same
   text under each target of a chip is in no manual: 372 sources, compiled for eight targets of three chips
   with NVRTC 13.0.88, gave PTX that differs in .target only, but for one, which looks; tests/compile compares
   sources of each kind.

   libcu++ opens cuda_fp8.h, which looks, in order to know types that most sources never name: for those that
   do not, CCCL_DISABLE_NVFP8_SUPPORT (CCCL's own switch) leaves it out. What goes from the PTX are constants
   of numeric_limits for those types, which no kernel reads. */
#include "compile/share.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "compile/cache.h"
#include "compile/host_headers.h"

static const char *const seeds[] = {"FEAT_SM",        "ARCH_FEAT",     "ARCH_SPECIFIC",   "ARCH_FAMILY",
                                    "NV_HAS_FEATURE", "CUDA_HAS_ARCH", "ARCH_HAS_FEATURE"};
#define GATE "_is_not_supported_before_SM_"

static bool has_seed(const char *text)
{
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        if (strstr(text, seeds[i]) != NULL)
            return true;
    return false;
}

/* Whether text of the user's may make a difference between targets: a name, a piece of one, or ##, which
   could make one of pieces. Lines that are spliced are whole here; comments count. */
static bool user_looks(const char *text)
{
    static const char *const pieces[] = {"##", "%:%:", "NV_HAS", "FEATURE_SM"};
    static const char arch[] = "__CUDA_ARCH_";
    char *whole = malloc(strlen(text) + 1), *out = whole;
    if (whole == NULL)
        return true;
    while (*text != '\0')
        if (text[0] == '\\' && text[1] == '\n')
            text += 2;
        else if (text[0] == '\\' && text[1] == '\r' && text[2] == '\n')
            text += 3;
        else
            *out++ = *text++;
    *out = '\0';
    bool looks = has_seed(whole);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        looks = looks || strstr(whole, pieces[i]) != NULL;
    for (const char *at = whole; !looks && (at = strstr(at, arch)) != NULL; at++) {
        const char *rest = at + sizeof arch - 1; /* __CUDA_ARCH__ is the chip's */
        looks = !(rest[0] == '_' && !isalnum((unsigned char)rest[1]) && rest[1] != '_') &&
                strncmp(rest, "LIST__", 6) != 0;
    }
    free(whole);
    return looks;
}

/* --- options */

/* Options that reach the assembler, or read files that nobody looks through, are not among these. */
static bool is_front_end_option(const char *option)
{
    static const char *const known[] = {"-std=",
                                        "--std=",
                                        "-default-device",
                                        "--device-as-d",
                                        "-use_fast",
                                        "--use_fast_math",
                                        "-ftz=",
                                        "--ftz=",
                                        "-prec-sqrt=",
                                        "--prec-sqrt=",
                                        "-prec-div=",
                                        "--prec-div=",
                                        "-fmad=",
                                        "--fmad=",
                                        "-w",
                                        "--disable-warn",
                                        "-diag-",
                                        "--diag-",
                                        "-D",
                                        "-U",
                                        "--define-macro=",
                                        "-restrict",
                                        "--restrict",
                                        "--undefine-macro=",
                                        "-minimal",
                                        "--minimal",
                                        "-extra-device-vec",
                                        "--extra-device",
                                        "--brief-dia",
                                        "--device-int128"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(option, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

bool clab_share_possible(const struct clab_compile_request *request)
{
    if (!request->per_chip || request->want != CLAB_IMAGE_CUBIN || request->source_text == NULL)
        return false;
    for (size_t i = 0; i < request->option_count; i++)
        if (!is_front_end_option(request->options[i]) || user_looks(request->options[i]))
            return false;
    for (size_t i = 0; i < request->define_count; i++)
        if (user_looks(request->defines[i]))
            return false;
    return !user_looks(request->source_text);
}

static bool names_small_floats(const char *text)
{
    for (const char *at = text; (at = strpbrk(at, "fF")) != NULL; at++)
        if ((at[1] == 'p' || at[1] == 'P') && (at[2] == '4' || at[2] == '6' || at[2] == '8'))
            return true;
    return false;
}

bool clab_share_names_small_floats(const struct clab_compile_request *request, const char *included)
{
    bool found = names_small_floats(request->source_text);
    for (size_t i = 0; i < request->define_count && !found; i++)
        found = names_small_floats(request->defines[i]);
    for (size_t i = 0; i < request->option_count && !found; i++)
        found = names_small_floats(request->options[i]);
    /* Lines "PATH SHA256". */
    for (const char *at = included; at != NULL && *at != '\0' && !found;) {
        const size_t line = strcspn(at, "\n");
        char path[8192];
        size_t bytes;
        snprintf(path, sizeof path, "%.*s", line > 65 ? (int)(line - 65) : 0, at);
        char *text = clab_file_read(path, (size_t)64 << 20, &bytes);
        found = text == NULL || names_small_floats(text);
        free(text);
        at += line;
        at += *at == '\n';
    }
    return found;
}

/* --- one text */

/* The next logical line, without comments, into `out` (room for the whole text); the text behind it. */
static const char *take_line(const char *at, char *out)
{
    char quote = '\0', last = '\0';
    while (*at != '\0' && *at != '\n') {
        if (at[0] == '\\' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n'))) {
            at += at[1] == '\r' ? 3 : 2;
        } else if (quote == '\0' && at[0] == '/' && at[1] == '/') {
            while (*at != '\0' && *at != '\n')
                at += at[0] == '\\' && at[1] == '\n' ? 2 : 1;
        } else if (quote == '\0' && at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end != NULL ? end + 2 : at + strlen(at);
            *out++ = ' ';
        } else {
            if (quote != '\0' && at[0] == '\\' && at[1] != '\0' && at[1] != '\n')
                *out++ = *at++;
            else if (quote != '\0')
                quote = *at == quote ? '\0' : quote;
            else if (*at == '"' || (*at == '\'' && !isalnum((unsigned char)last))) /* 1'000 is a number */
                quote = *at;
            last = *at;
            *out++ = *at++;
        }
    }
    *out = '\0';
    return at + (*at == '\n');
}

struct condition {
    bool looks; /* a name stands in it */
    bool code;  /* it encloses more than definitions of such names */
    bool other; /* at its #else */
    bool elif;  /* has more than two branches */
    bool gate;  /* which calls what the linker will miss */
};

enum { MOST_CONDITIONS = 256 };

/* A condition that looks at the suffix and chooses between pieces of code: fine where its #else is a gate. */
static enum clab_share_verdict end_condition(const struct condition *condition)
{
    if (!condition->looks || !condition->code)
        return CLAB_SHARE_SAME;
    return condition->gate && !condition->elif ? CLAB_SHARE_GATED : CLAB_SHARE_LOOKS;
}

static bool is_word(const char *line, const char *word)
{
    const size_t length = strlen(word);
    return strncmp(line, word, length) == 0 && !isalnum((unsigned char)line[length]) && line[length] != '_';
}

/* A directive that defines or removes: whether it does so with a name that is one of ours, and why it
   matters. */
static bool defines_other(const char *line, bool inside)
{
    const char *name = line + strcspn(line, " \t");
    name += strspn(name, " \t");
    char word[512];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " \t("), name);
    return !has_seed(word) && (inside || has_seed(line));
}

enum clab_share_verdict clab_share_look(const char *text, enum clab_share_owner owner)
{
    if (owner == CLAB_SHARE_USER)
        return user_looks(text) ? CLAB_SHARE_LOOKS : CLAB_SHARE_SAME;
    struct condition stack[MOST_CONDITIONS];
    size_t depth = 0;
    enum clab_share_verdict verdict = CLAB_SHARE_SAME;
    if (!has_seed(text))
        return CLAB_SHARE_SAME;
    char *line = malloc(strlen(text) + 1);
    if (line == NULL)
        return CLAB_SHARE_LOOKS;
    while (*text != '\0' && verdict != CLAB_SHARE_LOOKS) {
        text = take_line(text, line);
        const char *at = line + strspn(line, " \t\r\f\v");
        const bool seed = has_seed(at);
        bool inside = false;
        for (size_t i = 0; i < depth; i++)
            inside = inside || stack[i].looks;
        if (*at == '\0')
            continue;
        if (*at != '#') {
            if (seed)
                verdict = CLAB_SHARE_LOOKS;
            const bool gate = owner == CLAB_SHARE_WRAPPERS && strstr(at, GATE) != NULL;
            for (size_t i = 0; i < depth; i++) {
                stack[i].code = true;
                stack[i].gate = stack[i].gate || (gate && stack[i].other);
            }
            continue;
        }
        at += 1 + strspn(at + 1, " \t");
        if (is_word(at, "if") || is_word(at, "ifdef") || is_word(at, "ifndef")) {
            if (depth == MOST_CONDITIONS)
                verdict = CLAB_SHARE_LOOKS;
            else
                stack[depth++] = (struct condition){.looks = seed};
        } else if (is_word(at, "elif") || is_word(at, "elifdef") || is_word(at, "elifndef")) {
            if (depth > 0) {
                stack[depth - 1].looks = stack[depth - 1].looks || seed;
                stack[depth - 1].elif = true;
            }
        } else if (is_word(at, "else")) {
            if (depth > 0)
                stack[depth - 1].other = true;
        } else if (is_word(at, "endif")) {
            const enum clab_share_verdict ended =
                depth > 0 ? end_condition(&stack[--depth]) : CLAB_SHARE_SAME;
            verdict = ended > verdict ? ended : verdict;
        } else if (is_word(at, "define") || is_word(at, "undef")) {
            if (defines_other(at, inside))
                verdict = CLAB_SHARE_LOOKS;
        } else if (seed || inside) {
            verdict = CLAB_SHARE_LOOKS; /* #include, #error, #pragma */
        }
    }
    while (depth > 0) {
        const enum clab_share_verdict ended = end_condition(&stack[--depth]);
        verdict = ended > verdict ? ended : verdict;
    }
    free(line);
    return verdict;
}

/* --- all that NVRTC read */

/* Names that NVRTC brings itself, and the texts that we give it: no files, unless there are files of that
 * name. */
static bool is_built_in(const char *name)
{
    const char *const *names, *const *texts;
    const size_t count = clab_host_headers(&names, &texts);
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strcmp(name, "__nv_nvrtc_builtin_header.h") == 0 || strcmp(name, "__nv_name_map") == 0;
}

/* Whose file that is, by the folder that it was found in. */
static enum clab_share_owner owner_of(const struct clab_toolkit *toolkit, const char *path)
{
    static const enum clab_part_id parts[] = {CLAB_PART_CUDA_INCLUDE, CLAB_PART_CCCL_INCLUDE};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct clab_part *part = &toolkit->parts[parts[i]];
        const size_t length = strlen(part->path);
        if (part->found && length > 0 && strncmp(path, part->path, length) == 0 && path[length] == '/' &&
            strstr(path, "/../") == NULL)
            return strstr(path + length, "/cuda/__ptx/instructions/") != NULL ? CLAB_SHARE_WRAPPERS
                                                                              : CLAB_SHARE_CUDA;
    }
    return CLAB_SHARE_USER;
}

bool clab_share_proved(const struct clab_toolkit *toolkit, const char *source_text, const char *trace,
                       const char *ptx)
{
    enum clab_share_verdict verdict = clab_share_look(source_text, CLAB_SHARE_USER);
    struct clab_arena arena = {0};
    struct clab_map seen = {0};
    bool any = false;
    while (*trace != '\0' && verdict != CLAB_SHARE_LOOKS) {
        trace += strspn(trace, " ");
        const size_t bytes = strcspn(trace, "\n");
        char *path = clab_arena_strndup(&arena, trace, bytes);
        trace += bytes;
        trace += *trace == '\n';
        any = true;
        if (path != NULL && clab_map_get(&seen, path, bytes) != NULL)
            continue;
        size_t read = 0;
        char *text = path != NULL && clab_map_set(&seen, path, bytes, path)
                         ? clab_file_read(path, (size_t)64 << 20, &read)
                         : NULL;
        enum clab_share_verdict one = CLAB_SHARE_LOOKS;
        if (text != NULL && strlen(text) == read)
            one = clab_share_look(text, owner_of(toolkit, path));
        else if (text == NULL && path != NULL && is_built_in(path))
            one = CLAB_SHARE_SAME;
        verdict = one > verdict ? one : verdict;
        free(text);
    }
    clab_map_free(&seen);
    clab_arena_free(&arena);
    /* NVRTC's own header is always among them: without, the list is not what it seems. */
    return any && (verdict == CLAB_SHARE_SAME || (verdict == CLAB_SHARE_GATED && strstr(ptx, GATE) == NULL));
}

/* --- what comes of it */

char *clab_share_retarget(const char *ptx, const struct clab_target *target)
{
    const char *at = ptx;
    while (at != NULL && strncmp(at, ".target ", 8) != 0) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    if (at == NULL)
        return NULL;
    at += 8;
    struct clab_str out = {0};
    clab_str_add_bytes(&out, ptx, (size_t)(at - ptx));
    clab_str_add(&out, target->name);
    clab_str_add(&out, at + strcspn(at, ", \t\r\n"));
    return clab_str_take(&out);
}

bool clab_share_choose_entry(struct clab_image *image, const char *entry)
{
    struct clab_error error = {0};
    char **names = NULL, prefix[512];
    const char *found = NULL;
    size_t count = 0, alike = 0;
    if (entry == NULL)
        return true;
    if (clab_image_entries(image, &names, &count, &error) != CLAB_OK) {
        clab_error_clear(&error);
        return false;
    }
    snprintf(prefix, sizeof prefix, "_Z%zu%s", strlen(entry), entry);
    for (size_t i = 0; i < count && (found == NULL || strcmp(found, entry) != 0); i++) {
        const size_t length = strlen(prefix);
        if (strcmp(names[i], entry) == 0) {
            found = names[i];
            alike = 1;
        } else if (strncmp(names[i], prefix, length) == 0 && names[i][length] != 'I') {
            found = names[i];
            alike++;
        }
    }
    bool good = alike == 1 && clab_image_choose_entry(image, found, &error) == CLAB_OK;
    if (good) {
        free(image->entry);
        image->entry = strdup(entry);
        good = image->entry != NULL;
    }
    clab_error_clear(&error);
    clab_image_names_free(names, count);
    return good;
}
