/* One experiment on one device, from plan to row results: the visible list of stages. Prints nothing. */
#ifndef CLAB_LAB_RUN_H
#define CLAB_LAB_RUN_H

#include <jansson.h>
#include <signal.h>
#include <stdint.h>

#include "base/error.h"
#include "compile/compile.h"
#include "lab/experiment.h"
#include "lab/session.h"

struct clab_run_options {
    struct clab_lab_request request;   /* its `device` member is filled in from the session */
    const char *image;                 /* "cubin", "ptx" or NULL: cubin where the device takes one */
    const char *arch;                  /* NULL: the device's, with the suffix that the variant requires */
    struct clab_compile_request words; /* include_dirs, defines and options for files that the experiment does
                                          not name itself: --with, bare files */
    int timeout_ms;                    /* watchdog per launch or measurement on a device that is timed */
    bool timeout_always;               /* on one that is not, too */
    unsigned samples;                  /* cold samples a row; 0: the stop rule decides */
    bool hot;                          /* batches back to back too */
    bool line_info;      /* rows that run PTX know the lines of their sources, as those with `seeds` do */
    bool counters;       /* L2, DRAM and crossbar bytes as columns (run_counters.c) */
    const json_t *plan;  /* a plan made by the caller instead of from `request`; borrowed; NULL none */
    unsigned seeds;      /* not 0: rows are checked for hazards under so many schedules, not timed */
    uint64_t first_seed; /* of the first of them */
    const volatile sig_atomic_t *interrupted;
    /* Called for each stage, e.g. ("verify", "cg, cluster 8", 3, 12); may be NULL. */
    void (*progress)(void *context, const char *stage, const char *what, size_t done, size_t count);
    /* Called once, before the first launch, with the plan; then for each record as soon as it is complete
       ("row", "sample", "prediction"), without the members that report/record.c adds. Borrowed for the call.
     */
    void (*on_plan)(void *context, const json_t *plan);
    void (*on_record)(void *context, const char *type, const json_t *record);
    /* Called for each row that is ok, after all others, with the slots of its timeline (timeline.h); NULL:
       they are not wanted. */
    void (*on_timeline)(void *context, const json_t *row, const json_t *slots);
    /* A sentence for the user about the run as a whole, such as why counters could not be read; may be NULL.
     */
    void (*on_note)(void *context, const char *text);
    void *context;
};

/* With `seeds`: plan (with the file's `check` parameters) → compile with line information → check each row. A
   row's record then has "hazards" (host/report/README.md), status "hazard" where one counts, and
   *out_exit_status leaves them out: what is suppressed is the caller's to say. Otherwise: plan → compile →
   verify each row alone → time the survivors interleaved → verify again → judge. *out_rows (new reference) is
   an array of row records in plan order, complete even when the run was cut short (rows that were not reached
   are status "failed", reason "interrupted" or the like). *out_exit_status: worst over the rows, as
   documented for the command. Returns an error only for what stops the whole run before its first row (bad
   experiment, no device). */
clab_status clab_run(struct clab_session *session, struct clab_compiler *compiler,
                     const struct clab_run_options *options, json_t **out_rows, json_t **out_predictions,
                     int *out_exit_status, struct clab_error *error);

/* Path of the program ncu (Nsight Compute) that `counters` uses: $CLUSTERLAB_NCU, PATH, /usr/local/cuda*,
   /opt/nvidia. False where there is none. */
bool clab_ncu_find(char *out, size_t bytes);
/* How a record calls what became of a row: "ok", "wrong", "hazard", "waived", "timeout", "failed". */
const char *clab_status_word(clab_status status);

#endif
