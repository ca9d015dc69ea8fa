/* Buffer sets (host/lab/buffers.c) in a device memory that is the host's: guards, resets, oracles, and that
   nothing stays allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/buffers.h"

static int allocations;
static size_t last_bytes, memory_bytes;

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static CUresult fake_alloc(CUdeviceptr *address, size_t bytes)
{
    if (bytes > memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (CUdeviceptr)(uintptr_t)calloc(1, bytes);
    last_bytes = bytes;
    allocations++;
    return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr address)
{
    free(at(address));
    allocations--;
    return CUDA_SUCCESS;
}

static CUresult fake_set8(CUdeviceptr address, unsigned char value, size_t count)
{
    memset(at(address), value, count);
    return CUDA_SUCCESS;
}

static CUresult fake_set8_async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream)
{
    (void)stream;
    return fake_set8(address, value, count);
}

static CUresult fake_set16_async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((unsigned short *)at(address))[i] = value;
    return CUDA_SUCCESS;
}

static CUresult fake_set32_async(CUdeviceptr address, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)at(address))[i] = value;
    return CUDA_SUCCESS;
}

static CUresult fake_write(CUdeviceptr address, const void *host, size_t bytes)
{
    memcpy(at(address), host, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_read(void *host, CUdeviceptr address, size_t bytes)
{
    memcpy(host, at(address), bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    memcpy(at(to), at(from), bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_wait(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult fake_context_wait(void)
{
    return CUDA_SUCCESS;
}

static const struct clab_driver driver = {
    .cuMemAlloc_v2 = fake_alloc,
    .cuMemFree_v2 = fake_free,
    .cuMemsetD8_v2 = fake_set8,
    .cuMemsetD8Async = fake_set8_async,
    .cuMemsetD16Async = fake_set16_async,
    .cuMemsetD32Async = fake_set32_async,
    .cuMemcpyHtoD_v2 = fake_write,
    .cuMemcpyDtoH_v2 = fake_read,
    .cuMemcpyDtoDAsync_v2 = fake_copy,
    .cuStreamSynchronize = fake_wait,
    .cuCtxSynchronize = fake_context_wait,
};
static struct clab_device device;
static struct clab_buffer_set set;
static struct clab_error error;

/* The set of a JSON array, filled with its first fill. */
static void make(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_int_equal(clab_buffers_new(&device, json, &set, &error), CLAB_OK);
    json_decref(json);
    assert_int_equal(clab_buffers_fill(&device, &set, 0, &error), CLAB_OK);
}

static clab_status check(void)
{
    clab_error_clear(&error);
    return clab_buffers_check(&device, &set, 0, &error);
}

static void *memory(const char *name)
{
    return at(clab_buffers_address(name, &set));
}

static int setup(void **state)
{
    (void)state;
    device = (struct clab_device){.driver = &driver};
    memory_bytes = SIZE_MAX;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    clab_buffers_free(&device, &set);
    clab_error_clear(&error);
    return allocations; /* 0: nothing stayed */
}

static const char sum_and_input[] =
    "[{\"name\":\"input\",\"type\":\"u32\",\"count\":3,\"fill\":[{\"kind\":\"iota\"}]},"
    "{\"name\":\"sum\",\"type\":\"u32\",\"count\":1,\"expect\":{\"value\":7}}]";

static void a_store_inside_is_silent(void **state)
{
    (void)state;
    make(sum_and_input);
    *(uint32_t *)memory("sum") = 7;
    assert_int_equal(check(), CLAB_OK);
}

static void a_store_past_the_end_fires(void **state)
{
    (void)state;
    make(sum_and_input);
    uint32_t *sum = memory("sum");
    sum[0] = 7;
    sum[3] = 7; /* 8 bytes past the end */
    assert_int_equal(check(), CLAB_WRONG);
    assert_string_equal(error.message,
                        "the kernel wrote outside 'sum': 4 of the 4096 bytes after it changed, 8 to "
                        "11 bytes past its end");
    /* The next fill makes the guards new. */
    assert_int_equal(clab_buffers_fill(&device, &set, 0, &error), CLAB_OK);
    sum[0] = 7;
    assert_int_equal(check(), CLAB_OK);
}

static void a_store_before_the_start_fires(void **state)
{
    (void)state;
    make(sum_and_input);
    uint32_t *sum = memory("sum");
    sum[0] = 7;
    sum[-1] = 7;
    assert_int_equal(check(), CLAB_WRONG);
    assert_string_equal(error.message,
                        "the kernel wrote outside 'sum': 4 of the 4096 bytes before it changed, 4 to "
                        "1 bytes before its start");
}

static void an_input_is_guarded_behind_and_keeps_its_alignment(void **state)
{
    (void)state;
    make(sum_and_input);
    *(uint32_t *)memory("sum") = 7;
    assert_int_equal(set.buffers[0].address, set.buffers[0].allocation);
    ((uint32_t *)memory("input"))[3] = 0;
    assert_int_equal(check(), CLAB_WRONG);
    assert_non_null(strstr(error.message, "outside 'input'"));
}

static void a_device_that_checks_accesses_has_no_guards(void **state)
{
    (void)state;
    device.checks_accesses = true;
    make(sum_and_input);
    assert_int_equal(last_bytes, sizeof(uint32_t)); /* of `sum`, the last */
    *(uint32_t *)memory("sum") = 7;
    assert_int_equal(check(), CLAB_OK);
}

static void resets_restore_every_kind_of_fill(void **state)
{
    (void)state;
    make("[{\"name\":\"zero\",\"type\":\"u64\",\"count\":2,\"reset\":\"launch\"},"
         "{\"name\":\"wide\",\"type\":\"u64\",\"count\":2,\"fill\":[{\"kind\":\"ones\"}],\"reset\":"
         "\"launch\"},"
         "{\"name\":\"half\",\"type\":\"u16\",\"count\":3,\"fill\":[{\"kind\":\"value\",\"value\":258}],"
         "\"reset\":\"launch\"},"
         "{\"name\":\"byte\",\"type\":\"u8\",\"count\":3,\"fill\":[{\"kind\":\"value\",\"value\":9}],"
         "\"reset\":\"launch\"},"
         "{\"name\":\"word\",\"type\":\"f32\",\"count\":3,\"fill\":[{\"kind\":\"ones\"}],\"reset\":"
         "\"launch\"},"
         "{\"name\":\"iota\",\"type\":\"u32\",\"count\":3,\"fill\":[{\"kind\":\"iota\"}],\"reset\":"
         "\"launch\"},"
         "{\"name\":\"odd\",\"type\":\"u32\",\"count\":2,\"offset_bytes\":1,\"fill\":[{\"kind\":\"ones\"}],"
         "\"reset\":\"launch\"},"
         "{\"name\":\"list\",\"type\":\"s32\",\"count\":2,\"fill\":[{\"kind\":\"values\",\"values\":[5,-6]}],"
         "\"reset\":\"timed\"},"
         "{\"name\":\"kept\",\"type\":\"u32\",\"count\":1}]");
    char before[8][16], *start[8];
    size_t bytes[8];
    for (size_t i = 0; i < 8; i++) {
        start[i] = at(set.buffers[i].address);
        bytes[i] = set.buffers[i].count * clab_element_bytes(set.buffers[i].element);
        memcpy(before[i], start[i], bytes[i]);
        memset(start[i], 0x55, bytes[i]);
    }
    *(uint32_t *)memory("kept") = 77;
    assert_true(clab_buffers_have_reset(&set, false) && clab_buffers_have_reset(&set, true));
    assert_int_equal(clab_buffers_reset(&device, &set, 0, false, &error), CLAB_OK);
    for (size_t i = 0; i < 7; i++)
        assert_memory_equal(start[i], before[i], bytes[i]);
    assert_memory_not_equal(start[7], before[7], bytes[7]); /* that one belongs to the timed span */
    assert_int_equal(clab_buffers_reset(&device, &set, 0, true, &error), CLAB_OK);
    assert_memory_equal(start[7], before[7], bytes[7]);
    assert_int_equal(*(uint32_t *)memory("kept"), 77);
    assert_int_equal(((uint64_t *)memory("wide"))[1], 1);
    assert_int_equal(((uint16_t *)memory("half"))[2], 258);
    assert_int_equal(((int32_t *)memory("list"))[1], -6);
    assert_int_equal(check(), CLAB_OK); /* resets touch no guard */
}

static void every_fill_of_a_list_is_reset_to(void **state)
{
    (void)state;
    make("[{\"name\":\"x\",\"type\":\"u32\",\"count\":2,\"reset\":\"launch\","
         "\"fill\":[{\"kind\":\"ones\"},{\"kind\":\"iota\"}]}]");
    uint32_t *x = memory("x");
    x[1] = 9;
    assert_int_equal(clab_buffers_reset(&device, &set, 0, false, &error), CLAB_OK);
    assert_int_equal(x[0], 1);
    assert_int_equal(x[1], 1);
    assert_int_equal(clab_buffers_fill(&device, &set, 1, &error), CLAB_OK);
    x[1] = 9;
    assert_int_equal(clab_buffers_reset(&device, &set, 1, false, &error), CLAB_OK);
    assert_int_equal(x[0], 0);
    assert_int_equal(x[1], 1);
}

static void a_u64_beyond_s64_is_compared_in_full(void **state)
{
    (void)state;
    make("[{\"name\":\"x\",\"type\":\"u64\",\"count\":2,\"expect\":{\"values\":[-1,9007199254740993]}}]");
    uint64_t *x = memory("x");
    x[0] = UINT64_MAX;
    x[1] = UINT64_C(9007199254740993);
    assert_int_equal(check(), CLAB_OK);
    x[1]--;
    assert_int_equal(check(), CLAB_WRONG);
}

static void same_as_needs_equal_counts(void **state)
{
    (void)state;
    json_t *json = json_loads("[{\"name\":\"a\",\"type\":\"u32\",\"count\":2},"
                              "{\"name\":\"b\",\"type\":\"u32\",\"count\":3,\"expect\":{\"same_as\":\"a\"}}]",
                              0, NULL);
    assert_int_equal(clab_buffers_new(&device, json, &set, &error), CLAB_EXPERIMENT);
    json_decref(json);
    assert_int_equal(allocations, 0);
}

static void what_does_not_fit_is_waived(void **state)
{
    (void)state;
    json_t *json = json_loads(sum_and_input, 0, NULL);
    memory_bytes = 100;
    assert_int_equal(clab_buffers_new(&device, json, &set, &error), CLAB_WAIVED);
    json_decref(json);
    assert_non_null(strstr(error.message, "does not fit"));
    assert_int_equal(allocations, 0);
}

static void a_reference_result_stays_until_it_is_dropped(void **state)
{
    (void)state;
    make("[{\"name\":\"x\",\"type\":\"u32\",\"count\":2,\"fill\":[{\"kind\":\"iota\"}],"
         "\"expect\":{\"reference\":{\"entry\":\"k\"}}}]");
    struct clab_buffer *x = &set.buffers[0];
    assert_true(clab_buffer_needs_reference(x, 0));
    assert_int_equal(check(), CLAB_INTERNAL); /* never passed for want of an oracle */
    assert_int_equal(clab_buffer_shadow(&device, x, 0, &error), CLAB_OK);
    assert_false(clab_buffer_needs_reference(x, 0));
    assert_true(clab_buffer_needs_reference(x, 1));
    assert_int_equal(check(), CLAB_OK);
    ((uint32_t *)at(x->shadows[0]))[1] = 5;
    assert_int_equal(check(), CLAB_WRONG);
    assert_string_equal(error.message, "x[1] is 1, wanted 5 (as the reference 'k' has it) with x = iota");
    clab_buffer_drop_shadow(&device, x, 0);
    assert_true(clab_buffer_needs_reference(x, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_store_inside_is_silent),
        TEST(a_store_past_the_end_fires),
        TEST(a_store_before_the_start_fires),
        TEST(an_input_is_guarded_behind_and_keeps_its_alignment),
        TEST(a_device_that_checks_accesses_has_no_guards),
        TEST(resets_restore_every_kind_of_fill),
        TEST(every_fill_of_a_list_is_reset_to),
        TEST(a_u64_beyond_s64_is_compared_in_full),
        TEST(same_as_needs_equal_counts),
        TEST(what_does_not_fit_is_waived),
        TEST(a_reference_result_stays_until_it_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
