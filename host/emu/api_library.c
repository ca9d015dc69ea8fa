/* "Library Management": libraries are context-independent: one is parsed when it is loaded, and becomes a
   module of a context when something of it is first used there. Kernel attributes hold in every context. Code
   that cannot be compiled is loaded nevertheless, as by an H200's driver: its logs are written, and what asks
   for something of it gets the error. */
#include "emu/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/str.h"
#include "emu/api_jit.h"
#include "emu/api_options.h"
#include "emu/module.h"

static void kernels_free(struct api_library *library)
{
    while (library->kernels != NULL) {
        struct api_kernel *kernel = library->kernels;
        library->kernels = kernel->next;
        emu_handle_free(kernel->handle);
        free(kernel);
    }
}

static void library_free(struct api_library *library)
{
    kernels_free(library);
    if (library->handle != NULL)
        emu_handle_free(library->handle);
    if (library->names != NULL)
        emu_module_unload(library->names);
    free(library->text);
    clab_error_clear(&library->failure);
    free(library);
}

void api_library_release(struct api_library *library)
{
    if (--library->refs == 0)
        library_free(library);
}

/* One kernel object per entry, in the order of the text. */
static bool make_kernels(struct api_library *library)
{
    struct api_kernel **tail = &library->kernels;
    for (const char *name; (name = emu_module_entry_name(library->names, library->n_kernels)) != NULL;) {
        struct api_kernel *kernel = calloc(1, sizeof *kernel);
        if (kernel == NULL)
            return false;
        *tail = kernel;
        tail = &kernel->next;
        kernel->handle = emu_handle_new(EMU_HANDLE_KERNEL, kernel);
        kernel->library = library;
        kernel->name = name;
        kernel->settings = api_settings_default();
        library->n_kernels++;
        if (kernel->handle == NULL)
            return false;
    }
    return true;
}

static CUresult load(CUlibrary *out_handle, const void *image, size_t bytes, const char *name,
                     unsigned n_options, CUjit_option *options, void **values)
{
    struct api_jit jit;
    struct clab_error error = {0};
    uint64_t start = clab_now_ns();
    CUresult result = api_jit_read(n_options, options, values, &jit);
    if (result != CUDA_SUCCESS)
        return result;
    struct api_library *library = calloc(1, sizeof *library);
    if (library == NULL)
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a library");
    result = api_image_load(api_device(), image, bytes, name, &library->names, &library->text,
                            &library->text_bytes, &error);
    api_jit_answer(&jit, &error, (double)(clab_now_ns() - start) * 1e-9);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) {
        library->failed = result;
        clab_error_copy(&library->failure, &error);
        result = CUDA_SUCCESS;
    }
    clab_error_clear(&error);
    if (result == CUDA_SUCCESS) {
        library->handle = emu_handle_new(EMU_HANDLE_LIBRARY, library);
        if (library->handle == NULL || (library->failed == CUDA_SUCCESS && !make_kernels(library)))
            result = api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a library");
    }
    if (result != CUDA_SUCCESS) {
        library_free(library);
        return result;
    }
    library->refs = 1;
    library->parsed = library->names;
    *out_handle = library->handle;
    return CUDA_SUCCESS;
}

static CUresult check_options(CUlibraryOption *options, void **values, unsigned count)
{
    if (count > 0 && (options == NULL || values == NULL))
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "%u library options, but no list", count);
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) /* the text is copied: the promise is not needed */
            continue;
        if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
            return api_set_error(CUDA_ERROR_NOT_SUPPORTED,
                                 "library option 0 (host function table) is not emulated");
        return api_set_error(CUDA_ERROR_INVALID_VALUE, "unknown library option %d", (int)options[i]);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    API_ENTER();
    API_REQUIRE(library != NULL && code != NULL);
    CUresult result = check_options(libraryOptions, libraryOptionValues, numLibraryOptions);
    if (result == CUDA_SUCCESS)
        result =
            load(library, code, SIZE_MAX, api_source_name(), numJitOptions, jitOptions, jitOptionsValues);
    return api_result(result);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                                       void **jitOptionsValues, unsigned int numJitOptions,
                                       CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                       unsigned int numLibraryOptions)
{
    API_ENTER();
    API_REQUIRE(library != NULL && fileName != NULL);
    CUresult result = check_options(libraryOptions, libraryOptionValues, numLibraryOptions);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    size_t bytes;
    char *image = clab_file_read(fileName, (size_t)1 << 30, &bytes);
    if (image == NULL)
        return api_fail(errno == ENOENT ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OPERATING_SYSTEM, "%s: %s",
                        fileName, strerror(errno));
    result = load(library, image, bytes, fileName, numJitOptions, jitOptions, jitOptionsValues);
    free(image);
    return api_result(result);
}

/* Its handles die at once, its modules when the launches that use them are done. */
CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    CUresult result;
    struct api_library *found =
        api_enter_object(__func__, EMU_HANDLE_LIBRARY, library, CUDA_ERROR_INVALID_HANDLE, &result);
    if (found == NULL)
        return result;
    emu_handle_free(library);
    found->handle = NULL;
    kernels_free(found);
    size_t cursor = 0;
    for (struct api_module *module; (module = emu_handle_next(EMU_HANDLE_MODULE, &cursor)) != NULL;)
        if (module->library == found)
            api_module_drop(module);
    api_library_release(found);
    return api_leave();
}

CUresult api_library_module(struct api_context *context, struct api_library *library,
                            struct api_module **out_module)
{
    if (library->failed != CUDA_SUCCESS)
        return api_copy_error(library->failed, &library->failure);
    for (struct api_module *module = context->modules; module != NULL; module = module->next)
        if (module->library == library) {
            *out_module = module;
            return CUDA_SUCCESS;
        }
    struct emu_module *emu = library->parsed;
    if (emu == NULL) {
        struct clab_error error = {0};
        clab_status status = emu_module_load(api_device()->machine, library->text, library->text_bytes,
                                             emu_module_ptx(library->names)->name, &emu, &error);
        if (status != CLAB_OK) {
            CUresult result = api_copy_error(
                status == CLAB_NO_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX, &error);
            clab_error_clear(&error);
            return result;
        }
    }
    struct api_module *module = calloc(1, sizeof *module);
    if (module != NULL)
        module->handle = emu_handle_new(EMU_HANDLE_MODULE, module);
    if (module == NULL || module->handle == NULL) {
        free(module);
        if (emu != library->names)
            emu_module_unload(emu);
        return api_set_error(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a module");
    }
    library->parsed = NULL;
    library->refs++;
    module->context = context;
    module->emu = emu;
    module->library = library;
    module->refs = 1;
    module->next = context->modules;
    context->modules = module;
    *out_module = module;
    return CUDA_SUCCESS;
}

static struct api_function *known_function(const struct api_module *module, const char *name)
{
    struct api_function *function = module->functions;
    while (function != NULL && strcmp(function->info.function->name, name) != 0)
        function = function->next;
    return function;
}

CUresult api_kernel_function(struct api_context *context, struct api_kernel *kernel,
                             struct api_function **out_function)
{
    struct api_module *module;
    CUresult result = api_library_module(context, kernel->library, &module);
    if (result != CUDA_SUCCESS)
        return result;
    *out_function = known_function(module, kernel->name);
    if (*out_function != NULL)
        return CUDA_SUCCESS;
    result = api_module_function(module, kernel->name, out_function);
    if (result == CUDA_SUCCESS)
        (*out_function)->settings = kernel->settings;
    return result;
}

/* Goes on in the current context. */
static CUresult enter_current(struct api_context **out_context)
{
    CUresult result = api_context_current(out_context);
    return result == CUDA_SUCCESS ? api_use_context(*out_context)
                                  : api_fail(result, "no usable context is current");
}

/* Enters with a library argument. The context is the current one where the call needs it, else NULL. */
static CUresult enter_library(const char *call, CUlibrary handle, struct api_context **out_context,
                              struct api_library **out_library)
{
    CUresult result;
    *out_library = api_enter_object(call, EMU_HANDLE_LIBRARY, handle, CUDA_ERROR_INVALID_HANDLE, &result);
    return *out_library == NULL || out_context == NULL ? result : enter_current(out_context);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct api_library *found;
    CUresult result = enter_library(__func__, library, NULL, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pKernel != NULL && name != NULL);
    if (found->failed != CUDA_SUCCESS)
        return api_fail_with(found->failed, &found->failure);
    for (struct api_kernel *kernel = found->kernels; kernel != NULL; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0) {
            *pKernel = kernel->handle;
            return api_leave();
        }
    return api_fail(CUDA_ERROR_NOT_FOUND, "the library has no kernel %s", name);
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct api_library *found;
    CUresult result = enter_library(__func__, lib, NULL, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(count != NULL);
    *count = found->n_kernels;
    return api_leave();
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct api_library *found;
    CUresult result = enter_library(__func__, lib, NULL, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(kernels != NULL);
    unsigned i = 0;
    for (struct api_kernel *kernel = found->kernels; kernel != NULL && i < numKernels; kernel = kernel->next)
        kernels[i++] = kernel->handle;
    return api_leave();
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct api_context *context;
    struct api_library *found;
    struct api_module *module;
    CUresult result = enter_library(__func__, library, &context, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pMod != NULL);
    result = api_library_module(context, found, &module);
    if (result == CUDA_SUCCESS)
        *pMod = module->handle;
    return api_result(result);
}

static CUresult get_variable(const char *call, CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                             const char *name, bool managed)
{
    struct api_context *context;
    struct api_library *found;
    struct api_module *module;
    uint64_t address, size;
    CUresult result = enter_library(call, library, &context, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(name != NULL && (dptr != NULL || bytes != NULL));
    result = api_library_module(context, found, &module);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    if (!emu_module_global(module->emu, name, &address, &size) ||
        (managed && !emu_module_is_managed(module->emu, name)))
        return api_fail(CUDA_ERROR_NOT_FOUND, "the library has no %svariable %s", managed ? "managed " : "",
                        name);
    if (dptr != NULL)
        *dptr = address;
    if (bytes != NULL)
        *bytes = size;
    return api_leave();
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return get_variable(__func__, dptr, bytes, library, name, false);
}

/* PTX marks managed variables with an attribute; kernels see no difference here. */
CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    return get_variable(__func__, dptr, bytes, library, name, true);
}

/* ---- kernels ---- */

static CUresult enter_kernel(const char *call, CUkernel handle, struct api_context **out_context,
                             struct api_kernel **out_kernel)
{
    CUresult result;
    /* NULL is an INVALID_VALUE to the two calls that only tell of it, on the H200. */
    const bool told =
        handle == NULL && (strcmp(call, "cuKernelGetName") == 0 || strcmp(call, "cuKernelGetParamInfo") == 0);
    *out_kernel = api_enter_object(call, EMU_HANDLE_KERNEL, handle,
                                   told ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE, &result);
    return *out_kernel == NULL || out_context == NULL ? result : enter_current(out_context);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct api_context *context;
    struct api_kernel *found;
    struct api_function *function;
    CUresult result = enter_kernel(__func__, kernel, &context, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pFunc != NULL);
    result = api_kernel_function(context, found, &function);
    if (result == CUDA_SUCCESS)
        *pFunc = function->handle;
    return api_result(result);
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct api_kernel *found;
    CUresult result = enter_kernel(__func__, kernel, NULL, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pLib != NULL);
    *pLib = found->library->handle;
    return api_leave();
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct api_kernel *found;
    CUresult result = enter_kernel(__func__, hfunc, NULL, &found);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(name != NULL);
    *name = found->name;
    return api_leave();
}

/* The kernel's facts, from the module that was parsed first. */
static CUresult kernel_info(const struct api_kernel *kernel, struct emu_kernel_info *out_info)
{
    struct emu_kernel *decoded = NULL;
    struct clab_error error = {0};
    clab_status status = emu_module_kernel(kernel->library->names, kernel->name, &decoded, &error);
    if (status != CLAB_OK) {
        CUresult result = api_copy_error(
            status == CLAB_UNSUPPORTED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX, &error);
        clab_error_clear(&error);
        return result;
    }
    emu_kernel_info_get(decoded, out_info);
    return CUDA_SUCCESS;
}

static CUresult enter_kernel_device(const char *call, CUkernel handle, CUdevice dev,
                                    struct api_kernel **out_kernel, struct emu_kernel_info *out_info)
{
    CUresult result = enter_kernel(call, handle, NULL, out_kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (dev != 0)
        return api_fail(CUDA_ERROR_INVALID_DEVICE, "device %d: one device is emulated, number 0", dev);
    result = kernel_info(*out_kernel, out_info);
    return result == CUDA_SUCCESS ? CUDA_SUCCESS : api_result(result);
}

CUresult CUDAAPI cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    struct api_kernel *found;
    struct emu_kernel_info info;
    CUresult result = enter_kernel_device(__func__, kernel, dev, &found, &info);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE(pi != NULL);
    return api_result(api_settings_read(&found->settings, &info, attrib, pi));
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    struct api_kernel *found;
    struct emu_kernel_info info;
    CUresult result = enter_kernel_device(__func__, kernel, dev, &found, &info);
    if (result != CUDA_SUCCESS)
        return result;
    result = api_settings_set(&found->settings, &info, attrib, val);
    size_t cursor = 0;
    for (struct api_module *module; (module = emu_handle_next(EMU_HANDLE_MODULE, &cursor)) != NULL;) {
        struct api_function *function = known_function(module, found->name);
        if (result == CUDA_SUCCESS && module->library == found->library && function != NULL)
            api_settings_set(&function->settings, &info, attrib, val);
    }
    return api_result(result);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    struct api_kernel *found;
    struct emu_kernel_info info;
    CUresult result = enter_kernel_device(__func__, kernel, dev, &found, &info);
    if (result != CUDA_SUCCESS)
        return result;
    API_REQUIRE((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL);
    found->settings.cache = config;
    return api_leave();
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                      size_t *paramSize)
{
    struct api_kernel *found;
    struct emu_kernel_info info;
    struct api_context *context; /* needed by this one of the calls that only tell of a kernel (H200) */
    CUresult result = enter_kernel(__func__, kernel, &context, &found);
    if (result != CUDA_SUCCESS)
        return result;
    result = kernel_info(found, &info);
    if (result != CUDA_SUCCESS)
        return api_result(result);
    API_REQUIRE(paramOffset != NULL && paramIndex < info.n_params);
    *paramOffset = info.param_offsets[paramIndex];
    if (paramSize != NULL)
        *paramSize = info.param_sizes[paramIndex];
    return api_leave();
}
