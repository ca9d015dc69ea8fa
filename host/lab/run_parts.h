/* What the parts of a run share: run.c (stages, verification, verdicts) and run_time.c (timing). Private to
 * them. */
#ifndef CLAB_LAB_RUN_PARTS_H
#define CLAB_LAB_RUN_PARTS_H

#include "lab/run.h"

struct clab_run_samples {
    double *ns, *mhz; /* by round; NAN missing */
    size_t count, capacity;
    size_t kept, discarded;
};

struct clab_run_row {
    const json_t *plan; /* the plan's row, or `resolved` */
    json_t *resolved;   /* the row with its grid known, where the plan had a `fit`; owned, NULL before */
    json_t *buffers;    /* buffer list, borrowed */
    json_t *record;     /* result, owned */
    unsigned variant;
    bool open; /* no verdict yet: goes on to the next stage */
    bool held; /* timed, and verified after it */
    struct clab_run_samples cold, hot;
    unsigned batch_launches;
    bool host_bound;   /* some batch was */
    unsigned baseline; /* row index, UINT32_MAX none */
    json_t *slots;     /* of the last verified launch's timeline, when they are wanted; owned */
};

struct clab_run_variant {
    const json_t *plan;
    struct clab_compile_result result;
    bool compiled;        /* result is in force */
    char path[4096 + 64]; /* image file for the worker */
    bool loaded;          /* in the present worker */
    json_t *resources;
};

struct clab_run_state {
    struct clab_session *session;
    struct clab_compiler *compiler;
    const struct clab_run_options *options;
    json_t *plan;
    struct clab_run_row *rows;
    size_t n_rows;
    struct clab_run_variant *variants; /* the plan's, then `others` */
    size_t n_variants;
    json_t *others;       /* companions and references: variants without rows of their own */
    char folder[4096];    /* temporary images; "" none */
    json_t *cold_outcome; /* the worker's last words on the cold measurement, or NULL */
    bool modelled;        /* the device's clock follows the schedule `fair` */
    bool timed, stop;
    bool timing_hot; /* which series samples belong to */
    int exit_status;
};

void clab_run_progress(const struct clab_run_state *run, const char *stage, const char *what, size_t done,
                       size_t count);
/* Closes a row with a status and the reason; the first verdict stands. */
void clab_row_close(struct clab_run_state *run, struct clab_run_row *row, clab_status status,
                    const struct clab_error *error);
/* A worker with the variant loaded: starts a new one after a death. */
clab_status clab_run_ready(struct clab_run_state *run, struct clab_run_variant *variant,
                           struct clab_error *error);
/* Lists the kernels that rows name in passing in run->others, and numbers them in the plan. */
clab_status clab_run_others(struct clab_run_state *run, struct clab_error *error);
/* Whether a row launches the kernel of that number, as its own, as companion or as reference. */
bool clab_row_uses(const struct clab_run_row *row, size_t kernel);
/* clab_run_ready for every kernel that the row launches. */
clab_status clab_row_ready(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error);
/* Finds the grid of a row that has a `fit`, and evaluates the row again with it; once. requires:
   clab_row_ready. Errors: WAIVED, EXPERIMENT, and the worker's. */
clab_status clab_row_resolve(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error);
const char *clab_row_name(const struct clab_run_row *row, char *text, size_t bytes);
/* The request `op` about a row to a worker that has its kernels: key, row and buffers, with the members of
   `more` (reference stolen). Resources and, as far as the answer tells, the launch go into the row's record.
   *out_answer is a new reference, or NULL. Errors: those of clab_row_ready, clab_row_resolve and the
   worker's. */
clab_status clab_row_ask(struct clab_run_state *run, struct clab_run_row *row, const char *op, json_t *more,
                         json_t **out_answer, struct clab_error *error);
/* Every fill, before (first) or after timing. */
clab_status clab_row_verify(struct clab_run_state *run, struct clab_run_row *row, bool first,
                            struct clab_error *error);

/* Checks the row for hazards under every seed and fills its record's "hazards". CLAB_HAZARD when one counts:
   of a kind that is no milder one, and that the variant does not accept. A fault or deadlock that is among
   the hazards is none of its own. */
clab_status clab_row_check(struct clab_run_state *run, struct clab_run_row *row, struct clab_error *error);

/* Times every open row interleaved, cold or hot; a row that kills the measurement is dropped, and the rest
   goes on from the samples it has. */
void clab_run_time(struct clab_run_state *run, bool hot);
/* The columns of --counters. On a timed device: every open row, once it was timed; run->stop when
   interrupted. On one that counts by itself: a row that was just verified. */
void clab_run_counters(struct clab_run_state *run);
void clab_run_counters_emulated(struct clab_run_row *row);
/* Verifies the timed rows once more, then closes them with their times. */
void clab_run_finish_timed(struct clab_run_state *run);
void clab_run_samples_free(struct clab_run_samples *samples);

#endif
