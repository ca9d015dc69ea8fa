/* Statistics of times: summaries, paired ratios with a bootstrap interval, rules that say when enough was
   sampled. Pure and deterministic. Not-a-number marks a discarded sample where a function says so. */
#ifndef CLAB_LAB_STATS_H
#define CLAB_LAB_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of n samples, in their unit (ns). Quantiles interpolate linearly between order statistics (Hyndman and Fan
   1996, type 7). With n = 0 everything is 0 and `noisy` is set. */
struct clab_summary {
    size_t count;
    double min, max, mean;
    double p05, p25, median, p75, p95;
    double stdev, relative_stdev; /* n - 1 in the denominator; 0 when n < 2 */
    double median_low,
        median_high; /* distribution-free 95 % interval of the median (binomial order statistics) */
    bool noisy;      /* that interval is unbounded (n < 6) or wider than +-0.5 % of the median */
};

#define CLAB_NOISE_TARGET 0.005

/* Sorts `values` in place. Values must be finite. */
void clab_summary_of(double *values, size_t n, struct clab_summary *out);

/* Quantile q in [0, 1] of n > 0 values in ascending order. */
double clab_quantile(const double *ascending, size_t n, double q);

/* The ratio of two interleaved series, sample by sample. */
struct clab_ratio {
    size_t pairs;
    double ratio; /* median of a[i] / b[i] */
    double low,
        high; /* 95 % percentile-bootstrap interval of that median (Efron and Tibshirani 1993, §13.3) */
};

/* a[i] and b[i] were taken in the same round; a pair with a NaN in it is left out. 2000 resamples drawn from
   `seed`, so that the same samples give the same interval. False when fewer than 6 pairs remain or memory is
   out. */
bool clab_ratio_paired(const double *a, const double *b, size_t n, uint64_t seed, struct clab_ratio *out);

/* -- when to stop ---------------------------------------------------------------------------------------- */

enum clab_stop_rule { CLAB_STOP_COUNT, CLAB_STOP_STDREL, CLAB_STOP_ENTROPY };
enum clab_stop_reason {
    CLAB_STOP_NOT,      /* go on */
    CLAB_STOP_REACHED,  /* the rule's target is met */
    CLAB_STOP_SETTLED,  /* noisy, but the noise no longer changes */
    CLAB_STOP_UNUSABLE, /* the estimate cannot be formed (a mean of zero, say) */
};

struct clab_stop_options {
    enum clab_stop_rule rule;
    size_t count;         /* COUNT: samples wanted; the others: at least this many (0: 10) */
    double noise;         /* STDREL: target of the relative standard deviation (0: 0.005) */
    double least_total;   /* STDREL: summed samples needed before it may stop (0: 0.5e9 ns) */
    double angle_degrees; /* ENTROPY: greatest slope of the entropy's regression line (0: 0.048) */
    double r_squared;     /* ENTROPY: least R^2 of that line (0: 0.36) */
};

struct clab_stop;
/* NULL when memory is out. Owned by the caller. */
struct clab_stop *clab_stop_new(const struct clab_stop_options *options);
void clab_stop_free(struct clab_stop *stop);
/* Takes the next sample (finite, > 0 expected). Once it answered something else than CLAB_STOP_NOT the answer
 * stays. */
enum clab_stop_reason clab_stop_add(struct clab_stop *stop, double sample);
/* The rule's present estimate (relative standard deviation; entropy in bits), NaN when there is none yet. */
double clab_stop_estimate(const struct clab_stop *stop);

#endif
