/* `matrix --jit`: the PTX of each kernel through the compiler in a GPU's own driver, in the device worker
   (host/compile/jit.h), with what it said and how long it took. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"
#include "lab/wire.h"
#include "report/table.h"

/* The target of the GPU with all that its chip has; NULL with an error when it is no GPU for this. */
static clab_status target_of(const json_t *facts, const struct clab_target **out, struct clab_error *error)
{
    const struct clab_target *plain = clab_target_of_device((int)clab_json_int(facts, "cc_major", 0),
                                                            (int)clab_json_int(facts, "cc_minor", 0));
    const char *name = clab_json_text(facts, "name", "cuda:0");
    if (clab_json_bool(facts, "emulated", false))
        return clab_error_set(error, CLAB_UNSUPPORTED,
                              "%s is the stand-in driver, which has no compiler to ask", name);
    if (plain == NULL || !plain->has_clusters)
        return clab_error_set(error, CLAB_NO_DEVICE, "%s has compute capability %s and no clusters", name,
                              clab_json_text(facts, "cc", "?"));
    *out = clab_target_exact(plain);
    return CLAB_OK;
}

/* One PTX in the worker. A driver that dies of it costs this one. */
static clab_status ask(struct clab_session *session, const struct clab_subject_row *row,
                       const struct clab_image *ptx, struct clab_jit_try *try, struct clab_error *error)
{
    struct clab_error refused = {0};
    json_t *answer = NULL;
    json_t *request =
        json_pack("{s:s,s:s,s:s%}", "op", "jit", "source", row->source, "ptx", ptx->data, ptx->bytes);
    if (request == NULL) {
        try->cell.reason = strdup("the PTX is not UTF-8 text, and cannot be handed to the worker");
        return CLAB_OK;
    }
    clab_status status = clab_session_ask(session, request, -1, NULL, NULL, &answer, &refused);
    const json_t *jit = json_object_get(answer, "jit");
    const char *log = status == CLAB_OK ? clab_json_text(jit, "log", NULL) : refused.log;
    try->taken = status == CLAB_OK;
    try->ms = json_number_value(json_object_get(jit, "compile_ms"));
    try->log = log != NULL ? strdup(log) : NULL;
    if (status != CLAB_OK && status != CLAB_INTERRUPTED) {
        clab_matrix_refuse(&try->cell, &refused, try->built_for->name);
        try->error = clab_error_to_json(&refused);
        status = session->alive ? CLAB_OK : clab_session_reopen(session, error);
    } else if (status == CLAB_INTERRUPTED)
        clab_error_copy(error, &refused);
    clab_error_clear(&refused);
    json_decref(answer);
    return status;
}

/* The tries of one row: PTX as it is, CUDA for each target of the matrix whose PTX the GPU may run. */
static clab_status try_row(struct clab_matrix *matrix, size_t i, const struct clab_target *gpu,
                           struct clab_compiler *compiler, struct clab_session *session,
                           struct clab_error *error)
{
    const struct clab_subject_row *row = &matrix->rows[i];
    const bool is_ptx = clab_matrix_is(row->source, ".ptx");
    clab_status status = CLAB_OK;
    if (!is_ptx && !clab_matrix_is(row->source, ".cu"))
        return CLAB_OK;
    for (size_t j = 0; j < (is_ptx ? 1 : matrix->n_archs) && status == CLAB_OK; j++) {
        const struct clab_target *target = is_ptx ? row->needs : matrix->archs[j];
        const char *options[CLAB_MATRIX_OPTIONS];
        struct clab_image ptx = {0};
        if (target == NULL || !clab_target_ptx_runs(target, gpu) ||
            (!is_ptx && clab_matrix_declared_out(row, target)))
            continue;
        const struct clab_compile_request request = clab_matrix_request(row, target, CLAB_IMAGE_PTX, options);
        /* What does not come to PTX has its reason in the grid. */
        struct clab_error ignored = {0};
        status = clab_compile(compiler, &request, &ptx, &ignored);
        clab_error_clear(&ignored);
        if (status == CLAB_OK && ptx.kind == CLAB_IMAGE_PTX) {
            struct clab_jit_try *try = &matrix->tries[matrix->n_tries++];
            *try = (struct clab_jit_try){.row = i, .built_for = target};
            status = ask(session, row, &ptx, try, error);
        } else if (status != CLAB_INTERRUPTED)
            status = CLAB_OK;
        clab_image_free(&ptx);
    }
    return status;
}

clab_status clab_matrix_jit(struct clab_matrix *matrix, struct clab_compiler *compiler,
                            struct clab_error *error)
{
    struct clab_session session;
    const struct clab_target *gpu = NULL;
    /* The driver keeps what it compiled, and would answer the second time without compiling (CUDA C++
       Programming Guide 13.0, "CUDA Environment Variables"). */
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    clab_status status = clab_session_open(&session, "cuda:0", NULL, matrix->cli->interrupted, error);
    if (status != CLAB_OK)
        return status;
    status = target_of(session.facts, &gpu, error);
    matrix->tries = calloc(matrix->n_rows * CLAB_MATRIX_ARCHS + 1, sizeof *matrix->tries);
    if (status == CLAB_OK && matrix->tries == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the driver's answers");
    if (status == CLAB_OK)
        matrix->gpu = json_incref(session.facts);
    for (size_t i = 0; i < matrix->n_rows && status == CLAB_OK; i++) {
        clab_cli_progress(matrix->cli, "driver's JIT", matrix->rows[i].label, i, matrix->n_rows);
        status = try_row(matrix, i, gpu, compiler, &session, error);
    }
    clab_session_close(&session);
    return status;
}

void clab_matrix_print_jit(const struct clab_matrix *matrix)
{
    FILE *out = matrix->cli->out;
    struct clab_reasons reasons = {0};
    int width = (int)strlen("kernel");
    if (matrix->gpu == NULL)
        return;
    for (size_t i = 0; i < matrix->n_tries; i++) {
        const int own = (int)clab_text_width(matrix->rows[matrix->tries[i].row].label);
        width = own > width ? own : width;
    }
    fprintf(out, "\nPTX through the driver's own JIT on %s\n%-*s  built for  driver\n",
            clab_json_text(matrix->gpu, "name", "cuda:0"), width, "kernel");
    for (size_t i = 0; i < matrix->n_tries; i++) {
        const struct clab_jit_try *try = &matrix->tries[i];
        const char *label = matrix->rows[try->row].label, *built_for = try->built_for->name;
        fprintf(out, "%s%*s  %-9s  ", label, width - (int)clab_text_width(label), "", built_for);
        if (try->taken)
            fprintf(out, "%.1f ms\n", try->ms);
        else
            fputs("refused\n", out);
        if (try->cell.reason != NULL)
            clab_reasons_add(&reasons, &matrix->rows[try->row], &try->cell, ", ", built_for);
    }
    clab_reasons_print(&reasons, out, matrix->all);
}
