/* A kernel beside a row's own, as a neighbour that holds some SMs for a while. It has begun before the row's
   kernel starts and must end by itself: it may not wait for the row's kernel, which on a device that counts
   (the stand-in driver) starts only after its end, so that the counters belong to one kernel. That it has
   begun is told by the launch completion event (CUDA Driver API 13.0,
   CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, which calls itself a best effort: where it fails, the row's
   kernel waits for the companion's end). */
#include "lab/companion.h"

#include <string.h>

#include "driver/call.h"

#define LEAST_DRIVER 12030 /* the launch completion event came with CUDA 12.3 */

clab_status clab_companion_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                   const json_t *json,
                                   CUdeviceptr (*buffer_address)(const char *name, void *context),
                                   void *context, struct clab_companion *companion, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    memset(companion, 0, sizeof *companion);
    if (device->timed && driver->version < LEAST_DRIVER)
        return clab_error_set(error, CLAB_WAIVED, "a companion kernel needs a driver of CUDA %d.%d or later",
                              LEAST_DRIVER / 1000, LEAST_DRIVER % 1000 / 10);
    clab_status status =
        clab_launch_prepare(device, loaded, json, buffer_address, context, &companion->launch, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamCreate, (&companion->stream, CU_STREAM_NON_BLOCKING),
                           "the companion's stream");
    if (status == CLAB_OK && device->timed)
        status = CLAB_CALL(driver, error, cuEventCreate, (&companion->go, CU_EVENT_DISABLE_TIMING), NULL);
    if (status == CLAB_OK && device->timed)
        status = CLAB_CALL(driver, error, cuEventCreate, (&companion->begun, CU_EVENT_DISABLE_TIMING), NULL);
    if (status != CLAB_OK) {
        clab_companion_fini(device, companion);
        return status;
    }
    CUlaunchConfig *config = &companion->launch.config;
    config->hStream = companion->stream;
    if (companion->begun != NULL) {
        CUlaunchAttribute *attribute = &companion->launch.attributes[config->numAttrs++];
        attribute->id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
        attribute->value.launchCompletionEvent.event = companion->begun;
        attribute->value.launchCompletionEvent.flags = 0;
    }
    return CLAB_OK;
}

clab_status clab_companion_start(const struct clab_device *device, struct clab_companion *companion,
                                 struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    if (companion->stream == NULL)
        return CLAB_OK;
    if (companion->begun == NULL) {
        clab_status status = CLAB_CALL(driver, error, cuStreamSynchronize, (device->stream), NULL);
        if (status == CLAB_OK)
            status = clab_launch_submit(device, &companion->launch, error);
        return status == CLAB_OK ? clab_companion_wait(device, companion, error) : status;
    }
    clab_status status = CLAB_CALL(driver, error, cuEventRecord, (companion->go, device->stream), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamWaitEvent, (companion->stream, companion->go, 0), NULL);
    if (status == CLAB_OK)
        status = clab_launch_submit(device, &companion->launch, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamWaitEvent, (device->stream, companion->begun, 0), NULL);
    return status;
}

clab_status clab_companion_wait(const struct clab_device *device, const struct clab_companion *companion,
                                struct clab_error *error)
{
    if (companion->stream == NULL)
        return CLAB_OK;
    return CLAB_CALL(device->driver, error, cuStreamSynchronize, (companion->stream), NULL);
}

void clab_companion_fini(const struct clab_device *device, struct clab_companion *companion)
{
    const struct clab_driver *driver = device->driver;
    if (companion->go != NULL)
        (void)driver->cuEventDestroy_v2(companion->go);
    if (companion->begun != NULL)
        (void)driver->cuEventDestroy_v2(companion->begun);
    if (companion->stream != NULL)
        (void)driver->cuStreamDestroy_v2(companion->stream);
    memset(companion, 0, sizeof *companion);
}
