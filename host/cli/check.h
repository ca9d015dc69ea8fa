/* What `check` and `run --check` share: rows checked by lab/run.h become a report and an exit status. */
#ifndef CLAB_CLI_CHECK_H
#define CLAB_CLI_CHECK_H

#include <jansson.h>

#include "cli/cli.h"
#include "lab/run.h"
#include "report/record.h"

#define CLAB_CHECK_SEEDS  4            /* schedules of a row, unless --seeds says otherwise */
#define CLAB_CHECK_BUDGET "2000000000" /* warp instructions of a checked launch, unless --emu-budget does */

struct clab_check_report {
    struct clab_cli *cli;
    struct clab_record_writer *writer; /* NULL: text on cli->out */
    json_t *suppressions;              /* list, or NULL; borrowed */
    bool strict;                       /* milder kinds count */
    const char *device;                /* id, of the session at hand */
    const char *experiment;            /* as the user named it; NULL for bare files */
    const char *again;                 /* options of the command that replays a hazard, each with a blank before it */
    size_t hazards, milder, accepted, suppressed; /* entries so far */
};

/* A callback for clab_run_options.on_record: says which hazards of a row are suppressed, and writes it and them. */
void clab_check_on_record(void *report, const char *type, const json_t *record);
/* Prints what the rows of one clab_run came to: entries worst first, rows that could not be judged, a line of sums. Returns
   the exit status that hazards alone give. Unless there is a writer. */
int clab_check_print(struct clab_check_report *report, const json_t *rows);
/* The exit status of what was counted so far: 1 for a hazard, or a milder kind with `strict`. */
int clab_check_exit(const struct clab_check_report *report);
/* --suppress FILE as a list (new reference), NULL without one. */
clab_status clab_check_suppressions(const struct clab_option *option, json_t **out_list, struct clab_error *error);
/* After everything: suppressions that covered nothing, on cli->err. */
void clab_check_unused(const struct clab_check_report *report);
/* CLAB_USAGE for a GPU: the checkers are part of the stand-in driver. */
clab_status clab_check_device(const char *device, struct clab_error *error);

#endif
