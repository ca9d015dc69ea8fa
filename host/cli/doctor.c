/* clusterlab doctor: what is here, which version, what is missing and how to get it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"
#include "cli/cli.h"
#include "compile/toolkit.h"
#include "driver/driver.h"
#include "lab/run.h"
#include "lab/wire.h"
#include "report/record.h"
#include "report/table.h"

#define PROGRAM_LIMIT_MS 2000 /* for a program to tell its version */

/* A part that was looked for: {"part", "state": "ok", "missing", "broken" or "off", "version", "where"
   (path), "origin" (how it was found), "use" (what it is for), "reason", "remedy"}; null for what is not
   known. */
static json_t *part_new(const char *name, const char *state)
{
    return json_pack("{s:s,s:s,s:n,s:n,s:n,s:n,s:n,s:n}", "part", name, "state", state, "version", "where",
                     "origin", "use", "reason", "remedy");
}

static void part_set(json_t *part, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        json_object_set_new(part, key, json_string(text));
}

/* Whether the device answers; then it is the last of `parts`, as it is otherwise. */
static bool look_at_device(struct clab_cli *cli, json_t *parts, const char *title, const char *id)
{
    struct clab_session session;
    struct clab_error error = {0};
    clab_status status = clab_session_open(&session, id, NULL, cli->interrupted, &error);
    json_t *part = part_new(title, status == CLAB_OK ? "ok" : "missing");
    if (status == CLAB_OK) {
        part_set(part, "version", clab_json_text(session.facts, "driver", ""));
        part_set(part, "where", clab_json_text(session.facts, "driver_path", ""));
        part_set(part, "origin", clab_json_text(session.facts, "name", ""));
        clab_session_close(&session);
    } else {
        part_set(part, "reason", error.message);
        part_set(part, "remedy", error.remedy);
    }
    clab_error_clear(&error);
    json_array_append_new(parts, part);
    return status == CLAB_OK;
}

/* True when the part is here and can be used. */
static bool look_at_part(json_t *parts, const struct clab_toolkit *toolkit, enum clab_part_id id)
{
    const struct clab_part *found = &toolkit->parts[id];
    char version[64] = "";
    struct clab_error error = {0};
    const bool broken =
        found->found && clab_toolkit_version(toolkit, id, version, sizeof version, &error) != CLAB_OK;
    json_t *part = part_new(found->name, !found->found ? "missing" : broken ? "broken" : "ok");
    part_set(part, "version", version);
    part_set(part, "use", found->use);
    if (found->found) {
        part_set(part, "where", found->path);
        part_set(part, "origin", found->origin);
    } else
        part_set(part, "remedy", found->remedy);
    if (broken)
        part_set(part, "reason", error.message);
    clab_error_clear(&error);
    json_array_append_new(parts, part);
    return found->found && !broken;
}

/* The number after "ersion " in what `program option` says, on either stream: ncu, graphviz. */
static void program_version(const char *program, const char *option, char *version, size_t bytes)
{
    const char *const argv[] = {program, option, NULL};
    struct clab_process process;
    version[0] = '\0';
    if (clab_process_start(&process, argv, NULL, true) != 0)
        return;
    for (int stream = 0; stream < 2; stream++) {
        struct clab_line_reader reader = {.fd = stream == 0 ? process.error_fd : process.from_fd};
        char *line;
        size_t length;
        while (version[0] == '\0' && clab_line_read(&reader, PROGRAM_LIMIT_MS, &line, &length) == 1) {
            const char *at = strstr(line, "ersion ");
            if (at != NULL)
                snprintf(version, bytes, "%.*s", (int)strspn(at + 7, "0123456789."), at + 7);
        }
        clab_line_reader_free(&reader);
    }
    clab_process_kill(&process);
}

static bool find_dot(char *path, size_t bytes)
{
    for (const char *p = getenv("PATH"); p != NULL && *p != '\0';) {
        const size_t n = strcspn(p, ":");
        struct stat info;
        snprintf(path, bytes, "%.*s/dot", (int)n, p);
        if (n > 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* Programs that only one option each asks for. */
static void look_at_programs(json_t *parts)
{
    static const struct {
        const char *name, *option, *use, *remedy;
        bool (*find)(char *path, size_t bytes);
    } programs[] = {
        {"graphviz", "-V", "pictures of inspect --control-flow",
         "apt-get install graphviz (without it, --control-flow FILE.dot)", find_dot},
        {"ncu", "--version", "run --counters on a GPU",
         "comes with a whole CUDA toolkit, or NVIDIA's package cuda-nsight-compute-13-0; $CLUSTERLAB_NCU "
         "names one "
         "elsewhere",
         clab_ncu_find},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char path[4096], version[64];
        const bool found = programs[i].find(path, sizeof path);
        json_t *part = part_new(programs[i].name, found ? "ok" : "missing");
        part_set(part, "use", programs[i].use);
        if (found) {
            program_version(path, programs[i].option, version, sizeof version);
            part_set(part, "version", version);
            part_set(part, "where", path);
        } else
            part_set(part, "remedy", programs[i].remedy);
        json_array_append_new(parts, part);
    }
}

/* Why the cache could not be written to: "" when it can, or when its folder can be made. */
static void try_cache(const char *folder, char *why, size_t bytes)
{
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s", folder);
    why[0] = '\0';
    for (;;) {
        char *slash = strrchr(path, '/');
        if (stat(path, &info) == 0) {
            if (!S_ISDIR(info.st_mode))
                snprintf(why, bytes, "%s is not a folder", path);
            else if (access(path, W_OK | X_OK) != 0)
                snprintf(why, bytes, "%s: %s", path, strerror(errno));
            return;
        }
        if (errno != ENOENT && errno != ENOTDIR)
            snprintf(why, bytes, "%s: %s", path, strerror(errno));
        if (why[0] != '\0' || slash == NULL || slash == path)
            return;
        *slash = '\0';
    }
}

static void look_at_cache(json_t *parts, const struct clab_compiler *compiler)
{
    const char *cache = clab_compiler_cache_dir(compiler), *note = clab_compiler_cache_note(compiler);
    char why[4096 + 64] = "";
    if (note[0] == '\0' && cache[0] != '\0')
        try_cache(cache, why, sizeof why);
    else
        snprintf(why, sizeof why, "%.4000s", note);
    if (cache[0] == '\0' && why[0] == '\0')
        snprintf(why, sizeof why, "none of $CLUSTERLAB_CACHE, $XDG_CACHE_HOME and $HOME names a folder");
    json_t *part = part_new("image cache", why[0] == '\0' && cache[0] != '\0' ? "ok" : "off");
    part_set(part, "where", cache);
    part_set(part, "reason", why);
    json_array_append_new(parts, part);
}

/* The last column: where it is (and how it was found, or what is wrong with it), else what to do about it. */
static void add_where(const json_t *part, struct clab_str *out)
{
    const char *state = clab_json_text(part, "state", ""), *where = clab_json_text(part, "where", "");
    const char *reason = clab_json_text(part, "reason", ""), *origin = clab_json_text(part, "origin", "");
    if (strcmp(state, "broken") == 0)
        clab_str_addf(out, "%s (%s)", reason, origin);
    else if (strcmp(state, "ok") == 0)
        clab_str_addf(out, "%s%s%s%s", where, origin[0] != '\0' ? " (" : "", origin,
                      origin[0] != '\0' ? ")" : "");
    else if (strcmp(state, "off") == 0)
        clab_str_addf(out, "%s%s%s", where, where[0] != '\0' && reason[0] != '\0' ? ": " : "", reason);
    else if (reason[0] != '\0')
        clab_str_addf(out, "%s%s%s", reason, clab_json_text(part, "remedy", "")[0] != '\0' ? "; " : "",
                      clab_json_text(part, "remedy", ""));
    else
        clab_str_addf(out, "%s: %s", clab_json_text(part, "use", ""), clab_json_text(part, "remedy", ""));
}

static void print_parts(struct clab_cli *cli, const json_t *parts)
{
    struct clab_table table = {0};
    struct clab_str text = {0};
    clab_table_column(&table, "part", false);
    clab_table_column(&table, "state", false);
    clab_table_column(&table, "version", false);
    clab_table_column(&table, "where, or what it is for and how to get it", false);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        struct clab_str where = {0};
        add_where(part, &where);
        clab_table_row(&table);
        clab_table_cell(&table, 0, "%s", clab_json_text(part, "part", ""));
        clab_table_cell(&table, 1, "%s", clab_json_text(part, "state", ""));
        clab_table_cell(&table, 2, "%s", clab_json_text(part, "version", ""));
        clab_table_cell(&table, 3, "%s", where.text != NULL ? where.text : "");
        clab_str_free(&where);
    }
    clab_table_print(&table, &text);
    fputs(text.text != NULL ? text.text : "", cli->out);
    clab_str_free(&text);
    clab_table_free(&table);
}

int clab_cmd_doctor(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {{.name = "--json", .kind = CLAB_OPTION_FLAG}, {0}};
    size_t n;
    struct clab_record_writer writer = {0};
    clab_status status = clab_options_parse(o, argc, argv, NULL, 0, &n, error);
    if (status == CLAB_OK)
        status = clab_records_open(&writer, o[0].set ? "-" : NULL, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    if (compiler == NULL)
        return clab_status_exit(clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service"));
    json_t *parts = json_array();
    bool has_nvrtc = false;
    const bool gpu = look_at_device(cli, parts, "GPU and driver", "cuda:0");
    const bool emulator = look_at_device(cli, parts, "stand-in driver", "emu:sm_90");
    const struct clab_toolkit *toolkit = clab_compiler_toolkit(compiler);
    for (int i = 0; i < CLAB_PART_COUNT; i++)
        if (look_at_part(parts, toolkit, (enum clab_part_id)i) && i == CLAB_PART_NVRTC)
            has_nvrtc = true;
    look_at_programs(parts);
    look_at_cache(parts, compiler);
    if (*cli->interrupted) { /* a device that was not waited for is not "missing" */
        json_decref(parts);
        clab_compiler_free(compiler);
        return clab_status_exit(clab_error_set(error, CLAB_INTERRUPTED, "interrupted"));
    }
    int exit_status = gpu || emulator ? 0 : clab_status_exit(CLAB_NO_DEVICE);
    if (o[0].set) {
        for (size_t i = 0; i < json_array_size(parts); i++)
            clab_record_write(&writer, "part", NULL, json_array_get(parts, i));
        if (clab_records_close(&writer, error) != CLAB_OK)
            exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    } else {
        print_parts(cli, parts);
        if (!gpu && emulator)
            fprintf(
                cli->out,
                "\nNo GPU: experiments run on emu:sm_90 and others, checked and counted but not timed.\n");
        if (!has_nvrtc)
            fprintf(cli->out, "\nNo NVRTC: .cu variants are waived; hand-written PTX runs.\n");
    }
    json_decref(parts);
    clab_compiler_free(compiler);
    return exit_status;
}
