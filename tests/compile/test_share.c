/* One compile for the targets of a chip: which sources may share it, and that what comes of it is what each
   target's own compile gives. This program is its own compile worker. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "compile/compile.h"
#include "compile/share.h"
#include "scratch.h"

static const struct clab_toolkit *toolkit;

/* --- what a text says */

static const struct {
    enum clab_share_verdict verdict;
    enum clab_share_owner owner;
    const char *text;
} texts[] = {
#define SAME  CLAB_SHARE_SAME, CLAB_SHARE_CUDA
#define LOOKS CLAB_SHARE_LOOKS, CLAB_SHARE_CUDA
    {SAME, ""},
    {SAME, "#if __CUDA_ARCH__ >= 900\nint a;\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif\n"},
    {LOOKS, "#  ifdef __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif\n"},
    {LOOKS, "#if 0\n#elif defined(__CUDA_ARCH_SPECIFIC__)\nint a;\n#endif\n"},
    {LOOKS, "#ifndef __CUDA_ARCH_FAMILY_SPECIFIC__\n#else\nint a;\n#endif\n"},
    {LOOKS, "int a = __CUDA_ARCH_FAMILY_SPECIFIC__;\n"},
    {LOOKS, "NV_IF_TARGET(NV_HAS_FEATURE_SM_90a, (f();))\n"},
    {LOOKS, "#if 1 \\\n    && __CUDA_HAS_ARCH_SPECIFIC(90)\nint a;\n#endif\n"},
    {LOOKS, "#define ALL(x) x##FEAT_SM90_ALL\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#error no\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#include <a>\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#define FAST 1\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#undef FAST\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#if A\nint a;\n#endif\n#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n"}, /* no #endif */
    /* Comments say nothing; strings may be asm, with macros beside them. */
    {SAME, "// __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n"},
    {SAME, "/* __CUDA_ARCH_FEAT_SM90_ALL\n */ int a;\n"},
    {SAME, "#if A // NV_HAS_FEATURE_SM_90a\nint a;\n#endif\n"},
    {LOOKS, "const char *a = \"//\"; int b = __CUDA_ARCH_SPECIFIC__;\n"},
    {LOOKS, "char a = '\"'; /* \" */ int b = __CUDA_ARCH_SPECIFIC__; // '\n"},
    {LOOKS, "int a = 1'000; int b = __CUDA_ARCH_SPECIFIC__; // '\n"},
    /* A name made of such a name, and used elsewhere, is found elsewhere. */
    {SAME, "#if __CUDA_ARCH_FEAT_SM90_ALL\n#  define NV_HAS_FEATURE_SM_90a 1\n#else\n"
           "#  define NV_HAS_FEATURE_SM_90a 0 // none\n#endif\nint a;\n"},
/* libcu++'s wrappers: the #else is missed by the linker. */
#define GATE "__cuda_ptx_a_is_not_supported_before_SM_90a__();\n"
    {CLAB_SHARE_GATED, CLAB_SHARE_WRAPPERS,
     "#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#else\n" GATE "#endif\n"},
    {LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#else\n" GATE "#endif\n"},
    {CLAB_SHARE_LOOKS, CLAB_SHARE_WRAPPERS,
     "#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#elif A\nint b;\n#else\n" GATE "#endif\n"},
    {CLAB_SHARE_LOOKS, CLAB_SHARE_WRAPPERS,
     "#if __CUDA_ARCH_FEAT_SM90_ALL\n" GATE "#else\nasm(\"a\");\n#endif\n"},
    {CLAB_SHARE_LOOKS, CLAB_SHARE_WRAPPERS,
     "#if __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif\n#if B\n#else\n" GATE "#endif\n"},
    {CLAB_SHARE_LOOKS, CLAB_SHARE_WRAPPERS,
     "#if __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif\n#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#else\n" GATE
     "#endif\n"},
/* What the user writes is taken for more than it may be. */
#define OWN_SAME  CLAB_SHARE_SAME, CLAB_SHARE_USER
#define OWN_LOOKS CLAB_SHARE_LOOKS, CLAB_SHARE_USER
    {OWN_SAME, "#if __CUDA_ARCH__ >= 900 && defined(__CUDA_ARCH_LIST__)\nint a;\n#endif\n"},
    {OWN_SAME, "#define TWICE(x) \\\n  (2 * (x))\n"},
    {OWN_LOOKS, "int a; // __CUDA_ARCH_FEAT_SM90_ALL\n"},
    {OWN_LOOKS, "#define CAT(a, b) a##b\n#if CAT(__CUDA_ARCH_F, EAT_SM90_ALL)\nint a;\n#endif\n"},
    {OWN_LOOKS, "#define CAT(a, b) a %:%: b\n"},
    {OWN_LOOKS, "_CCCL_PP_CAT(__CUDA_ARCH_SPE, CIFIC__)\n"},
    {OWN_LOOKS, "_CCCL_PP_CAT(NV_HAS, _FEATURE_SM_90a)\n"},
    {OWN_LOOKS, "#if __CUDA_ARCH_F\\\nEAT_S\\\r\nM90_ALL\nint a;\n#endif\n"},
    {OWN_LOOKS, "const char *a = R\"(/*)\";\n#ifdef __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif // */\n"},
    {OWN_LOOKS, "#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#else\n" GATE "#endif\n"},
};

static void test_what_a_text_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (clab_share_look(texts[i].text, texts[i].owner) != texts[i].verdict)
            fail_msg("verdict %d of: %s", (int)clab_share_look(texts[i].text, texts[i].owner), texts[i].text);
}

static void test_what_is_tried(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        bool possible;
    } options[] = {{"--use_fast_math", true},
                   {"-DA=1", true},
                   {"-DA=__CUDA_ARCH_FEAT_SM90_ALL", false},
                   {"-maxrregcount=32", false},
                   {"-G", false},
                   {"--ptxas-options=-O1", false},
                   {"-dlto", false},
                   {"--pre-include=a.h", false}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct clab_compile_request request = {.source_path = "k.cu",
                                               .source_text = "int a;\n",
                                               .arch = "sm_90a",
                                               .want = CLAB_IMAGE_CUBIN,
                                               .options = &options[i].option,
                                               .option_count = 1,
                                               .per_chip = true};
        assert_int_equal(clab_share_possible(&request), options[i].possible);
        request.option_count = 0;
        assert_true(clab_share_possible(&request));
        request.want = CLAB_IMAGE_PTX;
        assert_false(clab_share_possible(&request));
        request.want = CLAB_IMAGE_CUBIN;
        request.per_chip = false;
        assert_false(clab_share_possible(&request));
    }
}

static void test_what_names_small_floats(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool names;
    } sources[] = {{"float f;", false},
                   {"__half h; fpga(); FP16 a;", false},
                   {"#include <cuda_fp8.h>", true},
                   {"__nv_fp4_e2m1 a;", true},
                   {"#if CCCL_HAS_NVFP8()", true}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        const struct clab_compile_request request = {.source_path = "k.cu", .source_text = sources[i].text};
        assert_int_equal(clab_share_names_small_floats(&request, NULL), sources[i].names);
    }
    char list[4400];
    const struct clab_compile_request request = {.source_path = "k.cu", .source_text = "int a;"};
    snprintf(list, sizeof list, "%s %064d\n", scratch_write("with space.h", "__nv_fp6_e3m2 a;\n"), 0);
    assert_true(clab_share_names_small_floats(&request, list));
    snprintf(list, sizeof list, "%s %064d\n", scratch_write("with space.h", "int b;\n"), 0);
    assert_false(clab_share_names_small_floats(&request, list));
    assert_true(clab_share_names_small_floats(&request, "/nonexistent/a.h 0000000000000000000000000000000000"
                                                        "000000000000000000000000000000\n"));
}

static void test_what_proves_it(void **state)
{
    (void)state;
    char trace[9000], same[4096];
    struct clab_toolkit kit = {0};
    const char *looks = scratch_write("looks.h", "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\nint a;\n#endif\n");
    snprintf(same, sizeof same, "%s", scratch_write("same.h", "int a;\n"));
    snprintf(trace, sizeof trace, "__nv_nvrtc_builtin_header.h\n%s\n %s\n  %s\n", same, same, "cstdint");
    assert_true(clab_share_proved(&kit, "int a;", trace, ""));
    assert_false(clab_share_proved(&kit, "int a = __CUDA_ARCH_SPECIFIC__;", trace, ""));
    assert_false(clab_share_proved(&kit, "int a;", "", ""));
    snprintf(trace, sizeof trace, "__nv_nvrtc_builtin_header.h\n%s\n %s\n", same, looks);
    assert_false(clab_share_proved(&kit, "int a;", trace, ""));
    assert_false(clab_share_proved(&kit, "int a;", "__nv_nvrtc_builtin_header.h\nno such file\n", ""));
    /* A wrapper's file, in what is CUDA's folder here, and not. */
    snprintf(same, sizeof same, "%s",
             scratch_write("cccl/cuda/__ptx/instructions/a.h",
                           "#if __CUDA_ARCH_FEAT_SM90_ALL\nasm(\"a\");\n#else\n" GATE "#endif\n"));
    snprintf(trace, sizeof trace, "__nv_nvrtc_builtin_header.h\n%s\n", same);
    assert_false(clab_share_proved(&kit, "int a;", trace, ".visible .entry k() { ret; }"));
    kit.parts[CLAB_PART_CCCL_INCLUDE].found = true;
    snprintf(kit.parts[CLAB_PART_CCCL_INCLUDE].path, sizeof kit.parts[0].path, "%s", scratch_path("cccl"));
    assert_true(clab_share_proved(&kit, "int a;", trace, ".visible .entry k() { ret; }"));
    assert_false(
        clab_share_proved(&kit, "int a;", trace, "call __cuda_ptx_a_is_not_supported_before_SM_90a__;"));
}

static void test_another_target(void **state)
{
    (void)state;
    const struct clab_target *target = clab_target_find("sm_100a");
    char *text = clab_share_retarget("//\n.version 9.0\n.target sm_100, debug\n.address_size 64\n", target);
    assert_string_equal(text, "//\n.version 9.0\n.target sm_100a, debug\n.address_size 64\n");
    free(text);
    assert_null(clab_share_retarget(".version 9.0\n", target));
}

/* --- what comes of it */

#define MOST 40
struct asked {
    struct clab_compile_request requests[MOST];
    struct clab_compile_result results[MOST];
    size_t count, jobs; /* jobs: what workers were given */
};

static void ask(struct asked *asked, const char *file, const char *const *entries, size_t entry_count,
                const char *const *archs, size_t arch_count)
{
    struct clab_compiler *compiler = scratch_compiler(2, 0);
    asked->count = 0;
    for (size_t i = 0; i < arch_count; i++)
        for (size_t k = 0; k < entry_count; k++)
            asked->requests[asked->count++] = (struct clab_compile_request){.source_path = file,
                                                                            .arch = archs[i],
                                                                            .want = CLAB_IMAGE_CUBIN,
                                                                            .entry = entries[k],
                                                                            .per_chip = true};
    clab_compile_all(compiler, asked->requests, asked->count, asked->results, NULL, NULL);
    asked->jobs = clab_compiler_compiled(compiler);
    clab_compiler_free(compiler);
}

static void free_asked(struct asked *asked)
{
    for (size_t i = 0; i < asked->count; i++)
        clab_compile_result_free(&asked->results[i]);
}

/* PTX without what a name expression or the header's comments add, from the first function on. */
static const char *code_of(const char *ptx)
{
    const char *at = strstr(ptx, ".entry");
    return at != NULL ? at : ptx;
}

/* Every answer is what the target's own compile gives. */
static void assert_as_apart(const struct asked *asked)
{
    for (size_t i = 0; i < asked->count; i++) {
        struct clab_image image;
        struct clab_error error = {0};
        struct clab_compile_request request = asked->requests[i];
        const struct clab_compile_result *result = &asked->results[i];
        char target[32];
        request.per_chip = false;
        const clab_status status = clab_nvrtc_compile(toolkit, &request, &image, &error);
        assert_int_equal(result->status, status);
        if (status != CLAB_OK) {
            assert_string_equal(result->error.message, error.message);
            assert_int_equal(result->error.line, error.line);
            clab_error_clear(&error);
            continue;
        }
        snprintf(target, sizeof target, ".target %s\n", request.arch);
        assert_non_null(strstr(result->image.ptx, target));
        assert_string_equal(code_of(result->image.ptx), code_of(image.ptx));
        assert_string_equal(result->image.arch, image.arch);
        if (request.entry != NULL) {
            assert_string_equal(result->image.entry, image.entry);
            assert_string_equal(result->image.lowered, image.lowered);
            assert_true(result->image.resources.known);
            assert_int_equal(result->image.resources.static_smem_bytes, image.resources.static_smem_bytes);
        }
        assert_false(result->image.per_chip);
        assert_true(result->image.log == NULL || strstr(result->image.log, "Used ") == NULL);
        clab_image_free(&image);
    }
}

static const char *const chips[] = {"sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_120", "sm_120a"};
#define SMALL                                                                                  \
    "extern \"C\" __global__ void small(int *p) { *p = 1; }\n"                                 \
    "extern \"C\" __global__ void large(float *p) { __shared__ float s[64]; s[threadIdx.x] = " \
    "p[threadIdx.x]; "                                                                         \
    "__syncthreads(); p[threadIdx.x] = s[63 - threadIdx.x] / p[65]; }\n"                       \
    "__global__ void named(int *p, unsigned q) { *p = q; }\n"                                  \
    "template <int N> __global__ void of(int *p) { *p = N; }\n"

static void test_one_compile_for_a_chip(void **state)
{
    (void)state;
    static const char *const entries[] = {"small", "large", "named"};
    struct asked asked;
    const char *file = scratch_write("k.cu", SMALL);
    ask(&asked, file, entries, 3, chips, 7);
    assert_int_equal(asked.jobs, 7); /* a target each, for all three kernels */
    assert_as_apart(&asked);
    free_asked(&asked);
    ask(&asked, file, entries, 3, chips, 7);
    assert_int_equal(asked.jobs, 0); /* kept */
    assert_as_apart(&asked);
    free_asked(&asked);
}

static void test_an_expression_is_instantiated(void **state)
{
    (void)state;
    static const char *const entries[] = {"of<4>", "of<5>"};
    struct asked asked;
    ask(&asked, scratch_write("k.cu", SMALL), entries, 2, chips, 2);
    assert_int_equal(asked.jobs, 4);
    assert_as_apart(&asked);
    free_asked(&asked);
}

/* Two kernels of one name: each is asked for by what NVRTC calls it, or not at all. */
static void test_a_name_that_is_not_clear(void **state)
{
    (void)state;
    static const char *const entries[] = {"ns::named", "no_such"};
    struct asked asked;
    ask(&asked, scratch_write("k.cu", SMALL "namespace ns { __global__ void named(int *p) { *p = 3; } }\n"),
        entries, 2, chips, 2);
    assert_as_apart(&asked);
    assert_int_equal(asked.results[0].status, CLAB_OK);
    assert_int_equal(asked.results[1].status, CLAB_NOT_FOUND);
    free_asked(&asked);
}

static void test_a_source_that_looks(void **state)
{
    (void)state;
    static const char *const entries[] = {"k"};
    struct asked asked;
    scratch_write("value.h", "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#define VALUE 77\n#else\n#define VALUE 55\n"
                             "#endif\n");
    ask(&asked,
        scratch_write("k.cu",
                      "#include \"value.h\"\nextern \"C\" __global__ void k(int *p) { *p = VALUE; }\n"),
        entries, 1, chips, 7);
    assert_as_apart(&asked);
    assert_null(strstr(asked.results[0].image.ptx, "77"));
    assert_non_null(strstr(asked.results[1].image.ptx, "77"));
    free_asked(&asked);
}

/* What only the assembler refuses is refused with the source's line, for the targets that it is refused for.
 */
static void test_instructions_of_one_target(void **state)
{
    (void)state;
    static const char *const entries[] = {"k", "other"};
    struct asked asked;
    ask(&asked,
        scratch_write("k.cu", "extern \"C\" __global__ void other(int *p) { *p = 1; }\n"
                              "extern \"C\" __global__ void k(int *p) {\n"
                              "  asm volatile(\"setmaxnreg.inc.sync.aligned.u32 64;\");\n  *p = 1; }\n"),
        entries, 2, chips, 7);
    assert_as_apart(&asked);
    assert_int_equal(asked.results[0].status, CLAB_PTX_TARGET); /* sm_90 */
    assert_int_equal(asked.results[2].status, CLAB_OK);         /* sm_90a */
    free_asked(&asked);
}

static void test_headers_of_cuda(void **state)
{
    (void)state;
    static const char *const entries[] = {"k"};
    static const char *const sources[] = {
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
        "extern \"C\" __global__ void k(int *p) { auto c = cooperative_groups::this_cluster(); c.sync();\n"
        "  *p = c.map_shared_rank(p, 0)[1]; }\n",
        /* used without a wrapper that only sm_90a has, */
        "#include <cuda/barrier>\n#include <cuda/ptx>\n"
        "extern \"C\" __global__ void k(int *p) { *p = cuda::ptx::get_sreg_cluster_ctarank(); }\n",
        /* and with one */
        "#include <cuda/ptx>\nextern \"C\" __global__ void k(char *p, unsigned long long *b) {\n"
        "  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, p, p, 16u, (uint64_t "
        "*)b,"
        " (uint16_t)1); }\n",
        /* its types are named: they stay */
        "#include <cuda/std/limits>\n#include <cuda_fp8.h>\nextern \"C\" __global__ void k(int *p) {\n"
        "  *p = cuda::std::numeric_limits<__nv_fp8_e4m3>::digits; }\n"};
    static const bool shared[] = {true, true, false, false};
    static const char *const archs[] = {"sm_100", "sm_100a"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct asked asked;
        struct clab_image image;
        const char *file = scratch_write("k.cu", sources[i]);
        ask(&asked, file, entries, 1, archs, 2);
        assert_as_apart(&asked);
        free_asked(&asked);
        const struct clab_compile_request request = {.source_path = file,
                                                     .source_text = sources[i],
                                                     .arch = "sm_100a",
                                                     .want = CLAB_IMAGE_CUBIN,
                                                     .entry = "k",
                                                     .per_chip = true};
        if (clab_nvrtc_compile_for_chip(toolkit, &request, &image) != shared[i])
            fail_msg("source %zu is%s shared", i, shared[i] ? " not" : "");
        clab_image_free(&image);
    }
}

static int set_up(void **state)
{
    (void)state;
    scratch_make();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--compile-worker") == 0)
        return clab_compile_worker(STDIN_FILENO, STDOUT_FILENO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_text_says),
        cmocka_unit_test(test_what_is_tried),
        cmocka_unit_test_setup_teardown(test_what_names_small_floats, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_what_proves_it, set_up, scratch_tear_down),
        cmocka_unit_test(test_another_target),
        cmocka_unit_test_setup_teardown(test_one_compile_for_a_chip, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_an_expression_is_instantiated, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_that_is_not_clear, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_a_source_that_looks, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_instructions_of_one_target, set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_headers_of_cuda, set_up, scratch_tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]); /* compile_share test_what* */
    signal(SIGPIPE, SIG_IGN);
    toolkit_or_skip(CLAB_PART_CUDA_INCLUDE);
    toolkit_or_skip(CLAB_PART_CCCL_INCLUDE);
    toolkit_or_skip(CLAB_PART_NVJITLINK);
    toolkit = toolkit_or_skip(CLAB_PART_NVRTC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
