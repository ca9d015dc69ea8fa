/* Differences as text and as JSON. */
#ifndef CLAB_INSPECT_SHOW_DIFF_H
#define CLAB_INSPECT_SHOW_DIFF_H

#include <jansson.h>

#include "inspect/diff.h"
#include "inspect/show.h"

struct clab_difference {
    const struct clab_subject *sides[2];
    const char *names[2];     /* "kernels/reduce/cg.cu, sm_90" */
    bool levels[CLAB_LEVELS]; /* which listings are compared; both sides have them */
    const json_t *times;      /* of clab_times_of; NULL none */
};

/* Side by side, with notes, what differs in number, and a summary under it. `all`: equal stretches too.
 * NO_MEMORY. */
clab_status clab_show_difference(struct clab_show *show, const struct clab_difference *difference, bool all,
                                 struct clab_error *error);
/* As a unified diff of canonical texts, for code review. */
clab_status clab_show_unified(struct clab_show *show, const struct clab_difference *difference,
                              struct clab_error *error);
/* {"sides": [inspection without blocks, …], "levels": {"ptx": {"rows": [...], "counts": [...]}, …}, "times":
   …}; new reference, NULL when memory is out. Schema: README.md. */
json_t *clab_difference_json(const struct clab_difference *difference);

/* Times that records (JSON Lines of `run`) hold of both kernels: rows are matched to a side by variant, where
   `variants` names one, else by entry, source file name and architecture, and to each other by run, device
   and parameters. Array of {"experiment", "device", "params", "a_ns", "b_ns", "ratio"} of measured medians (b
   / a); empty when there is none, or when a row could be either side's (one kernel with two sets of options).
   New reference. */
json_t *clab_times_of(const json_t *records, const struct clab_subject *const sides[2],
                      const char *const variants[2]);

#endif
