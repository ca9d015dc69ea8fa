/* The fields of an experiment file and of its variants (design: "Experiment file"): checked, and copied into
   the plan. Left to others: which rows there are (plan_sweep.c) and what one row needs (plan_row.c). */
#include "lab/plan.h"

#include "base/str.h"
#include "check/hazard.h"
#include "lab/hazards.h"
#include "lab/wire.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_VARIANTS    256
#define MAX_COLUMNS     64
#define MAX_PREDICTIONS 256

static const char *const file_fields[] = {"summary", "params",  "sweep",   "buffers",  "launch",
                                          "bytes",   "columns", "check",   "variants", "predictions",
                                          "hot",     "waive",   "timeline"};
static const char *const variant_fields[] = {
    "name",     "about",        "source",   "entry",   "cluster", "static_cluster",
    "baseline", "must_contain", "requires", "options", "launch",  "waive",
    "broken",   "accepts",      "atomics",  "data",    "against"};

/* -- sources ------------------------------------------------------------------------------------------- */

static bool known_extension(const char *path)
{
    static const char *const extensions[] = {".cu", ".ptx", ".cubin", ".fatbin"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof extensions / sizeof *extensions; i++)
        if (strcmp(dot, extensions[i]) == 0)
            return true;
    return false;
}

/* Nearest name to a missing file in its folder: into `near`, "" when there is none. */
static void nearest_file(const char *path, char *near, size_t bytes)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *names[256];
    size_t n = 0;
    near[0] = '\0';
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) : 1,
             slash != NULL ? path : ".");
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *entry; n < 256 && (entry = readdir(dir)) != NULL;)
        if (known_extension(entry->d_name) && (names[n] = strdup(entry->d_name)) != NULL)
            n++;
    closedir(dir);
    const char *best = clab_nearest_name(slash != NULL ? slash + 1 : path, names, n);
    if (best != NULL)
        snprintf(near, bytes, "; did you mean %s?", best);
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)names[i]);
}

json_t *clab_plan_source(struct clab_plan *plan, const struct clab_path *path, const char *source)
{
    char full[PATH_MAX], real[PATH_MAX], near[320];
    struct stat status;
    int wrote = snprintf(full, sizeof full, "%s%s%s", source[0] == '/' ? "" : plan->eval->folder,
                         source[0] == '/' ? "" : "/", source);
    if (wrote < 0 || (size_t)wrote >= sizeof full)
        clab_eval_fail(plan->eval, path, "the path is too long");
    if (!known_extension(source))
        clab_eval_fail(plan->eval, path, "wanted a .cu, .ptx, .cubin or .fatbin file, got '%s'", source);
    if (stat(full, &status) != 0 || realpath(full, real) == NULL) {
        nearest_file(full, near, sizeof near);
        clab_eval_fail(plan->eval, path, "no such file: '%s' (looked for %s)%s", source, full, near);
    }
    if (!S_ISREG(status.st_mode) || access(real, R_OK) != 0)
        clab_eval_fail(plan->eval, path, "'%s' is not a readable file", real);
    return clab_eval_json(plan->eval, json_string(real));
}

void clab_plan_kernel(struct clab_plan *plan, const struct clab_path *path, int index, json_t *object)
{
    struct clab_eval *eval = plan->eval;
    struct clab_path at = {.up = path, .key = "source"};
    if (clab_push_field(eval, index, "source") == LUA_TNIL)
        clab_eval_fail(eval, path, "has no `source`");
    clab_eval_set(eval, object, "source", clab_plan_source(plan, &at, clab_read_string(eval, &at, -1)));
    lua_pop(eval->L, 1);
    const char *entry = clab_field_string(eval, path, index, "entry", NULL);
    clab_eval_set(eval, object, "entry", entry != NULL ? json_string(entry) : json_null());
}

/* -- variants ------------------------------------------------------------------------------------------ */

static bool plain_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+";
    size_t bytes = strlen(name);
    return bytes > 0 && bytes <= 64 && strspn(name, allowed) == bytes;
}

static long long variant_index(const json_t *variants, const char *name)
{
    for (size_t i = 0; i < json_array_size(variants); i++)
        if (strcmp(clab_json_text(json_array_get(variants, i), "name", ""), name) == 0)
            return (long long)i;
    return -1;
}

static void read_function(struct clab_eval *eval, const struct clab_path *path, int index, const char *key)
{
    struct clab_path at = {.up = path, .key = key};
    int type = clab_push_field(eval, index, key);
    if (type != LUA_TNIL && type != LUA_TFUNCTION) {
        char got[96];
        clab_eval_fail(eval, &at, "wanted a function, got %s", clab_value_text(eval->L, -1, got, sizeof got));
    }
    lua_pop(eval->L, 1);
}

/* Milder kinds of hazards that a variant is at peace with: { ["narrow-scope"] = "reason" }. */
static json_t *read_accepts(struct clab_eval *eval, const struct clab_path *path, int index)
{
    lua_State *L = eval->L;
    struct clab_path at = {.up = path, .key = "accepts"};
    json_t *accepts = clab_eval_json(eval, json_object());
    const int type = clab_push_field(eval, index, "accepts");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        clab_eval_fail(eval, &at,
                       "wanted reasons by kind, such as { [\"narrow-scope\"] = \"the usual idiom\" }");
    if (type == LUA_TNIL) {
        lua_pop(L, 1);
        return accepts;
    }
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        const char *kind = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        struct clab_path item = {.up = &at, .key = kind};
        const int number = clab_hazard_kind(kind);
        if (number < 0)
            clab_eval_fail(eval, &item,
                           "there is no such kind of hazard; clusterlab check --help lists them");
        if (clab_hazard_severity_of((uint32_t)number) != CLAB_SEVERITY_MILD)
            clab_eval_fail(eval, &item, "only the milder kinds can be accepted, and this is none");
        if (lua_type(L, -1) != LUA_TSTRING || lua_rawlen(L, -1) == 0)
            clab_eval_fail(eval, &item, "wanted the reason, a text");
        clab_eval_set(eval, accepts, kind, json_string(lua_tostring(L, -1)));
    }
    lua_pop(L, 1);
    return accepts;
}

/* The variant whose table is on top of the stack. */
static void read_variant(struct clab_plan *plan, const struct clab_path *path)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    int index = lua_gettop(L);
    clab_read_table(eval, path, index, variant_fields, sizeof variant_fields / sizeof *variant_fields, false);
    const char *name = clab_field_string(eval, path, index, "name", NULL);
    struct clab_path name_path = {.up = path, .key = "name"};
    if (name == NULL)
        clab_eval_fail(eval, path, "a variant needs a `name`");
    if (!plain_name(name))
        clab_eval_fail(eval, &name_path, "wanted 1 to 64 letters, digits or any of _-.+, got '%.80s'", name);
    long long twin = variant_index(plan->variants, name);
    if (twin >= 0)
        clab_eval_fail(eval, &name_path, "'%s' is the name of variants[%lld] too", name, twin + 1);

    json_t *variant = clab_eval_json(eval, json_object());
    clab_eval_append(eval, plan->variants, variant);
    clab_eval_set(eval, variant, "name", json_string(name));
    clab_eval_set(eval, variant, "about", json_string(clab_field_string(eval, path, index, "about", "")));
    clab_plan_kernel(plan, path, index, variant);
    bool baseline = clab_field_bool(eval, path, index, "baseline", false);
    for (size_t i = 0; baseline && i + 1 < json_array_size(plan->variants); i++)
        if (clab_json_bool(json_array_get(plan->variants, i), "baseline", false)) {
            struct clab_path at = {.up = path, .key = "baseline"};
            clab_eval_fail(eval, &at, "variants[%zu] ('%s') is the baseline already", i + 1,
                           clab_json_text(json_array_get(plan->variants, i), "name", ""));
        }
    clab_eval_set(eval, variant, "baseline", json_boolean(baseline));
    clab_eval_set(eval, variant, "cluster",
                  json_boolean(clab_field_bool(eval, path, index, "cluster", true)));
    json_t *fixed = json_null();
    if (clab_push_field(eval, index, "static_cluster") != LUA_TNIL) {
        struct clab_path at = {.up = path, .key = "static_cluster"};
        const long long high[3] = {CLAB_PLAN_MAX_CTAS, CLAB_PLAN_MAX_CTAS, CLAB_PLAN_MAX_CTAS};
        long long sides[3];
        clab_read_sides(eval, &at, -1, high, sides);
        fixed = json_pack("[I,I,I]", (json_int_t)sides[0], (json_int_t)sides[1], (json_int_t)sides[2]);
    }
    lua_pop(L, 1);
    clab_eval_set(eval, variant, "static_cluster", fixed);
    clab_eval_set(eval, variant, "must_contain", clab_field_strings(eval, path, index, "must_contain"));
    clab_eval_set(eval, variant, "options", clab_field_strings(eval, path, index, "options"));
    const char *requires = clab_field_string(eval, path, index, "requires", NULL);
    clab_eval_set(eval, variant, "requires", requires != NULL ? json_string(requires) : json_null());
    const char *broken = clab_field_string(eval, path, index, "broken", NULL);
    clab_eval_set(eval, variant, "broken", broken != NULL ? json_string(broken) : json_null());
    clab_eval_set(eval, variant, "accepts", read_accepts(eval, path, index));
    const char *against = clab_field_string(eval, path, index, "against", NULL);
    clab_eval_set(eval, variant, "against", against != NULL ? json_string(against) : json_null());
    read_function(eval, path, index, "launch");
    read_function(eval, path, index, "waive");
    clab_eval_set(eval, variant, "index", json_integer((json_int_t)path->index));
    clab_eval_set(eval, variant, "line", json_integer(clab_path_line(eval, &name_path)));
}

void clab_plan_with(struct clab_plan *plan, const char *with)
{
    static const char *const extensions[] = {".cubin", ".fatbin", ".ptx", ".cu"};
    struct clab_eval *eval = plan->eval;
    const char *end = NULL; /* of the file name: the first colon after the extension, or the end */
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        size_t bytes = strlen(extensions[i]);
        for (const char *at = strstr(with, extensions[i]); at != NULL; at = strstr(at + 1, extensions[i]))
            if ((at[bytes] == ':' || at[bytes] == '\0') && (end == NULL || at + bytes < end))
                end = at + bytes;
    }
    if (end == NULL)
        clab_eval_refuse(eval, CLAB_USAGE,
                         "--with %s: wanted FILE[:ENTRY] with a .cu, .ptx, .cubin or .fatbin file", with);
    char file[PATH_MAX], real[PATH_MAX], stem[96], name[112], near[320];
    snprintf(file, sizeof file, "%.*s", (int)(end - with), with);
    if (*end == ':' && end[1] == '\0')
        clab_eval_refuse(eval, CLAB_USAGE, "--with %s: no entry after the colon", with);
    struct stat status;
    if (realpath(file, real) == NULL || stat(real, &status) != 0) {
        nearest_file(file, near, sizeof near);
        clab_eval_refuse(eval, CLAB_USAGE, "--with %s: no such file%s", file, near);
    }
    if (!S_ISREG(status.st_mode) || access(real, R_OK) != 0)
        clab_eval_refuse(eval, CLAB_USAGE, "--with %s: not a readable file", file);
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    snprintf(stem, sizeof stem, "%.*s", (int)(strrchr(base, '.') - base), base);
    snprintf(name, sizeof name, "%s", stem);
    for (int i = 2; variant_index(plan->variants, name) >= 0; i++)
        snprintf(name, sizeof name, "%s+%d", stem, i);
    json_t *variant = json_pack(
        "{s:s,s:s,s:s,s:o,s:b,s:b,s:n,s:[],s:[],s:n,s:n,s:{},s:i,s:i}", "name", name, "about", with, "source",
        real, "entry", *end == ':' ? json_string(end + 1) : json_null(), "baseline", 0, "cluster", 1,
        "static_cluster", "must_contain", "options", "requires", "broken", "accepts", "index", 0, "line", 0);
    clab_eval_append(eval, plan->variants, clab_eval_json(eval, variant));
}

static void read_variants(struct clab_plan *plan)
{
    struct clab_eval *eval = plan->eval;
    struct clab_path root = {0}, path = {.up = &root, .key = "variants"};
    clab_push_field(eval, plan->root, "variants");
    if (lua_isnil(eval->L, -1))
        clab_eval_fail(eval, &root, "an experiment needs a list of `variants`");
    lua_Integer n = clab_read_list(eval, &path, -1);
    if (n < 1 || n > MAX_VARIANTS)
        clab_eval_fail(eval, &path, "wanted 1 to %d variants, got %lld", MAX_VARIANTS, (long long)n);
    for (lua_Integer i = 1; i <= n; i++) {
        struct clab_path item = {.up = &path, .index = i};
        lua_rawgeti(eval->L, -1, i);
        read_variant(plan, &item);
        lua_pop(eval->L, 1);
    }
    for (lua_Integer i = 1; i <= n; i++) {
        struct clab_path item = {.up = &path, .index = i}, at = {.up = &item, .key = "against"};
        const char *against = clab_json_text(json_array_get(plan->variants, (size_t)i - 1), "against", NULL);
        if (against != NULL && variant_index(plan->variants, against) < 0)
            clab_eval_fail(eval, &at, "there is no variant '%.60s'", against);
    }
    lua_pop(eval->L, 1);
}

/* -- parameters ---------------------------------------------------------------------------------------- */

static bool is_scalar(const json_t *value)
{
    return json_is_number(value) || json_is_string(value) || json_is_boolean(value);
}

static json_t *read_params(struct clab_plan *plan, const char *key)
{
    struct clab_eval *eval = plan->eval;
    struct clab_path root = {0}, path = {.up = &root, .key = key};
    json_t *params = NULL;
    if (clab_push_field(eval, plan->root, key) == LUA_TNIL) {
        params = json_object();
    } else {
        if (!lua_istable(eval->L, -1) || lua_rawlen(eval->L, -1) > 0)
            clab_eval_fail(eval, &path, "wanted named parameters, such as { n = 1024 }");
        params = clab_lua_to_json(eval, &path, -1);
    }
    lua_pop(eval->L, 1);
    const char *name;
    json_t *value;
    json_object_foreach(params, name, value)
    {
        struct clab_path at = {.up = &path, .key = name};
        long long sides[3];
        if (!is_scalar(value) && !(strcmp(name, "cluster") == 0 && clab_cluster_sides(value, sides)))
            clab_eval_fail(eval, &at, "wanted a number, a text, true or false; lists belong in `sweep`");
    }
    return clab_eval_json(eval, params);
}

static json_t *read_sweep(struct clab_plan *plan)
{
    struct clab_eval *eval = plan->eval;
    struct clab_path root = {0}, path = {.up = &root, .key = "sweep"};
    json_t *sweep = NULL;
    if (clab_push_field(eval, plan->root, "sweep") == LUA_TNIL) {
        sweep = json_object();
    } else {
        if (!lua_istable(eval->L, -1) || lua_rawlen(eval->L, -1) > 0)
            clab_eval_fail(eval, &path, "wanted named lists, such as { cluster = {1, 2, 4} }");
        sweep = clab_lua_to_json(eval, &path, -1);
    }
    lua_pop(eval->L, 1);
    const char *name;
    json_t *list;
    json_object_foreach(sweep, name, list)
    {
        struct clab_path at = {.up = &path, .key = name};
        if (!json_is_array(list))
            clab_eval_fail(eval, &at, "wanted a list of values");
        if (json_object_get(plan->params, name) != NULL)
            clab_eval_fail(eval, &at, "'%s' is in `params` too", name);
        for (size_t i = 0; i < json_array_size(list); i++) {
            struct clab_path item = {.up = &at, .index = (long long)i + 1};
            long long sides[3];
            const json_t *value = json_array_get(list, i);
            if (strcmp(name, "cluster") == 0) {
                if (!clab_cluster_sides(value, sides))
                    clab_eval_fail(eval, &item,
                                   "wanted a cluster of 1 to %d CTAs, as a number or { x, y, z }",
                                   CLAB_PLAN_MAX_CTAS);
            } else if (!is_scalar(value)) {
                clab_eval_fail(eval, &item, "wanted a number, a text, true or false");
            }
        }
    }
    return clab_eval_json(eval, sweep);
}

/* -- columns, predictions ------------------------------------------------------------------------------ */

static void read_columns(struct clab_plan *plan, json_t *out_columns)
{
    static const char *const fields[] = {"name", "value", "counter", "timed", "at_least"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path root = {0}, path = {.up = &root, .key = "columns"};
    if (clab_push_field(eval, plan->root, "columns") != LUA_TNIL) {
        lua_Integer n = clab_read_list(eval, &path, -1);
        if (n > MAX_COLUMNS)
            clab_eval_fail(eval, &path, "wanted at most %d columns, got %lld", MAX_COLUMNS, (long long)n);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = &path, .index = i}, first = {.up = &item, .index = 1},
                             second = {.up = &item, .index = 2};
            lua_rawgeti(L, -1, i);
            clab_read_table(eval, &item, -1, fields, sizeof fields / sizeof *fields, true);
            const char *name = clab_field_string(eval, &item, -1, "name", NULL);
            if (name == NULL) {
                lua_rawgeti(L, -1, 1);
                name = clab_read_string(eval, &first, -1);
                lua_pop(L, 1);
            }
            for (size_t j = 0; j < json_array_size(out_columns); j++)
                if (strcmp(clab_json_text(json_array_get(out_columns, j), "name", ""), name) == 0)
                    clab_eval_fail(eval, &item, "'%s' is the name of columns[%zu] too", name, j + 1);
            if (clab_push_field(eval, -1, "value") == LUA_TNIL) {
                lua_pop(L, 1);
                lua_rawgeti(L, -1, 2);
            }
            if (!lua_isfunction(L, -1))
                clab_eval_fail(eval, &second, "wanted the column's function(p, v, launch, dev)");
            lua_pop(L, 1);
            const char *counter = clab_field_string(eval, &item, -1, "counter", NULL);
            struct clab_counters none = {0};
            uint64_t value;
            if (counter != NULL && !clab_counter_get(&none, counter, &value)) {
                struct clab_path at = {.up = &item, .key = "counter"};
                clab_eval_fail(eval, &at, "the emulator has no counter named '%s'", counter);
            }
            const bool timed = clab_field_bool(eval, &item, -1, "timed", false);
            if (timed && counter != NULL) {
                struct clab_path at = {.up = &item, .key = "timed"};
                clab_eval_fail(eval, &at, "a column made of a time cannot be held against a counter");
            }
            clab_eval_append(eval, out_columns,
                             json_pack("{s:s,s:o,s:b,s:b}", "name", name, "counter",
                                       counter != NULL ? json_string(counter) : json_null(), "timed",
                                       (int)timed, "at_least",
                                       (int)clab_field_bool(eval, &item, -1, "at_least", false)));
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

static void read_predictions(struct clab_plan *plan, json_t *out_predictions)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path root = {0}, path = {.up = &root, .key = "predictions"};
    if (clab_push_field(eval, plan->root, "predictions") != LUA_TNIL) {
        lua_Integer n = clab_read_list(eval, &path, -1);
        if (n > MAX_PREDICTIONS)
            clab_eval_fail(eval, &path, "wanted at most %d predictions, got %lld", MAX_PREDICTIONS,
                           (long long)n);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = &path, .index = i}, first = {.up = &item, .index = 1},
                             second = {.up = &item, .index = 2};
            lua_rawgeti(L, -1, i);
            clab_read_table(eval, &item, -1, NULL, 0, true);
            lua_rawgeti(L, -1, 1);
            lua_rawgeti(L, -2, 2);
            const char *text = clab_read_string(eval, &first, -2);
            if (!lua_isfunction(L, -1))
                clab_eval_fail(eval, &second, "wanted the prediction's function(rows, dev)");
            clab_eval_append(eval, out_predictions,
                             json_pack("{s:s,s:i}", "text", text, "line", (int)clab_path_line(eval, &item)));
            lua_pop(L, 3);
        }
    }
    lua_pop(L, 1);
}

/* -- timeline ------------------------------------------------------------------------------------------- */

/* { log = "name", costs = "name", item = "tile" }: which buffers hold the log of a launch. That a row has
   them is plan_row.c's to see. */
static json_t *read_timeline(struct clab_plan *plan)
{
    static const char *const fields[] = {"log", "costs", "item"};
    struct clab_eval *eval = plan->eval;
    struct clab_path root = {0}, path = {.up = &root, .key = "timeline"};
    json_t *timeline = json_null();
    if (clab_push_field(eval, plan->root, "timeline") != LUA_TNIL) {
        clab_read_table(eval, &path, -1, fields, sizeof fields / sizeof *fields, false);
        const char *log = clab_field_string(eval, &path, -1, "log", NULL);
        const char *costs = clab_field_string(eval, &path, -1, "costs", NULL);
        if (log == NULL)
            clab_eval_fail(eval, &path, "a timeline needs a `log`, the name of a buffer");
        timeline =
            json_pack("{s:s,s:o,s:s}", "log", log, "costs", costs != NULL ? json_string(costs) : json_null(),
                      "item", clab_field_string(eval, &path, -1, "item", "item"));
    }
    lua_pop(eval->L, 1);
    return clab_eval_json(eval, timeline);
}

/* -- the whole file ------------------------------------------------------------------------------------ */

static void read_check(struct clab_plan *plan)
{
    json_t *check = read_params(plan, "check");
    const char *name;
    json_t *value;
    json_object_foreach(check, name, value)
    {
        struct clab_path root = {0}, path = {.up = &root, .key = "check"}, at = {.up = &path, .key = name};
        if (json_object_get(plan->params, name) == NULL && json_object_get(plan->sweep, name) == NULL)
            clab_eval_fail(plan->eval, &at, "there is no parameter of this name");
    }
    bool absent = json_object_size(check) == 0;
    clab_eval_set(plan->eval, plan->result, "check", absent ? json_null() : json_incref(check));
    json_decref(check);
}

void clab_plan_file(struct clab_plan *plan)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path root = {0};
    clab_sandbox_load(eval);
    plan->root = lua_gettop(L);
    if (!lua_istable(L, -1)) {
        char got[96];
        clab_eval_fail(eval, &root,
                       "an experiment file returns a table: return { summary = ..., variants = ... }; got %s",
                       clab_value_text(L, -1, got, sizeof got));
    }
    clab_read_table(eval, &root, -1, file_fields, sizeof file_fields / sizeof *file_fields, false);
    plan->result = clab_eval_json(eval, json_object());
    const char *summary = clab_field_string(eval, &root, -1, "summary", NULL);
    if (summary == NULL)
        clab_eval_fail(eval, &root, "an experiment needs a `summary`");
    clab_eval_set(eval, plan->result, "summary", json_string(summary));
    plan->params = read_params(plan, "params");
    plan->sweep = read_sweep(plan);
    read_check(plan);
    for (size_t i = 0; i < 3; i++) {
        static const char *const needed[] = {"launch", "buffers", "bytes"};
        struct clab_path at = {.up = &root, .key = needed[i]};
        int type = clab_push_field(eval, plan->root, needed[i]);
        char got[96];
        if (type == LUA_TNIL && i < 2)
            clab_eval_fail(eval, &root, "an experiment needs `%s`", needed[i]);
        if (type != LUA_TNIL && type != LUA_TFUNCTION && type != (i == 2 ? LUA_TNUMBER : LUA_TTABLE))
            clab_eval_fail(eval, &at, "wanted a function, got %s", clab_value_text(L, -1, got, sizeof got));
        lua_pop(L, 1);
    }
    read_function(eval, &root, plan->root, "waive");
    plan->variants = clab_eval_json(eval, json_array());
    clab_eval_set(eval, plan->result, "variants", plan->variants);
    read_variants(plan);
    json_t *columns = clab_eval_json(eval, json_array()), *predictions = clab_eval_json(eval, json_array());
    clab_eval_set(eval, plan->result, "columns", columns);
    clab_eval_set(eval, plan->result, "predictions", predictions);
    read_columns(plan, columns);
    read_predictions(plan, predictions);
    clab_eval_set(eval, plan->result, "timeline", read_timeline(plan));
}
