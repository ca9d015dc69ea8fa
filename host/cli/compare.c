/* clusterlab compare: the rows of two record files, paired by experiment, variant, parameters and device. Two
   runs have no rounds in common, so their medians are compared by their own intervals (distribution-free, 95
   %), which come from the sample records; where a file has none, the 5 % and 95 % quantiles stand in, which
   is stricter. Compares cold times. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lab/stats.h"
#include "lab/wire.h"
#include "report/record.h"
#include "report/table.h"

/* What two runs may differ by without cause: each may be off by the noise target. */
#define TOLERANCE (2 * CLAB_NOISE_TARGET)

struct time {
    bool known;
    double median, low, high; /* ns */
};

static bool is_type(const json_t *record, const char *type)
{
    return strcmp(clab_json_text(record, "type", ""), type) == 0;
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

static const char *device(const json_t *row, const char *key)
{
    return clab_json_text(json_object_get(row, "device"), key, "");
}

/* The row of `records` that belongs to `row`: on the device of the same id, or else on any. */
static const json_t *partner(const json_t *records, const json_t *row)
{
    const json_t *any = NULL;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *other = json_array_get(records, i);
        if (!is_type(other, "row") || !same(other, row, "experiment") || !same(other, row, "variant") ||
            !same(other, row, "params"))
            continue;
        if (strcmp(device(other, "id"), device(row, "id")) == 0)
            return other;
        if (any == NULL)
            any = other;
    }
    return any;
}

static double cold(const json_t *row, const char *which)
{
    return json_number_value(
        json_object_get(json_object_get(json_object_get(row, "time"), "cold_ns"), which));
}

/* The row's median with its interval. The samples of a row carry its run, variant, parameters and device. */
static struct time time_of(const json_t *records, const json_t *row)
{
    struct time time = {.median = cold(row, "median"), .low = cold(row, "p05"), .high = cold(row, "p95")};
    time.known = time.median > 0;
    double *values = calloc(json_array_size(records) + 1, sizeof *values);
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(records) && values != NULL && time.known; i++) {
        const json_t *sample = json_array_get(records, i);
        const double ns = json_number_value(json_object_get(sample, "cold_ns"));
        if (is_type(sample, "sample") && ns > 0 && !json_is_string(json_object_get(sample, "discarded")) &&
            same(sample, row, "run") && same(sample, row, "variant") && same(sample, row, "params") &&
            strcmp(device(sample, "id"), device(row, "id")) == 0)
            values[n++] = ns;
    }
    struct clab_summary summary;
    if (n >= 6) {
        clab_summary_of(values, n, &summary);
        time.low = summary.median_low;
        time.high = summary.median_high;
    }
    free(values);
    return time;
}

struct comparison {
    const json_t *before, *after;
    struct clab_table table;
    unsigned pairs, regressions, only_before, only_after;
};

static void add_row(struct comparison *all, const json_t *row)
{
    char *params = json_dumps(json_object_get(row, "params"), JSON_COMPACT);
    clab_table_row(&all->table);
    clab_table_cell(&all->table, 0, "%s", clab_json_text(row, "variant", ""));
    clab_table_cell(&all->table, 1, "%s", params != NULL ? params : "");
    free(params);
}

static void compare_times(struct comparison *all, const struct time *a, const struct time *b)
{
    const double low = b->low / a->high, high = b->high / a->low, ratio = b->median / a->median;
    const bool slower = low > 1 && ratio > 1 + TOLERANCE, faster = high < 1 && ratio < 1 - TOLERANCE;
    clab_table_cell(&all->table, 4, "%.3f", ratio);
    clab_table_cell(&all->table, 5, "%s",
                    slower   ? "regression: slower"
                    : faster ? "faster"
                             : "same within the interval");
    all->regressions += slower;
}

static void compare_pair(struct comparison *all, const json_t *a, const json_t *b)
{
    const char *was = clab_json_text(a, "status", ""), *is = clab_json_text(b, "status", "");
    const struct time x = time_of(all->before, a), y = time_of(all->after, b);
    all->pairs++;
    if (x.known)
        clab_table_cell(&all->table, 2, "%.2f", x.median / 1000);
    if (y.known)
        clab_table_cell(&all->table, 3, "%.2f", y.median / 1000);
    if (strcmp(was, "ok") == 0 && strcmp(is, "ok") != 0) {
        clab_table_cell(&all->table, 5, "regression: was ok, is %s", is);
        all->regressions++;
    } else if (strcmp(was, is) != 0) {
        clab_table_cell(&all->table, 5, "was %s, is %s", was, is);
    } else if (x.known && y.known) {
        compare_times(all, &x, &y);
    } else {
        clab_table_cell(&all->table, 5, "%s", is);
    }
}

static void compare_all(struct comparison *all)
{
    static const char *const titles[] = {"variant",  "params",       "before us",
                                         "after us", "after/before", "verdict"};
    for (size_t i = 0; i < 6; i++)
        clab_table_column(&all->table, titles[i], i >= 2 && i <= 4);
    for (size_t i = 0; i < json_array_size(all->before); i++) {
        const json_t *a = json_array_get(all->before, i), *b = partner(all->after, a);
        if (!is_type(a, "row"))
            continue;
        add_row(all, a);
        if (b != NULL) {
            compare_pair(all, a, b);
        } else {
            clab_table_cell(&all->table, 5, "only before (%s)", clab_json_text(a, "status", ""));
            all->only_before++;
        }
    }
    for (size_t i = 0; i < json_array_size(all->after); i++) {
        const json_t *b = json_array_get(all->after, i);
        if (!is_type(b, "row") || partner(all->before, b) != NULL)
            continue;
        add_row(all, b);
        clab_table_cell(&all->table, 5, "only after (%s)", clab_json_text(b, "status", ""));
        all->only_after++;
    }
}

/* Times of two kinds of GPU are no before and after of the code. */
static void note_devices(struct clab_cli *cli, const struct comparison *all)
{
    for (size_t i = 0; i < json_array_size(all->before); i++) {
        const json_t *a = json_array_get(all->before, i),
                     *b = is_type(a, "row") ? partner(all->after, a) : NULL;
        if (b == NULL || strcmp(device(a, "name"), device(b, "name")) == 0)
            continue;
        fprintf(cli->err, "clusterlab: note: before is %s, after is %s\n", device(a, "name"),
                device(b, "name"));
        return;
    }
}

int clab_cmd_compare(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {{0}};
    const char *paths[2];
    size_t n;
    json_t *before = NULL, *after = NULL;
    clab_status status = clab_options_parse(o, argc, argv, paths, 2, &n, error);
    if (status == CLAB_OK && n != 2)
        status = clab_error_set(error, CLAB_USAGE, "compare needs two record files");
    if (status == CLAB_OK)
        status = clab_records_read(paths[0], &before, error);
    if (status == CLAB_OK)
        status = clab_records_read(paths[1], &after, error);
    struct comparison all = {.before = before, .after = after};
    struct clab_str text = {0};
    if (status == CLAB_OK)
        compare_all(&all);
    if (status == CLAB_OK && all.pairs == 0)
        status = clab_error_set(error, CLAB_USAGE, "%s and %s have no row in common", paths[0], paths[1]);
    if (status == CLAB_OK) {
        note_devices(cli, &all);
        clab_table_print(&all.table, &text);
        fprintf(cli->out, "%s%u rows compared, %u regressions", text.text != NULL ? text.text : "", all.pairs,
                all.regressions);
        if (all.only_before + all.only_after != 0)
            fprintf(cli->out, "; %u only before, %u only after", all.only_before, all.only_after);
        fputc('\n', cli->out);
    }
    clab_str_free(&text);
    clab_table_free(&all.table);
    json_decref(before);
    json_decref(after);
    return status != CLAB_OK      ? clab_status_exit(status)
           : all.regressions != 0 ? clab_status_exit(CLAB_REGRESSION)
                                  : 0;
}
