/* "Execution Control": attributes of functions. Launches are in api_launch.c. */
#include "emu/api.h"

#include <string.h>

CUresult api_function_get(struct api_context *context, CUfunction handle, struct api_function **out_function)
{
    struct api_function *function = emu_handle_get(EMU_HANDLE_FUNCTION, handle);
    if (function != NULL) {
        *out_function = function;
        return CUDA_SUCCESS;
    }
    struct api_kernel *kernel = emu_handle_get(EMU_HANDLE_KERNEL, handle);
    if (kernel != NULL)
        return api_kernel_function(context, kernel, out_function);
    return api_set_error(CUDA_ERROR_INVALID_HANDLE, "not a live function");
}

/* A CUkernel does not do here, as on an H200. */
static CUresult enter_function(const char *call, CUfunction handle, struct api_function **out_function)
{
    CUresult result;
    *out_function = api_enter_object(call, EMU_HANDLE_FUNCTION, handle, CUDA_ERROR_INVALID_HANDLE, &result);
    return *out_function == NULL ? result : api_use_context((*out_function)->module->context);
}

/* The same; NULL is an INVALID_VALUE. */
static CUresult enter_named(const char *call, CUfunction handle, struct api_function **out_function)
{
    if (handle != NULL)
        return enter_function(call, handle, out_function);
    CUresult result;
    *out_function = api_enter_object(call, EMU_HANDLE_FUNCTION, handle, CUDA_ERROR_INVALID_VALUE, &result);
    return result;
}

CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct api_function *function;
    CUresult result = enter_function(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pi != NULL);
    return api_result(api_settings_read(&function->settings, &function->info, attrib, pi));
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct api_function *function;
    CUresult result = enter_function(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return api_result(api_settings_set(&function->settings, &function->info, attrib, value));
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    struct api_function *function;
    CUresult result = enter_function(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL);
    function->settings.cache = config;
    return api_leave();
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    struct api_function *function;
    CUresult result = enter_function(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    return api_leave();
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct api_function *function;
    CUresult result = enter_named(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(hmod != NULL);
    *hmod = function->module->handle;
    return api_leave();
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct api_function *function;
    CUresult result = enter_named(__func__, hfunc, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(name != NULL);
    *name = function->info.function->name;
    return api_leave();
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize)
{
    struct api_function *function;
    CUresult result = enter_named(__func__, func, &function);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(paramOffset != NULL && paramIndex < function->info.n_params);
    *paramOffset = function->info.param_offsets[paramIndex];
    if (paramSize != NULL)
        *paramSize = function->info.param_sizes[paramIndex];
    return api_leave();
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct api_function *found;
    CUresult result = enter_function(__func__, function, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(state != NULL);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return api_leave();
}

CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    struct api_function *found;
    CUresult result = enter_function(__func__, function, &found);
    return result != CUDA_SUCCESS ? result : api_leave();
}
