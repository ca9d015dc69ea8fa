/* The SM clock over a sample: two stamps in the stream, and the verdict on what they say. */
#ifndef CLAB_LAB_CLOCK_H
#define CLAB_LAB_CLOCK_H

#include "lab/device.h"

#define CLAB_CLOCK_SLOTS    1024 /* more than any device has SMs */
#define CLAB_CLOCK_LEAST    0.75 /* of the reference: below it a sample is discarded (nvbench's share) */
#define CLAB_CLOCK_PATIENCE 8 /* discards in a row after which a row is measured at the clock that it has */

struct clab_clock_slot { /* written by the stamp kernel */
    uint64_t time_ns, cycles, tag, reserved;
};
_Static_assert(sizeof(struct clab_clock_slot) == 32, "the stamp kernel writes 32 bytes a slot");

struct clab_clock {
    const struct clab_device *device;
    CUdeviceptr slots; /* two sets of CLAB_CLOCK_SLOTS: before and after */
    struct clab_clock_slot *host;
    uint64_t tag;         /* of the sample in hand: stale slots do not count */
    double reference_mhz; /* NaN until known */
};

clab_status clab_clock_init(struct clab_clock *clock, const struct clab_device *device,
                            struct clab_error *error);
void clab_clock_fini(struct clab_clock *clock);
/* Queues a stamp: `after` false begins a sample, true ends it. */
clab_status clab_clock_stamp(struct clab_clock *clock, bool after, struct clab_error *error);
/* Mean of cycles / ns over the SMs that ran in both stamps, in MHz; NaN when there is none. The stream must
 * be idle. */
clab_status clab_clock_read(struct clab_clock *clock, double *out_mhz, struct clab_error *error);

/* What is known of one row's clock. Zero-initialise. */
struct clab_clock_row {
    unsigned low_in_a_row;
    double low[CLAB_CLOCK_PATIENCE];
    bool settled_low; /* it was low for CLAB_CLOCK_PATIENCE samples: reference_mhz is its own */
    double reference_mhz;
};
/* Whether a sample with this clock (NaN: unknown, kept) is kept; else why not in `reason`, and how long to
   wait before the next try. */
bool clab_clock_keep(const struct clab_clock *clock, struct clab_clock_row *row, double mhz,
                     const char *throttle, char *reason, size_t reason_bytes, unsigned *out_pause_ms);

#endif
