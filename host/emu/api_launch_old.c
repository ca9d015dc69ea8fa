/* "Execution Control [DEPRECATED]": the launch calls of CUDA 3. A function keeps a block shape, a size of
   dynamic shared memory and a block of parameters, and is launched with them. Leaves out cuParamSetTexRef,
   which asks nothing of a driver any more (CUDA Driver API 13.0). */
#include "emu/api.h"

#include <stdlib.h>
#include <string.h>

#define PARAM_MAX_BYTES 32764u

struct api_old_launch {
    unsigned block[3];
    unsigned shared_bytes;
    size_t param_bytes;
    unsigned char params[PARAM_MAX_BYTES];
};

static CUresult enter_function(const char *call, CUfunction handle, struct api_old_launch **out)
{
    struct api_context *context;
    struct api_function *function;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_function_get(context, handle, &function);
    if (result == CUDA_SUCCESS && function->module->context != context)
        result = api_set_error(CUDA_ERROR_INVALID_HANDLE,
                               "the function is of another context than the current one");
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (function->old == NULL)
        function->old = calloc(1, sizeof *function->old);
    if (function->old == NULL)
        return api_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the parameters of a launch");
    *out = function->old;
    return CUDA_SUCCESS;
}

#define ENTER_FUNCTION(old, handle)                                 \
    struct api_old_launch *old = NULL;                              \
    do {                                                            \
        CUresult entered_ = enter_function(__func__, handle, &old); \
        if (entered_ != CUDA_SUCCESS)                               \
            return entered_;                                        \
    } while (0)

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    ENTER_FUNCTION(old, hfunc);
    API_REQUIRE(x > 0 && y > 0 && z > 0 && x <= 1024 && y <= 1024 && z <= 64 && x * y * z <= 1024);
    old->block[0] = (unsigned)x;
    old->block[1] = (unsigned)y;
    old->block[2] = (unsigned)z;
    return api_leave();
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    ENTER_FUNCTION(old, hfunc);
    API_REQUIRE(bytes <= api_device()->model->shared_per_block_optin_bytes);
    old->shared_bytes = bytes;
    return api_leave();
}

CUresult CUDAAPI cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    ENTER_FUNCTION(old, hfunc);
    API_REQUIRE(numbytes <= PARAM_MAX_BYTES);
    old->param_bytes = numbytes;
    return api_leave();
}

static CUresult set(struct api_old_launch *old, int offset, const void *value, size_t bytes)
{
    API_REQUIRE(offset >= 0 && (bytes == 0 || value != NULL));
    API_REQUIRE((size_t)offset <= PARAM_MAX_BYTES && bytes <= PARAM_MAX_BYTES - (size_t)offset);
    if (bytes > 0)
        memcpy(old->params + offset, value, bytes);
    return api_leave();
}

CUresult CUDAAPI cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    ENTER_FUNCTION(old, hfunc);
    return set(old, offset, &value, sizeof value);
}

CUresult CUDAAPI cuParamSetf(CUfunction hfunc, int offset, float value)
{
    ENTER_FUNCTION(old, hfunc);
    return set(old, offset, &value, sizeof value);
}

CUresult CUDAAPI cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    ENTER_FUNCTION(old, hfunc);
    return set(old, offset, ptr, numbytes);
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    ENTER_FUNCTION(old, f);
    API_REQUIRE(grid_width > 0 && grid_height > 0);
    if (old->block[0] == 0) /* cuFuncSetBlockShape was not called */
        old->block[0] = old->block[1] = old->block[2] = 1;
    unsigned char params[PARAM_MAX_BYTES]; /* copied: the lock is given up before the launch takes it */
    size_t bytes = old->param_bytes;
    const unsigned block[3] = {old->block[0], old->block[1], old->block[2]}, shared = old->shared_bytes;
    memcpy(params, old->params, bytes);
    (void)api_leave();
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(f, (unsigned)grid_width, (unsigned)grid_height, 1, block[0], block[1], block[2],
                          shared, hStream, NULL, extra);
}

CUresult CUDAAPI cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return cuLaunchGridAsync(f, grid_width, grid_height, NULL);
}

CUresult CUDAAPI cuLaunch(CUfunction f)
{
    return cuLaunchGrid(f, 1, 1);
}

CUresult CUDAAPI cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
    ENTER_FUNCTION(old, hfunc);
    (void)old;
    API_REQUIRE(texunit == CU_PARAM_TR_DEFAULT && emu_handle_get(EMU_HANDLE_TEXREF, hTexRef) != NULL);
    return api_leave();
}
