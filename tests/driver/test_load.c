/* Loading libcuda. A process keeps the first one that it loads, so every case runs in a child of its own. */
#include "driver/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a child found out; fixed size, so that it fits a pipe. */
struct report {
    clab_status first, second;
    struct clab_error error; /* of the last call that failed; its log is not looked at */
    int version;
    bool has_channel, emulated, has_launch, has_optional, same;
};

/* Loads `first`, then `second` ("" : not at all; NULL: the system's) in a child. */
static struct report load_in_child(const char *first, const char *second)
{
    int ends[2];
    struct report report = {0};
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct clab_driver *driver = NULL, *again = NULL;
        report.first = clab_driver_load(first, &driver, &report.error);
        if (driver != NULL) {
            report.version = driver->version;
            report.has_channel = driver->channel != NULL;
            report.emulated = driver->channel != NULL && driver->channel->emulated;
            report.has_launch = driver->cuLaunchKernelEx != NULL;
            report.has_optional = driver->cuGraphCreate != NULL;
        }
        if (second == NULL || second[0] != '\0') {
            report.second = clab_driver_load(second, &again, &report.error);
            report.same = again == driver;
        }
        ssize_t wrote = write(ends[1], &report, sizeof report);
        _exit(wrote == (ssize_t)sizeof report ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &report, sizeof report);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(got, sizeof report);
    assert_int_equal(status, 0);
    return report;
}

static void test_a_good_driver_loads(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_GOOD, "");
    assert_int_equal(report.first, CLAB_OK);
    assert_int_equal(report.version, 12080);
    assert_true(report.has_launch);
    assert_false(report.has_optional); /* missing optional symbols are NULL, and loading goes on */
    assert_false(report.has_channel);
}

static void test_only_the_channel_makes_a_driver_emulated(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_STANDIN, "");
    assert_int_equal(report.first, CLAB_OK);
    assert_true(report.has_channel);
    assert_true(report.emulated);
}

static void test_a_channel_of_another_build_is_refused(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_FOREIGN, "");
    assert_int_equal(report.first, CLAB_NO_DEVICE);
    assert_non_null(strstr(report.error.message, "of another clusterlab build"));
}

static void test_an_old_driver_is_refused_with_its_version(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_OLD, "");
    assert_int_equal(report.first, CLAB_NO_DEVICE);
    assert_non_null(strstr(report.error.message, "CUDA 11.8"));
    assert_non_null(strstr(report.error.message, "fake_old"));
}

static void test_a_missing_required_symbol_is_named(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_INCOMPLETE, "");
    assert_int_equal(report.first, CLAB_NO_DEVICE);
    assert_non_null(strstr(report.error.message, "cuOccupancyMaxPotentialClusterSize"));
    assert_non_null(strstr(report.error.message, "fake_incomplete"));
    assert_non_null(strstr(report.error.message, "11.7"));
}

static void test_no_library_is_no_device(void **state)
{
    (void)state;
    struct report report = load_in_child("/nonexistent/libcuda.so.1", "");
    assert_int_equal(report.first, CLAB_NO_DEVICE);
    assert_non_null(strstr(report.error.message, "/nonexistent/libcuda.so.1"));
}

static void test_one_libcuda_per_process(void **state)
{
    (void)state;
    struct report report = load_in_child(FAKE_GOOD, FAKE_STANDIN);
    assert_int_equal(report.first, CLAB_OK);
    assert_int_equal(report.second, CLAB_INTERNAL);
    assert_non_null(strstr(report.error.message, "fake_good"));
    assert_non_null(strstr(report.error.message, "fake_standin"));
    report = load_in_child(FAKE_GOOD, NULL);
    assert_int_equal(report.second, CLAB_INTERNAL);
    report = load_in_child(FAKE_GOOD, FAKE_GOOD);
    assert_int_equal(report.second, CLAB_OK);
    assert_true(report.same);
}

static void test_a_failed_load_does_not_take_the_place(void **state)
{
    (void)state;
    struct report report = load_in_child("/nonexistent/libcuda.so.1", FAKE_STANDIN);
    assert_int_equal(report.first, CLAB_NO_DEVICE);
    assert_int_equal(report.second, CLAB_OK);
}

static void test_the_emulator_is_found_by_its_variable(void **state)
{
    (void)state;
    char path[4096];
    struct clab_error error = {0};
    setenv("CLUSTERLAB_EMU_LIBRARY", FAKE_STANDIN, 1);
    assert_int_equal(clab_driver_emulator_path(path, sizeof path, &error), CLAB_OK);
    assert_non_null(strstr(path, "fake_standin"));
    setenv("CLUSTERLAB_EMU_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    assert_int_equal(clab_driver_emulator_path(path, sizeof path, &error), CLAB_NO_DEVICE);
    assert_non_null(strstr(error.message, "CLUSTERLAB_EMU_LIBRARY names /nonexistent/libcuda.so.1"));
    unsetenv("CLUSTERLAB_EMU_LIBRARY");
    clab_error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_driver_loads),
        cmocka_unit_test(test_only_the_channel_makes_a_driver_emulated),
        cmocka_unit_test(test_a_channel_of_another_build_is_refused),
        cmocka_unit_test(test_an_old_driver_is_refused_with_its_version),
        cmocka_unit_test(test_a_missing_required_symbol_is_named),
        cmocka_unit_test(test_no_library_is_no_device),
        cmocka_unit_test(test_one_libcuda_per_process),
        cmocka_unit_test(test_a_failed_load_does_not_take_the_place),
        cmocka_unit_test(test_the_emulator_is_found_by_its_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
