/* The matrix as people read it: a letter for each cell, the legend. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"
#include "report/table.h"

#define NEARLY_ALL   6 /* from so many targets on, those left out are named: */
#define FEW_LEFT_OUT 3

char clab_matrix_letter(const struct clab_cell *cell)
{
    if (cell->declared)
        return '-';
    if (cell->unreached)
        return '.';
    if (cell->failed != 0)
        return '!';
    switch (cell->stage) {
    case CLAB_STAGE_NONE:
        return 'x';
    case CLAB_STAGE_COMPILED:
        return 'C';
    case CLAB_STAGE_ASSEMBLED:
        return 'A';
    case CLAB_STAGE_COMPLETE:
        return cell->driver_call ? 'd' : 'K';
    case CLAB_STAGE_VERIFIED:
        return cell->driver_call ? 'v' : 'V';
    case CLAB_STAGE_GPU:
        return 'G';
    }
    return '?';
}

struct meaning {
    char letter;
    const char *colour, *text;
};
static const struct meaning meanings[] = {
    {'G', "\033[1;32m", "verified on the emulated device and on this machine's GPU"},
    {'V', "\033[32m", "complete, verified on the emulated device"},
    {'K', "\033[36m", "complete: a cubin with all that it needs"},
    {'v', "\033[33m", "verified, but built with driver calls in place of native instructions"},
    {'d', "\033[33m", "complete, with such driver calls"},
    {'A', "\033[31m", "assembles, with symbols that nobody supplies"},
    {'C', "\033[31m", "compiles, does not assemble"},
    {'x', "\033[31m", "does not compile, or is no image for this target"},
    {'!', "\033[1;31m", "ran and was wrong, or failed"},
    {'.', "\033[2m", "not tried: interrupted, or nothing here compiles it"},
    {'-', "\033[2m", "not for this target, as the kernel declares"},
};
#define N_MEANINGS (sizeof meanings / sizeof *meanings)

static const struct meaning *meaning_of(char letter)
{
    for (size_t i = 0; i < N_MEANINGS; i++)
        if (meanings[i].letter == letter)
            return &meanings[i];
    return &meanings[N_MEANINGS - 1];
}

const char *clab_matrix_colour(char letter)
{
    return meaning_of(letter)->colour;
}

const char *clab_matrix_stage(const struct clab_cell *cell)
{
    static const char *const names[] = {"none", "compiled", "assembled", "complete", "verified", "gpu"};
    return cell->declared ? "declared" : cell->unreached ? "unreached" : names[cell->stage];
}

static void print_grid(const struct clab_matrix *matrix, bool colour, bool seen[N_MEANINGS])
{
    FILE *out = matrix->cli->out;
    int width = (int)strlen("kernel");
    for (size_t i = 0; i < matrix->n_rows; i++)
        width = (int)clab_text_width(matrix->rows[i].label) > width
                    ? (int)clab_text_width(matrix->rows[i].label)
                    : width;
    fprintf(out, "%-*s", width, "kernel");
    for (size_t j = 0; j < matrix->n_archs; j++)
        fprintf(out, "  %s", matrix->archs[j]->name + strlen("sm_"));
    fputc('\n', out);
    for (size_t i = 0; i < matrix->n_rows; i++) {
        fprintf(out, "%s%*s", matrix->rows[i].label, width - (int)clab_text_width(matrix->rows[i].label), "");
        for (size_t j = 0; j < matrix->n_archs; j++) {
            const struct meaning *meaning = meaning_of(clab_matrix_letter(&matrix->rows[i].cells[j]));
            const int room = (int)strlen(matrix->archs[j]->name) - (int)strlen("sm_");
            seen[meaning - meanings] = true;
            fprintf(out, "  %*s%s%c%s", room - 1, "", colour ? meaning->colour : "", meaning->letter,
                    colour ? "\033[0m" : "");
        }
        fputc('\n', out);
    }
}

/* Where a row has the reason of its cell j: the targets' names, or those that are left out of nearly all. */
static char *places_of(const struct clab_matrix *matrix, const struct clab_subject_row *row, size_t j)
{
    size_t count = 0;
    for (size_t k = 0; k < matrix->n_archs; k++)
        count += row->cells[k].reason != NULL && strcmp(row->cells[k].reason, row->cells[j].reason) == 0;
    struct clab_str text = {0};
    const bool most = count >= NEARLY_ALL && count + FEW_LEFT_OUT >= matrix->n_archs;
    if (most)
        clab_str_add(&text, count == matrix->n_archs ? "every target" : "every target but ");
    size_t named = 0;
    for (size_t k = 0; k < matrix->n_archs; k++) {
        const bool has =
            row->cells[k].reason != NULL && strcmp(row->cells[k].reason, row->cells[j].reason) == 0;
        if (has != most)
            clab_str_addf(&text, "%s%s", named++ > 0 ? ", " : "", matrix->archs[k]->name);
    }
    return clab_str_take(&text);
}

static bool said_before(const struct clab_subject_row *row, size_t j)
{
    for (size_t k = 0; k < j; k++)
        if (row->cells[k].reason != NULL && strcmp(row->cells[k].reason, row->cells[j].reason) == 0)
            return true;
    return false;
}

static void print_reasons(const struct clab_matrix *matrix)
{
    struct clab_reasons reasons = {0};
    for (size_t i = 0; i < matrix->n_rows; i++)
        for (size_t j = 0; j < matrix->n_archs; j++) {
            const struct clab_subject_row *row = &matrix->rows[i];
            if (row->cells[j].reason == NULL || said_before(row, j))
                continue;
            char *places = places_of(matrix, row, j);
            if (places != NULL)
                clab_reasons_add(&reasons, row, &row->cells[j], ", ", places);
            free(places);
        }
    clab_reasons_print(&reasons, matrix->cli->out, matrix->all);
}

void clab_matrix_print(const struct clab_matrix *matrix)
{
    const bool colour = clab_cli_colour(matrix->cli);
    bool seen[N_MEANINGS] = {false};
    print_grid(matrix, colour, seen);
    fputc('\n', matrix->cli->out);
    for (size_t i = 0; i < N_MEANINGS; i++)
        if (seen[i])
            fprintf(matrix->cli->out, "%c  %s\n", meanings[i].letter, meanings[i].text);
    print_reasons(matrix);
}
