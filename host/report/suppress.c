/* Suppression files. A line is a kind of hazard (or *), then what must hold of it, then a reason:
     race-same-value kernel=histogram symbol=flag   # every thread stores 1
   All of a line's conditions must hold. kernel and symbol: as in the PTX, or in readable form, ns::k<4>,
   which may hold no blanks. Blank lines and lines that begin with # say nothing. */
#include "report/hazards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "check/hazard.h"

#define FILE_LIMIT_BYTES (1u << 20)

static const char *const conditions[] = {"variant", "kernel", "file", "line", "symbol"};
#define CONDITIONS (sizeof conditions / sizeof *conditions)

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static bool is_kind(const char *word)
{
    for (uint32_t kind = 0; kind < CLAB_HAZARD_KINDS; kind++)
        if (strcmp(clab_hazard_name(kind), word) == 0)
            return true;
    return strcmp(word, "*") == 0;
}

static clab_status unknown_kind(const char *word, struct clab_error *error)
{
    const char *names[CLAB_HAZARD_KINDS];
    for (uint32_t kind = 0; kind < CLAB_HAZARD_KINDS; kind++)
        names[kind] = clab_hazard_name(kind);
    const char *near = clab_nearest_name(word, names, CLAB_HAZARD_KINDS);
    clab_error_set(error, CLAB_USAGE, "there is no kind of hazard '%s'", word);
    return near != NULL
               ? clab_error_remedy(error, "did you mean %s?", near)
               : clab_error_remedy(error, "clusterlab check --help lists the kinds; * is any of them");
}

/* One condition, "kernel=k", into `item`. */
static clab_status read_condition(const char *word, json_t *item, struct clab_error *error)
{
    const char *equals = strchr(word, '=');
    for (size_t i = 0; i < CONDITIONS && equals != NULL; i++) {
        const size_t bytes = strlen(conditions[i]);
        if ((size_t)(equals - word) != bytes || memcmp(word, conditions[i], bytes) != 0)
            continue;
        char *end = NULL;
        if (equals[1] == '\0' || json_object_get(item, conditions[i]) != NULL)
            break;
        if (strcmp(conditions[i], "line") != 0)
            return json_object_set_new(item, conditions[i], json_string(equals + 1)) == 0
                       ? CLAB_OK
                       : clab_error_set(error, CLAB_USAGE, "'%s' is not UTF-8", word);
        const long long line = strtoll(equals + 1, &end, 10);
        if (*end != '\0' || line < 1)
            break;
        json_object_set_new(item, "line", json_integer(line));
        return CLAB_OK;
    }
    clab_error_set(error, CLAB_USAGE, "'%s' is no condition", word);
    return clab_error_remedy(error,
                             "conditions, each once: variant=NAME kernel=NAME file=PATH line=N symbol=NAME");
}

static clab_status read_line(char *line, uint32_t number, json_t *list, struct clab_error *error)
{
    char *hash = strchr(line, '#'), *saved = NULL;
    const char *reason = "";
    if (hash != NULL) {
        *hash = '\0';
        reason = hash + 1 + strspn(hash + 1, " \t");
    }
    char *word = strtok_r(line, " \t", &saved);
    if (word == NULL)
        return CLAB_OK;
    if (!is_kind(word))
        return unknown_kind(word, error);
    json_t *item =
        json_pack("{s:I,s:s,s:s,s:i}", "at", (json_int_t)number, "kind", word, "reason", reason, "used", 0);
    clab_status status = item != NULL ? CLAB_OK : clab_error_set(error, CLAB_USAGE, "the line is not UTF-8");
    while (status == CLAB_OK && (word = strtok_r(NULL, " \t", &saved)) != NULL)
        status = read_condition(word, item, error);
    if (status == CLAB_OK && reason[0] == '\0') {
        clab_error_set(error, CLAB_USAGE, "a suppression says why");
        status = clab_error_remedy(error, "end the line with # and the reason");
    }
    if (status == CLAB_OK)
        json_array_append(list, item);
    json_decref(item);
    return status;
}

clab_status clab_suppressions_read(const char *path, json_t **out_list, struct clab_error *error)
{
    size_t bytes;
    char *text = clab_file_read(path, FILE_LIMIT_BYTES, &bytes), *rest = text;
    *out_list = NULL;
    if (text == NULL)
        return clab_error_set(error, CLAB_USAGE, "--suppress: cannot read %s: %s", path, strerror(errno));
    json_t *list = json_array();
    clab_status status = CLAB_OK;
    for (uint32_t number = 1; status == CLAB_OK && rest != NULL; number++) {
        char *line = strsep(&rest, "\n");
        line[strcspn(line, "\r")] = '\0';
        status = read_line(line, number, list, error);
        if (status != CLAB_OK)
            clab_error_at(error, path, number, 0);
    }
    free(text);
    if (status == CLAB_OK)
        *out_list = list;
    else
        json_decref(list);
    return status;
}

/* Whether a path ends in `tail`, at a folder's border. */
static bool ends_in(const char *path, const char *tail)
{
    const size_t n = strlen(path), m = strlen(tail);
    return n >= m && strcmp(path + n - m, tail) == 0 && (n == m || path[n - m - 1] == '/' || tail[0] == '/');
}

/* Whether a place of either party is on that file and line; an absent condition holds. */
static bool at_place(const json_t *item, const json_t *hazard)
{
    static const char *const kinds[] = {"ptx", "source"};
    const json_t *file = json_object_get(item, "file"), *line = json_object_get(item, "line");
    if (file == NULL && line == NULL)
        return true;
    for (size_t i = 0; i < 4; i++) {
        const json_t *party = json_array_get(json_object_get(hazard, "parties"), i / 2);
        const json_t *place = json_object_get(party, kinds[i % 2]);
        if (json_is_object(place) &&
            (file == NULL || ends_in(text_of(place, "file"), json_string_value(file))) &&
            (line == NULL || json_equal(line, json_object_get(place, "line"))))
            return true;
    }
    return false;
}

static bool is_text(const json_t *item, const char *key, const char *text)
{
    const char *wanted = json_string_value(json_object_get(item, key));
    return wanted == NULL || (text != NULL && strcmp(wanted, text) == 0);
}

/* A symbol is named as in the PTX, or as the report prints it. */
static bool is_symbol(const json_t *item, const char *key, const char *symbol)
{
    char readable[256];
    return is_text(item, key, symbol) || is_text(item, key, clab_demangle(symbol, readable, sizeof readable));
}

const json_t *clab_suppression_find(json_t *list, const json_t *hazard, const char *variant)
{
    const char *symbol = text_of(json_object_get(hazard, "address"), "symbol");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        const char *kind = text_of(item, "kind");
        if ((strcmp(kind, "*") == 0 || strcmp(kind, text_of(hazard, "kind")) == 0) &&
            is_text(item, "variant", variant) && is_symbol(item, "kernel", text_of(hazard, "kernel")) &&
            is_symbol(item, "symbol", symbol) && at_place(item, hazard)) {
            json_object_set_new(item, "used",
                                json_integer(json_integer_value(json_object_get(item, "used")) + 1));
            return item;
        }
    }
    return NULL;
}

void clab_suppressions_unused(const json_t *list, struct clab_str *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (json_integer_value(json_object_get(item, "used")) == 0)
            clab_str_addf(out, "suppression of line %lld (%s) covered nothing\n",
                          (long long)json_integer_value(json_object_get(item, "at")), text_of(item, "kind"));
    }
}
