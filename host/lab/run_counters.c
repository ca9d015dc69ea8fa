/* run --counters: bytes that went through L2, DRAM and the crossbar between L2 and the SMs, as columns of the
   rows that verified. On a GPU each row is launched once more in a worker that runs under `ncu` (Nsight
   Compute), whose CSV log tells the launches apart by their order; caches are flushed before each of ncu's
   passes (its default), so the figures belong to the cold time. Where ncu is not installed or may not read
   the counters the run goes on, and says why. The stand-in driver's own counters give what a launch asked
   for; it has no caches, so DRAM is null. Left out: rows with a companion kernel, which would have to run at
   the same time. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "lab/run_parts.h"
#include "lab/wire.h"

#define NCU_LAUNCH_LIMIT_MS                                                        \
    (300 * 1000) /* a launch is replayed, its memory saved and restored in between \
                  */
#define NCU_END_LIMIT_MS (120 * 1000)
#define LOG_LIMIT_BYTES  (64u << 20)
#define SECTOR_BYTES     32

static const char *const columns[] = {"L2 bytes", "DRAM bytes", "crossbar bytes"};
enum { L2, DRAM, CROSSBAR, COLUMNS };

/* What ncu is asked for, and which column it adds to. lts__t_sectors_srcunit_tex: 32-byte sectors that SMs
   asked of L2; the crossbar in both directions, shared memory of peers too. */
static const struct metric {
    const char *name;
    unsigned column;
    double scale;
} metrics[] = {
    {"lts__t_sectors_srcunit_tex.sum", L2, SECTOR_BYTES},
    {"dram__bytes_read.sum", DRAM, 1},
    {"dram__bytes_write.sum", DRAM, 1},
    {"l1tex__m_xbar2l1tex_read_bytes.sum", CROSSBAR, 1},
    {"l1tex__m_l1tex2xbar_write_bytes.sum", CROSSBAR, 1},
};
#define METRICS (sizeof metrics / sizeof *metrics)

static void set_columns(struct clab_run_row *row, const double values[COLUMNS], const bool known[COLUMNS])
{
    json_t *shown = json_object_get(row->record, "columns");
    for (unsigned i = 0; i < COLUMNS; i++)
        json_object_set_new(shown, columns[i], known[i] ? json_integer((json_int_t)values[i]) : json_null());
}

void clab_run_counters_emulated(struct clab_run_row *row)
{
    const json_t *counters = json_object_get(row->record, "counters");
    if (!json_is_object(counters))
        return;
    const double global = (double)(clab_json_int(counters, "loads_global_bytes", 0) +
                                   clab_json_int(counters, "stores_global_bytes", 0));
    const double across = (double)clab_json_int(counters, "bulk_across_bytes", 0);
    const double remote = (double)(clab_json_int(counters, "loads_remote_bytes", 0) +
                                   clab_json_int(counters, "stores_remote_bytes", 0) +
                                   clab_json_int(counters, "async_store_bytes", 0));
    const double values[COLUMNS] = {
        [L2] = global + (double)clab_json_int(counters, "bulk_requested_bytes", 0) - across,
        [CROSSBAR] = global + remote + (double)clab_json_int(counters, "bulk_delivered_bytes", 0),
    };
    set_columns(row, values, (const bool[COLUMNS]){[L2] = true, [CROSSBAR] = true});
}

/* -- ncu ------------------------------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* The newest of the installations that a pattern names. */
static bool find_pattern(const char *pattern, char *out, size_t bytes)
{
    glob_t found;
    bool is_found = false;
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = found.gl_pathc; i-- > 0 && !is_found;)
        if (is_program(found.gl_pathv[i])) {
            snprintf(out, bytes, "%s", found.gl_pathv[i]);
            is_found = true;
        }
    globfree(&found);
    return is_found;
}

bool clab_ncu_find(char *out, size_t bytes)
{
    const char *path = getenv("PATH"), *chosen = getenv("CLUSTERLAB_NCU");
    if (chosen != NULL) {
        snprintf(out, bytes, "%s", chosen);
        return is_program(out);
    }
    for (const char *p = path; p != NULL && *p != '\0';) {
        const size_t n = strcspn(p, ":");
        snprintf(out, bytes, "%.*s/ncu", (int)n, p);
        if (n > 0 && is_program(out))
            return true;
        p += n + (p[n] == ':');
    }
    return find_pattern("/usr/local/cuda/bin/ncu", out, bytes) ||
           find_pattern("/usr/local/cuda-*/bin/ncu", out, bytes) ||
           find_pattern("/opt/nvidia/nsight-compute/*/ncu", out, bytes);
}

static void note(const struct clab_run_state *run, const char *text)
{
    if (run->options->on_note != NULL)
        run->options->on_note(run->options->context, text);
}

/* Field `wanted` (0-based) of a CSV line whose fields are all quoted; false when it has fewer. */
static bool csv_field(const char *line, unsigned wanted, char *out, size_t bytes)
{
    const char *p = line;
    for (unsigned i = 0; *p == '"'; i++) {
        const size_t n = strcspn(++p, "\"\n");
        if (i == wanted) {
            snprintf(out, bytes, "%.*s", (int)n, p);
            return true;
        }
        p += n;
        p += *p == '"';
        p += *p == ',';
    }
    return false;
}

static int csv_column(const char *header, const char *name)
{
    char field[256];
    for (unsigned i = 0; csv_field(header, i, field, sizeof field); i++)
        if (strcmp(field, name) == 0)
            return (int)i;
    return -1;
}

/* "17,777,920" */
static double grouped_number(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (*from != ',')
            *to++ = *from;
    *to = '\0';
    return strtod(text, NULL);
}

/* Launch number `id` of the log belongs to rows[id]. Returns how many metrics were understood. */
static size_t take_log(const char *log, struct clab_run_row **rows, size_t n_rows, const char *program)
{
    int id_at = -1, name_at = -1, value_at = -1;
    size_t taken = 0;
    double(*sums)[COLUMNS] = calloc(n_rows + 1, sizeof *sums);
    bool(*known)[COLUMNS] = calloc(n_rows + 1, sizeof *known);
    for (const char *line = log; line != NULL && *line != '\0' && sums != NULL && known != NULL;) {
        char id[32], name[256], value[64];
        if (strncmp(line, "\"ID\"", 4) == 0) {
            id_at = csv_column(line, "ID");
            name_at = csv_column(line, "Metric Name");
            value_at = csv_column(line, "Metric Value");
        } else if (line[0] == '"' && id_at >= 0 && name_at >= 0 && value_at >= 0 &&
                   csv_field(line, (unsigned)id_at, id, sizeof id) &&
                   csv_field(line, (unsigned)name_at, name, sizeof name) &&
                   csv_field(line, (unsigned)value_at, value, sizeof value)) {
            const size_t launch = strtoul(id, NULL, 10);
            for (size_t i = 0; i < METRICS && launch < n_rows; i++) {
                if (strcmp(metrics[i].name, name) != 0 || strspn(value, "0123456789,.") != strlen(value))
                    continue;
                const double number = grouped_number(value);
                json_t *counters = json_object_get(rows[launch]->record, "counters");
                if (!json_is_object(counters)) {
                    counters = json_pack("{s:s}", "program", program);
                    json_object_set_new(rows[launch]->record, "counters", counters);
                }
                json_object_set_new(counters, name, json_integer((json_int_t)number));
                sums[launch][metrics[i].column] += number * metrics[i].scale;
                known[launch][metrics[i].column] = true;
                taken++;
            }
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    for (size_t i = 0; i < n_rows && taken != 0; i++)
        set_columns(rows[i], sums[i], known[i]);
    free(sums);
    free(known);
    return taken;
}

/* What ncu itself says went wrong: the first line marked so, "" when there is none. */
static void complaint(const char *log, char *out, size_t bytes)
{
    const char *line = log != NULL ? strstr(log, "==ERROR==") : NULL;
    if (line == NULL && log != NULL)
        line = strstr(log, "==WARNING==");
    out[0] = '\0';
    if (line != NULL)
        snprintf(out, bytes, "%.*s", (int)strcspn(line, "\n"), line);
}

/* One launch of a row in the worker under ncu, which loads its images anew. */
static clab_status count_row(struct clab_run_state *run, struct clab_session *under, bool *loaded,
                             struct clab_run_row *row, struct clab_error *error)
{
    const struct clab_run_variant *variant = &run->variants[row->variant];
    const struct clab_image *image = &variant->result.image;
    json_t *answer = NULL;
    clab_status status = CLAB_OK;
    if (!loaded[row->variant]) {
        json_t *load =
            json_pack("{s:s,s:I,s:s,s:s,s:s}", "op", "load", "key", (json_int_t)row->variant, "path",
                      variant->path, "source", clab_json_text(variant->plan, "source", ""), "entry",
                      image->lowered != NULL ? image->lowered : clab_json_text(variant->plan, "entry", ""));
        status = clab_session_ask(under, load, NCU_LAUNCH_LIMIT_MS, NULL, NULL, &answer, error);
        json_decref(answer);
        answer = NULL;
        loaded[row->variant] = status == CLAB_OK;
    }
    if (status != CLAB_OK)
        return status;
    json_t *request = json_pack("{s:s,s:I,s:O,s:O}", "op", "launch", "key", (json_int_t)row->variant, "row",
                                row->plan, "buffers", row->buffers);
    status = clab_session_ask(under, request, NCU_LAUNCH_LIMIT_MS, NULL, NULL, &answer, error);
    json_decref(answer);
    return status;
}

/* The kernels' names as the device code has them: -k regex:^(a|b)$ */
static void kernel_filter(const struct clab_run_state *run, struct clab_str *out)
{
    bool first = true;
    clab_str_add(out, "regex:^(");
    for (size_t i = 0; i < run->n_variants; i++) {
        const struct clab_run_variant *variant = &run->variants[i];
        if (!variant->compiled || variant->result.status != CLAB_OK)
            continue;
        const char *name = variant->result.image.lowered;
        clab_str_addf(out, "%s%s", first ? "" : "|",
                      name != NULL ? name : clab_json_text(variant->plan, "entry", ""));
        first = false;
    }
    clab_str_add(out, ")$");
}

static bool is_countable(const struct clab_run_row *row)
{
    return row->open && !json_is_object(json_object_get(json_object_get(row->plan, "launch"), "companion"));
}

/* Every countable row, launched under ncu. The worker's end makes ncu write its log. */
static clab_status launch_all(struct clab_run_state *run, const char *const *wrapper,
                              struct clab_run_row **rows, size_t *out_count, struct clab_error *error)
{
    struct clab_session under;
    bool *loaded = calloc(run->n_variants + 1, sizeof *loaded);
    char name[128];
    *out_count = 0;
    if (loaded == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory");
    clab_status status = clab_session_open_under(&under, run->session->device, run->session->options,
                                                 run->options->interrupted, wrapper, error);
    if (status == CLAB_OK) {
        for (size_t i = 0; i < run->n_rows && status == CLAB_OK; i++) {
            if (!is_countable(&run->rows[i]))
                continue;
            clab_run_progress(run, "count", clab_row_name(&run->rows[i], name, sizeof name), i, run->n_rows);
            status = count_row(run, &under, loaded, &run->rows[i], error);
            if (status == CLAB_OK)
                rows[(*out_count)++] = &run->rows[i];
        }
        clab_session_finish(&under, NCU_END_LIMIT_MS);
        clab_session_close(&under);
    }
    free(loaded);
    return status;
}

void clab_run_counters(struct clab_run_state *run)
{
    char program[PATH_MAX], log_path[PATH_MAX + 16], why[512];
    if (!clab_ncu_find(program, sizeof program)) {
        note(run, "--counters: no ncu (Nsight Compute) at $CLUSTERLAB_NCU or in PATH, /usr/local/cuda*/bin "
                  "or /opt/nvidia/nsight-compute; "
                  "the columns stay empty");
        return;
    }
    struct clab_run_row **rows = calloc(run->n_rows + 1, sizeof *rows);
    struct clab_str filter = {0}, wanted = {0};
    size_t count = 0, bytes = 0, taken = 0;
    struct clab_error error = {0};
    snprintf(log_path, sizeof log_path, "%s/ncu.csv", run->folder);
    kernel_filter(run, &filter);
    for (size_t i = 0; i < METRICS; i++)
        clab_str_addf(&wanted, "%s%s", i > 0 ? "," : "", metrics[i].name);
    const char *const wrapper[] = {program,
                                   "--target-processes",
                                   "all",
                                   "--clock-control",
                                   "none",
                                   "--csv",
                                   "--print-units",
                                   "base",
                                   "--log-file",
                                   log_path,
                                   "--kernel-name-base",
                                   "mangled",
                                   "-k",
                                   filter.text,
                                   "--metrics",
                                   wanted.text,
                                   NULL};
    clab_status status = CLAB_NO_MEMORY;
    if (rows != NULL && filter.text != NULL && wanted.text != NULL)
        status = launch_all(run, wrapper, rows, &count, &error);
    char *log = clab_file_read(log_path, LOG_LIMIT_BYTES, &bytes);
    if (log != NULL)
        taken = take_log(log, rows, count, program);
    if (status == CLAB_INTERRUPTED) {
        run->stop = true;
    } else if (status != CLAB_OK || taken == 0) {
        complaint(log, why, sizeof why);
        struct clab_str text = {0};
        clab_str_addf(&text, "--counters: %s counted %s: %s", program,
                      taken == 0 ? "nothing" : "only some of the rows",
                      why[0] != '\0'      ? why
                      : status != CLAB_OK ? error.message
                                          : "its log names no launch of these kernels");
        note(run, text.text != NULL ? text.text : "--counters: ncu counted too little");
        clab_str_free(&text);
    }
    (void)unlink(log_path);
    clab_error_clear(&error);
    clab_str_free(&filter);
    clab_str_free(&wanted);
    free(log);
    free(rows);
}
