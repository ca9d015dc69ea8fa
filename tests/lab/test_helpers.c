/* Our own small kernels (host/lab/helpers.c) on the stand-in driver: the device fill against the host's, the
   stream blocker's two ways out, the clock stamp. CLUSTERLAB_EMU_LIBRARY names the stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/clock.h"
#include "lab/fill_device.h"
#include "lab/helpers.h"

#define COUNT 3001u /* no multiple of anything */

static struct clab_device device;

static int open_device(void **state)
{
    (void)state;
    struct clab_error error = {0};
    if (clab_device_open(&device, "emu:sm_90", &error) != CLAB_OK ||
        clab_helpers_load(&device, &error) != CLAB_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    clab_device_fini(&device);
    return 0;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    assert_int_equal(device.driver->cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    assert_int_equal(device.driver->cuMemsetD8_v2(address, 0, bytes), CUDA_SUCCESS);
    return address;
}

static void a_device_fill_is_the_hosts(void **state)
{
    (void)state;
    static const enum clab_element elements[] = {CLAB_F32, CLAB_U32, CLAB_S32};
    const struct clab_fill fills[] = {{.kind = CLAB_FILL_ZERO},
                                      {.kind = CLAB_FILL_ONES},
                                      {.kind = CLAB_FILL_IOTA},
                                      {.kind = CLAB_FILL_VALUE, .value = -2.75},
                                      {.kind = CLAB_FILL_BITS, .seed = 7},
                                      {.kind = CLAB_FILL_BITS, .seed = UINT64_MAX},
                                      {.kind = CLAB_FILL_RANDOM, .seed = 3}};
    const CUdeviceptr address = allocate(4 * COUNT + 4);
    uint32_t *got = calloc(COUNT + 1, 4), *wanted = calloc(COUNT + 1, 4);
    assert_true(got != NULL && wanted != NULL);
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
        for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
            struct clab_error error = {0};
            assert_true(clab_fill_device_has(elements[e], address));
            assert_int_equal(device.driver->cuMemsetD8_v2(address, 0xee, 4 * COUNT + 4), CUDA_SUCCESS);
            assert_int_equal(clab_fill_device(&device, &fills[f], elements[e], address, COUNT, &error),
                             CLAB_OK);
            assert_int_equal(device.driver->cuStreamSynchronize(device.stream), CUDA_SUCCESS);
            assert_int_equal(device.driver->cuMemcpyDtoH_v2(got, address, 4 * COUNT + 4), CUDA_SUCCESS);
            clab_fill_store(&fills[f], elements[e], 0, COUNT, wanted);
            assert_memory_equal(got, wanted, 4 * COUNT);
            assert_int_equal(got[COUNT], 0xeeeeeeee); /* nothing beyond the end */
        }
    assert_false(clab_fill_device_has(CLAB_F32, address + 2));
    assert_false(clab_fill_device_has(CLAB_F64, address));
    free(got);
    free(wanted);
    assert_int_equal(device.driver->cuMemFree_v2(address), CUDA_SUCCESS);
}

static void the_blocker_ends_on_the_flag_or_gives_up(void **state)
{
    (void)state;
    CUdeviceptr flags = allocate(8);
    uint32_t words[2] = {1, 0};
    uint64_t limit_ns = UINT64_C(3600000000000);
    void *params[] = {&flags, &limit_ns};
    assert_int_equal(device.driver->cuMemcpyHtoD_v2(flags, words, 8), CUDA_SUCCESS);
    assert_int_equal(device.driver->cuLaunchKernel(device.helpers->blocker, 1, 1, 1, 1, 1, 1, 0,
                                                   device.stream, params, NULL),
                     CUDA_SUCCESS);
    assert_int_equal(device.driver->cuStreamSynchronize(device.stream), CUDA_SUCCESS);
    assert_int_equal(device.driver->cuMemcpyDtoH_v2(words, flags, 8), CUDA_SUCCESS);
    assert_int_equal(words[1], 0);
    words[0] = 0;
    limit_ns = 1000;
    assert_int_equal(device.driver->cuMemcpyHtoD_v2(flags, words, 8), CUDA_SUCCESS);
    assert_int_equal(device.driver->cuLaunchKernel(device.helpers->blocker, 1, 1, 1, 1, 1, 1, 0,
                                                   device.stream, params, NULL),
                     CUDA_SUCCESS);
    assert_int_equal(device.driver->cuStreamSynchronize(device.stream), CUDA_SUCCESS);
    assert_int_equal(device.driver->cuMemcpyDtoH_v2(words, flags, 8), CUDA_SUCCESS);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 1);
    assert_int_equal(device.driver->cuMemFree_v2(flags), CUDA_SUCCESS);
}

static void a_stamp_has_time_cycles_and_tag(void **state)
{
    (void)state;
    struct clab_clock clock;
    struct clab_error error = {0};
    double mhz = 0;
    assert_int_equal(clab_clock_init(&clock, &device, &error), CLAB_OK);
    assert_int_equal(clab_clock_stamp(&clock, false, &error), CLAB_OK);
    assert_int_equal(clab_clock_stamp(&clock, true, &error), CLAB_OK);
    assert_int_equal(device.driver->cuStreamSynchronize(device.stream), CUDA_SUCCESS);
    assert_int_equal(clab_clock_read(&clock, &mhz, &error), CLAB_OK);
    unsigned stamped = 0;
    for (size_t i = 0; i < 2 * CLAB_CLOCK_SLOTS; i++)
        if (clock.host[i].tag != 0) {
            assert_int_equal(clock.host[i].tag, 1);
            assert_true(clock.host[i].time_ns != 0);
            assert_int_equal(clock.host[i].reserved, 0);
            stamped++;
        }
    assert_true(stamped >= 2);
    clab_clock_fini(&clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_fill_is_the_hosts),
        cmocka_unit_test(the_blocker_ends_on_the_flag_or_gives_up),
        cmocka_unit_test(a_stamp_has_time_cycles_and_tag),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
