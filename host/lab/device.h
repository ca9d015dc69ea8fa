/* A device as a worker holds it: driver, context, capabilities. One per process. */
#ifndef CLAB_LAB_DEVICE_H
#define CLAB_LAB_DEVICE_H

#include <jansson.h>

#include "base/error.h"
#include "driver/driver.h"

struct clab_helpers;

struct clab_device {
    char id[32]; /* "cuda:0", "emu:sm_90" */
    const struct clab_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    /* Capability bits: callers ask these, never which device it is. */
    bool emulated, accepts_cubin, timed,
        checks_accesses; /* the last: a stray access is an error of the launch */
    int cc_major, cc_minor, sms, l2_bytes, max_shared_optin_bytes;
    uint64_t memory_bytes;
    double driver_ms[3]; /* what loading the driver, cuInit and the context took */
    bool has_uuid;
    unsigned char uuid[16];       /* as cuDeviceGetUuid_v2 gives it */
    struct clab_helpers *helpers; /* helpers.h; loaded on first use */
};

/* Opens `id` in this process: loads its libcuda (once per process), cuInit, primary context, one stream.
   "emu:ARCH" picks the stand-in and tells it the architecture through CLUSTERLAB_EMU_ARCH, which must happen
   before the first call. Errors: USAGE (malformed id, unknown architecture), NO_DEVICE, DRIVER. */
clab_status clab_device_open(struct clab_device *device, const char *id, struct clab_error *error);
/* Facts as an object: what a record's "device" holds (id, uuid, name, cc, emulated, sms, driver) and what
   experiment files and `clusterlab devices` may ask besides. Owned by the caller. */
json_t *clab_device_facts(const struct clab_device *device);
/* CLAB_OK for "cuda:N" and for "emu:ARCH" where there is such an emulated device ("emu:sm_100a" is: sm_100,
   compiled for sm_100a); CLAB_USAGE with the list of them otherwise. Asks no driver. */
clab_status clab_device_check(const char *id, struct clab_error *error);
/* The same for the architecture alone, "sm_100". */
clab_status clab_device_arch_check(const char *arch, struct clab_error *error);
/* "emu:sm_90" and its like, the index-th of them; false past the last. */
bool clab_device_emulated(size_t index, char *out_id, size_t bytes);
/* Frees what this process holds for the device; what the driver holds ends with the process. */
void clab_device_fini(struct clab_device *device);

#endif
