/* The kernels of a run besides its variants: companions and references, which rows name in passing. Each
   distinct (source, entry) becomes one more variant without rows of its own, compiled and loaded like the
   others; the plan's objects get its number as "key" for the worker. Also grids that are known only once the
   kernel is loaded (`fit`). */
#include "lab/run_parts.h"

#include <string.h>

#include "lab/launch.h"
#include "lab/wire.h"

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(clab_json_text(a, key, ""), clab_json_text(b, key, "")) == 0;
}

/* The number of the kernel that `object` names among the others; they are counted after the variants. Adds
   it, unless `known` says that it must be there. SIZE_MAX: it is not, or memory is out. */
static size_t number_of(struct clab_run_state *run, const json_t *object, bool known)
{
    const size_t variants = json_array_size(json_object_get(run->plan, "variants"));
    for (size_t i = 0; i < json_array_size(run->others); i++) {
        const json_t *other = json_array_get(run->others, i);
        if (same_text(other, object, "source") && same_text(other, object, "entry"))
            return variants + i;
    }
    if (known || json_array_append_new(
                     run->others, json_pack("{s:O?,s:O?,s:O?,s:b}", "name", json_object_get(object, "entry"),
                                            "source", json_object_get(object, "source"), "entry",
                                            json_object_get(object, "entry"), "baseline", 0)) != 0)
        return SIZE_MAX;
    return variants + json_array_size(run->others) - 1;
}

static bool set_key(struct clab_run_state *run, json_t *object, bool known)
{
    if (!json_is_object(object))
        return true;
    const size_t number = number_of(run, object, known);
    return number != SIZE_MAX && json_object_set_new(object, "key", json_integer((json_int_t)number)) == 0;
}

static json_t *companion_of(const json_t *row)
{
    return json_object_get(json_object_get(row, "launch"), "companion");
}

static json_t *reference_of(const json_t *buffer)
{
    return json_object_get(json_object_get(buffer, "expect"), "reference");
}

static bool set_keys(struct clab_run_state *run, const json_t *buffers, bool known)
{
    bool set = true;
    for (size_t i = 0; i < json_array_size(buffers) && set; i++)
        set = set_key(run, reference_of(json_array_get(buffers, i)), known);
    return set;
}

clab_status clab_run_others(struct clab_run_state *run, struct clab_error *error)
{
    const json_t *rows = json_object_get(run->plan, "rows"),
                 *sets = json_object_get(run->plan, "buffer_sets");
    run->others = json_array();
    bool set = run->others != NULL;
    for (size_t i = 0; i < json_array_size(rows) && set; i++)
        set = set_key(run, companion_of(json_array_get(rows, i)), false);
    for (size_t i = 0; i < json_array_size(sets) && set; i++)
        set = set_keys(run, json_array_get(sets, i), false);
    return set ? CLAB_OK : clab_error_set(error, CLAB_NO_MEMORY, "no memory for the plan's kernels");
}

bool clab_row_uses(const struct clab_run_row *row, size_t kernel)
{
    if (row->variant == kernel || clab_json_int(companion_of(row->plan), "key", -1) == (int64_t)kernel)
        return true;
    for (size_t i = 0; i < json_array_size(row->buffers); i++)
        if (clab_json_int(reference_of(json_array_get(row->buffers, i)), "key", -1) == (int64_t)kernel)
            return true;
    return false;
}

clab_status clab_row_ready(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < run->n_variants && status == CLAB_OK; i++) {
        if (!clab_row_uses(row, i))
            continue;
        status = clab_run_ready(run, &run->variants[i], error);
        if (status != CLAB_OK && i != row->variant)
            clab_error_name_source(error, clab_json_text(run->variants[i].plan, "source", ""));
    }
    return status;
}

clab_status clab_row_resolve(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error)
{
    if (!json_is_object(json_object_get(json_object_get(row->plan, "launch"), "fit")))
        return CLAB_OK;
    json_t *answer = NULL, *resolved = NULL;
    json_t *request =
        json_pack("{s:s,s:I,s:O}", "op", "grid", "key", (json_int_t)row->variant, "row", row->plan);
    clab_status status =
        clab_session_ask(run->session, request, run->options->timeout_ms, NULL, NULL, &answer, error);
    if (status == CLAB_OK) {
        uint32_t grid[3];
        for (size_t i = 0; i < 3; i++)
            grid[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(answer, "grid"), i));
        status = clab_lab_resolve(run->plan, (size_t)(row - run->rows), grid, &resolved, error);
    }
    json_decref(answer);
    if (status != CLAB_OK)
        return status;
    const char *waived = clab_json_text(resolved, "waived", NULL);
    json_t *buffers = json_object_get(resolved, "buffer_list");
    if (waived != NULL)
        status = clab_error_set(error, CLAB_WAIVED, "%s", waived);
    else if (!set_key(run, companion_of(resolved), true) || !set_keys(run, buffers, true))
        status = clab_error_set(error, CLAB_EXPERIMENT,
                                "with its grid known, the row names a kernel that the plan did not");
    if (status != CLAB_OK) {
        json_decref(resolved);
        return status;
    }
    row->resolved = resolved;
    row->plan = resolved;
    row->buffers = buffers;
    json_object_set(json_object_get(row->record, "rates"), "bytes", json_object_get(resolved, "bytes"));
    return CLAB_OK;
}
