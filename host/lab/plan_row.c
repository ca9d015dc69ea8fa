/* One row of a plan: the file's functions called for one variant and one set of parameters. Rows that cannot
   run on the device that was asked about are kept, with the reason, and nothing of them is evaluated. */
#include "lab/plan.h"

#include "base/str.h"
#include "compile/target.h"
#include "lab/fill.h"
#include "lab/timeline.h"
#include "lab/wire.h"

#include <stdio.h>
#include <string.h>

/* "block=256, cluster=2, n=7": added to messages about a row; NULL when there is no parameter. */
static char *describe(const json_t *params)
{
    struct clab_str text = {0};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)params, name, value)
    {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        clab_str_addf(&text, "%s%s=%s", text.bytes > 0 ? ", " : "", name, dump != NULL ? dump : "?");
        free(dump);
    }
    return text.bytes > 0 ? clab_str_take(&text) : NULL;
}

/* Pushes what a file's functions get. `v` is the variant's own table; one added by the request has only a
 * name. */
static void push_params(struct clab_plan *plan, const json_t *params)
{
    lua_State *L = plan->eval->L;
    clab_json_to_lua(L, params);
    if (json_object_get(params, "cluster") == NULL) {
        lua_pushinteger(L, 1);
        lua_setfield(L, -2, "cluster");
    }
}

static void push_device(struct clab_plan *plan)
{
    if (plan->request->device != NULL)
        clab_json_to_lua(plan->eval->L, plan->request->device);
    else
        lua_newtable(plan->eval->L);
}

static void push_variant(struct clab_plan *plan, const json_t *variant)
{
    lua_State *L = plan->eval->L;
    json_int_t index = clab_json_int(variant, "index", 0);
    if (index == 0) {
        lua_createtable(L, 0, 1);
        lua_pushstring(L, clab_json_text(variant, "name", ""));
        lua_setfield(L, -2, "name");
        return;
    }
    clab_push_field(plan->eval, plan->root, "variants");
    lua_rawgeti(L, -1, index);
    lua_remove(L, -2);
}

/* Pushes the value of a field that may be a function of (p, dev, v, ctas): its result, or the field itself.
 *path gets the function's line. */
static void push_evaluated(struct clab_plan *plan, struct clab_path *path, int table, const json_t *variant,
                           const json_t *params)
{
    lua_State *L = plan->eval->L;
    if (clab_push_field(plan->eval, table, path->key) != LUA_TFUNCTION)
        return;
    int function = lua_gettop(L);
    push_params(plan, params);
    push_device(plan);
    push_variant(plan, variant);
    if (plan->ctas != 0)
        lua_pushinteger(L, plan->ctas);
    else
        lua_pushnil(L);
    clab_call_function(plan->eval, path, function, 4, &path->function_line);
    lua_remove(L, function);
}

/* -- reasons not to run --------------------------------------------------------------------------------- */

static int device_cc(const struct clab_plan *plan)
{
    int major = 0, minor = 0;
    const char *cc = clab_json_text(plan->request->device, "cc", "");
    return sscanf(cc, "%d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

static json_t *unmet_target(struct clab_plan *plan, const json_t *variant)
{
    const char *requires = clab_json_text(variant, "requires", NULL);
    int cc = device_cc(plan);
    if (requires == NULL)
        return NULL;
    const struct clab_target *needed = clab_target_find(requires);
    if (needed == NULL) {
        struct clab_path root = {0}, list = {.up = &root, .key = "variants"},
                         item = {.up = &list, .index = clab_json_int(variant, "index", 0)},
                         path = {.up = &item, .key = "requires"};
        clab_eval_fail(plan->eval, &path, "wanted a target such as sm_90, got '%.40s'", requires);
    }
    if (cc == 0)
        return NULL;
    const char *cc_text = clab_json_text(plan->request->device, "cc", "?");
    if (needed->reach == CLAB_REACH_EXACT && needed->number != cc)
        return json_sprintf("needs %s, that is compute capability %d.%d exactly; the device has %s",
                            needed->name, needed->major, needed->minor, cc_text);
    if (needed->reach == CLAB_REACH_FAMILY && (cc < needed->number || cc / 10 != needed->major))
        return json_sprintf("needs the family of %s; the device has compute capability %s", needed->name,
                            cc_text);
    if (cc < needed->number)
        return json_sprintf("needs compute capability %d.%d or later; the device has %s", needed->major,
                            needed->minor, cc_text);
    return NULL;
}

static json_t *unmet_static(const json_t *variant, const long long sides[3])
{
    const json_t *fixed = json_object_get(variant, "static_cluster");
    if (!json_is_array(fixed))
        return NULL;
    long long wanted[3];
    clab_cluster_sides(fixed, wanted);
    if (memcmp(wanted, sides, sizeof wanted) == 0)
        return NULL;
    return json_sprintf(
        "compiled for clusters of %lldx%lldx%lld (__cluster_dims__): the shape cannot be swept", wanted[0],
        wanted[1], wanted[2]);
}

static json_t *asked_waiver(struct clab_plan *plan, int table, struct clab_path *path, const json_t *variant,
                            const json_t *params)
{
    lua_State *L = plan->eval->L;
    json_t *reason = NULL;
    push_evaluated(plan, path, table, variant, params);
    if (!lua_isnil(L, -1) && !(lua_isboolean(L, -1) && !lua_toboolean(L, -1)))
        reason = clab_eval_json(plan->eval, json_string(clab_read_string(plan->eval, path, -1)));
    lua_pop(L, 1);
    return reason;
}

static json_t *too_large(struct clab_plan *plan, const json_t *buffers)
{
    double total = 0, memory = (double)clab_json_int(plan->request->device, "memory_bytes", 0);
    for (size_t i = 0; i < json_array_size(buffers); i++) {
        const json_t *buffer = json_array_get(buffers, i);
        enum clab_element element = clab_element_get(clab_json_text(buffer, "type", ""));
        total += (double)clab_json_int(buffer, "count", 0) * (double)clab_element_bytes(element);
    }
    if (memory <= 0 || total <= memory)
        return NULL;
    return json_sprintf("needs %.1f GiB of device memory; the device has %.1f GiB", total / 1073741824.0,
                        memory / 1073741824.0);
}

/* -- the row -------------------------------------------------------------------------------------------- */

/* What column functions get as `launch`: the plan's launch, plus the product of its grid and its cluster. */
static void push_launch(struct clab_plan *plan, const json_t *launch)
{
    lua_State *L = plan->eval->L;
    clab_json_to_lua(L, launch);
    lua_Integer ctas = 1, cluster = 1;
    for (size_t i = 0; i < 3; i++) {
        ctas *= json_integer_value(json_array_get(json_object_get(launch, "grid"), i));
        const json_t *side = json_array_get(json_object_get(launch, "cluster"), i);
        cluster *= side != NULL ? json_integer_value(side) : 1;
    }
    lua_pushinteger(L, ctas);
    lua_setfield(L, -2, "ctas");
    lua_pushinteger(L, cluster);
    lua_setfield(L, -2, "cluster_size");
    lua_pushinteger(L, ctas / cluster);
    lua_setfield(L, -2, "clusters");
}

/* The value of column item->index; the file's list of columns is on top of the stack, and stays. `time`: NULL
   but for a timed column. */
static json_t *column_value(struct clab_plan *plan, const struct clab_path *item, const json_t *variant,
                            const json_t *params, const json_t *launch, const json_t *time)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    const int top = lua_gettop(L);
    lua_rawgeti(L, -1, (lua_Integer)item->index);
    if (clab_push_field(eval, -1, "value") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_rawgeti(L, -1, 2);
    }
    int function = lua_gettop(L);
    push_params(plan, params);
    push_variant(plan, variant);
    push_launch(plan, launch);
    push_device(plan);
    if (time != NULL)
        clab_json_to_lua(L, time);
    clab_call_function(eval, item, function, time != NULL ? 5 : 4, NULL);
    json_t *value = lua_isnil(L, -1) ? json_null() : clab_lua_to_json(eval, item, -1);
    if (json_is_array(value) || json_is_object(value))
        clab_eval_fail(eval, item, "a column's value is a number, a text, true, false or nil");
    lua_settop(L, top);
    return value;
}

/* What a timed column gets as `time`; NULL when the row was not timed. */
static json_t *time_of(const json_t *record)
{
    const json_t *time = json_object_get(record, "time");
    const json_t *cold = json_object_get(time, "cold_ns"), *hot = json_object_get(time, "hot_ns");
    if (strcmp(clab_json_text(time, "kind", ""), "measured") != 0 || !json_is_object(cold))
        return NULL;
    return json_pack("{s:O?,s:O?,s:O?,s:O?}", "ns", json_object_get(cold, "median"), "least_ns",
                     json_object_get(cold, "min"), "hot_ns", json_object_get(hot, "median"), "sm_mhz",
                     json_object_get(json_object_get(record, "clock"), "sm_mhz"));
}

json_t *clab_plan_timed_columns(struct clab_plan *plan, const json_t *rows, const json_t *records)
{
    struct clab_eval *eval = plan->eval;
    const json_t *columns = json_object_get(plan->result, "columns");
    json_t *answer = clab_eval_json(eval, json_array());
    struct clab_path root = {0}, list = {.up = &root, .key = "columns"};
    clab_push_field(eval, plan->root, "columns");
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i), *row = json_array_get(rows, i);
        const json_t *variant = json_array_get(plan->variants, (size_t)clab_json_int(row, "variant", 0));
        json_t *values = clab_eval_json(eval, json_object()), *time = time_of(record);
        for (size_t j = 0; j < json_array_size(columns) && time != NULL; j++) {
            struct clab_path item = {.up = &list, .index = (long long)j + 1};
            if (clab_json_bool(json_array_get(columns, j), "timed", false))
                clab_eval_set(eval, values, clab_json_text(json_array_get(columns, j), "name", ""),
                              column_value(plan, &item, variant, json_object_get(record, "params"),
                                           json_object_get(record, "launch"), time));
        }
        json_decref(time);
        clab_eval_append(eval, answer, values);
    }
    return answer;
}

static json_t *row_columns(struct clab_plan *plan, const char *context, const json_t *variant,
                           const json_t *params, const json_t *launch)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    const json_t *columns = json_object_get(plan->result, "columns");
    json_t *values = clab_eval_json(eval, json_object());
    if (json_array_size(columns) == 0)
        return values;
    bool known = json_is_array(json_object_get(launch, "grid")); /* else it is fitted after loading */
    struct clab_path root = {.context = context}, list = {.up = &root, .key = "columns"};
    clab_push_field(eval, plan->root, "columns");
    for (size_t i = 0; i < json_array_size(columns); i++) {
        struct clab_path item = {.up = &list, .index = (long long)i + 1};
        json_t *value = json_null();
        if (known && !clab_json_bool(json_array_get(columns, i), "timed", false)) {
            json_decref(value);
            value = column_value(plan, &item, variant, params, launch, NULL);
        }
        clab_eval_set(eval, values, clab_json_text(json_array_get(columns, i), "name", ""), value);
    }
    lua_pop(L, 1);
    return values;
}

static json_t *row_bytes(struct clab_plan *plan, const char *context, const json_t *variant,
                         const json_t *params)
{
    lua_State *L = plan->eval->L;
    struct clab_path root = {.context = context}, path = {.up = &root, .key = "bytes"};
    json_t *bytes = json_null();
    push_evaluated(plan, &path, plan->root, variant, params);
    if (!lua_isnil(L, -1))
        bytes =
            clab_eval_json(plan->eval, json_integer(clab_read_integer(plan->eval, &path, -1, 0, INT64_MAX)));
    lua_pop(L, 1);
    return bytes;
}

/* The buffers that the file's `timeline` names must be there, and the log's must be made of slots. */
static void check_timeline(struct clab_plan *plan, const char *context, const json_t *buffers)
{
    const json_t *timeline = json_object_get(plan->result, "timeline");
    struct clab_path root = {.context = context}, path = {.up = &root, .key = "timeline"},
                     log_path = {.up = &path, .key = "log"}, costs_path = {.up = &path, .key = "costs"};
    const char *log = clab_json_text(timeline, "log", NULL), *costs = clab_json_text(timeline, "costs", NULL);
    if (log == NULL)
        return;
    clab_plan_need_buffer(plan, &log_path, buffers, log);
    if (costs != NULL)
        clab_plan_need_buffer(plan, &costs_path, buffers, costs);
    for (size_t i = 0; i < json_array_size(buffers); i++) {
        const json_t *buffer = json_array_get(buffers, i);
        const char *type = clab_json_text(buffer, "type", "");
        const long long count = clab_json_int(buffer, "count", 0);
        if (strcmp(clab_json_text(buffer, "name", ""), log) == 0 &&
            (strcmp(type, "u64") != 0 || count % CLAB_TIMELINE_SLOT_WORDS != 0))
            clab_eval_fail(plan->eval, &log_path, "wanted a u64 buffer of %d words a slot; '%s' is %s[%lld]",
                           CLAB_TIMELINE_SLOT_WORDS, log, type, count);
    }
}

/* The CTAs of a launch; 0 while its grid is not known. */
static lua_Integer launch_ctas(const json_t *launch)
{
    const json_t *grid = json_object_get(launch, "grid");
    lua_Integer ctas = json_is_array(grid) ? 1 : 0;
    for (size_t i = 0; i < json_array_size(grid); i++)
        ctas *= json_integer_value(json_array_get(grid, i));
    return ctas;
}

static json_t *waived_row(struct clab_plan *plan, size_t variant, json_t *params, json_t *reason)
{
    return clab_eval_json(plan->eval,
                          json_pack("{s:i,s:O,s:n,s:[],s:n,s:{},s:n,s:o}", "variant", (int)variant, "params",
                                    params, "launch", "args", "bytes", "columns", "buffer_list", "waived",
                                    clab_eval_json(plan->eval, reason)));
}

json_t *clab_plan_row(struct clab_plan *plan, size_t index, json_t *params, const uint32_t grid[3])
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    const json_t *variant = json_array_get(plan->variants, index);
    char *context = describe(params);
    struct clab_path root = {.context = context}, list = {.up = &root, .key = "variants"},
                     item = {.up = &list, .index = clab_json_int(variant, "index", 0)},
                     own_waive = {.up = &item, .key = "waive"}, own_launch = {.up = &item, .key = "launch"},
                     waive = {.up = &root, .key = "waive"}, launch_path = {.up = &root, .key = "launch"},
                     buffers_path = {.up = &root, .key = "buffers"};
    long long sides[3] = {1, 1, 1};
    const json_t *cluster = json_object_get(params, "cluster");
    const json_t *fixed = json_object_get(variant, "static_cluster");
    if (cluster != NULL || json_is_array(fixed))
        clab_cluster_sides(cluster != NULL ? cluster : fixed, sides);

    plan->ctas = grid != NULL ? (lua_Integer)grid[0] * grid[1] * grid[2] : 0;
    push_variant(plan, variant);
    int table = lua_gettop(L);
    json_t *reason = unmet_target(plan, variant);
    long long most = clab_json_int(plan->request->device, "max_cluster", 0);
    if (reason == NULL && cluster != NULL)
        reason = unmet_static(variant, sides);
    if (reason == NULL && most > 0 && sides[0] * sides[1] * sides[2] > most)
        reason = json_sprintf("the device takes no cluster of %lld CTAs of this kernel (its occupancy "
                              "query: at most %lld)",
                              sides[0] * sides[1] * sides[2], most);
    if (reason == NULL)
        reason = asked_waiver(plan, plan->root, &waive, variant, params);
    if (reason == NULL)
        reason = asked_waiver(plan, table, &own_waive, variant, params);
    if (reason != NULL) {
        free(context);
        return waived_row(plan, index, params, reason);
    }

    push_evaluated(plan, &buffers_path, plan->root, variant, params);
    json_t *buffers = clab_plan_buffers(plan, &buffers_path);
    check_timeline(plan, context, buffers);
    reason = too_large(plan, buffers);
    if (reason != NULL) {
        json_decref(buffers);
        free(context);
        return waived_row(plan, index, params, reason);
    }
    bool own = clab_push_field(eval, table, "launch") != LUA_TNIL;
    lua_pop(L, 1);
    push_evaluated(plan, own ? &own_launch : &launch_path, own ? table : plan->root, variant, params);
    bool clustered = (clab_json_bool(variant, "cluster", true) && cluster != NULL) || json_is_array(fixed);
    json_t *launched =
        clab_plan_launch(plan, own ? &own_launch : &launch_path, clustered ? sides : NULL, buffers, grid);
    const json_t *launch = json_object_get(launched, "launch");
    plan->ctas = launch_ctas(launch);
    json_t *bytes = plan->ctas != 0 ? row_bytes(plan, context, variant, params) : json_null();
    json_t *row =
        json_pack("{s:i,s:O,s:O,s:O,s:o,s:o,s:o,s:n}", "variant", (int)index, "params", params, "launch",
                  launch, "args", json_object_get(launched, "args"), "bytes", bytes, "columns",
                  row_columns(plan, context, variant, params, launch), "buffer_list", buffers, "waived");
    json_decref(launched);
    lua_settop(L, table - 1);
    free(context);
    return clab_eval_json(eval, row);
}
