/* nvJitLink in this process: PTX to cubin, its errors, and the table of forward compatibility against the
 * assembler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "compile/target.h"
#include "scratch.h"

static const struct clab_toolkit *toolkit;

static clab_status link_text(const char *text, const char *arch, const char *entry, struct clab_image *image,
                             struct clab_error *error)
{
    struct clab_compile_request request = {
        .source_path = "k.ptx", .arch = arch, .want = CLAB_IMAGE_CUBIN, .entry = entry};
    return clab_link_ptx(toolkit, &request, text, strlen(text), image, error);
}

static const char good[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 p)\n{\n.shared .b8 s[512];\n.reg .b64 %a;\n.reg .b32 %v;\n"
    "ld.param.u64 %a, [p];\nld.shared.b32 %v, [s];\nst.global.b32 [%a], %v;\nret;\n}\n";

static void test_ptx_becomes_a_cubin(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(link_text(good, "sm_100", "k", &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_CUBIN);
    assert_string_equal(image.arch, "sm_100");
    assert_string_equal(image.lowered, "k");
    assert_string_equal(image.ptx, good);
    assert_true(image.resources.known);
    assert_true(image.resources.static_smem_bytes >= 512);
    clab_image_free(&image);
    assert_int_equal(link_text(good, "sm_90", "other", &image, &error), CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "it has: k"));
    clab_error_clear(&error);
}

static void test_errors_name_the_line(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_not_equal(
        link_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\nfrobnicate.u32 %r1;\n}\n",
                  "sm_90", "k", &image, &error),
        CLAB_OK);
    assert_string_equal(error.file, "k.ptx");
    assert_int_equal(error.line, 5);
    assert_string_equal(error.source_line, "frobnicate.u32 %r1;");
    assert_non_null(strstr(error.message, "frobnicate"));
    assert_int_equal(error.column, 1);
    assert_null(error.log); /* which says no more */
    assert_string_equal(error.native_call, "nvJitLinkAddData");
    assert_int_equal(link_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k( {\nret;\n}\n",
                               "sm_90", "k", &image, &error),
                     CLAB_PTX_SYNTAX);
    assert_int_equal(error.line, 4);
    assert_int_equal(error.column, 11);
    assert_non_null(strstr(error.message, "expected"));
    assert_int_not_equal(
        link_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\nfrobnicate.u32 %r1;\n"
                  "grobnicate.u32 %r1;\n}\n",
                  "sm_90", "k", &image, &error),
        CLAB_OK);
    assert_int_equal(error.line, 5);
    assert_non_null(strstr(error.log, "line 6"));
    assert_int_equal(link_text(".version 8.6\n.target sm_100\n.address_size 64\n.entry k() { ret; }\n",
                               "sm_90", "k", &image, &error),
                     CLAB_PTX_TARGET);
    assert_int_equal(link_text(".version 99.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n",
                               "sm_90", "k", &image, &error),
                     CLAB_PTX_TARGET);
    clab_error_clear(&error);
}

static void test_the_compatibility_rule_is_the_assemblers(void **state)
{
    (void)state;
    for (size_t i = 0; clab_target_at(i) != NULL; i++)
        for (size_t j = 0; clab_target_at(j) != NULL; j++) {
            const struct clab_target *made_for = clab_target_at(i), *chip = clab_target_at(j);
            struct clab_image image = {0};
            struct clab_error error = {0};
            char text[256];
            snprintf(text, sizeof text, ".version %d.%d\n.target %s\n.address_size 64\n.entry k() { ret; }\n",
                     made_for->least_ptx / 10, made_for->least_ptx % 10, made_for->name);
            bool taken = link_text(text, chip->name, "k", &image, &error) == CLAB_OK;
            if (taken != clab_target_ptx_runs(made_for, chip))
                print_error("%s on %s: assembler %d, table %d: %s\n", made_for->name, chip->name, taken,
                            !taken, error.message);
            assert_int_equal(taken, clab_target_ptx_runs(made_for, chip));
            clab_image_free(&image);
            clab_error_clear(&error);
        }
}

static void test_least_versions_are_the_assemblers(void **state)
{
    (void)state;
    for (size_t i = 0; clab_target_at(i) != NULL; i++) {
        const struct clab_target *target = clab_target_at(i);
        struct clab_image image = {0};
        struct clab_error error = {0};
        char text[256];
        /* The version before it: 9.0 follows 8.8, 8.0 follows 7.8. */
        int before = target->least_ptx % 10 == 0 ? target->least_ptx - 2 : target->least_ptx - 1;
        snprintf(text, sizeof text, ".version %d.%d\n.target %s\n.address_size 64\n.entry k() { ret; }\n",
                 before / 10, before % 10, target->name);
        assert_int_not_equal(link_text(text, target->name, "k", &image, &error), CLAB_OK);
        clab_image_free(&image);
        clab_error_clear(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx_becomes_a_cubin),
        cmocka_unit_test(test_errors_name_the_line),
        cmocka_unit_test(test_the_compatibility_rule_is_the_assemblers),
        cmocka_unit_test(test_least_versions_are_the_assemblers),
    };
    toolkit = toolkit_or_skip(CLAB_PART_NVJITLINK);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
