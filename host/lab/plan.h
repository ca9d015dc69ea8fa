/* Making a plan from an evaluated experiment file, in the child process. The parts: plan_file (the file's
   fields and variants), plan_sweep (which rows there are), plan_row (one row), plan_launch, plan_buffers,
   tensor_map. */
#ifndef CLAB_LAB_PLAN_H
#define CLAB_LAB_PLAN_H

#include "lab/experiment.h"
#include "lab/read.h"

#define CLAB_PLAN_MAX_ROWS 10000
#define CLAB_PLAN_MAX_CTAS 16 /* of a cluster, on any device so far */

/* A plan in the making. Lua values are kept at fixed places of the stack. */
struct clab_plan {
    struct clab_eval *eval;
    const struct clab_lab_request *request;
    int root;       /* stack index of the table that the file returned */
    json_t *result; /* the plan */
    json_t *variants, *rows, *buffer_sets;
    json_t *params;   /* defaults with the request's values applied */
    json_t *sweep;    /* name -> list of values, likewise */
    lua_Integer ctas; /* of the row in hand, given to its functions; 0: not known yet */
};

/* Reads everything but the rows into plan->result: summary, variants (of the request too), columns,
   predictions' texts, params, sweep. Leaves the root on the stack. */
void clab_plan_file(struct clab_plan *plan);
/* Appends a variant for FILE[:ENTRY]. */
void clab_plan_with(struct clab_plan *plan, const char *with);
/* Applies the request's sets and clusters to params and sweep. */
void clab_plan_requested(struct clab_plan *plan);
/* Adds every row: variant by variant, sweeps in name order, `cluster` innermost. */
void clab_plan_rows(struct clab_plan *plan);

/* One row for a variant and its parameters (NULL members of the sweep are in params already). grid: known CTA
   counts that replace `fit`, or NULL. The result's "buffer_list" holds the buffers themselves. */
json_t *clab_plan_row(struct clab_plan *plan, size_t variant, json_t *params, const uint32_t grid[3]);

/* The buffers that the value on top of the stack (popped) describes, in name order. */
json_t *clab_plan_buffers(struct clab_plan *plan, const struct clab_path *path);
/* The launch that the value on top of the stack (popped) describes: {"launch": {...}, "args": [...]}.
   cluster: the shape when the launch names none, or NULL for no cluster. buffers: names that arguments may
   use. */
json_t *clab_plan_launch(struct clab_plan *plan, const struct clab_path *path, const long long cluster[3],
                         const json_t *buffers, const uint32_t grid[3]);
/* A kernel that runs beside or before the row's own, from the table at `index`: {"source", "entry", "launch",
 * "args"}. */
json_t *clab_plan_other_launch(struct clab_plan *plan, const struct clab_path *path, int index,
                               const json_t *buffers);
/* Raises unless `buffers` has one of that name. */
void clab_plan_need_buffer(struct clab_plan *plan, const struct clab_path *path, const json_t *buffers,
                           const char *name);
/* Whether the table at a stack index was made by the helper whose metatable is `meta` (sandbox.h). */
bool clab_plan_made_by(lua_State *L, int index, const char *meta);
/* A kernel named in passing (reference, companion): its "source" (made absolute, must exist) and "entry"
   fields of the table at `index`, set on `object`. */
void clab_plan_kernel(struct clab_plan *plan, const struct clab_path *path, int index, json_t *object);
/* Absolute path of a source named in the experiment file; raises when there is no such file. New string. */
json_t *clab_plan_source(struct clab_plan *plan, const struct clab_path *path, const char *source);
/* The tensor map that the table at `index` describes, every rule of cuTensorMapEncodeTiled checked. */
json_t *clab_plan_tensor_map(struct clab_plan *plan, const struct clab_path *path, int index,
                             const json_t *buffers);

/* "4" or "4x2" or a JSON number or list as three sides, missing ones 1. False when it is none of these. */
bool clab_cluster_sides(const json_t *value, long long out_sides[3]);

/* The values of the timed columns, an object for each of the plan's rows (empty where there was no time),
   from the row records. Raises what a column's function raises. */
json_t *clab_plan_timed_columns(struct clab_plan *plan, const json_t *rows, const json_t *records);

/* Calls every prediction function with the row records; returns the verdicts. */
json_t *clab_plan_judge(struct clab_plan *plan, const json_t *rows, const json_t *device);

#endif
