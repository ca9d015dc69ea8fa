/* The rows of `clusterlab matrix`: from words of the command line to kernels. */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/matrix.h"
#include "compile/image.h"
#include "inspect/inspect.h"
#include "lab/experiment.h"
#include "lab/find.h"
#include "lab/wire.h"

bool clab_matrix_is(const char *text, const char *end)
{
    const size_t bytes = strlen(text), tail = strlen(end);
    return bytes > tail && strcmp(text + bytes - tail, end) == 0;
}

static bool is_kernel_file(const char *path)
{
    return clab_matrix_is(path, ".cu") || clab_matrix_is(path, ".ptx") || clab_matrix_is(path, ".cubin");
}

static struct clab_subject_row *add_row(struct clab_matrix *matrix, const char *label, const char *source,
                                        const char *entry)
{
    struct clab_subject_row *rows = realloc(matrix->rows, (matrix->n_rows + 1) * sizeof *rows);
    if (rows == NULL)
        return NULL;
    matrix->rows = rows;
    struct clab_subject_row *row = &rows[matrix->n_rows];
    *row = (struct clab_subject_row){
        .label = strdup(label), .source = strdup(source), .entry = entry != NULL ? strdup(entry) : NULL};
    if (row->label == NULL || row->source == NULL || (entry != NULL && row->entry == NULL)) {
        free(row->label);
        free(row->source);
        free(row->entry);
        return NULL;
    }
    matrix->n_rows++;
    return row;
}

static clab_status no_memory(struct clab_error *error)
{
    return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the rows of the matrix");
}

/* Takes the error off the command and keeps it with the file: one bad file does not cost the others. What is
   not the file's fault stays an error. */
static clab_status refuse(struct clab_matrix *matrix, const char *file, struct clab_error *error)
{
    if (error->status == CLAB_NO_MEMORY || error->status == CLAB_INTERNAL ||
        error->status == CLAB_INTERRUPTED)
        return error->status;
    if (matrix->refused == NULL)
        matrix->refused = json_array();
    if (json_array_append_new(matrix->refused, json_pack("{s:s,s:o}", "file", clab_path_shown(file), "error",
                                                         clab_error_to_json(error))) != 0)
        return no_memory(error);
    clab_error_clear(error);
    return CLAB_OK;
}

static clab_status add_experiment(struct clab_matrix *matrix, const char *experiment, const json_t *facts,
                                  struct clab_error *error)
{
    const struct clab_lab_request request = {.experiment = experiment, .device = facts, .check = true};
    json_t *plan = NULL;
    char *found = NULL;
    clab_status status = clab_experiment_find(experiment, &found, error);
    if (status == CLAB_OK && clab_lab_plan(&request, &plan, error) != CLAB_OK)
        status = refuse(matrix, found, error);
    free(found);
    const char *name = clab_json_text(plan, "experiment", ""), *file = clab_json_text(plan, "file", "");
    const json_t *variants = json_object_get(plan, "variants");
    for (size_t i = 0; i < json_array_size(variants) && status == CLAB_OK; i++) {
        const json_t *variant = json_array_get(variants, i);
        char label[256];
        snprintf(label, sizeof label, "%s/%s", name, clab_json_text(variant, "name", ""));
        struct clab_subject_row *row = add_row(matrix, label, clab_json_text(variant, "source", ""),
                                               clab_json_text(variant, "entry", NULL));
        if (row == NULL || (row->experiment = strdup(file)) == NULL ||
            (row->variant = strdup(clab_json_text(variant, "name", ""))) == NULL) {
            status = no_memory(error);
            break;
        }
        row->options = json_incref(json_object_get(variant, "options"));
        row->needs = clab_target_find(clab_json_text(variant, "requires", "sm_90"));
    }
    json_decref(plan);
    return status;
}

/* What a file says it is for: PTX by .target, a cubin by its chip. A file that cannot be read as either says
   nothing here and is refused when it is compiled. */
static void read_needs(struct clab_subject_row *row)
{
    struct clab_image image = {0};
    if (!clab_matrix_is(row->source, ".cu") && clab_image_read(row->source, &image, NULL) == CLAB_OK &&
        (image.kind == CLAB_IMAGE_PTX || image.kind == CLAB_IMAGE_CUBIN)) {
        row->needs = clab_target_find(image.arch);
        row->needs_chip = image.kind == CLAB_IMAGE_CUBIN;
    }
    clab_image_free(&image);
}

static bool is_row(const struct clab_matrix *matrix, const char *source)
{
    for (size_t i = 0; i < matrix->n_rows; i++)
        if (strcmp(matrix->rows[i].source, source) == 0)
            return true;
    return false;
}

static clab_status add_file(struct clab_matrix *matrix, const char *word, bool unless_there,
                            struct clab_error *error)
{
    char *file = NULL, *entry = NULL, real[PATH_MAX];
    clab_status status = clab_inspect_split(word, &file, &entry, error);
    if (status == CLAB_OK)
        status = clab_cli_file_check(file, error);
    if (status == CLAB_OK && realpath(file, real) == NULL)
        status = clab_error_set(error, CLAB_USAGE, "cannot read %s: %s", file, strerror(errno));
    if (status == CLAB_OK && !is_kernel_file(file)) {
        clab_error_set(error, CLAB_USAGE, "%s is no .cu, .ptx or .cubin file", file);
        status =
            clab_error_remedy(error, "fatbins, object files and programs hold several images: `clusterlab "
                                     "inspect FILE --arch A` looks into them");
    }
    if (status == CLAB_OK && !(unless_there && is_row(matrix, real))) {
        struct clab_subject_row *row = add_row(matrix, word, real, entry);
        if (row == NULL)
            status = no_memory(error);
        else {
            row->words = &matrix->words;
            read_needs(row);
        }
    }
    free(file);
    free(entry);
    return status;
}

struct found {
    char **paths;
    size_t count;
};

/* Links are followed: a kernel that is one is a kernel. `refusing`: this pass keeps what cannot be read. */
static clab_status look_through(struct clab_matrix *matrix, const char *folder, bool refusing,
                                struct found *found, struct clab_error *error)
{
    char *roots[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    clab_status status = CLAB_OK;
    for (FTSENT *at; walk != NULL && status == CLAB_OK && (at = fts_read(walk)) != NULL;) {
        const bool unreadable = at->fts_info == FTS_DNR || at->fts_info == FTS_ERR ||
                                ((at->fts_info == FTS_NS || at->fts_info == FTS_SLNONE) &&
                                 (clab_matrix_is(at->fts_path, ".lua") || is_kernel_file(at->fts_path)));
        if (unreadable && refusing) {
            clab_error_set(error, CLAB_USAGE, "cannot read %s: %s", at->fts_path,
                           strerror(at->fts_info == FTS_SLNONE ? ENOENT : at->fts_errno));
            status = refuse(matrix, at->fts_path, error);
        }
        if (at->fts_info != FTS_F || !(clab_matrix_is(at->fts_path, ".lua") || is_kernel_file(at->fts_path)))
            continue;
        char **paths = realloc(found->paths, (found->count + 1) * sizeof *paths);
        if (paths != NULL)
            found->paths = paths;
        if (paths == NULL || (paths[found->count] = strdup(at->fts_path)) == NULL)
            status = no_memory(error);
        else
            found->count++;
    }
    if (walk == NULL)
        return clab_error_set(error, CLAB_USAGE, "cannot look through %s: %s", folder, strerror(errno));
    fts_close(walk);
    return status;
}

static int by_path(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    const bool left_lua = clab_matrix_is(left, ".lua"), right_lua = clab_matrix_is(right, ".lua");
    return left_lua != right_lua ? (left_lua ? -1 : 1) : strcmp(left, right);
}

/* Experiments first, so that their kernels are not files of their own as well. `lua`: which of the two this
 * pass takes. */
static clab_status add_folder(struct clab_matrix *matrix, const char *folder, bool lua, const json_t *facts,
                              struct clab_error *error)
{
    struct found found = {0};
    clab_status status = look_through(matrix, folder, lua, &found, error);
    if (found.count > 0)
        qsort(found.paths, found.count, sizeof *found.paths, by_path);
    for (size_t i = 0; i < found.count; i++) {
        if (status == CLAB_OK && clab_matrix_is(found.paths[i], ".lua") == lua) {
            status = lua ? add_experiment(matrix, found.paths[i], facts, error)
                         : add_file(matrix, found.paths[i], true, error);
            if (status != CLAB_OK)
                status = refuse(matrix, found.paths[i], error);
        }
        free(found.paths[i]);
    }
    free(found.paths);
    return status;
}

static clab_status add_all_experiments(struct clab_matrix *matrix, const json_t *facts,
                                       struct clab_error *error)
{
    json_t *experiments = NULL;
    clab_status status = clab_lab_list(&experiments, error);
    for (size_t i = 0; i < json_array_size(experiments) && status == CLAB_OK; i++)
        status =
            add_experiment(matrix, clab_json_text(json_array_get(experiments, i), "file", ""), facts, error);
    json_decref(experiments);
    return status;
}

clab_status clab_matrix_collect(struct clab_matrix *matrix, const char *const *words, size_t count,
                                const json_t *facts, struct clab_error *error)
{
    clab_status status = count == 0 ? add_all_experiments(matrix, facts, error) : CLAB_OK;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count && status == CLAB_OK; i++) {
            struct stat info;
            const bool folder = stat(words[i], &info) == 0 && S_ISDIR(info.st_mode);
            char *file = NULL, *entry = NULL;
            const bool kernel = !folder && !clab_matrix_is(words[i], ".lua") &&
                                clab_inspect_split(words[i], &file, &entry, NULL) == CLAB_OK &&
                                (is_kernel_file(file) || clab_matrix_is(file, ".fatbin") ||
                                 strchr(file, '/') != NULL || stat(file, &info) == 0);
            free(file);
            free(entry);
            if (folder)
                status = add_folder(matrix, words[i], pass == 0, facts, error);
            else if (kernel ? pass == 1 : pass == 0)
                status = kernel ? add_file(matrix, words[i], false, error)
                                : add_experiment(matrix, words[i], facts, error);
        }
    if (status == CLAB_OK && matrix->n_rows == 0 && matrix->refused == NULL)
        status = clab_error_set(error, CLAB_USAGE,
                                "no kernel there: no .cu, .ptx or .cubin file and no experiment");
    return status;
}

void clab_matrix_free(struct clab_matrix *matrix)
{
    for (size_t i = 0; i < matrix->n_rows; i++) {
        struct clab_subject_row *row = &matrix->rows[i];
        free(row->label);
        free(row->source);
        free(row->entry);
        free(row->experiment);
        free(row->variant);
        json_decref(row->options);
        for (size_t j = 0; j < CLAB_MATRIX_ARCHS; j++)
            free(row->cells[j].reason);
    }
    for (size_t i = 0; i < matrix->n_pairs; i++)
        free(matrix->pairs[i].cell.reason);
    for (size_t i = 0; i < matrix->n_tries; i++) {
        free(matrix->tries[i].log);
        free(matrix->tries[i].cell.reason);
        json_decref(matrix->tries[i].error);
    }
    json_decref(matrix->gpu);
    json_decref(matrix->refused);
    free(matrix->pairs);
    free(matrix->tries);
    free(matrix->rows);
}
