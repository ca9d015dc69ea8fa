/* "Module Management": loading, functions and variables by name. Images are image.c's, JIT options jit.c's,
   linking api_link.c's. Texture and surface references do not exist here. */
#include "emu/api_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/str.h"
#include "emu/api_image.h"
#include "emu/api_jit.h"
#include "emu/api_options.h"

#define IMAGE_FILE_LIMIT ((size_t)1 << 30)

void api_module_release(struct api_module *module)
{
    if (--module->refs > 0)
        return;
    while (module->functions != NULL) {
        struct api_function *function = module->functions;
        module->functions = function->next;
        emu_handle_free(function->handle);
        free(function->old);
        free(function);
    }
    clab_map_free(&module->function_names);
    if (module->library == NULL || module->emu != module->library->names)
        emu_module_unload(module->emu);
    if (module->library != NULL)
        api_library_release(module->library);
    free(module);
}

void api_module_drop(struct api_module *module)
{
    for (struct api_module **link = &module->context->modules; *link != NULL; link = &(*link)->next)
        if (*link == module) {
            *link = module->next;
            break;
        }
    module->context = NULL;
    emu_handle_free(module->handle);
    module->handle = NULL;
    for (struct api_function *function = module->functions; function != NULL; function = function->next) {
        emu_handle_free(function->handle);
        function->handle = NULL;
    }
    api_module_release(module);
}

/* Takes over `emu`. */
static CUresult module_new(struct api_context *context, struct emu_module *emu,
                           struct api_module **out_module)
{
    struct api_module *module = calloc(1, sizeof *module);
    if (module != NULL)
        module->handle = emu_handle_new(EMU_HANDLE_MODULE, module);
    if (module == NULL || module->handle == NULL) {
        free(module);
        emu_module_unload(emu);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a module");
    }
    module->context = context;
    module->emu = emu;
    module->refs = 1;
    module->next = context->modules;
    context->modules = module;
    *out_module = module;
    return CUDA_SUCCESS;
}

static CUresult load(struct api_context *context, CUmodule *out_handle, const void *image, size_t bytes,
                     const char *name, const struct api_jit *jit)
{
    uint64_t start = clab_now_ns();
    struct emu_module *emu = NULL;
    struct api_module *module = NULL;
    struct clab_error error = {0};
    unsigned long long id = context->id;
    CUresult result = api_image_load(api_device(), image, bytes, name, &emu, NULL, NULL, &error);
    api_jit_answer(jit, &error, (double)(clab_now_ns() - start) * 1e-9);
    clab_error_clear(&error);
    if (result != CUDA_SUCCESS)
        return result;
    if (jit->has_target && jit->target < emu_module_sm(emu)) {
        emu_module_unload(emu);
        return api_set_error(CUDA_ERROR_INVALID_PTX, "the PTX is for sm_%u, CU_JIT_TARGET is %u",
                             emu_module_sm(emu), jit->target);
    }
    if (api_context_get(context->handle) != context ||
        context->id != id) { /* destroyed while the text was parsed */
        emu_module_unload(emu);
        return api_set_error(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed meanwhile");
    }
    result = module_new(context, emu, &module);
    if (result == CUDA_SUCCESS)
        *out_handle = module->handle;
    return result;
}

static CUresult load_data(const char *call, CUmodule *out_handle, const void *image, unsigned count,
                          CUjit_option *options, void **values)
{
    struct api_context *context;
    struct api_jit jit;
    CUresult result = api_enter_context(call, &context);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(out_handle != NULL && image != NULL);
    result = api_jit_read(count, options, values, &jit);
    if (result == CUDA_SUCCESS)
        result = api_jit_check_load(&jit);
    if (result == CUDA_SUCCESS)
        result = load(context, out_handle, image, SIZE_MAX, api_source_name(), &jit);
    return api_result(result);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    return load_data(__func__, module, image, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                    CUjit_option *options, void **optionValues)
{
    return load_data(__func__, module, image, numOptions, options, optionValues);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return load_data(__func__, module, fatCubin, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    API_ENTER_CONTEXT(context);
    API_REQUIRE(module != NULL && fname != NULL && fname[0] != '\0');
    size_t bytes;
    char *image = clab_file_read(fname, IMAGE_FILE_LIMIT, &bytes);
    if (image == NULL)
        return api_fail(errno == ENOENT   ? CUDA_ERROR_FILE_NOT_FOUND
                        : errno == EISDIR ? CUDA_ERROR_OUT_OF_MEMORY /* on the H200: so long is a folder */
                                          : CUDA_ERROR_OPERATING_SYSTEM,
                        "%s: %s", fname, strerror(errno));
    struct api_jit jit = {0};
    CUresult result = load(context, module, image, bytes, fname, &jit);
    free(image);
    return api_result(result);
}

/* Enters with a module argument. */
static CUresult enter_module(const char *call, CUmodule handle, struct api_module **out_module)
{
    CUresult result;
    *out_module = api_enter_object(call, EMU_HANDLE_MODULE, handle, CUDA_ERROR_INVALID_HANDLE, &result);
    return *out_module == NULL ? result : api_use_context((*out_module)->context);
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    struct api_module *module;
    CUresult result = enter_module(__func__, hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    if (module->library != NULL)
        return api_fail(CUDA_ERROR_NOT_PERMITTED, "the module belongs to a library");
    result = api_context_wait(module->context);
    if (result != CUDA_SUCCESS || emu_handle_get(EMU_HANDLE_MODULE, hmod) != module)
        return api_result(result);
    api_module_drop(module);
    return api_leave();
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    API_ENTER();
    API_REQUIRE(mode != NULL);
    *mode = CU_MODULE_LAZY_LOADING; /* functions are decoded when first asked for */
    return api_leave();
}

CUresult api_module_function(struct api_module *module, const char *name, struct api_function **out_function)
{
    struct emu_kernel *kernel = NULL;
    struct clab_error error = {0};
    struct api_function *known = clab_map_get(&module->function_names, name, strlen(name));
    if (known != NULL) {
        *out_function = known;
        return CUDA_SUCCESS;
    }
    clab_status status = emu_module_kernel(module->emu, name, &kernel, &error);
    if (status != CLAB_OK) {
        CUresult result = api_copy_error(api_load_result(status, &error), &error);
        if (status == CLAB_UNSUPPORTED)
            emu_log_refused("%s: %s", name, error.message);
        clab_error_clear(&error);
        return result;
    }
    struct api_function *function = calloc(1, sizeof *function);
    if (function != NULL)
        function->handle = emu_handle_new(EMU_HANDLE_FUNCTION, function);
    if (function == NULL || function->handle == NULL) {
        free(function);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a function");
    }
    function->module = module;
    function->kernel = kernel;
    emu_kernel_info_get(kernel, &function->info);
    const char *kept = function->info.function->name;
    if (!clab_map_set(&module->function_names, kept, strlen(kept), function)) {
        emu_handle_free(function->handle);
        free(function);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a function");
    }
    function->settings = api_settings_default();
    function->next = module->functions;
    module->functions = function;
    *out_function = function;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct api_module *module;
    struct api_function *function;
    CUresult result = enter_module(__func__, hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(hfunc != NULL && name != NULL && name[0] != '\0');
    result = api_module_function(module, name, &function);
    *hfunc = result == CUDA_SUCCESS ? function->handle : NULL; /* the H200 writes it too */
    return api_result(result);
}

static unsigned entry_count(const struct emu_module *emu)
{
    unsigned count = 0;
    while (emu_module_entry_name(emu, count) != NULL)
        count++;
    return count;
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct api_module *module;
    CUresult result = enter_module(__func__, mod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count != NULL);
    *count = entry_count(module->emu);
    return api_leave();
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    struct api_module *module;
    struct api_function *function;
    CUresult result = enter_module(__func__, mod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(functions != NULL);
    for (unsigned i = 0; i < numFunctions && result == CUDA_SUCCESS; i++) {
        const char *name = emu_module_entry_name(module->emu, i);
        if (name == NULL)
            break;
        result = api_module_function(module, name, &function);
        if (result == CUDA_SUCCESS)
            functions[i] = function->handle;
    }
    return api_result(result);
}

static bool is_entry(const struct emu_module *emu, const char *name)
{
    const char *entry;
    for (unsigned i = 0; (entry = emu_module_entry_name(emu, i)) != NULL; i++)
        if (strcmp(entry, name) == 0)
            return true;
    return false;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct api_module *module;
    uint64_t address, size;
    CUresult result = enter_module(__func__, hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(name != NULL && (dptr != NULL || bytes != NULL));
    if (!emu_module_global(module->emu, name, &address, &size))
        return api_fail(is_entry(module->emu, name) ? CUDA_ERROR_INVALID_VALUE /* so the H200 */
                                                    : CUDA_ERROR_NOT_FOUND,
                        "the module has no variable %s", name);
    if (dptr != NULL)
        *dptr = address;
    if (bytes != NULL)
        *bytes = size;
    return api_leave();
}

CUresult CUDAAPI cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    struct api_module *module;
    CUresult result = enter_module(__func__, hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pTexRef != NULL && name != NULL);
    void *handle = NULL;
    result = api_reference_of(module, name, false, &handle);
    if (result == CUDA_SUCCESS)
        *pTexRef = handle;
    return api_result(result);
}

CUresult CUDAAPI cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    struct api_module *module;
    CUresult result = enter_module(__func__, hmod, &module);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pSurfRef != NULL && name != NULL);
    void *handle = NULL;
    result = api_reference_of(module, name, true, &handle);
    if (result == CUDA_SUCCESS)
        *pSurfRef = handle;
    return api_result(result);
}
