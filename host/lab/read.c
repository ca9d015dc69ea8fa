/* Typed readers over Lua values, and the errors they raise. An error is put together here, in one place, from
   the field's path; its line comes from lines.c. */
#include "lab/read.h"

#include "base/str.h"
#include "lab/lines.h"
#include "lab/prelude.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_STEPS 24
#define JSON_MAX_DEPTH 16
#define JSON_MAX_KEYS  128

/* -- paths --------------------------------------------------------------------------------------------- */

const char *clab_path_text(const struct clab_path *path, char *text, size_t bytes)
{
    const struct clab_path *steps[PATH_MAX_STEPS];
    size_t n = 0, used = 0;
    for (; path != NULL && n < PATH_MAX_STEPS; path = path->up)
        if (path->key != NULL || path->index > 0)
            steps[n++] = path;
    text[0] = '\0';
    while (n-- > 0 && used < bytes) {
        int wrote = steps[n]->key != NULL
                        ? snprintf(text + used, bytes - used, "%s%s", used > 0 ? "." : "", steps[n]->key)
                        : snprintf(text + used, bytes - used, "[%lld]", steps[n]->index);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return text;
}

uint32_t clab_path_line(const struct clab_eval *eval, const struct clab_path *path)
{
    struct clab_step steps[PATH_MAX_STEPS];
    size_t n = PATH_MAX_STEPS;
    uint32_t function_line = 0;
    for (; path != NULL && n > 0; path = path->up) {
        if (path->function_line != 0) {
            function_line = path->function_line;
            break;
        }
        if (path->key != NULL || path->index > 0)
            steps[--n] = (struct clab_step){path->key, path->index};
    }
    return clab_line_find(eval->text, eval->text_bytes, function_line, steps + n, PATH_MAX_STEPS - n);
}

static const char *path_context(const struct clab_path *path)
{
    for (; path != NULL; path = path->up)
        if (path->context != NULL)
            return path->context;
    return NULL;
}

/* -- errors -------------------------------------------------------------------------------------------- */

_Noreturn static void raise(struct clab_eval *eval)
{
    lua_pushliteral(eval->L, "experiment:0: see the error record");
    lua_error(eval->L);
    __builtin_unreachable();
}

_Noreturn static void fail_with(struct clab_eval *eval, const struct clab_path *path, const char *remedy,
                                const char *format, va_list args)
{
    char text[256];
    struct clab_str message = {0};
    clab_path_text(path, text, sizeof text);
    if (text[0] != '\0')
        clab_str_addf(&message, "%s: ", text);
    clab_str_vaddf(&message, format, args);
    if (path_context(path) != NULL)
        clab_str_addf(&message, " (%s)", path_context(path));
    clab_error_set(&eval->fail, CLAB_EXPERIMENT, "%s", message.text != NULL ? message.text : "out of memory");
    clab_error_at(&eval->fail, eval->file, clab_path_line(eval, path), 0);
    if (remedy != NULL)
        clab_error_remedy(&eval->fail, "%s", remedy);
    clab_str_free(&message);
    raise(eval);
}

void clab_eval_fail(struct clab_eval *eval, const struct clab_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(eval, path, NULL, format, args);
}

CLAB_PRINTF(4, 5)
_Noreturn static void fail_hint(struct clab_eval *eval, const struct clab_path *path, const char *remedy,
                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_with(eval, path, remedy, format, args);
}

void clab_eval_refuse(struct clab_eval *eval, clab_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clab_error_vset(&eval->fail, status, format, args);
    va_end(args);
    raise(eval);
}

json_t *clab_eval_json(struct clab_eval *eval, json_t *value)
{
    if (value == NULL)
        clab_eval_refuse(eval, CLAB_NO_MEMORY, "out of memory for the plan");
    return value;
}

void clab_eval_set(struct clab_eval *eval, json_t *object, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(object, key, value) != 0)
        clab_eval_refuse(eval, CLAB_NO_MEMORY, "out of memory for the plan (at %s)", key);
}

void clab_eval_append(struct clab_eval *eval, json_t *array, json_t *value)
{
    if (value == NULL || json_array_append_new(array, value) != 0)
        clab_eval_refuse(eval, CLAB_NO_MEMORY, "out of memory for the plan");
}

const char *clab_value_text(lua_State *L, int index, char *text, size_t bytes)
{
    switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
        snprintf(text, bytes, "nothing");
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            snprintf(text, bytes, "%lld", (long long)lua_tointeger(L, index));
        else if (isnan(lua_tonumber(L, index)))
            snprintf(text, bytes, "nan");
        else
            snprintf(text, bytes, "%.15g", lua_tonumber(L, index));
        break;
    case LUA_TBOOLEAN:
        snprintf(text, bytes, "%s", lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TSTRING:
        snprintf(text, bytes, "'%.60s'", lua_tostring(L, index));
        break;
    default:
        snprintf(text, bytes, "a %s", luaL_typename(L, index));
        break;
    }
    return text;
}

_Noreturn static void wrong_type(struct clab_eval *eval, const struct clab_path *path, int index,
                                 const char *wanted)
{
    char got[96];
    clab_eval_fail(eval, path, "wanted %s, got %s", wanted, clab_value_text(eval->L, index, got, sizeof got));
}

/* -- readers ------------------------------------------------------------------------------------------- */

int clab_push_field(struct clab_eval *eval, int index, const char *key)
{
    index = lua_absindex(eval->L, index);
    luaL_checkstack(eval->L, 4, "experiment nested too deeply");
    lua_pushstring(eval->L, key);
    return lua_rawget(eval->L, index);
}

static void unknown_field(struct clab_eval *eval, const struct clab_path *path, const char *key,
                          const char *const *fields, size_t n_fields)
{
    struct clab_path at = {.up = path, .key = key};
    struct clab_str known = {0};
    char hint[128];
    const char *near = clab_nearest_name(key, fields, n_fields);
    for (size_t i = 0; i < n_fields; i++)
        clab_str_addf(&known, "%s%s", i > 0 ? ", " : "", fields[i]);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    fail_hint(eval, &at, near != NULL ? hint : NULL, "unknown field; known here: %s",
              known.text != NULL ? known.text : "none");
}

void clab_read_table(struct clab_eval *eval, const struct clab_path *path, int index,
                     const char *const *fields, size_t n_fields, bool list)
{
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        wrong_type(eval, path, index, "a table");
    const char *unknown = NULL; /* the least, so that the answer does not depend on hash order */
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING) {
            const char *key = lua_tostring(L, -2);
            size_t i = 0;
            while (i < n_fields && strcmp(fields[i], key) != 0)
                i++;
            if (i == n_fields && (unknown == NULL || strcmp(key, unknown) < 0))
                unknown = key;
        } else if (!(list && lua_isinteger(L, -2))) {
            char got[96];
            clab_value_text(L, -2, got, sizeof got);
            clab_eval_fail(eval, path, "wanted named fields, got one with the key %s", got);
        }
    }
    if (unknown != NULL)
        unknown_field(eval, path, unknown, fields, n_fields);
}

lua_Integer clab_read_list(struct clab_eval *eval, const struct clab_path *path, int index)
{
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        wrong_type(eval, path, index, "a list");
    lua_Integer n = (lua_Integer)lua_rawlen(L, index), seen = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        seen++;
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 || lua_tointeger(L, -2) > n) {
            char got[96];
            clab_eval_fail(eval, path, "wanted a list, got a table with the key %s",
                           clab_value_text(L, -2, got, sizeof got));
        }
    }
    if (seen != n)
        clab_eval_fail(eval, path, "wanted a list, got one with holes");
    return n;
}

const char *clab_read_string(struct clab_eval *eval, const struct clab_path *path, int index)
{
    if (lua_type(eval->L, index) != LUA_TSTRING)
        wrong_type(eval, path, index, "a string");
    size_t bytes;
    const char *text = lua_tolstring(eval->L, index, &bytes);
    if (strlen(text) != bytes)
        clab_eval_fail(eval, path, "wanted a text, got one with a zero byte in it");
    json_t *probe = json_string(text); /* refuses what is not UTF-8 */
    if (probe == NULL)
        clab_eval_fail(eval, path, "wanted a UTF-8 text");
    json_decref(probe);
    return text;
}

bool clab_read_bool(struct clab_eval *eval, const struct clab_path *path, int index)
{
    if (!lua_isboolean(eval->L, index))
        wrong_type(eval, path, index, "true or false");
    return lua_toboolean(eval->L, index);
}

long long clab_read_integer(struct clab_eval *eval, const struct clab_path *path, int index, long long low,
                            long long high)
{
    int whole = 0;
    lua_Integer value = lua_type(eval->L, index) == LUA_TNUMBER ? lua_tointegerx(eval->L, index, &whole) : 0;
    if (!whole || value < low || value > high) {
        char wanted[96];
        if (high == INT64_MAX)
            snprintf(wanted, sizeof wanted, "a whole number of at least %lld", low);
        else
            snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", low, high);
        wrong_type(eval, path, index, wanted);
    }
    return value;
}

double clab_read_number(struct clab_eval *eval, const struct clab_path *path, int index)
{
    if (lua_type(eval->L, index) != LUA_TNUMBER || !isfinite(lua_tonumber(eval->L, index)))
        wrong_type(eval, path, index, "a finite number");
    return lua_tonumber(eval->L, index);
}

const char *clab_field_string(struct clab_eval *eval, const struct clab_path *path, int index,
                              const char *key, const char *otherwise)
{
    struct clab_path at = {.up = path, .key = key};
    const char *text = otherwise; /* the table keeps the string alive */
    if (clab_push_field(eval, index, key) != LUA_TNIL)
        text = clab_read_string(eval, &at, -1);
    lua_pop(eval->L, 1);
    return text;
}

bool clab_field_bool(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                     bool otherwise)
{
    struct clab_path at = {.up = path, .key = key};
    bool value = otherwise;
    if (clab_push_field(eval, index, key) != LUA_TNIL)
        value = clab_read_bool(eval, &at, -1);
    lua_pop(eval->L, 1);
    return value;
}

long long clab_field_integer(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                             long long low, long long high, long long otherwise)
{
    struct clab_path at = {.up = path, .key = key};
    long long value = otherwise;
    if (clab_push_field(eval, index, key) != LUA_TNIL)
        value = clab_read_integer(eval, &at, -1, low, high);
    lua_pop(eval->L, 1);
    return value;
}

double clab_field_number(struct clab_eval *eval, const struct clab_path *path, int index, const char *key,
                         double otherwise)
{
    struct clab_path at = {.up = path, .key = key};
    double value = otherwise;
    if (clab_push_field(eval, index, key) != LUA_TNIL)
        value = clab_read_number(eval, &at, -1);
    lua_pop(eval->L, 1);
    return value;
}

json_t *clab_field_strings(struct clab_eval *eval, const struct clab_path *path, int index, const char *key)
{
    struct clab_path at = {.up = path, .key = key};
    json_t *list = clab_eval_json(eval, json_array());
    int type = clab_push_field(eval, index, key);
    if (type == LUA_TSTRING) {
        clab_eval_append(eval, list, json_string(clab_read_string(eval, &at, -1)));
    } else if (type != LUA_TNIL) {
        lua_Integer n = clab_read_list(eval, &at, -1);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = &at, .index = i};
            lua_rawgeti(eval->L, -1, i);
            clab_eval_append(eval, list, json_string(clab_read_string(eval, &item, -1)));
            lua_pop(eval->L, 1);
        }
    }
    lua_pop(eval->L, 1);
    return list;
}

void clab_read_sides(struct clab_eval *eval, const struct clab_path *path, int index, const long long high[3],
                     long long out_sides[3])
{
    lua_State *L = eval->L;
    out_sides[0] = out_sides[1] = out_sides[2] = 1;
    if (lua_type(L, index) == LUA_TNUMBER) {
        out_sides[0] = clab_read_integer(eval, path, index, 1, high[0]);
        return;
    }
    if (!lua_istable(L, index))
        wrong_type(eval, path, index, "a whole number or a list of one to three");
    index = lua_absindex(L, index);
    lua_Integer n = clab_read_list(eval, path, index);
    if (n < 1 || n > 3)
        clab_eval_fail(eval, path, "wanted one to three sides, got %lld", (long long)n);
    for (lua_Integer i = 1; i <= n; i++) {
        struct clab_path item = {.up = path, .index = i};
        lua_rawgeti(L, index, i);
        out_sides[i - 1] = clab_read_integer(eval, &item, -1, 1, high[i - 1]);
        lua_pop(L, 1);
    }
}

/* -- calls --------------------------------------------------------------------------------------------- */

void clab_call_function(struct clab_eval *eval, const struct clab_path *path, int index, int n_arguments,
                        uint32_t *out_line)
{
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    if (!lua_isfunction(L, index))
        wrong_type(eval, path, index, "a function");
    lua_Debug ar;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", &ar);
    if (out_line != NULL)
        *out_line = ar.linedefined > 0 && strcmp(ar.source, "=" CLAB_PRELUDE_CHUNK) != 0
                        ? (uint32_t)ar.linedefined
                        : 0;
    int base = lua_gettop(L) - n_arguments;
    lua_pushvalue(L, index);
    lua_insert(L, base + 1);
    lua_pushcfunction(L, clab_sandbox_handler);
    lua_insert(L, base + 1);
    int status = lua_pcall(L, n_arguments, 1, base + 1);
    if (status != LUA_OK) {
        char text[256];
        clab_sandbox_error(eval, status, &eval->fail);
        if (path_context(path) != NULL)
            clab_error_context(&eval->fail, "%s (%s)", clab_path_text(path, text, sizeof text),
                               path_context(path));
        else
            clab_error_context(&eval->fail, "%s", clab_path_text(path, text, sizeof text));
        raise(eval);
    }
    lua_remove(L, base + 1);
}

/* -- values across the border -------------------------------------------------------------------------- */

bool clab_is_name(const char *text)
{
    size_t bytes = strlen(text);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return bytes > 0 && bytes < CLAB_NAME_BYTES && strchr(letters, text[0]) != NULL &&
           strspn(text, all) == bytes;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *to_json(struct clab_eval *eval, const struct clab_path *path, int index, int depth)
{
    lua_State *L = eval->L;
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        return json_null();
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(L, index));
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            return clab_eval_json(eval, json_integer(lua_tointeger(L, index)));
        return clab_eval_json(eval, json_real(clab_read_number(eval, path, index)));
    case LUA_TSTRING:
        return clab_eval_json(eval, json_string(clab_read_string(eval, path, index)));
    case LUA_TTABLE:
        break;
    default:
        wrong_type(eval, path, index, "a number, text, true, false or a table");
    }
    if (depth == JSON_MAX_DEPTH)
        clab_eval_fail(eval, path, "nested more than %d deep", JSON_MAX_DEPTH);
    luaL_checkstack(L, 4, "experiment nested too deeply");
    index = lua_absindex(L, index);
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    json_t *result = clab_eval_json(eval, n > 0 ? json_array() : json_object());
    if (n > 0) {
        clab_read_list(eval, path, index);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = path, .index = i};
            lua_rawgeti(L, index, i);
            clab_eval_append(eval, result, to_json(eval, &item, -1, depth + 1));
            lua_pop(L, 1);
        }
        return result;
    }
    const char *keys[JSON_MAX_KEYS]; /* sorted: Lua's own order differs from run to run */
    size_t n_keys = 0;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            char got[96];
            clab_eval_fail(eval, path, "wanted a list or named fields, got the key %s",
                           clab_value_text(L, -2, got, sizeof got));
        }
        if (!clab_is_name(lua_tostring(L, -2)))
            clab_eval_fail(eval, path, "wanted names of letters, digits and _, got '%.40s'",
                           lua_tostring(L, -2));
        if (n_keys == JSON_MAX_KEYS)
            clab_eval_fail(eval, path, "wanted at most %d named fields", JSON_MAX_KEYS);
        keys[n_keys++] = lua_tostring(L, -2);
    }
    qsort(keys, n_keys, sizeof *keys, by_text);
    for (size_t i = 0; i < n_keys; i++) {
        struct clab_path item = {.up = path, .key = keys[i]};
        clab_push_field(eval, index, keys[i]);
        clab_eval_set(eval, result, keys[i], to_json(eval, &item, -1, depth + 1));
        lua_pop(L, 1);
    }
    return result;
}

json_t *clab_lua_to_json(struct clab_eval *eval, const struct clab_path *path, int index)
{
    return to_json(eval, path, index, 0);
}

void clab_json_to_lua(lua_State *L, const json_t *value)
{
    luaL_checkstack(L, 4, "value nested too deeply");
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_OBJECT: {
        const char *key;
        json_t *item;
        lua_newtable(L);
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            clab_json_to_lua(L, item);
            lua_setfield(L, -2, key);
        }
        break;
    }
    case JSON_ARRAY:
        lua_newtable(L);
        for (size_t i = 0; i < json_array_size(value); i++) {
            clab_json_to_lua(L, json_array_get(value, i));
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        lua_pushinteger(L, json_integer_value(value));
        break;
    case JSON_REAL:
        lua_pushnumber(L, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(value));
        break;
    case JSON_NULL:
        lua_pushnil(L);
        break;
    }
}
