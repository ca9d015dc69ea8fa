/* NVML, the GPU's clocks, temperature and throttle reasons, as one struct of function pointers.

   nvml.h is not part of every toolkit, so the few prototypes used are declared here, from the NVML API
   reference (R580): names, argument order and widths are the library's ABI. */
#ifndef CLAB_DRIVER_NVML_H
#define CLAB_DRIVER_NVML_H

#include <stddef.h>

#include "base/error.h"

typedef int clab_nvml_return; /* nvmlReturn_t; 0 is success */
enum { CLAB_NVML_SUCCESS = 0, CLAB_NVML_ERROR_NOT_SUPPORTED = 3, CLAB_NVML_ERROR_INSUFFICIENT_SIZE = 7 };
typedef struct clab_nvml_device_handle *clab_nvml_device;                   /* nvmlDevice_t */
enum { CLAB_NVML_CLOCK_GRAPHICS, CLAB_NVML_CLOCK_SM, CLAB_NVML_CLOCK_MEM }; /* nvmlClockType_t */
enum { CLAB_NVML_TEMPERATURE_GPU };                                         /* nvmlTemperatureSensors_t */

/* Bits of the clocks event reasons, nvmlClocksEventReason*. */
#define CLAB_NVML_REASON_GPU_IDLE            0x001ull
#define CLAB_NVML_REASON_APPLICATIONS_CLOCKS 0x002ull
#define CLAB_NVML_REASON_SW_POWER_CAP        0x004ull
#define CLAB_NVML_REASON_HW_SLOWDOWN         0x008ull
#define CLAB_NVML_REASON_SYNC_BOOST          0x010ull
#define CLAB_NVML_REASON_SW_THERMAL          0x020ull
#define CLAB_NVML_REASON_HW_THERMAL          0x040ull
#define CLAB_NVML_REASON_HW_POWER_BRAKE      0x080ull
#define CLAB_NVML_REASON_DISPLAY_CLOCK       0x100ull

struct clab_nvml_process { /* nvmlProcessInfo_t of the _v3 call */
    unsigned int pid;
    unsigned long long used_memory_bytes;
    unsigned int gpu_instance, compute_instance;
};

/* Types by which the table's members are declared; nothing defines functions of these names. */
clab_nvml_return nvmlInit_v2(void);
clab_nvml_return nvmlShutdown(void);
const char *nvmlErrorString(clab_nvml_return result);
clab_nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, clab_nvml_device *device);
clab_nvml_return nvmlSystemGetDriverVersion(char *version, unsigned int length);
clab_nvml_return nvmlDeviceGetClockInfo(clab_nvml_device device, int clock, unsigned int *mhz);
clab_nvml_return nvmlDeviceGetMaxClockInfo(clab_nvml_device device, int clock, unsigned int *mhz);
clab_nvml_return nvmlDeviceGetCurrentClocksEventReasons(clab_nvml_device device, unsigned long long *reasons);
clab_nvml_return nvmlDeviceGetCurrentClocksThrottleReasons(clab_nvml_device device,
                                                           unsigned long long *reasons);
clab_nvml_return nvmlDeviceGetTemperature(clab_nvml_device device, int sensor, unsigned int *celsius);
clab_nvml_return nvmlDeviceGetPowerUsage(clab_nvml_device device, unsigned int *milliwatts);
clab_nvml_return nvmlDeviceGetMigMode(clab_nvml_device device, unsigned int *current, unsigned int *pending);
clab_nvml_return nvmlDeviceGetComputeRunningProcesses_v3(clab_nvml_device device, unsigned int *count,
                                                         struct clab_nvml_process *processes);

struct clab_nvml {
    char path[4096];
#define FN(member, symbol, since, required) __typeof__(symbol) *member;
#include "driver/nvml.def"
};

/* Loads libnvidia-ml.so.1 into *out; the caller calls nvmlInit_v2. CLAB_WAIVED when it is not there: clocks
   and throttle reasons are then unknown, and nothing else is. */
clab_status clab_nvml_load(struct clab_nvml *out, struct clab_error *error);

/* The clocks event reasons now, by the new or the old name of the call. False when they cannot be known. */
bool clab_nvml_reasons(const struct clab_nvml *nvml, clab_nvml_device device,
                       unsigned long long *out_reasons);
/* "sw power cap, hw thermal": the reasons of `bits` that slow a kernel down; "" when none does (being idle
   and a chosen application clock are not throttling). */
void clab_nvml_reason_text(unsigned long long bits, char *text, size_t bytes);
/* "GPU-9a3c...": NVML's spelling of a device's UUID as cuDeviceGetUuid_v2 gives it. `text` has room for 41
 * bytes. */
void clab_nvml_uuid_text(const unsigned char uuid[16], char *text);

#endif
