/* "Primary Context Management". The primary context keeps its handle for the life of the process: released
   and retained again it is fresh, and a thread to which it is still current can use it again. */
#include "emu/api_context.h"

/* Until a reset or the last release by another thread is through. */
static void wait_for_the_end(void)
{
    while (api_device()->primary != NULL && api_device()->primary->ending)
        api_wait_for_change();
}

static CUresult enter_device(const char *call, CUdevice dev)
{
    CUresult result = api_enter(call);
    if (result != CUDA_SUCCESS)
        return result;
    return dev == 0 ? CUDA_SUCCESS
                    : api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
}

CUresult api_primary_retain(struct api_context **out_primary)
{
    struct api_device *device = api_device();
    wait_for_the_end();
    if ((device->primary == NULL || !device->primary->active) && device->poison != CUDA_SUCCESS)
        return api_set_error(device->poison, API_POISONED);
    if (device->primary == NULL)
        device->primary = api_context_new(device->primary_flags, true);
    else if (!device->primary->active && !api_context_activate(device->primary))
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a context");
    if (device->primary == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a context");
    device->primary->flags = device->primary_flags;
    device->primary->retained++;
    *out_primary = device->primary;
    return CUDA_SUCCESS;
}

void api_primary_release(void)
{
    struct api_context *primary = api_device()->primary;
    if (primary->retained > 0 && --primary->retained == 0 && primary->active)
        api_contexts_end(primary);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult entered = enter_device(__func__, dev);
    if (entered != CUDA_SUCCESS)
        return entered;
    API_REQUIRE(pctx != NULL);
    struct api_context *primary;
    CUresult result = api_primary_retain(&primary);
    if (result == CUDA_SUCCESS)
        *pctx = primary->handle;
    return api_result(result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult entered = enter_device(__func__, dev);
    if (entered != CUDA_SUCCESS)
        return entered;
    struct api_context *primary = api_device()->primary;
    if (primary == NULL || primary->retained == 0)
        return api_fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
    api_primary_release();
    return api_leave();
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}

/* Destroys everything in it. Those to whom it is current get CONTEXT_IS_DESTROYED until it is retained again.
 */
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    CUresult entered = enter_device(__func__, dev);
    if (entered != CUDA_SUCCESS)
        return entered;
    struct api_context *primary = api_device()->primary;
    if (primary != NULL && primary->active)
        api_contexts_end(primary);
    api_device()->primary_flags = 0;
    wait_for_the_end();
    return api_leave();
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult entered = enter_device(__func__, dev);
    if (entered != CUDA_SUCCESS)
        return entered;
    API_REQUIRE(flags != NULL && active != NULL);
    struct api_device *device = api_device();
    *flags = device->primary_flags;
    *active = device->primary != NULL && device->primary->active;
    return api_leave();
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    CUresult entered = enter_device(__func__, dev);
    if (entered != CUDA_SUCCESS)
        return entered;
    struct api_device *device = api_device();
    if (!api_context_flags_valid(flags) || (flags & CU_CTX_MAP_HOST) != 0)
        return api_fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags in 0x%x", flags);
    device->primary_flags = flags;
    if (device->primary != NULL)
        device->primary->flags = flags;
    return api_leave();
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
