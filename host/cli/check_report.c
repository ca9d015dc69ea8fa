/* From checked rows to a report: the same pair of instructions in several rows of a variant is one entry;
   what is suppressed or accepted is counted apart; the sums decide the exit status. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "cli/check.h"
#include "lab/hazards.h"
#include "lab/wire.h"
#include "report/hazards.h"

#define MOST_ENTRIES 12 /* in the text: the worst of them */

clab_status clab_check_device(const char *device, struct clab_error *error)
{
    if (device == NULL || strncmp(device, "cuda:", 5) != 0)
        return CLAB_OK;
    clab_error_set(error, CLAB_USAGE,
                   "--device %s: the checkers are part of the stand-in driver, and a GPU has none", device);
    return clab_error_remedy(error,
                             "check on emu:sm_90 or another emulated device; clusterlab devices lists them");
}

clab_status clab_check_suppressions(const struct clab_option *option, json_t **out_list,
                                    struct clab_error *error)
{
    *out_list = NULL;
    return option->set ? clab_suppressions_read(option->text, out_list, error) : CLAB_OK;
}

static bool is_mild(const json_t *hazard)
{
    return strcmp(clab_json_text(hazard, "severity", ""), "mild") == 0;
}

static void on_record(void *context, const char *type, const json_t *record)
{
    struct clab_check_report *report = context;
    json_t *hazards = json_object_get(record, "hazards");
    if (strcmp(type, "row") != 0)
        return;
    for (size_t i = 0; i < json_array_size(hazards); i++) {
        json_t *hazard = json_array_get(hazards, i);
        const json_t *found =
            clab_suppression_find(report->suppressions, hazard, clab_json_text(record, "variant", ""));
        json_object_set_new(hazard, "suppressed",
                            found != NULL ? json_pack("{s:O,s:O}", "line", json_object_get(found, "at"),
                                                      "reason", json_object_get(found, "reason"))
                                          : json_null());
    }
    if (report->writer == NULL)
        return;
    json_t *row = json_copy((json_t *)(uintptr_t)record);
    json_t *extra = json_pack("{s:s?,s:O,s:O?,s:{s:s}}", "experiment", report->experiment, "variant",
                              json_object_get(record, "variant"), "params", json_object_get(record, "params"),
                              "device", "id", report->device);
    json_object_set_new(row, "hazards", json_integer((json_int_t)json_array_size(hazards)));
    json_object_set(row, "experiment", json_object_get(extra, "experiment"));
    if (!report->is_beside)
        clab_record_write(report->writer, "row", NULL, row);
    for (size_t i = 0; i < json_array_size(hazards); i++)
        clab_record_write(report->writer, "hazard", extra, json_array_get(hazards, i));
    json_decref(extra);
    json_decref(row);
}

static unsigned cluster_ctas(const json_t *row)
{
    const json_t *cluster = json_object_get(json_object_get(row, "launch"), "cluster");
    unsigned product = json_is_array(cluster) ? 1 : 0;
    for (size_t i = 0; i < json_array_size(cluster); i++)
        product *= (unsigned)json_integer_value(json_array_get(cluster, i));
    return product;
}

/* "4" or "4x2", or NULL without a cluster (heap). */
static char *cluster_text(const json_t *row)
{
    const json_t *cluster = json_object_get(json_object_get(row, "launch"), "cluster");
    struct clab_str text = {0};
    size_t sides = json_array_size(cluster);
    while (sides > 1 && json_integer_value(json_array_get(cluster, sides - 1)) == 1)
        sides--;
    for (size_t i = 0; i < sides; i++)
        clab_str_addf(&text, "%s%lld", i != 0 ? "x" : "",
                      (long long)json_integer_value(json_array_get(cluster, i)));
    return text.text;
}

/* What an entry is headed by: the variant of an experiment, the kernel of a bare file. */
static const char *subject_of(const struct clab_check_report *report, const json_t *row)
{
    const char *variant = clab_json_text(row, "variant", "");
    return report->experiment != NULL ? variant
                                      : clab_json_text(json_object_get(row, "image"), "entry", variant);
}

/* Entries of all rows by variant: {variant: [hazard with "rows" (clusters), "cluster_ctas"]}; counts the
 * rest. */
static json_t *entries_of(struct clab_check_report *report, const json_t *rows)
{
    json_t *by_variant = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *hazards = json_object_get(row, "hazards");
        const char *variant = clab_json_text(row, "variant", "");
        char *cluster = cluster_text(row);
        for (size_t j = 0; j < json_array_size(hazards); j++) {
            json_t *list = json_object_get(by_variant, variant), *one = json_array();
            if (list == NULL)
                json_object_set_new(by_variant, variant, list = json_array());
            json_array_append_new(one, json_copy(json_array_get(hazards, j)));
            json_t *hazard = json_array_get(one, 0);
            json_object_set_new(hazard, "cluster_ctas", json_integer(cluster_ctas(row)));
            json_object_set(hazard, "image", json_object_get(row, "image"));
            json_object_set_new(hazard, "subject", json_string(subject_of(report, row)));
            json_object_set_new(hazard, "rows", cluster != NULL ? json_pack("[s]", cluster) : json_array());
            clab_hazards_merge(list, one, true);
            json_decref(one);
        }
        free(cluster);
    }
    json_t *all = json_array(), *list;
    const char *variant;
    json_object_foreach(by_variant, variant, list)
    {
        json_t *entry;
        size_t i;
        json_array_foreach(list, i, entry)
        {
            const bool suppressed = json_is_object(json_object_get(entry, "suppressed"));
            const bool accepted = json_is_string(json_object_get(entry, "accepted"));
            size_t *sum = suppressed       ? &report->suppressed
                          : accepted       ? &report->accepted
                          : is_mild(entry) ? &report->milder
                                           : &report->hazards;
            ++*sum;
            json_object_set_new(entry, "variant", json_string(variant));
            if (!suppressed)
                json_array_append(all, entry);
        }
    }
    json_decref(by_variant);
    json_t *sorted = clab_hazards_sorted(all);
    json_decref(all);
    return sorted;
}

/* "clusterlab check FILE:ENTRY" and the other words of a replay. */
static void add_file_word(struct clab_str *out, const json_t *image, const char *rest)
{
    struct clab_str word = {0};
    clab_str_addf(&word, "%s:%s", clab_json_text(image, "source", ""), clab_json_text(image, "entry", ""));
    clab_str_add(out, "clusterlab check");
    clab_check_word(word.text != NULL ? word.text : "", out);
    clab_str_add(out, rest);
    clab_str_free(&word);
}

static void print_entry(const struct clab_check_report *report, const json_t *entry, bool colour,
                        struct clab_str *out)
{
    struct clab_str subject = {0}, again = {0};
    const char *variant = clab_json_text(entry, "variant", "");
    const json_t *rows = json_object_get(entry, "rows");
    char readable[256];
    clab_str_add(&subject,
                 clab_demangle(clab_json_text(entry, "subject", variant), readable, sizeof readable));
    for (size_t i = 0; i < json_array_size(rows); i++)
        clab_str_addf(&subject, "%s%s", i == 0 ? " (cluster " : ", ",
                      json_string_value(json_array_get(rows, i)));
    if (json_array_size(rows) != 0)
        clab_str_add(&subject, ")");
    const json_t *image = json_object_get(entry, "image");
    if (report->experiment == NULL)
        add_file_word(&again, image, report->again);
    if (report->experiment != NULL) {
        clab_str_addf(&again, "clusterlab check %s%s --variant %s", report->experiment, report->again,
                      variant);
        if (json_array_size(rows) != 0)
            clab_str_addf(&again, " --cluster %s", json_string_value(json_array_get(rows, 0)));
    }
    clab_str_addf(&again, " --seed %lld", (long long)clab_json_int(entry, "seed", 1));
    clab_hazard_print(entry, subject.text, again.text, (unsigned)clab_json_int(entry, "cluster_ctas", 0),
                      colour, out);
    clab_str_free(&subject);
    clab_str_free(&again);
}

/* Whether the row has an error of that code, "INTERRUPTED". */
static bool has_error(const json_t *row, const char *code)
{
    return strcmp(clab_json_text(json_object_get(row, "error"), "status", ""), code) == 0;
}

/* Whether the row of a bare file was refused for what the command line says of its launch. */
static bool is_slip(const json_t *row)
{
    return has_error(row, "USAGE") || has_error(row, "EXPERIMENT");
}

/* Rows that say nothing of hazards, each distinct error once: wrong results, failures, what cannot run here.
 */
static void print_others(const struct clab_check_report *report, const json_t *rows)
{
    json_t *seen = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *detail = json_object_get(row, "error");
        const char *status = clab_json_text(row, "status", ""), *variant = clab_json_text(row, "variant", "");
        struct clab_error error = {0};
        if (detail == NULL || strcmp(status, "ok") == 0 || strcmp(status, "hazard") == 0 ||
            has_error(row, "INTERRUPTED"))
            continue;
        clab_error_from_json(detail, &error);
        char *text = clab_error_format(&error);
        if (text != NULL && json_object_get(seen, text) == NULL) {
            json_object_set_new(seen, text, json_true());
            if (report->experiment == NULL && is_slip(row))
                fprintf(report->cli->err, "clusterlab: %s\n", text);
            else
                fprintf(report->cli->err, "%s: %s: %s\n", variant, status, text);
        }
        free(text);
        clab_error_clear(&error);
    }
    json_decref(seen);
}

/* Rows with that status; those that an interrupt left without one are counted by their error. */
static size_t count_status(const json_t *rows, const char *status)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        count += strcmp(clab_json_text(json_array_get(rows, i), "status", ""), status) == 0 &&
                 !has_error(json_array_get(rows, i), "INTERRUPTED");
    return count;
}

static size_t count_error(const json_t *rows, const char *code)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        count += has_error(json_array_get(rows, i), code);
    return count;
}

static size_t count_slips(const json_t *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        count += is_slip(json_array_get(rows, i));
    return count;
}

/* The schedules that every judged row was run under: of the first of them. */
static long long seeds_of(const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *status = clab_json_text(row, "status", "");
        if (strcmp(status, "ok") == 0 || strcmp(status, "hazard") == 0 || strcmp(status, "wrong") == 0)
            return (long long)clab_json_int(row, "seeds", 0);
    }
    return 0;
}

static void add_sum(struct clab_str *out, size_t count, const char *one, const char *many)
{
    if (count != 0)
        clab_str_addf(out, ", %zu %s", count, count == 1 ? one : many);
}

static void print_sums(const struct clab_check_report *before, const struct clab_check_report *after,
                       const json_t *rows, struct clab_str *out)
{
    const size_t hazards = after->hazards - before->hazards, milder = after->milder - before->milder;
    const long long seeds = seeds_of(rows);
    const size_t judged =
        count_status(rows, "ok") + count_status(rows, "hazard") + count_status(rows, "wrong");
    clab_str_addf(out, "%s on %s: %zu row%s checked",
                  after->experiment != NULL ? after->experiment : "launch", after->device, judged,
                  judged == 1 ? "" : "s");
    if (seeds > 1)
        clab_str_addf(out, " under %lld schedules each", seeds);
    if (hazards + milder == 0 && judged != 0)
        clab_str_add(out, ", no hazard");
    add_sum(out, hazards, "hazard", "hazards");
    add_sum(out, milder, "of a milder kind", "of milder kinds");
    add_sum(out, after->accepted - before->accepted, "accepted", "accepted");
    add_sum(out, after->suppressed - before->suppressed, "suppressed", "suppressed");
    add_sum(out, count_status(rows, "wrong"), "wrong result", "wrong results");
    add_sum(out, count_status(rows, "failed") + count_status(rows, "timeout"), "row failed", "rows failed");
    add_sum(out, count_status(rows, "waived"), "row cannot run here", "rows cannot run here");
    add_sum(out, count_error(rows, "INTERRUPTED"), "row not finished", "rows not finished");
    clab_str_add(out, "\n");
}

/* 1 for a hazard, or a milder kind with `strict`. */
static int exit_of(const struct clab_check_report *report)
{
    return clab_status_exit(report->hazards != 0 || (report->strict && report->milder != 0) ? CLAB_HAZARD
                                                                                            : CLAB_OK);
}

static int print_rows(struct clab_check_report *report, const json_t *rows)
{
    struct clab_check_report before = *report;
    json_t *entries = entries_of(report, rows);
    if (!report->is_quiet) {
        const char *plain = getenv("NO_COLOR");
        const bool colour = (plain == NULL || plain[0] == '\0') && isatty(fileno(report->cli->out)) == 1;
        struct clab_str out = {0};
        const size_t count = json_array_size(entries);
        const size_t shown = report->all || count <= MOST_ENTRIES ? count : MOST_ENTRIES;
        for (size_t i = 0; i < shown; i++)
            print_entry(report, json_array_get(entries, i), colour, &out);
        if (shown < count)
            clab_str_addf(&out, "and %zu more, which clusterlab check --all lists\n\n", count - shown);
        if (report->experiment != NULL || count_slips(rows) < json_array_size(rows))
            print_sums(&before, report, rows, &out);
        fputs(out.text != NULL ? out.text : "", report->cli->out);
        fflush(report->cli->out);
        clab_str_free(&out);
    }
    print_others(report, rows);
    json_decref(entries);
    return exit_of(report);
}

static void on_progress(void *context, const char *stage, const char *what, size_t done, size_t count)
{
    const struct clab_check_report *report = context;
    clab_cli_progress(report->cli, stage, what, done, count);
}

int clab_check_run(struct clab_session *session, struct clab_compiler *compiler,
                   struct clab_run_options *options, struct clab_check_report *report,
                   struct clab_error *error)
{
    json_t *rows = NULL, *predictions = NULL;
    int exit_status = 0;
    options->progress = on_progress;
    options->on_record = on_record;
    options->context = report;
    clab_status status = clab_run(session, compiler, options, &rows, &predictions, &exit_status, error);
    clab_cli_progress_erase(report->cli);
    if (status == CLAB_OK)
        exit_status = clab_exit_worse(exit_status, print_rows(report, rows));
    json_decref(rows);
    json_decref(predictions);
    return status == CLAB_OK ? exit_status : clab_status_exit(status);
}

void clab_check_unused(const struct clab_check_report *report)
{
    struct clab_str out = {0};
    clab_suppressions_unused(report->suppressions, &out);
    if (out.text != NULL)
        fputs(out.text, report->cli->err);
    clab_str_free(&out);
}
