/* clusterlab compare: the rows of two record files, paired by experiment, variant and parameters. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lab/wire.h"
#include "report/record.h"
#include "report/table.h"

static bool is_row(const json_t *record)
{
    return strcmp(clab_json_text(record, "type", ""), "row") == 0;
}

static const json_t *partner(const json_t *records, const json_t *row)
{
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *other = json_array_get(records, i);
        if (is_row(other) && json_equal(json_object_get(other, "experiment"), json_object_get(row, "experiment")) &&
            json_equal(json_object_get(other, "variant"), json_object_get(row, "variant")) &&
            json_equal(json_object_get(other, "params"), json_object_get(row, "params")))
            return other;
    }
    return NULL;
}

static double cold(const json_t *row, const char *which)
{
    return json_number_value(json_object_get(json_object_get(json_object_get(row, "time"), "cold_ns"), which));
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
    struct clab_table table = {0};
    struct clab_str text = {0};
    unsigned regressions = 0, pairs = 0;
    clab_table_column(&table, "variant", false);
    clab_table_column(&table, "params", false);
    clab_table_column(&table, "before us", true);
    clab_table_column(&table, "after us", true);
    clab_table_column(&table, "after/before", true);
    clab_table_column(&table, "verdict", false);
    for (size_t i = 0; status == CLAB_OK && i < json_array_size(before); i++) {
        const json_t *a = json_array_get(before, i);
        if (!is_row(a))
            continue;
        const json_t *b = partner(after, a);
        char *params = json_dumps(json_object_get(a, "params"), JSON_COMPACT);
        clab_table_row(&table);
        clab_table_cell(&table, 0, "%s", clab_json_text(a, "variant", ""));
        clab_table_cell(&table, 1, "%s", params != NULL ? params : "");
        free(params);
        if (b == NULL) {
            clab_table_cell(&table, 5, "only before");
            continue;
        }
        pairs++;
        const char *was = clab_json_text(a, "status", ""), *is = clab_json_text(b, "status", "");
        const double x = cold(a, "median"), y = cold(b, "median");
        if (x > 0)
            clab_table_cell(&table, 2, "%.2f", x / 1000);
        if (y > 0)
            clab_table_cell(&table, 3, "%.2f", y / 1000);
        if (strcmp(was, "ok") == 0 && strcmp(is, "ok") != 0) {
            clab_table_cell(&table, 5, "regression: was ok, is %s", is);
            regressions++;
        } else if (x > 0 && y > 0) {
            /* Slower beyond what both spreads explain: the 5 % quantile after lies above the 95 % quantile before. */
            const bool slower = cold(b, "p05") > cold(a, "p95"), faster = cold(b, "p95") < cold(a, "p05");
            clab_table_cell(&table, 4, "%.3f", y / x);
            clab_table_cell(&table, 5, "%s", slower ? "regression: slower" : faster ? "faster" : "same within the spread");
            regressions += slower;
        } else {
            clab_table_cell(&table, 5, "%s", strcmp(was, is) == 0 ? is : "changed");
        }
    }
    if (status == CLAB_OK) {
        clab_table_print(&table, &text);
        fprintf(cli->out, "%s%u rows compared, %u regressions\n", text.text != NULL ? text.text : "", pairs, regressions);
    }
    if (status == CLAB_OK && pairs == 0)
        status = clab_error_set(error, CLAB_USAGE, "%s and %s have no row in common", paths[0], paths[1]);
    clab_str_free(&text);
    clab_table_free(&table);
    json_decref(before);
    json_decref(after);
    return status != CLAB_OK ? clab_status_exit(status) : regressions != 0 ? clab_status_exit(CLAB_REGRESSION) : 0;
}
