/* clusterlab matrix: kernels against architectures. Each cell says how far the kernel comes: compiles
   (NVRTC), assembles (nvJitLink), is complete, runs and verifies on the emulated device and, where it is
   here, on the GPU. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/matrix.h"
#include "lab/run.h"
#include "lab/wire.h"
#include "report/record.h"

#define MAX_WORDS   256
#define GPU_SAMPLES 20 /* the times are not shown: few do */

/* --- targets */

static clab_status read_archs(const char *text, struct clab_matrix *matrix, struct clab_error *error)
{
    for (size_t i = 0; text == NULL && clab_target_at(i) != NULL; i++)
        matrix->archs[matrix->n_archs++] = clab_target_at(i);
    for (const char *p = text; p != NULL; p = *p == ',' ? p + 1 : NULL) {
        char name[32];
        const size_t bytes = strcspn(p, ",");
        const struct clab_target *target;
        snprintf(name, sizeof name, "%.*s", (int)(bytes < sizeof name ? bytes : sizeof name - 1), p);
        clab_status status = clab_target_parse(name, &target, error);
        if (status != CLAB_OK)
            return status;
        if (!target->has_clusters)
            return clab_error_set(error, CLAB_USAGE, "%s has no clusters: the matrix begins with sm_90",
                                  target->name);
        bool twice = false;
        for (size_t i = 0; i < matrix->n_archs; i++)
            twice = twice || matrix->archs[i] == target;
        if (!twice)
            matrix->archs[matrix->n_archs++] = target;
        p += bytes;
    }
    return CLAB_OK;
}

/* --- run and verify */

static const char *place_of(enum clab_stage reached)
{
    return reached == CLAB_STAGE_GPU ? "the GPU" : "the emulated device";
}

/* Whether a failed run is the end of the matrix, and no fault of the experiment's. */
static bool ends_all(clab_status status)
{
    return status == CLAB_INTERRUPTED || status == CLAB_NO_MEMORY || status == CLAB_INTERNAL;
}

/* An experiment that makes no plan for this device, or whose worker is gone. */
static void judge_refusal(struct clab_cell *cell, const struct clab_error *error, enum clab_stage reached)
{
    struct clab_str text = {0};
    clab_str_addf(&text, "on %s: ", place_of(reached));
    if (error->file[0] != '\0')
        clab_str_addf(&text, "%s:%u: ", error->file, error->line);
    clab_str_add(&text, error->message);
    cell->failed = clab_status_exit(error->status);
    free(cell->reason);
    cell->reason = clab_str_take(&text);
}

/* What the rows of a run say of a variant. */
static void judge_rows(struct clab_cell *cell, const char *variant, const json_t *rows,
                       enum clab_stage reached)
{
    const char *where = place_of(reached);
    const char *waived = NULL, *failed = NULL;
    bool ok = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *status = clab_json_text(row, "status", ""), *reason = clab_json_text(row, "reason", "");
        if (strcmp(clab_json_text(row, "variant", ""), variant) != 0 ||
            strcmp(clab_json_text(json_object_get(row, "error"), "status", ""), "INTERRUPTED") == 0)
            continue;
        if (strcmp(status, "ok") == 0)
            ok = true;
        else if (strcmp(status, "waived") == 0)
            waived = waived != NULL ? waived : reason;
        else if (failed == NULL) {
            failed = reason;
            cell->failed =
                strcmp(status, "wrong") == 0 ? clab_status_exit(CLAB_WRONG) : clab_status_exit(CLAB_FAULT);
        }
    }
    struct clab_str text = {0};
    if (failed != NULL)
        clab_str_addf(&text, "on %s: %s", where, failed);
    else if (ok)
        cell->stage = reached;
    else if (waived != NULL) {
        cell->waived = true;
        clab_str_addf(&text, "not run on %s: %s", where, waived);
    }
    if (text.text != NULL) {
        free(cell->reason);
        cell->file[0] = '\0';
        cell->line = cell->column = 0;
        cell->reason = clab_str_take(&text);
    }
    clab_str_free(&text);
}

/* Runs the variants of the experiment of row `first` that are complete for target j, on one device. */
static clab_status run_experiment(struct clab_matrix *matrix, size_t first, size_t j,
                                  struct clab_session *session, struct clab_compiler *compiler,
                                  enum clab_stage reached, struct clab_error *error)
{
    const char *experiment = matrix->rows[first].experiment;
    const char **variants = calloc(matrix->n_rows, sizeof(const char *));
    size_t count = 0;
    if (variants == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the matrix");
    for (size_t i = first; i < matrix->n_rows; i++) {
        const struct clab_subject_row *row = &matrix->rows[i];
        if (row->experiment != NULL && strcmp(row->experiment, experiment) == 0 &&
            row->cells[j].stage >= CLAB_STAGE_COMPLETE && row->cells[j].failed == 0)
            variants[count++] = row->variant;
    }
    const struct clab_run_options options = {
        .request = {.experiment = experiment, .variants = variants, .n_variants = count, .check = true},
        .arch = matrix->archs[j]->name,
        .samples = GPU_SAMPLES,
        .timeout_ms = 30000,
        .interrupted = matrix->cli->interrupted,
        .progress = clab_cli_progress,
        .context = matrix->cli,
    };
    json_t *rows = NULL, *predictions = NULL;
    int ignored = 0;
    session->on_wait = clab_cli_progress_wait;
    session->wait_context = matrix->cli;
    clab_status status =
        count == 0 ? CLAB_OK : clab_run(session, compiler, &options, &rows, &predictions, &ignored, error);
    for (size_t i = first; i < matrix->n_rows && count > 0; i++) {
        struct clab_subject_row *row = &matrix->rows[i];
        if (row->experiment == NULL || strcmp(row->experiment, experiment) != 0 ||
            row->cells[j].stage < CLAB_STAGE_COMPLETE || row->cells[j].failed != 0)
            continue;
        if (status == CLAB_OK)
            judge_rows(&row->cells[j], row->variant, rows, reached);
        else if (!ends_all(status))
            judge_refusal(&row->cells[j], error, reached);
    }
    if (!ends_all(status)) {
        clab_error_clear(error);
        status = CLAB_OK;
    }
    json_decref(rows);
    json_decref(predictions);
    free(variants);
    return status;
}

static bool first_of_experiment(const struct clab_matrix *matrix, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (matrix->rows[k].experiment != NULL && matrix->rows[i].experiment != NULL &&
            strcmp(matrix->rows[k].experiment, matrix->rows[i].experiment) == 0)
            return false;
    return matrix->rows[i].experiment != NULL;
}

static clab_status run_on(struct clab_matrix *matrix, size_t j, struct clab_session *session,
                          struct clab_compiler *compiler, enum clab_stage reached, struct clab_error *error)
{
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < matrix->n_rows && status == CLAB_OK && !*matrix->cli->interrupted; i++)
        if (first_of_experiment(matrix, i))
            status = run_experiment(matrix, i, j, session, compiler, reached, error);
    return status;
}

static clab_status run_all(struct clab_matrix *matrix, struct clab_compiler *compiler,
                           struct clab_error *error)
{
    struct clab_session gpu;
    struct clab_error no_gpu = {0};
    const bool has_gpu =
        clab_session_open(&gpu, "cuda:0", NULL, matrix->cli->interrupted, &no_gpu) == CLAB_OK;
    clab_error_clear(&no_gpu);
    int major = 0, minor = 0;
    if (has_gpu)
        (void)sscanf(clab_json_text(gpu.facts, "cc", ""), "%d.%d", &major, &minor);
    clab_status status = CLAB_OK;
    for (size_t j = 0; j < matrix->n_archs && status == CLAB_OK && !*matrix->cli->interrupted; j++) {
        const struct clab_target *arch = matrix->archs[j];
        struct clab_session session;
        char device[32];
        snprintf(device, sizeof device, "emu:%s", arch->name);
        status = clab_session_open(&session, device, NULL, matrix->cli->interrupted, error);
        if (status == CLAB_OK) {
            status = run_on(matrix, j, &session, compiler, CLAB_STAGE_VERIFIED, error);
            clab_session_close(&session);
        }
        if (status == CLAB_OK && has_gpu && arch->major == major && arch->minor == minor)
            status = run_on(matrix, j, &gpu, compiler, CLAB_STAGE_GPU, error);
    }
    if (has_gpu)
        clab_session_close(&gpu);
    return status;
}

/* --- what it says */

/* What every record of a row begins with. New reference. */
static json_t *row_record(const struct clab_subject_row *row)
{
    return json_pack("{s:s,s:s,s:s?,s:s?,s:s?,s:s?}", "kernel", row->label, "source",
                     clab_path_shown(row->source), "entry", row->entry, "experiment",
                     row->experiment != NULL ? clab_path_shown(row->experiment) : NULL, "variant",
                     row->variant, "needs", row->needs != NULL ? row->needs->name : NULL);
}

static void write_cell(struct clab_record_writer *writer, const struct clab_subject_row *row,
                       const char *built_for, const char *arch, const struct clab_cell *cell)
{
    const char letter[2] = {clab_matrix_letter(cell), '\0'};
    json_t *more =
        json_pack("{s:s?,s:s,s:s,s:s,s:b,s:b,s:b,s:s?}", "built_for", built_for, "arch", arch, "stage",
                  clab_matrix_stage(cell), "letter", letter, "driver_calls", (int)cell->driver_call, "waived",
                  (int)cell->waived, "failed", (int)(cell->failed != 0), "reason", cell->reason);
    json_t *record = row_record(row);
    json_object_update(record, more);
    if (cell->reason != NULL && cell->line > 0)
        json_object_set_new(record, "place",
                            json_pack("{s:s,s:i,s:i}", "file", clab_path_shown(cell->file), "line",
                                      (int)cell->line, "column", (int)cell->column));
    clab_record_write(writer, "matrix", NULL, record);
    json_decref(more);
    json_decref(record);
}

static void write_records(const struct clab_matrix *matrix, struct clab_record_writer *writer)
{
    for (size_t i = 0; i < json_array_size(matrix->refused); i++)
        clab_record_write(writer, "refused", NULL, json_array_get(matrix->refused, i));
    for (size_t i = 0; i < matrix->n_rows; i++)
        for (size_t j = 0; j < matrix->n_archs; j++)
            write_cell(writer, &matrix->rows[i], NULL, matrix->archs[j]->name, &matrix->rows[i].cells[j]);
    for (size_t i = 0; i < matrix->n_pairs; i++)
        write_cell(writer, &matrix->rows[matrix->pairs[i].row], matrix->pairs[i].built_for->name,
                   matrix->pairs[i].target->name, &matrix->pairs[i].cell);
    for (size_t i = 0; i < matrix->n_tries; i++) {
        const struct clab_jit_try *try = &matrix->tries[i];
        json_t *more = json_pack("{s:s,s:O,s:b,s:o,s:s?,s:s?,s:O?}", "built_for", try->built_for->name,
                                 "device", matrix->gpu, "taken", (int)try->taken, "compile_ms",
                                 try->taken ? json_real(try->ms) : json_null(), "log", try->log, "reason",
                                 try->cell.reason, "error", try->error);
        json_t *record = row_record(&matrix->rows[try->row]);
        json_object_update(record, more);
        clab_record_write(writer, "jit", NULL, record);
        json_decref(more);
        json_decref(record);
    }
}

/* 4 for what a kernel did not declare; 1 and 5 for what ran and was wrong or failed; 2 for files left out. */
static int exit_of(const struct clab_matrix *matrix)
{
    int status = matrix->refused != NULL ? clab_status_exit(CLAB_EXPERIMENT) : 0;
    for (size_t i = 0; i < matrix->n_rows; i++)
        for (size_t j = 0; j < matrix->n_archs; j++) {
            const struct clab_cell *cell = &matrix->rows[i].cells[j];
            if (!cell->declared && !cell->unreached && cell->stage < CLAB_STAGE_COMPLETE)
                status = clab_exit_worse(status, clab_status_exit(CLAB_LOAD));
            status = clab_exit_worse(status, cell->failed);
        }
    bool refused = false;
    for (size_t i = 0; i < matrix->n_pairs; i++)
        refused = refused || matrix->pairs[i].cell.stage < CLAB_STAGE_COMPLETE;
    for (size_t i = 0; i < matrix->n_tries; i++)
        refused = refused || !matrix->tries[i].taken;
    return refused ? clab_exit_worse(status, clab_status_exit(CLAB_LOAD)) : status;
}

/* Without a GPU the rest is worth having: one line says so, and *out_exit that not all was done. */
static clab_status try_jit(struct clab_matrix *matrix, struct clab_compiler *compiler, int *out_exit,
                           struct clab_error *error)
{
    struct clab_error why = {0};
    clab_status status = clab_matrix_jit(matrix, compiler, &why);
    if (status == CLAB_INTERRUPTED || status == CLAB_NO_MEMORY) {
        clab_error_copy(error, &why);
    } else if (status != CLAB_OK) {
        clab_error_context(&why, "--jit needs a GPU with clusters");
        clab_cli_say(matrix->cli, &why);
        *out_exit = clab_status_exit(matrix->gpu == NULL ? CLAB_NO_DEVICE : status);
        status = CLAB_OK;
    }
    clab_error_clear(&why);
    return status;
}

/* Each file that was left out, with its mistake; after the grid, where it is seen. */
static void say_refused(const struct clab_matrix *matrix)
{
    for (size_t i = 0; i < json_array_size(matrix->refused); i++) {
        struct clab_error error = {0};
        clab_error_from_json(json_object_get(json_array_get(matrix->refused, i), "error"), &error);
        clab_cli_say(matrix->cli, &error);
        clab_error_clear(&error);
    }
}

static void print_all(const struct clab_matrix *matrix, bool forward)
{
    if (matrix->n_rows == 0)
        return;
    clab_matrix_print(matrix);
    if (forward)
        clab_matrix_print_forward(matrix);
    clab_matrix_print_jit(matrix);
}

int clab_cmd_matrix(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},    {.name = "--json", .kind = CLAB_OPTION_TEXT},
        {.name = "--no-run", .kind = CLAB_OPTION_FLAG},  {.name = "--forward", .kind = CLAB_OPTION_FLAG},
        {.name = "--jit", .kind = CLAB_OPTION_FLAG},     {.name = "--all", .kind = CLAB_OPTION_FLAG},
        {.name = "--include", .kind = CLAB_OPTION_LIST}, {.name = "--define", .kind = CLAB_OPTION_LIST},
        {.name = "--option", .kind = CLAB_OPTION_LIST},  {.name = "--progress", .kind = CLAB_OPTION_TEXT},
        {.name = "--apart", .kind = CLAB_OPTION_FLAG},   {0}};
    const char *words[MAX_WORDS];
    size_t count;
    struct clab_matrix matrix = {.cli = cli};
    struct clab_record_writer writer = {0};
    struct clab_session session;
    struct clab_compiler_options compiler_options = {.interrupted = cli->interrupted};
    clab_status status = clab_options_parse_compiler(o, argc, argv, words, MAX_WORDS, &count, error);
    clab_cli_compiler_words(o, &matrix.words);
    const char *json = clab_option_get(o, "--json")->text;
    matrix.all = clab_option_get(o, "--all")->set;
    matrix.apart = clab_option_get(o, "--apart")->set;
    if (status == CLAB_OK)
        status = read_archs(clab_option_get(o, "--arch")->text, &matrix, error);
    if (status == CLAB_OK)
        status = clab_cli_progress_start(cli, o, error);
    if (status == CLAB_OK)
        status = clab_records_open(&writer, json, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    struct clab_compiler *compiler = clab_compiler_new(&compiler_options);
    if (compiler == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    if (status == CLAB_OK)
        status = clab_session_open(&session, "emu:sm_90", NULL, cli->interrupted, error);
    if (status == CLAB_OK) {
        status = clab_matrix_collect(&matrix, words, count, session.facts, error);
        clab_session_close(&session);
    }
    const bool collected = status == CLAB_OK;
    struct clab_error lack = {0};
    if (status == CLAB_OK)
        status = clab_matrix_compile(&matrix, compiler, &lack, error);
    const bool compiled = collected && (status == CLAB_OK || status == CLAB_INTERRUPTED);
    if (status == CLAB_OK && clab_option_get(o, "--forward")->set)
        status = clab_matrix_forward(&matrix, compiler, error);
    if (status == CLAB_OK && !clab_option_get(o, "--no-run")->set)
        status = run_all(&matrix, compiler, error);
    int jit_exit = 0;
    if (status == CLAB_OK && clab_option_get(o, "--jit")->set)
        status = try_jit(&matrix, compiler, &jit_exit, error);
    clab_cli_progress_erase(cli);
    int exit_status = clab_status_exit(status);
    if (compiled) {
        json_t *run = clab_run_record(cli->argc, cli->argv, NULL);
        clab_record_write(&writer, "run", NULL, run);
        json_decref(run);
        write_records(&matrix, &writer);
        if (json == NULL || strcmp(json, "-") != 0)
            print_all(&matrix, status == CLAB_OK && clab_option_get(o, "--forward")->set);
        fflush(cli->out);
        exit_status = clab_exit_worse(clab_exit_worse(exit_status, exit_of(&matrix)),
                                      clab_exit_worse(jit_exit, clab_status_exit(lack.status)));
        if (lack.status != CLAB_OK)
            clab_cli_say(cli, &lack);
    }
    clab_error_clear(&lack);
    say_refused(&matrix);
    if (clab_records_close(&writer, error->status == CLAB_OK ? error : NULL) != CLAB_OK)
        exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    clab_compiler_free(compiler);
    clab_matrix_free(&matrix);
    return exit_status;
}
