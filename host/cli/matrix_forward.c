/* Forward compatibility: the PTX of a kernel, built for one target, assembled for every target that may run
   it (PTX ISA 9.0, "PTX Module Directives: .target"), as the driver's JIT does with PTX that is older than
   the GPU. The assembler is nvJitLink's, which need not be the driver's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"

/* PTX of a row for one target; a file's own text where the row is PTX. */
struct built {
    size_t row;
    const struct clab_target *target;
    char *path, *text; /* heap; the path ends in .ptx */
};

struct builds {
    struct built *list;
    size_t count;
};

struct place {
    struct clab_matrix *matrix;
    const char *stage;
    size_t before, count;
};

static void on_done(void *context, size_t done, size_t count)
{
    const struct place *place = context;
    (void)count;
    clab_cli_progress(place->matrix->cli, place->stage, "", place->before + done, place->count);
}

static clab_status no_memory(struct clab_error *error)
{
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for forward compatibility");
}

/* Keeps the PTX that a request came to. What did not compile has its reason in the first grid. */
static clab_status keep(struct builds *builds, size_t row, const struct clab_target *target,
                        const struct clab_compile_result *result, struct clab_error *error)
{
    if (result->status == CLAB_INTERRUPTED || result->status == CLAB_NO_TOOLKIT)
        return clab_error_copy(error, &result->error), result->status;
    if (result->status != CLAB_OK || result->image.kind != CLAB_IMAGE_PTX)
        return CLAB_OK;
    struct clab_str path = {0};
    clab_str_addf(&path, "%s.%s.ptx", result->image.source_path, target->name);
    struct built built = {.row = row,
                          .target = target,
                          .path = clab_str_take(&path),
                          .text = strndup(result->image.data, result->image.bytes)};
    struct built *list = realloc(builds->list, (builds->count + 1) * sizeof *list);
    if (list != NULL)
        builds->list = list;
    if (list == NULL || built.path == NULL || built.text == NULL) {
        free(built.path);
        free(built.text);
        return no_memory(error);
    }
    list[builds->count++] = built;
    return CLAB_OK;
}

/* What a row is built for: PTX for what it names, CUDA for every target of the matrix that it is for. */
static bool builds_for(const struct clab_subject_row *row, const struct clab_target *target, bool in_matrix)
{
    if (clab_matrix_is(row->source, ".ptx"))
        return row->needs == target;
    return in_matrix && clab_matrix_is(row->source, ".cu") && !clab_matrix_declared_out(row, target);
}

static clab_status build_all(struct clab_matrix *matrix, struct clab_compiler *compiler,
                             struct builds *builds, struct clab_error *error)
{
    const size_t most = matrix->n_rows * (CLAB_MATRIX_ARCHS + 1);
    struct clab_compile_request *requests = calloc(most + 1, sizeof *requests);
    struct clab_compile_result *results = calloc(most + 1, sizeof *results);
    size_t *rows = calloc(most + 1, sizeof *rows), count = 0;
    const char **options = calloc(most * CLAB_MATRIX_OPTIONS + 1, sizeof(const char *));
    clab_status status =
        requests != NULL && results != NULL && rows != NULL && options != NULL ? CLAB_OK : no_memory(error);
    for (size_t i = 0; i < matrix->n_rows && status == CLAB_OK; i++) {
        const struct clab_subject_row *row = &matrix->rows[i];
        for (size_t j = 0; j <= matrix->n_archs; j++) {
            /* The last is PTX's own target, which need not be in the matrix. */
            const struct clab_target *target = j < matrix->n_archs ? matrix->archs[j] : row->needs;
            bool again = false;
            for (size_t k = 0; k < j; k++)
                again = again || matrix->archs[k] == target;
            if (target == NULL || again || !builds_for(row, target, j < matrix->n_archs))
                continue;
            rows[count] = i;
            requests[count] =
                clab_matrix_request(row, target, CLAB_IMAGE_PTX, &options[count * CLAB_MATRIX_OPTIONS]);
            count++;
        }
    }
    struct place place = {.matrix = matrix, .stage = "compile for", .count = count};
    if (status == CLAB_OK && count > 0)
        clab_compile_all(compiler, requests, count, results, on_done, &place);
    for (size_t i = 0; i < count; i++) {
        if (status == CLAB_OK)
            status = keep(builds, rows[i], clab_target_find(requests[i].arch), &results[i], error);
        clab_compile_result_free(&results[i]);
    }
    free(requests);
    free(results);
    free(rows);
    free(options);
    return status;
}

static void judge(const char *source, const struct clab_compile_result *result, struct clab_pair *pair)
{
    pair->cell.stage = CLAB_STAGE_COMPILED;
    if (result->status == CLAB_OK)
        clab_matrix_judge(result, &pair->cell);
    else {
        clab_matrix_refuse(&pair->cell, &result->error, pair->target->name);
        if (clab_matrix_is(source, ".ptx"))
            snprintf(pair->cell.file, sizeof pair->cell.file, "%s", source);
        else
            pair->cell.line = pair->cell.column = 0; /* of PTX that nobody sees */
    }
}

/* Pairs [first, end) in one batch: as many as one build has, so that no more than a target's cubins are held
 * at a time. */
static clab_status assemble(struct clab_matrix *matrix, struct clab_compiler *compiler,
                            const struct builds *builds, const size_t *of, size_t first, size_t end,
                            struct clab_error *error)
{
    const size_t count = end - first;
    struct clab_compile_request *requests = calloc(count + 1, sizeof *requests);
    struct clab_compile_result *results = calloc(count + 1, sizeof *results);
    clab_status status = requests != NULL && results != NULL ? CLAB_OK : no_memory(error);
    for (size_t i = 0; i < count && status == CLAB_OK; i++) {
        const struct built *built = &builds->list[of[first + i]];
        requests[i] = (struct clab_compile_request){.source_path = built->path,
                                                    .source_text = built->text,
                                                    .arch = matrix->pairs[first + i].target->name,
                                                    .want = CLAB_IMAGE_CUBIN};
    }
    struct place place = {.matrix = matrix, .stage = "assemble", .before = first, .count = matrix->n_pairs};
    if (status == CLAB_OK)
        clab_compile_all(compiler, requests, count, results, on_done, &place);
    for (size_t i = 0; results != NULL && i < count; i++) {
        if (status == CLAB_OK &&
            (results[i].status == CLAB_INTERRUPTED || results[i].status == CLAB_NO_TOOLKIT)) {
            status = results[i].status;
            clab_error_copy(error, &results[i].error);
        } else if (status == CLAB_OK)
            judge(matrix->rows[matrix->pairs[first + i].row].source, &results[i], &matrix->pairs[first + i]);
        clab_compile_result_free(&results[i]);
    }
    free(requests);
    free(results);
    return status;
}

#define BATCH 256

clab_status clab_matrix_forward(struct clab_matrix *matrix, struct clab_compiler *compiler,
                                struct clab_error *error)
{
    struct builds builds = {0};
    clab_status status = build_all(matrix, compiler, &builds, error);
    size_t *of = calloc(builds.count * CLAB_MATRIX_ARCHS + 1, sizeof *of);
    matrix->pairs = calloc(builds.count * CLAB_MATRIX_ARCHS + 1, sizeof *matrix->pairs);
    if (status == CLAB_OK && (of == NULL || matrix->pairs == NULL))
        status = no_memory(error);
    for (size_t i = 0; i < builds.count && status == CLAB_OK; i++)
        for (size_t j = 0; j < matrix->n_archs; j++)
            if (clab_target_ptx_runs(builds.list[i].target, matrix->archs[j])) {
                of[matrix->n_pairs] = i;
                matrix->pairs[matrix->n_pairs++] = (struct clab_pair){.row = builds.list[i].row,
                                                                      .built_for = builds.list[i].target,
                                                                      .target = matrix->archs[j]};
            }
    size_t done = 0;
    while (done < matrix->n_pairs && status == CLAB_OK) {
        const size_t end = done + BATCH < matrix->n_pairs ? done + BATCH : matrix->n_pairs;
        status = assemble(matrix, compiler, &builds, of, done, end, error);
        done = end;
    }
    if (status != CLAB_OK) { /* half of it would say less than nothing */
        for (size_t i = 0; i < matrix->n_pairs; i++)
            free(matrix->pairs[i].cell.reason);
        matrix->n_pairs = 0;
    }
    for (size_t i = 0; i < builds.count; i++) {
        free(builds.list[i].path);
        free(builds.list[i].text);
    }
    free(builds.list);
    free(of);
    return status;
}

/* --- what it says */

static int by_target(const void *a, const void *b)
{
    const struct clab_target *left = *(const struct clab_target *const *)a;
    const struct clab_target *right = *(const struct clab_target *const *)b;
    return left->number != right->number ? left->number - right->number
                                         : (int)left->reach - (int)right->reach;
}

/* The targets that something was built for, in order; their number. */
static size_t built_targets(const struct clab_matrix *matrix, const struct clab_target **out)
{
    size_t count = 0;
    for (size_t i = 0; i < matrix->n_pairs; i++) {
        bool there = false;
        for (size_t k = 0; k < count; k++)
            there = there || out[k] == matrix->pairs[i].built_for;
        if (!there)
            out[count++] = matrix->pairs[i].built_for;
    }
    if (count > 0)
        qsort(out, count, sizeof(const struct clab_target *), by_target);
    return count;
}

/* "-" nothing was tried, a letter for one kernel, else complete/tried. */
static const char *cell_text(const struct clab_matrix *matrix, const struct clab_target *built_for,
                             const struct clab_target *target, char *text, size_t bytes)
{
    size_t tried = 0, complete = 0;
    char letter = '-';
    for (size_t i = 0; i < matrix->n_pairs; i++) {
        const struct clab_pair *pair = &matrix->pairs[i];
        if (pair->built_for != built_for || pair->target != target)
            continue;
        tried++;
        complete += pair->cell.stage >= CLAB_STAGE_COMPLETE;
        letter = clab_matrix_letter(&pair->cell);
    }
    if (matrix->n_rows == 1 || tried == 0)
        snprintf(text, bytes, "%c", letter);
    else
        snprintf(text, bytes, "%zu/%zu", complete, tried);
    return clab_matrix_colour(tried == 0            ? '-'
                              : matrix->n_rows == 1 ? letter
                              : complete == tried   ? 'K'
                                                    : 'C');
}

static void print_pairs(const struct clab_matrix *matrix, const struct clab_target *const *built,
                        size_t n_built)
{
    FILE *out = matrix->cli->out;
    const bool colour = clab_cli_colour(matrix->cli);
    char text[48];
    int width = 4;
    for (size_t i = 0; i < n_built; i++)
        for (size_t j = 0; j < matrix->n_archs; j++) {
            (void)cell_text(matrix, built[i], matrix->archs[j], text, sizeof text);
            width = (int)strlen(text) > width ? (int)strlen(text) : width;
        }
    fprintf(out, "\nPTX, built for (down) and assembled for (across)\n%-9s", "");
    for (size_t j = 0; j < matrix->n_archs; j++)
        fprintf(out, "  %*s", width, matrix->archs[j]->name + strlen("sm_"));
    fputc('\n', out);
    for (size_t i = 0; i < n_built; i++) {
        fprintf(out, "%-9s", built[i]->name);
        for (size_t j = 0; j < matrix->n_archs; j++) {
            const char *shown = cell_text(matrix, built[i], matrix->archs[j], text, sizeof text);
            fprintf(out, "  %*s%s%s%s", width - (int)strlen(text), "", colour ? shown : "", text,
                    colour ? "\033[0m" : "");
        }
        fputc('\n', out);
    }
    fputs(matrix->n_rows == 1 ? "\n-  such PTX is not for that target (the other letters as above)\n"
                              : "\nn/m  of m kernels, n are complete;  -  such PTX is not for that target\n",
          out);
}

void clab_matrix_print_forward(const struct clab_matrix *matrix)
{
    const struct clab_target **built = calloc(matrix->n_pairs + 1, sizeof(const struct clab_target *));
    const size_t n_built = built != NULL ? built_targets(matrix, built) : 0;
    if (n_built > 0)
        print_pairs(matrix, built, n_built);
    else
        fputs("\nno PTX to assemble for another target\n", matrix->cli->out);
    struct clab_reasons reasons = {0};
    for (size_t i = 0; i < matrix->n_pairs; i++) {
        const struct clab_pair *pair = &matrix->pairs[i];
        char place[64];
        if (pair->cell.reason == NULL)
            continue;
        /* Pairs of one build are neighbours: it is named once. */
        bool named = false;
        for (size_t k = i; k > 0 && !named && matrix->pairs[k - 1].row == pair->row &&
                           matrix->pairs[k - 1].built_for == pair->built_for;
             k--)
            named = matrix->pairs[k - 1].cell.reason != NULL &&
                    strcmp(matrix->pairs[k - 1].cell.reason, pair->cell.reason) == 0;
        snprintf(place, sizeof place, "%s on %s", pair->built_for->name, pair->target->name);
        clab_reasons_add(&reasons, &matrix->rows[pair->row], &pair->cell, named ? ", " : "; ",
                         named ? pair->target->name : place);
    }
    clab_reasons_print(&reasons, matrix->cli->out, matrix->all);
    free((void *)built);
}
