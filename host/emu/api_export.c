/* cuGetExportTable, and the one table behind it: the private channel to the clusterlab host
   (driver/channel.h). Other tables are refused, and the log names their id. libcudart asks for several; with
   one of them it establishes that the driver is NVIDIA's own (cudaErrorSoftwareValidityNotEstablished), which
   a stand-in is not and does not pretend to be. */
#include "emu/api_options.h"

#include "check/check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Of the launch that finished last. */
static struct {
    pthread_mutex_t lock;
    struct clab_counters counters;
    bool any;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

void api_counters_set(const struct clab_counters *counters)
{
    pthread_mutex_lock(&last.lock);
    last.counters = *counters;
    last.any = true;
    pthread_mutex_unlock(&last.lock);
}

static int last_counters(struct clab_counters *out)
{
    pthread_mutex_lock(&last.lock);
    *out = last.counters;
    int any = last.any;
    pthread_mutex_unlock(&last.lock);
    return any;
}

static int last_error(struct clab_error *out)
{
    struct api_thread *thread = api_thread();
    clab_error_clear(out);
    if (thread->has_error) {
        clab_error_copy(out, &thread->error);
        return 1;
    }
    api_lock();
    struct api_context *context;
    bool faulty = api_device() != NULL && api_context_current(&context) == CUDA_SUCCESS &&
                  context->sticky != CUDA_SUCCESS;
    if (faulty) {
        const char *name = api_error_name(context->sticky);
        clab_error_copy(out, &context->fault);
        out->native_code = (int)context->sticky;
        snprintf(out->native_name, sizeof out->native_name, "%s", name != NULL ? name : "");
    }
    api_unlock();
    return faulty;
}

static clab_status set_option(const char *name, const char *value, struct clab_error *error)
{
    if (name == NULL)
        return clab_error_set(error, CLAB_USAGE, "no option is named");
    api_lock();
    struct api_device *device = api_device();
    clab_status status = device != NULL ? api_option_set(device->machine, name, value, error)
                                        : clab_error_set(error, CLAB_USAGE, "cuInit was not called");
    api_unlock();
    return status;
}

static const struct clab_channel channel = {
    .size_bytes = sizeof channel,
    .version = CLAB_CHANNEL_VERSION,
    .error_bytes = sizeof(struct clab_error),
    .counters_bytes = sizeof(struct clab_counters),
    .emulated = 1,
    .accepts_cubin = 0,
    .timed = 0,
    .has_hazards = 1,
    .name = "clusterlab stand-in driver " CLAB_VERSION,
    .last_counters = last_counters,
    .last_error = last_error,
    .set_option = set_option,
    .hazards = &check_channel,
};

CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    static const CUuuid ours = {.bytes = CLAB_CHANNEL_UUID};
    if (ppExportTable == NULL || pExportTableId == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(pExportTableId->bytes, ours.bytes, sizeof ours.bytes) == 0) {
        *ppExportTable = &channel;
        emu_log_host();
        return CUDA_SUCCESS;
    }
    *ppExportTable = NULL;
    char id[2 * sizeof ours.bytes + 1];
    for (size_t i = 0; i < sizeof ours.bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", (unsigned)(unsigned char)pExportTableId->bytes[i]);
    emu_log_once(
        "export table %s is not emulated (libcudart needs private tables: programs must use the driver "
        "API)",
        id);
    return CUDA_ERROR_INVALID_VALUE; /* what an H200 says */
}
