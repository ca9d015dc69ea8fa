/* Experiment files: finding one, turning it into a plan of rows, and judging its predictions afterwards.
   An experiment is a Lua 5.4 file (kernels/<name>.lua). Its code only ever runs in a child process with a
   memory limit, a wall clock and no way out; what comes back is JSON. The plan's shape is in README.md in
   this folder. Call these before the process starts threads: the child is a fork. */
#ifndef CLAB_LAB_EXPERIMENT_H
#define CLAB_LAB_EXPERIMENT_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

/* What `clusterlab run` was asked for. Everything is borrowed for the call. NULL arrays are empty. */
struct clab_lab_request {
    const char *experiment;  /* a name ("reduce") or a path to a .lua file */
    const char *const *sets; /* NAME=VALUE; a list (n=1,2^20) sweeps that parameter */
    size_t n_sets;
    const char *clusters;        /* "1,2,4x2", or NULL: as the file says */
    const char *const *variants; /* only these variants (and those of `withs`); empty: all */
    size_t n_variants;
    const char *const *withs; /* FILE[:ENTRY], added as variants named after the file's stem */
    size_t n_withs;
    /* Facts about the device, given to the file as `dev`. Members used here: "cc" ("9.0"), "emulated" (bool),
       "memory_bytes", "max_cluster" (with opt-in); a missing one is not checked. Others are passed through:
       "id", "name", "sms", "l2_bytes", "shared_per_block_optin_bytes", "shared_per_sm_bytes", ... */
    const json_t *device;
    bool check;       /* use the file's `check` parameters (the small size of clusterlab check) */
    int timeout_ms;   /* wall clock for the file's code; 0: 5000 */
    size_t max_bytes; /* memory for the file's code; 0: 256 MiB */
};

/* Evaluates the experiment and returns its plan (new reference). Errors: CLAB_EXPERIMENT with file, line and
   field path for a mistake in the file (unknown name: nearest name and the list); CLAB_USAGE for a bad
   request (unknown variant or parameter, malformed cluster list); CLAB_INTERNAL, CLAB_NO_MEMORY. */
clab_status clab_lab_plan(const struct clab_lab_request *request, json_t **out_plan,
                          struct clab_error *error);

/* A row whose launch had `fit` gets its grid after the kernel was loaded: evaluates buffers, arguments, bytes
   and columns of plan row `row` again with that grid (CTAs). `out_row` (new reference) has the shape of a
   plan row, with "buffers" replaced by the buffer list itself under "buffer_list". */
clab_status clab_lab_resolve(const json_t *plan, size_t row, const uint32_t grid[3], json_t **out_row,
                             struct clab_error *error);

/* The values of the plan's timed columns (those made of a measured time), one object for each row in the
   plan's order, from the row records, whose times are in place; {} for a row without one. *out_columns (new
   reference) is NULL when the file has no such column. Errors: EXPERIMENT (a column's function failed, or the
   file changed meanwhile), INTERNAL, NO_MEMORY. */
clab_status clab_lab_timed_columns(const json_t *plan, const json_t *records, json_t **out_columns,
                                   struct clab_error *error);

/* Judges the plan's predictions from the row records (array, design 4.4). out_predictions (new reference):
   [{"text", "verdict": "held"|"refuted"|"not measured", "detail": "", "line": N}]. The file must be the one
   that was planned (sha256), otherwise every verdict is "not measured" and says so. A prediction function
   that raises an error is "not measured" with that error as detail. */
clab_status clab_lab_judge(const json_t *plan, const json_t *rows, json_t **out_predictions,
                           struct clab_error *error);

/* Every experiment that a name could reach, in search order (new reference):
   [{"name", "file", "summary", "variants": [{"name","source","entry","requires","baseline"}], "params":
   {...}, "sweep": {...}, "error": null | "file:line: message"}]. A broken file is listed with its error. */
clab_status clab_lab_list(json_t **out_experiments, struct clab_error *error);

#endif
