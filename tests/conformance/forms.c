/* The forms file, and kernels from forms: see forms.h. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forms.h"

unsigned type_bytes(const char *type)
{
    static const struct {
        const char *type;
        unsigned bytes;
    } others[] = {{"pred", 1},   {"f16x2", 4},  {"bf16x2", 4}, {"u16x2", 4},   {"s16x2", 4},
                  {"f32x2", 8},  {"bf16", 2},   {"tf32", 4},   {"e4m3x2", 2},  {"e5m2x2", 2},
                  {"e2m1x2", 1}, {"e2m3x2", 2}, {"e3m2x2", 2}, {"ue8m0x2", 2}, {"e4m3x4", 4},
                  {"e5m2x4", 4}, {"e2m1x4", 2}, {"e2m3x4", 4}, {"e3m2x4", 4}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(type, others[i].type) == 0)
            return others[i].bytes;
    return (unsigned)strtoul(type + 1, NULL, 10) / 8;
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* "u32 u32", "{f32,f32} b32". */
static bool read_operands(char *text, struct operand *operands, unsigned limit, unsigned *out_count)
{
    unsigned n = 0;
    uint8_t group = 0, next_group = 1;
    for (char *at = text; *at;) {
        if (*at == '{') {
            group = next_group++;
            at++;
        } else if (*at == '}') {
            group = 0;
            at++;
        } else if (isspace((unsigned char)*at) || *at == ',') {
            at++;
        } else {
            const size_t length = strcspn(at, " ,{}");
            if (n == limit || length >= sizeof operands->type)
                return false;
            memcpy(operands[n].type, at, length);
            operands[n].type[length] = '\0';
            operands[n].group = group;
            n++;
            at += length;
        }
    }
    *out_count = n;
    return true;
}

struct form *forms_read(const char *path, size_t *out_count)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return NULL;
    }
    struct form *forms = NULL;
    size_t n = 0, capacity = 0;
    unsigned line_number = 0;
    char line[2048];
    bool ok = true;
    while (ok && fgets(line, sizeof line, file)) {
        line_number++;
        char *text = trimmed(line);
        if (!*text || *text == '#')
            continue;
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            struct form *more = realloc(forms, capacity * sizeof *forms);
            if (!more) {
                ok = false;
                break;
            }
            forms = more;
        }
        struct form *form = &forms[n];
        memset(form, 0, sizeof *form);
        form->line = line_number;
        char *parts[4] = {text};
        for (unsigned i = 1; i < 4; i++) {
            parts[i] = parts[i - 1] ? strchr(parts[i - 1], '|') : NULL;
            /* In the instruction, `d|p` has no blank before the bar. */
            while (i == 1 && parts[i] && parts[i][-1] != ' ')
                parts[i] = strchr(parts[i] + 1, '|');
            if (parts[i])
                *parts[i]++ = '\0';
        }
        char *end = NULL;
        ok = parts[3] && strlen(trimmed(parts[0])) < sizeof form->text &&
             read_operands(trimmed(parts[1]), form->results, MAX_RESULTS, &form->n_results) &&
             read_operands(trimmed(parts[2]), form->sources, MAX_SOURCES, &form->n_sources);
        if (ok) {
            snprintf(form->text, sizeof form->text, "%s", trimmed(parts[0]));
            form->sm = (unsigned)strtoul(trimmed(parts[3]), &end, 10);
            form->only_arch = *end == 'a';
        } else {
            fprintf(stderr, "%s:%u: not `instruction | results | sources | target`\n", path, line_number);
        }
        n++;
    }
    fclose(file);
    if (!ok) {
        free(forms);
        return NULL;
    }
    *out_count = n;
    return forms;
}

/* --- PTX. */
struct text {
    char *data;
    size_t length, capacity;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...)
{
    char piece[2048];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof piece)
        abort();
    if (text->length + (size_t)length + 1 > text->capacity) {
        text->capacity = 2 * (text->capacity + (size_t)length + 1);
        text->data = realloc(text->data, text->capacity);
        if (!text->data)
            abort();
    }
    memcpy(text->data + text->length, piece, (size_t)length + 1);
    text->length += (size_t)length;
}

/* A register name for source i: %a %b %c %e, then %s4…; of an immediate, its value. */
static void source_name(const struct form *form, unsigned i, char out_name[24])
{
    static const char *const names[] = {"%a", "%b", "%c", "%e"};
    if (strcmp(form->sources[i].type, "#") == 0) {
        /* A table without symmetry (lop3), which is also a fair choice elsewhere. */
        snprintf(out_name, 24, "0x1b");
    } else if (i < 4) {
        snprintf(out_name, 24, "%s", names[i]);
    } else {
        snprintf(out_name, 24, "%%s%u", i);
    }
}

static void put_load(struct text *text, const struct form *form, unsigned i)
{
    char name[24];
    source_name(form, i, name);
    const char *type = form->sources[i].type;
    if (strcmp(type, "#") == 0)
        return;
    const unsigned bytes = type_bytes(type);
    if (strcmp(type, "pred") == 0) {
        put(text,
            "    .reg .pred %s;\n    ld.global.u64 %%t, [%%in+%u];\n    and.b64 %%t, %%t, 1;\n"
            "    setp.ne.u64 %s, %%t, 0;\n",
            name, 8 * i, name);
    } else if (bytes == 16) {
        put(text, "    .reg .b128 %s;\n    ld.global.u64 %%t, [%%in+%u];\n    mov.b128 %s, {%%t, %%t};\n",
            name, 8 * i, name);
    } else if (bytes == 1 && type[0] != 'e') {
        put(text, "    .reg .b16 %s;\n    ld.global.u64 %%t, [%%in+%u];\n    cvt.u16.u64 %s, %%t;\n", name,
            8 * i, name);
    } else if (bytes == 1) {
        put(text, "    .reg .b8 %s;\n    ld.global.b8 %s, [%%in+%u];\n", name, name, 8 * i);
    } else {
        put(text, "    .reg .b%u %s;\n    ld.global.b%u %s, [%%in+%u];\n", 8 * bytes, name, 8 * bytes, name,
            8 * i);
    }
}

/* 32 bytes of the thread's own in each space, for the forms that name them. */
static void put_memory(struct text *text, const struct form *form)
{
    if (strstr(form->text, "%global"))
        put(text, "    .reg .b64 %%global;\n    add.u64 %%global, %%in, %u;\n", 8 * SCRATCH_AT);
    if (strstr(form->text, "%local"))
        put(text, "    .local .align 32 .b8 own[32];\n    .reg .b64 %%local;\n    mov.u64 %%local, own;\n");
    if (!strstr(form->text, "%shared") && !strstr(form->text, "%generic"))
        return;
    put(text, "    .shared .align 32 .b8 common[4096];\n    .reg .b32 %%shared;\n    .reg .b64 %%generic;\n"
              "    mov.u32 %%shared, common;\n    mad.lo.u32 %%shared, %%k, 32, %%shared;\n"
              "    cvt.u64.u32 %%generic, %%shared;\n    cvta.shared.u64 %%generic, %%generic;\n");
}

static void put_store(struct text *text, const struct form *form, unsigned i)
{
    const char *type = form->results[i].type;
    const unsigned bytes = type_bytes(type);
    if (strcmp(type, "pred") == 0)
        put(text, "    selp.u64 %%t, 1, 0, %%d%u;\n    st.global.u64 [%%out+%u], %%t;\n", i, 8 * i);
    else if (bytes == 16)
        put(text, "    mov.b128 {%%t, %%u}, %%d%u;\n    st.global.u64 [%%out+%u], %%t;\n", i, 8 * i);
    else if (bytes == 8)
        put(text, "    st.global.b64 [%%out+%u], %%d%u;\n", 8 * i, i);
    else if (bytes == 1 && (type[0] == 'e' || type[0] == 'b'))
        put(text, "    st.global.b8 [%%out+%u], %%d%u;\n", 8 * i, i);
    else
        put(text, "    cvt.u64.u%u %%t, %%d%u;\n    st.global.u64 [%%out+%u], %%t;\n",
            bytes == 1 ? 32 : 8 * bytes, i, 8 * i);
}

static void put_result_register(struct text *text, const struct form *form, unsigned i)
{
    const char *type = form->results[i].type;
    const unsigned bytes = type_bytes(type);
    if (strcmp(type, "pred") == 0)
        put(text, "    .reg .pred %%d%u;\n", i);
    else if (bytes == 1 && (type[0] == 'e' || type[0] == 'b'))
        put(text, "    .reg .b8 %%d%u;\n", i);
    else /* u8 and s8 into 32 bits: the extension is part of what is compared */
        put(text, "    .reg .b%u %%d%u;\n", bytes == 1 ? 32 : 8 * bytes, i);
}

static void put_entry(struct text *text, const struct form *form, size_t index)
{
    put(text,
        ".visible .entry f%zu(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        "    .reg .u64 %%in, %%out, %%t, %%u, %%off;\n    .reg .u32 %%i, %%j, %%k;\n    .reg .pred %%past;\n"
        "    mov.u32 %%i, %%ctaid.x;\n    mov.u32 %%j, %%ntid.x;\n    mov.u32 %%k, %%tid.x;\n"
        "    mad.lo.u32 %%i, %%i, %%j, %%k;\n    ld.param.u32 %%j, [n];\n    setp.ge.u32 %%past, %%i, %%j;\n"
        "    @%%past bra $done;\n    ld.param.u64 %%in, [in];\n    ld.param.u64 %%out, [out];\n"
        "    mul.wide.u32 %%off, %%i, %u;\n    add.u64 %%in, %%in, %%off;\n"
        "    mul.wide.u32 %%off, %%i, %u;\n    add.u64 %%out, %%out, %%off;\n",
        index, 8 * MAX_SOURCES, 8 * MAX_RESULTS);
    put_memory(text, form);
    for (unsigned i = 0; i < form->n_sources; i++)
        put_load(text, form, i);
    for (unsigned i = 0; i < form->n_results; i++)
        put_result_register(text, form, i);
    if (strchr(form->text, '%')) {
        put(text, "    %s\n", form->text);
    } else {
        put(text, "    %s ", form->text);
        const bool vector = form->results[0].group != 0;
        for (unsigned i = 0; i < form->n_results; i++)
            put(text, "%s%%d%u", i == 0 ? (vector ? "{" : "") : vector ? ", " : "|", i);
        put(text, "%s", vector ? "}" : "");
        for (unsigned i = 0; i < form->n_sources; i++) {
            char name[24];
            source_name(form, i, name);
            const uint8_t group = form->sources[i].group;
            const bool opens = group && (i == 0 || form->sources[i - 1].group != group);
            const bool closes = group && (i + 1 == form->n_sources || form->sources[i + 1].group != group);
            put(text, ", %s%s%s", opens ? "{" : "", name, closes ? "}" : "");
        }
        put(text, ";\n");
    }
    for (unsigned i = 0; i < form->n_results; i++)
        put_store(text, form, i);
    put(text, "$done:\n    ret;\n}\n");
}

char *forms_ptx(const struct form *forms, size_t count, const char *target, const char *version)
{
    struct text text = {NULL, 0, 0};
    put(&text, ".version %s\n.target %s\n.address_size 64\n", version, target);
    for (size_t i = 0; i < count; i++)
        put_entry(&text, &forms[i], i);
    return text.data;
}
