/* clusterlab run: an experiment on one or more devices, as a table, records and predictions. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/cli.h"
#include "compile/target.h"
#include "lab/run.h"
#include "lab/wire.h"
#include "report/record.h"
#include "report/table.h"
#include "report/timeline.h"

#define DEFAULT_TIMEOUT_S 30

struct show {
    struct clab_cli *cli;
    struct clab_record_writer *writer;
    struct clab_timelines *timelines; /* NULL: none is wanted */
    const json_t *facts;              /* of the device at hand */
    char item[64];                    /* what a timeline's slots are called */
    json_t *extra;                    /* members every record of this experiment carries */
    const char *device;               /* id, of the session at hand */
    bool quiet;
    bool is_planned;                 /* this device's run record is written */
    bool is_followed;                /* a table is above */
    const struct clab_option *check; /* the command's options when --check is among them, else NULL */
};

static void on_progress(void *context, const char *stage, const char *what, size_t done, size_t count)
{
    const struct show *show = context;
    clab_cli_progress(show->cli, stage, what, done, count);
}

/* A row's record describes its device; the others name it. */
static void on_record(void *context, const char *type, const json_t *record)
{
    struct show *show = context;
    json_t *extra = json_copy(show->extra);
    if (strcmp(type, "row") != 0)
        json_object_set_new(extra, "device", json_pack("{s:s}", "id", show->device));
    clab_record_write(show->writer, type, extra, record);
    json_decref(extra);
}

static void on_timeline(void *context, const json_t *row, const json_t *slots)
{
    struct show *show = context;
    clab_timelines_add(show->timelines, clab_json_text(show->extra, "experiment", ""), show->item,
                       (unsigned)clab_json_int(show->facts, "sms", 0), row, slots);
}

static void on_note(void *context, const char *text)
{
    struct show *show = context;
    clab_cli_progress_erase(show->cli);
    fprintf(show->cli->err, "clusterlab: %s\n", text);
}

static void on_plan(void *context, const json_t *plan)
{
    struct show *show = context;
    json_t *more = json_object();
    const json_t *predictions = json_object_get(plan, "predictions");
    json_object_set(show->extra, "experiment", json_object_get(plan, "experiment"));
    snprintf(show->item, sizeof show->item, "%s",
             clab_json_text(json_object_get(plan, "timeline"), "item", "item"));
    json_object_set_new(more, "file", json_string(clab_path_shown(clab_json_text(plan, "file", ""))));
    json_object_set(more, "sha256", json_object_get(plan, "sha256"));
    json_object_set(more, "predictions", (json_t *)(uintptr_t)predictions);
    json_t *record = clab_run_record(show->cli->argc, show->cli->argv, more);
    on_record(show, "run", record);
    json_decref(record);
    show->is_planned = true;
}

/* Whole errors of failed rows below the table, each distinct one once. */
static void print_failures(struct show *show, const json_t *rows)
{
    json_t *seen = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *status = clab_json_text(row, "status", "");
        const json_t *detail = json_object_get(row, "error");
        if (detail == NULL || strcmp(status, "ok") == 0 || strcmp(status, "waived") == 0 ||
            strcmp(status, "wrong") == 0)
            continue;
        struct clab_error error = {0};
        clab_error_from_json(detail, &error);
        char *text = clab_error_format(&error);
        if (text != NULL && json_object_get(seen, text) == NULL) {
            json_object_set_new(seen, text, json_true());
            fprintf(show->cli->err, "%s: %s\n", clab_json_text(row, "variant", ""), text);
        }
        free(text);
        clab_error_clear(&error);
    }
    json_decref(seen);
}

static void print_predictions(FILE *file, const json_t *predictions)
{
    for (size_t i = 0; i < json_array_size(predictions); i++) {
        const json_t *prediction = json_array_get(predictions, i);
        const char *detail = clab_json_text(prediction, "detail", "");
        if (i == 0)
            fputs("\npredictions\n", file);
        fprintf(file, "  %-12s  %s%s%s%s\n", clab_json_text(prediction, "verdict", ""),
                clab_json_text(prediction, "text", ""), detail[0] != '\0' ? " (" : "", detail,
                detail[0] != '\0' ? ")" : "");
    }
}

/* --check: the same rows at their `check` size, under every checker. */
static int check_device(struct clab_session *session, struct clab_compiler *compiler,
                        const struct clab_run_options *run, const struct show *show, struct clab_error *error)
{
    struct clab_run_options options = *run;
    struct clab_str again = {0};
    struct clab_check_report report = {.cli = show->cli,
                                       .writer = show->writer,
                                       .is_quiet = show->quiet,
                                       .is_beside = true,
                                       .device = session->device,
                                       .experiment = run->request.experiment};
    clab_check_again(show->check, false, &again);
    report.again = again.text != NULL ? again.text : "";
    options.seeds = CLAB_CHECK_SEEDS;
    options.first_seed = 1;
    options.on_plan = NULL;
    options.on_timeline = NULL;
    options.hot = false;
    if (!show->quiet)
        fputc('\n', show->cli->out);
    const int exit_status = clab_check_run(session, compiler, &options, &report, error);
    clab_str_free(&again);
    return exit_status;
}

static int run_device(struct clab_cli *cli, const char *device, json_t *emulator_options,
                      struct clab_compiler *compiler, struct clab_run_options *options, struct show *show,
                      json_t *all_rows, struct clab_error *error)
{
    struct clab_session session;
    json_t *rows = NULL, *predictions = NULL;
    int exit_status = 0;
    clab_status status = clab_cli_open(cli, device, emulator_options, &session, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    if (show->check != NULL && (status = clab_check_device(session.device, error)) != CLAB_OK) {
        clab_session_close(&session);
        return clab_status_exit(status);
    }
    show->device = session.device;
    show->is_planned = false;
    options->on_plan = on_plan;
    options->on_record = on_record;
    options->on_timeline = show->timelines != NULL ? on_timeline : NULL;
    show->facts = session.facts;
    options->on_note = on_note;
    options->progress = on_progress;
    options->context = show;
    options->interrupted = cli->interrupted;
    status = clab_run(&session, compiler, options, &rows, &predictions, &exit_status, error);
    clab_cli_progress_erase(cli);
    if (status == CLAB_OK && !show->quiet) {
        struct clab_str table = {0};
        const json_t *facts = session.facts;
        clab_run_table(rows, &table);
        fprintf(cli->out, "%s%s on %s, %s%s\n\n%s", show->is_followed ? "\n" : "",
                clab_json_text(show->extra, "experiment", ""), clab_json_text(facts, "id", ""),
                clab_json_text(facts, "name", ""),
                clab_json_bool(facts, "emulated", false) ? " (emulated: counted, not timed)" : "",
                table.text != NULL ? table.text : "");
        print_predictions(cli->out, predictions);
        clab_str_free(&table);
        fflush(cli->out);
        show->is_followed = true;
    }
    if (status == CLAB_OK) {
        print_failures(show, rows);
        json_array_extend(all_rows, rows);
    }
    json_decref(rows);
    json_decref(predictions);
    clab_session_mark(&session, "print");
    if (status == CLAB_OK && show->check != NULL && !*cli->interrupted) {
        exit_status = clab_exit_worse(exit_status, check_device(&session, compiler, options, show, error));
        clab_session_mark(&session, "check");
    }
    json_t *stages = json_incref(session.stages), *driver = json_object_get(session.facts, "driver_ms");
    if (driver != NULL)
        json_object_set(stages, "open: driver", driver);
    const uint64_t closing_ns = clab_now_ns();
    clab_session_close(&session);
    json_object_set_new(stages, "close", json_real((double)(clab_now_ns() - closing_ns) * 1e-6));
    json_t *record = json_pack("{s:o}", "stages_ms", stages);
    if (show->is_planned) /* a plan that was refused leaves the file alone */
        clab_record_write(show->writer, "stages", show->extra, record);
    json_decref(record);
    return status == CLAB_OK ? exit_status : clab_status_exit(status);
}

/* A parameter is set once: of two values one would be lost. */
static clab_status check_sets(const struct clab_option *sets, struct clab_error *error)
{
    for (size_t i = 0; i < sets->count; i++) {
        const size_t length = strcspn(sets->list[i], "=");
        for (size_t j = 0; j < i; j++)
            if (strcspn(sets->list[j], "=") == length && memcmp(sets->list[i], sets->list[j], length) == 0)
                return clab_error_set(error, CLAB_USAGE, "--set %.*s was given twice: '%s' and '%s'",
                                      (int)length, sets->list[i], sets->list[j], sets->list[i]);
    }
    return CLAB_OK;
}

static clab_status read_options(struct clab_option *o, struct clab_run_options *options,
                                struct clab_error *error)
{
    struct clab_lab_request *request = &options->request;
    long long number;
    clab_status status = CLAB_OK;
    request->sets = clab_option_get(o, "--set")->list;
    request->n_sets = clab_option_get(o, "--set")->count;
    request->clusters = clab_option_get(o, "--cluster")->text;
    request->variants = clab_option_get(o, "--variant")->list;
    request->n_variants = clab_option_get(o, "--variant")->count;
    request->withs = clab_option_get(o, "--with")->list;
    request->n_withs = clab_option_get(o, "--with")->count;
    options->hot = clab_option_get(o, "--hot")->set;
    options->line_info = true;
    options->counters = clab_option_get(o, "--counters")->set;
    options->image = clab_option_get(o, "--image")->text;
    options->arch = clab_option_get(o, "--arch")->text;
    clab_cli_compiler_words(o, &options->words);
    if (options->image != NULL && strcmp(options->image, "cubin") != 0 && strcmp(options->image, "ptx") != 0)
        return clab_error_set(error, CLAB_USAGE, "--image wants cubin or ptx, got '%s'", options->image);
    const struct clab_target *target;
    if (options->arch != NULL && (status = clab_target_parse(options->arch, &target, error)) != CLAB_OK)
        return status;
    const char *json = clab_option_get(o, "--json")->text, *csv = clab_option_get(o, "--csv")->text;
    if (json != NULL && csv != NULL && strcmp(json, "-") == 0 && strcmp(csv, "-") == 0)
        return clab_error_set(error, CLAB_USAGE, "--json - and --csv - cannot both have standard output");
    status = check_sets(clab_option_get(o, "--set"), error);
    for (size_t i = 0; i < clab_option_get(o, "--device")->count && status == CLAB_OK; i++)
        status = clab_cli_device_check(clab_option_get(o, "--device")->list[i], error);
    for (size_t i = 0; i < clab_option_get(o, "--device")->count && status == CLAB_OK; i++)
        if (clab_option_get(o, "--check")->set)
            status = clab_check_device(clab_option_get(o, "--device")->list[i], error);
    if (status != CLAB_OK)
        return status;
    options->timeout_ms = DEFAULT_TIMEOUT_S * 1000;
    if (clab_option_get(o, "--timeout")->set) {
        status = clab_option_number(clab_option_get(o, "--timeout"), 1, 86400, &number, error);
        if (status == CLAB_OK)
            options->timeout_ms = (int)number * 1000;
        options->timeout_always = true;
    }
    if (status == CLAB_OK && clab_option_get(o, "--samples")->set) {
        status = clab_option_number(clab_option_get(o, "--samples"), 1, 100000, &number, error);
        if (status == CLAB_OK)
            options->samples = (unsigned)number;
    }
    return status;
}

/* Both files are proved writable, and different, before anything runs. */
static clab_status open_outputs(const char *json_path, const char *csv_path,
                                struct clab_record_writer *writer, struct clab_output *csv,
                                struct clab_error *error)
{
    clab_status status = clab_records_open(writer, json_path, error);
    if (status == CLAB_OK && csv_path != NULL)
        status = clab_output_open(csv, csv_path, NULL, error);
    if (status == CLAB_OK && clab_output_same(&writer->output, csv))
        status = clab_error_set(error, CLAB_USAGE, "--json and --csv name the same file, %s", csv_path);
    if (status != CLAB_OK) {
        (void)clab_output_close(csv);
        (void)clab_output_close(&writer->output);
    }
    return status;
}

/* Closes them all, and says of each what could not be written. */
static int close_outputs(struct clab_cli *cli, struct clab_record_writer *writer, struct clab_output *csv,
                         const json_t *rows, struct clab_timelines *timelines)
{
    int exit_status = 0;
    for (int i = 0; i < 3; i++) {
        struct clab_error error = {0};
        const clab_status status = i == 0   ? clab_records_close(writer, &error)
                                   : i == 1 ? (csv != NULL ? clab_rows_write_csv(csv, rows, &error) : CLAB_OK)
                                            : clab_timelines_close(timelines, &error);
        if (status != CLAB_OK) {
            clab_cli_say(cli, &error);
            exit_status = clab_status_exit(CLAB_OUTPUT);
        }
        clab_error_clear(&error);
    }
    return exit_status;
}

int clab_cmd_run(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--device", .kind = CLAB_OPTION_LIST},
        {.name = "--variant", .kind = CLAB_OPTION_LIST},
        {.name = "--with", .kind = CLAB_OPTION_LIST},
        {.name = "--cluster", .kind = CLAB_OPTION_TEXT},
        {.name = "--set", .kind = CLAB_OPTION_LIST},
        {.name = "--image", .kind = CLAB_OPTION_TEXT},
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},
        {.name = "--include", .kind = CLAB_OPTION_LIST},
        {.name = "--define", .kind = CLAB_OPTION_LIST},
        {.name = "--option", .kind = CLAB_OPTION_LIST},
        {.name = "--samples", .kind = CLAB_OPTION_TEXT},
        {.name = "--hot", .kind = CLAB_OPTION_FLAG},
        {.name = "--counters", .kind = CLAB_OPTION_FLAG},
        {.name = "--check", .kind = CLAB_OPTION_FLAG},
        {.name = "--json", .kind = CLAB_OPTION_TEXT},
        {.name = "--csv", .kind = CLAB_OPTION_TEXT},
        {.name = "--timeline", .kind = CLAB_OPTION_TEXT},
        {.name = "--timeout", .kind = CLAB_OPTION_TEXT},
        {.name = "--progress", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-schedule", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-seed", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-isa", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-initial-clusters", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-decline", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-driver", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-threads", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-budget", .kind = CLAB_OPTION_TEXT},
        {0},
    };
    const char *positional[1];
    size_t n_positional;
    struct clab_run_options options = {0};
    clab_status status = clab_options_parse_compiler(o, argc, argv, positional, 1, &n_positional, error);
    if (status == CLAB_OK && n_positional != 1)
        status = clab_error_set(error, CLAB_USAGE, "run needs the name or the file of one experiment");
    if (status == CLAB_OK)
        status = read_options(o, &options, error);
    if (status == CLAB_OK)
        status = clab_cli_progress_start(cli, o, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    options.request.experiment = positional[0];

    struct clab_record_writer writer;
    const char *json_path = clab_option_get(o, "--json")->text, *csv_path = clab_option_get(o, "--csv")->text;
    struct clab_output csv = {0};
    const char *timeline_path = clab_option_get(o, "--timeline")->text;
    struct clab_timelines timelines = {0};
    status = open_outputs(json_path, csv_path, &writer, &csv, error);
    if (status == CLAB_OK && timeline_path != NULL)
        status = clab_timelines_open(&timelines, timeline_path, error);
    if (status != CLAB_OK) {
        (void)clab_output_close(&csv);
        (void)clab_output_close(&writer.output);
        return clab_status_exit(status);
    }
    struct clab_compiler_options compiler_options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&compiler_options);
    if (compiler == NULL)
        return clab_status_exit(clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service"));
    const struct clab_option *devices = clab_option_get(o, "--device");
    json_t *emulator_options = clab_cli_emulator_options(o), *rows = json_array();
    struct show show = {.cli = cli, .writer = &writer, .extra = json_object()};
    show.check = clab_option_get(o, "--check")->set ? o : NULL;
    show.timelines = timeline_path != NULL ? &timelines : NULL;
    show.quiet = (json_path != NULL && strcmp(json_path, "-") == 0) ||
                 (csv_path != NULL && strcmp(csv_path, "-") == 0);
    int exit_status = 0;
    size_t count = devices->count != 0 ? devices->count : 1;
    for (size_t i = 0; i < count; i++) {
        struct clab_error one = {0};
        int result = run_device(cli, devices->count != 0 ? devices->list[i] : NULL, emulator_options,
                                compiler, &options, &show, rows, &one);
        exit_status = clab_exit_worse(exit_status, result);
        if (one.status != CLAB_OK && count > 1 && i + 1 < count) {
            clab_cli_say(cli, &one);
        } else if (one.status != CLAB_OK) {
            clab_error_copy(error, &one);
        }
        clab_error_clear(&one);
        if (*cli->interrupted)
            break;
    }
    exit_status = clab_exit_worse(
        exit_status, close_outputs(cli, &writer, csv_path != NULL ? &csv : NULL, rows, &timelines));
    json_decref(show.extra);
    json_decref(rows);
    json_decref(emulator_options);
    clab_compiler_free(compiler);
    return exit_status;
}
