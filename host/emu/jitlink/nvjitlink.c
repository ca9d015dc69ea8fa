/* A stand-in for libnvJitLink.so (nvJitLink 13.0 manual), for programs that link with it before they load:
   numba-cuda, cuda.core. A linked "cubin" is PTX here, which is what the stand-in driver loads. Inputs are
   linked by that driver's own cuLink calls; LTO IR is first made PTX by the real library
   (CLUSTERLAB_NVJITLINK says where it is). `clusterlab with-emulator` has this library loaded from the start
   (host/emu/preload), so that a look-up of libnvJitLink by name finds it. Leaves out: cubins, object files
   and archives, which hold machine code (refused by name). */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_names.h"

/* Numbers of nvJitLink.h, whose inline functions have the names of the symbols defined here. */
enum result {
    SUCCESS,
    UNRECOGNIZED_OPTION,
    MISSING_ARCH,
    INVALID_INPUT,
    PTX_COMPILE,
    NVVM_COMPILE,
    INTERNAL,
    UNRECOGNIZED_INPUT = 8,
    FINALIZE,
    NULL_INPUT,
    LTO_NOT_ENABLED = 18
};
enum { INPUT_CUBIN = 1, INPUT_PTX, INPUT_LTOIR, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY, INPUT_ANY = 10 };
#define VERSION_MAJOR 13u
#define VERSION_MINOR 0u

/* The calls of the stand-in driver that are used. */
#define DRIVER_CALLS(CALL)             \
    CALL(cuInit)                       \
    CALL(cuDevicePrimaryCtxRetain)     \
    CALL(cuDevicePrimaryCtxRelease_v2) \
    CALL(cuCtxPushCurrent_v2)          \
    CALL(cuCtxPopCurrent_v2)           \
    CALL(cuLinkCreate_v2)              \
    CALL(cuLinkAddData_v2)             \
    CALL(cuLinkComplete)               \
    CALL(cuLinkDestroy)
struct driver {
#define MEMBER(name) __typeof__(name) *name;
    DRIVER_CALLS(MEMBER)
#undef MEMBER
};

typedef int (*real_create)(void **handle, uint32_t n_options, const char **options);
typedef int (*real_add)(void *handle, int type, const void *data, size_t bytes, const char *name);
typedef int (*real_call)(void *handle);
typedef int (*real_destroy)(void **handle);
typedef int (*real_size)(void *handle, size_t *bytes);
typedef int (*real_get)(void *handle, char *text);

struct linker {
    struct driver driver;
    CUcontext context;
    CUlinkState state;
    char *image; /* the linked PTX, after Complete */
    size_t image_bytes;
    bool lto;
    char arch[32];
    void *library, *real; /* nvJitLink itself, for LTO IR; NULL until needed */
    char log[8192], driver_log[8192];
    void *option_values[3]; /* the driver writes the log's size here as long as the state lives */
};

static int say(struct linker *linker, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int say(struct linker *linker, int result, const char *format, ...)
{
    size_t used = strlen(linker->log);
    va_list list;
    va_start(list, format);
    vsnprintf(linker->log + used, sizeof linker->log - used, format, list);
    va_end(list);
    return result;
}

static bool driver_load(struct driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* the one that is loaded already */
    if (library == NULL)
        return false;
#define FIND(name)                                                       \
    driver->name = (__typeof__(name) *)(uintptr_t)dlsym(library, #name); \
    if (driver->name == NULL)                                            \
        return false;
    DRIVER_CALLS(FIND)
#undef FIND
    return true;
}

/* ---- LTO IR, by the real library ---- */

static void *real_symbol(const struct linker *linker, const char *name)
{
    return dlsym(linker->library, name);
}

static int lto_open(struct linker *linker)
{
    const char *path = getenv("CLUSTERLAB_NVJITLINK");
    char arch[48];
    snprintf(arch, sizeof arch, "-arch=%s", linker->arch);
    const char *options[] = {arch, "-lto", "-ptx"};
    if (linker->real != NULL)
        return SUCCESS;
    linker->library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    real_create create =
        linker->library ? (real_create)(uintptr_t)real_symbol(linker, "nvJitLinkCreate") : NULL;
    if (create == NULL)
        return say(linker, NVVM_COMPILE,
                   "LTO IR needs NVIDIA's own nvJitLink; CLUSTERLAB_NVJITLINK=%s is none\n",
                   path != NULL ? path : "");
    return create(&linker->real, 3, options);
}

static int lto_add(struct linker *linker, const void *data, size_t bytes, const char *name)
{
    int result = lto_open(linker);
    real_add add = result == SUCCESS ? (real_add)(uintptr_t)real_symbol(linker, "nvJitLinkAddData") : NULL;
    return add != NULL ? add(linker->real, INPUT_LTOIR, data, bytes, name) : result;
}

static int add_ptx(struct linker *linker, CUjitInputType type, const void *data, size_t bytes,
                   const char *name);

/* Links what lto_add collected and adds the PTX that comes out. */
static int lto_complete(struct linker *linker)
{
    real_call complete = (real_call)(uintptr_t)real_symbol(linker, "nvJitLinkComplete");
    real_size size_of = (real_size)(uintptr_t)real_symbol(linker, "nvJitLinkGetLinkedPtxSize");
    real_get get = (real_get)(uintptr_t)real_symbol(linker, "nvJitLinkGetLinkedPtx");
    size_t bytes = 0;
    if (complete == NULL || size_of == NULL || get == NULL)
        return say(linker, INTERNAL, "nvJitLink lacks a function\n");
    int result = complete(linker->real);
    if (result == SUCCESS)
        result = size_of(linker->real, &bytes);
    char *text = result == SUCCESS ? malloc(bytes + 1) : NULL;
    if (text == NULL)
        return say(linker, result != SUCCESS ? result : INTERNAL, "nvJitLink made no PTX of the LTO IR\n");
    result = get(linker->real, text);
    text[bytes] = '\0';
    if (result == SUCCESS)
        result = add_ptx(linker, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "lto");
    free(text);
    return result;
}

/* ---- everything else, by the stand-in driver ---- */

static int add_ptx(struct linker *linker, CUjitInputType type, const void *data, size_t bytes,
                   const char *name)
{
    linker->driver_log[0] = '\0';
    linker->driver.cuCtxPushCurrent_v2(linker->context);
    CUresult result = linker->driver.cuLinkAddData_v2(linker->state, type, (void *)(uintptr_t)data, bytes,
                                                      name != NULL ? name : "<unnamed>", 0, NULL, NULL);
    linker->driver.cuCtxPopCurrent_v2(&(CUcontext){NULL});
    if (result == CUDA_SUCCESS)
        return SUCCESS;
    return say(linker, PTX_COMPILE, "%s: %s (CUresult %d)\n", name != NULL ? name : "<unnamed>",
               linker->driver_log, (int)result);
}

static bool linker_open(struct linker *linker, unsigned max_registers)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_MAX_REGISTERS};
    void **values = linker->option_values;
    values[0] = linker->driver_log;
    values[1] = (void *)(uintptr_t)sizeof linker->driver_log;
    values[2] = (void *)(uintptr_t)max_registers;
    if (!driver_load(&linker->driver) || linker->driver.cuInit(0) != CUDA_SUCCESS ||
        linker->driver.cuDevicePrimaryCtxRetain(&linker->context, 0) != CUDA_SUCCESS)
        return false;
    linker->driver.cuCtxPushCurrent_v2(linker->context);
    CUresult result =
        linker->driver.cuLinkCreate_v2(max_registers > 0 ? 3 : 2, options, values, &linker->state);
    linker->driver.cuCtxPopCurrent_v2(&(CUcontext){NULL});
    if (result != CUDA_SUCCESS)
        linker->driver.cuDevicePrimaryCtxRelease_v2(0);
    return result == CUDA_SUCCESS;
}

/* ---- the library's functions ---- */

#define EXPORT __attribute__((visibility("default")))
/* Programs compiled with nvJitLink.h call a name with the version of their toolkit in it. */
#define ALIAS(name, version, parameters) \
    EXPORT int __##name##_##version parameters __attribute__((alias(#name)));
#define FUNCTION(name, parameters) \
    EXPORT int name parameters;    \
    ALIAS(name, 12_0, parameters)  \
    ALIAS(name, 12_1, parameters)  \
    ALIAS(name, 12_2, parameters)  \
    ALIAS(name, 12_3, parameters)  \
    ALIAS(name, 12_4, parameters)  \
    ALIAS(name, 12_5, parameters)  \
    ALIAS(name, 12_6, parameters)  \
    ALIAS(name, 12_8, parameters)  \
    ALIAS(name, 12_9, parameters)  \
    ALIAS(name, 13_0, parameters)  \
    ALIAS(name, 13_1, parameters)  \
    ALIAS(name, 13_2, parameters)  \
    int name parameters

FUNCTION(nvJitLinkVersion, (unsigned *major, unsigned *minor))
{
    if (major == NULL || minor == NULL)
        return NULL_INPUT;
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
    return SUCCESS;
}

/* Options that steer the generation of machine code change nothing here and are taken; -arch must be there.
 */
FUNCTION(nvJitLinkCreate, (void **handle, uint32_t n_options, const char **options))
{
    if (handle == NULL || (n_options != 0 && options == NULL))
        return NULL_INPUT;
    struct linker *linker = calloc(1, sizeof *linker);
    if (linker == NULL)
        return INTERNAL;
    int result = MISSING_ARCH;
    unsigned max_registers = 0;
    for (uint32_t i = 0; i < n_options; i++) {
        const char *option = options[i] != NULL ? options[i] : "";
        if (strncmp(option, "-arch=", 6) == 0) {
            snprintf(linker->arch, sizeof linker->arch, "%s", option + 6);
            result = result == MISSING_ARCH ? SUCCESS : result;
        } else if (strcmp(option, "-lto") == 0 || strcmp(option, "-dlto") == 0) {
            linker->lto = true;
        } else if (strncmp(option, "-maxrregcount=", 14) == 0) {
            max_registers = (unsigned)strtoul(option + 14, NULL, 10);
        } else if (option[0] != '-') {
            result = UNRECOGNIZED_OPTION;
        }
    }
    if (result == SUCCESS && !linker_open(linker, max_registers))
        result = INTERNAL;
    if (result != SUCCESS) {
        free(linker);
        return result;
    }
    *handle = linker;
    return SUCCESS;
}

FUNCTION(nvJitLinkDestroy, (void **handle))
{
    if (handle == NULL || *handle == NULL)
        return NULL_INPUT;
    struct linker *linker = *handle;
    real_destroy destroy =
        linker->real != NULL ? (real_destroy)(uintptr_t)real_symbol(linker, "nvJitLinkDestroy") : NULL;
    if (destroy != NULL)
        destroy(&linker->real);
    linker->driver.cuCtxPushCurrent_v2(linker->context);
    linker->driver.cuLinkDestroy(linker->state);
    linker->driver.cuCtxPopCurrent_v2(&(CUcontext){NULL});
    linker->driver.cuDevicePrimaryCtxRelease_v2(0);
    free(linker->image);
    free(linker);
    *handle = NULL;
    return SUCCESS;
}

FUNCTION(nvJitLinkAddData, (void *handle, int type, const void *data, size_t bytes, const char *name))
{
    struct linker *linker = handle;
    if (linker == NULL || data == NULL)
        return NULL_INPUT;
    switch (type) {
    case INPUT_PTX:
        return add_ptx(linker, CU_JIT_INPUT_PTX, data, bytes, name);
    case INPUT_ANY:
    case INPUT_FATBIN:
        return add_ptx(linker, CU_JIT_INPUT_FATBINARY, data, bytes, name);
    case INPUT_LTOIR:
        return linker->lto ? lto_add(linker, data, bytes, name) : LTO_NOT_ENABLED;
    case INPUT_LIBRARY:
        if (name != NULL && strstr(name, "cudadevrt") != NULL)
            return add_ptx(linker, CU_JIT_INPUT_LIBRARY, data, bytes, name);
        /* fall through */
    case INPUT_CUBIN:
    case INPUT_OBJECT:
        return say(linker, UNRECOGNIZED_INPUT,
                   "%s: a %s holds machine code; the stand-in driver executes PTX: link PTX instead\n",
                   name != NULL ? name : "<unnamed>",
                   type == INPUT_CUBIN    ? "cubin"
                   : type == INPUT_OBJECT ? "host object"
                                          : "library");
    default:
        return INVALID_INPUT;
    }
}

FUNCTION(nvJitLinkAddFile, (void *handle, int type, const char *path))
{
    struct linker *linker = handle;
    if (linker == NULL || path == NULL)
        return NULL_INPUT;
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    size_t bytes = 0;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        long end = ftell(file);
        data = end >= 0 ? malloc((size_t)end + 1) : NULL;
        rewind(file);
        bytes = data != NULL ? fread(data, 1, (size_t)end, file) : 0;
    }
    if (file != NULL)
        fclose(file);
    if (data == NULL)
        return say(linker, INVALID_INPUT, "%s: cannot be read\n", path);
    data[bytes] = '\0';
    int result = nvJitLinkAddData(handle, type, data, bytes, path);
    free(data);
    return result;
}

FUNCTION(nvJitLinkComplete, (void *handle))
{
    struct linker *linker = handle;
    void *image = NULL;
    size_t bytes = 0;
    if (linker == NULL)
        return NULL_INPUT;
    int result = linker->real != NULL ? lto_complete(linker) : SUCCESS;
    if (result != SUCCESS)
        return result;
    linker->driver_log[0] = '\0';
    linker->driver.cuCtxPushCurrent_v2(linker->context);
    CUresult linked = linker->driver.cuLinkComplete(linker->state, &image, &bytes);
    linker->driver.cuCtxPopCurrent_v2(&(CUcontext){NULL});
    if (linked != CUDA_SUCCESS)
        return say(linker, FINALIZE, "%s (CUresult %d)\n", linker->driver_log, (int)linked);
    free(linker->image);
    linker->image = malloc(bytes);
    if (linker->image == NULL)
        return INTERNAL;
    memcpy(linker->image, image, bytes);
    linker->image_bytes = bytes;
    return SUCCESS;
}

static int image_size(const struct linker *linker, size_t *bytes)
{
    if (linker == NULL || bytes == NULL)
        return NULL_INPUT;
    *bytes = linker->image_bytes;
    return linker->image != NULL ? SUCCESS : INVALID_INPUT;
}

static int image_get(const struct linker *linker, void *out)
{
    if (linker == NULL || out == NULL || linker->image == NULL)
        return NULL_INPUT;
    memcpy(out, linker->image, linker->image_bytes);
    return SUCCESS;
}

FUNCTION(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *bytes))
{
    return image_size(handle, bytes);
}

FUNCTION(nvJitLinkGetLinkedCubin, (void *handle, void *cubin))
{
    return image_get(handle, cubin);
}

FUNCTION(nvJitLinkGetLinkedPtxSize, (void *handle, size_t *bytes))
{
    return image_size(handle, bytes);
}

FUNCTION(nvJitLinkGetLinkedPtx, (void *handle, char *ptx))
{
    return image_get(handle, ptx);
}

FUNCTION(nvJitLinkGetErrorLogSize, (void *handle, size_t *bytes))
{
    if (handle == NULL || bytes == NULL)
        return NULL_INPUT;
    *bytes = strlen(((struct linker *)handle)->log) + 1;
    return SUCCESS;
}

FUNCTION(nvJitLinkGetErrorLog, (void *handle, char *log))
{
    if (handle == NULL || log == NULL)
        return NULL_INPUT;
    memcpy(log, ((struct linker *)handle)->log, strlen(((struct linker *)handle)->log) + 1);
    return SUCCESS;
}

/* What ptxas would say about registers and the like is not known here. */
FUNCTION(nvJitLinkGetInfoLogSize, (void *handle, size_t *bytes))
{
    if (handle == NULL || bytes == NULL)
        return NULL_INPUT;
    *bytes = 1;
    return SUCCESS;
}

FUNCTION(nvJitLinkGetInfoLog, (void *handle, char *log))
{
    if (handle == NULL || log == NULL)
        return NULL_INPUT;
    log[0] = '\0';
    return SUCCESS;
}
