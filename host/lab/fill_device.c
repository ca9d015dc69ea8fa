/* Fills by our own kernel (helpers.c) and by the driver's memset. The kernel repeats fill.c's integer
   arithmetic; a test compares the two on the stand-in driver. */
#include "lab/fill_device.h"

#include "driver/call.h"
#include "lab/helpers.h"

#define THREADS     256
#define CTAS_PER_SM 8

enum mode { MODE_BITS, MODE_RANDOM_FLOAT, MODE_RANDOM, MODE_IOTA_FLOAT, MODE_IOTA }; /* the kernel's `mode` */

bool clab_fill_device_has(enum clab_element element, CUdeviceptr address)
{
    return (element == CLAB_F32 || element == CLAB_U32 || element == CLAB_S32) &&
           address % sizeof(uint32_t) == 0;
}

clab_status clab_fill_device(const struct clab_device *device, const struct clab_fill *fill,
                             enum clab_element element, CUdeviceptr address, uint64_t count,
                             struct clab_error *error)
{
    const bool is_float = element == CLAB_F32;
    if (fill->kind == CLAB_FILL_ZERO || fill->kind == CLAB_FILL_ONES || fill->kind == CLAB_FILL_VALUE) {
        uint32_t word = 0;
        clab_fill_store(fill, element, 0, 1, &word);
        return CLAB_CALL(device->driver, error, cuMemsetD32Async, (address, word, count, device->stream),
                         "fill");
    }
    clab_status status = clab_helpers_load(device, error);
    if (status != CLAB_OK)
        return status;
    uint32_t mode = is_float ? MODE_IOTA_FLOAT : MODE_IOTA, one = 0;
    if (fill->kind == CLAB_FILL_BITS)
        mode = MODE_BITS;
    else if (fill->kind == CLAB_FILL_RANDOM)
        mode = is_float ? MODE_RANDOM_FLOAT : MODE_RANDOM;
    clab_element_store(element, 1, &one, 0);
    uint64_t weyl = fill->seed * CLAB_FILL_SEED_FACTOR;
    void *params[] = {&address, &count, &weyl, &mode, &one};
    const uint64_t needed = (count + THREADS - 1) / THREADS,
                   most = (uint64_t)(device->sms > 0 ? device->sms : 1) * CTAS_PER_SM;
    return CLAB_CALL(device->driver, error, cuLaunchKernel,
                     (device->helpers->fill, (unsigned)(needed < most ? needed : most), 1, 1, THREADS, 1, 1,
                      0, device->stream, params, NULL),
                     "fill of %llu elements", (unsigned long long)count);
}
