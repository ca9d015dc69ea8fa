/* Reading compiler logs: where the first error is, and what the verbose lines say of a kernel's resources.
   The forms are those that NVRTC 13.0.88 and nvJitLink 13.0.88 print; a log that has none of them is kept
   whole in the error. */
#include "compile/ptxas_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The line at `at` without its newline into `line`; returns the start of the next, or NULL at the end. */
static const char *take_line(const char *at, char *line, size_t bytes)
{
    size_t length = strcspn(at, "\n");
    snprintf(line, bytes, "%.*s", (int)(length < bytes ? length : bytes - 1), at);
    return at[length] == '\n' ? at + length + 1 : NULL;
}

/* The number before `unit` in a line like "Used 10 registers, used 1 barriers, 1024 bytes smem". */
static int number_before(const char *line, const char *unit)
{
    const char *at = strstr(line, unit);
    if (at == NULL)
        return 0;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return atoi(at);
}

void clab_ptxas_log_resources(const char *log, const char *entry, struct clab_image_resources *out)
{
    char line[1024], wanted[1024];
    bool ours = false;
    memset(out, 0, sizeof *out);
    snprintf(wanted, sizeof wanted, "Compiling entry function '%s'", entry);
    for (const char *at = log; at != NULL && *at != '\0' && !out->known;) {
        at = take_line(at, line, sizeof line);
        if (strstr(line, "Compiling entry function") != NULL)
            ours = strstr(line, wanted) != NULL;
        else if (ours && strstr(line, " bytes stack frame") != NULL) {
            out->stack_bytes = number_before(line, " bytes stack frame");
            out->spill_store_bytes = number_before(line, " bytes spill stores");
            out->spill_load_bytes = number_before(line, " bytes spill loads");
        } else if (ours && strstr(line, "Used ") != NULL && strstr(line, " registers") != NULL) {
            out->registers = number_before(line, " registers");
            out->barriers = number_before(line, " barriers");
            out->static_smem_bytes = number_before(line, " bytes smem");
            out->known = true;
        }
    }
}

void clab_ptxas_log_image_resources(const char *log, struct clab_image *image)
{
    char **names = NULL;
    size_t count = 0;
    if (image->lowered != NULL)
        clab_ptxas_log_resources(log, image->lowered, &image->resources);
    else if (clab_image_entries(image, &names, &count, NULL) == CLAB_OK && count == 1)
        clab_ptxas_log_resources(log, names[0], &image->resources);
    clab_image_names_free(names, count);
}

static bool is_verbose(const char *line)
{
    /* "ptxas info : (C7508) ..." is advice, which stays; the rest of "ptxas info" is the verbose report. */
    bool info = strncmp(line, "ptxas info", 10) == 0 && strstr(line, ": (") == NULL;
    bool nvjitlink = strncmp(line, "info    :", 9) == 0 && strstr(line, ": (") == NULL;
    return info || nvjitlink || strncmp(line, "ptxas         .", 15) == 0 ||
           strstr(line, "creating precompiled header file \"") != NULL ||
           strstr(line, "using precompiled header file \"") != NULL;
}

char *clab_compile_log_strip(const char *log)
{
    struct clab_str kept = {0};
    char line[4096];
    for (const char *at = log; at != NULL && *at != '\0';) {
        at = take_line(at, line, sizeof line);
        if (!is_verbose(line) && (line[0] != '\0' || kept.bytes > 0))
            clab_str_addf(&kept, "%s\n", line);
    }
    char *text = clab_str_take(&kept);
    size_t length = text != NULL ? strlen(text) : 0;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    if (length == 0) {
        free(text);
        return NULL;
    }
    return text;
}

static const char *trimmed(const char *line)
{
    return line + strspn(line, " \t");
}

/* "1 error detected in the compilation of ..." and its kind: who reads of the error knows. */
static bool is_closing(const char *line)
{
    const char *text = trimmed(line);
    return strstr(text, "ptxas fatal   : Ptx assembly aborted due to errors") != NULL ||
           strncmp(text, "ERROR NVJITLINK_ERROR_PTX_COMPILE", 33) == 0 ||
           strncmp(text, "1 error detected in the compilation of", 38) == 0;
}

/* Lines that follow an error in a log and repeat its source line, the caret, or the kernel. */
static bool belongs(const char *line, const struct clab_error *said)
{
    const char *text = trimmed(line), *source = trimmed(said->source_line);
    const size_t bytes = strcspn(source, "\r\n");
    return text[0] == '\0' || strcmp(text, "^") == 0 || strncmp(text, "in: kernel ", 11) == 0 ||
           (bytes > 0 && strncmp(text, source, bytes) == 0);
}

/* The error again: its message, with or without what callers put before it ("cuModuleLoadData: "), or its
 * line. */
static bool is_said(const char *line, const struct clab_error *said)
{
    char place[40];
    snprintf(place, sizeof place, ", line %u; ", said->line);
    if (said->line > 0 && strstr(line, place) != NULL)
        return true; /* ptxas, which may say several things of one statement */
    const size_t bytes = strlen(line);
    for (const char *tail = said->message; tail != NULL && tail[0] != '\0';) {
        const size_t wanted = strlen(tail);
        if (wanted <= bytes && strcmp(line + bytes - wanted, tail) == 0)
            return true;
        tail = strstr(tail, ": ");
        tail = tail != NULL ? tail + 2 : NULL;
    }
    return false;
}

char *clab_log_rest(const char *log, const struct clab_error *said)
{
    struct clab_str rest = {0};
    char line[4096];
    bool follows = false;
    for (const char *at = log; at != NULL && *at != '\0';) {
        at = take_line(at, line, sizeof line);
        if (is_said(line, said))
            follows = true;
        else if (follows && belongs(line, said))
            continue;
        else {
            follows = false;
            if (!is_closing(line) && (line[0] != '\0' || rest.bytes > 0))
                clab_str_addf(&rest, "%s\n", line);
        }
    }
    char *text = clab_str_take(&rest);
    if (text != NULL && text[0] == '\0') {
        free(text);
        text = NULL;
    }
    return text;
}

void clab_text_line(const char *text, uint32_t n, char *line, size_t bytes)
{
    line[0] = '\0';
    for (const char *at = text; at != NULL && n > 0; n--)
        at = take_line(at, line, bytes);
    if (n > 0)
        line[0] = '\0';
}

bool clab_ptxas_log_error(const char *log, const char *source_path, const char *ptx, struct clab_error *error)
{
    char line[1024];
    for (const char *at = log; at != NULL && *at != '\0';) {
        at = take_line(at, line, sizeof line);
        const char *text = strstr(line, "error");
        const char *place = strstr(line, ", line ");
        const char *fatal = strstr(line, "fatal");
        if (text == NULL && fatal == NULL)
            continue;
        text = strchr(text != NULL ? text : fatal, ':');
        if (text == NULL)
            continue;
        for (text++; *text == ' '; text++)
            ;
        clab_status status = CLAB_COMPILE;
        if (strstr(text, "target") != NULL || strstr(text, ".version") != NULL ||
            strstr(text, "architecture") != NULL)
            status = CLAB_PTX_TARGET;
        else if (strstr(text, "Parsing error") != NULL || strstr(text, "syntax error") != NULL)
            status = CLAB_PTX_SYNTAX;
        clab_error_set(error, status, "%s", text);
        clab_error_at(error, source_path, place != NULL ? (uint32_t)strtoul(place + 7, NULL, 10) : 0, 0);
        if (error != NULL && error->line > 0 && ptx != NULL)
            clab_text_line(ptx, error->line, error->source_line, sizeof error->source_line);
        return true;
    }
    return false;
}

bool clab_nvrtc_log_error(const char *log, struct clab_error *error)
{
    static const char *const kinds[] = {"): error", "): catastrophic error", "): internal error",
                                        "): fatal error"};
    char line[4096], source[4096] = "", caret[4096] = "";
    for (const char *at = log; at != NULL && *at != '\0';) {
        at = take_line(at, line, sizeof line);
        char *kind = NULL;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && kind == NULL; i++)
            kind = strstr(line, kinds[i]);
        char *open = kind;
        while (open != NULL && open > line && *open != '(')
            open--;
        if (kind == NULL || *open != '(')
            continue;
        char *text = strstr(kind, ": ");
        text = text != NULL ? strstr(text + 2, ": ") : NULL;
        clab_error_set(error, CLAB_COMPILE, "%s", text != NULL ? text + 2 : kind + 3);
        *open = '\0';
        uint32_t column = 0;
        if (at != NULL)
            at = take_line(at, source, sizeof source);
        if (at != NULL)
            take_line(at, caret, sizeof caret);
        size_t indent = strspn(caret, " \t");
        if (caret[indent] == '^' && indent >= 2)
            column = (uint32_t)(indent - 1); /* the listing is indented by two */
        clab_error_at(error, line, (uint32_t)strtoul(open + 1, NULL, 10), column);
        if (error != NULL && column > 0 && strncmp(source, "  ", 2) == 0)
            snprintf(error->source_line, sizeof error->source_line, "%.255s", source + 2);
        return true;
    }
    return false;
}

bool clab_ptx_source_place(const char *ptx, uint32_t line, char *file, size_t bytes, uint32_t *out_line,
                           uint32_t *out_column)
{
    char text[4096];
    unsigned int number = 0, row = 0, column = 0, id;
    const char *at = ptx;
    for (uint32_t n = 1; n < line && at != NULL; n++) {
        at = take_line(at, text, sizeof text);
        const char *word = text + strspn(text, " \t");
        if (word[0] == '}' && word == text)
            number = 0; /* a function's end */
        else if (strncmp(word, ".loc", 4) == 0 && sscanf(word, ".loc %u %u %u", &id, &row, &column) == 3)
            number = id;
    }
    for (at = number > 0 ? ptx : NULL; at != NULL && *at != '\0';) {
        at = take_line(at, text, sizeof text);
        const char *word = text + strspn(text, " \t");
        const char *open = strchr(word, '"'), *close = open != NULL ? strchr(open + 1, '"') : NULL;
        if (close == NULL || sscanf(word, ".file %u", &id) != 1 || id != number)
            continue;
        snprintf(file, bytes, "%.*s", (int)(close - open - 1), open + 1);
        clab_unescape(file);
        *out_line = row;
        *out_column = column;
        return true;
    }
    return false;
}
