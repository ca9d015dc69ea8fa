/* Hazards for people, and the file that says which of them to pass over. A hazard is the JSON object of
 * README.md. */
#ifndef CLAB_REPORT_HAZARDS_H
#define CLAB_REPORT_HAZARDS_H

#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

/* One entry: kind and where, both parties with their source lines (read from the files, as far as they are
   there), a picture of the cluster when two of its CTAs take part, the missing ordering, the barrier's state.
   `subject`: what was checked, "split, cluster 4"; `again`: the command that replays it, or NULL;
   `cluster_ctas`: CTAs of a cluster, 0 no cluster. */
void clab_hazard_print(const json_t *hazard, const char *subject, const char *again, unsigned cluster_ctas,
                       bool colour, struct clab_str *out);

/* Reads a suppression file (its format: README.md) as a list for the calls below (new reference). CLAB_USAGE
   with file and line for what is no suppression. */
clab_status clab_suppressions_read(const char *path, json_t **out_list, struct clab_error *error);
/* The suppression that covers a hazard of a variant, whose use is counted, or NULL. Borrowed. `variant` may
 * be NULL. */
const json_t *clab_suppression_find(json_t *list, const json_t *hazard, const char *variant);
/* Those that covered nothing, a line each. */
void clab_suppressions_unused(const json_t *list, struct clab_str *out);

#endif
