/* Cold measurement. Every launch is submitted while a one-thread kernel holds the stream, so that what the host needs to
   submit it is not in the time; that kernel gives up after BLOCKER_LIMIT_NS by itself, well before any watchdog. */
#include "lab/measure.h"

#include <stdlib.h>
#include <string.h>

#include "driver/call.h"

#define BLOCKER_LIMIT_NS UINT64_C(5000000000)

/* Spins until the host stores a non-zero word at `flag`, or until the limit is over. PTX ISA 9.0: %globaltimer, ld.volatile. */
static const char blocker_ptx[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry clab_blocker(.param .u64 flag, .param .u64 limit_ns)\n{\n"
    ".reg .pred %stop, %over;\n.reg .b32 %word;\n.reg .b64 %flag, %limit, %start, %now, %spent;\n"
    "ld.param.u64 %flag, [flag];\nld.param.u64 %limit, [limit_ns];\nmov.u64 %start, %globaltimer;\n"
    "again:\nld.volatile.global.u32 %word, [%flag];\nsetp.ne.u32 %stop, %word, 0;\n@%stop bra done;\n"
    "mov.u64 %now, %globaltimer;\nsub.u64 %spent, %now, %start;\nsetp.lt.u64 %over, %spent, %limit;\n"
    "@%over bra again;\ndone:\nret;\n}\n";

struct stand {
    const struct clab_device *device;
    CUmodule module;
    CUfunction blocker;
    volatile uint32_t *flag; /* pinned host memory that the blocker polls */
    CUdeviceptr flag_address;
    CUdeviceptr flush;
    size_t flush_bytes;
    CUevent start, stop;
};

static clab_status stand_init(struct stand *stand, const struct clab_device *device, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    memset(stand, 0, sizeof *stand);
    stand->device = device;
    stand->flush_bytes = (size_t)device->l2_bytes * 2;
    void *host = NULL;
    clab_status status = CLAB_CALL(driver, error, cuModuleLoadDataEx, (&stand->module, blocker_ptx, 0, NULL, NULL),
                                   "the stream blocker");
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuModuleGetFunction, (&stand->blocker, stand->module, "clab_blocker"), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuMemHostAlloc, (&host, sizeof *stand->flag, CU_MEMHOSTALLOC_DEVICEMAP), NULL);
    if (status == CLAB_OK) {
        stand->flag = host;
        status = CLAB_CALL(driver, error, cuMemHostGetDevicePointer_v2, (&stand->flag_address, host, 0), NULL);
    }
    if (status == CLAB_OK && stand->flush_bytes != 0)
        status = CLAB_CALL(driver, error, cuMemAlloc_v2, (&stand->flush, stand->flush_bytes), "flush buffer");
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventCreate, (&stand->start, CU_EVENT_DEFAULT), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventCreate, (&stand->stop, CU_EVENT_DEFAULT), NULL);
    return status;
}

static void stand_fini(struct stand *stand)
{
    const struct clab_driver *driver = stand->device->driver;
    if (stand->start != NULL)
        (void)driver->cuEventDestroy_v2(stand->start);
    if (stand->stop != NULL)
        (void)driver->cuEventDestroy_v2(stand->stop);
    if (stand->flush != 0)
        (void)driver->cuMemFree_v2(stand->flush);
    if (stand->flag != NULL)
        (void)driver->cuMemFreeHost((void *)(uintptr_t)stand->flag);
    if (stand->module != NULL)
        (void)driver->cuModuleUnload(stand->module);
}

static clab_status block(struct stand *stand, struct clab_error *error)
{
    uint64_t limit = BLOCKER_LIMIT_NS;
    void *params[] = {&stand->flag_address, &limit};
    *stand->flag = 0;
    return CLAB_CALL(stand->device->driver, error, cuLaunchKernel,
                     (stand->blocker, 1, 1, 1, 1, 1, 1, 0, stand->device->stream, params, NULL), "the stream blocker");
}

/* One sample. The flag is released on every path, so that a refused launch cannot leave the stream blocked. */
static clab_status sample(struct stand *stand, const struct clab_measured_row *row, double *out_ns,
                          struct clab_error *error)
{
    const struct clab_device *device = stand->device;
    const struct clab_driver *driver = device->driver;
    clab_status status = clab_buffers_reset(device, row->buffers, 0, error);
    if (status == CLAB_OK && stand->flush != 0)
        status = CLAB_CALL(driver, error, cuMemsetD8Async, (stand->flush, 0xa5, stand->flush_bytes, device->stream),
                           "flush");
    if (status == CLAB_OK)
        status = clab_device_wait(device, error);
    if (status == CLAB_OK)
        status = block(stand, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->start, device->stream), NULL);
    if (status == CLAB_OK)
        status = clab_launch_submit(device, row->launch, error);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventRecord, (stand->stop, device->stream), NULL);
    *stand->flag = 1;
    if (status == CLAB_OK)
        status = clab_device_wait(device, error);
    float ms = 0;
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuEventElapsedTime, (&ms, stand->start, stand->stop), NULL);
    *out_ns = (double)ms * 1e6;
    return status;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

clab_status clab_measure_cold(const struct clab_device *device, const struct clab_measured_row *rows, size_t n_rows,
                              const struct clab_measure_options *options,
                              bool (*on_sample)(void *context, unsigned id, unsigned round, double ns), void *context,
                              unsigned *out_failed, struct clab_error *error)
{
    struct stand stand;
    uint64_t random = options->seed * 2 + 1;
    size_t *order = calloc(n_rows + 1, sizeof *order);
    *out_failed = n_rows != 0 ? rows[0].id : 0;
    if (order == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "no memory for the order of rows");
    clab_status status = stand_init(&stand, device, error);
    for (size_t i = 0; i < n_rows; i++)
        order[i] = i;
    for (unsigned round = 0; round < options->warmup + options->rounds && status == CLAB_OK; round++) {
        for (size_t i = n_rows; i > 1; i--) {
            size_t j = next_random(&random) % i, swap = order[i - 1];
            order[i - 1] = order[j];
            order[j] = swap;
        }
        for (size_t i = 0; i < n_rows && status == CLAB_OK; i++) {
            const struct clab_measured_row *row = &rows[order[i]];
            double ns = 0;
            *out_failed = row->id;
            status = sample(&stand, row, &ns, error);
            if (status == CLAB_OK && round >= options->warmup &&
                !on_sample(context, row->id, round - options->warmup, ns))
                status = clab_error_set(error, CLAB_OUTPUT, "the sample could not be handed on");
        }
    }
    if (status == CLAB_OK || error == NULL || !clab_call_is_sticky((CUresult)error->native_code))
        stand_fini(&stand);
    free(order);
    return status;
}
