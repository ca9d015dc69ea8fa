/* Loading NVML, and the three small readings that measurement needs beside plain calls. */
#include "driver/nvml.h"

#include <stdio.h>
#include <string.h>

#include "driver/library.h"

static const struct clab_symbol symbols[] = {
#define FN(member, symbol, since, required) {#symbol, offsetof(struct clab_nvml, member), since, required},
#include "driver/nvml.def"
};

clab_status clab_nvml_load(struct clab_nvml *out, struct clab_error *error)
{
    const char *names[] = {"libnvidia-ml.so.1", NULL};
    char reason[512];
    memset(out, 0, sizeof *out);
    void *handle = clab_library_open(names, out->path, sizeof out->path, reason, sizeof reason);
    if (handle == NULL)
        return clab_error_set(error, CLAB_WAIVED, "no NVML: %s", reason);
    const struct clab_symbol *missing =
        clab_library_fill(handle, symbols, sizeof symbols / sizeof symbols[0], out, NULL);
    if (missing != NULL)
        return clab_error_set(error, CLAB_WAIVED, "%s has no %s", out->path, missing->name);
    return CLAB_OK;
}

bool clab_nvml_reasons(const struct clab_nvml *nvml, clab_nvml_device device, unsigned long long *out_reasons)
{
    *out_reasons = 0;
    if (nvml->nvmlDeviceGetCurrentClocksEventReasons != NULL &&
        nvml->nvmlDeviceGetCurrentClocksEventReasons(device, out_reasons) == CLAB_NVML_SUCCESS)
        return true;
    return nvml->nvmlDeviceGetCurrentClocksThrottleReasons != NULL &&
           nvml->nvmlDeviceGetCurrentClocksThrottleReasons(device, out_reasons) == CLAB_NVML_SUCCESS;
}

void clab_nvml_reason_text(unsigned long long bits, char *text, size_t bytes)
{
    static const struct {
        unsigned long long bit;
        const char *name;
    } reasons[] = {
        {CLAB_NVML_REASON_SW_POWER_CAP, "sw power cap"},
        {CLAB_NVML_REASON_HW_SLOWDOWN, "hw slowdown"},
        {CLAB_NVML_REASON_SYNC_BOOST, "sync boost"},
        {CLAB_NVML_REASON_SW_THERMAL, "sw thermal"},
        {CLAB_NVML_REASON_HW_THERMAL, "hw thermal"},
        {CLAB_NVML_REASON_HW_POWER_BRAKE, "hw power brake"},
        {CLAB_NVML_REASON_DISPLAY_CLOCK, "display clock"},
    };
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if ((bits & reasons[i].bit) != 0 && length < bytes) {
            int wrote =
                snprintf(text + length, bytes - length, "%s%s", length > 0 ? ", " : "", reasons[i].name);
            length += wrote > 0 ? (size_t)wrote : 0;
        }
}

void clab_nvml_uuid_text(const unsigned char uuid[16], char *text)
{
    const unsigned char *u = uuid;
    snprintf(text, 41, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}
