/* When a measurement has sampled enough (stats.h). The rules are nvbench's, as its documentation and sources
   of 2026 describe them: the relative standard deviation, and the entropy of the sample values. Left to the
   caller: the wall limit. */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SAMPLES   10
#define STDREL_FIRST    5    /* sample from which the relative standard deviation is recorded */
#define STDREL_WINDOW   512  /* records kept */
#define STDREL_SETTLED  64   /* records needed before noise can count as settled */
#define STDREL_EVERY    16   /* and samples between two such tests */
#define STDREL_SPREAD   0.05 /* the records' own relative standard deviation when settled */
#define STDREL_UNUSABLE 64   /* unusable estimates in a row that end it */
#define ENTROPY_WINDOW  299
#define ENTROPY_EVERY   2

/* Exact values seen so far and how often (open addressing, a power of two of slots). */
struct tally {
    double *values;
    uint32_t *counts;
    size_t slots, used;
};

struct clab_stop {
    struct clab_stop_options options;
    enum clab_stop_reason reason;
    size_t n;
    double total, mean, squares; /* Welford */
    double records[STDREL_WINDOW];
    size_t n_records; /* ever made; the window holds the last of them */
    size_t unusable;
    struct tally tally;
    double count_logs; /* sum of c log2 c over the tally */
    double estimate;
};

struct clab_stop *clab_stop_new(const struct clab_stop_options *options)
{
    struct clab_stop *stop = calloc(1, sizeof *stop);
    if (stop == NULL)
        return NULL;
    stop->options = *options;
    stop->estimate = (double)NAN;
    if (stop->options.count == 0)
        stop->options.count = LEAST_SAMPLES;
    if (!(stop->options.noise > 0))
        stop->options.noise = 0.005;
    if (!(stop->options.least_total > 0))
        stop->options.least_total = 0.5e9;
    if (!(stop->options.angle_degrees > 0))
        stop->options.angle_degrees = 0.048;
    if (!(stop->options.r_squared > 0))
        stop->options.r_squared = 0.36;
    return stop;
}

void clab_stop_free(struct clab_stop *stop)
{
    if (stop == NULL)
        return;
    free(stop->tally.values);
    free(stop->tally.counts);
    free(stop);
}

static void record(struct clab_stop *stop, double value)
{
    stop->records[stop->n_records++ % STDREL_WINDOW] = value;
}

static size_t records_kept(const struct clab_stop *stop)
{
    return stop->n_records < STDREL_WINDOW ? stop->n_records : STDREL_WINDOW;
}

/* -- relative standard deviation ------------------------------------------------------------------------- */

static bool records_settled(const struct clab_stop *stop)
{
    size_t n = records_kept(stop);
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double delta = stop->records[i] - mean;
        mean += delta / (double)(i + 1);
        squares += delta * (stop->records[i] - mean);
    }
    return mean > 0 && sqrt(squares / (double)(n - 1)) < STDREL_SPREAD * mean;
}

static enum clab_stop_reason add_stdrel(struct clab_stop *stop)
{
    if (stop->n < STDREL_FIRST)
        return CLAB_STOP_NOT;
    double estimate = sqrt(stop->squares / (double)(stop->n - 1)) / stop->mean;
    if (!isfinite(estimate) || estimate < 0)
        return ++stop->unusable >= STDREL_UNUSABLE ? CLAB_STOP_UNUSABLE : CLAB_STOP_NOT;
    stop->unusable = 0;
    stop->estimate = estimate;
    record(stop, estimate);
    if (stop->n < stop->options.count || stop->total < stop->options.least_total)
        return CLAB_STOP_NOT;
    if (estimate < stop->options.noise)
        return CLAB_STOP_REACHED;
    if (records_kept(stop) > STDREL_SETTLED && stop->n % STDREL_EVERY == 0 && records_settled(stop))
        return CLAB_STOP_SETTLED;
    return CLAB_STOP_NOT;
}

/* -- entropy --------------------------------------------------------------------------------------------- */

static size_t slot_of(const struct tally *tally, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits ^ (bits >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    size_t slot = (size_t)(bits >> 20) & (tally->slots - 1);
    while (tally->counts[slot] != 0 && tally->values[slot] != value)
        slot = (slot + 1) & (tally->slots - 1);
    return slot;
}

static bool tally_grow(struct tally *tally)
{
    struct tally larger = {.slots = tally->slots > 0 ? tally->slots * 2 : 64, .used = tally->used};
    larger.values = calloc(larger.slots, sizeof *larger.values);
    larger.counts = calloc(larger.slots, sizeof *larger.counts);
    if (larger.values == NULL || larger.counts == NULL) {
        free(larger.values);
        free(larger.counts);
        return false;
    }
    for (size_t i = 0; i < tally->slots; i++)
        if (tally->counts[i] != 0) {
            size_t slot = slot_of(&larger, tally->values[i]);
            larger.values[slot] = tally->values[i];
            larger.counts[slot] = tally->counts[i];
        }
    free(tally->values);
    free(tally->counts);
    *tally = larger;
    return true;
}

/* Adds a value; its count before. False when memory is out. */
static bool tally_add(struct tally *tally, double value, uint32_t *out_before)
{
    if (tally->used * 2 >= tally->slots && !tally_grow(tally))
        return false;
    size_t slot = slot_of(tally, value);
    *out_before = tally->counts[slot];
    tally->values[slot] = value;
    tally->used += tally->counts[slot]++ == 0;
    return true;
}

/* Least-squares line through the records in the window, oldest first, at x = 0, 1, 2, ... */
static void fit_line(const struct clab_stop *stop, double *slope, double *r_squared)
{
    size_t window = stop->n_records < ENTROPY_WINDOW ? stop->n_records : ENTROPY_WINDOW;
    size_t first = stop->n_records - window;
    double mean_x = (double)(window - 1) / 2, mean_y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < window; i++)
        mean_y += stop->records[(first + i) % STDREL_WINDOW];
    mean_y /= (double)window;
    for (size_t i = 0; i < window; i++) {
        double x = (double)i - mean_x, y = stop->records[(first + i) % STDREL_WINDOW] - mean_y;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    *slope = xy / xx;
    *r_squared = yy > 0 ? xy * xy / (xx * yy) : 1;
}

static enum clab_stop_reason add_entropy(struct clab_stop *stop, double sample)
{
    uint32_t before;
    if (!tally_add(&stop->tally, sample, &before))
        return CLAB_STOP_UNUSABLE;
    double c = before;
    stop->count_logs += (c + 1) * log2(c + 1) - (before > 0 ? c * log2(c) : 0);
    stop->estimate = fmax(0, log2((double)stop->n) - stop->count_logs / (double)stop->n);
    record(stop, stop->estimate);
    if (stop->n < stop->options.count || stop->n % ENTROPY_EVERY != 0 || stop->n_records < 2)
        return CLAB_STOP_NOT;
    double slope, r_squared;
    fit_line(stop, &slope, &r_squared);
    double degrees = atan(slope) * 180.0 / 3.14159265358979323846;
    return degrees <= stop->options.angle_degrees && r_squared >= stop->options.r_squared ? CLAB_STOP_REACHED
                                                                                          : CLAB_STOP_NOT;
}

/* -- the interface --------------------------------------------------------------------------------------- */

enum clab_stop_reason clab_stop_add(struct clab_stop *stop, double sample)
{
    if (stop->reason != CLAB_STOP_NOT)
        return stop->reason;
    stop->n++;
    stop->total += sample;
    double delta = sample - stop->mean;
    stop->mean += delta / (double)stop->n;
    stop->squares += delta * (sample - stop->mean);
    switch (stop->options.rule) {
    case CLAB_STOP_COUNT:
        stop->reason = stop->n >= stop->options.count ? CLAB_STOP_REACHED : CLAB_STOP_NOT;
        break;
    case CLAB_STOP_STDREL:
        stop->reason = add_stdrel(stop);
        break;
    case CLAB_STOP_ENTROPY:
        stop->reason = add_entropy(stop, sample);
        break;
    }
    return stop->reason;
}

double clab_stop_estimate(const struct clab_stop *stop)
{
    return stop->estimate;
}
