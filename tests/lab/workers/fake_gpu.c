/* A libcuda that says it is timed and whose kernels misbehave by name, so that the parent's side of a device
   worker is tested without a GPU. A kernel stores 7 at its first argument, in 100 us of the GPU's clock and 1
   ms of ours (the latter bounds the number of warm-up launches: some rounds are sampled before anything
   late). NAME_late does so for 15 launches and then: hang_late    never ends               crash_late   the
   process gets SIGSEGV fault_late   an illegal address       killed_late  the process gets SIGKILL, as from
   outside wrong_late   stores 8 from then on    slow_late    runs at a third of the clock hang and fault do
   it at once; slow takes 20 ms of our time. FAKE_GPU_DIES=FILE: the first process ends in its third fill and
   leaves FILE; with FAKE_GPU_DIES_AGAIN set, each further process ends in its first. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "driver/channel.h"
#include "driver/cuda_names.h"
#pragma GCC visibility pop

#define LATE 15 /* launches before a NAME_late shows what it is */

struct CUfunc_st {
    char name[64];
    unsigned launches;
};
struct CUevent_st {
    double ns;
};

static double now_ns = 1e9, cycles = 1e9, ghz = 2;
static CUresult sticky = CUDA_SUCCESS;
static int hangs;
static unsigned fills;

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static int last_counters(struct clab_counters *out)
{
    memset(out, 0, sizeof *out);
    return 0;
}

static int last_error(struct clab_error *out)
{
    (void)out;
    return 0;
}

static clab_status set_option(const char *name, const char *value, struct clab_error *error)
{
    (void)name, (void)value, (void)error;
    return CLAB_OK;
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    static const struct clab_channel channel = {.size_bytes = sizeof channel,
                                                .version = CLAB_CHANNEL_VERSION,
                                                .error_bytes = sizeof(struct clab_error),
                                                .counters_bytes = sizeof(struct clab_counters),
                                                .emulated = 1,
                                                .timed = 1,
                                                .name = "fake",
                                                .last_counters = last_counters,
                                                .last_error = last_error,
                                                .set_option = set_option};
    if (memcmp(id, CLAB_CHANNEL_UUID, 16) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *table = &channel;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = 0;
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = 9;
    else if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = 2;
    else if (which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        *value = 4096;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    *unused = *total = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)bytes, "fake GPU");
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                            void **values)
{
    (void)image, (void)count, (void)options, (void)values;
    *module = (CUmodule)(void *)&now_ns;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = calloc(1, sizeof **function);
    if (*function == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    void *memory = calloc(1, bytes);
    *address = (CUdeviceptr)(uintptr_t)memory;
    return memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    free((void *)(uintptr_t)address);
    return sticky;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    *pointer = calloc(1, bytes);
    return *pointer != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags)
{
    (void)flags;
    *address = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *pointer)
{
    free(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)address, value, bytes);
    return sticky;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemsetD8_v2(address, value, bytes);
}

static void die_filling(void)
{
    const char *mark = getenv("FAKE_GPU_DIES");
    if (mark == NULL)
        return;
    const int first = access(mark, F_OK) != 0;
    if (++fills != (first ? 3 : 1) || (!first && getenv("FAKE_GPU_DIES_AGAIN") == NULL))
        return;
    FILE *file = fopen(mark, "w");
    if (file != NULL)
        fclose(file);
    _exit(9);
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    die_filling();
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)address)[i] = value;
    return sticky;
}

CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr address, size_t bytes)
{
    memcpy(host, (void *)(uintptr_t)address, bytes);
    return sticky;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr address, const void *host, size_t bytes)
{
    memcpy((void *)(uintptr_t)address, host, bytes);
    return sticky;
}

static void pass(double ns)
{
    now_ns += ns;
    cycles += ns * ghz;
}

/* Our own helpers: the blocker does nothing, a stamp writes {ns, cycles, tag}. */
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    if (strcmp(function->name, "clab_stamp") == 0) {
        uint64_t *slots = (uint64_t *)(uintptr_t) * (CUdeviceptr *)params[0];
        for (unsigned i = 0; i < gx; i++) {
            slots[4 * i] = (uint64_t)now_ns;
            slots[4 * i + 1] = (uint64_t)cycles;
            slots[4 * i + 2] = *(uint64_t *)params[2];
        }
        pass(1000);
    }
    return sticky;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    (void)config, (void)extra;
    const char *name = function->name;
    const int late = function->launches++ >= LATE;
    uint32_t *out = (uint32_t *)(uintptr_t) * (CUdeviceptr *)params[0];
    ghz = strcmp(name, "slow_late") == 0 && late ? 2.0 / 3 : 2;
    pass(100e3);
    ghz = 2;
    *out = strcmp(name, "wrong_late") == 0 && late ? 8 : 7;
    if (strcmp(name, "hang") == 0 || (strcmp(name, "hang_late") == 0 && late))
        hangs = 1;
    if (strcmp(name, "fault") == 0 || (strcmp(name, "fault_late") == 0 && late))
        sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (strcmp(name, "crash_late") == 0 && late)
        raise(SIGSEGV);
    if (strcmp(name, "killed_late") == 0 && late)
        raise(SIGKILL);
    nanosleep(&(struct timespec){.tv_nsec = strcmp(name, "slow") == 0 ? 20000000 : 1000000}, NULL);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    while (hangs)
        pause();
    return sticky;
}

CUresult cuCtxSynchronize(void)
{
    return cuStreamSynchronize(NULL);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    event->ns = now_ns;
    return sticky;
}

CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((b->ns - a->ns) / 1e6);
    return sticky;
}

CUresult cuGetErrorName(CUresult result, const char **name)
{
    *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
    (void)result;
    *text = "an illegal memory access was encountered";
    return CUDA_SUCCESS;
}
