/* The error record: building it, adding to it, and putting it into words (style lines 15 to 20).

   clab_error_vset is the one place where a record comes to be. Text that does not fit its field is cut at a
   whole UTF-8 character, so that a record can go into JSON as it is. Nothing here prints; host/main.c does.
 */
#include "base/error.h"

#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_row {
    const char *text;
    int exit_status;
};

static const struct status_row status_rows[CLAB_STATUS_COUNT] = {
#define CLAB_STATUS(id, text, exit_status) [CLAB_##id] = {text, exit_status},
#include "base/errors.def"
#undef CLAB_STATUS
};

/* Process exit statuses, worst first (design 4.2). */
static const int exit_worst_first[] = {130, 1, 6, 5, 4, 3, 2, 0};

const char *clab_status_text(clab_status status)
{
    if ((unsigned)status >= CLAB_STATUS_COUNT)
        return "unknown status";
    return status_rows[status].text;
}

int clab_status_exit(clab_status status)
{
    if ((unsigned)status >= CLAB_STATUS_COUNT)
        return 6;
    return status_rows[status].exit_status;
}

int clab_exit_worse(int a, int b)
{
    /* A status outside the list is a bug of ours: as bad as an internal error. */
    size_t rank_a = 2, rank_b = 2;
    for (size_t i = 0; i < sizeof exit_worst_first / sizeof exit_worst_first[0]; i++) {
        if (exit_worst_first[i] == a)
            rank_a = i;
        if (exit_worst_first[i] == b)
            rank_b = i;
    }
    return rank_a <= rank_b ? a : b;
}

/* Drops an incomplete UTF-8 character from the end of text that was cut. */
static void trim_cut_character(char *text)
{
    size_t end = strlen(text);
    size_t start = end;
    while (start > 0 && end - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (wanted > 1 && end - (start - 1) < wanted)
        text[start - 1] = 0;
}

/* Copies what fits. `from` may be `to` itself, or NULL for "". */
static void copy_text(char *to, size_t capacity, const char *from)
{
    size_t bytes = 0;
    for (; from && from[bytes] && bytes + 1 < capacity; bytes++)
        to[bytes] = from[bytes];
    bool cut = from && from[bytes];
    to[bytes] = 0;
    if (cut)
        trim_cut_character(to);
}

static void format_text(char *to, size_t capacity, const char *format, va_list args) CLAB_PRINTF(3, 0);
static void format_text(char *to, size_t capacity, const char *format, va_list args)
{
    int bytes = vsnprintf(to, capacity, format, args);
    if (bytes < 0)
        to[0] = 0;
    else if ((size_t)bytes >= capacity)
        trim_cut_character(to);
}

clab_status clab_error_vset(struct clab_error *error, clab_status status, const char *format, va_list args)
{
    if (!error)
        return status;
    char message[sizeof error->message]; /* the arguments may point into the record that is cleared next */
    format_text(message, sizeof message, format, args);
    clab_error_clear(error);
    error->status = status;
    copy_text(error->message, sizeof error->message, message);
    return status;
}

clab_status clab_error_set(struct clab_error *error, clab_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clab_error_vset(error, status, format, args);
    va_end(args);
    return status;
}

clab_status clab_error_at(struct clab_error *error, const char *file, uint32_t line, uint32_t column)
{
    if (!error)
        return CLAB_OK;
    copy_text(error->file, sizeof error->file, file);
    error->line = line;
    error->column = column;
    return error->status;
}

clab_status clab_error_remedy(struct clab_error *error, const char *format, ...)
{
    if (!error)
        return CLAB_OK;
    va_list args;
    va_start(args, format);
    format_text(error->remedy, sizeof error->remedy, format, args);
    va_end(args);
    return error->status;
}

clab_status clab_error_native(struct clab_error *error, const char *call, int code, const char *name)
{
    if (!error)
        return CLAB_OK;
    copy_text(error->native_call, sizeof error->native_call, call);
    copy_text(error->native_name, sizeof error->native_name, name);
    error->native_code = code;
    return error->status;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

clab_status clab_error_log(struct clab_error *error, const char *text, size_t bytes)
{
    if (!error)
        return CLAB_OK;
    bytes = !text ? 0 : bytes == SIZE_MAX ? strlen(text) : strnlen(text, bytes);
    while (bytes && is_space(text[bytes - 1]))
        bytes--;
    while (bytes && is_space(*text)) {
        text++;
        bytes--;
    }
    char *log =
        bytes ? malloc(bytes + 1) : NULL; /* without memory the record is kept, only its log is missing */
    if (log) {
        memcpy(log, text, bytes);
        log[bytes] = 0;
    }
    free(error->log);
    error->log = log;
    return error->status;
}

clab_status clab_error_context(struct clab_error *error, const char *format, ...)
{
    if (!error)
        return CLAB_OK;
    char message[sizeof error->message];
    va_list args;
    va_start(args, format);
    format_text(message, sizeof message, format, args);
    va_end(args);
    size_t used = strlen(message);
    int added = snprintf(message + used, sizeof message - used, ": %s", error->message);
    if (added < 0 || (size_t)added >= sizeof message - used)
        trim_cut_character(message);
    copy_text(error->message, sizeof error->message, message);
    return error->status;
}

void clab_error_copy(struct clab_error *to, const struct clab_error *from)
{
    if (to == from)
        return;
    clab_error_clear(to);
    *to = *from;
    to->log = from->log ? strdup(from->log) : NULL;
}

void clab_error_clear(struct clab_error *error)
{
    if (!error)
        return;
    free(error->log);
    *error = (struct clab_error){0};
}

/* The source line and a caret under its column; tabs are repeated so that the caret stands right at any
   width. Columns count bytes, as the front ends do. */
static void add_source_line(struct clab_str *out, const struct clab_error *error)
{
    size_t bytes = strcspn(error->source_line, "\r\n");
    if (!bytes)
        return;
    clab_str_add(out, "\n  ");
    clab_str_add_bytes(out, error->source_line, bytes);
    if (!error->column || error->column > bytes + 1) /* beyond the end: the line was cut */
        return;
    clab_str_add(out, "\n  ");
    for (size_t i = 0; i + 1 < error->column; i++) {
        unsigned char c = (unsigned char)error->source_line[i];
        if ((c & 0xc0) != 0x80)
            clab_str_add_bytes(out, c == '\t' ? "\t" : " ", 1);
    }
    clab_str_add(out, "^");
}

static void add_place(struct clab_str *out, const struct clab_error *error)
{
    const struct clab_where *where = &error->where;
    const char *gap = "";
    if (!where->has_cta && !where->has_warp && !where->has_lane && !error->has_address)
        return;
    clab_str_add(out, "\n  at: ");
    if (where->has_cta) {
        clab_str_addf(out, "cluster (%u,%u,%u) cta (%u,%u,%u)", where->cluster[0], where->cluster[1],
                      where->cluster[2], where->cta[0], where->cta[1], where->cta[2]);
        gap = " ";
    }
    if (where->has_warp) {
        clab_str_addf(out, "%swarp %u", gap, where->warp);
        gap = " ";
    }
    if (where->has_lane) {
        clab_str_addf(out, "%slane %u", gap, where->lane);
        gap = " ";
    }
    if (error->has_address)
        clab_str_addf(out, "%s%s%saddress 0x%llx", *gap ? ", " : "", error->space, *error->space ? " " : "",
                      (unsigned long long)error->address);
}

/* Control characters of a damaged file's text would be a terminal's to obey. */
static void make_harmless(char *text)
{
    for (char *p = text; p != NULL && *p != '\0'; p++)
        if (((unsigned char)*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f)
            *p = '?';
}

char *clab_error_format(const struct clab_error *error)
{
    struct clab_str out = {0};
    if (error->file[0]) {
        clab_str_add(&out, clab_path_shown(error->file));
        if (error->line)
            clab_str_addf(&out, ":%u", error->line);
        if (error->line && error->column)
            clab_str_addf(&out, ":%u", error->column);
        clab_str_add(&out, ": ");
    }
    clab_str_add(&out, error->message[0] ? error->message : clab_status_text(error->status));
    add_source_line(&out, error);
    if (error->kernel[0] || error->instruction[0]) {
        clab_str_add(&out, "\n  in: ");
        if (error->kernel[0])
            clab_str_addf(&out, "kernel %s%s", error->kernel, error->instruction[0] ? ", " : "");
        if (error->instruction[0])
            clab_str_addf(&out, "instruction `%s`", error->instruction);
    }
    if (error->origin[0])
        clab_str_addf(&out, "\n  from: %s", error->origin);
    add_place(&out, error);
    if (error->native_call[0]) {
        clab_str_addf(&out, "\n  driver: %s returned ", error->native_call);
        if (error->native_name[0])
            clab_str_addf(&out, "%s (%d)", error->native_name, error->native_code);
        else
            clab_str_addf(&out, "%d", error->native_code);
    }
    if (error->remedy[0])
        clab_str_addf(&out, "\n  try: %s", error->remedy);
    if (error->log) {
        clab_str_add(&out, "\n  log:");
        for (const char *line = error->log; *line;) {
            size_t bytes = strcspn(line, "\n");
            clab_str_add(&out, bytes ? "\n    " : "\n");
            clab_str_add_bytes(&out, line, bytes);
            line += bytes + (line[bytes] == '\n');
        }
    }
    char *text = clab_str_take(&out);
    make_harmless(text);
    return text;
}
