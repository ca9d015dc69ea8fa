/* One input is an image: its first byte says how it is passed, the rest is PTX, a fatbin, a cubin or garbage.
   Loaded, asked for its names, linked with another, launched when it has an entry without parameters. An
   image that is passed without its size is the program's responsibility: those are made to end in zeros and
   to hold what their header claims. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "surface.h"
#include "target.h"

#define FATBIN_MAGIC  0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u

static const char companion[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 other = 5;\n"
    ".visible .func f() { ret; }\n.visible .entry second() { ret; }\n";

/* May it be read without a size? */
static int is_whole(const uint8_t *image, size_t bytes)
{
    uint32_t magic = 0;
    uint16_t header_bytes;
    uint64_t claimed;
    memcpy(&magic, image, bytes < 4 ? bytes : 4);
    if (magic == WRAPPER_MAGIC)
        return 0; /* holds a pointer */
    if (magic != FATBIN_MAGIC)
        return 1;
    if (bytes < 16)
        return 0;
    memcpy(&header_bytes, image + 6, sizeof header_bytes);
    memcpy(&claimed, image + 8, sizeof claimed);
    return header_bytes <= bytes && claimed <= bytes - header_bytes;
}

static void use(CUmodule module)
{
    CUdeviceptr address;
    size_t size;
    unsigned count = 0;
    CUfunction functions[4] = {NULL};
    cuModuleGetGlobal(&address, &size, module, "g");
    if (cuModuleGetFunctionCount(&count, module) == CUDA_SUCCESS && count > 0 &&
        cuModuleEnumerateFunctions(functions, count < 4 ? count : 4, module) == CUDA_SUCCESS) {
        for (unsigned i = 0; i < 4 && i < count; i++) {
            size_t offset, bytes;
            int registers;
            cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, functions[i]);
            if (cuFuncGetParamInfo(functions[i], 0, &offset, &bytes) != CUDA_SUCCESS)
                cuLaunchKernel(functions[i], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        }
    }
    cuCtxSynchronize();
    cuModuleUnload(module);
}

static void link_with(CUjitInputType type, void *image, size_t bytes)
{
    static char log[4096];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}, *linked;
    CUlinkState state;
    CUmodule module;
    size_t size;
    if (cuLinkCreate(2, options, values, &state) != CUDA_SUCCESS)
        return;
    if (bytes > 0 && cuLinkAddData(state, type, image, bytes, "fuzz", 0, NULL, NULL) == CUDA_SUCCESS &&
        cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)companion, sizeof companion, "companion", 0,
                      NULL, NULL) == CUDA_SUCCESS &&
        cuLinkComplete(state, &linked, &size) == CUDA_SUCCESS &&
        cuModuleLoadData(&module, linked) == CUDA_SUCCESS)
        use(module);
    cuLinkDestroy(state);
}

static void load_library(void *image)
{
    CUlibrary library;
    CUkernel kernels[4] = {NULL};
    unsigned count = 0;
    if (cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
        return;
    if (cuLibraryGetKernelCount(&count, library) == CUDA_SUCCESS && count > 0)
        cuLibraryEnumerateKernels(kernels, count < 4 ? count : 4, library);
    CUmodule module;
    cuLibraryGetModule(&module, library);
    cuLibraryUnload(library);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    enum { PADDING = 4096 };
    static struct fuzz_held before;
    static int asked;
    CUcontext context;
    CUmodule module;
    if (bytes < 2 || cuInit(0) != CUDA_SUCCESS)
        return 0;
    cuDevicePrimaryCtxReset(0); /* a kernel of the last input may have ended the context */
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    if (!asked++)
        before = fuzz_held();
    char *image = malloc(bytes + PADDING);
    if (image == NULL)
        return 0;
    memset(image, 0, bytes + PADDING);
    memcpy(image, data + 1, bytes - 1);
    switch (data[0] % 4) {
    case 0:
        link_with((CUjitInputType)(data[0] / 4 % 8), image, bytes - 1);
        break;
    case 1:
        if (is_whole(data + 1, bytes - 1))
            load_library(image);
        break;
    default:
        if (is_whole(data + 1, bytes - 1) && cuModuleLoadData(&module, image) == CUDA_SUCCESS)
            use(module);
        break;
    }
    free(image);
    cuDevicePrimaryCtxReset(0);
    cuDevicePrimaryCtxRelease(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    fuzz_compare("fuzz_image", before, fuzz_held());
    cuDevicePrimaryCtxRelease(0);
    return 0;
}
