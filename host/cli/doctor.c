/* clusterlab doctor: what is here, which version, what is missing and how to get it. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "compile/toolkit.h"
#include "driver/driver.h"
#include "lab/wire.h"
#include "report/table.h"

static void device_line(struct clab_cli *cli, struct clab_table *table, const char *title, const char *id,
                        bool *out_ok)
{
    struct clab_session session;
    struct clab_error error = {0};
    clab_status status = clab_session_open(&session, id, NULL, cli->interrupted, &error);
    clab_table_row(table);
    clab_table_cell(table, 0, "%s", title);
    *out_ok = status == CLAB_OK;
    if (status == CLAB_OK) {
        clab_table_cell(table, 1, "ok");
        clab_table_cell(table, 2, "%s", clab_json_text(session.facts, "driver", ""));
        clab_table_cell(table, 3, "%s (%s)", clab_json_text(session.facts, "driver_path", ""),
                        clab_json_text(session.facts, "name", ""));
        clab_session_close(&session);
    } else {
        clab_table_cell(table, 1, "missing");
        clab_table_cell(table, 3, "%s", error.message);
    }
    clab_error_clear(&error);
}

/* True when the part is here and can be used. */
static bool part_line(struct clab_table *table, const struct clab_toolkit *toolkit, enum clab_part_id id)
{
    const struct clab_part *part = &toolkit->parts[id];
    char version[64] = "";
    struct clab_error error = {0};
    const bool broken =
        part->found && clab_toolkit_version(toolkit, id, version, sizeof version, &error) != CLAB_OK;
    clab_table_row(table);
    clab_table_cell(table, 0, "%s", part->name);
    clab_table_cell(table, 1, "%s", !part->found ? "missing" : broken ? "broken" : "ok");
    clab_table_cell(table, 2, "%s", version);
    if (broken)
        clab_table_cell(table, 3, "%s (%s)", error.message, part->origin);
    else if (part->found)
        clab_table_cell(table, 3, "%s (%s)", part->path, part->origin);
    else
        clab_table_cell(table, 3, "%s: %s", part->use, part->remedy);
    clab_error_clear(&error);
    return part->found && !broken;
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

int clab_cmd_doctor(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {{0}};
    size_t n;
    bool gpu = false, emulator = false, usable[CLAB_PART_COUNT];
    clab_status status = clab_options_parse(o, argc, argv, NULL, 0, &n, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    struct clab_compiler *compiler = clab_compiler_new(&options);
    if (compiler == NULL)
        return clab_status_exit(clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service"));
    struct clab_table table = {0};
    struct clab_str text = {0};
    clab_table_column(&table, "part", false);
    clab_table_column(&table, "state", false);
    clab_table_column(&table, "version", false);
    clab_table_column(&table, "where, or what it is for and how to get it", false);
    device_line(cli, &table, "GPU and driver", "cuda:0", &gpu);
    device_line(cli, &table, "stand-in driver", "emu:sm_90", &emulator);
    const struct clab_toolkit *toolkit = clab_compiler_toolkit(compiler);
    for (int i = 0; i < CLAB_PART_COUNT; i++)
        usable[i] = part_line(&table, toolkit, (enum clab_part_id)i);
    clab_table_row(&table);
    clab_table_cell(&table, 0, "image cache");
    const char *cache = clab_compiler_cache_dir(compiler), *note = clab_compiler_cache_note(compiler);
    char why[4096 + 64] = "";
    if (note[0] == '\0' && cache[0] != '\0')
        try_cache(cache, why, sizeof why);
    else
        snprintf(why, sizeof why, "%.4000s", note);
    clab_table_cell(&table, 1, "%s", why[0] == '\0' && cache[0] != '\0' ? "ok" : "off");
    clab_table_cell(&table, 3, "%s%s%s", cache, why[0] != '\0' ? ": " : "", why);
    clab_table_print(&table, &text);
    fputs(text.text != NULL ? text.text : "", cli->out);
    clab_str_free(&text);
    clab_table_free(&table);
    if (!gpu && emulator)
        fprintf(cli->out,
                "\nNo GPU: experiments run on emu:sm_90 and others, checked and counted but not timed.\n");
    if (!usable[CLAB_PART_NVRTC])
        fprintf(cli->out, "\nNo NVRTC: .cu variants are waived; hand-written PTX runs.\n");
    clab_compiler_free(compiler);
    return gpu || emulator ? 0 : 3;
}
