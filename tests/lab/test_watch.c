/* What NVML says beside a measurement (host/lab/watch.c), against fake_nvml.c, which LD_LIBRARY_PATH leads
   to. Everything is unknown, and nothing fails, where NVML is missing or does not know the device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/watch.h"

static const unsigned char gpu[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void reasons_add_up(void **state)
{
    (void)state;
    char text[64];
    struct clab_watch *watch = clab_watch_start();
    assert_false(clab_watch_look(watch)); /* no device yet */
    assert_true(clab_watch_device(watch, gpu));
    assert_true(clab_watch_look(watch));
    assert_string_equal(clab_watch_text(watch, text, sizeof text), ""); /* idle is no throttling */
    assert_true(clab_watch_look(watch));
    assert_string_equal(clab_watch_text(watch, text, sizeof text), "sw power cap");
    clab_watch_clear(watch);
    assert_string_equal(clab_watch_text(watch, text, sizeof text), "");
    assert_int_equal(clab_watch_others(watch), 2); /* one of the three is ours */
    clab_watch_stop(watch);
}

static void a_mig_instance_is_found_by_its_own_name(void **state)
{
    (void)state;
    unsigned char instance[16];
    memcpy(instance, gpu, sizeof instance);
    instance[0] = 0xff;
    struct clab_watch *watch = clab_watch_start();
    assert_true(clab_watch_device(watch, instance));
    clab_watch_stop(watch);
}

static void nothing_is_known_of_another_device(void **state)
{
    (void)state;
    char text[64];
    const unsigned char other[16] = {42};
    struct clab_watch *watch = clab_watch_start();
    assert_false(clab_watch_device(watch, other));
    assert_false(clab_watch_look(watch));
    assert_int_equal(clab_watch_others(watch), -1);
    assert_string_equal(clab_watch_text(watch, text, sizeof text), "");
    clab_watch_stop(watch);
}

static void an_nvml_that_does_not_start_or_tell_is_unknown(void **state)
{
    (void)state;
    setenv("FAKE_NVML", "no-init", 1);
    struct clab_watch *watch = clab_watch_start();
    assert_false(clab_watch_device(watch, gpu));
    assert_int_equal(clab_watch_others(watch), -1);
    clab_watch_stop(watch);
    setenv("FAKE_NVML", "no-reasons", 1);
    watch = clab_watch_start();
    assert_true(clab_watch_device(watch, gpu));
    assert_false(clab_watch_look(watch));
    clab_watch_stop(watch);
    unsetenv("FAKE_NVML");
}

static void no_watch_at_all(void **state)
{
    (void)state;
    char text[64];
    assert_false(clab_watch_device(NULL, gpu));
    assert_false(clab_watch_look(NULL));
    assert_int_equal(clab_watch_others(NULL), -1);
    assert_string_equal(clab_watch_text(NULL, text, sizeof text), "");
    clab_watch_clear(NULL);
    clab_watch_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_add_up),
        cmocka_unit_test(a_mig_instance_is_found_by_its_own_name),
        cmocka_unit_test(nothing_is_known_of_another_device),
        cmocka_unit_test(an_nvml_that_does_not_start_or_tell_is_unknown),
        cmocka_unit_test(no_watch_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
