/* clusterlab launch: one kernel of one file, with a launch shape and arguments from the command line. The
   request goes through the same worker as an experiment's rows: a fault, a hang or a crash is one message. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "cli/cli.h"
#include "compile/target.h"
#include "lab/launch.h"
#include "lab/wire.h"

#define DUMP_PER_LINE 16

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

/* Compiles (or takes) the file for the session's device and puts the image where the worker can read it. */
static clab_status make_image(struct clab_cli *cli, const struct clab_session *session, const char *file,
                              const char *entry, const struct clab_option *o, struct clab_image *image,
                              char *path, size_t bytes, struct clab_error *error)
{
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    if (compiler == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    const char *dot = strrchr(file, '.');
    char device_arch[16];
    snprintf(device_arch, sizeof device_arch, "sm_%lld%lld",
             (long long)clab_json_int(session->facts, "cc_major", 9),
             (long long)clab_json_int(session->facts, "cc_minor", 0));
    struct clab_compile_request request = {.source_path = file, .entry = entry, .line_info = true};
    const char *arch = clab_option_get(o, "--arch")->text;
    request.arch = arch != NULL ? arch : device_arch;
    clab_cli_compiler_words(o, &request);
    request.want =
        clab_json_bool(session->facts, "accepts_cubin", false) && (dot == NULL || strcmp(dot, ".ptx") != 0)
            ? CLAB_IMAGE_CUBIN
            : CLAB_IMAGE_PTX;
    clab_status status = clab_session_takes(session, file, error);
    if (status == CLAB_OK)
        status = clab_compile(compiler, &request, image, error);
    clab_compiler_free(compiler);
    if (status == CLAB_OK && clab_temporary_file("launch", path, bytes) != 0)
        return clab_error_set(error, CLAB_OUTPUT, "cannot make a temporary file in %s: %s",
                              clab_temporary_root(), strerror(errno));
    if (status == CLAB_OK && clab_file_write_atomic(path, image->data, image->bytes) != 0)
        status = clab_error_set(error, CLAB_OUTPUT, "cannot write %s: %s", path, strerror(errno));
    return status;
}

static clab_status launch(struct clab_session *session, const struct clab_image *image, const char *path,
                          const char *file, const char *entry, json_t *row, json_t *buffers, int timeout_ms,
                          json_t **out_answer, struct clab_error *error)
{
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s,s:i,s:s,s:s,s:s}", "op", "load", "key", 0, "path", path, "source", file,
                                "entry", image->lowered != NULL ? image->lowered : entry);
    clab_status status = clab_session_ask(session, request, timeout_ms, NULL, NULL, &answer, error);
    json_decref(answer);
    if (status != CLAB_OK)
        return status;
    request = json_pack("{s:s,s:i,s:O,s:O}", "op", "verify", "key", 0, "row", row, "buffers", buffers);
    return clab_session_ask(session, request, timeout_ms, NULL, NULL, out_answer, error);
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
        {.name = "--trace", .kind = CLAB_OPTION_TEXT},
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
    const char *positional[2];
    size_t n_positional;
    long long timeout_s = 30;
    json_t *row = NULL, *buffers = NULL;
    clab_status status = clab_options_parse_compiler(o, argc, argv, positional, 2, &n_positional, error);
    if (status == CLAB_OK && (n_positional != 2 || !o[0].set || !o[1].set))
        status = clab_error_set(error, CLAB_USAGE, "launch needs FILE ENTRY --grid X --block X");
    if (status == CLAB_OK)
        status = clab_cli_file_check(positional[0], error);
    if (status == CLAB_OK)
        status = clab_cli_launch_row(o, &row, &buffers, error);
    if (status == CLAB_OK && clab_option_get(o, "--timeout")->set)
        status = clab_option_number(clab_option_get(o, "--timeout"), 1, 86400, &timeout_s, error);
    json_t *options = clab_cli_emulator_options(o), *answer = NULL;
    if (clab_option_get(o, "--trace")->set) {
        if (options == NULL)
            options = json_object();
        json_object_set_new(options, "trace", json_string(clab_option_get(o, "--trace")->text));
    }
    struct clab_session session = {0};
    struct clab_image image = {0};
    char path[4096] = "";
    bool opened = false;
    if (status == CLAB_OK) {
        status = clab_cli_open(cli, clab_option_get(o, "--device")->text, options, &session, error);
        opened = status == CLAB_OK;
    }
    if (status == CLAB_OK)
        status = make_image(cli, &session, positional[0], positional[1], o, &image, path, sizeof path, error);
    if (status == CLAB_OK) {
        bool timed = clab_json_bool(session.facts, "timed", false);
        status = launch(&session, &image, path, positional[0], positional[1], row, buffers,
                        timed || clab_option_get(o, "--timeout")->set ? (int)timeout_s * 1000 : -1, &answer,
                        error);
        if (status != CLAB_OK) {
            clab_error_name_source(error, positional[0]);
            if (error->file[0] == '\0')
                snprintf(error->file, sizeof error->file, "%s", positional[0]);
            if (error->kernel[0] == '\0')
                snprintf(error->kernel, sizeof error->kernel, "%s", positional[1]);
        }
    }
    if (status == CLAB_OK) {
        print_dumps(cli->out, json_object_get(answer, "dumps"), buffers);
        if (json_is_object(json_object_get(answer, "counters"))) {
            fprintf(cli->out, "counted on %s:\n", session.device);
            print_counters(cli->out, json_object_get(answer, "counters"));
        } else {
            fprintf(cli->out, "launched on %s\n", session.device);
        }
    }
    if (path[0] != '\0')
        unlink(path);
    if (opened)
        clab_session_close(&session);
    clab_image_free(&image);
    json_decref(answer);
    json_decref(options);
    json_decref(row);
    json_decref(buffers);
    return clab_status_exit(status);
}
