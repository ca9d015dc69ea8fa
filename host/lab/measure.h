/* Timing on a GPU with events. Cold: single launches after an L2 flush, several rows interleaved in shuffled
   rounds. Hot: batches of launches back to back. Both take the launch as a callback, so that any program in
   this process and context (a C++ one too) is timed by the same code. Source of the method: nvbench
   (measure_cold, measure_hot), with the stricter flush, clock reference and interleaving of the design's
   section 6. */
#ifndef CLAB_LAB_MEASURE_H
#define CLAB_LAB_MEASURE_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"

struct clab_device;
struct clab_watch;

struct clab_measured_row {
    unsigned id; /* the caller's, handed back with each sample */
    /* Queues on the device's stream what belongs to a launch and not to its time (resets of outputs). May be
       NULL. Of a hot batch it runs once, before the batch. */
    clab_status (*prepare)(void *context, struct clab_error *error);
    /* Starts, behind the stream blocker and before the time begins, what runs beside the launch (a companion
       kernel on another stream). May be NULL. Not of a hot batch. */
    clab_status (*accompany)(void *context, struct clab_error *error);
    /* Queues on the device's stream what is timed. Must not wait for the device: a spinning kernel holds the
     * stream. */
    clab_status (*submit)(void *context, struct clab_error *error);
    void *context;
    const double
        *earlier; /* kept samples (ns) of a measurement that was broken off: they count for the stop rule */
    size_t n_earlier;
};

struct clab_sample {
    unsigned id, round;    /* of a hot batch: the batch's number */
    double ns;             /* one launch; of a batch: its time divided by its launches */
    unsigned launches;     /* 1 when cold */
    double sm_mhz;         /* SM clock over the sample, averaged over SMs; NaN unknown */
    const char *discarded; /* NULL when kept, else why not; borrowed for the call */
    bool host_bound;       /* hot: the host could not submit as fast as the device ran */
};

/* Both return false to end the measurement early with CLAB_OUTPUT. */
struct clab_measure_sink {
    /* Before each launch of a row, warm-up too, so that a watcher knows whom a hang belongs to. May be NULL.
     */
    bool (*on_launch)(void *context, unsigned id);
    bool (*on_sample)(void *context, const struct clab_sample *sample);
    void *context;
};

#define CLAB_LEAST_ROUNDS 50
#define CLAB_MOST_ROUNDS  100000

struct clab_measure_options {
    unsigned
        samples; /* kept samples of each row (cold), batches (hot: 0 is 10); 0: the stop rule below decides */
    unsigned warmup;      /* rounds before the first sample, at least; 0: 3 */
    unsigned first_round; /* number of the first round, after a measurement that was broken off */
    uint64_t seed;        /* of the shuffles */
    double row_limit_s,
        total_limit_s; /* wall limits of the sampling: 0 is 15 s a row, 120 s in all; the smaller counts */
    double spent_s;    /* of those, before a break */
    struct clab_watch *watch; /* throttle reasons for the discards and the outcome; may be NULL */
};

enum clab_measure_end {
    CLAB_END_NONE,       /* failed or ended by the sink */
    CLAB_END_COUNT,      /* as many samples as asked for */
    CLAB_END_TARGET,     /* every row's median is known to within CLAB_NOISE_TARGET */
    CLAB_END_RESOLUTION, /* the rest of the rows are as exact as the events' resolution allows */
    CLAB_END_LIMIT,      /* the wall limit, or CLAB_MOST_ROUNDS */
};

struct clab_outcome {
    unsigned failed; /* id of the row in hand; it is to blame when the status is not CLAB_OK */
    unsigned rounds; /* complete ones, this call's */
    enum clab_measure_end end;
    double reference_mhz; /* SM clock that samples were held against; NaN when the clock cannot be read */
    double spent_s;       /* of sampling, options->spent_s included */
    bool throttle_known;
    char throttle[160]; /* the reasons seen between samples, "" none */
};

/* Times every row once per round, in an order shuffled per round. A sample: prepare, flush (a memset of twice
   the L2 with a non-zero pattern, persisting lines reset), wait; then, all queued behind a spinning kernel
   that the host releases: clock stamp, start event, submit, stop event, clock stamp.

   Warm-up goes on until the SM clock is steady; its median is the reference. A sample whose clock is under 75
   % of the reference is handed on as discarded, and taken again after a pause (50 ms, growing to 0.5 s). A
   row whose clock stays low for 8 samples in a row is measured at the clock that it has, its samples kept
   from then on: there is always a verdict. Stop rule (samples == 0): at least 50 rounds, then until the
   distribution-free 95 % interval of each row's median is within +-CLAB_NOISE_TARGET, or its width is one
   step of the events' resolution, or a wall limit is over.

   Errors: those of the callbacks and of the driver, with outcome->failed (the context may be unusable);
   LAUNCH when submit waited for the device. The outcome is filled whatever the status. */
clab_status clab_measure_cold(const struct clab_device *device, const struct clab_measured_row *rows,
                              size_t n_rows, const struct clab_measure_options *options,
                              const struct clab_measure_sink *sink, struct clab_outcome *out_outcome,
                              struct clab_error *error);

/* Batches of about 50 ms and at least 4 launches of each row, in shuffled rounds, one event pair around a
   batch; the same clock check. No flush between launches. */
clab_status clab_measure_hot(const struct clab_device *device, const struct clab_measured_row *rows,
                             size_t n_rows, const struct clab_measure_options *options,
                             const struct clab_measure_sink *sink, struct clab_outcome *out_outcome,
                             struct clab_error *error);

/* "count", "noise target", "event resolution", "time limit", "". */
const char *clab_measure_end_text(enum clab_measure_end end);

#ifdef __cplusplus
}
#endif

#endif
