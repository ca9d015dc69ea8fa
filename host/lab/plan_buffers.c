/* Buffers as an experiment file writes them: type, count, fills, what they must hold afterwards. A buffer may
   lie at an offset from its allocation, so that unaligned pointers can be tried. */
#include "lab/plan.h"

#include "base/str.h"
#include "lab/buffers.h"
#include "lab/fill.h"
#include "lab/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFERS 64
#define MAX_COUNT   ((long long)1 << 40)
#define MAX_VALUES  ((long long)1 << 20)
#define MAX_OFFSET  ((long long)1 << 30)

static const char *const buffer_fields[] = {"type",   "count",     "fill",         "reset",
                                            "expect", "tolerance", "offset_bytes", "verified_only"};

/* -- fills --------------------------------------------------------------------------------------------- */

static json_t *read_values(struct clab_plan *plan, const struct clab_path *path, int index, long long count)
{
    struct clab_eval *eval = plan->eval;
    lua_Integer n = clab_read_list(eval, path, index);
    if (n != count)
        clab_eval_fail(eval, path, "wanted as many values as the buffer has elements, %lld, got %lld", count,
                       (long long)n);
    if (n > MAX_VALUES)
        clab_eval_fail(eval, path, "wanted at most %lld values, got %lld", MAX_VALUES, (long long)n);
    json_t *values = clab_eval_json(eval, json_array());
    for (lua_Integer i = 1; i <= n; i++) {
        struct clab_path item = {.up = path, .index = i};
        lua_rawgeti(eval->L, index, i);
        double number = clab_read_number(eval, &item, -1);
        clab_eval_append(eval, values,
                         lua_isinteger(eval->L, -1) ? json_integer(lua_tointeger(eval->L, -1))
                                                    : json_real(number));
        lua_pop(eval->L, 1);
    }
    return values;
}

/* "ones", "bits(7)", a number, or values { ... }. */
static json_t *read_fill(struct clab_plan *plan, const struct clab_path *path, int index, long long count)
{
    static const char *const names[] = {"zero", "ones", "iota", "bits(SEED)", "random(SEED)"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    if (lua_type(L, index) == LUA_TNUMBER) {
        double value = clab_read_number(eval, path, index);
        if (value == 0)
            return json_pack("{s:s}", "kind", "zero");
        return json_pack("{s:s,s:o}", "kind", "value", "value",
                         lua_isinteger(L, index) ? json_integer(lua_tointeger(L, index)) : json_real(value));
    }
    if (clab_plan_made_by(L, index, CLAB_META_VALUES))
        return json_pack("{s:s,s:o}", "kind", "values", "values", read_values(plan, path, index, count));
    if (lua_type(L, index) != LUA_TSTRING) {
        char got[96];
        clab_eval_fail(eval, path, "wanted a fill such as \"ones\", \"bits(7)\", 0 or values { ... }; got %s",
                       clab_value_text(L, index, got, sizeof got));
    }
    const char *text = clab_read_string(eval, path, index);
    size_t bytes = strcspn(text, "(");
    if (text[bytes] == '\0') {
        for (size_t i = 0; i < 3; i++)
            if (strcmp(text, names[i]) == 0)
                return json_pack("{s:s}", "kind", text);
        if (strcmp(text, "zeros") == 0)
            return json_pack("{s:s}", "kind", "zero");
    }
    for (size_t i = 3; text[bytes] == '(' && i < 5; i++) {
        char *end;
        errno = 0;
        unsigned long long seed = strtoull(text + bytes + 1, &end, 10);
        if (strncmp(names[i], text, bytes + 1) == 0 && isdigit((unsigned char)text[bytes + 1]) &&
            errno == 0 && seed <= INT64_MAX && strcmp(end, ")") == 0)
            return json_pack("{s:s%,s:I}", "kind", text, bytes, "seed", (json_int_t)seed);
    }
    const char *near = clab_nearest_name(text, names, sizeof names / sizeof *names);
    clab_eval_fail(
        eval, path,
        "wanted zero, ones, iota, bits(SEED), random(SEED), a number or values { ... }; got '%.40s'%s%s%s",
        text, near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* One fill, or a list of them that are each verified. */
static json_t *read_fills(struct clab_plan *plan, const struct clab_path *path, int index, long long count)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path at = {.up = path, .key = "fill"};
    json_t *fills = clab_eval_json(eval, json_array());
    int type = clab_push_field(eval, index, "fill");
    if (type == LUA_TTABLE && !clab_plan_made_by(L, -1, CLAB_META_VALUES)) {
        lua_Integer n = clab_read_list(eval, &at, -1);
        if (n < 1 || n > CLAB_MAX_FILLS)
            clab_eval_fail(eval, &at, "wanted 1 to %d fills, got %lld", CLAB_MAX_FILLS, (long long)n);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = &at, .index = i};
            lua_rawgeti(L, -1, i);
            clab_eval_append(eval, fills, read_fill(plan, &item, -1, count));
            lua_pop(L, 1);
        }
    } else if (type == LUA_TNIL) {
        clab_eval_append(eval, fills, json_pack("{s:s}", "kind", "zero"));
    } else {
        clab_eval_append(eval, fills, read_fill(plan, &at, -1, count));
    }
    lua_pop(L, 1);
    return fills;
}

/* -- expectations -------------------------------------------------------------------------------------- */

static json_t *read_expect(struct clab_plan *plan, const struct clab_path *path, int index, long long count)
{
    static const char *const fields[] = {"sum_of", "value", "values", "fill", "same_as", "reference"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path at = {.up = path, .key = "expect"};
    json_t *expect = json_null();
    int type = clab_push_field(eval, index, "expect");
    int table = lua_gettop(L);
    if (type == LUA_TNUMBER) {
        expect = json_pack("{s:f}", "value", clab_read_number(eval, &at, -1));
    } else if (type != LUA_TNIL && clab_plan_made_by(L, -1, CLAB_META_VALUES)) {
        expect = json_pack("{s:o}", "values", read_values(plan, &at, table, count));
    } else if (type != LUA_TNIL) {
        clab_read_table(eval, &at, table, fields, sizeof fields / sizeof *fields, false);
        expect = clab_eval_json(eval, json_object());
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            struct clab_path field = {.up = &at, .key = fields[i]};
            if (clab_push_field(eval, table, fields[i]) != LUA_TNIL) {
                json_t *value;
                if (i == 1)
                    value = json_real(clab_read_number(eval, &field, -1));
                else if (i == 2)
                    value = read_values(plan, &field, lua_gettop(L), count);
                else if (i == 3)
                    value = read_fill(plan, &field, -1, count);
                else if (i == 5)
                    value = clab_lua_to_json(eval, &field, -1); /* resolved when all buffers are known */
                else
                    value = json_string(clab_read_string(eval, &field, -1));
                clab_eval_set(eval, expect, fields[i], value);
            }
            lua_pop(L, 1);
        }
        if (json_object_size(expect) != 1)
            clab_eval_fail(eval, &at,
                           "wanted exactly one of sum_of, value, values, fill, same_as, reference; got %zu",
                           json_object_size(expect));
    }
    lua_pop(L, 1);
    return clab_eval_json(eval, expect);
}

static json_t *read_tolerance(struct clab_plan *plan, const struct clab_path *path, int index)
{
    static const char *const fields[] = {"abs", "rel"};
    struct clab_eval *eval = plan->eval;
    struct clab_path at = {.up = path, .key = "tolerance"};
    double parts[2] = {0, 0};
    if (clab_push_field(eval, index, "tolerance") != LUA_TNIL) {
        clab_read_table(eval, &at, -1, fields, 2, false);
        for (size_t i = 0; i < 2; i++) {
            struct clab_path part = {.up = &at, .key = fields[i]};
            parts[i] = clab_field_number(eval, &at, -1, fields[i], 0);
            if (parts[i] < 0)
                clab_eval_fail(eval, &part, "wanted a number of at least 0, got %g", parts[i]);
        }
    }
    lua_pop(eval->L, 1);
    return clab_eval_json(eval, json_pack("{s:f,s:f}", "abs", parts[0], "rel", parts[1]));
}

/* -- buffers ------------------------------------------------------------------------------------------- */

static json_t *read_buffer(struct clab_plan *plan, const struct clab_path *path, int index)
{
    struct clab_eval *eval = plan->eval;
    index = lua_absindex(eval->L, index);
    clab_read_table(eval, path, index, buffer_fields, sizeof buffer_fields / sizeof *buffer_fields, false);
    struct clab_path type_path = {.up = path, .key = "type"}, reset_path = {.up = path, .key = "reset"};
    const char *type = clab_field_string(eval, path, index, "type", NULL);
    if (type == NULL)
        clab_eval_fail(eval, path, "a buffer needs a `type`");
    if (clab_element_get(type) == CLAB_ELEMENT_COUNT) {
        struct clab_str known = {0};
        for (int i = 0; i < CLAB_ELEMENT_COUNT; i++)
            clab_str_addf(&known, "%s%s", i > 0 ? ", " : "", clab_element_name((enum clab_element)i));
        clab_eval_fail(eval, &type_path, "wanted one of %s; got '%.40s'", known.text, type);
    }
    struct clab_path count_path = {.up = path, .key = "count"};
    if (clab_push_field(eval, index, "count") == LUA_TNIL)
        clab_eval_fail(eval, path, "a buffer needs a `count`");
    long long count = clab_read_integer(eval, &count_path, -1, 1, MAX_COUNT);
    lua_pop(eval->L, 1);
    const char *reset = clab_field_string(eval, path, index, "reset", NULL);
    if (reset != NULL && strcmp(reset, "launch") != 0 && strcmp(reset, "timed") != 0)
        clab_eval_fail(eval, &reset_path, "wanted 'launch' or 'timed', got '%.40s'", reset);
    long long offset = clab_field_integer(eval, path, index, "offset_bytes", 0, MAX_OFFSET, 0);
    bool verified_only = clab_field_bool(eval, path, index, "verified_only", false);
    return clab_eval_json(
        eval, json_pack("{s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:I,s:b}", "name", path->key, "type", type, "count",
                        (json_int_t)count, "fill", read_fills(plan, path, index, count), "reset",
                        reset != NULL ? json_string(reset) : json_null(), "expect",
                        read_expect(plan, path, index, count), "tolerance", read_tolerance(plan, path, index),
                        "offset_bytes", (json_int_t)offset, "verified_only", (int)verified_only));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Expectations that name another buffer or a kernel, once every buffer is known. */
static void check_references(struct clab_plan *plan, const struct clab_path *path, int table, json_t *buffers)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    for (size_t i = 0; i < json_array_size(buffers); i++) {
        json_t *buffer = json_array_get(buffers, i), *expect = json_object_get(buffer, "expect");
        struct clab_path at = {.up = path, .key = clab_json_text(buffer, "name", "")},
                         expect_path = {.up = &at, .key = "expect"};
        for (int j = 0; j < 2; j++) {
            const char *key = j == 0 ? "sum_of" : "same_as", *name = clab_json_text(expect, key, NULL);
            struct clab_path field = {.up = &expect_path, .key = key};
            if (name == NULL)
                continue;
            clab_plan_need_buffer(plan, &field, buffers, name);
            if (strcmp(name, at.key) == 0)
                clab_eval_fail(eval, &field, "a buffer cannot be its own oracle");
            for (size_t k = 0; j == 1 && k < json_array_size(buffers); k++) {
                const json_t *other = json_array_get(buffers, k);
                const long long has = clab_json_int(other, "count", 0),
                                wants = clab_json_int(buffer, "count", 0);
                if (strcmp(clab_json_text(other, "name", ""), name) == 0 && has != wants)
                    clab_eval_fail(eval, &field, "'%s' has %lld elements, buffer '%s' has %lld", name, has,
                                   at.key, wants);
            }
        }
        if (json_object_get(expect, "reference") != NULL) {
            struct clab_path field = {.up = &expect_path, .key = "reference"};
            clab_push_field(eval, table, at.key);
            clab_push_field(eval, -1, "expect");
            clab_push_field(eval, -1, "reference");
            clab_eval_set(eval, expect, "reference", clab_plan_other_launch(plan, &field, -1, buffers));
            lua_pop(L, 3);
        }
    }
}

json_t *clab_plan_buffers(struct clab_plan *plan, const struct clab_path *path)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    int table = lua_gettop(L);
    const char *names[MAX_BUFFERS];
    size_t n = 0;
    if (!lua_istable(L, table) || lua_rawlen(L, table) > 0) {
        char got[96];
        clab_eval_fail(eval, path,
                       "wanted named buffers, such as { input = { type = \"f32\", count = 8 } }; got %s",
                       lua_istable(L, table) ? "a list" : clab_value_text(L, table, got, sizeof got));
    }
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || n == MAX_BUFFERS)
            clab_eval_fail(eval, path, "wanted at most %d buffers, each with a name", MAX_BUFFERS);
        names[n++] = lua_tostring(L, -2);
    }
    qsort(names, n, sizeof *names, by_text);
    json_t *buffers = clab_eval_json(eval, json_array());
    for (size_t i = 0; i < n; i++) {
        struct clab_path at = {.up = path, .key = names[i]};
        if (!clab_is_name(names[i]))
            clab_eval_fail(eval, path, "wanted names of letters, digits and _, got '%.40s'", names[i]);
        clab_push_field(eval, table, names[i]);
        clab_eval_append(eval, buffers, read_buffer(plan, &at, -1));
        lua_pop(L, 1);
    }
    check_references(plan, path, table, buffers);
    lua_settop(L, table - 1);
    return buffers;
}
