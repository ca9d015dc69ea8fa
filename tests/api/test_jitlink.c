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

enum { CUBIN = 1, PTX = 2, LTOIR = 3, FATBIN = 4, LIBRARY = 6 };
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
static const char weak[] =
    HEADER ".weak .func (.param .b32 r) shared_by_both ()\n{ { // }\n} st.param.b32 [r], 1; ret; }\n";
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
    /* of a weak function that two inputs define the first counts */
    assert_int_equal(nvJitLinkAddData(link, PTX, weak, sizeof weak, "weak"), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, weak, sizeof weak, "weak again"), SUCCESS);
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

/* Grid-wide synchronisation comes from libcudadevrt, and -maxrregcount reaches the function. */
static void test_grid(void **state)
{
    static const char text[] = HEADER
        ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 scope);\n"
        ".extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 handle, .param .b32 flags);\n"
        ".visible .entry k(.param .u64 out) { .reg .u64 a, b, h; .reg .u32 c, n, s, f<64>; .param .b32 "
        "scope, flags, done;\n"
        "  .param .b64 handle, given; ld.param.u64 a, [out]; mov.u32 c, %ctaid.x; mov.u32 n, %nctaid.x;\n"
        "  mul.wide.u32 b, c, 4; add.u64 b, a, b; st.global.u32 [b], c; st.param.b32 [scope], 1;\n"
        "  call (given), cudaCGGetIntrinsicHandle, (scope); ld.param.b64 h, [given]; st.param.b64 [handle], "
        "h;\n"
        "  st.param.b32 [flags], 0; call (done), cudaCGSynchronize, (handle, flags);\n"
        "  sub.u32 s, n, 1; sub.u32 s, s, c; mul.wide.u32 h, s, 4; add.u64 h, a, h; ld.volatile.global.u32 "
        "c, [h];\n"
        "  st.param.b64 [handle], 1; call (done), cudaCGSynchronize, (handle, flags); st.global.u32 [b], c; "
        "ret; }\n";
    static const char *options[] = {"-arch=sm_90", "-maxrregcount=10"};
    enum { CTAS = 24 };
    (void)state;
    void *link = NULL;
    char image[16384];
    uint32_t got[CTAS];
    int registers = 0;
    size_t bytes = 0;
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    assert_int_equal(__nvJitLinkCreate_13_0(&link, 2, options), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, PTX, text, sizeof text, "grid"), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, LIBRARY, "!<arch>", 8, "lib/libcudadevrt.a"), SUCCESS);
    assert_int_equal(nvJitLinkAddData(link, LIBRARY, "!<arch>", 8, "libother.a"), UNRECOGNIZED_INPUT);
    assert_int_equal(nvJitLinkComplete(link), SUCCESS);
    assert_int_equal(nvJitLinkGetLinkedCubinSize(link, &bytes), SUCCESS);
    assert_in_range(bytes, 1, sizeof image);
    assert_int_equal(nvJitLinkGetLinkedCubin(link, image), SUCCESS);
    assert_int_equal(nvJitLinkDestroy(&link), SUCCESS);
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    assert_in_range(registers, 1, 10);
    OK(cuMemAlloc(&out, sizeof got));
    void *params[] = {&out};
    for (int round = 0; round < 2; round++) { /* the barrier counts on */
        OK(cuLaunchCooperativeKernel(function, CTAS, 1, 1, 64, 1, 1, 0, NULL, params));
        OK(cuMemcpyDtoH(got, out, sizeof got));
        for (uint32_t i = 0; i < CTAS; i++)
            assert_int_equal(got[i], CTAS - 1 - i);
    }
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
    assert_int_equal(nvJitLinkAddFile(link, PTX, "/nonexistent-of-clusterlab"), 3);
    expect_log(link, "/nonexistent-of-clusterlab: cannot be read");
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
        IN_CONTEXT(test_grid),
        IN_CONTEXT(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
