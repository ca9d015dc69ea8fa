/* A libnvidia-ml of a few lines for test_watch.c: it knows one GPU and one MIG instance by UUID. FAKE_NVML
   says what is wrong with it: "no-init" fails to start, "no-reasons" cannot tell throttle reasons. */
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#include "driver/nvml.h"
#pragma GCC visibility pop

static int asked;

static int wrong(const char *how)
{
    const char *setting = getenv("FAKE_NVML");
    return setting != NULL && strcmp(setting, how) == 0;
}

clab_nvml_return nvmlInit_v2(void)
{
    return wrong("no-init") ? 9 : CLAB_NVML_SUCCESS;
}

clab_nvml_return nvmlShutdown(void)
{
    return CLAB_NVML_SUCCESS;
}

const char *nvmlErrorString(clab_nvml_return result)
{
    (void)result;
    return "fake";
}

clab_nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, clab_nvml_device *device)
{
    *device = (clab_nvml_device)(void *)&asked;
    if (strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f") == 0 ||
        strcmp(uuid, "MIG-ff010203-0405-0607-0809-0a0b0c0d0e0f") == 0)
        return CLAB_NVML_SUCCESS;
    return 6; /* NVML_ERROR_NOT_FOUND */
}

clab_nvml_return nvmlDeviceGetCurrentClocksEventReasons(clab_nvml_device device, unsigned long long *reasons)
{
    (void)device;
    if (wrong("no-reasons"))
        return CLAB_NVML_ERROR_NOT_SUPPORTED;
    *reasons = asked++ == 0 ? CLAB_NVML_REASON_GPU_IDLE : CLAB_NVML_REASON_SW_POWER_CAP;
    return CLAB_NVML_SUCCESS;
}

clab_nvml_return nvmlDeviceGetComputeRunningProcesses_v3(clab_nvml_device device, unsigned int *count,
                                                         struct clab_nvml_process *processes)
{
    (void)device;
    processes[0].pid = 1;
    processes[1].pid = 2;
    processes[2].pid = 3;
    *count = 3;
    return CLAB_NVML_SUCCESS;
}
