/* clusterlab inspect: what a kernel became. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/occupancy.h"
#include "compile/target.h"
#include "inspect/graph.h"
#include "inspect/inspect.h"
#include "inspect/json.h"
#include "inspect/show.h"
#include "report/output.h"
#include "report/record.h"

bool clab_cli_colour(const struct clab_cli *cli)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(cli->out)) == 1 && (no == NULL || no[0] == '\0');
}

int clab_cli_width(const struct clab_cli *cli)
{
    struct winsize size;
    if (isatty(fileno(cli->out)) == 1 && ioctl(fileno(cli->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

/* Why there is only one level, for a person who did not ask for one. */
static void tell_missing(struct clab_cli *cli, const struct clab_subject *subject, enum clab_level shown)
{
    const struct clab_error *why = &subject->why[CLAB_LEVEL_SASS];
    if (shown == CLAB_LEVEL_PTX && !subject->has[CLAB_LEVEL_SASS])
        fprintf(cli->err, "clusterlab: PTX only: %s%s%s\n", why->message, why->remedy[0] != '\0' ? "; " : "",
                why->remedy);
}

static clab_status print_text(struct clab_cli *cli, const struct clab_subject *subject, enum clab_level level,
                              const json_t *occupancy, struct clab_error *error)
{
    struct clab_str text = {0}, occupied = {0};
    struct clab_sources sources = {0};
    struct clab_show show = {
        .out = &text, .colour = clab_cli_colour(cli), .width = clab_cli_width(cli), .sources = &sources};
    if (subject->ptx != NULL)
        clab_source_add(&sources, CLAB_PTX_SOURCE, subject->ptx, subject->ptx_bytes);
    clab_occupancy_text(occupancy, &occupied);
    clab_status status =
        clab_show_inspection(&show, subject, level, occupied.text != NULL ? occupied.text : "", error);
    if (status == CLAB_OK && (text.failed || occupied.failed))
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the text");
    if (status == CLAB_OK)
        fputs(text.text, cli->out);
    clab_sources_free(&sources);
    clab_str_free(&occupied);
    clab_str_free(&text);
    return status;
}

static clab_status print_json(struct clab_cli *cli, const struct clab_subject *subject, enum clab_level level,
                              json_t *occupancy, struct clab_error *error)
{
    json_t *object = clab_subject_json(subject, level), *record;
    if (object == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the JSON");
    json_object_set(object, "occupancy", occupancy);
    record = json_pack("{s:s,s:s}", "schema", CLAB_SCHEMA, "type", "inspection");
    json_object_update(record, object);
    json_dumpf(record, cli->out, JSON_COMPACT);
    fputc('\n', cli->out);
    json_decref(record);
    json_decref(object);
    return CLAB_OK;
}

/* Before anything is compiled: its ending is one of ours, and it can be written. */
static clab_status check_picture(const char *path, struct clab_error *error)
{
    struct clab_output picture = {0};
    clab_status status = clab_graph_check(path, error);
    if (status == CLAB_OK)
        status = clab_output_open(&picture, path, NULL, error);
    (void)clab_output_close(&picture);
    return status;
}

enum { ARCH, LEVEL, JSON, CONTROL_FLOW, DEVICE, BLOCK, SMEM, INCLUDE, DEFINE, OPTION };

static clab_status look(struct clab_cli *cli, const struct clab_option *o, const char *what,
                        struct clab_error *error)
{
    struct clab_inspect_request request = {.arch = o[ARCH].text,
                                           .include_dirs = o[INCLUDE].list,
                                           .include_dir_count = o[INCLUDE].count,
                                           .defines = o[DEFINE].list,
                                           .define_count = o[DEFINE].count,
                                           .options = o[OPTION].list,
                                           .option_count = o[OPTION].count};
    struct clab_occupancy_request occupied = {.devices = o[DEVICE].list, .device_count = o[DEVICE].count};
    struct clab_subject subject = {0};
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    const struct clab_target *target;
    long long number;
    char *file = NULL, *entry = NULL;
    struct clab_error missing = {0}; /* a device that was named and is not here */
    clab_status status = clab_inspect_split(what, &file, &entry, error);
    if (status == CLAB_OK)
        status = clab_cli_file_check(file, error);
    if (status == CLAB_OK && o[ARCH].set)
        status = clab_target_parse(o[ARCH].text, &target, error);
    if (status == CLAB_OK && o[BLOCK].set) {
        status = clab_option_number(&o[BLOCK], 1, 1024, &number, error);
        occupied.block_threads = (unsigned)number;
    }
    if (status == CLAB_OK && o[SMEM].set) {
        status = clab_option_number(&o[SMEM], 0, 1 << 20, &number, error);
        occupied.dynamic_smem_bytes = (unsigned)number;
    }
    for (size_t i = 0; i < o[DEVICE].count && status == CLAB_OK; i++)
        status = clab_cli_device_check(o[DEVICE].list[i], error);
    if (status == CLAB_OK && o[CONTROL_FLOW].set)
        status = check_picture(o[CONTROL_FLOW].text, error);
    if (status == CLAB_OK && o[LEVEL].set && strcmp(o[LEVEL].text, "ptx") != 0 &&
        strcmp(o[LEVEL].text, "sass") != 0)
        status = clab_error_set(error, CLAB_USAGE, "--level takes ptx or sass, got '%s'", o[LEVEL].text);
    struct clab_compiler *compiler = status == CLAB_OK ? clab_compiler_new(&options) : NULL;
    if (status == CLAB_OK && compiler == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    request.file = file;
    request.entry = entry;
    if (status == CLAB_OK)
        status = clab_inspect_open(compiler, &request, &subject, error);
    enum clab_level level = CLAB_LEVEL_PTX;
    if (status == CLAB_OK)
        status = clab_subject_level(&subject, o[LEVEL].text, &level, error);
    json_t *occupancy = json_array();
    if (status == CLAB_OK)
        status = clab_occupancy_ask(cli, &subject, &occupied, occupancy, &missing, error);
    if (status == CLAB_OK && !o[LEVEL].set)
        tell_missing(cli, &subject, level);
    if (status == CLAB_OK)
        status = o[JSON].set ? print_json(cli, &subject, level, occupancy, error)
                             : print_text(cli, &subject, level, occupancy, error);
    if (status == CLAB_OK && o[CONTROL_FLOW].set)
        status = clab_graph_write(&subject.listings[level], o[CONTROL_FLOW].text, error);
    /* PTX that the assembler refuses is shown, and refused. */
    const clab_status refused = subject.why[CLAB_LEVEL_SASS].status;
    if (status == CLAB_OK && level == CLAB_LEVEL_PTX && !o[LEVEL].set &&
        (refused == CLAB_COMPILE || refused == CLAB_PTX_SYNTAX || refused == CLAB_PTX_TARGET)) {
        clab_error_copy(error, &subject.why[CLAB_LEVEL_SASS]);
        status = refused;
    }
    if (status == CLAB_OK && missing.status != CLAB_OK) {
        status = missing.status;
        clab_error_copy(error, &missing);
    }
    clab_error_clear(&missing);
    json_decref(occupancy);
    clab_subject_free(&subject);
    clab_compiler_free(compiler);
    free(file);
    free(entry);
    return status;
}

int clab_cmd_inspect(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        [ARCH] = {.name = "--arch", .kind = CLAB_OPTION_TEXT},
        [LEVEL] = {.name = "--level", .kind = CLAB_OPTION_TEXT},
        [JSON] = {.name = "--json", .kind = CLAB_OPTION_FLAG},
        [CONTROL_FLOW] = {.name = "--control-flow", .kind = CLAB_OPTION_TEXT},
        [DEVICE] = {.name = "--device", .kind = CLAB_OPTION_LIST},
        [BLOCK] = {.name = "--block", .kind = CLAB_OPTION_TEXT},
        [SMEM] = {.name = "--smem", .kind = CLAB_OPTION_TEXT},
        [INCLUDE] = {.name = "--include", .kind = CLAB_OPTION_LIST},
        [DEFINE] = {.name = "--define", .kind = CLAB_OPTION_LIST},
        [OPTION] = {.name = "--option", .kind = CLAB_OPTION_LIST},
        {0},
    };
    const char *positional[1];
    size_t n_positional = 0;
    clab_status status = clab_options_parse_compiler(o, argc, argv, positional, 1, &n_positional, error);
    if (status == CLAB_OK && n_positional != 1)
        status = clab_error_set(error, CLAB_USAGE, "inspect needs one FILE[:ENTRY]");
    if (status == CLAB_OK)
        status = look(cli, o, positional[0], error);
    return clab_status_exit(status);
}
