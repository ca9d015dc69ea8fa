/* The stand-in for nvJitLink (host/emu/jitlink): PTX linked by it loads as the "cubin" that it says it made.
   Called by the names of symbols: nvJitLink.h declares inline functions of the same names. */
#include <stdio.h>

#include "api_test.h"

#define NVJITLINK(name, parameters) extern int name parameters;
NVJITLINK(nvJitLinkVersion, (unsigned *major, unsigned *minor))
NVJITLINK(__nvJitLinkCreate_13_0, (void **handle, uint32_t n_options, const char **options))
NVJITLINK(nvJitLinkDestroy, (void **handle))
NVJITLINK(nvJitLinkAddData, (void *handle, int type, const void *data, size_t bytes, const char *name))
NVJITLINK(nvJitLinkAddFile, (void *handle, int type, const char *path))
NVJITLINK(nvJitLinkComplete, (void *handle))
NVJITLINK(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *bytes))
NVJITLINK(nvJitLinkGetLinkedCubin, (void *handle, void *cubin))
NVJITLINK(nvJitLinkGetErrorLogSize, (void *handle, size_t *bytes))
NVJITLINK(nvJitLinkGetErrorLog, (void *handle, char *log))

enum { CUBIN = 1, PTX = 2, LTOIR = 3, FATBIN = 4 };
enum {
    SUCCESS = 0,
    UNRECOGNIZED_OPTION = 1,
    MISSING_ARCH = 2,
    PTX_COMPILE = 4,
    NVVM_COMPILE = 5,
    UNRECOGNIZED_INPUT = 8,
    FINALIZE = 9,
    LTO_NOT_ENABLED = 18
};

static const char caller[] = HEADER
    ".extern .func (.param .b32 r) seven ();\n"
    ".visible .entry k(.param .u64 out) { .reg .u64 a; .reg .u32 v; .param .b32 r; ld.param.u64 a, [out];\n"
    "  call (r), seven, (); ld.param.b32 v, [r]; st.global.u32 [a], v; ret; }\n";
static const char callee[] = HEADER ".visible .func (.param .b32 r) seven () { st.param.b32 [r], 7; ret; }\n";
static const char *arch[] = {"-arch=sm_90", "-O3"};

static void test_link(void **state)
{
    (void)state;
    void *link = NULL, *image;
    unsigned major = 0, minor = 0;
    size_t bytes = 0;
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    uint32_t got = 0;
    assert_int_equal(nvJitLinkVersion(&major, &minor), SUCCESS);
    assert_int_equal(major, 13);
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 2, arch), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, caller, sizeof caller, "caller"), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, callee, sizeof callee, "callee"), SUCCESS);
    assert_int_equal(nvJitLinkComplete(link), SUCCESS);
    assert_int_equal(nvJitLinkGetLinkedCubinSize(link, &bytes), SUCCESS);
    image = malloc(bytes);
    assert_non_null(image);
    assert_int_equal(nvJitLinkGetLinkedCubin(link, image), SUCCESS);
    assert_int_equal(nvJitLinkDestroy(&link), SUCCESS);
    assert_null(link);
    OK(cuModuleLoadData(&module, image));
    free(image);
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuMemAlloc(&out, 4));
    void *params[] = {&out};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&got, out, 4));
    assert_int_equal(got, 7);
}

static void expect_log(void *link, const char *words)
{
    char log[16384];
    size_t bytes = 0;
    assert_int_equal(nvJitLinkGetErrorLogSize(link, &bytes), SUCCESS);
    assert_in_range(bytes, 2, sizeof log);
    assert_int_equal(nvJitLinkGetErrorLog(link, log), SUCCESS);
    if (strstr(log, words) == NULL)
        fail_msg("'%s' is not in: %s", words, log);
}

static void test_refused(void **state)
{
    static const char *unknown[] = {"arch"}, *lto[] = {"-arch=sm_90", "-lto"};
    (void)state;
    void *link = NULL;
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 0, NULL), MISSING_ARCH);
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 1, unknown), UNRECOGNIZED_OPTION);
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 1, arch), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, "bad", 4, "bad"), PTX_COMPILE);
    assert_int_equal(nvJitLinkAddData(link, CUBIN, "\177ELF", 4, "machine"), UNRECOGNIZED_INPUT);
    expect_log(link, "machine: a cubin holds machine code");
    assert_int_equal(nvJitLinkAddData(link, LTOIR, "ir", 3, "ir"), LTO_NOT_ENABLED);
    assert_int_equal(nvJitLinkAddFile(link, PTX, "/nonexistent"), 3);
    expect_log(link, "/nonexistent: cannot be read");
    assert_int_equal(nvJitLinkAddFile(link, FATBIN, "data/plain.fatbin"), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, caller, sizeof caller, "caller"), SUCCESS);
    assert_int_equal(nvJitLinkComplete(link), FINALIZE);
    expect_log(link, "seven");
    assert_int_equal(nvJitLinkDestroy(&link), SUCCESS);
    unsetenv("CLUSTERLAB_NVJITLINK");
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 2, lto), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, LTOIR, "ir", 3, "ir"), NVVM_COMPILE);
    expect_log(link, "LTO IR needs NVIDIA's own nvJitLink");
    assert_int_equal(nvJitLinkDestroy(&link), SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_link),
        IN_CONTEXT(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
