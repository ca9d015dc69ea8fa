/* Timelines: what a kernel logged about the items of its work (tiles), and what follows from it.

   An experiment's `timeline` names a u64 buffer of four words a slot, slot i for item i:
     {start ns, end ns, SM | CTA << 32, 0}         by %globaltimer, %smid, and the CTA's linear index in the
   grid; {start ns, end ns, SM | CTA << 32, 1}         time that another kernel held an SM: no item A slot
   whose start is 0 was not written. Its `costs`, a buffer too, says how much work each item is. */
#ifndef CLAB_LAB_TIMELINE_H
#define CLAB_LAB_TIMELINE_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "lab/buffers.h"

#define CLAB_TIMELINE_SLOT_WORDS 4

/* What a log says by itself, in nanoseconds and counts:
     items, missing (slots not written), held, ctas (that did an item), items_per_cta {min, max},
     makespan_ns (first start to last end, of items), busy_ns, shortest_ns, longest_ns, held_ns,
     idle_end_ns (from the end of the last item of an SM to the end of all, summed over the SMs),
     cost (of all items; null without `costs`); with `slots` also
     slots: [slot, start, end, SM, CTA, kind, ...] of the written slots, ns from the first start of an item.
   log: `n_slots` slots. costs: of item i, NULL none. sms: of the device. NULL when memory is out. */
json_t *clab_timeline_summary(const uint64_t *log, uint64_t n_slots, const double *costs, uint64_t n_costs,
                              unsigned sms, bool slots);
/* The same for a buffer set in device memory; `timeline` is {"log", "costs"|null, "slots": bool}. The stream
   must be idle. Errors: DRIVER, NO_MEMORY, INTERNAL. */
clab_status clab_timeline_read(const struct clab_device *device, const struct clab_buffer_set *set,
                               const json_t *timeline, json_t **out_summary, struct clab_error *error);

/* Adds to a summary what needs the cost of work: unit_ns (what a unit of cost took in this launch, on
   average), bound_ns (all work, and what was held, over the SMs; or the longest item: no way to deal out the
   same work ends earlier), over_bound (the makespan over it), idle_end (the share of the makespan that SMs
   were idle at the end). */
void clab_timeline_judge(json_t *summary, unsigned sms);

#endif
