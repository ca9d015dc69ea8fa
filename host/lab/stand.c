/* The measuring stand. Every launch is submitted while a one-thread kernel holds the stream, so that what the
   host needs to submit it is not in the time; that kernel gives up after BLOCKER_LIMIT_NS, well before any
   watchdog. */
#include "lab/stand.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/process.h"
#include "driver/call.h"
#include "lab/helpers.h"

#define BLOCKER_LIMIT_NS UINT64_C(5000000000)
#define LOOK_EVERY_NS    UINT64_C(200000000)
#define FLUSH_BYTE       0xa5

clab_status clab_stand_init(struct clab_stand *stand, const struct clab_device *device,
                            const struct clab_measure_options *options, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    memset(stand, 0, sizeof *stand);
    stand->device = device;
    stand->watch = options->watch;
    stand->random = (options->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1; /* xorshift must not start at 0 */
    stand->clock.reference_mhz = (double)NAN;
    stand->flush_bytes = (size_t)device->l2_bytes * 2;
    void *host = NULL;
    clab_status status = clab_helpers_load(device, error);
    if (status == CLAB_OK)
        status =
            CLAB_CALL(driver, error, cuMemHostAlloc, (&host, 2 * sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP),
                      "the stream blocker's flags");
    if (status == CLAB_OK) {
        stand->flags = host;
        status =
            CLAB_CALL(driver, error, cuMemHostGetDevicePointer_v2, (&stand->flags_address, host, 0), NULL);
    }
    if (status == CLAB_OK && stand->flush_bytes != 0)
        status = CLAB_CALL(driver, error, cuMemAlloc_v2, (&stand->flush, stand->flush_bytes),
                           "%zu bytes to flush the L2", stand->flush_bytes);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventCreate, (&stand->start, CU_EVENT_DEFAULT), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventCreate, (&stand->stop, CU_EVENT_DEFAULT), NULL);
    if (status == CLAB_OK)
        status = clab_clock_init(&stand->clock, device, error);
    return status;
}

static void stand_fini(struct clab_stand *stand, bool unusable)
{
    const struct clab_driver *driver = stand->device->driver;
    if (!unusable) {
        if (stand->start != NULL)
            (void)driver->cuEventDestroy_v2(stand->start);
        if (stand->stop != NULL)
            (void)driver->cuEventDestroy_v2(stand->stop);
        if (stand->flush != 0)
            (void)driver->cuMemFree_v2(stand->flush);
        if (stand->flags != NULL)
            (void)driver->cuMemFreeHost((void *)(uintptr_t)stand->flags);
    } else {
        stand->clock.slots = 0;
    }
    clab_clock_fini(&stand->clock);
}

clab_status clab_stand_flush(struct clab_stand *stand, struct clab_error *error)
{
    const struct clab_device *device = stand->device;
    const struct clab_driver *driver = device->driver;
    /* Lines loaded with an evict_last policy outlive a memset (CUDA Driver API 13.0,
     * cuCtxResetPersistingL2Cache). */
    if (!stand->no_persisting)
        stand->no_persisting = driver->cuCtxResetPersistingL2Cache == NULL ||
                               driver->cuCtxResetPersistingL2Cache() != CUDA_SUCCESS;
    if (stand->flush == 0)
        return CLAB_OK;
    return CLAB_CALL(driver, error, cuMemsetD8Async,
                     (stand->flush, FLUSH_BYTE, stand->flush_bytes, device->stream), "L2 flush");
}

clab_status clab_stand_block(struct clab_stand *stand, struct clab_error *error)
{
    const struct clab_device *device = stand->device;
    uint64_t limit = BLOCKER_LIMIT_NS;
    void *params[] = {&stand->flags_address, &limit};
    stand->flags[0] = stand->flags[1] = 0;
    return CLAB_CALL(device->driver, error, cuLaunchKernel,
                     (device->helpers->blocker, 1, 1, 1, 1, 1, 1, 0, device->stream, params, NULL),
                     "the stream blocker");
}

void clab_stand_release(struct clab_stand *stand)
{
    stand->flags[0] = 1;
}

clab_status clab_stand_read(struct clab_stand *stand, bool blocked, double *out_ns, double *out_mhz,
                            struct clab_error *error)
{
    const struct clab_driver *driver = stand->device->driver;
    float ms = 0;
    *out_ns = *out_mhz = (double)NAN;
    clab_status status = CLAB_CALL(driver, error, cuStreamSynchronize, (stand->device->stream), NULL);
    if (status == CLAB_OK && blocked && stand->flags[1] != 0)
        return clab_error_set(
            error, CLAB_LAUNCH,
            "submitting the launch took longer than %u s, or waited for the device: it cannot be timed "
            "behind a stream blocker",
            (unsigned)(BLOCKER_LIMIT_NS / 1000000000));
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventElapsedTime, (&ms, stand->start, stand->stop), NULL);
    if (status == CLAB_OK)
        status = clab_clock_read(&stand->clock, out_mhz, error);
    *out_ns = (double)ms * 1e6;
    return status;
}

void clab_stand_look(struct clab_stand *stand, bool now)
{
    const uint64_t time_ns = clab_now_ns();
    if (!now && stand->looked_ns != 0 && time_ns - stand->looked_ns < LOOK_EVERY_NS)
        return;
    stand->looked_ns = time_ns;
    if (clab_watch_look(stand->watch))
        stand->throttle_known = true;
    clab_watch_text(stand->watch, stand->throttle, sizeof stand->throttle);
}

void clab_stand_end(struct clab_stand *stand, clab_status status, const struct clab_error *error,
                    struct clab_outcome *outcome)
{
    outcome->reference_mhz = stand->clock.reference_mhz;
    outcome->throttle_known = stand->throttle_known;
    snprintf(outcome->throttle, sizeof outcome->throttle, "%s", stand->throttle);
    stand_fini(stand,
               status != CLAB_OK && error != NULL && clab_call_is_sticky((CUresult)error->native_code));
}

bool clab_stand_begin(const struct clab_measured_row *rows, size_t n_rows, struct clab_outcome *out_outcome)
{
    *out_outcome =
        (struct clab_outcome){.failed = n_rows != 0 ? rows[0].id : 0, .reference_mhz = (double)NAN};
    return n_rows != 0;
}

void clab_stand_shuffle(struct clab_stand *stand, size_t *order, size_t count)
{
    for (size_t i = count; i > 1; i--) { /* Fisher-Yates over xorshift64 */
        stand->random ^= stand->random << 13;
        stand->random ^= stand->random >> 7;
        stand->random ^= stand->random << 17;
        size_t j = stand->random % i, swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

void clab_sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}
