/* From CUresult to struct clab_error. The codes are those of the CUDA Driver API 13.0, "Data types used by
   CUDA driver", enum CUresult; which of them a launch returns in which case was seen on an H200 (driver
   580.159.04): an impossible cluster is INVALID_CLUSTER_SIZE, too much shared memory INVALID_VALUE. */
#include "driver/call.h"

#include <stdio.h>
#include <string.h>

bool clab_call_is_sticky(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
        return true;
    default:
        return false;
    }
}

clab_status clab_call_status(const char *call, CUresult result)
{
    bool launch = strncmp(call, "cuLaunch", 8) == 0;
    if (result == CUDA_SUCCESS)
        return CLAB_OK;
    if (result == CUDA_ERROR_LAUNCH_TIMEOUT)
        return CLAB_TIMEOUT;
    if (clab_call_is_sticky(result))
        return CLAB_FAULT;
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CLAB_NO_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return CLAB_NO_DEVICE;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
        return CLAB_LOAD;
    case CUDA_ERROR_NOT_FOUND:
        return CLAB_NOT_FOUND;
    case CUDA_ERROR_NOT_SUPPORTED:
        return CLAB_UNSUPPORTED;
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
        return CLAB_LAUNCH;
    default:
        return launch ? CLAB_LAUNCH : CLAB_DRIVER;
    }
}

const char *clab_call_name(const struct clab_driver *driver, CUresult result)
{
    const char *name = NULL;
    if (driver->cuGetErrorName == NULL || driver->cuGetErrorName(result, &name) != CUDA_SUCCESS ||
        name == NULL)
        return "";
    return name;
}

/* What to do about it, where one answer fits nearly every case; NULL elsewhere. */
static const char *remedy(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "the PTX is newer than the driver: use --image cubin, or an NVRTC no newer than the driver";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return "the cubin is for another chip: compile for this device's architecture";
    case CUDA_ERROR_STUB_LIBRARY:
        return "this libcuda is the toolkit's stub for linking: take its folder out of LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "libcuda and the kernel module differ in version: reboot, or reload the nvidia module";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
        return "the same run with --device emu:sm_90 names the instruction and the thread";
    default:
        return NULL;
    }
}

/* The call's name without the suffix that only tells forms apart: cuMemAlloc_v2 is cuMemAlloc to people. */
static void plain_name(const char *call, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", call);
    char *suffix = strstr(out, "_v");
    if (suffix != NULL && suffix[2] >= '0' && suffix[2] <= '9')
        *suffix = '\0';
}

clab_status clab_call_result(const struct clab_driver *driver, struct clab_error *error, const char *call,
                             CUresult result, const char *format, ...)
{
    if (result == CUDA_SUCCESS)
        return CLAB_OK;
    char name[64];
    plain_name(call, name, sizeof name);
    char arguments[512] = "";
    if (format != NULL && format[0] != '\0') {
        va_list list;
        va_start(list, format);
        vsnprintf(arguments, sizeof arguments, format, list);
        va_end(list);
    }

    /* Fetched before any other driver call, which would replace it. */
    struct clab_error detail = {0};
    bool detailed = driver->channel != NULL && driver->channel->last_error != NULL &&
                    driver->channel->last_error(&detail) && detail.native_code == (int)result &&
                    detail.status != CLAB_OK;
    const char *text = NULL;
    const char *known = clab_call_name(driver, result);
    if (driver->cuGetErrorString != NULL && driver->cuGetErrorString(result, &text) != CUDA_SUCCESS)
        text = NULL;

    clab_status status = clab_call_status(call, result);
    if (detailed) {
        status = detail.status;
        if (error != NULL) {
            clab_error_copy(error, &detail);
            clab_error_context(error, "%s%s%s%s", name, arguments[0] ? " (" : "", arguments,
                               arguments[0] ? ")" : "");
        }
    } else if (arguments[0] != '\0') {
        clab_error_set(error, status, "%s failed (%s): %s", name, arguments,
                       text != NULL ? text : "unknown error");
    } else {
        clab_error_set(error, status, "%s failed: %s", name, text != NULL ? text : "unknown error");
    }
    clab_error_native(error, name, (int)result, known);
    if (remedy(result) != NULL && error != NULL && error->remedy[0] == '\0' &&
        !(driver->channel != NULL && clab_call_is_sticky(result)))
        clab_error_remedy(error, "%s", remedy(result));
    clab_error_clear(&detail);
    return status;
}

clab_status clab_call_missing(const struct clab_driver *driver, struct clab_error *error, const char *symbol)
{
    int since = clab_driver_symbol_since(symbol);
    char name[64];
    plain_name(symbol, name, sizeof name);
    clab_error_set(error, CLAB_UNSUPPORTED, "this driver has no %s: CUDA %d.%d brought it, %s is for %d.%d",
                   name, since / 1000, since % 1000 / 10, driver->path, driver->version / 1000,
                   driver->version % 1000 / 10);
    return CLAB_UNSUPPORTED;
}
