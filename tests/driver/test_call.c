/* From CUresult to error: text, status, detail of the stand-in, missing symbols. The driver is a struct
 * filled here. */
#include "driver/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static CUresult fail_alloc(CUdeviceptr *address, size_t bytes)
{
    (void)address;
    return bytes > 100 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult fail_sync(void)
{
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult name_of(CUresult result, const char **name)
{
    *name = result == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                   : NULL;
    return *name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult text_of(CUresult result, const char **text)
{
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an illegal memory access was encountered";
    return CUDA_SUCCESS;
}

static int detail(struct clab_error *out)
{
    clab_error_set(out, CLAB_FAULT, "load of 4 bytes outside every allocation");
    out->where.has_lane = true;
    out->where.lane = 7;
    clab_error_log(out, "more", SIZE_MAX);
    return clab_error_native(out, "", CUDA_ERROR_ILLEGAL_ADDRESS, "") == CLAB_FAULT;
}

static struct clab_driver driver(void)
{
    struct clab_driver out = {.path = "/test/libcuda.so.1", .version = 12000};
    out.cuMemAlloc_v2 = fail_alloc;
    out.cuCtxSynchronize = fail_sync;
    out.cuGetErrorName = name_of;
    out.cuGetErrorString = text_of;
    return out;
}

static void test_success_leaves_the_error_alone(void **state)
{
    (void)state;
    struct clab_driver d = driver();
    struct clab_error error = {0};
    CUdeviceptr address;
    assert_int_equal(CLAB_CALL(&d, &error, cuMemAlloc_v2, (&address, 10), "%d bytes", 10), CLAB_OK);
    assert_int_equal(error.status, CLAB_OK);
}

static void test_failure_names_call_arguments_and_code(void **state)
{
    (void)state;
    struct clab_driver d = driver();
    struct clab_error error = {0};
    CUdeviceptr address;
    assert_int_equal(CLAB_CALL(&d, &error, cuMemAlloc_v2, (&address, 1000), "%d bytes", 1000),
                     CLAB_NO_MEMORY);
    assert_string_equal(error.message, "cuMemAlloc failed (1000 bytes): out of memory");
    assert_string_equal(error.native_call, "cuMemAlloc");
    assert_string_equal(error.native_name, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(error.native_code, CUDA_ERROR_OUT_OF_MEMORY);
    clab_error_clear(&error);
}

static void test_a_missing_symbol_says_which_cuda_brought_it(void **state)
{
    (void)state;
    struct clab_driver d = driver();
    struct clab_error error = {0};
    CUcontext context;
    assert_int_equal(CLAB_CALL(&d, &error, cuCtxCreate_v4, (&context, NULL, 0, 0), NULL), CLAB_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cuCtxCreate: CUDA 12.5 brought it"));
    assert_non_null(strstr(error.message, "12.0"));
    clab_error_clear(&error);
}

static void test_the_standins_detail_wins(void **state)
{
    (void)state;
    struct clab_driver d = driver();
    struct clab_channel channel = {.emulated = 1, .last_error = detail};
    struct clab_error error = {0};
    d.channel = &channel;
    assert_int_equal(CLAB_CALL(&d, &error, cuCtxSynchronize, (), NULL), CLAB_FAULT);
    assert_string_equal(error.message, "cuCtxSynchronize: load of 4 bytes outside every allocation");
    assert_true(error.where.has_lane);
    assert_int_equal(error.where.lane, 7);
    assert_string_equal(error.native_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_string_equal(error.log, "more");
    /* The silent twin: the detail is of another failure than the one in hand. */
    CUdeviceptr address;
    assert_int_equal(CLAB_CALL(&d, &error, cuMemAlloc_v2, (&address, 1000), NULL), CLAB_NO_MEMORY);
    assert_string_equal(error.message, "cuMemAlloc failed: out of memory");
    assert_false(error.where.has_lane);
    assert_null(error.log);
    clab_error_clear(&error);
}

static void test_a_fault_on_a_gpu_has_no_detail_but_advice(void **state)
{
    (void)state;
    struct clab_driver d = driver();
    struct clab_error error = {0};
    assert_int_equal(CLAB_CALL(&d, &error, cuCtxSynchronize, (), NULL), CLAB_FAULT);
    assert_non_null(strstr(error.remedy, "emu:sm_90"));
    assert_int_equal(CLAB_CALL(&d, NULL, cuCtxSynchronize, (), NULL), CLAB_FAULT);
    clab_error_clear(&error);
}

static void test_codes_have_the_status_of_their_kind(void **state)
{
    (void)state;
    assert_int_equal(clab_call_status("cuLaunchKernelEx", CUDA_ERROR_INVALID_CLUSTER_SIZE), CLAB_LAUNCH);
    assert_int_equal(clab_call_status("cuLaunchKernelEx", CUDA_ERROR_INVALID_VALUE), CLAB_LAUNCH);
    assert_int_equal(clab_call_status("cuMemAlloc", CUDA_ERROR_INVALID_VALUE), CLAB_DRIVER);
    assert_int_equal(clab_call_status("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX), CLAB_LOAD);
    assert_int_equal(clab_call_status("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND), CLAB_NOT_FOUND);
    assert_int_equal(clab_call_status("cuInit", CUDA_ERROR_NO_DEVICE), CLAB_NO_DEVICE);
    assert_int_equal(clab_call_status("cuCtxSynchronize", CUDA_ERROR_LAUNCH_TIMEOUT), CLAB_TIMEOUT);
    assert_int_equal(clab_call_status("cuCtxSynchronize", CUDA_ERROR_LAUNCH_FAILED), CLAB_FAULT);
    assert_true(clab_call_is_sticky(CUDA_ERROR_LAUNCH_FAILED));
    assert_false(clab_call_is_sticky(CUDA_ERROR_INVALID_CLUSTER_SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success_leaves_the_error_alone),
        cmocka_unit_test(test_failure_names_call_arguments_and_code),
        cmocka_unit_test(test_a_missing_symbol_says_which_cuda_brought_it),
        cmocka_unit_test(test_the_standins_detail_wins),
        cmocka_unit_test(test_a_fault_on_a_gpu_has_no_detail_but_advice),
        cmocka_unit_test(test_codes_have_the_status_of_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
