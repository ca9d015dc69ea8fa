/* A companion: a second kernel that runs beside a row's own, on its own stream. */
#ifndef CLAB_LAB_COMPANION_H
#define CLAB_LAB_COMPANION_H

#include "lab/launch.h"

struct clab_companion {
    struct clab_launch launch;
    CUstream stream;   /* NULL: there is none */
    CUevent go, begun; /* on a device that is timed */
};

/* Prepares the companion that a plan row's launch names ({"source", "entry", "launch", "args"}). `loaded`
   must outlive it. On failure there is none. Errors: those of clab_launch_prepare; WAIVED where the driver
   cannot tell that a kernel has begun. */
clab_status clab_companion_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                   const json_t *json,
                                   CUdeviceptr (*buffer_address)(const char *name, void *context),
                                   void *context, struct clab_companion *companion, struct clab_error *error);
/* Starts it after the work that is queued on the device's stream. What is queued there next begins once every
   CTA of the companion has begun, or, on a device that counts instead of timing, once the companion has
   ended. */
clab_status clab_companion_start(const struct clab_device *device, struct clab_companion *companion,
                                 struct clab_error *error);
/* Waits for its end; its faults surface here. Does nothing when there is none. */
clab_status clab_companion_wait(const struct clab_device *device, const struct clab_companion *companion,
                                struct clab_error *error);
/* Gives back its stream and events; it must have ended, or the context be lost. */
void clab_companion_fini(const struct clab_device *device, struct clab_companion *companion);

#endif
