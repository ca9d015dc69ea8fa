/* Cells of the matrix by the compile service: what a kernel is for, compiles (NVRTC), assembles (nvJitLink),
   is complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/matrix.h"
#include "inspect/complete.h"

/* What needs a family's instructions cannot be compiled for a plain target of it, though PTX made for the
   family assembles there. */
bool clab_matrix_declared_out(const struct clab_subject_row *row, const struct clab_target *arch)
{
    if (row->needs == NULL)
        return false;
    if (row->needs->reach == CLAB_REACH_FAMILY && arch->reach == CLAB_REACH_FORWARD &&
        clab_matrix_is(row->source, ".cu"))
        return true;
    return row->needs_chip ? !clab_target_cubin_runs(row->needs, arch)
                           : !clab_target_ptx_runs(row->needs, arch);
}

char *clab_matrix_cause(const struct clab_error *error, const char *arch)
{
    struct clab_str text = {0};
    const char *cause = error->message;
    const char *of_ptx = strstr(cause, " (line "); /* another number in each cell, of a text nobody sees */
    const bool is_numbered = of_ptx != NULL && strstr(of_ptx, " of its PTX)") != NULL;
    const size_t bytes = is_numbered ? (size_t)(of_ptx - cause) : strlen(cause);
    static const char named[] = ".target '";
    for (size_t i = 0; i < bytes;) {
        const size_t name = strlen(arch);
        /* The assembler names what the PTX says, which for CUDA sources is another one in each cell. */
        if (strncmp(cause + i, named, sizeof named - 1) == 0) {
            clab_str_add(&text, "this .target");
            i += sizeof named - 1;
            i += strcspn(cause + i, "'\n");
            i += cause[i] == '\'';
        } else if (bytes - i >= name && strncmp(cause + i, arch, name) == 0 &&
                   (cause[i + name] == '\0' || strchr("af0123456789", cause[i + name]) == NULL)) {
            clab_str_add(&text, "the target");
            i += name;
        } else
            clab_str_add_bytes(&text, &cause[i++], 1);
    }
    return clab_str_take(&text);
}

void clab_matrix_refuse(struct clab_cell *cell, const struct clab_error *error, const char *arch)
{
    free(cell->reason);
    cell->reason = clab_matrix_cause(error, arch);
    snprintf(cell->file, sizeof cell->file, "%s", error->file);
    cell->line = error->line;
    cell->column = error->column;
}

void clab_matrix_judge(const struct clab_compile_result *result, struct clab_cell *cell)
{
    struct clab_str names = {0};
    cell->stage = CLAB_STAGE_COMPLETE;
    const enum clab_complete complete =
        result->image.kind == CLAB_IMAGE_CUBIN ? clab_cubin_complete(&result->image, &names) : CLAB_COMPLETE;
    struct clab_str reason = {0};
    char **entries = NULL;
    size_t n_entries = 1;
    if (result->image.ptx != NULL && /* made here: a cubin that is given may be stripped of its names */
        clab_image_entries(&result->image, &entries, &n_entries, NULL) == CLAB_OK)
        clab_image_names_free(entries, n_entries);
    if (n_entries == 0) {
        cell->stage = CLAB_STAGE_NONE;
        clab_str_add(&reason, "there is no kernel in it");
    } else if (complete == CLAB_COMPLETE_DRIVER) {
        cell->driver_call = true;
        clab_str_addf(&reason, "driver calls in place of native instructions: %s", names.text);
    } else if (complete == CLAB_INCOMPLETE) {
        cell->stage = CLAB_STAGE_ASSEMBLED;
        clab_str_addf(&reason, "undefined: %s", names.text);
    }
    cell->reason = reason.text != NULL ? clab_str_take(&reason) : NULL;
    clab_str_free(&names);
}

struct clab_compile_request clab_matrix_request(const struct clab_subject_row *row,
                                                const struct clab_target *arch, enum clab_image_kind want,
                                                const char **options)
{
    struct clab_compile_request request = {.options = options};
    if (row->words != NULL)
        request = *row->words;
    request.source_path = row->source;
    request.arch = arch->name;
    request.want = want;
    request.entry = row->entry;
    for (size_t i = 0; i < json_array_size(row->options) && i < CLAB_MATRIX_OPTIONS; i++)
        options[request.option_count++] = json_string_value(json_array_get(row->options, i));
    return request;
}

/* One request for each cell that is tried; `want` CUBIN first, PTX for those that failed. */
struct batch {
    struct clab_compile_request *requests;
    struct clab_compile_result *results;
    struct clab_cell **cells;
    const char **options;
    size_t count;
};

static bool batch_new(struct batch *batch, size_t count)
{
    batch->requests = calloc(count + 1, sizeof *batch->requests);
    batch->results = calloc(count + 1, sizeof *batch->results);
    batch->cells = calloc(count + 1, sizeof(struct clab_cell *));
    batch->options = calloc(count * CLAB_MATRIX_OPTIONS + 1, sizeof(const char *));
    return batch->requests != NULL && batch->results != NULL && batch->cells != NULL &&
           batch->options != NULL;
}

static void batch_free(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        clab_compile_result_free(&batch->results[i]);
    free(batch->requests);
    free(batch->results);
    free(batch->cells);
    free(batch->options);
}

static void batch_add(struct batch *batch, const struct clab_subject_row *row, struct clab_cell *cell,
                      const struct clab_target *arch, enum clab_image_kind want)
{
    batch->requests[batch->count] =
        clab_matrix_request(row, arch, want, &batch->options[batch->count * CLAB_MATRIX_OPTIONS]);
    batch->cells[batch->count++] = cell;
}

/* So many rows at a time: their images are held until they are judged, some MB a row. */
#define ROWS_AT_ONCE 128

struct progress {
    struct clab_cli *cli;
    size_t before, count; /* cells judged so far, and in all */
};

static void on_compiled(void *context, size_t done, size_t count)
{
    const struct progress *progress = context;
    (void)count;
    clab_cli_progress(progress->cli, "compile", "", progress->before + done, progress->count);
}

static void on_compiled_again(void *context, size_t done, size_t count)
{
    const struct progress *progress = context;
    clab_cli_progress(progress->cli, "compile again", "", done, count);
}

static clab_status compile_rows(struct clab_matrix *matrix, size_t first, size_t end,
                                struct clab_compiler *compiler, struct progress *progress,
                                struct clab_error *out_lack, struct clab_error *error)
{
    struct batch batch = {0};
    clab_status status = CLAB_OK;
    if (!batch_new(&batch, (end - first) * matrix->n_archs))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the matrix");
    for (size_t j = 0; j < matrix->n_archs && status == CLAB_OK; j++)
        for (size_t i = first; i < end; i++) {
            struct clab_subject_row *row = &matrix->rows[i];
            if (row->cells[j].declared)
                continue;
            batch_add(&batch, row, &row->cells[j], matrix->archs[j], CLAB_IMAGE_CUBIN);
            batch.requests[batch.count - 1].per_chip = !matrix->apart;
        }
    if (status == CLAB_OK)
        clab_compile_all(compiler, batch.requests, batch.count, batch.results, on_compiled, progress);
    progress->before += batch.count;
    struct batch again = {0};
    if (status == CLAB_OK && !batch_new(&again, batch.count))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the matrix");
    for (size_t i = 0; i < batch.count && (status == CLAB_OK || status == CLAB_INTERRUPTED); i++) {
        struct clab_compile_result *result = &batch.results[i];
        batch.cells[i]->unreached = false;
        if (result->status == CLAB_OK)
            clab_matrix_judge(result, batch.cells[i]);
        else if (result->status == CLAB_INTERRUPTED) {
            status = (clab_error_copy(error, &result->error), result->status);
            batch.cells[i]->unreached = true;
        } else if (result->status == CLAB_NO_TOOLKIT) {
            clab_error_copy(out_lack, &result->error);
            batch.cells[i]->unreached = true;
            const char *needs = strstr(result->error.message, " needs "); /* the same for every file */
            batch.cells[i]->reason = strdup(needs != NULL ? needs + 1 : result->error.message);
        } else {
            clab_matrix_refuse(batch.cells[i], &result->error, batch.requests[i].arch);
            /* A wrapper of CUDA's headers that is not for this target: NVRTC went along, the assembler would
               not. */
            if (clab_matrix_is(batch.requests[i].source_path, ".cu") && result->status == CLAB_PTX_TARGET)
                batch.cells[i]->stage = CLAB_STAGE_COMPILED;
            else if (clab_matrix_is(batch.requests[i].source_path, ".cu")) {
                again.requests[again.count] = batch.requests[i];
                again.requests[again.count].want = CLAB_IMAGE_PTX;
                again.cells[again.count++] = batch.cells[i];
            }
        }
    }
    if (status == CLAB_OK)
        clab_compile_all(compiler, again.requests, again.count, again.results, on_compiled_again, progress);
    for (size_t i = 0; i < again.count; i++) {
        const clab_status second = again.results[i].status;
        if (status == CLAB_OK && second == CLAB_INTERRUPTED)
            status = (clab_error_copy(error, &again.results[i].error), second);
        again.cells[i]->unreached =
            status == CLAB_INTERRUPTED && again.results[i].image.kind == CLAB_IMAGE_NONE;
        if (second == CLAB_OK && again.results[i].image.kind != CLAB_IMAGE_NONE)
            again.cells[i]->stage = CLAB_STAGE_COMPILED;
    }
    batch_free(&batch);
    batch_free(&again);
    return status;
}

clab_status clab_matrix_compile(struct clab_matrix *matrix, struct clab_compiler *compiler,
                                struct clab_error *out_lack, struct clab_error *error)
{
    struct progress progress = {.cli = matrix->cli};
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < matrix->n_rows; i++)
        for (size_t j = 0; j < matrix->n_archs; j++) {
            struct clab_cell *cell = &matrix->rows[i].cells[j];
            cell->declared = clab_matrix_declared_out(&matrix->rows[i], matrix->archs[j]);
            cell->unreached = !cell->declared; /* until it is judged */
            progress.count += !cell->declared;
        }
    for (size_t first = 0; first < matrix->n_rows && status == CLAB_OK; first += ROWS_AT_ONCE) {
        const size_t left = matrix->n_rows - first, end = first + (left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        status = compile_rows(matrix, first, end, compiler, &progress, out_lack, error);
    }
    return status;
}
