/* Timing launches on a GPU with events: cold (L2 flushed) samples of several rows, interleaved in shuffled rounds. */
#ifndef CLAB_LAB_MEASURE_H
#define CLAB_LAB_MEASURE_H

#include "lab/buffers.h"
#include "lab/device.h"
#include "lab/launch.h"

struct clab_measured_row {
    unsigned id; /* the caller's, handed back with each sample */
    struct clab_launch *launch;
    const struct clab_buffer_set *buffers;
};

struct clab_measure_options {
    unsigned rounds;  /* samples of each row */
    unsigned warmup;  /* launches of each row before the first sample */
    uint64_t seed;    /* of the shuffle */
};

/* Times every row once per round, in an order shuffled per round. A sample: reset what resets, flush (a memset of twice
   the L2 with a non-zero pattern), wait; then, all queued behind a spinning kernel that the host releases: start event,
   launch, stop event. on_sample(row id, round, nanoseconds) is called as each comes in; false ends the run early with
   CLAB_OUTPUT. On a failing launch *out_failed is its id (the context may be unusable). Needs a device whose
   times mean something. Source of the method: nvbench (measure_cold), with the stricter flush. */
clab_status clab_measure_cold(const struct clab_device *device, const struct clab_measured_row *rows, size_t n_rows,
                              const struct clab_measure_options *options,
                              bool (*on_sample)(void *context, unsigned id, unsigned round, double ns), void *context,
                              unsigned *out_failed, struct clab_error *error);

#endif
