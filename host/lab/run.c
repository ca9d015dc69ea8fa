/* The run of one experiment on one device. Each row carries its own verdict: a variant that does not compile,
   a kernel that faults or hangs, a worker that dies cost the rows they belong to and no others (design:
   workers, decision 2; verify before and after timing, decision 4; emulated rows have counts and no times,
   decision 5). */
#include "lab/run_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "compile/target.h"
#include "lab/launch.h"
#include "lab/proof.h"
#include "lab/timeline.h"
#include "lab/wire.h"

void clab_run_progress(const struct clab_run_state *run, const char *stage, const char *what, size_t done,
                       size_t count)
{
    if (run->options->progress != NULL)
        run->options->progress(run->options->context, stage, what, done, count);
}

static bool interrupted(const struct clab_run_state *run)
{
    return run->options->interrupted != NULL && *run->options->interrupted;
}

const char *clab_status_word(clab_status status)
{
    switch (status) {
    case CLAB_OK:
        return "ok";
    case CLAB_WRONG:
        return "wrong";
    case CLAB_HAZARD:
        return "hazard";
    case CLAB_WAIVED:
    case CLAB_NO_TOOLKIT:
        return "waived";
    case CLAB_TIMEOUT:
    case CLAB_DEADLOCK:
        return "timeout";
    default:
        return "failed";
    }
}

void clab_row_close(struct clab_run_state *run, struct clab_run_row *row, clab_status status,
                    const struct clab_error *error)
{
    if (!row->open)
        return;
    row->open = false;
    json_object_set_new(row->record, "status", json_string(clab_status_word(status)));
    if (status == CLAB_OK)
        return;
    struct clab_error named = {0};
    clab_error_copy(&named, error);
    clab_error_name_source(&named, clab_json_text(run->variants[row->variant].plan, "source", ""));
    json_t *detail = clab_error_to_json(&named);
    clab_error_clear(&named);
    json_object_set_new(row->record, "reason", json_incref(json_object_get(detail, "message")));
    json_object_set_new(row->record, "error", detail);
    if (strcmp(clab_status_word(status), "waived") != 0 && status != CLAB_HAZARD)
        run->exit_status = clab_exit_worse(run->exit_status, clab_status_exit(status));
}

static json_t *shape3(const json_t *shape)
{
    if (!json_is_array(shape))
        return json_null();
    json_t *out = json_array();
    for (size_t i = 0; i < 3; i++)
        json_array_append_new(out, i < json_array_size(shape) ? json_deep_copy(json_array_get(shape, i))
                                                              : json_integer(1));
    return out;
}

/* A record with everything that the plan knows and nulls for the rest (design 4.4: unknown values are null).
 */
static json_t *record_new(const struct clab_run_state *run, const struct clab_run_row *row)
{
    const json_t *variant = run->variants[row->variant].plan, *facts = run->session->facts;
    const json_t *shape = json_object_get(row->plan, "launch");
    json_t *device = json_object();
    static const char *const shown[] = {"id", "uuid", "name", "cc", "emulated", "sms", "driver"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        json_object_set(device, shown[i], json_object_get(facts, shown[i]));
    json_t *record = json_object();
    json_object_set(record, "variant", json_object_get(variant, "name"));
    json_object_set_new(record, "baseline", json_null());
    json_object_set_new(record, "status", json_string("failed"));
    json_object_set_new(record, "reason", json_string(""));
    json_object_set_new(record, "place", json_integer((json_int_t)(row - run->rows)));
    json_object_set_new(record, "params", json_deep_copy(json_object_get(row->plan, "params")));
    json_object_set_new(record, "device", device);
    json_object_set_new(record, "image", json_null());
    json_object_set_new(record, "launch",
                        json_pack("{s:o,s:o,s:o,s:O?}", "grid", shape3(json_object_get(shape, "grid")),
                                  "block", shape3(json_object_get(shape, "block")), "cluster",
                                  shape3(json_object_get(shape, "cluster")), "smem_bytes",
                                  json_object_get(shape, "smem_bytes")));
    json_object_set_new(record, "resources", json_null());
    json_object_set_new(record, "verify", json_pack("{s:s,s:s}", "status", "none", "detail", ""));
    json_object_set_new(record, "time",
                        json_pack("{s:s,s:n,s:n,s:b}", "kind", "none", "cold_ns", "hot_ns", "noisy", 0));
    json_object_set_new(
        record, "rates",
        json_pack("{s:O?,s:n,s:n}", "bytes", json_object_get(row->plan, "bytes"), "gb_per_s", "vs_baseline"));
    json_object_set_new(record, "columns", json_object());
    json_object_set_new(record, "counters", json_null());
    json_object_set_new(record, "clock", json_pack("{s:n,s:n}", "sm_mhz", "throttle"));
    return record;
}

/* Parameters without the swept cluster: rows of one baseline share them. */
static bool same_setting(const json_t *a, const json_t *b)
{
    json_t *x = json_copy((json_t *)(uintptr_t)a), *y = json_copy((json_t *)(uintptr_t)b);
    json_object_del(x, "cluster");
    json_object_del(y, "cluster");
    bool same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* The row of the baseline (or of the variant that this one is `against`) with the same parameters, cluster
   and all; without one, the first that differs only in the cluster (a baseline without clusters, say). */
static void find_baseline(const struct clab_run_state *run, struct clab_run_row *row)
{
    const json_t *params = json_object_get(row->plan, "params");
    const char *against = clab_json_text(run->variants[row->variant].plan, "against", NULL);
    for (size_t j = 0; j < run->n_rows; j++) {
        const struct clab_run_row *other = &run->rows[j];
        const json_t *variant = run->variants[other->variant].plan,
                     *others = json_object_get(other->plan, "params");
        const bool measure = against != NULL ? strcmp(clab_json_text(variant, "name", ""), against) == 0
                                             : clab_json_bool(variant, "baseline", false);
        if (!measure || !same_setting(params, others))
            continue;
        const bool exact = json_equal(params, others);
        if (!exact && row->baseline != UINT32_MAX)
            continue;
        row->baseline = (unsigned)j;
        json_object_set(row->record, "baseline", json_object_get(variant, "name"));
        if (exact)
            return;
    }
}

static clab_status rows_new(struct clab_run_state *run, struct clab_error *error)
{
    const json_t *rows = json_object_get(run->plan, "rows"),
                 *variants = json_object_get(run->plan, "variants");
    run->n_rows = json_array_size(rows);
    const size_t n_own = json_array_size(variants);
    run->n_variants = n_own + json_array_size(run->others);
    run->rows = calloc(run->n_rows + 1, sizeof *run->rows);
    run->variants = calloc(run->n_variants + 1, sizeof *run->variants);
    if (run->rows == NULL || run->variants == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for %zu rows", run->n_rows);
    for (size_t i = 0; i < run->n_variants; i++)
        run->variants[i].plan =
            i < n_own ? json_array_get(variants, i) : json_array_get(run->others, i - n_own);
    for (size_t i = 0; i < run->n_rows; i++) {
        struct clab_run_row *row = &run->rows[i];
        row->plan = json_array_get(rows, i);
        row->variant = (unsigned)clab_json_int(row->plan, "variant", 0);
        row->buffers = json_array_get(json_object_get(run->plan, "buffer_sets"),
                                      (size_t)clab_json_int(row->plan, "buffers", 0));
        row->record = record_new(run, row);
        row->open = true;
        row->baseline = UINT32_MAX;
        const char *waived = clab_json_text(row->plan, "waived", NULL);
        if (waived != NULL) {
            struct clab_error why = {0};
            clab_error_set(&why, CLAB_WAIVED, "%s", waived);
            clab_row_close(run, row, CLAB_WAIVED, &why);
            clab_error_clear(&why);
        }
    }
    for (size_t i = 0; i < run->n_rows; i++)
        find_baseline(run, &run->rows[i]);
    return CLAB_OK;
}

/* The architecture to compile a variant for: the device's number, with the suffix that the variant asks for,
   else with that of an emulated device's name. */
static void choose_arch(const struct clab_run_state *run, const struct clab_run_variant *variant, char *arch,
                        size_t bytes)
{
    const json_t *facts = run->session->facts;
    int number = (int)clab_json_int(facts, "cc_major", 9) * 10 + (int)clab_json_int(facts, "cc_minor", 0);
    const char *requires = clab_json_text(variant->plan, "requires", "");
    const struct clab_target *wanted = clab_target_find(requires);
    if (run->options->arch != NULL)
        snprintf(arch, bytes, "%s", run->options->arch);
    else if (wanted != NULL && wanted->reach == CLAB_REACH_EXACT && wanted->number == number)
        snprintf(arch, bytes, "sm_%da", number);
    else if (wanted != NULL && wanted->reach == CLAB_REACH_FAMILY)
        snprintf(arch, bytes, "sm_%df", number);
    else if (strncmp(run->session->device, "emu:", 4) == 0)
        snprintf(arch, bytes, "%s", run->session->device + 4);
    else
        snprintf(arch, bytes, "sm_%d", number);
}

static bool variant_needed(const struct clab_run_state *run, size_t index)
{
    for (size_t i = 0; i < run->n_rows; i++)
        if (run->rows[i].open && clab_row_uses(&run->rows[i], index))
            return true;
    return false;
}

static void close_variant(struct clab_run_state *run, size_t index, clab_status status,
                          const struct clab_error *error)
{
    for (size_t i = 0; i < run->n_rows; i++)
        if (clab_row_uses(&run->rows[i], index))
            clab_row_close(run, &run->rows[i], status, error);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static void on_compiled(void *context, size_t done, size_t count)
{
    clab_run_progress(context, "compile", "", done, count);
}

static void compile_variants(struct clab_run_state *run)
{
    struct clab_compile_request *requests = calloc(run->n_variants + 1, sizeof *requests);
    struct clab_compile_result *results = calloc(run->n_variants + 1, sizeof *results);
    size_t *of = calloc(run->n_variants + 1, sizeof *of), count = 0;
    char(*archs)[16] = calloc(run->n_variants + 1, sizeof *archs);
    const char **raw = calloc(run->n_variants * 32 + 1, sizeof *raw);
    const bool cubin = clab_json_bool(run->session->facts, "accepts_cubin", false) &&
                       (run->options->image == NULL || strcmp(run->options->image, "cubin") == 0);
    for (size_t i = 0; i < run->n_variants; i++) {
        struct clab_run_variant *variant = &run->variants[i];
        if (!variant_needed(run, i))
            continue;
        struct clab_error refused = {0};
        clab_status taken =
            clab_session_takes(run->session, clab_json_text(variant->plan, "source", ""), &refused);
        if (taken != CLAB_OK)
            close_variant(run, i, taken, &refused);
        clab_error_clear(&refused);
        if (taken != CLAB_OK)
            continue;
        struct clab_compile_request *request = &requests[count];
        const json_t *options = json_object_get(variant->plan, "options");
        choose_arch(run, variant, archs[count], sizeof archs[count]);
        request->source_path = clab_json_text(variant->plan, "source", "");
        request->arch = archs[count];
        request->entry = clab_json_text(variant->plan, "entry", NULL);
        request->line_info = run->options->seeds != 0 || (run->options->line_info && !cubin);
        request->want =
            cubin && !has_suffix(request->source_path, ".ptx") ? CLAB_IMAGE_CUBIN : CLAB_IMAGE_PTX;
        request->options = &raw[count * 32];
        for (size_t j = 0; j < json_array_size(options) && j < 32; j++)
            raw[count * 32 + request->option_count++] = json_string_value(json_array_get(options, j));
        if (clab_json_int(variant->plan, "index", -1) == 0) {
            const struct clab_compile_request *words = &run->options->words;
            request->include_dirs = words->include_dirs;
            request->include_dir_count = words->include_dir_count;
            request->defines = words->defines;
            request->define_count = words->define_count;
            request->options = words->options;
            request->option_count = words->option_count;
        }
        of[count++] = i;
    }
    clab_run_progress(run, "compile", "", 0, count);
    clab_compile_all(run->compiler, requests, count, results, on_compiled, run);
    for (size_t i = 0; i < count; i++) {
        if (results[i].status == CLAB_OK && requests[i].entry == NULL) /* --with FILE: its only entry */
            results[i].status = clab_image_choose_entry(&results[i].image, NULL, &results[i].error);
        run->variants[of[i]].result = results[i];
        run->variants[of[i]].compiled = true;
        if (results[i].status != CLAB_OK)
            close_variant(run, of[i], results[i].status, &results[i].error);
    }
    free(requests);
    free(results);
    free(of);
    free(archs);
    free(raw);
}

/* Writes the images where the worker finds them, records them, and holds them to must_contain. */
static clab_status place_images(struct clab_run_state *run, struct clab_error *error)
{
    if (clab_temporary_folder("run", run->folder, sizeof run->folder) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary folder in %s: %s",
                              clab_temporary_root(), strerror(errno));
    for (size_t i = 0; i < run->n_variants; i++) {
        struct clab_run_variant *variant = &run->variants[i];
        const struct clab_image *image = &variant->result.image;
        if (!variant->compiled || variant->result.status != CLAB_OK)
            continue;
        struct clab_error why = {0};
        json_t *proof = NULL;
        snprintf(variant->path, sizeof variant->path, "%s/%zu.%s", run->folder, i,
                 clab_image_kind_name(image->kind));
        clab_status status = CLAB_OK;
        if (clab_file_write_quick(variant->path, image->data, image->bytes) != 0)
            status = clab_error_set(&why, CLAB_OUTPUT, "cannot write %s: %s", variant->path, strerror(errno));
        if (status == CLAB_OK)
            status = clab_proof_check(image, json_object_get(variant->plan, "must_contain"),
                                      clab_compiler_toolkit(run->compiler),
                                      clab_compiler_cache_dir(run->compiler), &proof, &why);
        for (size_t j = 0; j < run->n_rows; j++)
            if (run->rows[j].variant == i)
                json_object_set_new(run->rows[j].record, "image",
                                    json_pack("{s:s,s:s,s:s,s:s?,s:s,s:s,s:O?}", "kind",
                                              clab_image_kind_name(image->kind), "arch", image->arch,
                                              "source",
                                              clab_path_shown(clab_json_text(variant->plan, "source", "")),
                                              "entry", image->entry, "sha256", image->sha256, "compiler",
                                              image->compiler, "must_contain", proof));
        json_decref(proof);
        if (status != CLAB_OK)
            close_variant(run, i, status, &why);
        clab_error_clear(&why);
    }
    return CLAB_OK;
}

clab_status clab_run_ready(struct clab_run_state *run, struct clab_run_variant *variant,
                           struct clab_error *error)
{
    clab_status status = CLAB_OK;
    if (!run->session->alive) {
        for (size_t i = 0; i < run->n_variants; i++)
            run->variants[i].loaded = false;
        status = clab_session_reopen(run->session, error);
    }
    if (status != CLAB_OK || variant->loaded)
        return status;
    const struct clab_image *image = &variant->result.image;
    json_t *answer = NULL;
    json_t *request =
        json_pack("{s:s,s:I,s:s,s:s,s:s}", "op", "load", "key", (json_int_t)(variant - run->variants), "path",
                  variant->path, "source", clab_json_text(variant->plan, "source", ""), "entry",
                  image->lowered != NULL ? image->lowered : clab_json_text(variant->plan, "entry", ""));
    status = clab_session_ask(run->session, request, run->options->timeout_ms, NULL, NULL, &answer, error);
    if (status == CLAB_OK) {
        variant->loaded = true;
        json_decref(variant->resources);
        variant->resources = json_incref(json_object_get(answer, "resources"));
    }
    json_decref(answer);
    return status;
}

const char *clab_row_name(const struct clab_run_row *row, char *text, size_t bytes)
{
    struct clab_str name = {0};
    clab_str_add(&name, clab_json_text(row->record, "variant", ""));
    const json_t *cluster = json_object_get(json_object_get(row->plan, "launch"), "cluster");
    for (size_t i = 0; i < json_array_size(cluster); i++)
        clab_str_addf(&name, i == 0 ? ", cluster %lld" : " x %lld",
                      (long long)json_integer_value(json_array_get(cluster, i)));
    snprintf(text, bytes, "%s", name.text != NULL ? name.text : "");
    clab_str_free(&name);
    return text;
}

/* Columns: what the experiment expects, or, where the device counts, what it counted; a difference is a wrong
 * result. */
static clab_status check_columns(const struct clab_run_state *run, const struct clab_run_row *row,
                                 struct clab_error *error)
{
    const json_t *columns = json_object_get(run->plan, "columns"),
                 *expected = json_object_get(row->plan, "columns");
    const json_t *counters = json_object_get(row->record, "counters");
    json_t *shown = json_object_get(row->record, "columns");
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const json_t *column = json_array_get(columns, i);
        const char *name = clab_json_text(column, "name", ""),
                   *counter = clab_json_text(column, "counter", NULL);
        json_t *wanted = json_object_get(expected, name);
        const json_t *counted = counter != NULL ? json_object_get(counters, counter) : NULL;
        json_object_set_new(shown, name, json_deep_copy(counted != NULL ? counted : wanted));
        const bool at_least = clab_json_bool(column, "at_least", false);
        if (status == CLAB_OK && counted != NULL && json_is_number(wanted) &&
            (at_least ? json_number_value(counted) < json_number_value(wanted)
                      : json_number_value(counted) != json_number_value(wanted)))
            status = clab_error_set(error, CLAB_WRONG, "%s: counted %.0f, wanted %s%.0f", name,
                                    json_number_value(counted), at_least ? "at least " : "",
                                    json_number_value(wanted));
    }
    return status;
}

/* What the verify request asks of the timeline, or null. */
static json_t *timeline_request(const struct clab_run_state *run)
{
    const json_t *timeline = json_object_get(run->plan, "timeline");
    if (!json_is_object(timeline))
        return json_null();
    json_t *request = json_deep_copy(timeline);
    json_object_set_new(request, "slots", json_boolean(run->options->on_timeline != NULL));
    return request;
}

/* Keeps the summary of a launch's timeline in the record, and in columns: times only where the device's clock
   means something, and named for what they are. */
static void record_timeline(const struct clab_run_state *run, struct clab_run_row *row, json_t *summary)
{
    static const char *const times[] = {"idle_end_ns", "makespan_ns", "shortest_ns",
                                        "longest_ns",  "busy_ns",     "held_ns"};
    if (!json_is_object(summary))
        return;
    json_t *columns = json_object_get(row->record, "columns");
    const char *item = clab_json_text(json_object_get(run->plan, "timeline"), "item", "item");
    const json_t *per_cta = json_object_get(summary, "items_per_cta");
    char name[128];
    json_decref(row->slots);
    row->slots = json_incref(json_object_get(summary, "slots"));
    json_object_del(summary, "slots");
    json_object_set_new(summary, "kind",
                        json_string(run->timed      ? "measured"
                                    : run->modelled ? "modelled"
                                                    : "none"));
    if (run->timed || run->modelled)
        clab_timeline_judge(summary, (unsigned)clab_json_int(run->session->facts, "sms", 0));
    for (size_t i = 0; i < sizeof times / sizeof *times && !run->timed && !run->modelled; i++)
        json_object_set_new(summary, times[i], json_null());
    const char *of = run->modelled ? " (modelled)" : "";
    const json_t *over = json_object_get(summary, "over_bound"), *idle = json_object_get(summary, "idle_end");
    snprintf(name, sizeof name, "over bound%s", of);
    if (json_is_number(over))
        json_object_set_new(columns, name, json_sprintf("%.3f", json_number_value(over)));
    snprintf(name, sizeof name, "idle at end%s", of);
    if (json_is_number(idle))
        json_object_set_new(columns, name, json_sprintf("%.1f %%", 100 * json_number_value(idle)));
    snprintf(name, sizeof name, "%ss per CTA", item);
    if (json_is_object(per_cta))
        json_object_set_new(columns, name,
                            json_sprintf("%lld to %lld", (long long)clab_json_int(per_cta, "min", 0),
                                         (long long)clab_json_int(per_cta, "max", 0)));
    json_object_set(row->record, "timeline", summary);
}

clab_status clab_row_ask(struct clab_run_state *run, struct clab_run_row *row, const char *op, json_t *more,
                         json_t **out_answer, struct clab_error *error)
{
    *out_answer = NULL;
    clab_status status = clab_row_ready(run, row, error);
    if (status == CLAB_OK)
        status = clab_row_resolve(run, row, error);
    if (status != CLAB_OK) {
        json_decref(more);
        return status;
    }
    json_object_set(row->record, "resources", run->variants[row->variant].resources);
    json_t *request = json_pack("{s:s,s:I,s:O,s:O}", "op", op, "key", (json_int_t)row->variant, "row",
                                row->plan, "buffers", row->buffers);
    json_object_update(request, more);
    json_decref(more);
    const bool watched = run->timed || run->options->timeout_always;
    status = clab_session_ask(run->session, request, watched ? run->options->timeout_ms : -1, NULL, NULL,
                              out_answer, error);
    json_t *launch = json_object_get(*out_answer, "launch");
    if (json_is_object(launch))
        json_object_set(row->record, "launch", launch);
    return status;
}

clab_status clab_row_verify(struct clab_run_state *run, struct clab_run_row *row, bool first,
                            struct clab_error *error)
{
    json_t *answer, *more = json_pack("{s:o}", "timeline", timeline_request(run));
    clab_status status = clab_row_ask(run, row, "verify", more, &answer, error);
    const json_t *verify = json_object_get(answer, "verify");
    if (status == CLAB_OK) {
        json_object_set(row->record, "verify", (json_t *)(uintptr_t)verify);
        if (json_is_object(json_object_get(answer, "counters"))) /* a GPU's come from ncu, and stay */
            json_object_set(row->record, "counters", json_object_get(answer, "counters"));
        if (strcmp(clab_json_text(verify, "status", ""), "pass") != 0)
            status = clab_error_set(error, CLAB_WRONG, "%s%s",
                                    first ? "" : "after timing: ", clab_json_text(verify, "detail", ""));
        record_timeline(run, row, json_object_get(answer, "timeline"));
        clab_status columns = check_columns(run, row, status == CLAB_OK ? error : NULL);
        if (status == CLAB_OK)
            status = columns;
        if (run->options->counters && !run->timed)
            clab_run_counters_emulated(row);
    }
    json_decref(answer);
    return status;
}

static void verify_rows(struct clab_run_state *run)
{
    char name[128];
    for (size_t i = 0; i < run->n_rows && !run->stop; i++) {
        struct clab_run_row *row = &run->rows[i];
        clab_run_progress(run, run->options->seeds != 0 ? "check" : "verify",
                          clab_row_name(row, name, sizeof name), i, run->n_rows);
        struct clab_error error = {0};
        const bool checks = run->options->seeds != 0;
        clab_status status = !row->open ? CLAB_OK
                             : checks   ? clab_row_check(run, row, &error)
                                        : clab_row_verify(run, row, true, &error);
        if (status == CLAB_INTERRUPTED)
            run->stop = true;
        else if (status != CLAB_OK)
            clab_row_close(run, row, status, &error);
        else if (!run->timed)
            clab_row_close(run, row, CLAB_OK, NULL);
        if (!row->open && run->options->on_record != NULL)
            run->options->on_record(run->options->context, "row", row->record);
        clab_error_clear(&error);
    }
}

/* Rows that an interrupt left without a verdict; those that were timed keep their samples. */
static void close_rest(struct clab_run_state *run)
{
    struct clab_error error = {0};
    clab_error_set(&error, CLAB_INTERRUPTED, "interrupted");
    for (size_t i = 0; i < run->n_rows; i++) {
        struct clab_run_row *row = &run->rows[i];
        if (!row->open)
            continue;
        clab_row_close(run, row, CLAB_INTERRUPTED, &error);
        if (run->options->on_record != NULL)
            run->options->on_record(run->options->context, "row", row->record);
    }
    clab_error_clear(&error);
}

static void judge(struct clab_run_state *run, const json_t *rows, json_t **out_predictions)
{
    struct clab_error error = {0};
    if (clab_lab_judge(run->plan, rows, out_predictions, &error) != CLAB_OK) {
        *out_predictions = json_array();
        const json_t *predictions = json_object_get(run->plan, "predictions");
        for (size_t i = 0; i < json_array_size(predictions); i++)
            json_array_append_new(*out_predictions,
                                  json_pack("{s:O?,s:s,s:s}", "text",
                                            json_object_get(json_array_get(predictions, i), "text"),
                                            "verdict", "not measured", "detail", error.message));
    }
    clab_error_clear(&error);
    for (size_t i = 0; i < json_array_size(*out_predictions) && run->options->on_record != NULL; i++)
        run->options->on_record(run->options->context, "prediction", json_array_get(*out_predictions, i));
}

static void run_free(struct clab_run_state *run)
{
    for (size_t i = 0; i < run->n_variants && run->variants != NULL; i++) {
        if (run->variants[i].path[0] != '\0')
            (void)unlink(run->variants[i].path);
        if (run->variants[i].compiled)
            clab_compile_result_free(&run->variants[i].result);
        json_decref(run->variants[i].resources);
    }
    for (size_t i = 0; i < run->n_rows && run->rows != NULL; i++) {
        json_decref(run->rows[i].record);
        json_decref(run->rows[i].resolved);
        json_decref(run->rows[i].slots);
        clab_run_samples_free(&run->rows[i].cold);
        clab_run_samples_free(&run->rows[i].hot);
    }
    json_decref(run->cold_outcome);
    if (run->folder[0] != '\0')
        (void)rmdir(run->folder);
    free(run->rows);
    free(run->variants);
    json_decref(run->others);
    json_decref(run->plan);
}

/* On the stand-in driver an experiment with a timeline runs on the schedule whose clock means something,
   unless the caller chose another. */
static clab_status choose_schedule(struct clab_run_state *run, struct clab_error *error)
{
    const struct clab_session *session = run->session;
    if (!clab_json_bool(session->facts, "emulated", false) ||
        !json_is_object(json_object_get(run->plan, "timeline")))
        return CLAB_OK;
    const char *chosen = clab_json_text(session->options, "schedule", NULL);
    run->modelled = chosen == NULL || strcmp(chosen, "fair") == 0;
    return chosen == NULL ? clab_session_option(run->session, "schedule", "fair", error) : CLAB_OK;
}

static clab_status check_timeline(const struct clab_run_state *run, struct clab_error *error)
{
    if (run->options->on_timeline == NULL)
        return CLAB_OK;
    if (!json_is_object(json_object_get(run->plan, "timeline"))) {
        clab_error_set(error, CLAB_USAGE, "experiment '%s' keeps no timeline",
                       clab_json_text(run->plan, "experiment", ""));
        return clab_error_remedy(error, "`timeline` in its file names the buffer that its kernels log to");
    }
    if (!run->timed && !run->modelled)
        return clab_error_set(
            error, CLAB_USAGE,
            "--timeline on an emulated device needs its clock: --emu-schedule fair (the default here)");
    return CLAB_OK;
}

static void give_timelines(const struct clab_run_state *run)
{
    for (size_t i = 0; i < run->n_rows && run->options->on_timeline != NULL; i++)
        if (run->rows[i].slots != NULL &&
            strcmp(clab_json_text(run->rows[i].record, "status", ""), "ok") == 0)
            run->options->on_timeline(run->options->context, run->rows[i].record, run->rows[i].slots);
}

/* 3 when every row was waived, and no worse. */
static int final_status(const struct clab_run_state *run)
{
    if (run->stop)
        return clab_status_exit(CLAB_INTERRUPTED);
    size_t waived = 0;
    for (size_t i = 0; i < run->n_rows; i++)
        waived += strcmp(clab_json_text(run->rows[i].record, "status", ""), "waived") == 0;
    return run->n_rows != 0 && waived == run->n_rows ? clab_exit_worse(run->exit_status, 3)
                                                     : run->exit_status;
}

clab_status clab_run(struct clab_session *session, struct clab_compiler *compiler,
                     const struct clab_run_options *options, json_t **out_rows, json_t **out_predictions,
                     int *out_exit_status, struct clab_error *error)
{
    struct clab_run_state run = {.session = session, .compiler = compiler, .options = options};
    struct clab_lab_request request = options->request;
    request.device = session->facts;
    request.check = options->request.check || options->seeds != 0;
    run.timed = clab_json_bool(session->facts, "timed", false) && options->seeds == 0;
    *out_rows = *out_predictions = NULL;
    if (options->image != NULL && strcmp(options->image, "cubin") == 0 &&
        !clab_json_bool(session->facts, "accepts_cubin", false))
        return clab_error_set(error, CLAB_UNSUPPORTED, "%s runs PTX: there is no --image cubin for it",
                              session->device);
    if (session->has_run) {
        const clab_status reopened = clab_session_reopen(session, error);
        if (reopened != CLAB_OK)
            return reopened;
    }
    session->has_run = true;
    clab_session_mark(session, "wait");
    json_t *facts = json_copy(session->facts);
    json_object_set(facts, "options", session->options != NULL ? session->options : json_null());
    request.device = facts;
    clab_status status = CLAB_OK;
    if (options->plan != NULL)
        run.plan = json_deep_copy(options->plan);
    else
        status = clab_lab_plan(&request, &run.plan, error);
    if (status == CLAB_OK && options->seeds == 0) /* a check chooses its schedules itself */
        status = choose_schedule(&run, error);
    if (status == CLAB_OK && options->seeds == 0)
        status = check_timeline(&run, error);
    if (status == CLAB_OK && options->on_plan != NULL)
        options->on_plan(options->context, run.plan);
    if (status == CLAB_OK)
        status = clab_run_others(&run, error);
    if (status == CLAB_OK)
        status = rows_new(&run, error);
    clab_session_mark(session, "plan");
    if (status == CLAB_OK)
        compile_variants(&run);
    if (status == CLAB_OK)
        status = place_images(&run, error);
    clab_session_mark(session, "compile");
    if (status == CLAB_OK) {
        run.stop = interrupted(&run);
        verify_rows(&run);
        clab_session_mark(session, "verify");
        if (run.timed && !run.stop)
            clab_run_time(&run, false);
        if (run.timed && options->hot && !run.stop)
            clab_run_time(&run, true);
        clab_session_mark(session, "time");
        if (run.timed && options->counters && !run.stop) {
            clab_run_counters(&run);
            clab_session_mark(session, "count");
        }
        if (run.timed)
            clab_run_finish_timed(&run);
        clab_session_mark(session, "verify again");
        close_rest(&run);
        *out_rows = json_array();
        for (size_t i = 0; i < run.n_rows; i++)
            json_array_append(*out_rows, run.rows[i].record);
        if (options->seeds == 0)
            judge(&run, *out_rows, out_predictions);
        give_timelines(&run);
        *out_exit_status = final_status(&run);
        clab_session_mark(session, "judge");
    }
    run_free(&run);
    json_decref(facts);
    return status;
}
