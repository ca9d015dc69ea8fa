/* Summaries and paired ratios of times. The bootstrap resamples sorted values by counting how often each
   position is drawn, so that a resample's median costs one walk and no sort. Stopping rules are in stop.c. */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES   2000
#define LEAST_PAIRS 6

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double clab_quantile(const double *values, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n)
        return values[n - 1];
    return values[below] + (at - (double)below) * (values[below + 1] - values[below]);
}

/* Positions (0-based) of the order statistics between which the median lies with at least 95 % confidence,
   whatever the distribution: the widest l with P(Binomial(n, 1/2) <= l) <= 2.5 %. False when n is too small.
 */
static bool median_positions(size_t n, size_t *low, size_t *high)
{
    double log_half = -(double)n * log(2.0), cumulative = 0;
    bool found = false;
    for (size_t k = 0; k < n / 2; k++) {
        double log_choose = lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
        cumulative += exp(log_choose + log_half);
        if (cumulative > 0.025)
            break;
        *low = k;
        *high = n - 1 - k;
        found = true;
    }
    return found;
}

void clab_summary_of(double *values, size_t n, struct clab_summary *out)
{
    memset(out, 0, sizeof *out);
    out->count = n;
    out->noisy = true;
    if (n == 0)
        return;
    qsort(values, n, sizeof *values, ascending);
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) { /* Welford: no cancellation of large, nearly equal times */
        double delta = values[i] - mean;
        mean += delta / (double)(i + 1);
        squares += delta * (values[i] - mean);
    }
    out->min = values[0];
    out->max = values[n - 1];
    out->mean = mean;
    out->p05 = clab_quantile(values, n, 0.05);
    out->p25 = clab_quantile(values, n, 0.25);
    out->median = clab_quantile(values, n, 0.5);
    out->p75 = clab_quantile(values, n, 0.75);
    out->p95 = clab_quantile(values, n, 0.95);
    out->stdev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    out->relative_stdev = mean != 0 ? out->stdev / fabs(mean) : 0;
    size_t low = 0, high = n - 1;
    bool bounded = median_positions(n, &low, &high);
    out->median_low = values[low];
    out->median_high = values[high];
    double half_width = (out->median_high - out->median_low) / 2;
    out->noisy = !bounded || half_width > CLAB_NOISE_TARGET * fabs(out->median);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A position in [0, n), n < 2^32: the high half of a product (Lemire 2019, without the rejection step, whose
   bias is below n / 2^32). */
static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(((next_random(state) >> 32) * (uint64_t)n) >> 32);
}

/* Median of the resample in which sorted[i] occurs counts[i] times, n in all. */
static double counted_median(const double *sorted, const uint32_t *counts, size_t n)
{
    size_t seen = 0, left = (n - 1) / 2, right = n / 2, i = 0;
    while ((seen += counts[i]) <= left)
        i++;
    double first = sorted[i];
    while (seen <= right)
        seen += counts[++i];
    return first + (sorted[i] - first) / 2;
}

bool clab_ratio_paired(const double *a, const double *b, size_t n, uint64_t seed, struct clab_ratio *out)
{
    memset(out, 0, sizeof *out);
    double *ratios = calloc(n + 1, sizeof *ratios), *medians = calloc(RESAMPLES, sizeof *medians);
    uint32_t *counts = calloc(n + 1, sizeof *counts);
    size_t pairs = 0;
    bool enough = ratios != NULL && medians != NULL && counts != NULL && n < UINT32_MAX;
    for (size_t i = 0; enough && i < n; i++)
        if (!isnan(a[i]) && !isnan(b[i]) && b[i] > 0)
            ratios[pairs++] = a[i] / b[i];
    enough = enough && pairs >= LEAST_PAIRS;
    if (enough) {
        qsort(ratios, pairs, sizeof *ratios, ascending);
        for (size_t r = 0; r < RESAMPLES; r++) {
            memset(counts, 0, pairs * sizeof *counts);
            for (size_t i = 0; i < pairs; i++)
                counts[below(&seed, pairs)]++;
            medians[r] = counted_median(ratios, counts, pairs);
        }
        qsort(medians, RESAMPLES, sizeof *medians, ascending);
        out->pairs = pairs;
        out->ratio = clab_quantile(ratios, pairs, 0.5);
        out->low = clab_quantile(medians, RESAMPLES, 0.025);
        out->high = clab_quantile(medians, RESAMPLES, 0.975);
    }
    free(ratios);
    free(medians);
    free(counts);
    return enough;
}
