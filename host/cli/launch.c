/* clusterlab launch: one kernel of one file, with a launch shape and arguments from the command line. The
   request goes through the same worker as an experiment's rows: a fault, a hang or a crash is one message. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "compile/target.h"
#include "lab/launch.h"
#include "lab/run.h"
#include "lab/wire.h"
#include "report/record.h"

#define DUMP_PER_LINE     16
#define DEFAULT_TIMEOUT_S 30
#define MAX_TIMEOUT_S     86400

static void print_value(FILE *file, const json_t *value, bool is_u64)
{
    if (json_is_integer(value) && is_u64) /* travels as its two's complement */
        fprintf(file, " %llu", (unsigned long long)json_integer_value(value));
    else if (json_is_integer(value))
        fprintf(file, " %lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(file, " %.9g", json_real_value(value));
    else
        fprintf(file, " %s", json_string_value(value));
}

/* "out = 1 2 3"; many elements in lines of sixteen, the later ones indented. */
static void print_dumps(FILE *file, const json_t *dumps, const json_t *buffers)
{
    for (size_t b = 0; b < json_array_size(buffers); b++) {
        const json_t *buffer = json_array_get(buffers, b);
        const char *name = clab_json_text(buffer, "name", "");
        const json_t *values = json_object_get(dumps, name);
        const size_t shown = json_array_size(values);
        const int64_t count = clab_json_int(buffer, "count", 0);
        if (values == NULL)
            continue;
        fprintf(file, "%s =", name);
        for (size_t i = 0; i < shown; i++) {
            if (i != 0 && i % DUMP_PER_LINE == 0)
                fprintf(file, "\n%*s", (int)strlen(name) + 2, "");
            print_value(file, json_array_get(values, i),
                        strcmp(clab_json_text(buffer, "type", ""), "u64") == 0);
        }
        if ((uint64_t)count > shown)
            fprintf(file, "\n... %lld more", (long long)count - (long long)shown);
        fputc('\n', file);
    }
}

static void print_counters(FILE *file, const json_t *counters)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)counters, name, value)
    {
        if (json_integer_value(value) != 0)
            fprintf(file, "  %-28s %lld\n", name, (long long)json_integer_value(value));
    }
}

struct launch {
    const char *file, *entry;
    json_t *row, *buffers; /* as a plan has them */
    struct clab_image image;
    char path[4096];            /* where the worker finds the image; "" not yet */
    json_t *resources, *answer; /* of the kernel; of the launch; NULL not yet */
};

/* Compiles (or takes) the file for the session's device and puts the image where the worker can read it. */
static clab_status make_image(struct clab_cli *cli, const struct clab_session *session,
                              struct clab_compiler *compiler, struct launch *what,
                              const struct clab_option *o, struct clab_error *error)
{
    const char *dot = strrchr(what->file, '.');
    char device_arch[16];
    snprintf(device_arch, sizeof device_arch, "sm_%lld%lld",
             (long long)clab_json_int(session->facts, "cc_major", 9),
             (long long)clab_json_int(session->facts, "cc_minor", 0));
    struct clab_compile_request request = {
        .source_path = what->file, .entry = what->entry, .line_info = true};
    const char *arch = clab_option_get(o, "--arch")->text;
    request.arch = arch != NULL ? arch : device_arch;
    clab_cli_compiler_words(o, &request);
    request.want =
        clab_json_bool(session->facts, "accepts_cubin", false) && (dot == NULL || strcmp(dot, ".ptx") != 0)
            ? CLAB_IMAGE_CUBIN
            : CLAB_IMAGE_PTX;
    clab_status status = clab_session_takes(session, what->file, error);
    clab_cli_progress(cli, "compile", "", 0, 1);
    if (status == CLAB_OK)
        status = clab_compile(compiler, &request, &what->image, error);
    clab_cli_progress_erase(cli);
    if (status == CLAB_OK && clab_temporary_file("launch", what->path, sizeof what->path) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                              clab_temporary_root(), strerror(errno));
    if (status == CLAB_OK && clab_file_write_atomic(what->path, what->image.data, what->image.bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", what->path, strerror(errno));
    return status;
}

static clab_status launch(struct clab_cli *cli, struct clab_session *session, struct launch *what,
                          int timeout_ms, struct clab_error *error)
{
    json_t *answer = NULL;
    json_t *request =
        json_pack("{s:s,s:i,s:s,s:s,s:s}", "op", "load", "key", 0, "path", what->path, "source", what->file,
                  "entry", what->image.lowered != NULL ? what->image.lowered : what->entry);
    clab_status status = clab_session_ask(session, request, timeout_ms, NULL, NULL, &answer, error);
    what->resources = json_incref(json_object_get(answer, "resources"));
    json_decref(answer);
    if (status == CLAB_OK) {
        clab_cli_progress(cli, "launch", what->entry, 0, 1);
        request = json_pack("{s:s,s:i,s:O,s:O}", "op", "verify", "key", 0, "row", what->row, "buffers",
                            what->buffers);
        status = clab_session_ask(session, request, timeout_ms, NULL, NULL, &what->answer, error);
    }
    clab_cli_progress_erase(cli);
    if (status != CLAB_OK && status != CLAB_INTERRUPTED) {
        clab_error_name_source(error, what->file);
        if (error->file[0] == '\0')
            snprintf(error->file, sizeof error->file, "%s", what->file);
        if (error->kernel[0] == '\0')
            snprintf(error->kernel, sizeof error->kernel, "%s", what->entry);
    }
    return status;
}

static void print_answer(struct clab_cli *cli, const struct launch *what, const char *device)
{
    const json_t *counters = json_object_get(what->answer, "counters");
    print_dumps(cli->out, json_object_get(what->answer, "dumps"), what->buffers);
    if (json_is_object(counters)) {
        fprintf(cli->out, "counted on %s:\n", device);
        print_counters(cli->out, counters);
    } else {
        fprintf(cli->out, "launched on %s\n", device);
    }
    fflush(cli->out);
}

/* --- records */

/* Text for what a JSON number of ours cannot hold: a u64 from 2^63 on. */
static json_t *values_of(const json_t *dump, const char *type)
{
    json_t *values = json_array();
    for (size_t i = 0; i < json_array_size(dump); i++) {
        json_t *value = json_array_get(dump, i);
        if (strcmp(type, "u64") == 0 && json_integer_value(value) < 0)
            json_array_append_new(values,
                                  json_sprintf("%llu", (unsigned long long)json_integer_value(value)));
        else
            json_array_append(values, value);
    }
    return values;
}

/* The named buffers, those that are printed, with what they hold after the launch (null: it did not end). */
static json_t *buffer_records(const struct launch *what)
{
    const json_t *dumps = json_object_get(what->answer, "dumps");
    json_t *records = json_array();
    for (size_t i = 0; i < json_array_size(what->buffers); i++) {
        const json_t *buffer = json_array_get(what->buffers, i), *dump;
        const char *type = clab_json_text(buffer, "type", "");
        if (!clab_json_bool(buffer, "dump", false))
            continue;
        dump = json_object_get(dumps, clab_json_text(buffer, "name", ""));
        json_array_append_new(records,
                              json_pack("{s:O,s:s,s:O,s:o}", "name", json_object_get(buffer, "name"), "type",
                                        type, "count", json_object_get(buffer, "count"), "values",
                                        dump != NULL ? values_of(dump, type) : json_null()));
    }
    return records;
}

static json_t *image_record(const struct launch *what)
{
    const struct clab_image *image = &what->image;
    if (image->kind == CLAB_IMAGE_NONE)
        return json_null();
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "kind", clab_image_kind_name(image->kind), "arch",
                     image->arch, "source", what->file, "entry", what->entry, "sha256", image->sha256,
                     "compiler", image->compiler);
}

/* A row like those of `run`, of no experiment, and with `args` and `buffers`. */
static void write_row(struct clab_record_writer *writer, const struct launch *what,
                      const struct clab_option *args, const struct clab_session *session, clab_status status,
                      const struct clab_error *error)
{
    static const char *const shown[] = {"id", "uuid", "name", "cc", "emulated", "sms", "driver"};
    json_t *device = json_object(), *words = json_array(), *shape = json_object_get(what->answer, "launch");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        json_object_set(device, shown[i], json_object_get(session->facts, shown[i]));
    for (size_t i = 0; i < args->count; i++)
        json_array_append_new(words, json_string(args->list[i]));
    const json_t *asked = json_object_get(what->row, "launch");
    const char *base = strrchr(what->file, '/') != NULL ? strrchr(what->file, '/') + 1 : what->file;
    const char *end = strrchr(base, '.');
    json_t *stem = json_stringn(base, end != NULL ? (size_t)(end - base) : strlen(base));
    json_t *record = json_pack(
        "{s:n,s:o,s:s,s:s,s:{},s:o,s:o,s:O,s:o,s:O?,s:o,s:O?}", "experiment", "variant", stem, "status",
        clab_status_word(status), "reason", status == CLAB_OK ? "" : error->message, "params", "device",
        device, "image", image_record(what), "launch", shape != NULL ? shape : (json_t *)(uintptr_t)asked,
        "args", words, "resources", what->resources, "buffers", buffer_records(what), "counters",
        json_object_get(what->answer, "counters"));
    if (status != CLAB_OK)
        json_object_set_new(record, "error", clab_error_to_json(error));
    clab_record_write(writer, "row", NULL, record);
    json_decref(record);
}

/* --- --check */

/* The same launch under every checker, in a worker of its own. */
static int check(struct clab_cli *cli, const struct clab_option *o, const struct launch *what,
                 struct clab_session *session, struct clab_compiler *compiler,
                 struct clab_record_writer *writer, bool is_quiet, struct clab_error *error)
{
    struct clab_run_options options = {
        .interrupted = cli->interrupted, .seeds = CLAB_CHECK_SEEDS, .first_seed = 1};
    struct clab_check_report report = {
        .cli = cli, .writer = writer, .is_quiet = is_quiet, .is_beside = true, .device = session->device};
    struct clab_str again = {0};
    json_t *plan = NULL;
    long long timeout_s = DEFAULT_TIMEOUT_S;
    int exit_status;
    clab_status status = clab_check_plan(o, &what->file, 1, what->entry, &plan, error);
    if (status == CLAB_OK && clab_option_get(o, "--timeout")->set)
        status = clab_option_number(clab_option_get(o, "--timeout"), 1, MAX_TIMEOUT_S, &timeout_s, error);
    if (status == CLAB_OK && clab_option_get(o, "--trace")->set)
        status = clab_session_option(session, "trace", "", error);
    clab_check_again(o, true, &again);
    report.again = again.text != NULL ? again.text : "";
    options.plan = plan;
    options.arch = clab_option_get(o, "--arch")->text;
    options.timeout_ms = (int)timeout_s * 1000;
    options.timeout_always = clab_option_get(o, "--timeout")->set;
    clab_cli_compiler_words(o, &options.words);
    session->has_run = true; /* the launch has left its image in the worker */
    if (!is_quiet)
        fputc('\n', cli->out);
    exit_status = status == CLAB_OK ? clab_check_run(session, compiler, &options, &report, error)
                                    : clab_status_exit(status);
    clab_str_free(&again);
    json_decref(plan);
    return exit_status;
}

/* --- the command */

static clab_status read_options(struct clab_cli *cli, const struct clab_option *o, struct launch *what,
                                long long *out_timeout_s, struct clab_error *error)
{
    clab_status status = clab_cli_file_check(what->file, error);
    if (status == CLAB_OK)
        status = clab_cli_launch_row(o, &what->row, &what->buffers, error);
    if (status == CLAB_OK && clab_option_get(o, "--timeout")->set)
        status = clab_option_number(clab_option_get(o, "--timeout"), 1, MAX_TIMEOUT_S, out_timeout_s, error);
    if (status == CLAB_OK && clab_option_get(o, "--check")->set)
        status = clab_check_device(clab_option_get(o, "--device")->text, error);
    return status == CLAB_OK ? clab_cli_progress_start(cli, o, error) : status;
}

int clab_cmd_launch(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--grid", .kind = CLAB_OPTION_TEXT},
        {.name = "--block", .kind = CLAB_OPTION_TEXT},
        {.name = "--cluster", .kind = CLAB_OPTION_TEXT},
        {.name = "--smem", .kind = CLAB_OPTION_TEXT},
        {.name = "--cooperative", .kind = CLAB_OPTION_FLAG},
        {.name = "--arg", .kind = CLAB_OPTION_LIST},
        {.name = "--device", .kind = CLAB_OPTION_TEXT},
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},
        {.name = "--include", .kind = CLAB_OPTION_LIST},
        {.name = "--define", .kind = CLAB_OPTION_LIST},
        {.name = "--option", .kind = CLAB_OPTION_LIST},
        {.name = "--timeout", .kind = CLAB_OPTION_TEXT},
        {.name = "--progress", .kind = CLAB_OPTION_TEXT},
        {.name = "--trace", .kind = CLAB_OPTION_TEXT},
        {.name = "--check", .kind = CLAB_OPTION_FLAG},
        {.name = "--json", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-schedule", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-seed", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-isa", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-driver", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-threads", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-budget", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-initial-clusters", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-decline", .kind = CLAB_OPTION_TEXT},
        {0},
    };
    const char *positional[2] = {NULL, NULL};
    size_t n_positional;
    long long timeout_s = DEFAULT_TIMEOUT_S;
    struct launch what = {0};
    struct clab_record_writer writer = {0};
    clab_status status = clab_options_parse_compiler(o, argc, argv, positional, 2, &n_positional, error);
    if (status == CLAB_OK && (n_positional != 2 || !o[0].set || !o[1].set))
        status = clab_error_set(error, CLAB_USAGE, "launch needs FILE ENTRY --grid X --block X");
    what.file = positional[0];
    what.entry = positional[1];
    if (status == CLAB_OK)
        status = read_options(cli, o, &what, &timeout_s, error);
    const char *json = clab_option_get(o, "--json")->text;
    const bool is_quiet = json != NULL && strcmp(json, "-") == 0;
    if (status == CLAB_OK)
        status = clab_records_open(&writer, json, error);
    json_t *options = clab_cli_emulator_options(o);
    if (clab_option_get(o, "--trace")->set) {
        if (options == NULL)
            options = json_object();
        json_object_set_new(options, "trace", json_string(clab_option_get(o, "--trace")->text));
    }
    struct clab_session session = {0};
    struct clab_compiler_options compiler_options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = NULL;
    bool opened = false;
    if (status == CLAB_OK) {
        status = clab_cli_open(cli, clab_option_get(o, "--device")->text, options, &session, error);
        opened = status == CLAB_OK;
    }
    if (status == CLAB_OK && clab_option_get(o, "--check")->set)
        status = clab_check_device(session.device, error);
    if (status == CLAB_OK && (compiler = clab_compiler_new(&compiler_options)) == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    int exit_status = 0;
    if (status == CLAB_OK) {
        const bool watched =
            clab_json_bool(session.facts, "timed", false) || clab_option_get(o, "--timeout")->set;
        status = make_image(cli, &session, compiler, &what, o, error);
        const bool made = status == CLAB_OK;
        if (made)
            status = launch(cli, &session, &what, watched ? (int)timeout_s * 1000 : -1, error);
        json_t *run = clab_run_record(cli->argc, cli->argv, NULL);
        clab_record_write(&writer, "run", NULL, run);
        json_decref(run);
        write_row(&writer, &what, clab_option_get(o, "--arg"), &session, status, error);
        if (status == CLAB_OK && !is_quiet)
            print_answer(cli, &what, session.device);
        if (made && status != CLAB_INTERRUPTED && clab_option_get(o, "--check")->set) {
            if (status != CLAB_OK)
                clab_cli_say(cli, error);
            clab_error_clear(error);
            exit_status = check(cli, o, &what, &session, compiler, &writer, is_quiet, error);
        }
    }
    if (clab_records_close(&writer, error->status == CLAB_OK ? error : NULL) != CLAB_OK)
        exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    if (what.path[0] != '\0')
        unlink(what.path);
    if (opened)
        clab_session_close(&session);
    clab_compiler_free(compiler);
    clab_image_free(&what.image);
    json_decref(what.resources);
    json_decref(what.answer);
    json_decref(what.row);
    json_decref(what.buffers);
    json_decref(options);
    return clab_exit_worse(exit_status, clab_status_exit(status));
}
