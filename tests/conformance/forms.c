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

struct text {
    char *data;
    size_t length, capacity;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...)
{
    char piece[8192];
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

/* --- Lines that are not forms. */
struct words {
    struct {
        char name[24];
        char *text;
    } list[64];
    size_t count;
};

static char *copy_of(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        abort();
    return copy;
}

/* `$word` becomes the text of the last `define word`, which may have `$words` of its own. */
static char *replaced(const struct words *words, const char *text, unsigned depth)
{
    struct text out = {NULL, 0, 0};
    put(&out, "%s", "");
    while (*text) {
        const size_t plain = strcspn(text, "$");
        put(&out, "%.*s", (int)plain, text);
        text += plain;
        if (!*text)
            break;
        const size_t length = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");
        const char *meaning = NULL;
        for (size_t i = 0; i < words->count; i++)
            if (strlen(words->list[i].name) == length && strncmp(words->list[i].name, text + 1, length) == 0)
                meaning = words->list[i].text;
        if (!meaning || depth > 8) {
            free(out.data);
            return NULL;
        }
        char *inner = replaced(words, meaning, depth + 1);
        if (!inner) {
            free(out.data);
            return NULL;
        }
        put(&out, "%s", inner);
        free(inner);
        text += 1 + length;
    }
    return out.data;
}

static unsigned read_numbers(const char *text, long long *out, unsigned limit)
{
    unsigned n = 0;
    char *end;
    for (; n < limit; n++) {
        out[n] = strtoll(text, &end, 0);
        if (end == text)
            break;
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* map NAME type=7 dims=64,8 strides=256 box=16,4 steps=1,1 …; im2col: lower= upper= channels= pixels= */
static bool read_map(char *line, struct tensor_map *map)
{
    memset(map, 0, sizeof *map);
    for (unsigned k = 0; k < 5; k++)
        map->steps[k] = 1;
    char *word = strtok(line, " ");
    if (!word || strlen(word) >= sizeof map->name)
        return false;
    snprintf(map->name, sizeof map->name, "%s", word);
    while ((word = strtok(NULL, " ")) != NULL) {
        char *value = strchr(word, '=');
        if (!value)
            return false;
        *value++ = '\0';
        long long numbers[5] = {0};
        const unsigned n = read_numbers(value, numbers, 5);
        for (unsigned k = 0; k < n; k++) {
            if (strcmp(word, "dims") == 0) {
                map->dims[k] = (uint64_t)numbers[k];
                map->rank = n;
            } else if (strcmp(word, "strides") == 0)
                map->strides[k] = (uint64_t)numbers[k];
            else if (strcmp(word, "box") == 0)
                map->box[k] = (uint32_t)numbers[k];
            else if (strcmp(word, "steps") == 0)
                map->steps[k] = (uint32_t)numbers[k];
            else if (strcmp(word, "lower") == 0 && k < 3) {
                map->lower[k] = (int)numbers[k];
                map->im2col = true;
            } else if (strcmp(word, "upper") == 0 && k < 3)
                map->upper[k] = (int)numbers[k];
        }
        unsigned *single = strcmp(word, "type") == 0         ? &map->type
                           : strcmp(word, "channels") == 0   ? &map->channels
                           : strcmp(word, "pixels") == 0     ? &map->pixels
                           : strcmp(word, "interleave") == 0 ? &map->interleave
                           : strcmp(word, "swizzle") == 0    ? &map->swizzle
                           : strcmp(word, "fill") == 0       ? &map->fill
                           : strcmp(word, "wide") == 0       ? &map->wide
                                                             : NULL;
        if (single)
            *single = (unsigned)numbers[0];
    }
    return map->rank > 0;
}

/* --- Forms. */
static bool read_form(char *text, const char *key, const struct words *words, struct form *form)
{
    char *parts[4] = {text};
    for (unsigned i = 1; i < 4; i++) {
        parts[i] = parts[i - 1] ? strchr(parts[i - 1], '|') : NULL;
        /* In the instruction, `d|p` has no blank before the bar. */
        while (i == 1 && parts[i] && parts[i][-1] != ' ')
            parts[i] = strchr(parts[i] + 1, '|');
        if (parts[i])
            *parts[i]++ = '\0';
    }
    if (!parts[3] || strlen(trimmed(parts[0])) >= sizeof form->text ||
        !read_operands(trimmed(parts[1]), form->results, MAX_RESULTS, &form->n_results) ||
        !read_operands(trimmed(parts[2]), form->sources, MAX_SOURCES, &form->n_sources))
        return false;
    snprintf(form->text, sizeof form->text, "%s", trimmed(parts[0]));
    char *end;
    form->sm = (unsigned)strtoul(trimmed(parts[3]), &end, 10);
    form->only_arch = *end == 'a';
    snprintf(form->map, sizeof form->map, "%s", trimmed(end + form->only_arch));
    struct text whole = {NULL, 0, 0};
    put(&whole, "%s%s%s", key, form->map[0] ? " @" : "", form->map);
    form->key = whole.data;
    form->body = replaced(words, form->text, 0);
    return form->body != NULL;
}

/* One more element of an array that is as long as the power of two at or above `count`. */
static void *grown(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    void *more = realloc(array, (count ? 2 * count : 1) * size);
    if (!more)
        abort();
    return more;
}

/* One form for every choice of alternatives. */
static bool read_alternatives(const char *text, const char *key, const struct words *words,
                              struct forms_file *out, unsigned line)
{
    const char *open = strstr(text, "<<"), *close = open ? strstr(open, ">>") : NULL;
    if (!close) {
        out->forms = grown(out->forms, out->n_forms, sizeof *out->forms);
        struct form *form = &out->forms[out->n_forms++];
        memset(form, 0, sizeof *form);
        form->line = line;
        char *copy = copy_of(text);
        const bool ok = read_form(copy, key, words, form);
        free(copy);
        return ok;
    }
    bool ok = true;
    for (const char *at = open + 2; ok && at <= close;) {
        const size_t length = strcspn(at, "|>");
        struct text one = {NULL, 0, 0};
        put(&one, "%.*s%.*s%s", (int)(open - text), text, (int)length, at, close + 2);
        ok = read_alternatives(one.data, key, words, out, line);
        free(one.data);
        at += length + 1;
    }
    return ok;
}

static bool read_line(char *text, struct words *words, struct text *module, struct forms_file *out,
                      unsigned line)
{
    if (strncmp(text, "define ", 7) == 0) {
        char *name = trimmed(text + 7), *meaning = name + strcspn(name, " ");
        if (!*meaning || words->count == sizeof words->list / sizeof *words->list ||
            (size_t)(meaning - name) >= sizeof words->list->name)
            return false;
        *meaning++ = '\0';
        snprintf(words->list[words->count].name, sizeof words->list->name, "%s", name);
        words->list[words->count++].text = copy_of(meaning);
        return true;
    }
    if (strncmp(text, "module ", 7) == 0) {
        put(module, "%s\n", text + 7);
        return true;
    }
    if (strncmp(text, "map ", 4) == 0) {
        out->maps = grown(out->maps, out->n_maps, sizeof *out->maps);
        return read_map(text + 4, &out->maps[out->n_maps++]);
    }
    /* The key ends where the operands' types begin. */
    char *key = copy_of(text), *bar = strstr(key, " |");
    if (bar)
        *bar = '\0';
    const bool ok = read_alternatives(text, key, words, out, line);
    free(key);
    return ok;
}

bool forms_read(const char *path, struct forms_file *out)
{
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    struct words words = {.count = 0};
    struct text module = {NULL, 0, 0};
    put(&module, "%s", "");
    unsigned line_number = 0;
    char line[4096];
    bool ok = true;
    while (ok && fgets(line, sizeof line, file)) {
        line_number++;
        char *text = trimmed(line);
        if (!*text || *text == '#')
            continue;
        ok = read_line(text, &words, &module, out, line_number);
        if (!ok)
            fprintf(stderr,
                    "%s:%u: not `instruction | results | sources | target`, nor a known word's line\n", path,
                    line_number);
    }
    fclose(file);
    for (size_t i = 0; i < words.count; i++)
        free(words.list[i].text);
    out->module = module.data;
    if (!ok)
        forms_free(out);
    return ok;
}

void forms_free(struct forms_file *file)
{
    for (size_t i = 0; i < file->n_forms; i++) {
        free(file->forms[i].body);
        free(file->forms[i].key);
    }
    free(file->forms);
    free(file->maps);
    free(file->module);
    memset(file, 0, sizeof *file);
}

/* --- PTX. */
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

static bool names(const struct form *form, const char *word)
{
    return strstr(form->body, word) != NULL;
}

bool form_has_args(const struct form *form)
{
    return names(form, "args");
}

/* The addresses that the form names: see forms.h. */
static void put_memory(struct text *text, const struct form *form)
{
    if (names(form, "%global"))
        put(text, "    .reg .b64 %%global;\n    add.u64 %%global, %%in, %u;\n", 8 * SCRATCH_AT);
    if (names(form, "%local"))
        put(text, "    .local .align 32 .b8 own[32];\n    .reg .b64 %%local;\n    mov.u64 %%local, own;\n");
    if (names(form, "%data") || names(form, "%wdata"))
        put(text, "    .reg .b64 %%data, %%wdata;\n    ld.param.u64 %%data, [data];\n"
                  "    shr.u32 %%j, %%i, 5;\n    mad.wide.u32 %%wdata, %%j, 2048, %%data;\n");
    if (names(form, "%map"))
        put(text, "    .reg .b64 %%map;\n    mov.b64 %%map, map;\n    cvta.param.u64 %%map, %%map;\n");
    if (names(form, "%wbox"))
        put(text,
            "    .shared .align 1024 .b8 windows[8192];\n    .reg .b32 %%wbox;\n    .reg .b64 %%gwbox;\n"
            "    mov.u32 %%wbox, windows;\n    shr.u32 %%j, %%k, 5;\n"
            "    mad.lo.u32 %%wbox, %%j, 2048, %%wbox;\n    cvt.u64.u32 %%gwbox, %%wbox;\n"
            "    cvta.shared.u64 %%gwbox, %%gwbox;\n");
    if (names(form, "_box") || names(form, "%box"))
        put(text,
            "    .shared .align 1024 .b8 large[8192];\n    .reg .b32 %%box;\n    mov.u32 %%box, large;\n");
    if (names(form, "_cbar") || names(form, "%cbar"))
        put(text, "    .shared .align 8 .b64 one;\n    .reg .b32 %%cbar;\n    mov.u32 %%cbar, one;\n");
    if (names(form, "%mbar") || names(form, "%gmbar") || names(form, "_mbar") || names(form, "_gmbar"))
        put(text, "    .shared .align 8 .b64 bars[128];\n    .reg .b32 %%mbar;\n    .reg .b64 %%gmbar;\n"
                  "    mov.u32 %%mbar, bars;\n    mad.lo.u32 %%mbar, %%k, 8, %%mbar;\n"
                  "    cvt.u64.u32 %%gmbar, %%mbar;\n    cvta.shared.u64 %%gmbar, %%gmbar;\n");
    if (names(form, "%shared") || names(form, "%generic") || names(form, "%peer ") || names(form, "%peer]") ||
        names(form, "%peer+") || names(form, "%peer_generic"))
        put(text, "    .shared .align 1024 .b8 common[4096];\n    .reg .b32 %%shared;\n"
                  "    .reg .b64 %%generic;\n"
                  "    mov.u32 %%shared, common;\n    mad.lo.u32 %%shared, %%k, 32, %%shared;\n"
                  "    cvt.u64.u32 %%generic, %%shared;\n    cvta.shared.u64 %%generic, %%generic;\n");
    if (names(form, "%cta"))
        put(text, "    .reg .b32 %%cta;\n    mov.u32 %%cta, %%ctaid.x;\n");
    if (names(form, "%peer") || names(form, "%rank"))
        put(text, "    .reg .b32 %%rank, %%other;\n    mov.u32 %%rank, %%cluster_ctarank;\n"
                  "    xor.b32 %%other, %%rank, 1;\n");
    static const struct {
        const char *name, *of, *type;
    } peers[] = {
        {"%peer", "%shared", ".shared::cluster.u32"},    {"%peer_generic", "%generic", ".u64"},
        {"%peer_mbar", "%mbar", ".shared::cluster.u32"}, {"%peer_gmbar", "%gmbar", ".u64"},
        {"%peer_box", "%box", ".shared::cluster.u32"},   {"%peer_cbar", "%cbar", ".shared::cluster.u32"}};
    for (unsigned i = 0; i < sizeof peers / sizeof *peers; i++) {
        const char *at = strstr(form->body, peers[i].name);
        while (at && (isalnum((unsigned char)at[strlen(peers[i].name)]) || at[strlen(peers[i].name)] == '_'))
            at = strstr(at + 1, peers[i].name);
        if (at)
            put(text, "    .reg .b%s %s;\n    mapa%s %s, %s, %%other;\n",
                strcmp(peers[i].type, ".u64") == 0 ? "64" : "32", peers[i].name, peers[i].type, peers[i].name,
                peers[i].of);
    }
    for (const char *c = "hwqp"; *c; c++) {
        const char first[] = {'%', *c, '\0'};
        bool used = false;
        for (const char *at = strstr(form->body, first); at; at = strstr(at + 1, first))
            used |= isdigit((unsigned char)at[2]);
        if (used)
            put(text, "    .reg .%s %%%c<8>;\n",
                *c == 'h'   ? "b16"
                : *c == 'w' ? "b32"
                : *c == 'q' ? "b64"
                            : "pred",
                *c);
    }
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
        ".visible .entry f%zu(.param .u64 in, .param .u64 out, .param .u32 n, .param .u64 data%s%s)%s\n{\n"
        "    .reg .u64 %%in, %%out, %%t, %%u, %%off;\n    .reg .u32 %%i, %%j, %%k;\n    .reg .pred %%past;\n"
        "    mov.u32 %%i, %%ctaid.x;\n    mov.u32 %%j, %%ntid.x;\n    mov.u32 %%k, %%tid.x;\n"
        "    mad.lo.u32 %%i, %%i, %%j, %%k;\n    ld.param.u32 %%j, [n];\n    setp.ge.u32 %%past, %%i, %%j;\n"
        "    @%%past bra $done;\n    ld.param.u64 %%in, [in];\n    ld.param.u64 %%out, [out];\n"
        "    mul.wide.u32 %%off, %%i, %u;\n    add.u64 %%in, %%in, %%off;\n"
        "    mul.wide.u32 %%off, %%i, %u;\n    add.u64 %%out, %%out, %%off;\n",
        index, form_has_args(form) ? ", .param .align 32 .b8 args[64]" : "",
        form->map[0] ? ", .param .align 64 .b8 map[128]" : "",
        names(form, "%peer") || names(form, "%rank") ? " .reqnctapercluster 2, 1, 1" : "", 8 * MAX_SOURCES,
        8 * MAX_RESULTS);
    put_memory(text, form);
    for (unsigned i = 0; i < form->n_sources; i++)
        put_load(text, form, i);
    for (unsigned i = 0; i < form->n_results; i++)
        put_result_register(text, form, i);
    if (strchr(form->body, '%')) {
        put(text, "    %s\n", form->body);
    } else {
        put(text, "    %s ", form->body);
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

char *forms_ptx(const char *module, const struct form *forms, size_t count, const char *target,
                const char *version)
{
    struct text text = {NULL, 0, 0};
    put(&text, ".version %s\n.target %s\n.address_size 64\n%s", version, target, module);
    for (size_t i = 0; i < count; i++)
        put_entry(&text, &forms[i], i);
    return text.data;
}
