/* Plain text tables for a terminal, and the table of a run. */
#ifndef CLAB_REPORT_TABLE_H
#define CLAB_REPORT_TABLE_H

#include <jansson.h>

#include "base/str.h"

#define CLAB_TABLE_MAX_COLUMNS 24

struct clab_table {
    size_t n_columns, n_rows, capacity;
    const char *titles[CLAB_TABLE_MAX_COLUMNS]; /* borrowed */
    bool right[CLAB_TABLE_MAX_COLUMNS];         /* right-aligned: numbers */
    char **cells;                               /* heap; row-major */
    bool failed;
};

/* Columns that UTF-8 text takes, one for each code point (0 for NULL). */
size_t clab_text_width(const char *text);

/* Adds a column; call before the first row. */
void clab_table_column(struct clab_table *table, const char *title, bool right);
/* Starts a row; cells are set by column index and default to "". */
void clab_table_row(struct clab_table *table);
void clab_table_cell(struct clab_table *table, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Titles, a rule, rows; columns two spaces apart; no trailing blanks. */
void clab_table_print(const struct clab_table *table, struct clab_str *out);
void clab_table_free(struct clab_table *table);

/* The table of a run's row records (design 4.4): variant, cluster, swept parameters that differ, the
   experiment's columns, time, GB/s and vs baseline (empty where nothing was measured), verdict with the
   reason. */
void clab_run_table(const json_t *rows, struct clab_str *out);

#endif
