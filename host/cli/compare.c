/* clusterlab compare: the rows of two record files, paired by experiment, variant, parameters and device. Two
   runs have no rounds in common, so their medians are compared by their own intervals (distribution-free, 95
   %), which come from the sample records; where a file has none, the 5 % and 95 % quantiles stand in, which
   is stricter. Compares cold times, and what was counted: columns and counters (not those of polling loops,
   which depend on the schedule). */
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

/* One file: its rows, and for each the index of its partner in the other file or NONE. */
#define NONE SIZE_MAX
struct side {
    const json_t *records;
    const json_t **rows; /* borrowed */
    size_t *partner;
    size_t n;
    bool one_device, one_experiment; /* by name */
};

/* Rows are written as they are judged, those that are waived first: their `place` is that of the plan. */
static void sort_by_place(struct side *side)
{
    for (size_t i = 1; i < side->n; i++)
        for (size_t j = i; j > 0; j--) {
            const json_t *left = side->rows[j - 1], *right = side->rows[j];
            if (!same(left, right, "run") || !same(left, right, "experiment") ||
                strcmp(device(left, "id"), device(right, "id")) != 0 ||
                clab_json_int(left, "place", 0) <= clab_json_int(right, "place", 0))
                break;
            side->rows[j - 1] = right;
            side->rows[j] = left;
        }
}

struct comparison {
    struct side before, after;
    struct clab_table table;
    bool show_experiment, show_device, subset;
    unsigned labels; /* columns before the times: experiment, device, variant, setting */
    unsigned pairs, regressions, changed, only_before, only_after;
};

static bool side_init(struct side *side, const json_t *records)
{
    const size_t most = json_array_size(records);
    side->records = records;
    side->rows = calloc(most + 1, sizeof *side->rows);
    side->partner = calloc(most + 1, sizeof *side->partner);
    side->one_device = side->one_experiment = true;
    if (side->rows == NULL || side->partner == NULL)
        return false;
    for (size_t i = 0; i < most; i++) {
        const json_t *row = json_array_get(records, i);
        if (!is_type(row, "row"))
            continue;
        side->partner[side->n] = NONE;
        side->rows[side->n++] = row;
        side->one_device &= strcmp(device(row, "name"), device(side->rows[0], "name")) == 0;
        side->one_experiment &= same(row, side->rows[0], "experiment");
    }
    sort_by_place(side);
    return true;
}

static void side_fini(struct side *side)
{
    free(side->rows);
    free(side->partner);
}

/* How close two devices must be: the same one, the same kind, any. */
enum likeness { LIKE_ID, LIKE_NAME, LIKE_ANY };

static bool alike(const json_t *a, const json_t *b, enum likeness likeness)
{
    return same(a, b, "experiment") && same(a, b, "variant") && same(a, b, "params") &&
           (likeness == LIKE_ANY || strcmp(device(a, "name"), device(b, "name")) == 0) &&
           (likeness != LIKE_ID || strcmp(device(a, "id"), device(b, "id")) == 0);
}

/* Pairs the rows that have no partner yet, in order; no row gets two. */
static void pair_rows(struct side *a, struct side *b, enum likeness likeness)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n && a->partner[i] == NONE; j++)
            if (b->partner[j] == NONE && alike(a->rows[i], b->rows[j], likeness)) {
                a->partner[i] = j;
                b->partner[j] = i;
            }
}

static void set_verdict(struct comparison *all, const char *text)
{
    clab_table_cell(&all->table, all->labels + 3, "%s", text);
}

/* Whether some row of either file has another value. */
static bool varies(const struct comparison *all, const char *key, const json_t *value)
{
    const struct side *sides[] = {&all->before, &all->after};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->n; i++)
            if (!json_equal(json_object_get(json_object_get(sides[s]->rows[i], "params"), key), value))
                return true;
    return false;
}

/* "cluster 8, n 65536": the parameters that tell rows apart. */
static void add_setting(const struct comparison *all, const json_t *row, struct clab_str *out)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(row, "params"), key, value)
    {
        if (!varies(all, key, value))
            continue;
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        clab_str_addf(out, "%s%s %s", out->bytes != 0 ? ", " : "", key,
                      json_is_string(value) ? json_string_value(value)
                      : text != NULL        ? text
                                            : "");
        free(text);
    }
}

static void add_row(struct comparison *all, const json_t *row)
{
    struct clab_str setting = {0};
    unsigned column = 0;
    add_setting(all, row, &setting);
    clab_table_row(&all->table);
    if (all->show_experiment)
        clab_table_cell(&all->table, column++, "%s", clab_json_text(row, "experiment", ""));
    if (all->show_device)
        clab_table_cell(&all->table, column++, "%s", device(row, "name"));
    clab_table_cell(&all->table, column++, "%s", clab_json_text(row, "variant", ""));
    clab_table_cell(&all->table, column++, "%s", setting.text != NULL ? setting.text : "");
    clab_str_free(&setting);
}

/* True: slower. */
static bool compare_times(struct comparison *all, const struct time *a, const struct time *b,
                          struct clab_str *verdict)
{
    const double low = b->low / a->high, high = b->high / a->low, ratio = b->median / a->median;
    const bool slower = low > 1 && ratio > 1 + TOLERANCE, faster = high < 1 && ratio < 1 - TOLERANCE;
    clab_table_cell(&all->table, all->labels + 2, "%.3f", ratio);
    clab_str_add(verdict, slower ? "regression: slower" : faster ? "faster" : "same within the interval");
    return slower;
}

#define MOST_CHANGES 4
struct changes {
    struct clab_str text;
    unsigned count;
};

/* Adds "NAME BEFORE -> AFTER" for the members of both objects that differ. */
static void add_changes(struct changes *changes, const json_t *a, const json_t *b)
{
    const char *name;
    json_t *was;
    json_object_foreach((json_t *)(uintptr_t)a, name, was)
    {
        const json_t *is = json_object_get(b, name);
        if (strncmp(name, "spin_", 5) == 0 || !json_is_number(was) || !json_is_number(is) ||
            json_number_value(was) == json_number_value(is) || changes->count++ >= MOST_CHANGES)
            continue;
        clab_str_addf(&changes->text, "%s%s %.15g -> %.15g", changes->count > 1 ? ", " : "", name,
                      json_number_value(was), json_number_value(is));
    }
}

static void compare_counts(struct comparison *all, const json_t *a, const json_t *b, struct clab_str *verdict)
{
    struct changes changes = {{0}, 0};
    add_changes(&changes, json_object_get(a, "columns"), json_object_get(b, "columns"));
    add_changes(&changes, json_object_get(a, "counters"), json_object_get(b, "counters"));
    if (changes.count != 0) {
        all->changed++;
        clab_str_addf(verdict, "; changed: %s", changes.text.text != NULL ? changes.text.text : "");
    }
    if (changes.count > MOST_CHANGES)
        clab_str_addf(verdict, " and %u more", changes.count - MOST_CHANGES);
    clab_str_free(&changes.text);
}

static void compare_pair(struct comparison *all, const json_t *a, const json_t *b)
{
    const char *was = clab_json_text(a, "status", ""), *is = clab_json_text(b, "status", "");
    const struct time x = time_of(all->before.records, a), y = time_of(all->after.records, b);
    struct clab_str verdict = {0};
    all->pairs++;
    if (x.known)
        clab_table_cell(&all->table, all->labels, "%.2f", x.median / 1000);
    if (y.known)
        clab_table_cell(&all->table, all->labels + 1, "%.2f", y.median / 1000);
    if (strcmp(was, "ok") == 0 && strcmp(is, "ok") != 0) {
        clab_str_addf(&verdict, "regression: was ok, is %s", is);
        all->regressions++;
    } else if (strcmp(was, is) != 0) {
        clab_str_addf(&verdict, "was %s, is %s", was, is);
    } else if (x.known && y.known) {
        all->regressions += compare_times(all, &x, &y, &verdict);
    } else {
        clab_str_add(&verdict, is);
    }
    compare_counts(all, a, b, &verdict);
    set_verdict(all, verdict.text != NULL ? verdict.text : "");
    clab_str_free(&verdict);
}

static void add_single(struct comparison *all, const json_t *row, const char *where, bool regression)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s (%s)", regression ? "regression: " : "", where,
             clab_json_text(row, "status", ""));
    add_row(all, row);
    set_verdict(all, text);
    all->regressions += regression;
}

static void compare_all(struct comparison *all)
{
    static const char *const titles[] = {"variant",  "setting",      "before us",
                                         "after us", "after/before", "verdict"};
    struct side *before = &all->before, *after = &all->after;
    pair_rows(before, after, LIKE_ID);
    pair_rows(before, after, LIKE_NAME);
    if (before->one_device && after->one_device)
        pair_rows(before, after, LIKE_ANY);
    all->show_device = !before->one_device || !after->one_device;
    all->show_experiment = !before->one_experiment || !after->one_experiment;
    all->labels = 2u + all->show_experiment + all->show_device;
    if (all->show_experiment)
        clab_table_column(&all->table, "experiment", false);
    if (all->show_device)
        clab_table_column(&all->table, "device", false);
    for (size_t i = 0; i < 6; i++)
        clab_table_column(&all->table, titles[i], i >= 2 && i <= 4);
    for (size_t i = 0; i < before->n; i++) {
        const json_t *row = before->rows[i];
        if (before->partner[i] != NONE) {
            add_row(all, row);
            compare_pair(all, row, after->rows[before->partner[i]]);
            continue;
        }
        add_single(all, row, "only before",
                   !all->subset && strcmp(clab_json_text(row, "status", ""), "ok") == 0);
        all->only_before++;
    }
    for (size_t i = 0; i < after->n; i++) {
        if (after->partner[i] != NONE)
            continue;
        add_single(all, after->rows[i], "only after", false);
        all->only_after++;
    }
}

/* Times of two kinds of GPU are no before and after of the code. */
static void note_devices(struct clab_cli *cli, const struct comparison *all)
{
    for (size_t i = 0; i < all->before.n; i++) {
        if (all->before.partner[i] == NONE)
            continue;
        const char *was = device(all->before.rows[i], "name"),
                   *is = device(all->after.rows[all->before.partner[i]], "name");
        if (strcmp(was, is) == 0)
            continue;
        fprintf(cli->err, "clusterlab: note: before is %s, after is %s\n", was, is);
        return;
    }
}

int clab_cmd_compare(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {{.name = "--subset", .kind = CLAB_OPTION_FLAG}, {0}};
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
    struct comparison all = {.subset = o[0].set};
    struct clab_str text = {0};
    if (status == CLAB_OK && !(side_init(&all.before, before) && side_init(&all.after, after)))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the rows");
    for (size_t i = 0; i < 2 && status == CLAB_OK; i++)
        if ((i == 0 ? &all.before : &all.after)->n == 0) {
            clab_error_set(error, CLAB_USAGE, "%s has no row", paths[i]);
            status = clab_error_remedy(error, "clusterlab run EXPERIMENT --json FILE writes such a file");
        }
    if (status == CLAB_OK)
        compare_all(&all);
    if (status == CLAB_OK && all.pairs == 0)
        status = clab_error_set(error, CLAB_USAGE, "%s and %s have no row in common", paths[0], paths[1]);
    if (status == CLAB_OK) {
        note_devices(cli, &all);
        clab_table_print(&all.table, &text);
        fprintf(cli->out, "%s%u rows compared, %u regressions", text.text != NULL ? text.text : "", all.pairs,
                all.regressions);
        if (all.changed != 0)
            fprintf(cli->out, ", %u with changed counts", all.changed);
        if (all.only_before + all.only_after != 0)
            fprintf(cli->out, "; %u only before, %u only after", all.only_before, all.only_after);
        fputc('\n', cli->out);
    }
    clab_str_free(&text);
    clab_table_free(&all.table);
    side_fini(&all.before);
    side_fini(&all.after);
    json_decref(before);
    json_decref(after);
    return status != CLAB_OK      ? clab_status_exit(status)
           : all.regressions != 0 ? clab_status_exit(CLAB_REGRESSION)
                                  : 0;
}
