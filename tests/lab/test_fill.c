/* Fills, element conversions and comparisons of host/lab/fill.c against values known by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/fill.h"

static void chunks_agree(void **state)
{
    (void)state;
    const struct clab_fill fills[] = {{.kind = CLAB_FILL_BITS, .seed = 7},
                                      {.kind = CLAB_FILL_RANDOM, .seed = 3},
                                      {.kind = CLAB_FILL_IOTA},
                                      {.kind = CLAB_FILL_VALUE, .value = 2.5}};
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
        for (int element = 0; element < CLAB_ELEMENT_COUNT; element++) {
            unsigned char whole[100 * 8], part[100 * 8];
            const size_t size = clab_element_bytes((enum clab_element)element);
            clab_fill_store(&fills[f], (enum clab_element)element, 0, 100, whole);
            clab_fill_store(&fills[f], (enum clab_element)element, 0, 37, part);
            clab_fill_store(&fills[f], (enum clab_element)element, 37, 63, part + 37 * size);
            assert_memory_equal(whole, part, 100 * size);
        }
}

static void bits_are_zeros_and_ones_and_depend_on_the_seed(void **state)
{
    (void)state;
    const struct clab_fill seven = {.kind = CLAB_FILL_BITS, .seed = 7},
                           eight = {.kind = CLAB_FILL_BITS, .seed = 8};
    float a[4096], b[4096];
    clab_fill_store(&seven, CLAB_F32, 0, 4096, a);
    clab_fill_store(&eight, CLAB_F32, 0, 4096, b);
    unsigned ones = 0;
    for (size_t i = 0; i < 4096; i++) {
        assert_true(a[i] == 0.0f || a[i] == 1.0f);
        ones += a[i] == 1.0f;
    }
    /* Binomial(4096, 1/2): 6 standard deviations are 192. */
    assert_in_range(ones, 2048 - 192, 2048 + 192);
    assert_memory_not_equal(a, b, sizeof a);
    assert_true(clab_elements_sum(CLAB_F32, a, 4096) == (long double)ones);
}

static void small_floats_round_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        double value;
        uint16_t f16, bf16;
    } known[] = {
        {0.0, 0x0000, 0x0000},
        {-0.0, 0x8000, 0x8000},
        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},
        {65504.0, 0x7bff, 0x4780},
        {65520.0, 0x7c00, 0x4780},
        {65519.0, 0x7bff, 0x4780},
        {5.9604644775390625e-08, 0x0001, 0x3380},
        {2.98023223876953125e-08, 0x0000, 0x3300},
        {0.333251953125, 0x3555, 0x3eab},
        {1.00390625, 0x3c04, 0x3f80},
        {1.01171875, 0x3c0c, 0x3f82},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint16_t half, brain;
        clab_element_store(CLAB_F16, known[i].value, &half, 0);
        clab_element_store(CLAB_BF16, known[i].value, &brain, 0);
        assert_int_equal(half, known[i].f16);
        assert_int_equal(brain, known[i].bf16);
    }
    uint16_t bits;
    clab_element_store(CLAB_F16, (long double)INFINITY, &bits, 0);
    assert_int_equal(bits, 0x7c00);
    clab_element_store(CLAB_F16, (long double)NAN, &bits, 0);
    assert_true((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0);
}

static void every_f16_survives_a_round_trip(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= 0xffff; bits++) {
        uint16_t in = (uint16_t)bits, out;
        long double value = clab_element_load(CLAB_F16, &in, 0);
        if (isnan(value))
            continue;
        clab_element_store(CLAB_F16, value, &out, 0);
        assert_int_equal(in, out);
    }
}

static void integers_wrap(void **state)
{
    (void)state;
    uint8_t u8;
    int32_t s32;
    uint64_t u64;
    clab_element_store(CLAB_U8, 257, &u8, 0);
    assert_int_equal(u8, 1);
    clab_element_store(CLAB_S32, 4294967295.0L, &s32, 0);
    assert_int_equal(s32, -1);
    clab_element_store(CLAB_U64, 18446744073709551615.0L, &u64, 0);
    assert_true(u64 == UINT64_MAX);
    clab_element_store(CLAB_U64, -1, &u64, 0);
    assert_true(u64 == UINT64_MAX);
}

static void closeness(void **state)
{
    (void)state;
    assert_true(clab_close(1, 1, 0, 0));
    assert_false(clab_close(1, 1.0000001L, 0, 0));
    assert_true(clab_close(1, 1.0000001L, 0, 1e-6));
    assert_true(clab_close(5, 6, 1, 0));
    assert_false(clab_close(5, 6.5L, 1, 0));
    assert_true(clab_close((long double)NAN, (long double)NAN, 0, 0));
    assert_false(clab_close((long double)NAN, 1, 1e30, 0));
    assert_false(clab_close(1, (long double)NAN, 1e30, 0));
    assert_true(clab_close((long double)INFINITY, (long double)INFINITY, 0, 0));
    assert_false(clab_close(1e30L, (long double)INFINITY, 1e30, 1));
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    struct clab_fill fill;
    struct clab_error error = {0};
    json_t *bad = json_pack("{s:s}", "kind", "twos"),
           *good = json_pack("{s:s,s:i}", "kind", "bits", "seed", 9);
    assert_int_equal(clab_fill_from_json(bad, &fill, &error), CLAB_EXPERIMENT);
    assert_non_null(strstr(error.message, "twos"));
    assert_int_equal(clab_fill_from_json(good, &fill, &error), CLAB_OK);
    assert_int_equal(fill.seed, 9);
    assert_int_equal(clab_element_get("f32"), CLAB_F32);
    assert_int_equal(clab_element_get("f33"), CLAB_ELEMENT_COUNT);
    json_decref(bad);
    json_decref(good);
    clab_error_clear(&error);
}

static void values_are_stored_as_listed(void **state)
{
    (void)state;
    json_t *json = json_loads("{\"kind\":\"values\",\"values\":[3,-1,2.5,9007199254740993]}", 0, NULL);
    json_t *empty = json_loads("{\"kind\":\"values\",\"values\":[]}", 0, NULL);
    struct clab_fill fill;
    struct clab_error error = {0};
    assert_int_equal(clab_fill_from_json(json, &fill, &error), CLAB_OK);
    int64_t whole[4], part[2];
    float single[4];
    clab_fill_store(&fill, CLAB_S64, 0, 4, whole);
    assert_true(whole[0] == 3 && whole[1] == -1 && whole[2] == 2 && whole[3] == INT64_C(9007199254740993));
    clab_fill_store(&fill, CLAB_S64, 2, 2, part);
    assert_memory_equal(part, whole + 2, sizeof part);
    clab_fill_store(&fill, CLAB_F32, 0, 4, single);
    assert_true(single[1] == -1.0f && single[2] == 2.5f);
    assert_true(clab_fill_sum(&fill, CLAB_F32, 3) == 4.5L);
    clab_fill_store(&fill, CLAB_S64, 3, 2, part); /* beyond the list */
    assert_true(part[1] == 0);
    assert_int_equal(clab_fill_from_json(empty, &fill, &error), CLAB_EXPERIMENT);
    json_decref(json);
    json_decref(empty);
    clab_error_clear(&error);
}

/* 64-bit integers from a plan or a command line, and what JSON has no numbers for. */
static void values_arrive_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum clab_element element;
        uint64_t bits;
    } known[] = {
        {"{\"kind\":\"value\",\"value\":-1}", CLAB_U64, UINT64_MAX},
        {"{\"kind\":\"value\",\"value\":9007199254740993}", CLAB_S64, UINT64_C(9007199254740993)},
        {"{\"kind\":\"value\",\"value\":9223372036854775807}", CLAB_U64, INT64_MAX},
        {"{\"kind\":\"value\",\"value\":-9223372036854775807}", CLAB_S64, UINT64_C(0x8000000000000001)},
        {"{\"kind\":\"value\",\"value\":-0.0}", CLAB_F64, UINT64_C(0x8000000000000000)},
        {"{\"kind\":\"value\",\"value\":\"inf\"}", CLAB_F64, UINT64_C(0x7ff0000000000000)},
        {"{\"kind\":\"value\",\"value\":\"-inf\"}", CLAB_F64, UINT64_C(0xfff0000000000000)},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct clab_fill fill;
        uint64_t out[2] = {0};
        json_t *object = json_loads(known[i].json, 0, NULL);
        assert_int_equal(clab_fill_from_json(object, &fill, NULL), CLAB_OK);
        clab_fill_store(&fill, known[i].element, 0, 2, out);
        assert_true(out[0] == known[i].bits && out[1] == known[i].bits);
        json_decref(object);
    }
    json_t *nan = json_string("nan"), *other = json_string("seven");
    assert_true(isnan(clab_json_number(nan)));
    assert_true(clab_json_number(other) == 0);
    json_decref(nan);
    json_decref(other);
}

/* Constants in messages: whole numbers in full, others to nine digits. */
static void texts_of_constants(void **state)
{
    (void)state;
    static const struct {
        long double value;
        const char *text;
    } rows[] = {{2143289344.0L, "2143289344"},
                {18446744073709551615.0L, "18446744073709551615"},
                {-7.0L, "-7"},
                {0.1L, "0.1"},
                {1e30L, "1e+30"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct clab_fill fill = {.kind = CLAB_FILL_VALUE, .value = rows[i].value};
        char text[64];
        assert_string_equal(clab_fill_text(&fill, text, sizeof text), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_agree),
        cmocka_unit_test(bits_are_zeros_and_ones_and_depend_on_the_seed),
        cmocka_unit_test(small_floats_round_to_nearest_even),
        cmocka_unit_test(every_f16_survives_a_round_trip),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(closeness),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(values_are_stored_as_listed),
        cmocka_unit_test(values_arrive_exactly),
        cmocka_unit_test(texts_of_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
