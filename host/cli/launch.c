/* clusterlab launch: one kernel of one file, with a launch shape and arguments from the command line. The
   request goes through the same worker as an experiment's rows: a fault, a hang or a crash is one message. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/temporary.h"
#include "cli/cli.h"
#include "compile/target.h"
#include "lab/fill.h"
#include "lab/launch.h"
#include "lab/wire.h"

/* "8", "8,4" or "8x4x2" as an array of three. */
static clab_status parse_shape(const char *option, const char *text, json_t **out_shape,
                               struct clab_error *error)
{
    json_t *shape = json_array();
    const char *p = text;
    for (int i = 0; i < 3; i++) {
        long long value = 1;
        if (*p != '\0') {
            char *end;
            errno = 0;
            value = strtoll(p, &end, 10);
            if (end == p || errno != 0 || value < 0 || value > UINT32_MAX ||
                (*end != '\0' && *end != ',' && *end != 'x'))
                break;
            p = *end != '\0' ? end + 1 : end;
        }
        json_array_append_new(shape, json_integer(value));
    }
    if (text[0] == '\0' || *p != '\0' || json_array_size(shape) != 3) {
        json_decref(shape);
        return clab_error_set(error, CLAB_USAGE, "%s wants X, X,Y or X,Y,Z, got '%s'", option, text);
    }
    *out_shape = shape;
    return CLAB_OK;
}

/* Clusters have 1 to 16 CTAs; whether the device holds them is its own answer. */
static clab_status check_cluster(const json_t *shape, const char *text, struct clab_error *error)
{
    json_int_t ctas = 1;
    for (size_t i = 0; i < 3 && ctas >= 1 && ctas <= 16; i++) {
        const json_int_t side = json_integer_value(json_array_get(shape, i));
        ctas = side <= 16 ? ctas * side : 17;
    }
    if (ctas < 1 || ctas > 16)
        return clab_error_set(error, CLAB_USAGE, "--cluster wants 1 to 16 CTAs, got '%s'", text);
    return CLAB_OK;
}

static bool parse_fill(const char *text, json_t **out_fill)
{
    char kind[32];
    size_t n = strcspn(text, "(");
    char *end;
    if (text[0] == '@') {
        *out_fill = json_pack("{s:s,s:s}", "kind", "file", "path", text + 1);
        return *out_fill != NULL;
    }
    double value = strtod(text, &end);
    if (end != text && *end == '\0') {
        *out_fill = value == 0 ? json_pack("{s:s}", "kind", "zero")
                               : json_pack("{s:s,s:f}", "kind", "value", "value", value);
        return true;
    }
    if (n >= sizeof kind)
        return false;
    memcpy(kind, text, n);
    kind[n] = '\0';
    if (text[n] == '\0' &&
        (strcmp(kind, "zero") == 0 || strcmp(kind, "ones") == 0 || strcmp(kind, "iota") == 0)) {
        *out_fill = json_pack("{s:s}", "kind", kind);
        return true;
    }
    if (text[n] == '(' && (strcmp(kind, "random") == 0 || strcmp(kind, "bits") == 0)) {
        unsigned long long seed = strtoull(text + n + 1, &end, 10);
        if (end != text + n + 1 && strcmp(end, ")") == 0) {
            *out_fill = json_pack("{s:s,s:I}", "kind", kind, "seed", (json_int_t)seed);
            return true;
        }
    }
    return false;
}

/* A scalar of `type`: a number that the type holds. NULL otherwise (new reference). */
static json_t *parse_scalar(const char *type, const char *text)
{
    const bool is_signed = type[0] == 's';
    const unsigned bits = (unsigned)(clab_element_bytes(clab_element_get(type)) * 8);
    char *end;
    errno = 0;
    if (type[0] == 'f' || type[0] == 'b') {
        double real = strtod(text, &end);
        return end != text && *end == '\0' && (errno == 0 || fabs(real) < 1) ? json_real(real) : NULL;
    }
    const bool negative = text[0] == '-';
    const unsigned long long limit =
        (is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits)) + (negative ? 1 : 0);
    const unsigned long long size = strtoull(text + negative, &end, 0);
    if (!isdigit((unsigned char)text[negative]) || *end != '\0' || errno != 0 || size > limit ||
        (negative && !is_signed))
        return NULL;
    return json_integer((json_int_t)(negative ? 0 - size : size));
}

/* TYPE:VALUE, TYPE[COUNT]:FILL or NAME=TYPE[COUNT]:FILL. */
static clab_status parse_argument(const char *text, size_t index, json_t *arguments, json_t *buffers,
                                  struct clab_error *error)
{
    char name[64], type[16];
    const char *spec = text, *equals = strchr(text, '='), *bracket = strchr(text, '[');
    bool named = equals != NULL && (bracket == NULL || equals < bracket);
    snprintf(name, sizeof name, "arg%zu", index);
    if (named) {
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        spec = equals + 1;
    }
    size_t n = strcspn(spec, "[:");
    snprintf(type, sizeof type, "%.*s", (int)n, spec);
    if (clab_element_get(type) == CLAB_ELEMENT_COUNT) {
        clab_error_set(error, CLAB_USAGE, "--arg '%s': unknown type '%s'", text, type);
        return clab_error_remedy(
            error, "types: u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64; u32:7, f32[1024]:ones");
    }
    if (spec[n] == ':') {
        const char *number = spec + n + 1;
        json_t *value = parse_scalar(type, number);
        if (value == NULL)
            return clab_error_set(error, CLAB_USAGE, "--arg '%s': '%s' is not a %s value", text, number,
                                  type);
        if (named) {
            json_decref(value);
            return clab_error_set(error, CLAB_USAGE, "--arg '%s': only buffers have names, TYPE[COUNT]:FILL",
                                  text);
        }
        json_array_append_new(arguments, json_pack("{s:s,s:o}", "type", type, "value", value));
        return CLAB_OK;
    }
    json_t *fill = NULL;
    char *end = NULL;
    errno = 0;
    long long count = spec[n] == '[' ? strtoll(spec + n + 1, &end, 10) : 0;
    if (spec[n] != '[' || errno != 0 || count < 1 || strncmp(end, "]", 1) != 0 ||
        (end[1] != ':' && end[1] != '\0') || !parse_fill(end[1] == ':' ? end + 2 : "zero", &fill)) {
        clab_error_set(error, CLAB_USAGE, "--arg '%s' is neither TYPE:VALUE nor [NAME=]TYPE[COUNT]:FILL",
                       text);
        return clab_error_remedy(error, "fills: zero, ones, iota, random(SEED), bits(SEED), a number, @FILE");
    }
    json_array_append_new(arguments, json_pack("{s:s}", "buffer", name));
    json_array_append_new(buffers, json_pack("{s:s,s:s,s:I,s:[o],s:b}", "name", name, "type", type, "count",
                                             (json_int_t)count, "fill", fill, "dump", (int)named));
    return CLAB_OK;
}

static void print_dumps(FILE *file, const json_t *dumps)
{
    const char *name;
    json_t *values;
    json_object_foreach((json_t *)(uintptr_t)dumps, name, values)
    {
        fprintf(file, "%s =", name);
        for (size_t i = 0; i < json_array_size(values); i++) {
            const json_t *value = json_array_get(values, i);
            if (json_is_integer(value))
                fprintf(file, " %lld", (long long)json_integer_value(value));
            else if (json_is_real(value))
                fprintf(file, " %.9g", json_real_value(value));
            else
                fprintf(file, " %s", json_string_value(value));
        }
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
                              const char *entry, const char *arch, struct clab_image *image, char *path,
                              size_t bytes, struct clab_error *error)
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
    struct clab_compile_request request = {.source_path = file, .entry = entry};
    request.arch = arch != NULL ? arch : device_arch;
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
        {.name = "--arg", .kind = CLAB_OPTION_LIST},
        {.name = "--device", .kind = CLAB_OPTION_TEXT},
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},
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
    long long shared = 0, timeout_s = 30;
    json_t *shape = json_object(), *arguments = json_array(), *buffers = json_array(), *dimensions = NULL;
    clab_status status = clab_options_parse(o, argc, argv, positional, 2, &n_positional, error);
    if (status == CLAB_OK && (n_positional != 2 || !o[0].set || !o[1].set))
        status = clab_error_set(error, CLAB_USAGE, "launch needs FILE ENTRY --grid X --block X");
    for (int i = 0; i < 3 && status == CLAB_OK; i++) {
        if (!o[i].set)
            continue;
        status = parse_shape(o[i].name, o[i].text, &dimensions, error);
        if (status == CLAB_OK)
            json_object_set_new(shape, o[i].name + 2, dimensions);
    }
    if (status == CLAB_OK && o[2].set)
        status = check_cluster(json_object_get(shape, "cluster"), o[2].text, error);
    if (status == CLAB_OK && o[3].set)
        status = clab_option_number(&o[3], 0, INT32_MAX, &shared, error);
    if (status == CLAB_OK && clab_option_get(o, "--timeout")->set)
        status = clab_option_number(clab_option_get(o, "--timeout"), 1, 86400, &timeout_s, error);
    for (size_t i = 0; i < o[4].count && status == CLAB_OK; i++)
        status = parse_argument(o[4].list[i], i, arguments, buffers, error);
    json_object_set_new(shape, "smem_bytes", json_integer(shared));
    json_t *row = json_pack("{s:o,s:o}", "launch", shape, "args", arguments);
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
        status = make_image(cli, &session, positional[0], positional[1], clab_option_get(o, "--arch")->text,
                            &image, path, sizeof path, error);
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
        print_dumps(cli->out, json_object_get(answer, "dumps"));
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
