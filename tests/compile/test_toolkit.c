/* Finding the CUDA parts, in a toolkit made of empty files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compile/toolkit.h"
#include "scratch.h"

static int set_up(void **state)
{
    (void)state;
    setenv("CLUSTERLAB_TOOLKIT", scratch_make(), 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("CLUSTERLAB_TOOLKIT");
    scratch_remove();
    return 0;
}

static void test_an_empty_place_has_nothing_and_says_how_to_get_it(void **state)
{
    (void)state;
    struct clab_toolkit toolkit;
    char version[64];
    clab_toolkit_find(&toolkit);
    for (int id = 0; id < CLAB_PART_COUNT; id++) {
        assert_false(toolkit.parts[id].found);
        assert_true(strlen(toolkit.parts[id].remedy) > 0);
        assert_int_equal(clab_toolkit_version(&toolkit, (enum clab_part_id)id, version, sizeof version, NULL),
                         CLAB_OK);
        assert_string_equal(version, "");
    }
}

static void test_parts_are_found_one_by_one(void **state)
{
    (void)state;
    struct clab_toolkit toolkit;
    scratch_write("lib/libnvrtc.so.12", "");
    scratch_write("lib/libnvrtc.so.13", "");
    scratch_write("include/cooperative_groups.h", "");
    scratch_write("include/cuda.h", "#define CUDA_VERSION 13000\n");
    scratch_write("include/cccl/cuda/std/version", "");
    scratch_write("include/cccl/cuda/std/__cccl/version.h", "#define CCCL_VERSION 3000001\n");
    const char *script =
        scratch_write("bin/nvdisasm", "#!/bin/sh\necho 'nvdisasm: release 13.0, V13.0.85'\n");
    scratch_write("bin/cuobjdump", "not executable");
    chmod(script, 0755);
    clab_toolkit_find(&toolkit);
    assert_string_equal(toolkit.parts[CLAB_PART_NVRTC].path, scratch_path("lib/libnvrtc.so.13"));
    assert_string_equal(toolkit.parts[CLAB_PART_NVRTC].origin, "$CLUSTERLAB_TOOLKIT");
    assert_false(toolkit.parts[CLAB_PART_NVJITLINK].found);
    assert_string_equal(toolkit.parts[CLAB_PART_CUDA_INCLUDE].path, scratch_path("include"));
    assert_string_equal(toolkit.parts[CLAB_PART_CCCL_INCLUDE].path, scratch_path("include/cccl"));
    assert_true(toolkit.parts[CLAB_PART_NVDISASM].found);
    assert_false(toolkit.parts[CLAB_PART_CUOBJDUMP].found);
    char version[64];
    assert_int_equal(clab_toolkit_version(&toolkit, CLAB_PART_CUDA_INCLUDE, version, sizeof version, NULL),
                     CLAB_OK);
    assert_string_equal(version, "13.0");
    assert_int_equal(clab_toolkit_version(&toolkit, CLAB_PART_CCCL_INCLUDE, version, sizeof version, NULL),
                     CLAB_OK);
    assert_string_equal(version, "3.0.1");
    assert_int_equal(clab_toolkit_version(&toolkit, CLAB_PART_NVDISASM, version, sizeof version, NULL),
                     CLAB_OK);
    assert_string_equal(version, "13.0.85");
    struct clab_error error = {0}; /* an empty file is no library */
    assert_int_equal(clab_toolkit_version(&toolkit, CLAB_PART_NVRTC, version, sizeof version, &error),
                     CLAB_NO_TOOLKIT);
    assert_non_null(strstr(error.message, "libnvrtc.so.13"));
    clab_error_clear(&error);
    assert_string_equal(version, "");
}

static void test_the_identity_follows_the_file(void **state)
{
    (void)state;
    struct clab_toolkit toolkit;
    char before[4400], after[4400];
    scratch_write("lib64/libnvrtc.so.13", "");
    clab_toolkit_find(&toolkit);
    clab_toolkit_identity(&toolkit, CLAB_PART_NVRTC, before, sizeof before);
    clab_toolkit_identity(&toolkit, CLAB_PART_NVRTC, after, sizeof after);
    assert_string_equal(before, after);
    scratch_write("lib64/libnvrtc.so.13", "newer");
    clab_toolkit_identity(&toolkit, CLAB_PART_NVRTC, after, sizeof after);
    assert_string_not_equal(before, after);
    clab_toolkit_identity(&toolkit, CLAB_PART_NVJITLINK, after, sizeof after);
    assert_string_equal(after, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_place_has_nothing_and_says_how_to_get_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_parts_are_found_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_identity_follows_the_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
