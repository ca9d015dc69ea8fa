/* "Initialization" and "Version Management": cuInit, cuDriverGetVersion, and the options that the environment
   sets (CLUSTERLAB_EMU_ARCH, _SCHEDULE, _SEED, _ISA, _INITIAL_CLUSTERS, _DECLINE, _DRIVER, _THREADS, _BUDGET,
   _TRACE). One device is emulated. */
#include "emu/api_options.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct api_device device;

struct api_device *api_device(void)
{
    return device.machine != NULL ? &device : NULL;
}

/* The library may not be unloaded: its threads run its code. */
static void stay_loaded(void)
{
    Dl_info info;
    static const char anchor = 0;
    if (dladdr(&anchor, &info) != 0 && info.dli_fname != NULL)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static CUresult set_up(void)
{
    const char *arch = getenv("CLUSTERLAB_EMU_ARCH");
    if (arch == NULL || arch[0] == '\0')
        arch = "sm_90";
    const struct emu_model *model = emu_model_get(arch);
    if (model == NULL)
        return api_set_error(CUDA_ERROR_NO_DEVICE,
                             "CLUSTERLAB_EMU_ARCH=%s names no emulated device: wanted sm_90, "
                             "sm_100, sm_103, sm_110, sm_120 or sm_121",
                             arch);
    struct emu_machine *machine = NULL;
    struct clab_error error = {0};
    if (emu_machine_new(model, &machine, &error) != CLAB_OK) {
        CUresult result = api_copy_error(CUDA_ERROR_OUT_OF_MEMORY, &error);
        clab_error_clear(&error);
        return result;
    }
    if (api_options_from_environment(machine, &error) != CLAB_OK) {
        CUresult result = api_copy_error(CUDA_ERROR_INVALID_VALUE, &error);
        clab_error_clear(&error);
        emu_machine_free(machine);
        return result;
    }
    device.model = model;
    /* Recognisable, and different for each model: "clusterlab" and the architecture. */
    snprintf(device.uuid.bytes, sizeof device.uuid.bytes, "clusterlab%u", (unsigned)model->sm);
    stay_loaded();
    device.machine = machine;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    struct api_thread *thread = api_thread();
    api_lock();
    thread->call = __func__;
    if (Flags != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "flags are %u, wanted 0", Flags);
    if (api_forked())
        return api_fail(CUDA_ERROR_NOT_INITIALIZED,
                        "the process was forked after cuInit: call it in the child only");
    if (device.machine == NULL)
        return api_result(set_up());
    return api_leave();
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    if (driverVersion == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = API_DRIVER_VERSION;
    return CUDA_SUCCESS;
}
