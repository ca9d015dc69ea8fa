/* Accuses host/base/error.c: status lists, truncation, and the words that a person reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static void test_status_list(void **state)
{
    (void)state;
    assert_string_equal(clab_status_text(CLAB_OK), "ok");
    assert_int_equal(clab_status_exit(CLAB_OK), 0);
    assert_int_equal(clab_status_exit(CLAB_WRONG), 1);
    assert_int_equal(clab_status_exit(CLAB_EXPERIMENT), 2);
    assert_int_equal(clab_status_exit(CLAB_WAIVED), 3);
    assert_int_equal(clab_status_exit(CLAB_UNSUPPORTED), 4);
    assert_int_equal(clab_status_exit(CLAB_TIMEOUT), 5);
    assert_int_equal(clab_status_exit(CLAB_OUTPUT), 6);
    assert_int_equal(clab_status_exit(CLAB_INTERRUPTED), 130);
    for (int status = 0; status < CLAB_STATUS_COUNT; status++)
        assert_true(clab_status_text((clab_status)status)[0] != 0);
    assert_non_null(clab_status_text(CLAB_STATUS_COUNT));
    assert_int_equal(clab_status_exit(CLAB_STATUS_COUNT), 6);
}

static void test_worst_exit_wins(void **state)
{
    (void)state;
    static const int worst_first[] = {130, 1, 6, 5, 4, 3, 2, 0};
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            int wanted = worst_first[i < j ? i : j];
            assert_int_equal(clab_exit_worse(worst_first[i], worst_first[j]), wanted);
        }
    }
    assert_int_equal(clab_exit_worse(0, 77), 77);
    assert_int_equal(clab_exit_worse(77, 1), 1);
}

static void assert_format(const struct clab_error *error, const char *wanted)
{
    char *text = clab_error_format(error);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_format_shows_only_what_is_known(void **state)
{
    (void)state;
    struct clab_error error = {0};
    assert_int_equal(clab_error_set(&error, CLAB_NO_DEVICE, "no device %s", "cuda:7"), CLAB_NO_DEVICE);
    assert_format(&error, "no device cuda:7");
    clab_error_at(&error, "a.lua", 0, 0);
    assert_format(&error, "a.lua: no device cuda:7");
    clab_error_at(&error, "a.lua", 3, 0);
    assert_format(&error, "a.lua:3: no device cuda:7");
    error.where.has_lane = true;
    assert_format(&error, "a.lua:3: no device cuda:7\n  at: lane 0");
    error.where.has_lane = false;
    error.has_address = true;
    error.address = 0x40;
    assert_format(&error, "a.lua:3: no device cuda:7\n  at: address 0x40");
    clab_error_clear(&error);
    error.status = CLAB_NO_MEMORY;
    assert_format(&error, "out of memory");
}

static void test_format_shows_all(void **state)
{
    (void)state;
    struct clab_error error = {0};
    clab_error_set(&error, CLAB_FAULT, "address is not aligned to 4 bytes");
    clab_error_at(&error, "k.ptx", 12, 5);
    strcpy(error.source_line, "\tld.shared.u32 %r1, [%r2];\n");
    strcpy(error.kernel, "reduce");
    strcpy(error.instruction, "ld.shared.u32 %r1, [%r2]");
    strcpy(error.space, "shared");
    error.has_address = true;
    error.address = 0x12;
    error.where = (struct clab_where){.has_cta = true,
                                      .has_warp = true,
                                      .has_lane = true,
                                      .cluster = {1, 0, 0},
                                      .cta = {3, 0, 2},
                                      .warp = 7,
                                      .lane = 31};
    clab_error_native(&error, "cuModuleLoadData", 218, "CUDA_ERROR_INVALID_PTX");
    clab_error_remedy(&error, "align it to %d", 4);
    clab_error_log(&error, "\n first\n\nsecond \n\n", SIZE_MAX);
    assert_format(&error, "k.ptx:12:5: address is not aligned to 4 bytes\n"
                          "  \tld.shared.u32 %r1, [%r2];\n"
                          "  \t   ^\n"
                          "  in: kernel reduce, instruction `ld.shared.u32 %r1, [%r2]`\n"
                          "  at: cluster (1,0,0) cta (3,0,2) warp 7 lane 31, shared address 0x12\n"
                          "  driver: cuModuleLoadData returned CUDA_ERROR_INVALID_PTX (218)\n"
                          "  try: align it to 4\n"
                          "  log:\n"
                          "    first\n"
                          "\n"
                          "    second");
    clab_error_clear(&error);
    assert_null(error.log);
    assert_int_equal(error.status, CLAB_OK);
}

static void test_caret_stays_within_the_line(void **state)
{
    (void)state;
    struct clab_error error = {0};
    clab_error_set(&error, CLAB_PTX_SYNTAX, "m");
    clab_error_at(&error, "f", 1, 4);
    strcpy(error.source_line, "abc");
    assert_format(&error, "f:1:4: m\n  abc\n     ^"); /* just behind the end */
    clab_error_at(&error, "f", 1, 5);
    assert_format(&error, "f:1:5: m\n  abc");
    strcpy(error.source_line, "\xc3\xa4;"); /* two bytes, one column on the screen */
    clab_error_at(&error, "f", 1, 3);
    assert_format(&error, "f:1:3: m\n  \xc3\xa4;\n   ^");
}

static void test_long_text_is_cut_at_a_character(void **state)
{
    (void)state;
    struct clab_error error = {0};
    char text[2048];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    clab_error_set(&error, CLAB_INTERNAL, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    /* every way in which a two- or four-byte character can straddle the limit */
    for (size_t back = 1; back <= 4; back++) {
        size_t at = sizeof error.message - 1 - back;
        memset(text, 'x', sizeof text - 1);
        memcpy(text + at, "\xf0\x9f\x98\x80", 4);
        clab_error_set(&error, CLAB_INTERNAL, "%s", text);
        assert_int_equal(strlen(error.message), back == 4 ? sizeof error.message - 1 : at);
        memset(text, 'x', sizeof text - 1);
        memcpy(text + at, "\xc3\xa4", 2);
        clab_error_set(&error, CLAB_INTERNAL, "%s", text);
        assert_int_equal(strlen(error.message), back >= 2 ? sizeof error.message - 1 : at);
    }
    memset(text, 'x', sizeof text - 1);
    clab_error_at(&error, text, 1, 1);
    assert_int_equal(strlen(error.file), sizeof error.file - 1);
    clab_error_native(&error, text, 1, text);
    assert_int_equal(strlen(error.native_call), sizeof error.native_call - 1);
    clab_error_context(&error, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void test_set_may_use_the_record_it_replaces(void **state)
{
    (void)state;
    struct clab_error error = {0};
    clab_error_set(&error, CLAB_COMPILE, "inner");
    clab_error_log(&error, "a log", 5);
    clab_error_set(&error, CLAB_WORKER, "outer: %s, %s", error.message, error.log);
    assert_string_equal(error.message, "outer: inner, a log");
    assert_null(error.log);
    assert_int_equal(clab_error_context(&error, "row %d", 3), CLAB_WORKER);
    assert_string_equal(error.message, "row 3: outer: inner, a log");
}

static void test_log_and_copy_own_their_text(void **state)
{
    (void)state;
    struct clab_error from = {0}, to = {0};
    clab_error_set(&from, CLAB_COMPILE, "m");
    char log[] = "some log and more";
    clab_error_log(&from, log, 8);
    log[0] = 'X';
    assert_string_equal(from.log, "some log");
    clab_error_set(&to, CLAB_INTERNAL, "old");
    clab_error_log(&to, "old log", SIZE_MAX);
    clab_error_copy(&to, &from);
    clab_error_copy(&to, &to);
    clab_error_clear(&from);
    assert_string_equal(to.log, "some log");
    assert_int_equal(to.status, CLAB_COMPILE);
    clab_error_log(&to, " \n", SIZE_MAX);
    assert_null(to.log);
    clab_error_log(&to, NULL, SIZE_MAX);
    clab_error_clear(&to);
}

static void test_no_record_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(clab_error_set(NULL, CLAB_FAULT, "%d", 1), CLAB_FAULT);
    clab_error_at(NULL, "f", 1, 1);
    clab_error_remedy(NULL, "r");
    clab_error_native(NULL, "c", 1, "n");
    clab_error_log(NULL, "l", 1);
    clab_error_context(NULL, "c");
    clab_error_clear(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_list),
        cmocka_unit_test(test_worst_exit_wins),
        cmocka_unit_test(test_format_shows_only_what_is_known),
        cmocka_unit_test(test_format_shows_all),
        cmocka_unit_test(test_caret_stays_within_the_line),
        cmocka_unit_test(test_long_text_is_cut_at_a_character),
        cmocka_unit_test(test_set_may_use_the_record_it_replaces),
        cmocka_unit_test(test_log_and_copy_own_their_text),
        cmocka_unit_test(test_no_record_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
