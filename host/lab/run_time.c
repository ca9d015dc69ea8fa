/* The timing half of a run: the requests to the worker, the samples as they come, and the statistics in the
   records. Samples live here, in the parent, so that neither a fault nor an interrupt loses those that were
   taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/measure.h"
#include "lab/run_parts.h"
#include "lab/stats.h"
#include "lab/wire.h"

#define BOOTSTRAP_SEED 1
#define SHUFFLE_SEED   1

void clab_run_samples_free(struct clab_run_samples *samples)
{
    free(samples->ns);
    free(samples->mhz);
    memset(samples, 0, sizeof *samples);
}

/* Stores a sample of a round; false when memory is out. */
static bool samples_put(struct clab_run_samples *samples, size_t round, double ns, double mhz)
{
    if (round >= samples->capacity) {
        size_t capacity = samples->capacity != 0 ? samples->capacity : 64;
        while (capacity <= round)
            capacity *= 2;
        double *more_ns = realloc(samples->ns, capacity * sizeof *more_ns);
        if (more_ns != NULL)
            samples->ns = more_ns;
        double *more_mhz = realloc(samples->mhz, capacity * sizeof *more_mhz);
        if (more_mhz != NULL)
            samples->mhz = more_mhz;
        if (more_ns == NULL || more_mhz == NULL)
            return false;
        samples->capacity = capacity;
    }
    for (; samples->count <= round; samples->count++)
        samples->ns[samples->count] = samples->mhz[samples->count] = (double)NAN;
    samples->ns[round] = ns;
    samples->mhz[round] = mhz;
    samples->kept++;
    return true;
}

/* Of the known values of a series. False when there are none. */
static bool summarize(const double *values, size_t count, struct clab_summary *out_summary, size_t *out_count)
{
    double *known = calloc(count + 1, sizeof *known);
    *out_count = 0;
    for (size_t i = 0; i < count && known != NULL; i++)
        if (!isnan(values[i]))
            known[(*out_count)++] = values[i];
    if (*out_count != 0)
        clab_summary_of(known, *out_count, out_summary);
    free(known);
    return *out_count != 0;
}

static bool resets(const struct clab_run_row *row, const char *when)
{
    for (size_t i = 0; i < json_array_size(row->buffers); i++)
        if (strcmp(clab_json_text(json_array_get(row->buffers, i), "reset", ""), when) == 0)
            return true;
    return false;
}

/* What a row resets before each launch is reset within a batch's time (worker.c), and the record says so. */
static bool wanted_hot(const struct clab_run_state *run, const struct clab_run_row *row)
{
    if (json_is_object(json_object_get(json_object_get(row->plan, "launch"), "companion")))
        return false; /* launches back to back would each want a companion that begins with them */
    return clab_json_bool(run->plan, "hot", false);
}

static void on_sample(void *context, const json_t *sample)
{
    struct clab_run_state *run = context;
    const size_t id = (size_t)clab_json_int(sample, "id", -1),
                 round = (size_t)clab_json_int(sample, "round", -1);
    if (id >= run->n_rows || round >= CLAB_MOST_ROUNDS * 2)
        return;
    struct clab_run_row *row = &run->rows[id];
    struct clab_run_samples *samples = run->timing_hot ? &row->hot : &row->cold;
    const double ns = json_number_value(json_object_get(sample, "ns"));
    json_t *mhz = json_object_get(sample, "sm_mhz");
    if (json_is_string(json_object_get(sample, "discarded")))
        samples->discarded++;
    else if (!samples_put(samples, round, ns, json_is_number(mhz) ? json_number_value(mhz) : (double)NAN))
        return;
    if (run->timing_hot) {
        row->batch_launches = (unsigned)clab_json_int(sample, "launches", 1);
        row->host_bound |= clab_json_bool(sample, "host_bound", false);
    }
    if (run->options->on_record != NULL) {
        json_t *record =
            json_pack("{s:O,s:O,s:I,s:I,s:f,s:O?,s:O?}", "variant", json_object_get(row->record, "variant"),
                      "params", json_object_get(row->record, "params"), "row", (json_int_t)id, "round",
                      (json_int_t)round, run->timing_hot ? "hot_ns" : "cold_ns", ns, "sm_mhz", mhz,
                      "discarded", json_object_get(sample, "discarded"));
        if (run->timing_hot)
            json_object_set(record, "launches", json_object_get(sample, "launches"));
        run->options->on_record(run->options->context, "sample", record);
        json_decref(record);
    }
    const size_t least = run->options->samples != 0 ? run->options->samples : CLAB_LEAST_ROUNDS;
    char name[128];
    clab_run_progress(run, run->timing_hot ? "time hot" : "time", clab_row_name(row, name, sizeof name),
                      round + 1, round + 1 > least || run->timing_hot ? round + 1 : least);
}

static json_t *earlier(const struct clab_run_samples *samples)
{
    json_t *values = json_array();
    for (size_t i = 0; i < samples->count; i++)
        if (!isnan(samples->ns[i]))
            json_array_append_new(values, json_real(samples->ns[i]));
    return values;
}

/* Readies every row that is to be timed. *out_failed: the row in hand. */
static clab_status time_request(struct clab_run_state *run, bool hot, double spent_s, json_t **out_request,
                                int64_t *out_failed, struct clab_error *error)
{
    json_t *rows = json_array();
    size_t first_round = 0;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < run->n_rows && status == CLAB_OK; i++) {
        struct clab_run_row *row = &run->rows[i];
        if (!row->open || (hot && !wanted_hot(run, row)))
            continue;
        const struct clab_run_samples *samples = hot ? &row->hot : &row->cold;
        if (samples->count > first_round)
            first_round = samples->count;
        *out_failed = (int64_t)i;
        status = clab_row_ready(run, row, error);
        json_array_append_new(rows, json_pack("{s:I,s:I,s:O,s:O,s:o}", "id", (json_int_t)i, "key",
                                              (json_int_t)row->variant, "row", row->plan, "buffers",
                                              row->buffers, "earlier", earlier(samples)));
    }
    *out_request = json_pack("{s:s,s:o,s:b,s:I,s:I,s:f,s:i}", "op", "time", "rows", rows, "hot", hot,
                             "samples", (json_int_t)(hot ? 0 : run->options->samples), "first_round",
                             (json_int_t)first_round, "spent_s", spent_s, "seed", SHUFFLE_SEED);
    return status;
}

/* Whom a failed measurement is blamed on: the row that the worker names, or the one it was launching when it
 * died. */
static void drop(struct clab_run_state *run, bool hot, int64_t failed, clab_status status,
                 const struct clab_error *error)
{
    for (size_t i = 0; i < run->n_rows; i++) {
        struct clab_run_row *row = &run->rows[i];
        if (!row->open || (failed >= 0 && (int64_t)i != failed) || (hot && !wanted_hot(run, row)))
            continue;
        clab_row_close(run, row, status, error);
        if (run->options->on_record != NULL)
            run->options->on_record(run->options->context, "row", row->record);
    }
}

void clab_run_time(struct clab_run_state *run, bool hot)
{
    const uint64_t start_ns = clab_now_ns();
    unsigned unexplained = 0; /* deaths outside any launch: one is forgiven, the second is everybody's */
    run->timing_hot = hot;
    for (;;) {
        struct clab_error error = {0};
        json_t *request = NULL, *answer = NULL;
        int64_t failed = -1;
        clab_status status =
            time_request(run, hot, (double)(clab_now_ns() - start_ns) * 1e-9, &request, &failed, &error);
        if (status == CLAB_OK && json_array_size(json_object_get(request, "rows")) == 0) {
            json_decref(request);
            return;
        }
        if (status == CLAB_OK) {
            status = clab_session_ask(run->session, json_incref(request), run->options->timeout_ms, on_sample,
                                      run, &answer, &error);
            failed = clab_json_int(answer, "failed", run->session->at_row);
            unexplained += status != CLAB_OK && failed < 0;
        }
        if (status == CLAB_OK && !hot) {
            json_decref(run->cold_outcome);
            run->cold_outcome = json_incref(answer);
        }
        json_decref(request);
        json_decref(answer);
        if (status == CLAB_INTERRUPTED)
            run->stop = true;
        else if (status != CLAB_OK && (failed >= 0 || unexplained > 1))
            drop(run, hot, failed, status, &error);
        clab_error_clear(&error);
        if (status == CLAB_OK || run->stop)
            return;
    }
}

static void record_cold(const struct clab_run_state *run, struct clab_run_row *row, json_t *time)
{
    struct clab_summary summary;
    size_t n;
    if (!summarize(row->cold.ns, row->cold.count, &summary, &n))
        return;
    json_object_set_new(time, "kind", json_string("measured"));
    json_object_set_new(time, "cold_ns",
                        json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:b}", "median", summary.median, "min",
                                  summary.min, "p05", summary.p05, "p95", summary.p95, "samples",
                                  (json_int_t)n, "discarded", (json_int_t)row->cold.discarded,
                                  "includes_reset", resets(row, "timed")));
    json_object_set_new(time, "noisy", json_boolean(summary.noisy));
    json_t *end = json_object_get(run->cold_outcome, "end");
    json_object_set(time, "end", end != NULL ? end : json_null());
    json_t *rates = json_object_get(row->record, "rates");
    const json_t *bytes = json_object_get(row->plan, "bytes");
    if (json_is_number(bytes) && summary.median > 0)
        json_object_set_new(rates, "gb_per_s", json_real(json_number_value(bytes) / summary.median));
    if (row->baseline == UINT32_MAX || !run->rows[row->baseline].held)
        return;
    const struct clab_run_samples *baseline = &run->rows[row->baseline].cold;
    struct clab_ratio ratio;
    const size_t both = row->cold.count < baseline->count ? row->cold.count : baseline->count;
    if (both != 0 && clab_ratio_paired(row->cold.ns, baseline->ns, both, BOOTSTRAP_SEED, &ratio))
        json_object_set_new(
            rates, "vs_baseline",
            json_pack("{s:f,s:f,s:f}", "ratio", ratio.ratio, "low", ratio.low, "high", ratio.high));
}

static void record_hot(struct clab_run_row *row, json_t *time)
{
    struct clab_summary summary;
    size_t n;
    if (!summarize(row->hot.ns, row->hot.count, &summary, &n))
        return;
    json_object_set_new(time, "kind", json_string("measured"));
    json_object_set_new(time, "hot_ns",
                        json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:I,s:b,s:b}", "median", summary.median, "min",
                                  summary.min, "p05", summary.p05, "p95", summary.p95, "batches",
                                  (json_int_t)n, "launches", (json_int_t)row->batch_launches, "discarded",
                                  (json_int_t)row->hot.discarded, "includes_reset",
                                  resets(row, "timed") || resets(row, "launch"), "host_bound",
                                  row->host_bound));
}

/* The clock that the row's samples ran at, and what may have disturbed them. */
static void record_clock(const struct clab_run_state *run, struct clab_run_row *row)
{
    json_t *clock = json_object();
    size_t n;
    struct clab_summary summary;
    const bool known = summarize(row->cold.mhz, row->cold.count, &summary, &n);
    json_object_set_new(clock, "sm_mhz", known ? json_real(summary.median) : json_null());
    static const char *const words[] = {"throttle", "reference_mhz", "other_processes"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        json_t *value = json_object_get(run->cold_outcome, words[i]);
        json_object_set(clock, words[i], value != NULL ? value : json_null());
    }
    json_object_set_new(row->record, "clock", clock);
}

/* The columns that are made of a time, once the rows have theirs. A file whose functions fail costs the timed
   rows their verdict, not their times. */
static void add_timed_columns(struct clab_run_state *run)
{
    struct clab_error error = {0};
    json_t *records = json_array(), *columns = NULL;
    for (size_t i = 0; i < run->n_rows; i++)
        json_array_append(records, run->rows[i].record);
    clab_status status = clab_lab_timed_columns(run->plan, records, &columns, &error);
    for (size_t i = 0; i < run->n_rows; i++) {
        struct clab_run_row *row = &run->rows[i];
        json_object_update(json_object_get(row->record, "columns"), json_array_get(columns, i));
        if (status != CLAB_OK && row->held)
            clab_row_close(run, row, status, &error);
    }
    clab_error_clear(&error);
    json_decref(records);
    json_decref(columns);
}

void clab_run_finish_timed(struct clab_run_state *run)
{
    char name[128];
    bool *was_open = calloc(run->n_rows + 1, sizeof *was_open);
    for (size_t i = 0; i < run->n_rows && was_open != NULL; i++) {
        struct clab_run_row *row = &run->rows[i];
        was_open[i] = row->open;
        if (!row->open || row->cold.kept == 0)
            continue;
        struct clab_error error = {0};
        clab_status status = CLAB_OK;
        if (!run->stop) {
            clab_run_progress(run, "verify again", clab_row_name(row, name, sizeof name), i, run->n_rows);
            status = clab_row_verify(run, row, false, &error);
        }
        if (status == CLAB_INTERRUPTED)
            run->stop = true;
        else if (status != CLAB_OK)
            clab_row_close(run, row, status, &error);
        row->held = status == CLAB_OK || status == CLAB_INTERRUPTED;
        clab_error_clear(&error);
    }
    /* Ratios need the baseline's verdict, so the times come after every verification. */
    for (size_t i = 0; i < run->n_rows && was_open != NULL; i++) {
        struct clab_run_row *row = &run->rows[i];
        if (!was_open[i] || !row->held)
            continue;
        json_t *time = json_object_get(row->record, "time");
        record_cold(run, row, time);
        record_hot(row, time);
        record_clock(run, row);
    }
    add_timed_columns(run);
    for (size_t i = 0; i < run->n_rows && was_open != NULL; i++) {
        struct clab_run_row *row = &run->rows[i];
        if (!was_open[i])
            continue;
        if (row->held && !run->stop)
            clab_row_close(run, row, CLAB_OK, NULL);
        if (!row->open && run->options->on_record != NULL)
            run->options->on_record(run->options->context, "row", row->record);
    }
    free(was_open);
}
