/* The worker protocol: what goes in comes out, and a message cut anywhere is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/wire.h"

static void test_a_job_survives(void **state)
{
    (void)state;
    static const char *const defines[] = {"A", "B=2", ""};
    struct clab_wire_job *job = calloc(1, sizeof *job), *got = calloc(1, sizeof *got);
    struct clab_str message = {0};
    struct clab_arena arena = {0};
    job->request = (struct clab_compile_request){.source_path = "k.cu",
                                                 .source_text = "text",
                                                 .arch = "sm_90",
                                                 .want = CLAB_IMAGE_CUBIN,
                                                 .defines = defines,
                                                 .define_count = 3,
                                                 .no_pch = true};
    job->toolkit.parts[CLAB_PART_NVRTC].found = true;
    strcpy(job->toolkit.parts[CLAB_PART_NVRTC].path, "/a/libnvrtc.so");
    job->pch = (struct clab_pch_plan){.key = "k", .kept_dir = "/p", .scratch_dir = "", .make = true};
    clab_wire_put_job(&message, job);
    struct clab_wire_head head;
    memcpy(&head, message.text, sizeof head);
    assert_true(clab_wire_head_good(&head));
    assert_int_equal(head.bytes, message.bytes - sizeof head);
    assert_true(clab_wire_get_job(message.text + sizeof head, (size_t)head.bytes, &arena, got));
    assert_string_equal(got->request.source_path, "k.cu");
    assert_string_equal(got->request.source_text, "text");
    assert_null(got->request.entry);
    assert_int_equal(got->request.want, CLAB_IMAGE_CUBIN);
    assert_int_equal(got->request.define_count, 3);
    assert_string_equal(got->request.defines[1], "B=2");
    assert_string_equal(got->request.defines[2], "");
    assert_true(got->request.no_pch);
    assert_false(got->request.line_info);
    assert_true(got->toolkit.parts[CLAB_PART_NVRTC].found);
    assert_false(got->toolkit.parts[CLAB_PART_NVJITLINK].found);
    assert_string_equal(got->pch.key, "k");
    assert_string_equal(got->pch.kept_dir, "/p");
    assert_string_equal(got->pch.scratch_dir, "");
    assert_true(got->pch.make);
    for (size_t bytes = 0; bytes < head.bytes; bytes++) {
        char *cut = malloc(bytes + 1);
        memcpy(cut, message.text + sizeof head, bytes);
        assert_false(clab_wire_get_job(cut, bytes, &arena, got));
        free(cut);
    }
    clab_arena_free(&arena);
    clab_str_free(&message);
    free(job);
    free(got);
}

static void test_a_result_survives(void **state)
{
    (void)state;
    struct clab_compile_result *result = calloc(1, sizeof *result), *got = calloc(1, sizeof *got);
    struct clab_str message = {0};
    result->status = clab_error_set(&result->error, CLAB_COMPILE, "wrong");
    clab_error_log(&result->error, "log text", SIZE_MAX);
    result->image.kind = CLAB_IMAGE_CUBIN;
    result->image.data = calloc(1, 4);
    memcpy(result->image.data, "a\0b", 3);
    result->image.bytes = 3;
    result->image.lowered = strdup("_Z1k");
    result->image.resources.registers = 24;
    clab_wire_put_result(&message, result);
    struct clab_wire_head head;
    memcpy(&head, message.text, sizeof head);
    assert_true(clab_wire_get_result(message.text + sizeof head, (size_t)head.bytes, got));
    assert_int_equal(got->status, CLAB_COMPILE);
    assert_string_equal(got->error.message, "wrong");
    assert_string_equal(got->error.log, "log text");
    assert_int_equal(got->image.bytes, 3);
    assert_memory_equal(got->image.data, "a\0b", 4);
    assert_string_equal(got->image.lowered, "_Z1k");
    assert_null(got->image.entry);
    assert_int_equal(got->image.resources.registers, 24);
    clab_compile_result_free(got);
    for (size_t bytes = 0; bytes < head.bytes; bytes += 7) {
        char *cut = malloc(bytes + 1);
        memcpy(cut, message.text + sizeof head, bytes);
        assert_false(clab_wire_get_result(cut, bytes, got));
        free(cut);
    }
    head.mark++;
    assert_false(clab_wire_head_good(&head));
    clab_compile_result_free(result);
    clab_str_free(&message);
    free(result);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_survives),
        cmocka_unit_test(test_a_result_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
