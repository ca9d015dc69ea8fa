/* NVML beside a measurement (NVML API reference R580). A MIG instance is known by its own UUID; NVML has no
   throttle reasons for it, which leaves them unknown. */
#include "lab/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/nvml.h"

struct clab_watch {
    pthread_t thread;
    bool joined;
    bool loaded; /* nvmlInit succeeded; valid once joined */
    struct clab_nvml nvml;
    clab_nvml_device device; /* NULL: unknown */
    unsigned long long reasons;
};

static void *load(void *context)
{
    struct clab_watch *watch = context;
    watch->loaded =
        clab_nvml_load(&watch->nvml, NULL) == CLAB_OK && watch->nvml.nvmlInit_v2() == CLAB_NVML_SUCCESS;
    return NULL;
}

struct clab_watch *clab_watch_start(void)
{
    struct clab_watch *watch = calloc(1, sizeof *watch);
    if (watch != NULL && pthread_create(&watch->thread, NULL, load, watch) != 0) {
        free(watch);
        return NULL;
    }
    return watch;
}

static void join(struct clab_watch *watch)
{
    if (!watch->joined)
        (void)pthread_join(watch->thread, NULL);
    watch->joined = true;
}

void clab_watch_stop(struct clab_watch *watch)
{
    if (watch == NULL)
        return;
    join(watch);
    if (watch->loaded)
        (void)watch->nvml.nvmlShutdown();
    free(watch);
}

bool clab_watch_device(struct clab_watch *watch, const unsigned char uuid[16])
{
    char text[64];
    if (watch == NULL)
        return false;
    join(watch);
    if (!watch->loaded || watch->device != NULL)
        return watch->device != NULL;
    clab_nvml_uuid_text(uuid, text);
    if (watch->nvml.nvmlDeviceGetHandleByUUID(text, &watch->device) == CLAB_NVML_SUCCESS)
        return true;
    memcpy(text, "MIG", 3); /* as nvidia-smi -L spells a MIG instance's */
    if (watch->nvml.nvmlDeviceGetHandleByUUID(text, &watch->device) == CLAB_NVML_SUCCESS)
        return true;
    watch->device = NULL;
    return false;
}

bool clab_watch_look(struct clab_watch *watch)
{
    unsigned long long reasons;
    if (watch == NULL || watch->device == NULL || !clab_nvml_reasons(&watch->nvml, watch->device, &reasons))
        return false;
    watch->reasons |= reasons;
    return true;
}

void clab_watch_clear(struct clab_watch *watch)
{
    if (watch != NULL)
        watch->reasons = 0;
}

const char *clab_watch_text(const struct clab_watch *watch, char *text, size_t bytes)
{
    text[0] = '\0';
    if (watch != NULL)
        clab_nvml_reason_text(watch->reasons, text, bytes);
    return text;
}

int clab_watch_others(struct clab_watch *watch)
{
    struct clab_nvml_process processes[64];
    unsigned count = sizeof processes / sizeof *processes;
    if (watch == NULL || watch->device == NULL || watch->nvml.nvmlDeviceGetComputeRunningProcesses_v3 == NULL)
        return -1;
    clab_nvml_return result =
        watch->nvml.nvmlDeviceGetComputeRunningProcesses_v3(watch->device, &count, processes);
    if (result != CLAB_NVML_SUCCESS && result != CLAB_NVML_ERROR_INSUFFICIENT_SIZE)
        return -1;
    /* We are one of them, but in a container under a number that is not ours. */
    return count > 0 ? (int)count - 1 : 0;
}
