/* The measuring stand: what a sample needs beside the launch itself. Private to measure.c and hot.c. */
#ifndef CLAB_LAB_STAND_H
#define CLAB_LAB_STAND_H

#include "lab/clock.h"
#include "lab/device.h"
#include "lab/measure.h"
#include "lab/watch.h"

struct clab_stand {
    const struct clab_device *device;
    volatile uint32_t *flags; /* pinned host memory: [0] go, [1] the blocker gave up */
    CUdeviceptr flags_address;
    CUdeviceptr flush;
    size_t flush_bytes;
    CUevent start, stop;
    struct clab_clock clock;
    struct clab_watch *watch;
    uint64_t looked_ns; /* when the throttle reasons were read last */
    bool throttle_known;
    bool no_persisting; /* this device cannot reset persisting lines */
    char throttle[160];
    uint64_t random; /* state of the shuffles */
};

clab_status clab_stand_init(struct clab_stand *stand, const struct clab_device *device,
                            const struct clab_measure_options *options, struct clab_error *error);
/* Queues the L2 flush. */
clab_status clab_stand_flush(struct clab_stand *stand, struct clab_error *error);
/* Holds the stream until clab_stand_release, which every path must reach. */
clab_status clab_stand_block(struct clab_stand *stand, struct clab_error *error);
void clab_stand_release(struct clab_stand *stand);
/* Waits for the stream, then: the time between the events, and the clock. `blocked`: CLAB_LAUNCH when the
 * blocker gave up. */
clab_status clab_stand_read(struct clab_stand *stand, bool blocked, double *out_ns, double *out_mhz,
                            struct clab_error *error);
/* Reads throttle reasons when the last reading is older than 200 ms, or `now`. */
void clab_stand_look(struct clab_stand *stand, bool now);
/* The outcome before anything is known: the first row is to blame. False: there are no rows. */
bool clab_stand_begin(const struct clab_measured_row *rows, size_t n_rows, struct clab_outcome *out_outcome);
/* Fills in what the stand knows of the outcome, and gives back what it holds; not after a sticky error, of
   which status and error tell, since every call fails then. For a stand whose init failed, too. */
void clab_stand_end(struct clab_stand *stand, clab_status status, const struct clab_error *error,
                    struct clab_outcome *outcome);
void clab_stand_shuffle(struct clab_stand *stand, size_t *order, size_t count);
void clab_sleep_ms(unsigned ms);

#endif
