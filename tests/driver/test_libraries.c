/* The loaders of NVRTC, nvJitLink and NVML: a missing library is a clear error; NVML's texts. That the real
   ones load is part of tests/compile, which needs them anyway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/nvjitlink.h"
#include "driver/nvml.h"
#include "driver/nvrtc.h"

static void test_missing_libraries_are_named(void **state)
{
    (void)state;
    struct clab_error error = {0};
    struct clab_nvrtc *nvrtc = malloc(sizeof *nvrtc);
    struct clab_nvjitlink *link = malloc(sizeof *link);
    assert_int_equal(clab_nvrtc_load("/nonexistent/libnvrtc.so.13", nvrtc, &error), CLAB_NO_TOOLKIT);
    assert_non_null(strstr(error.message, "/nonexistent/libnvrtc.so.13"));
    assert_non_null(strstr(error.remedy, "tools/setup"));
    assert_int_equal(clab_nvjitlink_load("/nonexistent/libnvJitLink.so.13", link, &error), CLAB_NO_TOOLKIT);
    assert_non_null(strstr(error.message, "/nonexistent/libnvJitLink.so.13"));
    clab_error_clear(&error);
    free(nvrtc);
    free(link);
}

static void test_a_library_of_another_kind_is_refused(void **state)
{
    (void)state;
    struct clab_error error = {0};
    struct clab_nvrtc *nvrtc = malloc(sizeof *nvrtc);
    assert_int_equal(clab_nvrtc_load("libm.so.6", nvrtc, &error), CLAB_NO_TOOLKIT);
    assert_non_null(strstr(error.message, "has no nvrtcVersion"));
    clab_error_clear(&error);
    free(nvrtc);
}

static void test_throttle_reasons_as_text(void **state)
{
    (void)state;
    char text[64], tiny[6];
    clab_nvml_reason_text(0, text, sizeof text);
    assert_string_equal(text, "");
    clab_nvml_reason_text(CLAB_NVML_REASON_GPU_IDLE | CLAB_NVML_REASON_APPLICATIONS_CLOCKS, text,
                          sizeof text);
    assert_string_equal(text, "");
    clab_nvml_reason_text(CLAB_NVML_REASON_SW_POWER_CAP | CLAB_NVML_REASON_HW_THERMAL, text, sizeof text);
    assert_string_equal(text, "sw power cap, hw thermal");
    clab_nvml_reason_text(CLAB_NVML_REASON_SW_POWER_CAP | CLAB_NVML_REASON_HW_THERMAL, tiny, sizeof tiny);
    assert_string_equal(tiny, "sw po");
}

static void test_uuid_as_nvml_spells_it(void **state)
{
    (void)state;
    const unsigned char uuid[16] = {0x9a, 0x3c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xff};
    char text[41];
    clab_nvml_uuid_text(uuid, text);
    assert_string_equal(text, "GPU-9a3c0102-0304-0506-0708-090a0b0c0dff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_libraries_are_named),
        cmocka_unit_test(test_a_library_of_another_kind_is_refused),
        cmocka_unit_test(test_throttle_reasons_as_text),
        cmocka_unit_test(test_uuid_as_nvml_spells_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
