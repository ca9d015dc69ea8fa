/* The architecture table and the rule of forward compatibility, as ptxas 13.0.88 applied it to every pair.
   The rule is tried against the assembler itself in test_link.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compile/target.h"

static const struct clab_target *target(const char *name)
{
    const struct clab_target *found = clab_target_find(name);
    assert_non_null(found);
    return found;
}

static void test_spellings(void **state)
{
    (void)state;
    assert_string_equal(target("sm_90a")->name, "sm_90a");
    assert_string_equal(target("compute_100f")->name, "sm_100f");
    assert_string_equal(target("90")->name, "sm_90");
    assert_string_equal(target("lto_120a")->name, "sm_120a");
    assert_string_equal(target("sm_101a")->name, "sm_110a");
    assert_null(clab_target_find("sm_90f"));
    assert_null(clab_target_find("sm_"));
    assert_null(clab_target_find(""));
    assert_null(clab_target_find("sm_90aa"));
    assert_null(clab_target_find("sm_1"));
}

static void test_an_unknown_name_gets_the_list(void **state)
{
    (void)state;
    struct clab_error error = {0};
    const struct clab_target *found;
    assert_int_equal(clab_target_parse("sm_90b", &found, &error), CLAB_USAGE);
    assert_non_null(strstr(error.message, "'sm_90b'"));
    assert_non_null(strstr(error.message, "did you mean sm_90"));
    assert_non_null(strstr(error.remedy, "sm_121a"));
    assert_int_equal(clab_target_parse("sm_90", &found, &error), CLAB_OK);
    clab_error_clear(&error);
}

static void test_seventeen_targets_have_clusters(void **state)
{
    (void)state;
    size_t count = 0;
    while (clab_target_at(count) != NULL)
        assert_true(clab_target_at(count++)->has_clusters);
    assert_int_equal(count, 17);
    assert_false(target("sm_89")->has_clusters);
}

/* Which chips of the 17 take PTX for a target, in the table's order. */
static void expect_chips(const char *image, const char *chips)
{
    char got[512] = "";
    for (size_t i = 0; clab_target_at(i) != NULL; i++)
        if (clab_target_ptx_runs(target(image), clab_target_at(i))) {
            strcat(got, got[0] != '\0' ? " " : "");
            strcat(got, clab_target_at(i)->name + 3);
        }
    assert_string_equal(got, chips);
}

static void test_forward_compatibility_of_ptx(void **state)
{
    (void)state;
    expect_chips("sm_80", "90 90a 100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a");
    expect_chips("sm_90", "90 90a 100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a");
    expect_chips("sm_90a", "90a");
    expect_chips("sm_100", "100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a");
    expect_chips("sm_100f", "100 100f 100a 103 103f 103a");
    expect_chips("sm_103f", "103 103f 103a");
    expect_chips("sm_110f", "110 110f 110a");
    expect_chips("sm_120f", "120 120f 120a 121 121f 121a");
    expect_chips("sm_121f", "121 121f 121a");
    expect_chips("sm_121a", "121a");
}

static void test_cubins_stay_in_their_major_version(void **state)
{
    (void)state;
    assert_true(clab_target_cubin_runs(target("sm_90a"), target("sm_90")));
    assert_true(clab_target_cubin_runs(target("sm_100"), target("sm_103")));
    assert_false(clab_target_cubin_runs(target("sm_103"), target("sm_100")));
    assert_false(clab_target_cubin_runs(target("sm_100a"), target("sm_103")));
    assert_true(clab_target_cubin_runs(target("sm_100f"), target("sm_103")));
    assert_false(clab_target_cubin_runs(target("sm_90"), target("sm_100")));
    assert_false(clab_target_cubin_runs(target("sm_100"), target("sm_110")));
    assert_true(clab_target_cubin_runs(target("sm_120"), target("sm_121")));
}

static void test_a_refusal_says_why_and_what_to_do(void **state)
{
    (void)state;
    struct clab_error error = {0};
    assert_int_equal(clab_target_check(target("sm_90a"), true, target("sm_100"), &error), CLAB_PTX_TARGET);
    assert_string_equal(error.message,
                        "PTX for sm_90a does not run on sm_100: an architecture with the suffix a runs "
                        "on exactly that chip");
    assert_string_equal(error.remedy, "compile it for sm_100 or sm_100a (--arch)");
    assert_int_equal(clab_target_check(target("sm_100"), false, target("sm_90"), &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "later chip"));
    assert_int_equal(clab_target_check(target("sm_90"), true, target("sm_100"), &error), CLAB_OK);
    clab_error_clear(&error);
}

static void test_devices(void **state)
{
    (void)state;
    assert_string_equal(clab_target_of_device(9, 0)->name, "sm_90");
    assert_string_equal(clab_target_of_device(12, 1)->name, "sm_121");
    assert_null(clab_target_of_device(13, 0));
    assert_string_equal(clab_target_exact(target("sm_103"))->name, "sm_103a");
    assert_string_equal(clab_target_exact(target("sm_89"))->name, "sm_89");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_an_unknown_name_gets_the_list),
        cmocka_unit_test(test_seventeen_targets_have_clusters),
        cmocka_unit_test(test_forward_compatibility_of_ptx),
        cmocka_unit_test(test_cubins_stay_in_their_major_version),
        cmocka_unit_test(test_a_refusal_says_why_and_what_to_do),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
