/* The hazard checkers of a device, as a worker and its parent see them: checks around a launch, and hazards
   as JSON. A hazard's JSON form is in host/report/README.md. */
#ifndef CLAB_LAB_HAZARDS_H
#define CLAB_LAB_HAZARDS_H

#include <jansson.h>

#include "base/error.h"
#include "driver/channel.h"

/* Checks for launches from now on, under the schedule of `seed`. CLAB_UNSUPPORTED where the device has no
   checker: a GPU, or a stand-in of another version. */
clab_status clab_hazards_start(const struct clab_channel *channel, uint64_t seed, struct clab_error *error);
/* No more checks; *out_hazards (new reference) is an array of what was found since the start, worst first.
   INTERNAL when no launch was checked meanwhile: silence would mean nothing. */
clab_status clab_hazards_stop(const struct clab_channel *channel, json_t **out_hazards,
                              struct clab_error *error);

/* Hazards as JSON (new reference), in their order; those of kinds that are unknown here are left out. */
struct clab_hazard;
json_t *clab_hazards_to_json(const struct clab_hazard *hazards, size_t count);

/* Adds the hazards of one launch to those of others of the same kernel: one entry for a kind and a pair of
   instructions, with "count" summed, "seeds" listing what schedules showed it, and the lists "rows" united.
 */
void clab_hazards_merge(json_t *into, const json_t *hazards, bool by_source);
/* Worst first: hazards before milder kinds, then in the order of check/hazards.def, then by count. New
 * reference. */
json_t *clab_hazards_sorted(const json_t *hazards);

/* The number of a kind by its name, e.g. "race-shared"; -1 for no such kind. */
int clab_hazard_kind(const char *name);

#endif
