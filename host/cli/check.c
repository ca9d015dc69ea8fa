/* clusterlab check: kernels run on the stand-in driver with every checker on, and what could go wrong on a
   GPU. An experiment gives its rows; a bare file is launched as the options of `launch` say. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/check.h"
#include "lab/wire.h"

#define DEFAULT_DEVICE "emu:sm_90"
#define MAX_SUBJECTS   256
#define MAX_SEEDS      1000000

/* Where the entry begins in FILE:ENTRY, or the end of a bare FILE; NULL for what names no kernel file. */
static const char *file_end(const char *word)
{
    static const char *const endings[] = {".cubin", ".fatbin", ".ptx", ".cu"};
    const char *end = NULL;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t bytes = strlen(endings[i]);
        for (const char *at = strstr(word, endings[i]); at != NULL; at = strstr(at + 1, endings[i]))
            if ((at[bytes] == ':' || at[bytes] == '\0') && (end == NULL || at + bytes < end))
                end = at + bytes;
    }
    return end;
}

/* The file of FILE[:ENTRY], as it was named and as a path without links. USAGE when it cannot be read. */
static clab_status real_file(const char *word, char file[PATH_MAX], char real[PATH_MAX],
                             struct clab_error *error)
{
    snprintf(file, PATH_MAX, "%.*s", (int)(file_end(word) - word), word);
    clab_status status = clab_cli_file_check(file, error);
    if (status == CLAB_OK && realpath(file, real) == NULL)
        status = clab_error_set(error, CLAB_USAGE, "cannot read %s: %s", file, strerror(errno));
    return status;
}

static bool is_variant(const json_t *variants, const char *name)
{
    for (size_t i = 0; i < json_array_size(variants); i++)
        if (strcmp(clab_json_text(json_array_get(variants, i), "name", ""), name) == 0)
            return true;
    return false;
}

/* FILE[:ENTRY] as a variant of a plan (host/lab/README.md). */
static clab_status add_file(const char *word, const char *entry, const json_t *row, json_t *variants,
                            json_t *rows, struct clab_error *error)
{
    char file[PATH_MAX], real[PATH_MAX];
    const char *end = file_end(word);
    clab_status status = real_file(word, file, real, error);
    if (status != CLAB_OK)
        return status;
    if (*end == ':')
        entry = end + 1;
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    struct clab_str stem = {0};
    clab_str_add_bytes(&stem, base, (size_t)(strrchr(base, '.') - base));
    const size_t bytes = stem.bytes;
    for (unsigned i = 2; stem.text != NULL && is_variant(variants, stem.text); i++) {
        stem.text[stem.bytes = bytes] = '\0';
        clab_str_addf(&stem, "+%u", i);
    }
    json_t *name = stem.text != NULL ? json_string(stem.text) : NULL;
    clab_str_free(&stem);
    json_t *variant =
        json_pack("{s:o?,s:s,s:s,s:s?,s:b,s:b,s:n,s:[],s:[],s:n,s:n,s:{},s:i,s:i}", "name", name, "about",
                  word, "source", real, "entry", entry, "baseline", 0, "cluster", 1, "static_cluster",
                  "must_contain", "options", "requires", "broken", "accepts", "index", 0, "line", 0);
    json_t *one = json_copy((json_t *)(uintptr_t)row);
    if (name == NULL || variant == NULL || one == NULL)
        return clab_error_set(error, CLAB_USAGE, "'%s' is not UTF-8, which records need", word);
    json_object_set_new(one, "variant", json_integer((json_int_t)json_array_size(variants)));
    json_array_append_new(variants, variant);
    json_array_append_new(rows, one);
    return CLAB_OK;
}

clab_status clab_check_plan(const struct clab_option *o, const char *const *words, size_t count,
                            const char *entry, json_t **out_plan, struct clab_error *error)
{
    json_t *row = NULL, *buffers = NULL, *variants = json_array(), *rows = json_array();
    *out_plan = NULL;
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < count && status == CLAB_OK; i++) { /* a file that is not there needs no launch */
        char file[PATH_MAX], real[PATH_MAX];
        status = real_file(words[i], file, real, error);
    }
    if (status == CLAB_OK)
        status = clab_cli_launch_row(o, &row, &buffers, error);
    if (status == CLAB_OK && (!clab_option_get(o, "--grid")->set || !clab_option_get(o, "--block")->set)) {
        clab_error_set(error, CLAB_USAGE, "a bare file needs its launch: --grid X --block X");
        status = clab_error_remedy(
            error, "or check it in an experiment: clusterlab check EXPERIMENT --with %s", words[0]);
    }
    if (status == CLAB_OK) {
        json_object_set_new(row, "params", json_object());
        json_object_set_new(row, "waived", json_null());
        json_object_set_new(row, "bytes", json_null());
        json_object_set_new(row, "columns", json_object());
        json_object_set_new(row, "buffers", json_integer(0));
    }
    for (size_t i = 0; i < count && status == CLAB_OK; i++)
        status = add_file(words[i], entry, row, variants, rows, error);
    if (status == CLAB_OK)
        *out_plan = json_pack("{s:n,s:s,s:s,s:b,s:{},s:O,s:[],s:[],s:O,s:[O]}", "experiment", "file", "",
                              "sha256", "", "hot", 0, "params", "variants", variants, "columns",
                              "predictions", "rows", rows, "buffer_sets", buffers);
    json_decref(row);
    json_decref(buffers);
    json_decref(variants);
    json_decref(rows);
    return status;
}

void clab_check_word(const char *word, struct clab_str *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^";
    const bool quote = word[0] == '\0' || strspn(word, plain) != strlen(word);
    clab_str_add(text, quote ? " '" : " ");
    for (const char *p = word; *p != '\0'; p++)
        if (*p == '\'')
            clab_str_add(text, "'\\''");
        else
            clab_str_add_bytes(text, p, 1);
    clab_str_add(text, quote ? "'" : "");
}

void clab_check_again(const struct clab_option *o, bool is_file, struct clab_str *out)
{
    static const char *const left_out[] = {
        "--seeds",       "--seed",    "--json",     "--csv",     "--strict",   "--all",          "--suppress",
        "--entry",       "--check",   "--hot",      "--samples", "--image",    "--emu-schedule", "--emu-seed",
        "--emu-threads", "--emu-isa", "--progress", "--trace",   "--counters", "--timeline"};
    for (; o->name != NULL; o++) {
        bool skip =
            !o->set || (!is_file && (strcmp(o->name, "--variant") == 0 || strcmp(o->name, "--cluster") == 0));
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
            skip = skip || strcmp(o->name, left_out[i]) == 0;
        for (size_t i = 0; !skip && i < (o->kind == CLAB_OPTION_LIST ? o->count : 1); i++) {
            clab_str_addf(out, " %s", o->name);
            if (o->kind != CLAB_OPTION_FLAG)
                clab_check_word(o->kind == CLAB_OPTION_LIST ? o->list[i] : o->text, out);
        }
    }
}

static clab_status read_options(const struct clab_option *o, struct clab_run_options *options,
                                struct clab_error *error)
{
    const struct clab_option *seeds = clab_option_get(o, "--seeds"), *seed = clab_option_get(o, "--seed"),
                             *timeout = clab_option_get(o, "--timeout");
    long long number = CLAB_CHECK_SEEDS, first = 1, seconds = 30;
    clab_status status = CLAB_OK;
    if (seeds->set && seed->set)
        return clab_error_set(error, CLAB_USAGE,
                              "--seeds is for several schedules, --seed for one: give either");
    if (seeds->set)
        status = clab_option_number(seeds, 1, MAX_SEEDS, &number, error);
    if (status == CLAB_OK && seed->set) {
        status = clab_option_number(seed, 0, INT64_MAX, &first, error);
        number = 1;
    }
    if (status == CLAB_OK && timeout->set)
        status = clab_option_number(timeout, 1, 86400, &seconds, error);
    options->seeds = (unsigned)number;
    options->first_seed = (uint64_t)first;
    options->timeout_always = timeout->set;
    options->timeout_ms = (int)seconds * 1000;
    options->arch = clab_option_get(o, "--arch")->text;
    clab_cli_compiler_words(o, &options->words);
    options->request.sets = clab_option_get(o, "--set")->list;
    options->request.n_sets = clab_option_get(o, "--set")->count;
    options->request.clusters = clab_option_get(o, "--cluster")->text;
    options->request.variants = clab_option_get(o, "--variant")->list;
    options->request.n_variants = clab_option_get(o, "--variant")->count;
    options->request.withs = clab_option_get(o, "--with")->list;
    options->request.n_withs = clab_option_get(o, "--with")->count;
    return status;
}

/* One subject: an experiment, or (NULL) the files of `plan`. */
static int check_subject(const struct clab_option *o, const char *experiment, const json_t *plan,
                         struct clab_session *session, struct clab_compiler *compiler,
                         struct clab_run_options *options, struct clab_check_report *report,
                         struct clab_error *error)
{
    struct clab_str again = {0};
    clab_check_again(o, experiment == NULL, &again);
    report->experiment = experiment;
    report->again = again.text != NULL ? again.text : "";
    options->plan = plan;
    options->request.experiment = experiment;
    const int result = clab_check_run(session, compiler, options, report, error);
    clab_str_free(&again);
    return result;
}

/* The files first, all in one plan; then the experiments. What stops one of several is said, and the others
   are checked; the last one's error is the command's. */
static int check_all(const struct clab_option *o, const char *const *words, size_t count,
                     struct clab_session *session, struct clab_compiler *compiler,
                     struct clab_run_options *options, struct clab_check_report *report,
                     struct clab_error *error)
{
    const char *files[MAX_SUBJECTS];
    size_t n_files = 0;
    int exit_status = 0;
    for (size_t i = 0; i < count; i++)
        if (file_end(words[i]) != NULL)
            files[n_files++] = words[i];
    if (n_files != 0) {
        json_t *plan = NULL;
        clab_status status =
            clab_check_plan(o, files, n_files, clab_option_get(o, "--entry")->text, &plan, error);
        exit_status = status == CLAB_OK
                          ? check_subject(o, NULL, plan, session, compiler, options, report, error)
                          : clab_status_exit(status);
        json_decref(plan);
    }
    for (size_t i = 0; i < count && !*report->cli->interrupted; i++) {
        if (file_end(words[i]) != NULL)
            continue;
        if (error->status != CLAB_OK)
            clab_cli_say(report->cli, error);
        clab_error_clear(error);
        exit_status = clab_exit_worse(
            exit_status, check_subject(o, words[i], NULL, session, compiler, options, report, error));
    }
    return exit_status;
}

int clab_cmd_check(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        {.name = "--device", .kind = CLAB_OPTION_TEXT},
        {.name = "--seeds", .kind = CLAB_OPTION_TEXT},
        {.name = "--seed", .kind = CLAB_OPTION_TEXT},
        {.name = "--json", .kind = CLAB_OPTION_FLAG},
        {.name = "--strict", .kind = CLAB_OPTION_FLAG},
        {.name = "--all", .kind = CLAB_OPTION_FLAG},
        {.name = "--suppress", .kind = CLAB_OPTION_TEXT},
        {.name = "--variant", .kind = CLAB_OPTION_LIST},
        {.name = "--with", .kind = CLAB_OPTION_LIST},
        {.name = "--cluster", .kind = CLAB_OPTION_TEXT},
        {.name = "--set", .kind = CLAB_OPTION_LIST},
        {.name = "--entry", .kind = CLAB_OPTION_TEXT},
        {.name = "--grid", .kind = CLAB_OPTION_TEXT},
        {.name = "--block", .kind = CLAB_OPTION_TEXT},
        {.name = "--smem", .kind = CLAB_OPTION_TEXT},
        {.name = "--cooperative", .kind = CLAB_OPTION_FLAG},
        {.name = "--arg", .kind = CLAB_OPTION_LIST},
        {.name = "--arch", .kind = CLAB_OPTION_TEXT},
        {.name = "--include", .kind = CLAB_OPTION_LIST},
        {.name = "--define", .kind = CLAB_OPTION_LIST},
        {.name = "--option", .kind = CLAB_OPTION_LIST},
        {.name = "--timeout", .kind = CLAB_OPTION_TEXT},
        {.name = "--progress", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-budget", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-initial-clusters", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-decline", .kind = CLAB_OPTION_TEXT},
        {.name = "--emu-driver", .kind = CLAB_OPTION_TEXT},
        {0},
    };
    const char *words[MAX_SUBJECTS];
    size_t count;
    struct clab_run_options options = {.interrupted = cli->interrupted};
    struct clab_record_writer writer = {0};
    json_t *suppressions = NULL;
    clab_status status = clab_options_parse_compiler(o, argc, argv, words, MAX_SUBJECTS, &count, error);
    const char *device =
        clab_option_get(o, "--device")->set ? clab_option_get(o, "--device")->text : DEFAULT_DEVICE;
    if (status == CLAB_OK && count == 0)
        status =
            clab_error_set(error, CLAB_USAGE, "check needs an experiment, or a kernel file with its launch");
    if (status == CLAB_OK)
        status = read_options(o, &options, error);
    if (status == CLAB_OK)
        status = clab_cli_progress_start(cli, o, error);
    if (status == CLAB_OK)
        status = clab_check_device(device, error);
    if (status == CLAB_OK)
        status = clab_cli_device_check(device, error);
    if (status == CLAB_OK)
        status = clab_check_suppressions(clab_option_get(o, "--suppress"), &suppressions, error);
    const bool json = clab_option_get(o, "--json")->set;
    if (status == CLAB_OK)
        status = clab_records_open(&writer, json ? "-" : NULL, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    struct clab_session session;
    struct clab_compiler_options compiler_options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&compiler_options);
    json_t *emulator = clab_cli_emulator_options(o);
    if (emulator == NULL)
        emulator = json_object();
    if (json_object_get(emulator, "budget") == NULL)
        json_object_set_new(emulator, "budget", json_string(CLAB_CHECK_BUDGET));
    int exit_status = clab_status_exit(CLAB_NO_MEMORY);
    if (compiler == NULL)
        clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    else if ((status = clab_cli_open(cli, device, emulator, &session, error)) != CLAB_OK)
        exit_status = clab_status_exit(status);
    else {
        struct clab_check_report report = {.cli = cli,
                                           .writer = json ? &writer : NULL,
                                           .is_quiet = json,
                                           .suppressions = suppressions,
                                           .all = clab_option_get(o, "--all")->set,
                                           .strict = clab_option_get(o, "--strict")->set,
                                           .device = session.device};
        json_t *record = clab_run_record(cli->argc, cli->argv, NULL);
        clab_record_write(&writer, "run", NULL, record);
        json_decref(record);
        exit_status = check_all(o, words, count, &session, compiler, &options, &report, error);
        clab_check_unused(&report);
        clab_session_close(&session);
    }
    if (clab_records_close(&writer, error->status == CLAB_OK ? error : NULL) != CLAB_OK)
        exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    clab_compiler_free(compiler);
    json_decref(emulator);
    json_decref(suppressions);
    return exit_status;
}
