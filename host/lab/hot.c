/* Hot measurement: batches of launches back to back. A batch's time includes what lies between two launches;
   a kernel shorter than the host needs to submit one (about 2 us) is bound by the host, and the sample says
   so. */
#include <math.h>
#include <stdlib.h>

#include "base/process.h"
#include "driver/call.h"
#include "lab/measure.h"
#include "lab/stand.h"

#define BATCH_NS        50e6
#define LEAST_LAUNCHES  4
#define MOST_LAUNCHES   65536
#define HELD_LAUNCHES   2 /* queued behind the blocker; a full queue would block the host for ever */
#define DEFAULT_BATCHES 10
#define HOST_BOUND      0.95 /* share of a batch that submitting took */

struct hot_row {
    const struct clab_measured_row *row;
    struct clab_clock_row clock;
    unsigned launches;
};

struct hot {
    struct clab_stand stand;
    const struct clab_measure_options *options;
    const struct clab_measure_sink *sink;
    struct clab_outcome *outcome;
    struct hot_row *rows;
    size_t n_rows;
    size_t *order;
};

static clab_status batch(struct hot *hot, const struct clab_measured_row *row, unsigned launches,
                         struct clab_sample *out_sample, struct clab_error *error)
{
    struct clab_stand *stand = &hot->stand;
    const struct clab_device *device = stand->device;
    const struct clab_driver *driver = device->driver;
    hot->outcome->failed = row->id;
    if (hot->sink->on_launch != NULL && !hot->sink->on_launch(hot->sink->context, row->id))
        return clab_error_set(error, CLAB_OUTPUT, "the launch could not be announced");
    clab_status status = row->prepare != NULL ? row->prepare(row->context, error) : CLAB_OK;
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamSynchronize, (device->stream), NULL);
    if (status != CLAB_OK)
        return status;
    status = clab_stand_block(stand, error);
    if (status == CLAB_OK)
        status = clab_clock_stamp(&stand->clock, false, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->start, device->stream), NULL);
    for (unsigned i = 0; i < launches && i < HELD_LAUNCHES && status == CLAB_OK; i++)
        status = row->submit(row->context, error);
    clab_stand_release(stand);
    const uint64_t start_ns = clab_now_ns();
    for (unsigned i = HELD_LAUNCHES; i < launches && status == CLAB_OK; i++)
        status = row->submit(row->context, error);
    const double host_ns = (double)(clab_now_ns() - start_ns);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->stop, device->stream), NULL);
    if (status == CLAB_OK)
        status = clab_clock_stamp(&stand->clock, true, error);
    double ns = 0;
    if (status == CLAB_OK)
        status = clab_stand_read(stand, true, &ns, &out_sample->sm_mhz, error);
    out_sample->id = row->id;
    out_sample->launches = launches;
    out_sample->ns = ns / launches;
    out_sample->host_bound = launches > HELD_LAUNCHES && host_ns >= HOST_BOUND * ns;
    return status;
}

/* Sizes each row's batch and sets the clock's reference. */
static clab_status warm_up(struct hot *hot, struct clab_error *error)
{
    double reference = (double)NAN;
    for (size_t i = 0; i < hot->n_rows; i++) {
        struct hot_row *row = &hot->rows[i];
        struct clab_sample one = {0};
        clab_status status =
            batch(hot, row->row, 1, &one, error); /* what a first launch loads is not in the estimate */
        if (status == CLAB_OK)
            status = batch(hot, row->row, LEAST_LAUNCHES, &one, error);
        if (status != CLAB_OK)
            return status;
        double launches = one.ns > 0 ? BATCH_NS / one.ns : MOST_LAUNCHES;
        row->launches = (unsigned)fmin(fmax(launches, LEAST_LAUNCHES), MOST_LAUNCHES);
        status = batch(hot, row->row, row->launches, &one, error);
        if (status != CLAB_OK)
            return status;
        if (isnan(reference) || one.sm_mhz > reference)
            reference = one.sm_mhz;
    }
    hot->stand.clock.reference_mhz = reference;
    return CLAB_OK;
}

static clab_status kept_batch(struct hot *hot, struct hot_row *row, unsigned round, struct clab_error *error)
{
    for (;;) {
        char reason[256];
        unsigned pause_ms;
        struct clab_sample taken = {.round = round};
        clab_status status = batch(hot, row->row, row->launches, &taken, error);
        if (status != CLAB_OK)
            return status;
        clab_stand_look(&hot->stand, hot->stand.clock.reference_mhz * CLAB_CLOCK_LEAST > taken.sm_mhz);
        const bool kept = clab_clock_keep(&hot->stand.clock, &row->clock, taken.sm_mhz, hot->stand.throttle,
                                          reason, sizeof reason, &pause_ms);
        taken.discarded = kept ? NULL : reason;
        if (!hot->sink->on_sample(hot->sink->context, &taken))
            return clab_error_set(error, CLAB_OUTPUT, "the sample could not be handed on");
        if (kept)
            return CLAB_OK;
        clab_sleep_ms(pause_ms);
    }
}

static clab_status batches(struct hot *hot, struct clab_error *error)
{
    const unsigned wanted = hot->options->samples != 0 ? hot->options->samples : DEFAULT_BATCHES;
    clab_status status = CLAB_OK;
    for (unsigned round = hot->options->first_round; round < wanted && status == CLAB_OK; round++) {
        clab_stand_shuffle(&hot->stand, hot->order, hot->n_rows);
        for (size_t i = 0; i < hot->n_rows && status == CLAB_OK; i++)
            status = kept_batch(hot, &hot->rows[hot->order[i]], round, error);
        if (status == CLAB_OK)
            hot->outcome->rounds++;
    }
    if (status == CLAB_OK)
        hot->outcome->end = CLAB_END_COUNT;
    return status;
}

clab_status clab_measure_hot(const struct clab_device *device, const struct clab_measured_row *rows,
                             size_t n_rows, const struct clab_measure_options *options,
                             const struct clab_measure_sink *sink, struct clab_outcome *out_outcome,
                             struct clab_error *error)
{
    struct hot hot = {.options = options, .sink = sink, .outcome = out_outcome, .n_rows = n_rows};
    if (!clab_stand_begin(rows, n_rows, out_outcome))
        return CLAB_OK;
    hot.rows = calloc(n_rows, sizeof *hot.rows);
    hot.order = calloc(n_rows, sizeof *hot.order);
    if (hot.rows == NULL || hot.order == NULL) {
        free(hot.rows);
        free(hot.order);
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for %zu rows", n_rows);
    }
    for (size_t i = 0; i < n_rows; i++) {
        hot.order[i] = i;
        hot.rows[i].row = &rows[i];
    }
    const uint64_t start_ns = clab_now_ns();
    clab_status status = clab_stand_init(&hot.stand, device, options, error);
    if (status == CLAB_OK)
        status = warm_up(&hot, error);
    if (status == CLAB_OK) {
        clab_stand_look(&hot.stand, true);
        status = batches(&hot, error);
        clab_stand_look(&hot.stand, true);
    }
    out_outcome->spent_s = options->spent_s + (double)(clab_now_ns() - start_ns) * 1e-9;
    clab_stand_end(&hot.stand, status, error, out_outcome);
    free(hot.rows);
    free(hot.order);
    return status;
}
