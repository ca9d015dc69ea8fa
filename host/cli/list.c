/* clusterlab list: experiments within reach, their variants, and what each needs. */
#include <string.h>

#include "cli/cli.h"
#include "lab/experiment.h"
#include "lab/wire.h"
#include "report/record.h"
#include "report/table.h"

int clab_cmd_list(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    struct clab_option o[] = {{.name = "--json", .kind = CLAB_OPTION_FLAG}, {0}};
    size_t n;
    json_t *experiments = NULL;
    struct clab_record_writer writer = {0};
    clab_status status = clab_options_parse(o, argc, argv, NULL, 0, &n, error);
    if (status == CLAB_OK)
        status = clab_records_open(&writer, o[0].set ? "-" : NULL, error);
    if (status == CLAB_OK)
        status = clab_lab_list(&experiments, error);
    if (status != CLAB_OK)
        return clab_status_exit(status);
    int exit_status = 0;
    for (size_t i = 0; i < json_array_size(experiments); i++) {
        const json_t *experiment = json_array_get(experiments, i),
                     *variants = json_object_get(experiment, "variants");
        const char *broken = clab_json_text(experiment, "error", NULL);
        if (broken != NULL)
            exit_status = clab_status_exit(CLAB_EXPERIMENT);
        clab_record_write(&writer, "experiment", NULL, experiment);
        if (o[0].set)
            continue;
        fprintf(cli->out, "%s%s  %s\n  %s\n", i != 0 ? "\n" : "", clab_json_text(experiment, "name", ""),
                clab_json_text(experiment, "file", ""),
                broken != NULL ? broken : clab_json_text(experiment, "summary", ""));
        struct clab_table table = {0};
        struct clab_str text = {0};
        clab_table_column(&table, "  variant", false);
        clab_table_column(&table, "source", false);
        clab_table_column(&table, "entry", false);
        clab_table_column(&table, "needs", false);
        for (size_t j = 0; j < json_array_size(variants); j++) {
            const json_t *variant = json_array_get(variants, j);
            const char *source = clab_json_text(variant, "source", "");
            const char *base = strrchr(source, '/') != NULL ? strrchr(source, '/') + 1 : source;
            const char *dot = strrchr(source, '.');
            const bool needs_nvrtc = dot != NULL && strcmp(dot, ".cu") == 0;
            clab_table_row(&table);
            clab_table_cell(&table, 0, "  %s%s", clab_json_text(variant, "name", ""),
                            clab_json_bool(variant, "baseline", false) ? " (baseline)" : "");
            clab_table_cell(&table, 1, "%s", base);
            clab_table_cell(&table, 2, "%s", clab_json_text(variant, "entry", ""));
            clab_table_cell(&table, 3, "%s%s", clab_json_text(variant, "requires", "sm_90"),
                            needs_nvrtc ? ", NVRTC" : "");
        }
        if (json_array_size(variants) != 0) {
            clab_table_print(&table, &text);
            fputs(text.text, cli->out);
        }
        clab_table_free(&table);
        clab_str_free(&text);
    }
    if (clab_records_close(&writer, error) != CLAB_OK)
        exit_status = clab_exit_worse(exit_status, clab_status_exit(CLAB_OUTPUT));
    json_decref(experiments);
    return exit_status;
}
