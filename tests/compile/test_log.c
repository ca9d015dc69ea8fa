/* Compiler logs: first error, place, caret, resources. The texts are NVRTC's and nvJitLink's 13.0.88. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/ptxas_log.h"

static const char nvrtc_errors[] =
    "a dir/bad.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n"
    "      int unused;\n          ^\n\n"
    "a dir/bad.cu(4): error: identifier \"undefined_name\" is undefined\n"
    "  \tp[0] = undefined_name + 1;\n"
    "  \t       ^\n\n"
    "1 error detected in the compilation of \"a dir/bad.cu\".\n";

static void test_the_first_nvrtc_error_has_its_place(void **state)
{
    (void)state;
    struct clab_error error = {0};
    assert_true(clab_nvrtc_log_error(nvrtc_errors, &error));
    assert_int_equal(error.status, CLAB_COMPILE);
    assert_string_equal(error.message, "identifier \"undefined_name\" is undefined");
    assert_string_equal(error.file, "a dir/bad.cu");
    assert_int_equal(error.line, 4);
    assert_int_equal(error.column, 9);
    assert_string_equal(error.source_line, "\tp[0] = undefined_name + 1;");
    clab_error_clear(&error);
}

static void test_warnings_are_no_errors(void **state)
{
    (void)state;
    struct clab_error error = {0};
    assert_false(clab_nvrtc_log_error("k.cu(3): warning #177-D: unused\n", &error));
    assert_false(clab_ptxas_log_error("ptxas warning : something\n", "k.ptx", "", &error));
    assert_int_equal(error.status, CLAB_OK);
}

static void test_an_error_number_is_not_part_of_the_message(void **state)
{
    (void)state;
    struct clab_error error = {0};
    assert_true(
        clab_nvrtc_log_error("k.cu(1): catastrophic error: cannot open source file \"x.h\"\n", &error));
    assert_string_equal(error.message, "cannot open source file \"x.h\"");
    assert_true(clab_nvrtc_log_error("k.cu(7): error #20-D: identifier \"q\" is undefined\n", &error));
    assert_string_equal(error.message, "identifier \"q\" is undefined");
    assert_int_equal(error.line, 7);
    clab_error_clear(&error);
}

static void test_a_ptx_error_shows_its_line(void **state)
{
    (void)state;
    struct clab_error error = {0};
    const char *log =
        "ptxas application ptx input, line 2; error   : Unknown symbol 'zz'\nptxas fatal   : Ptx assembly "
        "aborted due to errors\n";
    assert_true(clab_ptxas_log_error(log, "k.ptx", "one\ntwo zz\nthree\n", &error));
    assert_string_equal(error.message, "Unknown symbol 'zz'");
    assert_string_equal(error.file, "k.ptx");
    assert_int_equal(error.line, 2);
    assert_string_equal(error.source_line, "two zz");
    assert_int_equal(error.status, CLAB_COMPILE);
    assert_true(
        clab_ptxas_log_error("ptxas fatal   : SM version specified by .target is higher than default SM "
                             "version assumed\n",
                             "k.ptx", NULL, &error));
    assert_int_equal(error.status, CLAB_PTX_TARGET);
    clab_error_clear(&error);
}

static void test_a_log_says_what_the_error_does_not(void **state)
{
    (void)state;
    struct clab_error error = {0};
    static const char one[] =
        "k.cu(1): error: identifier \"a\" is undefined\n  x = a;\n      ^\n\n1 error detected in the "
        "compilation of \"k.cu\".\n";
    static const char two[] =
        "k.cu(1): error: identifier \"a\" is undefined\n  x = a;\n      ^\n\nk.cu(2): error: identifier "
        "\"b\" is "
        "undefined\n  y = b;\n      ^\n\n2 errors detected in the compilation of \"k.cu\".\n";
    assert_true(clab_nvrtc_log_error(one, &error));
    assert_null(clab_log_rest(one, &error));
    char *rest = clab_log_rest(two, &error);
    assert_string_equal(
        rest, "k.cu(2): error: identifier \"b\" is undefined\n  y = b;\n      ^\n\n2 errors detected in "
              "the compilation of \"k.cu\".\n");
    free(rest);
    static const char ptx[] =
        "ptxas application ptx input, line 2; error   : Arguments mismatch for instruction 'add'\n"
        "ptxas application ptx input, line 2; error   : Unknown symbol 'a'\nptxas fatal   : Ptx "
        "assembly aborted due to errors\nERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (k.ptx)\n";
    assert_true(clab_ptxas_log_error(ptx, "k.ptx", "", &error));
    assert_null(clab_log_rest(ptx, &error));
    /* The stand-in's own, after a caller has put the call before the message. */
    clab_error_set(&error, CLAB_LOAD, "no such name");
    clab_error_at(&error, "k.ptx", 3, 7);
    clab_error_context(&error, "cuModuleLoadDataEx (ptx for sm_90)");
    assert_null(clab_log_rest("k.ptx:3:7: no such name\n      ^\n  in: kernel k\n", &error));
    rest = clab_log_rest("k.ptx:3:7: no such name\nk.ptx:4:7: no such other name\n", &error);
    assert_string_equal(rest, "k.ptx:4:7: no such other name\n");
    free(rest);
    assert_null(clab_log_rest("", &error));
    assert_null(clab_log_rest(NULL, &error));
    clab_error_clear(&error);
}

static const char verbose[] =
    "ptxas info    : 5922 bytes gmem\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_90'\n"
    "ptxas info    : Function properties for other\n"
    "ptxas         .     8 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
    "ptxas info    : Used 99 registers, used 0 barriers\n"
    "ptxas info    : Compiling entry function 'e' for 'sm_90'\n"
    "ptxas info    : Function properties for e\n"
    "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem\n"
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
    "\"k.cu\": creating precompiled header file \"/tmp/k_0.pch\"\n"
    "k.cu(3): warning #177-D: unused\n\n";

static void test_resources_are_those_of_the_entry(void **state)
{
    (void)state;
    struct clab_image_resources r;
    clab_ptxas_log_resources(verbose, "e", &r);
    assert_true(r.known);
    assert_int_equal(r.registers, 10);
    assert_int_equal(r.barriers, 1);
    assert_int_equal(r.static_smem_bytes, 1024);
    assert_int_equal(r.stack_bytes, 16);
    assert_int_equal(r.spill_store_bytes, 4);
    assert_int_equal(r.spill_load_bytes, 12);
    clab_ptxas_log_resources(verbose, "o", &r);
    assert_false(r.known);
    clab_ptxas_log_resources("", "e", &r);
    assert_false(r.known);
}

static void test_verbose_lines_go_and_advice_stays(void **state)
{
    (void)state;
    char *kept = clab_compile_log_strip(verbose);
    assert_string_equal(kept, "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
                              "k.cu(3): warning #177-D: unused");
    free(kept);
    assert_null(clab_compile_log_strip("ptxas info    : 0 bytes gmem\n\n"));
    assert_null(clab_compile_log_strip(""));
}

static void test_a_line_of_ptx_has_its_place_in_the_source(void **state)
{
    (void)state;
    static const char ptx[] = ".version 8.0\n"
                              ".visible .entry k()\n{\n"
                              "\t.loc\t1 7 5\n"
                              "\tbad;\n"
                              "\t.loc\t2 30 1, function_name $L__info_string0, inlined_at 1 7 5\n"
                              "\tworse;\n"
                              "}\n"
                              ".visible .entry l()\n{\n"
                              "\tplain;\n"
                              "}\n"
                              "\t.file\t1 \"/a/k.cu\"\n"
                              "\t.file\t2 \"/a/caf\\303\\251.cuh\", 1, 2\n";
    char file[64];
    uint32_t line = 0, column = 0;
    assert_true(clab_ptx_source_place(ptx, 5, file, sizeof file, &line, &column));
    assert_string_equal(file, "/a/k.cu");
    assert_int_equal(line, 7);
    assert_int_equal(column, 5);
    assert_true(clab_ptx_source_place(ptx, 7, file, sizeof file, &line, &column));
    assert_string_equal(file, "/a/caf\303\251.cuh");
    assert_int_equal(line, 30);
    assert_false(clab_ptx_source_place(ptx, 11, file, sizeof file, &line, &column)); /* another function */
    assert_false(clab_ptx_source_place(ptx, 3, file, sizeof file, &line, &column));
    assert_false(clab_ptx_source_place(ptx, 99, file, sizeof file, &line, &column));
    assert_false(clab_ptx_source_place("", 1, file, sizeof file, &line, &column));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_nvrtc_error_has_its_place),
        cmocka_unit_test(test_warnings_are_no_errors),
        cmocka_unit_test(test_an_error_number_is_not_part_of_the_message),
        cmocka_unit_test(test_a_ptx_error_shows_its_line),
        cmocka_unit_test(test_a_log_says_what_the_error_does_not),
        cmocka_unit_test(test_resources_are_those_of_the_entry),
        cmocka_unit_test(test_verbose_lines_go_and_advice_stays),
        cmocka_unit_test(test_a_line_of_ptx_has_its_place_in_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
