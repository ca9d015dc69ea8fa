/* The sandbox of experiment files (Lua 5.4 manual §6, minus what is named here).

   Left out on purpose: io, os, package, debug, coroutine, utf8; load, loadfile, dofile, require, pcall,
   xpcall, print, collectgarbage, setmetatable and the raw functions; string.dump, pack, unpack; table.move (a
   C loop of any length); math.random. Changed: pairs goes in key order (Lua's own order differs from run to
   run), tostring and string.format show no addresses, string.rep and the pattern functions refuse work that
   the count hook could not interrupt. Without pcall nothing can catch the deadline's error; the parent's wall
   clock stands behind it. */
#include "lab/sandbox.h"

#include "base/process.h"
#include "base/str.h"
#include "lab/prelude.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_NAME    "experiment" /* luaL_where then prints "experiment:LINE:" whatever the file's name */
#define HOOK_COUNT    10000        /* VM instructions between two looks at the clock */
#define REP_MAX_BYTES (1u << 20)
/* Backtracking steps that one pattern call may need in the worst case: about a second. */
#define PATTERN_MAX_STEPS 1e8

struct clab_eval *clab_sandbox_eval(lua_State *L)
{
    struct clab_eval *eval;
    memcpy(&eval, lua_getextraspace(L), sizeof eval);
    return eval;
}

/* Line of the innermost running function of the file; 0 when there is none. Allocates nothing. */
static uint32_t running_line(lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar) != 0; level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0 && strcmp(ar.source, "=" CHUNK_NAME) == 0)
            return (uint32_t)ar.currentline;
    }
    return 0;
}

static void *capped_alloc(void *context, void *block, size_t old_bytes, size_t new_bytes)
{
    struct clab_eval *eval = context;
    if (block == NULL)
        old_bytes = 0; /* then it is a type tag */
    if (new_bytes == 0) {
        free(block);
        eval->used_bytes -= old_bytes;
        return NULL;
    }
    if (new_bytes > old_bytes && new_bytes - old_bytes > eval->max_bytes - eval->used_bytes) {
        if (eval->L != NULL)
            eval->memory_line = running_line(eval->L);
        return NULL;
    }
    void *moved = realloc(block, new_bytes);
    if (moved != NULL)
        eval->used_bytes = eval->used_bytes - old_bytes + new_bytes;
    return moved;
}

static void deadline_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    struct clab_eval *eval = clab_sandbox_eval(L);
    if (clab_now_ns() > eval->deadline_ns)
        luaL_error(L, "still running after %d ms: an endless loop?", eval->timeout_ms);
}

/* -- string functions that need a limit ---------------------------------------------------------------- */

static int limited_rep(lua_State *L)
{
    size_t bytes, separator_bytes;
    luaL_checklstring(L, 1, &bytes);
    lua_Integer n = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &separator_bytes);
    if (n > 0 && (double)n * (double)(bytes + separator_bytes) > REP_MAX_BYTES)
        return luaL_error(L, "string.rep: the result may have at most %d bytes", (int)REP_MAX_BYTES);
    lua_settop(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 3, 1);
    return 1;
}

/* Refuses a pattern whose worst case is beyond PATTERN_MAX_STEPS: each unbounded repetition, and the search
   for a start when the pattern is not anchored, may be tried at every position of the subject. */
static int limited_pattern(lua_State *L)
{
    size_t subject_bytes, pattern_bytes;
    luaL_checklstring(L, 1, &subject_bytes);
    const char *pattern = luaL_checklstring(L, 2, &pattern_bytes);
    double length = (double)subject_bytes + 1, steps = pattern_bytes > 0 && pattern[0] == '^' ? 1 : length;
    for (size_t i = 0; i < pattern_bytes; i++) {
        char c = pattern[i];
        if (c == '%' && i + 1 < pattern_bytes) {
            i++;
            if (pattern[i] == 'b')
                steps *= length;
            continue;
        }
        if (c == '*' || c == '+' || c == '-')
            steps *= length;
        else if (c == '?')
            steps *= 2;
    }
    if (steps > PATTERN_MAX_STEPS)
        return luaL_error(
            L, "pattern with too many repetitions for a text of %d bytes: it might take 1e%d steps",
            (int)subject_bytes, (int)log10(steps));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int plain_format(lua_State *L)
{
    const char *format = luaL_checkstring(L, 1);
    for (const char *c = strchr(format, '%'); c != NULL; c = strchr(c, '%')) {
        c++;
        if (*c == '%') {
            c++;
            continue;
        }
        while (*c != '\0' && strchr("-+ #0123456789.", *c) != NULL)
            c++;
        if (*c == 'p')
            return luaL_error(L, "string.format: %%p shows an address, which differs from run to run");
    }
    int n = lua_gettop(L);
    for (int i = 2; i <= n; i++) {
        int type = lua_type(L, i);
        if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TBOOLEAN && type != LUA_TNIL) {
            lua_pushstring(L, luaL_typename(L, i));
            lua_replace(L, i);
        }
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, 1);
    return 1;
}

static int plain_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    int type = lua_type(L, 1);
    if (type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TBOOLEAN || type == LUA_TNIL)
        luaL_tolstring(L, 1, NULL);
    else
        lua_pushstring(L, luaL_typename(L, 1));
    return 1;
}

/* -- pairs in key order -------------------------------------------------------------------------------- */

static int key_rank(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        return 0;
    case LUA_TSTRING:
        return 1;
    default:
        return 2;
    }
}

static int key_less(lua_State *L)
{
    int a = key_rank(L, 1), b = key_rank(L, 2);
    if (a != b)
        lua_pushboolean(L, a < b);
    else
        lua_pushboolean(L, a < 2 && lua_compare(L, 1, 2, LUA_OPLT));
    return 1;
}

static int ordered_next(lua_State *L)
{
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(3)) + 1;
    for (;; at++) {
        if (lua_rawgeti(L, lua_upvalueindex(2), at) == LUA_TNIL)
            return 1;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
            break;
        lua_pop(L, 2); /* removed since the loop began */
    }
    lua_pushinteger(L, at);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

static int ordered_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1)); /* table.sort */
    lua_newtable(L);
    lua_Integer n = 0;
    for (lua_pushnil(L); lua_next(L, 1) != 0;) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, 3, ++n);
    }
    lua_pushvalue(L, 3);
    lua_insert(L, 2); /* table, keys, sort, keys */
    lua_pushcfunction(L, key_less);
    lua_call(L, 2, 0);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, ordered_next, 3);
    return 1;
}

/* -- helpers for experiment files ---------------------------------------------------------------------- */

static int helper_ceil_div(lua_State *L)
{
    lua_Integer a = luaL_checkinteger(L, 1), b = luaL_checkinteger(L, 2);
    luaL_argcheck(L, a >= 0, 1, "must not be negative");
    luaL_argcheck(L, b > 0, 2, "must be positive");
    lua_pushinteger(L, a / b + (a % b != 0));
    return 1;
}

static lua_Integer shape_size(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index) || (lua_isboolean(L, index) && !lua_toboolean(L, index)))
        return 1;
    if (lua_type(L, index) != LUA_TTABLE)
        return luaL_checkinteger(L, index);
    lua_Integer product = 1;
    for (lua_Integer i = 1; i <= 3; i++) {
        if (lua_geti(L, index, i) != LUA_TNIL) {
            lua_Integer side = luaL_checkinteger(L, -1);
            luaL_argcheck(L, side > 0 && side < (1 << 20), index, "sides must be positive");
            product *= side;
        }
        lua_pop(L, 1);
    }
    return product;
}

static int helper_cluster_size(lua_State *L)
{
    lua_pushinteger(L, shape_size(L, 1));
    return 1;
}

static int helper_round_up(lua_State *L)
{
    lua_Integer a = luaL_checkinteger(L, 1), b = shape_size(L, 2);
    luaL_argcheck(L, a >= 0, 1, "must not be negative");
    luaL_argcheck(L, b > 0, 2, "must be positive");
    lua_Integer whole = a / b + (a % b != 0);
    luaL_argcheck(L, whole <= LUA_MAXINTEGER / b, 1, "too large");
    lua_pushinteger(L, whole * b);
    return 1;
}

static int helper_next_pow2(lua_State *L)
{
    lua_Integer a = luaL_checkinteger(L, 1), power = 1;
    luaL_argcheck(L, a <= (lua_Integer)1 << 62, 1, "too large");
    while (power < a)
        power <<= 1;
    lua_pushinteger(L, power);
    return 1;
}

static int new_scalar(lua_State *L, const char *type)
{
    lua_createtable(L, 0, 2);
    lua_pushstring(L, type);
    lua_setfield(L, -2, "type");
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "value");
    luaL_setmetatable(L, CLAB_META_SCALAR);
    return 1;
}

/* Typed scalars: the upvalues are type name, least and greatest value; floats have no bounds. */
static int helper_integer(lua_State *L)
{
    lua_Integer value = luaL_checkinteger(L, 1);
    if (value < lua_tointeger(L, lua_upvalueindex(2)) || value > lua_tointeger(L, lua_upvalueindex(3)))
        return luaL_error(L, "%s(%I): out of range", lua_tostring(L, lua_upvalueindex(1)),
                          (LUAI_UACINT)value);
    lua_pushinteger(L, value);
    lua_replace(L, 1);
    return new_scalar(L, lua_tostring(L, lua_upvalueindex(1)));
}

static int helper_float(lua_State *L)
{
    lua_Number value = luaL_checknumber(L, 1);
    if (!isfinite(value))
        return luaL_error(L, "%s: wanted a finite number, got %f", lua_tostring(L, lua_upvalueindex(1)),
                          value);
    return new_scalar(L, lua_tostring(L, lua_upvalueindex(1)));
}

static int helper_tagged(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_setmetatable(L, lua_tostring(L, lua_upvalueindex(1)));
    return 1;
}

static void add_integer(lua_State *L, const char *name, lua_Integer low, lua_Integer high)
{
    lua_pushstring(L, name);
    lua_pushinteger(L, low);
    lua_pushinteger(L, high);
    lua_pushcclosure(L, helper_integer, 3);
    lua_setglobal(L, name);
}

static void add_tagged(lua_State *L, const char *name, const char *meta)
{
    luaL_newmetatable(L, meta);
    lua_pop(L, 1);
    lua_pushstring(L, meta);
    lua_pushcclosure(L, helper_tagged, 1);
    lua_setglobal(L, name);
}

/* Every name that a file finds beside the libraries and the prelude; used for "did you mean". */
static const char *const global_names[] = {
    "assert", "error",  "ipairs", "pairs",    "select",   "tonumber",     "tostring",  "type",
    "math",   "string", "table",  "ceil_div", "round_up", "u32",          "u64",       "s32",
    "s64",    "f32",    "f64",    "fit",      "values",   "cluster_size", "next_pow2",
};

/* -- opening ------------------------------------------------------------------------------------------- */

static void keep_fields(lua_State *L, int table, const char *const *names)
{
    table = lua_absindex(L, table);
    lua_newtable(L);
    for (; *names != NULL; names++) {
        lua_getfield(L, table, *names);
        lua_setfield(L, -2, *names);
    }
}

static void wrap(lua_State *L, const char *name, lua_CFunction function)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

static int open_body(lua_State *L)
{
    static const char *const base_names[] = {"assert",   "error",    "ipairs", "pairs", "select",
                                             "tonumber", "tostring", "type",   NULL};
    static const char *const string_names[] = {"byte",  "char",  "find", "format",  "gmatch", "gsub",  "len",
                                               "lower", "match", "rep",  "reverse", "sub",    "upper", NULL};
    static const char *const table_names[] = {"concat", "insert", "pack", "remove", "sort", "unpack", NULL};
    static const char *const math_names[] = {
        "abs",  "ceil", "cos",  "deg",  "exp",  "floor",      "fmod",       "huge", "log",
        "max",  "min",  "modf", "pi",   "rad",  "sin",        "sqrt",       "tan",  "tointeger",
        "type", "ult",  "acos", "asin", "atan", "maxinteger", "mininteger", NULL};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 0);
    keep_fields(L, -1, base_names);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 0);
    keep_fields(L, -1, table_names);
    lua_getfield(L, -1, "sort");
    lua_pushcclosure(L, ordered_pairs, 1);
    lua_setfield(L, -4, "pairs");
    lua_setfield(L, -3, "table");
    lua_pop(L, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 0);
    keep_fields(L, -1, math_names);
    lua_setfield(L, -3, "math");
    lua_pop(L, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 0); /* also makes it the strings' metatable */
    keep_fields(L, -1, string_names);
    wrap(L, "rep", limited_rep);
    wrap(L, "find", limited_pattern);
    wrap(L, "match", limited_pattern);
    wrap(L, "gmatch", limited_pattern);
    wrap(L, "gsub", limited_pattern);
    wrap(L, "format", plain_format);
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index"); /* ("x"):rep() goes through the limited ones too */
    lua_pop(L, 2);
    lua_setfield(L, -3, "string");
    lua_pop(L, 1);
    lua_pushcfunction(L, plain_tostring);
    lua_setfield(L, -2, "tostring");
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); /* the kept base functions are the globals now */
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_settop(L, 0);

    lua_register(L, "ceil_div", helper_ceil_div);
    lua_register(L, "round_up", helper_round_up);
    lua_register(L, "next_pow2", helper_next_pow2);
    lua_register(L, "cluster_size", helper_cluster_size);
    add_integer(L, "u32", 0, UINT32_MAX);
    add_integer(L, "s32", INT32_MIN, INT32_MAX);
    add_integer(L, "u64", 0, INT64_MAX);
    add_integer(L, "s64", INT64_MIN, INT64_MAX);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "f32" : "f64";
        lua_pushstring(L, name);
        lua_pushcclosure(L, helper_float, 1);
        lua_setglobal(L, name);
    }
    luaL_newmetatable(L, CLAB_META_SCALAR);
    lua_pop(L, 1);
    add_tagged(L, "fit", CLAB_META_FIT);
    add_tagged(L, "values", CLAB_META_VALUES);
    clab_prelude_load(L);
    return 0;
}

clab_status clab_sandbox_open(struct clab_eval *eval, struct clab_error *error)
{
    eval->used_bytes = 0;
    eval->memory_line = 0;
    eval->L = NULL;
    lua_State *L = lua_newstate(capped_alloc, eval);
    if (L == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "cannot create a Lua state in %zu bytes",
                              eval->max_bytes);
    memcpy(lua_getextraspace(L), &eval, sizeof eval);
    lua_pushcfunction(L, open_body);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK) {
        lua_close(L);
        return clab_error_set(error, CLAB_NO_MEMORY, "cannot create a Lua state in %zu bytes",
                              eval->max_bytes);
    }
    lua_sethook(L, deadline_hook, LUA_MASKCOUNT, HOOK_COUNT);
    eval->L = L;
    return CLAB_OK;
}

void clab_sandbox_close(struct clab_eval *eval)
{
    lua_State *L = eval->L;
    eval->L = NULL;
    if (L != NULL)
        lua_close(L);
}

/* -- errors -------------------------------------------------------------------------------------------- */

int clab_sandbox_handler(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING) {
        lua_pushfstring(L, "error value is a %s, not a text", luaL_typename(L, 1));
        lua_replace(L, 1);
    }
    const char *message = lua_tostring(L, 1);
    uint32_t line = running_line(L);
    if (strncmp(message, CLAB_PRELUDE_CHUNK ":", sizeof CLAB_PRELUDE_CHUNK) == 0) {
        message += sizeof CLAB_PRELUDE_CHUNK;
        message += strspn(message, "0123456789: ");
    }
    if (strncmp(message, CHUNK_NAME ":", sizeof CHUNK_NAME) != 0 && line != 0)
        lua_pushfstring(L, CHUNK_NAME ":%d: %s", (int)line, message);
    return 1;
}

/* "attempt to call a nil value (global 'ceildiv')": adds the nearest name that exists. */
static void suggest_global(struct clab_error *error, const char *message)
{
    const char *global = strstr(message, "(global '");
    if (global == NULL)
        return;
    char name[64];
    size_t bytes = strcspn(global + 9, "'");
    if (bytes >= sizeof name)
        return;
    memcpy(name, global + 9, bytes);
    name[bytes] = '\0';
    static const char *const absent[] = {"io",       "os",     "package",        "require",      "load",
                                         "loadfile", "dofile", "pcall",          "xpcall",       "coroutine",
                                         "debug",    "print",  "setmetatable",   "getmetatable", "next",
                                         "rawget",   "rawset", "collectgarbage", "utf8"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strcmp(name, absent[i]) == 0) {
            clab_error_remedy(error, "experiment files are data and pure functions: there is no '%s'", name);
            return;
        }
    const char *near = clab_nearest_name(name, global_names, sizeof global_names / sizeof *global_names);
    size_t n_prelude = 0;
    while (near == NULL && clab_prelude_names[n_prelude] != NULL)
        n_prelude++;
    if (near == NULL)
        near = clab_nearest_name(name, clab_prelude_names, n_prelude);
    if (near != NULL)
        clab_error_remedy(error, "did you mean '%s'?", near);
}

clab_status clab_sandbox_error(struct clab_eval *eval, int lua_status, struct clab_error *error)
{
    lua_State *L = eval->L;
    if (lua_status == LUA_ERRMEM) {
        clab_error_set(error, CLAB_EXPERIMENT, "the file's code wanted more than %zu MiB of memory",
                       eval->max_bytes >> 20);
        lua_pop(L, 1);
        return clab_error_at(error, eval->file, eval->memory_line, 0);
    }
    const char *message = lua_tostring(L, -1);
    if (message == NULL)
        message = "unknown Lua error";
    uint32_t line = 0;
    if (strncmp(message, CHUNK_NAME ":", sizeof CHUNK_NAME) == 0) {
        char *end;
        line = (uint32_t)strtoul(message + sizeof CHUNK_NAME, &end, 10);
        message = end;
        while (*message == ':' || *message == ' ')
            message++;
    }
    clab_error_set(error, CLAB_EXPERIMENT, "%s", message);
    suggest_global(error, message);
    lua_pop(L, 1);
    return clab_error_at(error, eval->file, line, 0);
}

clab_status clab_sandbox_run(struct clab_eval *eval, lua_CFunction body, void *argument,
                             struct clab_error *error)
{
    lua_State *L = eval->L;
    eval->fail.status = CLAB_OK;
    lua_pushcfunction(L, clab_sandbox_handler);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, argument);
    int status = lua_pcall(L, 1, 0, -3);
    if (status == LUA_OK) {
        lua_pop(L, 1);
        return CLAB_OK;
    }
    if (eval->fail.status != CLAB_OK && status != LUA_ERRMEM) {
        lua_pop(L, 2);
        clab_error_copy(error, &eval->fail);
        return eval->fail.status;
    }
    clab_status result = clab_sandbox_error(eval, status, error);
    lua_pop(L, 1);
    return result;
}

void clab_sandbox_load(struct clab_eval *eval)
{
    lua_State *L = eval->L;
    if (luaL_loadbufferx(L, eval->text, eval->text_bytes, "=" CHUNK_NAME, "t") != LUA_OK)
        lua_error(L);
    lua_call(L, 0, 1);
}
