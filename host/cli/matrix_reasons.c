/* Reasons under a matrix: each once, with the places where it holds and the kernels that have it there. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"

#define FEW 8 /* so many of a longer list are shown without --all */

void clab_reasons_add(struct clab_reasons *reasons, const struct clab_subject_row *row,
                      const struct clab_cell *cell, const char *joint, const char *place)
{
    struct clab_reason *last = NULL;
    for (size_t i = reasons->count; i > 0 && last == NULL && reasons->list[i - 1].row == row; i--)
        if (strcmp(reasons->list[i - 1].cell->reason, cell->reason) == 0)
            last = &reasons->list[i - 1];
    struct clab_str where = {0};
    if (last != NULL) {
        clab_str_addf(&where, "%s%s%s", last->where, joint, place);
        char *text = clab_str_take(&where);
        if (text != NULL) {
            free(last->where);
            last->where = text;
        }
        return;
    }
    struct clab_reason *list = realloc(reasons->list, (reasons->count + 1) * sizeof *list);
    char *text = list != NULL ? strdup(place) : NULL;
    if (list != NULL)
        reasons->list = list;
    if (text != NULL)
        list[reasons->count++] = (struct clab_reason){.row = row, .cell = cell, .where = text};
}

/* The kernel, and where in its source the first cell with this reason has it: a file's row "k.ptx:7:23",
   another "reduce/cg (cg.cu:12:3)". */
static void print_kernel(const struct clab_reason *entry, FILE *out)
{
    const struct clab_cell *cell = entry->cell;
    const char *label = entry->row->label, *slash = strrchr(cell->file, '/');
    const char *file = slash != NULL ? slash + 1 : cell->file;
    const size_t bytes = strlen(file), label_bytes = strlen(label);
    const bool is_file = bytes <= label_bytes && strcmp(label + label_bytes - bytes, file) == 0;
    fputs(label, out);
    if (cell->line == 0 || bytes == 0)
        return;
    if (!is_file)
        fprintf(out, " (%s", file);
    fprintf(out, ":%u", cell->line);
    if (cell->column > 0)
        fprintf(out, ":%u", cell->column);
    fputs(is_file ? "" : ")", out);
}

/* The kernels that have this reason at the same places, from entry `first` on. */
static void print_line(struct clab_reasons *reasons, size_t first, FILE *out, bool all)
{
    const struct clab_reason *like = &reasons->list[first];
    size_t count = 0, printed = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = first; i < reasons->count; i++) {
            struct clab_reason *entry = &reasons->list[i];
            if (strcmp(entry->cell->reason, like->cell->reason) != 0 ||
                strcmp(entry->where, like->where) != 0)
                continue;
            if (pass == 0)
                count++;
            else if (all || count <= FEW + 1 || printed < FEW) {
                fputs(printed++ != 0 ? ", " : "", out);
                print_kernel(entry, out);
            }
            entry->shown = pass == 1;
            if (pass == 0 && count == 1)
                fprintf(out, "    %s: ", like->where);
        }
    if (printed < count)
        fprintf(out, " and %zu more", count - printed);
    fputc('\n', out);
}

void clab_reasons_print(struct clab_reasons *reasons, FILE *out, bool all)
{
    if (reasons->count > 0)
        fputs("\nreasons\n", out);
    for (size_t i = 0; i < reasons->count; i++) {
        if (reasons->list[i].shown)
            continue;
        size_t lines = 0, kept_back = 0;
        fprintf(out, "%s\n", reasons->list[i].cell->reason);
        for (size_t k = i; k < reasons->count; k++) {
            struct clab_reason *entry = &reasons->list[k];
            if (entry->shown || strcmp(entry->cell->reason, reasons->list[i].cell->reason) != 0)
                continue;
            if (all || lines++ < FEW)
                print_line(reasons, k, out, all);
            else {
                entry->shown = true;
                kept_back++;
            }
        }
        if (kept_back > 0)
            fprintf(out, "    and %zu more, elsewhere\n", kept_back);
    }
    for (size_t i = 0; i < reasons->count; i++)
        free(reasons->list[i].where);
    free(reasons->list);
    *reasons = (struct clab_reasons){0};
}
