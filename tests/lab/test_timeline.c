/* host/lab/timeline.c: what follows from a log, by hand-made logs. */
#include "lab/timeline.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Three SMs, four tiles of 100 ns a unit: SM 7 has two of one unit, SM 8 one of two, SM 9 one of one; SM 9's
 * ends at 100. */
static const uint64_t log_words[] = {
    1000, 1100, 7 | (UINT64_C(0) << 32), 0, /* */
    1100, 1200, 7 | (UINT64_C(0) << 32), 0, /* */
    1000, 1200, 8 | (UINT64_C(1) << 32), 0, /* */
    1000, 1100, 9 | (UINT64_C(2) << 32), 0,
};
static const double costs[] = {1, 1, 2, 1};

static void test_counts_and_times(void **state)
{
    (void)state;
    json_t *summary = clab_timeline_summary(log_words, 4, costs, 4, 3, true);
    assert_int_equal(json_integer_value(json_object_get(summary, "items")), 4);
    assert_int_equal(json_integer_value(json_object_get(summary, "missing")), 0);
    assert_int_equal(json_integer_value(json_object_get(summary, "ctas")), 3);
    assert_int_equal(number(json_object_get(summary, "items_per_cta"), "min"), 1);
    assert_int_equal(number(json_object_get(summary, "items_per_cta"), "max"), 2);
    assert_int_equal(number(summary, "makespan_ns"), 200);
    assert_int_equal(number(summary, "shortest_ns"), 100);
    assert_int_equal(number(summary, "longest_ns"), 200);
    assert_int_equal(number(summary, "idle_end_ns"), 100);
    assert_int_equal(number(summary, "cost"), 5);
    const json_t *slots = json_object_get(summary, "slots");
    assert_int_equal(json_array_size(slots), 24);
    assert_int_equal(json_integer_value(json_array_get(slots, 6)), 1);
    assert_int_equal(json_integer_value(json_array_get(slots, 7)), 100);
    assert_int_equal(json_integer_value(json_array_get(slots, 9)), 7);
    clab_timeline_judge(summary, 3);
    assert_float_equal(number(summary, "unit_ns"), 100, 1e-9);
    assert_float_equal(number(summary, "bound_ns"), 200, 1e-9); /* the longest tile, not 500 / 3 */
    assert_float_equal(number(summary, "over_bound"), 1, 1e-9);
    assert_float_equal(number(summary, "idle_end"), 100.0 / 600, 1e-9);
    json_decref(summary);
}

/* An SM that did nothing was idle all the time; slots that were not written are counted; held time is no
 * item. */
static void test_idle_missing_held(void **state)
{
    (void)state;
    const uint64_t words[] = {
        1000, 1300, 0, 0, /* */
        0,    0,    0, 0, /* not written */
        400,  1000, 2, 1, /* another kernel, before the first tile */
    };
    json_t *summary = clab_timeline_summary(words, 3, costs, 2, 3, true);
    assert_int_equal(number(summary, "items"), 1);
    assert_int_equal(number(summary, "missing"), 1);
    assert_int_equal(number(summary, "held"), 1);
    assert_int_equal(number(summary, "held_ns"), 600);
    assert_int_equal(number(summary, "makespan_ns"), 300);
    assert_int_equal(number(summary, "idle_end_ns"), 600);
    const json_t *slots = json_object_get(summary, "slots");
    assert_int_equal(json_array_size(slots), 12);
    assert_int_equal(json_integer_value(json_array_get(slots, 7)), -600);
    clab_timeline_judge(summary, 3);
    assert_float_equal(number(summary, "bound_ns"), 300, 1e-9); /* (300 + 600) / 3 */
    json_decref(summary);
}

/* Nothing logged: counts, and no times to judge. Without costs no bound. */
static void test_nothing(void **state)
{
    (void)state;
    const uint64_t words[8] = {0};
    json_t *summary = clab_timeline_summary(words, 2, NULL, 0, 3, false);
    assert_int_equal(number(summary, "missing"), 2);
    clab_timeline_judge(summary, 3);
    assert_null(json_object_get(summary, "makespan_ns"));
    assert_null(json_object_get(summary, "over_bound"));
    assert_null(json_object_get(summary, "slots"));
    json_decref(summary);
    summary = clab_timeline_summary(log_words, 4, NULL, 0, 3, false);
    clab_timeline_judge(summary, 3);
    assert_null(json_object_get(summary, "over_bound"));
    assert_float_equal(number(summary, "idle_end"), 100.0 / 600, 1e-9);
    json_decref(summary);
}

/* A clock that is read backwards does not make a negative time. */
static void test_backwards(void **state)
{
    (void)state;
    const uint64_t words[] = {1000, 900, 0, 0};
    json_t *summary = clab_timeline_summary(words, 1, costs, 1, 1, false);
    assert_int_equal(number(summary, "shortest_ns"), 0);
    assert_int_equal(number(summary, "makespan_ns"), 0);
    clab_timeline_judge(summary, 1);
    assert_null(json_object_get(summary, "over_bound"));
    json_decref(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_times),
        cmocka_unit_test(test_idle_missing_held),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
