/* The matrix as people read it: a letter for each cell, the legend, and under it each reason once. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"

char clab_matrix_letter(const struct clab_cell *cell)
{
    if (cell->declared)
        return '-';
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

static void print_grid(const struct clab_matrix *matrix, bool colour, bool seen[N_MEANINGS])
{
    FILE *out = matrix->cli->out;
    int width = (int)strlen("kernel");
    for (size_t i = 0; i < matrix->n_rows; i++)
        width = (int)strlen(matrix->rows[i].label) > width ? (int)strlen(matrix->rows[i].label) : width;
    fprintf(out, "%-*s", width, "kernel");
    for (size_t j = 0; j < matrix->n_archs; j++)
        fprintf(out, "  %s", matrix->archs[j]->name + strlen("sm_"));
    fputc('\n', out);
    for (size_t i = 0; i < matrix->n_rows; i++) {
        fprintf(out, "%-*s", width, matrix->rows[i].label);
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

/* The targets for which row i has this reason, as "sm_100, sm_100f"; the number of them. */
static size_t targets_of(const struct clab_matrix *matrix, size_t i, const char *reason, struct clab_str *out)
{
    size_t count = 0;
    for (size_t j = 0; j < matrix->n_archs; j++)
        if (matrix->rows[i].cells[j].reason != NULL && strcmp(matrix->rows[i].cells[j].reason, reason) == 0)
            clab_str_addf(out, "%s%s", count++ != 0 ? ", " : "", matrix->archs[j]->name);
    return count;
}

static bool said_before(const struct clab_matrix *matrix, size_t i, size_t j)
{
    const char *reason = matrix->rows[i].cells[j].reason;
    for (size_t k = 0; k <= i; k++)
        for (size_t l = 0; l < (k < i ? matrix->n_archs : j); l++)
            if (matrix->rows[k].cells[l].reason != NULL &&
                strcmp(matrix->rows[k].cells[l].reason, reason) == 0)
                return true;
    return false;
}

/* Each reason once, with its cells; kernels with the same targets share a line. */
static void print_reasons(const struct clab_matrix *matrix)
{
    FILE *out = matrix->cli->out;
    bool titled = false;
    for (size_t i = 0; i < matrix->n_rows; i++)
        for (size_t j = 0; j < matrix->n_archs; j++) {
            const char *reason = matrix->rows[i].cells[j].reason;
            if (reason == NULL || said_before(matrix, i, j))
                continue;
            fprintf(out, "%s%s\n", titled ? "" : "\nreasons\n", reason);
            titled = true;
            struct clab_str last = {0}, kernels = {0};
            for (size_t k = i; k <= matrix->n_rows; k++) {
                struct clab_str targets = {0};
                const size_t count = k < matrix->n_rows ? targets_of(matrix, k, reason, &targets) : 0;
                const bool same = count > 0 && last.text != NULL && strcmp(targets.text, last.text) == 0;
                if ((count > 0 || k == matrix->n_rows) && last.text != NULL && !same) {
                    fprintf(out, "    %s: %s\n", last.text, kernels.text);
                    clab_str_free(&kernels);
                }
                if (count > 0) {
                    clab_str_addf(&kernels, "%s%s", kernels.text != NULL ? ", " : "", matrix->rows[k].label);
                    clab_str_free(&last);
                    last = targets;
                } else
                    clab_str_free(&targets);
            }
            clab_str_free(&last);
            clab_str_free(&kernels);
        }
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
