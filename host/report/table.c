/* Text tables. Widths are counted in code points, which is right for the characters that we print. */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void clab_table_column(struct clab_table *table, const char *title, bool right)
{
    if (table->n_columns == CLAB_TABLE_MAX_COLUMNS || table->n_rows != 0) {
        table->failed = true;
        return;
    }
    table->titles[table->n_columns] = title;
    table->right[table->n_columns++] = right;
}

void clab_table_row(struct clab_table *table)
{
    if (table->n_rows == table->capacity) {
        size_t capacity = table->capacity != 0 ? table->capacity * 2 : 16;
        char **cells = realloc(table->cells, capacity * table->n_columns * sizeof *cells);
        if (cells == NULL) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    for (size_t i = 0; i < table->n_columns; i++)
        table->cells[table->n_rows * table->n_columns + i] = NULL;
    table->n_rows++;
}

void clab_table_cell(struct clab_table *table, size_t column, const char *format, ...)
{
    if (table->failed || table->n_rows == 0 || column >= table->n_columns)
        return;
    char **cell = &table->cells[(table->n_rows - 1) * table->n_columns + column];
    va_list args;
    va_start(args, format);
    free(*cell);
    if (vasprintf(cell, format, args) < 0) {
        *cell = NULL;
        table->failed = true;
    }
    va_end(args);
}

size_t clab_text_width(const char *text)
{
    size_t n = 0;
    for (; text != NULL && *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put(struct clab_str *line, const char *text, size_t wide, bool right)
{
    size_t blanks = wide > clab_text_width(text) ? wide - clab_text_width(text) : 0;
    if (right)
        clab_str_addf(line, "%*s", (int)blanks, "");
    clab_str_add(line, text != NULL ? text : "");
    if (!right)
        clab_str_addf(line, "%*s", (int)blanks, "");
}

static void end_line(struct clab_str *line, struct clab_str *out)
{
    while (line->bytes > 0 && line->text[line->bytes - 1] == ' ')
        line->text[--line->bytes] = '\0';
    clab_str_addf(out, "%s\n", line->text != NULL ? line->text : "");
    clab_str_free(line);
}

void clab_table_print(const struct clab_table *table, struct clab_str *out)
{
    size_t wide[CLAB_TABLE_MAX_COLUMNS];
    for (size_t c = 0; c < table->n_columns; c++) {
        wide[c] = clab_text_width(table->titles[c]);
        for (size_t r = 0; r < table->n_rows; r++)
            if (clab_text_width(table->cells[r * table->n_columns + c]) > wide[c])
                wide[c] = clab_text_width(table->cells[r * table->n_columns + c]);
    }
    struct clab_str line = {0};
    for (size_t c = 0; c < table->n_columns; c++) {
        clab_str_add(&line, c != 0 ? "  " : "");
        put(&line, table->titles[c], wide[c], table->right[c]);
    }
    end_line(&line, out);
    for (size_t c = 0; c < table->n_columns; c++) {
        clab_str_add(&line, c != 0 ? "  " : "");
        for (size_t i = 0; i < wide[c]; i++)
            clab_str_add(&line, "-");
    }
    end_line(&line, out);
    for (size_t r = 0; r < table->n_rows; r++) {
        for (size_t c = 0; c < table->n_columns; c++) {
            clab_str_add(&line, c != 0 ? "  " : "");
            put(&line, table->cells[r * table->n_columns + c], wide[c], table->right[c]);
        }
        end_line(&line, out);
    }
}

void clab_table_free(struct clab_table *table)
{
    for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
        free(table->cells[i]);
    free(table->cells);
    memset(table, 0, sizeof *table);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* Parameters whose value differs between rows, the cluster apart (it has a column of its own). */
static json_t *varying(const json_t *rows)
{
    json_t *names = json_object();
    const json_t *first = json_object_get(json_array_get(rows, 0), "params");
    for (size_t i = 1; i < json_array_size(rows); i++) {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(json_array_get(rows, i), "params"), key, value)
        {
            if (strcmp(key, "cluster") != 0 && !json_equal(value, json_object_get(first, key)))
                json_object_set_new(names, key, json_true());
        }
    }
    return names;
}

static void number_cell(struct clab_table *table, size_t column, const json_t *value)
{
    if (json_is_integer(value))
        clab_table_cell(table, column, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        clab_table_cell(table, column, "%.6g", json_real_value(value));
    else if (json_is_string(value))
        clab_table_cell(table, column, "%s", json_string_value(value));
}

static void cluster_cell(struct clab_table *table, size_t column, const json_t *cluster)
{
    json_int_t size[3] = {1, 1, 1};
    if (json_is_integer(cluster)) {
        clab_table_cell(table, column, "%lld", (long long)json_integer_value(cluster));
        return;
    }
    if (!json_is_array(cluster)) {
        clab_table_cell(table, column, "-");
        return;
    }
    for (size_t i = 0; i < 3 && i < json_array_size(cluster); i++)
        size[i] = json_integer_value(json_array_get(cluster, i));
    if (size[2] > 1)
        clab_table_cell(table, column, "%lldx%lldx%lld", (long long)size[0], (long long)size[1],
                        (long long)size[2]);
    else if (size[1] > 1)
        clab_table_cell(table, column, "%lldx%lld", (long long)size[0], (long long)size[1]);
    else
        clab_table_cell(table, column, "%lld", (long long)size[0]);
}

/* The cluster that a row was launched with; a row that was waived before there was a launch has the one that
   was asked for, as a list or a number. */
static const json_t *row_cluster(const json_t *row)
{
    const json_t *launch = json_object_get(row, "launch"), *launched = json_object_get(launch, "cluster");
    if (json_is_array(launched) || json_is_array(json_object_get(launch, "grid")))
        return launched;
    return json_object_get(json_object_get(row, "params"), "cluster");
}

static void verdict_cell(struct clab_table *table, size_t column, const json_t *row)
{
    const char *status = text_of(row, "status"), *reason = text_of(row, "reason");
    const bool noisy = json_is_true(json_object_get(json_object_get(row, "time"), "noisy"));
    if (strcmp(status, "ok") == 0)
        clab_table_cell(table, column, "%s", noisy ? "ok, noisy" : "ok");
    else
        clab_table_cell(table, column, "%s%s%s", status, reason[0] != '\0' ? ": " : "", reason);
}

static bool any_hot(const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (json_is_object(json_object_get(json_object_get(json_array_get(rows, i), "time"), "hot_ns")))
            return true;
    return false;
}

static void hot_cell(struct clab_table *table, size_t column, const json_t *row)
{
    const json_t *hot = json_object_get(json_object_get(row, "time"), "hot_ns");
    const json_t *median = json_object_get(hot, "median");
    if (!json_is_number(median))
        return;
    clab_table_cell(table, column, "%.2f%s%s", json_number_value(median) / 1000,
                    json_is_true(json_object_get(hot, "includes_reset")) ? " with reset" : "",
                    json_is_true(json_object_get(hot, "host_bound")) ? " (host bound)" : "");
}

void clab_run_table(const json_t *rows, struct clab_str *out)
{
    struct clab_table table = {0};
    json_t *params = varying(rows), *columns = json_object();
    const char *key;
    json_t *value;
    for (size_t i = 0; i < json_array_size(rows); i++)
        json_object_update(columns, json_object_get(json_array_get(rows, i), "columns"));
    clab_table_column(&table, "variant", false);
    clab_table_column(&table, "cluster", true);
    json_object_foreach(params, key, value)
    {
        clab_table_column(&table, key, true);
    }
    json_object_foreach(columns, key, value)
    {
        clab_table_column(&table, key, true);
    }
    const size_t time_column = table.n_columns;
    /* Labelled once there are both: cold is one launch after an L2 flush, hot a mean over launches back to
     * back. */
    const bool hot_column = any_hot(rows);
    clab_table_column(&table, hot_column ? "cold us" : "time us", true);
    clab_table_column(&table, "GB/s", true);
    clab_table_column(&table, "vs baseline", true);
    if (hot_column)
        clab_table_column(&table, "hot us", true);
    const size_t verdict_column = table.n_columns;
    clab_table_column(&table, "verdict", false);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *rates = json_object_get(row, "rates");
        const json_t *cold = json_object_get(json_object_get(row, "time"), "cold_ns");
        const json_t *median = json_object_get(cold, "median"), *speed = json_object_get(rates, "gb_per_s");
        const json_t *ratio = json_object_get(json_object_get(rates, "vs_baseline"), "ratio");
        size_t column = 2;
        clab_table_row(&table);
        clab_table_cell(&table, 0, "%s", text_of(row, "variant"));
        cluster_cell(&table, 1, row_cluster(row));
        json_object_foreach(params, key, value)
        {
            number_cell(&table, column++, json_object_get(json_object_get(row, "params"), key));
        }
        json_object_foreach(columns, key, value)
        {
            number_cell(&table, column++, json_object_get(json_object_get(row, "columns"), key));
        }
        if (json_is_number(median))
            clab_table_cell(&table, time_column, "%.2f", json_number_value(median) / 1000);
        if (json_is_number(speed))
            clab_table_cell(&table, time_column + 1, "%.0f", json_number_value(speed));
        if (json_is_number(ratio))
            clab_table_cell(&table, time_column + 2, "%.3f", json_number_value(ratio));
        if (hot_column)
            hot_cell(&table, time_column + 3, row);
        verdict_cell(&table, verdict_column, row);
    }
    clab_table_print(&table, out);
    clab_table_free(&table);
    json_decref(params);
    json_decref(columns);
}
