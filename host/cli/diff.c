/* clusterlab diff: two kernels beside each other; or one, compiled twice. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "compile/target.h"
#include "inspect/inspect.h"
#include "inspect/show_diff.h"
#include "report/record.h"

enum { ARCH, LEVEL, UNIFIED, ALL, JSON, RECORDS, VARIANTS, A, B, INCLUDE, DEFINE, OPTION };

/* Words for the compiler: the common ones and those of one side. */
struct words {
    const char *includes[2 * CLAB_MAX_REPEAT], *defines[2 * CLAB_MAX_REPEAT], *options[2 * CLAB_MAX_REPEAT];
    size_t n_includes, n_defines, n_options;
};

static void sort_words(const struct clab_option *o, const struct clab_option *own, struct words *out)
{
    for (size_t i = 0; i < o[INCLUDE].count; i++)
        out->includes[out->n_includes++] = o[INCLUDE].list[i];
    for (size_t i = 0; i < o[DEFINE].count; i++)
        out->defines[out->n_defines++] = o[DEFINE].list[i];
    for (size_t i = 0; i < o[OPTION].count; i++)
        out->options[out->n_options++] = o[OPTION].list[i];
    for (size_t i = 0; i < own->count; i++) {
        const char *word = own->list[i];
        if (strncmp(word, "-D", 2) == 0 && word[2] != '\0')
            out->defines[out->n_defines++] = word + 2;
        else if (strncmp(word, "-I", 2) == 0 && word[2] != '\0')
            out->includes[out->n_includes++] = word + 2;
        else
            out->options[out->n_options++] = word;
    }
}

/* "sm_90" for both sides, "sm_90,sm_100" for one each. */
static clab_status split_archs(const char *text, char *copy, size_t bytes, const char *archs[2],
                               struct clab_error *error)
{
    const struct clab_target *target;
    if ((size_t)snprintf(copy, bytes, "%s", text) >= bytes)
        return clab_error_set(error, CLAB_USAGE, "--arch: '%s' is no architecture", text);
    char *comma = strchr(copy, ',');
    archs[0] = archs[1] = copy;
    if (comma != NULL && strchr(comma + 1, ',') != NULL)
        return clab_error_set(error, CLAB_USAGE,
                              "--arch wants one architecture, or one for each side, got '%s'", text);
    if (comma != NULL) {
        *comma = '\0';
        archs[1] = comma + 1;
    }
    clab_status status = clab_target_parse(archs[0], &target, error);
    return status == CLAB_OK ? clab_target_parse(archs[1], &target, error) : status;
}

/* "cg,mapa": the records' names of the two sides. */
static clab_status split_variants(const struct clab_option *option, bool with_records, char *copy,
                                  size_t bytes, const char *variants[2], struct clab_error *error)
{
    const int length = snprintf(copy, bytes, "%s", option->text);
    char *comma = strchr(copy, ',');
    if (!with_records || length < 0 || (size_t)length >= bytes || comma == NULL || comma == copy ||
        comma[1] == '\0')
        return clab_error_set(error, CLAB_USAGE,
                              "--variants wants two names of rows in --records, A,B, got '%s'", option->text);
    *comma = '\0';
    variants[0] = copy;
    variants[1] = comma + 1;
    return CLAB_OK;
}

static clab_status open_side(struct clab_compiler *compiler, const struct clab_option *o, unsigned side,
                             const char *what, const char *arch, struct clab_subject *out,
                             struct clab_error *error)
{
    struct words *words = calloc(1, sizeof *words);
    char *file = NULL, *entry = NULL;
    if (words == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the options");
    sort_words(o, &o[side == 0 ? A : B], words);
    clab_status status = clab_inspect_split(what, &file, &entry, error);
    if (status == CLAB_OK)
        status = clab_cli_file_check(file, error);
    const struct clab_inspect_request request = {.file = file,
                                                 .entry = entry,
                                                 .arch = arch,
                                                 .include_dirs = words->includes,
                                                 .include_dir_count = words->n_includes,
                                                 .defines = words->defines,
                                                 .define_count = words->n_defines,
                                                 .options = words->options,
                                                 .option_count = words->n_options};
    if (status == CLAB_OK)
        status = clab_inspect_open(compiler, &request, out, error);
    free(file);
    free(entry);
    free(words);
    return status;
}

/* Which levels can be compared: the one asked for, else those that both sides have. */
static clab_status choose_levels(struct clab_cli *cli, const struct clab_subject sides[2], const char *name,
                                 bool levels[CLAB_LEVELS], struct clab_error *error)
{
    if (name != NULL) {
        for (unsigned s = 0; s < 2; s++) {
            enum clab_level level;
            clab_status status = clab_subject_level(&sides[s], name, &level, error);
            if (status != CLAB_OK)
                return status;
            levels[level] = true;
        }
        return CLAB_OK;
    }
    for (unsigned l = 0; l < CLAB_LEVELS; l++)
        levels[l] = sides[0].has[l] && sides[1].has[l];
    for (unsigned l = 0; l < CLAB_LEVELS; l++)
        for (unsigned s = 0; s < 2 && !levels[l]; s++)
            if (!sides[s].has[l]) {
                const struct clab_error *why = &sides[s].why[l];
                if (!levels[!l]) { /* no level that both have */
                    clab_error_copy(error, why);
                    clab_error_context(error, "nothing to compare");
                    return why->status;
                }
                fprintf(cli->err, "clusterlab: no %s of %s: %s%s%s\n", l == CLAB_LEVEL_PTX ? "PTX" : "SASS",
                        s == 0 ? "A" : "B", why->message, why->remedy[0] != '\0' ? "; " : "", why->remedy);
            }
    return CLAB_OK;
}

static clab_status print(struct clab_cli *cli, const struct clab_option *o,
                         const struct clab_difference *difference, struct clab_error *error)
{
    struct clab_str text = {0};
    struct clab_sources sources = {0};
    struct clab_show show = {
        .out = &text, .colour = clab_cli_colour(cli), .width = clab_cli_width(cli), .sources = &sources};
    clab_status status = CLAB_OK;
    if (o[JSON].set) {
        json_t *object = clab_difference_json(difference);
        json_t *record = json_pack("{s:s,s:s}", "schema", CLAB_SCHEMA, "type", "difference");
        if (object == NULL || json_object_update(record, object) != 0)
            status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the JSON");
        else if (json_dumpf(record, cli->out, JSON_COMPACT) == 0)
            fputc('\n', cli->out);
        json_decref(object);
        json_decref(record);
    } else if (o[UNIFIED].set) {
        status = clab_show_unified(&show, difference, error);
    } else {
        status = clab_show_difference(&show, difference, o[ALL].set, error);
    }
    if (status == CLAB_OK && text.failed)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the text");
    if (status == CLAB_OK && text.text != NULL)
        fputs(text.text, cli->out);
    clab_sources_free(&sources);
    clab_str_free(&text);
    return status;
}

static clab_status compare(struct clab_cli *cli, const struct clab_option *o, const char *const what[2],
                           struct clab_error *error)
{
    struct clab_subject sides[2] = {0};
    struct clab_difference difference = {.sides = {&sides[0], &sides[1]}};
    struct clab_compiler_options options = {.interrupted = cli->interrupted};
    const char *archs[2] = {NULL, NULL};
    const char *variants[2] = {NULL, NULL};
    char copy[64], variant_copy[256], names[2][1200];
    json_t *records = NULL, *times = NULL;
    clab_status status = o[ARCH].set ? split_archs(o[ARCH].text, copy, sizeof copy, archs, error) : CLAB_OK;
    if (status == CLAB_OK && o[LEVEL].set && strcmp(o[LEVEL].text, "ptx") != 0 &&
        strcmp(o[LEVEL].text, "sass") != 0)
        status = clab_error_set(error, CLAB_USAGE, "--level takes ptx or sass, got '%s'", o[LEVEL].text);
    if (status == CLAB_OK && o[VARIANTS].set)
        status =
            split_variants(&o[VARIANTS], o[RECORDS].set, variant_copy, sizeof variant_copy, variants, error);
    if (status == CLAB_OK && o[RECORDS].set)
        status = clab_records_read(o[RECORDS].text, &records, error);
    struct clab_compiler *compiler = status == CLAB_OK ? clab_compiler_new(&options) : NULL;
    if (status == CLAB_OK && compiler == NULL)
        status = clab_error_set(error, CLAB_NO_MEMORY, "no memory for the compile service");
    for (unsigned s = 0; s < 2 && status == CLAB_OK; s++) {
        status = open_side(compiler, o, s, what[s], archs[s], &sides[s], error);
        if (status != CLAB_OK)
            clab_error_context(error, "%s", s == 0 ? "A" : "B");
        struct clab_str name = {0};
        clab_str_addf(&name, "%s, %s%s%s", sides[s].file != NULL ? sides[s].file : "", sides[s].arch,
                      sides[s].compiler[0] != '\0' ? ", " : "", sides[s].compiler);
        const struct clab_option *own = &o[s == 0 ? A : B];
        for (size_t i = 0; i < own->count; i++)
            clab_str_addf(&name, "%s%s", i == 0 ? ", " : " ", own->list[i]);
        snprintf(names[s], sizeof names[s], "%s", name.text != NULL ? name.text : "");
        difference.names[s] = names[s];
        clab_str_free(&name);
    }
    if (status == CLAB_OK)
        status = choose_levels(cli, sides, o[LEVEL].text, difference.levels, error);
    if (status == CLAB_OK && records != NULL)
        difference.times = times = clab_times_of(records, difference.sides, variants);
    if (status == CLAB_OK && records != NULL && json_array_size(times) == 0)
        fprintf(cli->err,
                "clusterlab: %s has no measured rows that are clearly of one kernel and of the other, with "
                "the same "
                "parameters; --variants A,B says which\n",
                o[RECORDS].text);
    if (status == CLAB_OK)
        status = print(cli, o, &difference, error);
    for (unsigned s = 0; s < 2; s++)
        clab_subject_free(&sides[s]);
    json_decref(times);
    json_decref(records);
    clab_compiler_free(compiler);
    return status;
}

int clab_cmd_diff(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {
        [ARCH] = {.name = "--arch", .kind = CLAB_OPTION_TEXT},
        [LEVEL] = {.name = "--level", .kind = CLAB_OPTION_TEXT},
        [UNIFIED] = {.name = "--unified", .kind = CLAB_OPTION_FLAG},
        [ALL] = {.name = "--all", .kind = CLAB_OPTION_FLAG},
        [JSON] = {.name = "--json", .kind = CLAB_OPTION_FLAG},
        [RECORDS] = {.name = "--records", .kind = CLAB_OPTION_TEXT},
        [VARIANTS] = {.name = "--variants", .kind = CLAB_OPTION_TEXT},
        [A] = {.name = "--a", .kind = CLAB_OPTION_LIST},
        [B] = {.name = "--b", .kind = CLAB_OPTION_LIST},
        [INCLUDE] = {.name = "--include", .kind = CLAB_OPTION_LIST},
        [DEFINE] = {.name = "--define", .kind = CLAB_OPTION_LIST},
        [OPTION] = {.name = "--option", .kind = CLAB_OPTION_LIST},
        {0},
    };
    const char *what[2];
    size_t n = 0;
    clab_status status = clab_options_parse_compiler(o, argc, argv, what, 2, &n, error);
    if (status == CLAB_OK && n == 1) {
        what[1] = what[0];
        if (o[A].count == 0 && o[B].count == 0 && (!o[ARCH].set || strchr(o[ARCH].text, ',') == NULL)) {
            clab_error_set(error, CLAB_USAGE,
                           "diff of one file needs two architectures or options for one side");
            status = clab_error_remedy(error, "name a second FILE[:ENTRY], or add --arch A,B or --b -DNAME");
        }
    } else if (status == CLAB_OK && n != 2) {
        status = clab_error_set(error, CLAB_USAGE, "diff needs two FILE[:ENTRY], or one");
    }
    if (status == CLAB_OK && o[JSON].set && o[UNIFIED].set)
        status = clab_error_set(error, CLAB_USAGE,
                                "--json and --unified are two forms of the answer: give either");
    if (status == CLAB_OK)
        status = compare(cli, o, what, error);
    return clab_status_exit(status);
}
