/* Modules, libraries, the JIT linker, fatbins, entry points. */
#include <stdio.h>
#include <unistd.h>

#include "api_test.h"

static const char module_text[] =
    HEADER ".visible .global .align 4 .u32 counter = 7;\n"
           ".visible .entry count(.param .u64 p) { .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p];\n"
           "  atom.global.add.u32 v, [counter], 1; st.global.u32 [a], v; ret; }\n"
           ".visible .entry other() { ret; }\n";

static uint32_t run_count(CUfunction function)
{
    CUdeviceptr out;
    uint32_t value = 0;
    OK(cuMemAlloc(&out, 4));
    void *params[] = {&out};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&value, out, 4));
    OK(cuMemFree(out));
    return value;
}

static void test_module(void **state)
{
    (void)state;
    CUmodule one, two, back;
    CUfunction function, again, list[3] = {NULL};
    CUdeviceptr counter;
    size_t bytes = 0;
    unsigned count = 0;
    const char *name = NULL;
    OK(cuModuleLoadData(&one, module_text));
    OK(cuModuleLoadData(&two, module_text));
    OK(cuModuleGetFunction(&function, one, "count"));
    OK(cuModuleGetFunction(&again, one, "count"));
    assert_ptr_equal(function, again);
    assert_int_equal(run_count(function), 7);
    assert_int_equal(run_count(function), 8);
    OK(cuModuleGetFunction(&again, two, "count"));
    assert_int_equal(run_count(again), 7); /* variables of its own */
    OK(cuModuleGetGlobal(&counter, &bytes, one, "counter"));
    assert_int_equal(bytes, 4);
    OK(cuMemsetD32(counter, 100, 1));
    assert_int_equal(run_count(function), 100);
    OK(cuModuleGetFunctionCount(&count, one));
    assert_int_equal(count, 2);
    OK(cuModuleEnumerateFunctions(list, 3, one));
    OK(cuFuncGetName(&name, list[1]));
    assert_string_equal(name, "other");
    assert_null(list[2]);
    OK(cuFuncGetModule(&back, list[1]));
    assert_ptr_equal(back, one);
    OK(cuModuleUnload(one));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(one));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, function));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(counter, 100, 1)); /* its variables are gone */
    assert_int_equal(run_count(again), 8);
}

/* Addresses of 32 bits: each instruction is good, the module is not (H200, driver 580: 218 and this log). */
static void test_narrow_addresses(void **state)
{
    (void)state;
    static const struct {
        CUresult result;
        const char *statement;
    } cases[] = {
        {CUDA_ERROR_INVALID_PTX, "cvta.shared.u32 %r3, s;"},
        {CUDA_ERROR_INVALID_PTX, "cvta.to.global.u32 %r3, %r2;"},
        {CUDA_ERROR_INVALID_PTX, "ld.global.u32 %r3, [%r2];"},
        {CUDA_ERROR_INVALID_PTX, "st.u32 [%r2], %r3;"},
        {CUDA_ERROR_INVALID_PTX, "atom.add.u32 %r3, [%r2], 1;"},
        {CUDA_ERROR_INVALID_PTX, "mbarrier.init.b64 [%r2], 1;"},
        {CUDA_ERROR_INVALID_PTX, "mov.u32 %r3, g;"},
        {CUDA_SUCCESS, "mov.u32 %r3, g+4;"},
        {CUDA_SUCCESS, "mov.u32 %r3, s;"},
        {CUDA_SUCCESS, "ld.global.u32 %r3, [%rd1];"},
        {CUDA_SUCCESS, "cvt.u16.u32 %h1, %r2; ld.global.u32 %r3, [%h1];"},
        {CUDA_SUCCESS, "ld.shared.u32 %r3, [%r2];"},
        {CUDA_SUCCESS, "mapa.u32 %r3, %r2, 1;"},
        {CUDA_SUCCESS, "isspacep.global %p1, %r2;"},
        {CUDA_SUCCESS, "cp.async.ca.shared.global [s], [%r2], 4;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[600], log[512] = "";
        CUmodule module = NULL;
        CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void *value[] = {log, (void *)(uintptr_t)sizeof log};
        snprintf(
            text, sizeof text,
            ".version 9.0\n.target sm_90\n.global .b32 g[4];\n.entry k()\n{\n.shared .align 16 .b32 "
            "s[4]; .reg .b16 %%h<2>; .reg .b32 %%r<4>; .reg .b64 %%rd<2>; .reg .pred %%p<2>;\n%s\nret;\n}\n",
            cases[i].statement);
        CUresult result = cuModuleLoadDataEx(&module, text, 2, option, value);
        if (result != cases[i].result)
            fail_msg("%s: %d, %s", cases[i].statement, (int)result, log);
        if (result != CUDA_SUCCESS)
            assert_non_null(strstr(log, "32-bit ABI"));
        else
            OK(cuModuleUnload(module));
    }
}

/* Static shared memory of a kernel and constants of a module, at their limits (NVIDIA H200, driver 13.0,
   2026-12-01; ptxas itself takes 49152 bytes of shared memory at most). */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        CUresult result;
        const char *variables, *body;
    } cases[] = {
        {CUDA_SUCCESS, ".shared .b8 s[232448];", "st.shared.u32 [s], %r1;"},
        {CUDA_ERROR_INVALID_PTX, ".shared .b8 s[232449];", "st.shared.u32 [s], %r1;"},
        {CUDA_ERROR_INVALID_PTX, "", ".shared .b8 s[232449];"}, /* a kernel's own counts unused */
        {CUDA_SUCCESS, ".shared .b8 s[300000];", ""},           /* a module's only where it is used */
        {CUDA_ERROR_INVALID_PTX,
         ".shared .b8 s[300000]; .func f() { .reg .b32 %r1; mov.u32 %r1, s; st.shared.u32 [%r1], %r1; ret; }",
         "call f;"},
        {CUDA_SUCCESS, ".const .b8 a[65532]; .const .u32 b;", ""},
        {CUDA_ERROR_INVALID_PTX, ".const .b8 a[65533]; .const .u32 b;", ""},
        {CUDA_ERROR_INVALID_PTX, ".const .b8 a[65532];", ".const .u64 b;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[600];
        CUmodule module = NULL;
        snprintf(text, sizeof text,
                 ".version 8.0\n.target sm_90\n.address_size 64\n%s\n.visible .entry k()\n{\n.reg .b32 "
                 "%%r<2>;\n%s\nret;\n}\n",
                 cases[i].variables, cases[i].body);
        CUresult result = cuModuleLoadData(&module, text);
        if (result != cases[i].result)
            fail_msg("%s %s: %d", cases[i].variables, cases[i].body, (int)result);
        if (result == CUDA_SUCCESS)
            OK(cuModuleUnload(module));
    }
}

/* A syntax error is named with its line in the log, and the size says how much of the buffer was filled. */
static void test_log(void **state)
{
    (void)state;
    char log[512], info[64] = "x";
    float milliseconds = -1;
    CUmodule module;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME,        CU_JIT_MAX_REGISTERS};
    void *values[] = {log,  (void *)(uintptr_t)sizeof log, info, (void *)(uintptr_t)sizeof info,
                      NULL, (void *)(uintptr_t)64};
    WANT(CUDA_ERROR_INVALID_PTX,
         cuModuleLoadDataEx(&module, HEADER ".visible .entry e() {\n  frobnicate.u32 %r1, 2;\n}\n", 6,
                            options, values));
    assert_non_null(strstr(log, ":5:"));
    assert_non_null(strstr(log, "frobnicate"));
    assert_int_equal((uintptr_t)values[1], strlen(log));
    assert_string_equal(info, "");
    memcpy(&milliseconds, &values[4], sizeof milliseconds);
    assert_true(milliseconds >= 0);
    /* A buffer that is too small is filled to its end. */
    values[1] = (void *)(uintptr_t)8;
    values[3] = (void *)(uintptr_t)sizeof info;
    WANT(CUDA_ERROR_INVALID_PTX,
         cuModuleLoadDataEx(&module, HEADER ".visible .entry e() {\n  frobnicate.u32 %r1, 2;\n}\n", 6,
                            options, values));
    assert_int_equal(strlen(log), 7);
    /* And a good module leaves it empty. */
    values[1] = (void *)(uintptr_t)sizeof log;
    OK(cuModuleLoadDataEx(&module, module_text, 4, options, values));
    assert_string_equal(log, "");
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/clab_api_XXXXXX";
    CUmodule module;
    CUfunction function;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(module_text, file);
    fclose(file);
    OK(cuModuleLoad(&module, path));
    OK(cuModuleGetFunction(&function, module, "count"));
    assert_int_equal(run_count(function), 7);
    remove(path);
    WANT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, path));
}

/* ---- fatbins ---- */

static void *read_data(const char *name, size_t *out_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "data/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static unsigned char buffer[65536];
    *out_bytes = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    void *copy = malloc(*out_bytes); /* exact, so that a sanitizer sees every byte too many */
    assert_non_null(copy);
    memcpy(copy, buffer, *out_bytes);
    return copy;
}

static void test_fatbins(void **state)
{
    (void)state;
    static const char *const good[] = {"plain.fatbin", "zstd.fatbin", "lz4.fatbin"};
    CUmodule module;
    CUfunction function;
    size_t bytes;
    for (size_t i = 0; i < 3; i++) {
        void *image = read_data(good[i], &bytes);
        struct {
            int magic, version;
            const void *data;
            void *more;
        } wrapper = {0x466243b1, 1, image, NULL};
        for (int wrapped = 0; wrapped < 2; wrapped++) {
            CUdeviceptr word;
            uint32_t value = 0;
            OK(wrapped ? cuModuleLoadFatBinary(&module, &wrapper) : cuModuleLoadData(&module, image));
            OK(cuModuleGetFunction(&function, module, "add_one"));
            OK(cuMemAlloc(&word, 4));
            OK(cuMemsetD32(word, 5, 1));
            void *params[] = {&word};
            OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
            OK(cuMemcpyDtoH(&value, word, 4));
            assert_int_equal(value, 6); /* sm_90's, not sm_80's */
            OK(cuModuleUnload(module));
        }
        free(image);
    }
    void *image = read_data("cubin.fatbin", &bytes);
    WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, image));
    WANT(CUDA_ERROR_NO_BINARY_FOR_GPU,
         cuModuleLoadData(&module, (char *)image + 0x50)); /* the cubin itself */
    free(image);
    image = read_data("newer.fatbin", &bytes);
    WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, image));
    free(image);
}

static CUresult load_bytes(const unsigned char *image, size_t bytes)
{
    char path[] = "/tmp/clab_api_XXXXXX";
    CUmodule module;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(image, 1, bytes, file), bytes);
    fclose(file);
    CUresult result = cuModuleLoad(&module, path);
    remove(path);
    return result;
}

/* Every byte of a file damaged, and every length of it: an error or a module, never a read outside the file
   (which only cuModuleLoad knows the end of). */
static void test_damaged_fatbins(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *image = read_data("zstd.fatbin", &bytes);
    for (size_t i = 0; i < bytes; i++) {
        image[i] ^= 0xff;
        (void)load_bytes(image, bytes);
        image[i] ^= 0xff;
    }
    for (size_t length = 0; length < bytes; length += 3)
        assert_int_not_equal(load_bytes(image, length), CUDA_SUCCESS);
    assert_int_equal(load_bytes(image, bytes), CUDA_SUCCESS);
    image[0x110 + 0x60] ^= 0x55; /* inside the frame of the entry that is taken */
    assert_int_equal(load_bytes(image, bytes), CUDA_ERROR_INVALID_IMAGE);
    image[0x110 + 0x60] ^= 0x55;
    image[13] = 0xff; /* larger than the file, says the header */
    assert_int_equal(load_bytes(image, bytes), CUDA_ERROR_INVALID_IMAGE);
    free(image);
}

/* ---- libraries ---- */

static void test_library(void **state)
{
    CUcontext primary = *state, second;
    CUlibrary library, back;
    CUkernel kernel, kernels[2];
    CUfunction function, again;
    CUmodule module;
    CUdeviceptr counter, other;
    size_t bytes = 0, offset = 9, size = 0;
    unsigned count = 0;
    int value = 0;
    const char *name = NULL;
    OK(cuCtxSetCurrent(NULL)); /* loading needs no context */
    OK(cuLibraryLoadData(&library, HEADER ".visible .entry e() { add.u32 a, b; ret; }", NULL, NULL, 0, NULL,
                         NULL, 0)); /* that it is wrong comes out later */
    WANT(CUDA_ERROR_INVALID_PTX, cuLibraryGetKernel(&kernel, library, "e"));
    OK(cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 0);
    OK(cuLibraryUnload(library));
    OK(cuLibraryLoadData(&library, module_text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 2);
    OK(cuLibraryEnumerateKernels(kernels, 2, library));
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    assert_ptr_equal(kernel, kernels[0]);
    WANT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
    OK(cuKernelGetName(&name, kernels[1]));
    assert_string_equal(name, "other");
    OK(cuKernelGetLibrary(&back, kernel));
    assert_ptr_equal(back, library);
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    assert_int_equal(value, 1024);
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetParamInfo(kernel, 0, &offset, &size));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetFunction(&function, kernel));

    OK(cuCtxSetCurrent(primary));
    OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    assert_int_equal(offset, 0);
    assert_int_equal(size, 8);
    WANT(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(kernel, 1, &offset, &size));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 100000);
    assert_int_equal(run_count(function), 7);
    assert_int_equal(run_count((CUfunction)kernel), 8); /* a kernel is launched as a function */
    OK(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
    OK(cuLibraryGetModule(&module, library));
    WANT(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));

    OK(cuCtxCreate(&second, NULL, 0, 0)); /* another context: another module */
    assert_int_equal(run_count((CUfunction)kernel), 7);
    OK(cuLibraryGetGlobal(&other, &bytes, library, "counter"));
    assert_true(other != counter);
    OK(cuKernelGetFunction(&again, kernel));
    assert_ptr_not_equal(again, function);
    OK(cuCtxDestroy(second));
    OK(cuCtxSetCurrent(primary));
    assert_int_equal(run_count(function), 9);
    OK(cuLibraryUnload(library));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, function));
}

/* ---- the linker ---- */

static void test_linker(void **state)
{
    (void)state;
    static char caller[] =
        HEADER ".extern .func (.param .b32 r) plus(.param .b32 a);\n"
               ".visible .entry call_it(.param .u64 p) { .reg .b64 a; .reg .b32 v;\n"
               "  ld.param.u64 a, [p]; ld.global.u32 v, [a];\n"
               "  { .param .b32 q; .param .b32 s; st.param.b32 [q], v; call (s), plus, (q);\n"
               "    ld.param.b32 v, [s]; } st.global.u32 [a], v; ret; }\n";
    static char callee[] =
        "// a comment first\n.version 8.3\n.target sm_80\n.address_size 64\n"
        ".visible .func (.param .b32 r) plus(.param .b32 a) { .reg .b32 v; ld.param.b32 v, [a];\n"
        "  add.u32 v, v, 1000; st.param.b32 [r], v; ret; }\n";
    CUlinkState link;
    CUmodule module;
    CUfunction function;
    CUdeviceptr word;
    void *image = NULL;
    size_t bytes = 0;
    uint32_t value = 0;
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    OK(cuLinkCreate(2, options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller.ptx", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof callee, "callee.ptx", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &bytes));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, module, "call_it"));
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 5, 1));
    void *params[] = {&word};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&value, word, 4));
    assert_int_equal(value, 1005);

    assert_int_equal((uintptr_t)values[1], 0); /* nothing to say: the size was set to that */
    values[1] = (void *)(uintptr_t)sizeof log;
    OK(cuLinkCreate(2, options, values, &link));
    static char bad[] = HEADER ".visible .entry e() { nonsense; }\n";
    WANT(CUDA_ERROR_INVALID_PTX,
         cuLinkAddData(link, CU_JIT_INPUT_PTX, bad, sizeof bad, "bad.ptx", 0, NULL, NULL));
    assert_non_null(strstr(log, "bad.ptx"));
    static unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    WANT(CUDA_ERROR_NOT_SUPPORTED,
         cuLinkAddData(link, CU_JIT_INPUT_CUBIN, elf, sizeof elf, NULL, 0, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_IMAGE,
         cuLinkAddData(link, CU_JIT_INPUT_CUBIN, bad, sizeof bad, NULL, 0, NULL, NULL));
    WANT(CUDA_ERROR_INVALID_VALUE,
         cuLinkAddData(link, (CUjitInputType)77, bad, sizeof bad, NULL, 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &bytes)); /* nothing was added: an empty image */
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
    values[1] = (void *)(uintptr_t)sizeof log;
    OK(cuLinkCreate(2, options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller.ptx", 0, NULL, NULL));
    WANT(CUDA_ERROR_UNKNOWN, cuLinkComplete(link, &image, &bytes));
    assert_non_null(strstr(log, "plus")); /* what is missing */
    OK(cuLinkDestroy(link));
}

/* ---- entry points ---- */

static void test_entry_points(void **state)
{
    (void)state;
    void *plain = NULL, *per_thread = NULL, *old = NULL;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress("cuMemcpyHtoDAsync", &plain, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    OK(cuGetProcAddress("cuMemcpyHtoDAsync", &per_thread, 13000,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    assert_non_null(plain);
    assert_ptr_not_equal(plain, per_thread);
    OK(cuGetProcAddress("cuCtxCreate", &plain, 13000, 0, &status));
    OK(cuGetProcAddress("cuCtxCreate", &old, 11000, 0, &status));
    assert_ptr_not_equal(plain, old); /* four forms, by version */
    OK(cuGetProcAddress("cuMemAlloc", &plain, 13000, 0, &status));
    CUresult (*alloc)(CUdeviceptr *, size_t);
    memcpy(&alloc, &plain, sizeof alloc);
    CUdeviceptr memory;
    OK(alloc(&memory, 16));
    OK(cuMemFree(memory));
    /* What is exported but not emulated answers so. */
    OK(cuGetProcAddress("cuMulticastCreate", &plain, 13000, 0, &status));
    CUresult (*create)(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
    memcpy(&create, &plain, sizeof create);
    WANT(CUDA_ERROR_NOT_SUPPORTED, create(NULL, NULL));
    const void *table = NULL;
    WANT(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&table, &(CUuuid){.bytes = {1, 2, 3}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_module),          IN_CONTEXT(test_log),     IN_CONTEXT(test_narrow_addresses),
        IN_CONTEXT(test_limits),          IN_CONTEXT(test_file),    IN_CONTEXT(test_fatbins),
        IN_CONTEXT(test_damaged_fatbins), IN_CONTEXT(test_library), IN_CONTEXT(test_linker),
        IN_CONTEXT(test_entry_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
