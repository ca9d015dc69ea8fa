/* A launch as an experiment file writes it: grid, block, cluster, shared memory, arguments, and a companion
   kernel on its own stream. Checked here: limits that no device exceeds (CUDA C++ Programming Guide 13.0,
   "Compute Capabilities") and that the cluster divides the grid. What depends on the device is checked where
   the launch is made. */
#include "lab/plan.h"

#include "lab/wire.h"

#include <stdio.h>
#include <string.h>

#define MAX_ARGUMENTS    256
#define MAX_THREADS      1024
#define MAX_DYNAMIC_SMEM (256 * 1024)
#define MAX_GRID_X       INT32_MAX
#define MAX_GRID_YZ      65535

static const char *const launch_fields[] = {"grid",        "block", "cluster",  "smem_bytes",
                                            "cooperative", "args",  "companion"};
static json_t *sides_to_json(struct clab_eval *eval, const long long sides[3])
{
    return clab_eval_json(
        eval, json_pack("[I,I,I]", (json_int_t)sides[0], (json_int_t)sides[1], (json_int_t)sides[2]));
}

/* Whether the table at `index` was made by the helper whose metatable is `meta`. */
bool clab_plan_made_by(lua_State *L, int index, const char *meta)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return false;
    luaL_getmetatable(L, meta);
    bool same = lua_rawequal(L, -1, -2) != 0;
    lua_pop(L, 2);
    return same;
}

static bool names_buffer(const json_t *buffers, const char *name)
{
    for (size_t i = 0; i < json_array_size(buffers); i++)
        if (strcmp(clab_json_text(json_array_get(buffers, i), "name", ""), name) == 0)
            return true;
    return false;
}

void clab_plan_need_buffer(struct clab_plan *plan, const struct clab_path *path, const json_t *buffers,
                           const char *name)
{
    char names[512] = "";
    size_t used = 0;
    if (names_buffer(buffers, name))
        return;
    for (size_t i = 0; i < json_array_size(buffers) && used < sizeof names; i++) {
        int wrote = snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                             clab_json_text(json_array_get(buffers, i), "name", ""));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    clab_eval_fail(plan->eval, path, "there is no buffer '%s'; there are: %s", name, names);
}

static json_t *read_scalar(struct clab_plan *plan, const struct clab_path *path, int index)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    index = lua_absindex(L, index);
    clab_push_field(eval, index, "type");
    clab_push_field(eval, index, "value");
    json_t *value = clab_lua_to_json(eval, path, -1);
    json_t *scalar = json_pack("{s:s,s:o}", "type", lua_tostring(L, -2), "value", value);
    lua_pop(L, 2);
    return clab_eval_json(eval, scalar);
}

/* { verify = u32(1), time = u32(0) }: a scalar that has another value when the launch is verified than when
   it is timed; "verify" is kept beside the value that is timed. */
static json_t *read_two_values(struct clab_plan *plan, const struct clab_path *path, int index)
{
    static const char *const fields[] = {"verify", "time"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    json_t *values[2];
    index = lua_absindex(L, index);
    clab_read_table(eval, path, index, fields, 2, false);
    for (int i = 0; i < 2; i++) {
        struct clab_path at = {.up = path, .key = fields[i]};
        clab_push_field(eval, index, fields[i]);
        if (!clab_plan_made_by(L, -1, CLAB_META_SCALAR))
            clab_eval_fail(eval, &at, "wanted a typed scalar such as u32(1)");
        values[i] = read_scalar(plan, &at, -1);
        lua_pop(L, 1);
    }
    if (strcmp(clab_json_text(values[0], "type", ""), clab_json_text(values[1], "type", "")) != 0)
        clab_eval_fail(eval, path, "`verify` is %s and `time` is %s: wanted one type",
                       clab_json_text(values[0], "type", ""), clab_json_text(values[1], "type", ""));
    json_object_set(values[1], "verify", json_object_get(values[0], "value"));
    json_decref(values[0]);
    return values[1];
}

static json_t *read_argument(struct clab_plan *plan, const struct clab_path *path, int index,
                             const json_t *buffers)
{
    static const char *const map_fields[] = {"tensor_map"};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    if (lua_type(L, index) == LUA_TSTRING) {
        const char *name = clab_read_string(eval, path, index);
        clab_plan_need_buffer(plan, path, buffers, name);
        return json_pack("{s:s}", "buffer", name);
    }
    if (clab_plan_made_by(L, index, CLAB_META_SCALAR))
        return read_scalar(plan, path, index);
    if (lua_istable(L, index)) {
        if (clab_push_field(eval, index, "verify") != LUA_TNIL) {
            lua_pop(L, 1);
            return read_two_values(plan, path, index);
        }
        lua_pop(L, 1);
        struct clab_path at = {.up = path, .key = "tensor_map"};
        clab_read_table(eval, path, index, map_fields, 1, false);
        clab_push_field(eval, index, "tensor_map");
        json_t *map = clab_plan_tensor_map(plan, &at, -1, buffers);
        lua_pop(L, 1);
        return json_pack("{s:o}", "tensor_map", map);
    }
    char got[96];
    clab_eval_fail(eval, path,
                   "wanted a buffer's name, a typed scalar such as u32(7), or { tensor_map = ... }; got %s",
                   clab_value_text(L, index, got, sizeof got));
}

static json_t *read_arguments(struct clab_plan *plan, const struct clab_path *path, int index,
                              const json_t *buffers)
{
    struct clab_eval *eval = plan->eval;
    struct clab_path at = {.up = path, .key = "args"};
    json_t *args = clab_eval_json(eval, json_array());
    if (clab_push_field(eval, index, "args") != LUA_TNIL) {
        lua_Integer n = clab_read_list(eval, &at, -1);
        if (n > MAX_ARGUMENTS)
            clab_eval_fail(eval, &at, "wanted at most %d arguments, got %lld", MAX_ARGUMENTS, (long long)n);
        for (lua_Integer i = 1; i <= n; i++) {
            struct clab_path item = {.up = &at, .index = i};
            lua_rawgeti(eval->L, -1, i);
            clab_eval_append(eval, args, read_argument(plan, &item, -1, buffers));
            lua_pop(eval->L, 1);
        }
    }
    lua_pop(eval->L, 1);
    return args;
}

/* fit { per = "cluster"|"cta", waves = 1, at_most = CTAs, ctas_per_sm = n }: as many CTAs as fit the device
 * at once. */
static json_t *read_fit(struct clab_plan *plan, const struct clab_path *path, int index)
{
    static const char *const fields[] = {"per", "waves", "at_most", "ctas_per_sm"};
    struct clab_eval *eval = plan->eval;
    clab_read_table(eval, path, index, fields, sizeof fields / sizeof *fields, false);
    const char *per = clab_field_string(eval, path, index, "per", "cta");
    if (strcmp(per, "cta") != 0 && strcmp(per, "cluster") != 0) {
        struct clab_path at = {.up = path, .key = "per"};
        clab_eval_fail(eval, &at, "wanted 'cta' or 'cluster', got '%.40s'", per);
    }
    long long waves = clab_field_integer(eval, path, index, "waves", 1, 1000000, 1);
    long long most = clab_field_integer(eval, path, index, "at_most", 1, MAX_GRID_X, 0);
    long long per_sm = clab_field_integer(eval, path, index, "ctas_per_sm", 1, 64, 0);
    return clab_eval_json(eval, json_pack("{s:s,s:I,s:o,s:o}", "per", per, "waves", (json_int_t)waves,
                                          "at_most", most > 0 ? json_integer(most) : json_null(),
                                          "ctas_per_sm", per_sm > 0 ? json_integer(per_sm) : json_null()));
}

static void check_division(struct clab_plan *plan, const struct clab_path *path, const long long grid[3],
                           const long long cluster[3])
{
    for (int i = 0; i < 3; i++)
        if (grid[i] % cluster[i] != 0)
            clab_eval_fail(
                plan->eval, path,
                "%lldx%lldx%lld CTAs cannot be divided into clusters of %lldx%lldx%lld: %c = %lld is not a "
                "multiple of %lld",
                grid[0], grid[1], grid[2], cluster[0], cluster[1], cluster[2], "xyz"[i], grid[i], cluster[i]);
}

/* The shape of the launch table at `index`. */
static json_t *read_shape(struct clab_plan *plan, const struct clab_path *path, int index,
                          const long long default_cluster[3], const uint32_t known_grid[3])
{
    static const long long grid_high[3] = {MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ},
                           block_high[3] = {1024, 1024, 64},
                           cluster_high[3] = {CLAB_PLAN_MAX_CTAS, CLAB_PLAN_MAX_CTAS, CLAB_PLAN_MAX_CTAS};
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    struct clab_path grid_path = {.up = path, .key = "grid"}, block_path = {.up = path, .key = "block"},
                     cluster_path = {.up = path, .key = "cluster"};
    long long grid[3], block[3], cluster[3] = {1, 1, 1};
    json_t *fit = json_null();

    if (clab_push_field(eval, index, "block") == LUA_TNIL)
        clab_eval_fail(eval, path, "a launch needs a `block`");
    clab_read_sides(eval, &block_path, -1, block_high, block);
    if (block[0] * block[1] * block[2] > MAX_THREADS)
        clab_eval_fail(eval, &block_path, "wanted at most %d threads, got %lldx%lldx%lld", MAX_THREADS,
                       block[0], block[1], block[2]);
    lua_pop(L, 1);

    bool clustered = default_cluster != NULL;
    if (clustered)
        memcpy(cluster, default_cluster, sizeof cluster);
    if (clab_push_field(eval, index, "cluster") == LUA_TBOOLEAN && !lua_toboolean(L, -1)) {
        clustered = false;
    } else if (!lua_isnil(L, -1)) {
        clustered = true;
        clab_read_sides(eval, &cluster_path, -1, cluster_high, cluster);
        if (cluster[0] * cluster[1] * cluster[2] > CLAB_PLAN_MAX_CTAS)
            clab_eval_fail(eval, &cluster_path, "wanted at most %d CTAs, got %lldx%lldx%lld",
                           CLAB_PLAN_MAX_CTAS, cluster[0], cluster[1], cluster[2]);
    }
    lua_pop(L, 1);
    if (!clustered)
        cluster[0] = cluster[1] = cluster[2] = 1;

    if (clab_push_field(eval, index, "grid") == LUA_TNIL)
        clab_eval_fail(eval, path, "a launch needs a `grid`");
    bool fitted = clab_plan_made_by(L, -1, CLAB_META_FIT);
    if (fitted && known_grid == NULL) {
        fit = read_fit(plan, &grid_path, -1);
    } else {
        if (fitted)
            for (int i = 0; i < 3; i++)
                grid[i] = known_grid[i];
        else
            clab_read_sides(eval, &grid_path, -1, grid_high, grid);
        check_division(plan, &grid_path, grid, cluster);
    }
    lua_pop(L, 1);

    long long smem = clab_field_integer(eval, path, index, "smem_bytes", 0, MAX_DYNAMIC_SMEM, 0);
    bool cooperative = clab_field_bool(eval, path, index, "cooperative", false);
    return clab_eval_json(eval,
                          json_pack("{s:o,s:o,s:o,s:I,s:b,s:o}", "grid",
                                    json_is_null(fit) ? sides_to_json(eval, grid) : json_null(), "block",
                                    sides_to_json(eval, block), "cluster",
                                    clustered ? sides_to_json(eval, cluster) : json_null(), "smem_bytes",
                                    (json_int_t)smem, "cooperative", (int)cooperative, "fit", fit));
}

json_t *clab_plan_other_launch(struct clab_plan *plan, const struct clab_path *path, int index,
                               const json_t *buffers)
{
    static const char *const fields[] = {"source",  "entry",      "grid",        "block",
                                         "cluster", "smem_bytes", "cooperative", "args"};
    struct clab_eval *eval = plan->eval;
    index = lua_absindex(eval->L, index);
    clab_read_table(eval, path, index, fields, sizeof fields / sizeof *fields, false);
    json_t *object = clab_eval_json(eval, json_object());
    clab_plan_kernel(plan, path, index, object);
    clab_eval_set(eval, object, "launch", read_shape(plan, path, index, NULL, NULL));
    clab_eval_set(eval, object, "args", read_arguments(plan, path, index, buffers));
    return object;
}

json_t *clab_plan_launch(struct clab_plan *plan, const struct clab_path *path, const long long cluster[3],
                         const json_t *buffers, const uint32_t grid[3])
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    int index = lua_gettop(L);
    clab_read_table(eval, path, index, launch_fields, sizeof launch_fields / sizeof *launch_fields, false);
    json_t *launch = read_shape(plan, path, index, cluster, grid);
    json_t *companion = json_null();
    if (clab_push_field(eval, index, "companion") != LUA_TNIL) {
        struct clab_path at = {.up = path, .key = "companion"};
        companion = clab_plan_other_launch(plan, &at, -1, buffers);
    }
    lua_pop(L, 1);
    clab_eval_set(eval, launch, "companion", companion);
    json_t *args = read_arguments(plan, path, index, buffers);
    lua_settop(L, index - 1);
    return clab_eval_json(eval, json_pack("{s:o,s:o}", "launch", launch, "args", args));
}
