/* What `check` and `run --check` share: rows checked by lab/run.h become a report and an exit status. */
#ifndef CLAB_CLI_CHECK_H
#define CLAB_CLI_CHECK_H

#include <jansson.h>

#include "base/str.h"
#include "cli/cli.h"
#include "lab/run.h"
#include "report/record.h"

#define CLAB_CHECK_SEEDS  4            /* schedules of a row, unless --seeds says otherwise */
#define CLAB_CHECK_BUDGET "2000000000" /* warp instructions of a checked launch, unless --emu-budget does */

struct clab_check_report {
    struct clab_cli *cli;
    struct clab_record_writer *writer; /* of records, or NULL */
    bool is_quiet;                     /* no text on cli->out */
    bool is_beside;                    /* beside a run that writes its own rows: hazards only */
    json_t *suppressions;              /* list, or NULL; borrowed */
    bool all;                          /* every entry in the text, not the worst few */
    bool strict;                       /* milder kinds count */
    const char *device;                /* id, of the session at hand */
    const char *experiment;            /* as the user named it; NULL for bare files */
    const char *again; /* options of the command that replays a hazard, each with a blank before it */
    size_t hazards, milder, accepted, suppressed; /* entries so far */
};

/* Checks what `options` describe (with seeds) in an open session: entries worst first, rows that could not be
   judged, a line of sums; records of rows and hazards as they come. Returns the exit status, and fills
   `error` for what stopped the whole of it. */
int clab_check_run(struct clab_session *session, struct clab_compiler *compiler,
                   struct clab_run_options *options, struct clab_check_report *report,
                   struct clab_error *error);
/* The plan (host/lab/README.md) of a launch of each of the files, FILE[:ENTRY], all alike, as --grid, --block
   and the others of `launch` say. `entry`: the kernel of those that name none, or NULL. New reference;
   CLAB_USAGE. */
clab_status clab_check_plan(const struct clab_option *options, const char *const *words, size_t count,
                            const char *entry, json_t **out_plan, struct clab_error *error);
/* The options that a replay needs, as they were given, each with a blank before it: without those that a
   hazard's own line adds, or that `check` has not. is_file: for a bare file, which has no variants. */
void clab_check_again(const struct clab_option *options, bool is_file, struct clab_str *out);
/* A word with a blank before it, quoted where a shell wants it. */
void clab_check_word(const char *word, struct clab_str *out);
/* --suppress FILE as a list (new reference), NULL without one. */
clab_status clab_check_suppressions(const struct clab_option *option, json_t **out_list,
                                    struct clab_error *error);
/* After everything: suppressions that covered nothing, on cli->err. */
void clab_check_unused(const struct clab_check_report *report);
/* CLAB_USAGE for a GPU: the checkers are part of the stand-in driver. */
clab_status clab_check_device(const char *device, struct clab_error *error);

#endif
