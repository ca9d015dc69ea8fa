/* Cold measurement: warm-up until the clock is steady, then shuffled rounds of one sample a row until the
   stop rule is met (design 6). Leaves out: kernels that wait for the host or for a later launch, which a held
   stream would lock up. */
#include "lab/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "driver/call.h"
#include "lab/stand.h"
#include "lab/stats.h"

#define LEAST_WARMUP_ROUNDS 3
#define LEAST_WARMUP_NS                                                                 \
    UINT64_C(20000000) /* a GPU that was idle raises its clock within some milliseconds \
                        */
#define MOST_WARMUP_NS   UINT64_C(2000000000)
#define STEADY           0.01 /* change of the clock between two rounds that counts as steady */
#define ROW_LIMIT_S      15
#define TOTAL_LIMIT_S    120
#define FIRST_CHECK_STEP 10

struct cold_row {
    const struct clab_measured_row *row;
    struct clab_clock_row clock;
    double *kept; /* samples of this and of earlier calls */
    size_t n_kept, capacity;
};

struct cold {
    struct clab_stand stand;
    const struct clab_measure_options *options;
    const struct clab_measure_sink *sink;
    struct clab_outcome *outcome;
    struct cold_row *rows;
    size_t n_rows;
    size_t *order;
    double *clocks; /* of the round in hand */
    uint64_t start_ns;
    double limit_s;
};

const char *clab_measure_end_text(enum clab_measure_end end)
{
    static const char *const texts[] = {"", "count", "noise target", "event resolution", "time limit"};
    return texts[end];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the known clocks; sorts them. NaN when there is none. */
static double median_clock(double *clocks, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(clocks[i]))
            clocks[known++] = clocks[i];
    if (known == 0)
        return (double)NAN;
    qsort(clocks, known, sizeof *clocks, ascending);
    return clab_quantile(clocks, known, 0.5);
}

/* One launch of a row. The flag is released on every path, so that a refused launch cannot leave the stream
 * held. */
static clab_status launch(struct cold *cold, const struct clab_measured_row *row, double *out_ns,
                          double *out_mhz, struct clab_error *error)
{
    struct clab_stand *stand = &cold->stand;
    const struct clab_device *device = stand->device;
    const struct clab_driver *driver = device->driver;
    cold->outcome->failed = row->id;
    if (cold->sink->on_launch != NULL && !cold->sink->on_launch(cold->sink->context, row->id))
        return clab_error_set(error, CLAB_OUTPUT, "the launch could not be announced");
    clab_status status = row->prepare != NULL ? row->prepare(row->context, error) : CLAB_OK;
    if (status == CLAB_OK)
        status = clab_stand_flush(stand, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamSynchronize, (device->stream), NULL);
    if (status != CLAB_OK)
        return status;
    status = clab_stand_block(stand, error);
    if (status == CLAB_OK)
        status = clab_clock_stamp(&stand->clock, false, error);
    if (status == CLAB_OK && row->accompany != NULL)
        status = row->accompany(row->context, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->start, device->stream), NULL);
    if (status == CLAB_OK)
        status = row->submit(row->context, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->stop, device->stream), NULL);
    if (status == CLAB_OK)
        status = clab_clock_stamp(&stand->clock, true, error);
    clab_stand_release(stand);
    return status == CLAB_OK ? clab_stand_read(stand, true, out_ns, out_mhz, error) : status;
}

/* Rounds whose times are not kept, until the clock of two rounds in a row agrees; sets the reference. */
static clab_status warm_up(struct cold *cold, struct clab_error *error)
{
    const unsigned least = cold->options->warmup != 0 ? cold->options->warmup : LEAST_WARMUP_ROUNDS;
    const uint64_t start_ns = clab_now_ns();
    double last = (double)NAN;
    for (unsigned round = 0;; round++) {
        clab_stand_shuffle(&cold->stand, cold->order, cold->n_rows);
        for (size_t i = 0; i < cold->n_rows; i++) {
            double ns;
            clab_status status = launch(cold, cold->rows[cold->order[i]].row, &ns, &cold->clocks[i], error);
            if (status != CLAB_OK)
                return status;
        }
        const double clock = median_clock(cold->clocks, cold->n_rows);
        const uint64_t spent_ns = clab_now_ns() - start_ns;
        const bool steady = isnan(clock) || fabs(clock - last) <= STEADY * clock;
        last = clock;
        cold->stand.clock.reference_mhz = clock;
        if (spent_ns >= MOST_WARMUP_NS || (round + 1 >= least && steady && spent_ns >= LEAST_WARMUP_NS))
            return CLAB_OK;
    }
}

static clab_status keep(struct cold_row *row, double ns, struct clab_error *error)
{
    if (row->n_kept == row->capacity) {
        size_t capacity = row->capacity != 0 ? row->capacity * 2 : 256;
        double *kept = realloc(row->kept, capacity * sizeof *kept);
        if (kept == NULL)
            return clab_error_set(error, CLAB_NO_MEMORY, "no memory for %zu samples", capacity);
        row->kept = kept;
        row->capacity = capacity;
    }
    row->kept[row->n_kept++] = ns;
    return CLAB_OK;
}

/* One kept sample of a row, after as many discarded ones as the clock demands. */
static clab_status sample(struct cold *cold, struct cold_row *row, unsigned round, double *out_mhz,
                          struct clab_error *error)
{
    for (;;) {
        char reason[256];
        unsigned pause_ms;
        struct clab_sample taken = {.id = row->row->id, .round = round, .launches = 1};
        clab_status status = launch(cold, row->row, &taken.ns, &taken.sm_mhz, error);
        if (status != CLAB_OK)
            return status;
        clab_stand_look(&cold->stand, cold->stand.clock.reference_mhz * CLAB_CLOCK_LEAST > taken.sm_mhz);
        const bool kept = clab_clock_keep(&cold->stand.clock, &row->clock, taken.sm_mhz, cold->stand.throttle,
                                          reason, sizeof reason, &pause_ms);
        taken.discarded = kept ? NULL : reason;
        if (!cold->sink->on_sample(cold->sink->context, &taken))
            return clab_error_set(error, CLAB_OUTPUT, "the sample could not be handed on");
        if (kept) {
            *out_mhz = taken.sm_mhz;
            return keep(row, taken.ns, error);
        }
        clab_sleep_ms(pause_ms);
    }
}

/* Whether the values come in steps and the median's interval is one step wide: more samples narrow it no
 * further. */
static bool at_resolution(const double *values, size_t n, const struct clab_summary *summary)
{
    double step = (double)INFINITY;
    size_t distinct = 1;
    for (size_t i = 1; i < n; i++)
        if (values[i] - values[i - 1] >
            0.5) { /* ns; the float milliseconds of an event differ by less for nothing */
            step = fmin(step, values[i] - values[i - 1]);
            distinct++;
        }
    return distinct <= n / 2 && summary->median_high - summary->median_low <= step * 1.001;
}

static enum clab_measure_end judge(struct cold *cold)
{
    bool target = true;
    for (size_t i = 0; i < cold->n_rows; i++) {
        struct cold_row *row = &cold->rows[i];
        struct clab_summary summary;
        clab_summary_of(row->kept, row->n_kept, &summary); /* sorts: the order of `kept` means nothing */
        if (!summary.noisy)
            continue;
        target = false;
        if (!at_resolution(row->kept, row->n_kept, &summary))
            return CLAB_END_NONE;
    }
    return target ? CLAB_END_TARGET : CLAB_END_RESOLUTION;
}

static size_t fewest(const struct cold *cold)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < cold->n_rows; i++)
        if (cold->rows[i].n_kept < least)
            least = cold->rows[i].n_kept;
    return least;
}

static double spent_s(const struct cold *cold)
{
    return cold->options->spent_s + (double)(clab_now_ns() - cold->start_ns) * 1e-9;
}

static clab_status rounds(struct cold *cold, struct clab_error *error)
{
    const size_t wanted = cold->options->samples != 0 ? cold->options->samples : CLAB_MOST_ROUNDS;
    size_t next_check = CLAB_LEAST_ROUNDS;
    while (fewest(cold) < wanted) {
        const unsigned round = cold->options->first_round + cold->outcome->rounds;
        clab_stand_shuffle(&cold->stand, cold->order, cold->n_rows);
        for (size_t i = 0; i < cold->n_rows; i++) {
            clab_status status = sample(cold, &cold->rows[cold->order[i]], round, &cold->clocks[i], error);
            if (status != CLAB_OK)
                return status;
        }
        cold->outcome->rounds++;
        /* The reference only rises: a warm-up that ended too early must not let slow samples pass. */
        const double clock = median_clock(cold->clocks, cold->n_rows);
        if (!isnan(clock) && clock > cold->stand.clock.reference_mhz)
            cold->stand.clock.reference_mhz = clock;
        if (cold->options->samples != 0)
            continue;
        if (fewest(cold) >= next_check) {
            cold->outcome->end = judge(cold);
            if (cold->outcome->end != CLAB_END_NONE)
                return CLAB_OK;
            next_check =
                fewest(cold) + (fewest(cold) / 10 > FIRST_CHECK_STEP ? fewest(cold) / 10 : FIRST_CHECK_STEP);
        }
        if (spent_s(cold) >= cold->limit_s) {
            cold->outcome->end = CLAB_END_LIMIT;
            return CLAB_OK;
        }
    }
    cold->outcome->end = cold->options->samples != 0 ? CLAB_END_COUNT : CLAB_END_LIMIT;
    return CLAB_OK;
}

static clab_status cold_init(struct cold *cold, const struct clab_measured_row *rows,
                             struct clab_error *error)
{
    cold->rows = calloc(cold->n_rows + 1, sizeof *cold->rows);
    cold->order = calloc(cold->n_rows + 1, sizeof *cold->order);
    cold->clocks = calloc(cold->n_rows + 1, sizeof *cold->clocks);
    if (cold->rows == NULL || cold->order == NULL || cold->clocks == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for %zu rows", cold->n_rows);
    clab_status status = CLAB_OK;
    for (size_t i = 0; i < cold->n_rows; i++) {
        cold->order[i] = i;
        cold->rows[i].row = &rows[i];
        for (size_t j = 0; j < rows[i].n_earlier && status == CLAB_OK; j++)
            status = keep(&cold->rows[i], rows[i].earlier[j], error);
    }
    const double row_s = cold->options->row_limit_s > 0 ? cold->options->row_limit_s : ROW_LIMIT_S;
    const double total_s = cold->options->total_limit_s > 0 ? cold->options->total_limit_s : TOTAL_LIMIT_S;
    cold->limit_s = fmin(row_s * (double)cold->n_rows, total_s);
    return status;
}

clab_status clab_measure_cold(const struct clab_device *device, const struct clab_measured_row *rows,
                              size_t n_rows, const struct clab_measure_options *options,
                              const struct clab_measure_sink *sink, struct clab_outcome *out_outcome,
                              struct clab_error *error)
{
    struct cold cold = {.options = options, .sink = sink, .outcome = out_outcome, .n_rows = n_rows};
    if (!clab_stand_begin(rows, n_rows, out_outcome))
        return CLAB_OK;
    clab_status status = cold_init(&cold, rows, error);
    bool standing = false;
    if (status == CLAB_OK) {
        standing = true;
        status = clab_stand_init(&cold.stand, device, options, error);
    }
    if (status == CLAB_OK)
        status = warm_up(&cold, error);
    cold.start_ns = clab_now_ns();
    if (status == CLAB_OK) {
        clab_stand_look(&cold.stand, true);
        status = rounds(&cold, error);
        clab_stand_look(&cold.stand, true);
    }
    out_outcome->spent_s = spent_s(&cold);
    if (standing)
        clab_stand_end(&cold.stand, status, error, out_outcome);
    for (size_t i = 0; i < n_rows && cold.rows != NULL; i++)
        free(cold.rows[i].kept);
    free(cold.rows);
    free(cold.order);
    free(cold.clocks);
    return status;
}
