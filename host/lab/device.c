/* Opens one device through the driver table and reads its facts (CUDA Driver API 13.0, "Device Management").
   A process loads one libcuda, so each device is opened in a worker of its own. */
#include "lab/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/str.h"
#include "compile/target.h"
#include "driver/call.h"
#include "lab/groups.h"
#include "lab/helpers.h"

/* There is one stand-in for each chip that has clusters; a suffix ("sm_100a") chooses what is compiled for
 * it. */
bool clab_device_emulated(size_t index, char *out_id, size_t bytes)
{
    const struct clab_target *target;
    for (size_t i = 0; (target = clab_target_at(i)) != NULL; i++)
        if (target->reach == CLAB_REACH_FORWARD && index-- == 0) {
            snprintf(out_id, bytes, "emu:%s", target->name);
            return true;
        }
    return false;
}

/* The remedy of both checks: every emulated device, as it is typed there. */
static clab_status list_emulated(struct clab_error *error, const char *lead, size_t skip)
{
    struct clab_str list = {0};
    char id[32];
    for (size_t i = 0; clab_device_emulated(i, id, sizeof id); i++)
        clab_str_addf(&list, "%s%s", i > 0 ? ", " : "", id + skip);
    clab_error_remedy(error, "%s%s", lead, list.text != NULL ? list.text : "");
    clab_str_free(&list);
    return CLAB_USAGE;
}

static bool is_emulated_arch(const char *arch)
{
    const struct clab_target *target = clab_target_find(arch);
    return target != NULL && target->has_clusters && strcmp(target->name, arch) == 0;
}

clab_status clab_device_arch_check(const char *arch, struct clab_error *error)
{
    if (is_emulated_arch(arch))
        return CLAB_OK;
    clab_error_set(error, CLAB_USAGE, "no emulated device is called '%s'", arch);
    return list_emulated(error, "one of: ", strlen("emu:"));
}

clab_status clab_device_check(const char *id, struct clab_error *error)
{
    const char *p = id + strlen("cuda:");
    if (strncmp(id, "emu:", 4) == 0) {
        if (is_emulated_arch(id + 4))
            return CLAB_OK;
        clab_error_set(error, CLAB_USAGE, "no emulated device is called '%s'", id);
        return list_emulated(error, "one of: ", 0);
    }
    size_t digits = strncmp(id, "cuda:", 5) == 0 ? strspn(p, "0123456789") : 0;
    if (digits >= 1 && digits <= 4 && p[digits] == '\0')
        return CLAB_OK;
    clab_error_set(error, CLAB_USAGE, "'%s' is not a device", id);
    return list_emulated(error, "cuda:0 is the first GPU; emulated devices: ", 0);
}

static int attribute(const struct clab_device *device, CUdevice_attribute which)
{
    int value = 0;
    if (device->driver->cuDeviceGetAttribute(&value, which, device->device) != CUDA_SUCCESS)
        return 0;
    return value;
}

clab_status clab_device_open(struct clab_device *device, const char *id, struct clab_error *error)
{
    memset(device, 0, sizeof *device);
    const char *arch = strncmp(id, "emu:", 4) == 0 ? id + 4 : NULL;
    clab_status status = clab_device_check(id, error);
    if (status != CLAB_OK)
        return status;
    snprintf(device->id, sizeof device->id, "%s", id);
    int ordinal = 0;
    const uint64_t start_ns = clab_now_ns();
    if (arch != NULL) {
        char path[4096];
        setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
        status = clab_driver_emulator_path(path, sizeof path, error);
        if (status == CLAB_OK)
            status = clab_driver_load(path, &device->driver, error);
    } else {
        ordinal = atoi(id + 5);
        status = clab_driver_load(NULL, &device->driver, error);
    }
    if (status != CLAB_OK)
        return status;
    const struct clab_driver *driver = device->driver;
    const uint64_t loaded_ns = clab_now_ns();
    status = CLAB_CALL(driver, error, cuInit, (0), NULL);
    const uint64_t init_ns = clab_now_ns();
    if (status != CLAB_OK) {
        if (error != NULL && status == CLAB_DRIVER)
            error->status = CLAB_NO_DEVICE;
        return CLAB_NO_DEVICE;
    }
    int count = 0;
    status = CLAB_CALL(driver, error, cuDeviceGetCount, (&count), NULL);
    if (status != CLAB_OK)
        return status;
    if (ordinal >= count)
        return clab_error_set(error, CLAB_NO_DEVICE, "no device %s: the driver %s shows %d", id, driver->path,
                              count);
    if ((status = CLAB_CALL(driver, error, cuDeviceGet, (&device->device, ordinal), "ordinal %d", ordinal)) !=
        CLAB_OK)
        return status;
    device->emulated = driver->channel != NULL && driver->channel->emulated != 0;
    device->accepts_cubin = driver->channel == NULL || driver->channel->accepts_cubin != 0;
    device->checks_accesses = driver->channel != NULL && driver->channel->emulated != 0;
    device->timed = driver->channel == NULL || driver->channel->timed != 0;
    device->cc_major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    device->cc_minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    device->max_shared_optin_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    CUuuid uuid;
    if (driver->cuDeviceGetUuid_v2 != NULL &&
        driver->cuDeviceGetUuid_v2(&uuid, device->device) == CUDA_SUCCESS) {
        memcpy(device->uuid, uuid.bytes, sizeof device->uuid);
        device->has_uuid = true;
    }
    device->helpers = calloc(1, sizeof *device->helpers);
    if (device->helpers == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the device %s", id);
    size_t memory = 0;
    if (driver->cuDeviceTotalMem_v2(&memory, device->device) == CUDA_SUCCESS)
        device->memory_bytes = memory;
    const uint64_t asked_ns = clab_now_ns();
    status = CLAB_CALL(driver, error, cuDevicePrimaryCtxRetain, (&device->context, device->device), "%s", id);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuCtxSetCurrent, (device->context), NULL);
    device->driver_ms[0] = (double)(loaded_ns - start_ns) * 1e-6;
    device->driver_ms[1] = (double)(init_ns - loaded_ns) * 1e-6;
    device->driver_ms[2] = (double)(clab_now_ns() - asked_ns) * 1e-6;
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuStreamCreate, (&device->stream, CU_STREAM_NON_BLOCKING), NULL);
    return status;
}

void clab_device_fini(struct clab_device *device)
{
    free(device->helpers);
    device->helpers = NULL;
}

static void set_attribute(json_t *facts, const char *key, const struct clab_device *device,
                          CUdevice_attribute which)
{
    int value = 0;
    bool known = device->driver->cuDeviceGetAttribute(&value, which, device->device) == CUDA_SUCCESS;
    json_object_set_new(facts, key, known ? json_integer(value) : json_null());
}

/* What clusters the device takes. The largest that a small kernel of our own can have, portably and opted in:
   no kernel has a larger one. Opt in before asking: the answer stays portable otherwise (cuda.h,
   cuOccupancyMaxPotentialClusterSize). Null where the device has no clusters. */
static void set_clusters(json_t *facts, const struct clab_device *device)
{
    static const char *const keys[] = {"potential_cluster", "potential_cluster_opted_in"};
    const struct clab_driver *driver = device->driver;
    const bool asks = attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0 &&
                      clab_helpers_load(device, NULL) == CLAB_OK;
    const CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    for (int opt_in = 0; opt_in < 2; opt_in++) {
        int size = 0;
        const bool known = asks &&
                           driver->cuFuncSetAttribute(device->helpers->fill,
                                                      CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                                      opt_in) == CUDA_SUCCESS &&
                           driver->cuOccupancyMaxPotentialClusterSize(&size, device->helpers->fill,
                                                                      &config) == CUDA_SUCCESS &&
                           size > 0;
        json_object_set_new(facts, keys[opt_in], known ? json_integer(size) : json_null());
    }
    json_object_set(facts, "max_cluster", json_object_get(facts, keys[1]));
    json_object_set_new(facts, "sm_groups", asks ? clab_groups_ask(device) : json_null());
}

/* The profile of a MIG instance, from the device's name ("NVIDIA H200 MIG 1g.18gb"), or null. */
static json_t *mig_profile(const char *name)
{
    const char *mig = strstr(name, " MIG ");
    return mig != NULL ? json_string(mig + 5) : json_null();
}

json_t *clab_device_facts(const struct clab_device *device)
{
    const struct clab_driver *driver = device->driver;
    json_t *facts = json_object();
    char text[256] = "";
    json_object_set_new(facts, "id", json_string(device->id));
    if (device->has_uuid) {
        const unsigned char *b = device->uuid;
        snprintf(text, sizeof text,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
                 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
        json_object_set_new(facts, "uuid", json_string(text));
    } else {
        json_object_set_new(facts, "uuid", json_null());
    }
    if (driver->cuDeviceGetName(text, sizeof text, device->device) != CUDA_SUCCESS)
        snprintf(text, sizeof text, "unknown");
    json_object_set_new(facts, "name", json_string(text));
    json_object_set_new(facts, "mig", mig_profile(text));
    snprintf(text, sizeof text, "%d.%d", device->cc_major, device->cc_minor);
    json_object_set_new(facts, "cc", json_string(text));
    json_object_set_new(facts, "cc_major", json_integer(device->cc_major));
    json_object_set_new(facts, "cc_minor", json_integer(device->cc_minor));
    json_object_set_new(facts, "emulated", json_boolean(device->emulated));
    json_object_set_new(facts, "accepts_cubin", json_boolean(device->accepts_cubin));
    json_object_set_new(facts, "timed", json_boolean(device->timed));
    json_object_set_new(facts, "sms", json_integer(device->sms));
    snprintf(text, sizeof text, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    json_object_set_new(facts, "driver", json_string(text));
    json_object_set_new(facts, "driver_path", json_string(driver->path));
    json_object_set_new(facts, "l2_bytes", json_integer(device->l2_bytes));
    json_object_set_new(facts, "memory_bytes", json_integer((json_int_t)device->memory_bytes));
    json_object_set_new(facts, "driver_ms",
                        json_pack("{s:f,s:f,s:f}", "load", device->driver_ms[0], "init", device->driver_ms[1],
                                  "context", device->driver_ms[2]));
    size_t free_bytes = 0, total_bytes = 0;
    if (driver->cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS)
        json_object_set_new(facts, "memory_free_bytes", json_integer((json_int_t)free_bytes));
    static const struct {
        const char *key;
        CUdevice_attribute which;
    } more[] = {
        {"clock_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {"memory_clock_khz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
        {"memory_bus_bits", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
        {"shared_per_sm_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
        {"shared_per_block_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
        {"shared_per_block_optin_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        {"registers_per_sm", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
        {"threads_per_sm", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
        {"threads_per_block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {"cluster_launch", CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        set_attribute(facts, more[i].key, device, more[i].which);
    set_clusters(facts, device);
    return facts;
}
