/* Statistics against answers computed independently: Python's `statistics` module, exact binomial sums, and
   the exact bootstrap distribution of a median, P(median* <= x(k)) = P(Binomial(n, k/n) >= (n + 1) / 2). */
#include "lab/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void assert_near(double got, double wanted, double relative)
{
    if (!(fabs(got - wanted) <= relative * fabs(wanted)))
        fail_msg("got %.17g, wanted %.17g", got, wanted);
}

static void test_summary(void **state)
{
    (void)state;
    double times[] = {62.5, 61.9, 63.1, 62.2, 62.8, 70.4, 62.4, 62.6, 62.3, 62.0, 62.7, 61.8};
    struct clab_summary s;
    clab_summary_of(times, 12, &s);
    assert_int_equal(s.count, 12);
    assert_near(s.min, 61.8, 0);
    assert_near(s.max, 70.4, 0);
    assert_near(s.mean, 63.05833333333334, 1e-15);
    assert_near(s.stdev, 2.3434466975466783, 1e-13);
    assert_near(s.relative_stdev, 0.03716315629781966, 1e-13);
    assert_near(s.p05, 61.855, 1e-15);
    assert_near(s.p25, 62.150000000000006, 1e-15);
    assert_near(s.median, 62.45, 1e-15);
    assert_near(s.p75, 62.725, 1e-15);
    assert_near(s.p95, 66.38499999999999, 1e-15);
    assert_near(s.median_low, 62.0, 0); /* positions 2 and 9 of 12: 2 P(Bin(12, 1/2) <= 2) = 3.9 % */
    assert_near(s.median_high, 62.8, 0);
    assert_true(s.noisy); /* +-0.4 of 62.45 is 0.64 % */
}

static void test_summary_cancellation(void **state)
{
    (void)state;
    double times[] = {1e9 + 1, 1e9 + 2, 1e9 + 3};
    struct clab_summary s;
    clab_summary_of(times, 3, &s);
    assert_near(s.stdev, 1.0, 1e-12);
}

static void test_summary_small(void **state)
{
    (void)state;
    double one[] = {7};
    struct clab_summary s;
    clab_summary_of(one, 1, &s);
    assert_near(s.median, 7, 0);
    assert_near(s.p95, 7, 0);
    assert_true(s.stdev == 0 && s.noisy);
    clab_summary_of(one, 0, &s);
    assert_true(s.count == 0 && s.median == 0 && s.noisy);
}

/* Known 95 % intervals of a median: the 2nd and 9th of 10, the 18th and 33rd of 50, the 40th and 61st of 100.
 */
static void test_median_interval(void **state)
{
    (void)state;
    static const struct {
        size_t n, low, high;
    } known[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},    {10, 2, 9},
                 {20, 6, 15}, {25, 8, 18}, {50, 18, 33}, {100, 40, 61}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double values[100];
        struct clab_summary s;
        for (size_t j = 0; j < known[i].n; j++)
            values[j] = (double)(known[i].n - j);
        clab_summary_of(values, known[i].n, &s);
        assert_near(s.median_low, (double)known[i].low, 0);
        assert_near(s.median_high, (double)known[i].high, 0);
    }
}

static void test_noise(void **state)
{
    (void)state;
    double values[50];
    struct clab_summary s;
    for (int i = 0; i < 50; i++)
        values[i] = 1000 + i * 0.6; /* interval: 15 steps of 0.6, +-4.5 of 1014.7: 0.44 % */
    clab_summary_of(values, 50, &s);
    assert_false(s.noisy);
    for (int i = 0; i < 50; i++)
        values[i] = 1000 + i * 0.7; /* +-5.25 of 1017.15: 0.52 % */
    clab_summary_of(values, 50, &s);
    assert_true(s.noisy);
    for (int i = 0; i < 5; i++)
        values[i] = 1000;
    clab_summary_of(values, 5, &s);
    assert_true(s.noisy); /* five samples bound nothing */
    values[5] = 1000;
    clab_summary_of(values, 6, &s);
    assert_false(s.noisy);
}

static void test_ratio_exact_bootstrap(void **state)
{
    (void)state;
    /* n = 11: the exact 2.5 % point is x(3) (F = 0.7 % below, 5.1 % at it), the 97.5 % point x(9). */
    double a[11], ones[11];
    struct clab_ratio ratio;
    for (int i = 0; i < 11; i++) {
        a[i] = (double)((i * 7) % 11 + 1); /* 1 to 11 in some order */
        ones[i] = 1;
    }
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_true(clab_ratio_paired(a, ones, 11, seed, &ratio));
        assert_near(ratio.ratio, 6, 0);
        assert_near(ratio.low, 3, 0);
        assert_near(ratio.high, 9, 0);
    }
    /* n = 7: x(2) and x(6). */
    assert_true(clab_ratio_paired((double[]){3, 1, 2, 5, 4, 7, 6}, ones, 7, 1, &ratio));
    assert_near(ratio.low, 2, 0);
    assert_near(ratio.high, 6, 0);
}

static void test_ratio_pairs(void **state)
{
    (void)state;
    /* A drift that both share cancels in the pairs: every ratio is 1.25. */
    double a[20], b[20];
    struct clab_ratio ratio, again;
    for (int i = 0; i < 20; i++) {
        b[i] = 100 + 10 * i;
        a[i] = 1.25 * b[i];
    }
    assert_true(clab_ratio_paired(a, b, 20, 1, &ratio));
    assert_int_equal(ratio.pairs, 20);
    assert_near(ratio.ratio, 1.25, 1e-15);
    assert_near(ratio.low, 1.25, 1e-15);
    assert_near(ratio.high, 1.25, 1e-15);
    /* A discarded sample drops its pair only. */
    a[3] = (double)NAN;
    b[4] = (double)NAN;
    a[7] = 1e6;
    assert_true(clab_ratio_paired(a, b, 20, 1, &ratio));
    assert_int_equal(ratio.pairs, 18);
    assert_near(ratio.ratio, 1.25, 1e-15);
    /* The same seed gives the same interval. */
    for (int i = 0; i < 20; i++)
        a[i] = b[i] * (1 + 0.01 * ((i * 13) % 20));
    assert_true(clab_ratio_paired(a, b, 20, 42, &ratio) && clab_ratio_paired(a, b, 20, 42, &again));
    assert_true(ratio.low == again.low && ratio.high == again.high && ratio.low < ratio.high);
    /* Five pairs are too few to say anything. */
    assert_false(clab_ratio_paired(a + 15, b + 15, 5, 1, &ratio));
    assert_true(clab_ratio_paired(a + 14, b + 14, 6, 1, &ratio));
}

/* Samples until the rule stops, at most `limit`. */
static size_t samples_until(const struct clab_stop_options *options, double (*sample)(size_t i), size_t limit,
                            enum clab_stop_reason *out_reason)
{
    struct clab_stop *stop = clab_stop_new(options);
    size_t n = 0;
    assert_non_null(stop);
    for (*out_reason = CLAB_STOP_NOT; *out_reason == CLAB_STOP_NOT && n < limit; n++)
        *out_reason = clab_stop_add(stop, sample(n));
    assert_int_equal(clab_stop_add(stop, 1), *out_reason == CLAB_STOP_NOT ? CLAB_STOP_NOT : *out_reason);
    clab_stop_free(stop);
    return n;
}

static double steady_100ms(size_t i)
{
    (void)i;
    return 1e8;
}

static double steady_10ms(size_t i)
{
    (void)i;
    return 1e7;
}

static double alternating(size_t i)
{
    return i % 2 != 0 ? 1.1e7 : 0.9e7;
}

static double zero(size_t i)
{
    (void)i;
    return 0;
}

static double distinct(size_t i)
{
    return (double)i + 1;
}

static double cycle(size_t i)
{
    return (double)(i % 8);
}

static void test_stop_count(void **state)
{
    (void)state;
    enum clab_stop_reason reason;
    assert_int_equal(samples_until(&(struct clab_stop_options){.count = 7}, steady_10ms, 100, &reason), 7);
    assert_int_equal(reason, CLAB_STOP_REACHED);
}

static void test_stop_stdrel(void **state)
{
    (void)state;
    enum clab_stop_reason reason;
    const struct clab_stop_options rule = {.rule = CLAB_STOP_STDREL};
    assert_int_equal(samples_until(&rule, steady_100ms, 1000, &reason),
                     10); /* 0.5 s after 5, but at least 10 */
    assert_int_equal(reason, CLAB_STOP_REACHED);
    assert_int_equal(samples_until(&rule, steady_10ms, 1000, &reason), 50); /* 0.5 s */
    assert_int_equal(reason, CLAB_STOP_REACHED);
    /* 10 % of noise for ever: more than 64 records, the first of which is the 5th sample's, then the next
     * 16th. */
    assert_int_equal(samples_until(&rule, alternating, 1000, &reason), 80);
    assert_int_equal(reason, CLAB_STOP_SETTLED);
    assert_int_equal(samples_until(&rule, zero, 1000, &reason), 68); /* 64 unusable ones from the 5th on */
    assert_int_equal(reason, CLAB_STOP_UNUSABLE);
}

static void test_stop_entropy(void **state)
{
    (void)state;
    enum clab_stop_reason reason;
    const struct clab_stop_options rule = {.rule = CLAB_STOP_ENTROPY};
    assert_int_equal(samples_until(&rule, steady_10ms, 1000, &reason), 10);
    assert_int_equal(reason, CLAB_STOP_REACHED);
    assert_int_equal(samples_until(&rule, distinct, 10000, &reason), 1874);
    assert_int_equal(samples_until(&rule, cycle, 10000, &reason), 336);
}

static void test_entropy_value(void **state)
{
    (void)state;
    static const double samples[] = {1, 1, 2, 2, 2, 3, 4, 4};
    struct clab_stop *stop =
        clab_stop_new(&(struct clab_stop_options){.rule = CLAB_STOP_ENTROPY, .count = 100});
    assert_non_null(stop);
    assert_true(isnan(clab_stop_estimate(stop)));
    for (size_t i = 0; i < 8; i++)
        clab_stop_add(stop, samples[i]);
    assert_near(clab_stop_estimate(stop), 1.9056390622295665, 1e-14);
    clab_stop_free(stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),       cmocka_unit_test(test_summary_cancellation),
        cmocka_unit_test(test_summary_small), cmocka_unit_test(test_median_interval),
        cmocka_unit_test(test_noise),         cmocka_unit_test(test_ratio_exact_bootstrap),
        cmocka_unit_test(test_ratio_pairs),   cmocka_unit_test(test_stop_count),
        cmocka_unit_test(test_stop_stdrel),   cmocka_unit_test(test_stop_entropy),
        cmocka_unit_test(test_entropy_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
