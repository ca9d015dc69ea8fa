/* Images to modules on this machine's driver, if it has one with a GPU; elsewhere "skipped". */
#include "driver/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/jit.h"
#include "compile/target.h"
#include "scratch.h"

static const struct clab_driver *driver;

static const char good[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %a;\n"
                           "ld.param.u64 %a, [p];\nst.global.b32 [%a], 42;\nret;\n}\n";

static struct clab_image ptx_image(const char *text)
{
    struct clab_image image;
    assert_int_equal(clab_image_from_bytes("k.ptx", text, strlen(text), &image, NULL), CLAB_OK);
    return image;
}

static void expect_42(CUmodule module)
{
    struct clab_error error = {0};
    CUfunction function;
    CUdeviceptr address;
    uint32_t value = 0;
    assert_int_equal(CLAB_CALL(driver, &error, cuModuleGetFunction, (&function, module, "k"), "k"), CLAB_OK);
    assert_int_equal(CLAB_CALL(driver, &error, cuMemAlloc_v2, (&address, 4), NULL), CLAB_OK);
    void *arguments[] = {&address};
    assert_int_equal(CLAB_CALL(driver, &error, cuLaunchKernel,
                               (function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), NULL),
                     CLAB_OK);
    assert_int_equal(CLAB_CALL(driver, &error, cuMemcpyDtoH_v2, (&value, address, 4), NULL), CLAB_OK);
    assert_int_equal(value, 42);
    assert_int_equal(CLAB_CALL(driver, &error, cuMemFree_v2, (address), NULL), CLAB_OK);
}

static void test_ptx_loads_as_it_is(void **state)
{
    (void)state;
    struct clab_image image = ptx_image(good);
    struct clab_error error = {0};
    CUmodule module;
    assert_int_equal(clab_module_load(driver, &image, &module, &error), CLAB_OK);
    expect_42(module);
    driver->cuModuleUnload(module);
    clab_image_free(&image);
}

static void test_the_jits_cubin_is_kept(void **state)
{
    (void)state;
    if (driver->channel != NULL && !driver->channel->accepts_cubin) {
        print_message("skipped: the stand-in takes no cubin\n");
        skip();
    }
    struct clab_image image = ptx_image(good), cubin;
    struct clab_error error = {0};
    CUmodule module;
    assert_int_equal(clab_image_choose_entry(&image, "k", &error), CLAB_OK);
    assert_int_equal(clab_jit_ptx(driver, &image, &cubin, &error), CLAB_OK);
    assert_int_equal(cubin.kind, CLAB_IMAGE_CUBIN);
    assert_string_equal(cubin.lowered, "k");
    assert_string_equal(cubin.ptx, good);
    assert_true(cubin.compile_ns > 0);
    assert_memory_equal(cubin.compiler, "driver ", 7);
    print_message("driver's cubin: %s, %zu bytes, %d registers (known: %d), log: %s\n", cubin.arch,
                  cubin.bytes, cubin.resources.registers, cubin.resources.known,
                  cubin.log != NULL ? cubin.log : "");
    assert_int_equal(clab_module_load(driver, &cubin, &module, &error), CLAB_OK);
    expect_42(module);
    driver->cuModuleUnload(module);
    clab_image_free(&image);
    clab_image_free(&cubin);
}

static void test_bad_ptx_names_its_line(void **state)
{
    (void)state;
    struct clab_image image =
        ptx_image(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
                  "frobnicate.b32 %r1;\nret;\n}\n");
    struct clab_image out;
    struct clab_error error = {0};
    CUmodule module;
    CUfunction function;
    /* The stand-in only minds when the kernel is fetched: one unknown instruction fails its own kernel. */
    clab_status status = clab_module_load(driver, &image, &module, &error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, &error, cuModuleGetFunction, (&function, module, "k"), "k");
    assert_int_not_equal(status, CLAB_OK);
    char *text = clab_error_format(&error);
    print_message("%s\n", text);
    free(text);
    assert_int_equal(error.line, 6);
    if (driver->channel == NULL) {
        assert_int_equal(error.status, CLAB_LOAD);
        assert_string_equal(error.native_name, "CUDA_ERROR_INVALID_PTX");
        assert_non_null(strstr(error.message, "frobnicate"));
        assert_int_equal(clab_jit_ptx(driver, &image, &out, &error), CLAB_LOAD);
        assert_int_equal(error.line, 6);
    }
    clab_error_clear(&error);
    clab_image_free(&image);
}

static void test_a_cut_cubin_is_refused_by_the_driver_too(void **state)
{
    (void)state;
    static const char *const names[] = {"k"};
    struct clab_image image;
    struct clab_error error = {0};
    CUmodule module;
    size_t bytes;
    char *data = fake_cubin(75, 0, names, 1, &bytes);
    assert_int_equal(clab_image_from_bytes("old.cubin", data, bytes, &image, &error), CLAB_OK);
    clab_status status = clab_module_load(driver, &image, &module, &error);
    assert_int_not_equal(status, CLAB_OK);
    assert_string_equal(error.native_call, "cuModuleLoadDataEx");
    print_message("a cubin for sm_75: %s\n", error.message);
    clab_image_free(&image);
    clab_error_clear(&error);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx_loads_as_it_is),
        cmocka_unit_test(test_the_jits_cubin_is_kept),
        cmocka_unit_test(test_bad_ptx_names_its_line),
        cmocka_unit_test(test_a_cut_cubin_is_refused_by_the_driver_too),
    };
    struct clab_error error = {0};
    CUdevice device;
    CUcontext context;
    int major = 0;
    clab_status status = clab_driver_load(getenv("CLAB_TEST_LIBCUDA"), &driver, &error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, &error, cuInit, (0), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, &error, cuDeviceGet, (&device, 0), "device 0");
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, &error, cuDeviceGetAttribute,
                           (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), NULL);
    if (status != CLAB_OK || major < 9) {
        printf("skipped: no GPU of compute capability 9.0 or later (%s)\n", error.message);
        clab_error_clear(&error);
        return 77;
    }
    printf("driver %s, version %d, %s\n", driver->path, driver->version,
           driver->channel != NULL ? driver->channel->name : "NVIDIA's");
    status = CLAB_CALL(driver, &error, cuDevicePrimaryCtxRetain, (&context, device), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, &error, cuCtxSetCurrent, (context), NULL);
    if (status != CLAB_OK) {
        printf("%s\n", error.message);
        clab_error_clear(&error);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    driver->cuDevicePrimaryCtxRelease_v2(device);
    return failed;
}
