/* NVRTC in this process: images, entries, errors with their place, what is kept of the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "scratch.h"

static const struct clab_toolkit *toolkit;

static const char two_kernels[] =
    "namespace ns { template <int N> __global__ void k(float *p) { p[threadIdx.x] = N; } }\n"
    "extern \"C\" __global__ void e(float *p)\n"
    "{ __shared__ float s[64]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads();\n"
    "  p[threadIdx.x] = s[63 - threadIdx.x]; }\n"
    "__global__ void plain(float *p) { p[0] = 2; }\n"
    "__device__ float helper() { return 1; }\n";

static clab_status compile(const char *text, const char *arch, enum clab_image_kind want, const char *entry,
                           struct clab_image *image, struct clab_error *error)
{
    struct clab_compile_request request = {
        .source_path = "dir/k.cu", .source_text = text, .arch = arch, .want = want, .entry = entry};
    return clab_nvrtc_compile(toolkit, &request, image, error);
}

static void test_ptx_for_a_compute_architecture(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile(two_kernels, "sm_90a", CLAB_IMAGE_PTX, "e", &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_PTX);
    assert_string_equal(image.arch, "sm_90a");
    assert_string_equal(image.lowered, "e");
    assert_non_null(strstr(image.data, ".target sm_90a"));
    assert_memory_equal(image.compiler, "nvrtc 1", 7);
    assert_int_equal(strlen(image.data), image.bytes);
    assert_null(image.ptx);
    clab_image_free(&image);
}

static void test_a_cubin_comes_with_its_ptx_and_resources(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile(two_kernels, "100f", CLAB_IMAGE_CUBIN, "e", &image, &error), CLAB_OK);
    assert_int_equal(image.kind, CLAB_IMAGE_CUBIN);
    assert_string_equal(image.arch, "sm_100f");
    assert_non_null(strstr(image.ptx, ".target sm_100f"));
    assert_true(image.resources.known);
    assert_int_equal(image.resources.static_smem_bytes, 256);
    assert_true(image.resources.registers > 0);
    assert_null(image.log); /* the verbose report is not a warning */
    assert_true(image.compile_ns > 0);
    clab_image_free(&image);
}

static void test_names_of_cpp_kernels(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile(two_kernels, "sm_90", CLAB_IMAGE_CUBIN, "ns::k<4>", &image, &error), CLAB_OK);
    assert_string_equal(image.entry, "ns::k<4>");
    assert_string_equal(image.lowered, "_ZN2ns1kILi4EEEvPf");
    assert_true(image.resources.known);
    clab_image_free(&image);
    assert_int_equal(compile(two_kernels, "sm_90", CLAB_IMAGE_PTX, "plain", &image, &error), CLAB_OK);
    assert_string_equal(image.lowered, "_Z5plainPf");
    clab_image_free(&image);
}

static void test_a_name_that_is_no_kernel_lists_those_that_are(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile(two_kernels, "sm_90", CLAB_IMAGE_PTX, "ns::zz<4>", &image, &error),
                     CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "'ns::zz<4>'"));
    assert_non_null(strstr(error.message, "_Z5plainPf"));
    assert_int_equal(compile(two_kernels, "sm_90", CLAB_IMAGE_PTX, "helper", &image, &error), CLAB_NOT_FOUND);
    clab_error_clear(&error);
}

static void test_an_error_has_file_line_column_and_log(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile("// c\n__global__ void k(int *p)\n{\n    p[0] = nothing;\n    p[1] = less;\n}\n",
                             "sm_90", CLAB_IMAGE_PTX, "k", &image, &error),
                     CLAB_COMPILE);
    assert_string_equal(error.file, "dir/k.cu");
    assert_int_equal(error.line, 4);
    assert_int_equal(error.column, 12);
    assert_string_equal(error.source_line, "    p[0] = nothing;");
    assert_non_null(strstr(error.message, "nothing"));
    assert_string_equal(error.native_call, "nvrtcCompileProgram");
    assert_null(strstr(error.log, "nothing")); /* the message has said it */
    assert_non_null(strstr(error.log, "k.cu(5): error"));
    assert_non_null(strstr(error.log, "2 errors detected"));
    clab_error_clear(&error);
}

static void test_warnings_are_kept_on_success(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile("__global__ void k(int *p)\n{\n    int unused;\n    p[0] = 1;\n}\n", "sm_90",
                             CLAB_IMAGE_PTX, "k", &image, &error),
                     CLAB_OK);
    assert_non_null(image.log);
    assert_non_null(strstr(image.log, "dir/k.cu(3): warning"));
    clab_image_free(&image);
}

static void test_missing_headers(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    struct clab_toolkit bare = *toolkit;
    struct clab_compile_request request = {.source_path = "k.cu",
                                           .source_text = "#include <cooperative_groups.h>\n",
                                           .arch = "sm_90",
                                           .want = CLAB_IMAGE_PTX};
    bare.parts[CLAB_PART_CUDA_INCLUDE].found = false;
    assert_int_equal(clab_nvrtc_compile(&bare, &request, &image, &error), CLAB_COMPILE);
    assert_non_null(strstr(error.message, "cooperative_groups.h"));
    assert_non_null(strstr(error.remedy, "CUDA headers are missing"));
    request.source_text = "#include <vector>\n";
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_COMPILE);
    assert_non_null(strstr(error.remedy, "device code only"));
    request.source_text = "#include \"mine.h\"\n";
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_COMPILE);
    assert_non_null(strstr(error.remedy, "-I DIR"));
    bare.parts[CLAB_PART_NVRTC].found = false;
    bare.parts[CLAB_PART_NVRTC].remedy = "get it";
    assert_int_equal(clab_nvrtc_compile(&bare, &request, &image, &error), CLAB_NO_TOOLKIT);
    assert_string_equal(error.remedy, "get it");
    clab_error_clear(&error);
}

/* With libcu++, and by hand where it is not; the compile without them stays as it was. */
static void test_host_headers(void **state)
{
    (void)state;
    static const char source[] =
        "#include <cstdint>\n#include <climits>\n#include <cfloat>\n#include <stdio.h>\n#include <cstddef>\n"
        "#include <math.h>\n#include <cuda.h>\n"
        "static_assert(sizeof(std::uint64_t) == 8 && UINT32_MAX == 4294967295u && INT64_MIN < 0, \"\");\n"
        "static_assert(LONG_MAX == INT64_MAX && INT_MIN == -INT_MAX - 1 && CHAR_BIT == 8, \"\");\n"
        "static_assert(sizeof(CUtensorMap) == 128 && sizeof(std::size_t) == 8, \"\");\n"
        "struct s { char c; int i; };\nstatic_assert(offsetof(s, i) == 4, \"\");\n"
        "extern \"C\" __global__ void k(float *x) { x[0] = FLT_MAX < INFINITY ? (float)M_PI : NAN; }\n";
    struct clab_toolkit bare = *toolkit;
    struct clab_compile_request request = {
        .source_path = "k.cu", .source_text = source, .arch = "sm_90", .want = CLAB_IMAGE_PTX, .entry = "k"};
    for (int i = 0; i < 2; i++) {
        struct clab_image image;
        struct clab_error error = {0};
        bare.parts[CLAB_PART_CCCL_INCLUDE].found = i == 0 && toolkit->parts[CLAB_PART_CCCL_INCLUDE].found;
        if (clab_nvrtc_compile(&bare, &request, &image, &error) != CLAB_OK)
            fail_msg("%s\n%s", error.message, error.log != NULL ? error.log : "");
        assert_null(image.log);
        clab_image_free(&image);
        clab_error_clear(&error);
    }
}

static void test_includes_defines_and_options(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    scratch_make();
    const char *dirs[] = {scratch_path("inc")};
    static const char *const defines[] = {"N=7", "FLAG"}, *const options[] = {"--maxrregcount=32"};
    scratch_write("inc/far.h", "#define FAR 1\n");
    scratch_write("near.h", "#define NEAR 1\n");
    const char *path =
        scratch_write("k.cu", "#include <far.h>\n#include \"near.h\"\n"
                              "#if !defined(FLAG) || N != 7 || !FAR || !NEAR\n#error no\n#endif\n"
                              "extern \"C\" __global__ void k(int *p) { *p = N; }\n");
    struct clab_compile_request request = {.source_path = path,
                                           .arch = "sm_90",
                                           .want = CLAB_IMAGE_PTX,
                                           .entry = "k",
                                           .include_dirs = dirs,
                                           .include_dir_count = 1,
                                           .defines = defines,
                                           .define_count = 2,
                                           .options = options,
                                           .option_count = 1,
                                           .line_info = true};
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_OK);
    assert_non_null(strstr(image.data, ".loc"));
    clab_image_free(&image);
    request.define_count = 1;
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_COMPILE);
    assert_int_equal(error.line, 4);
    static const char *const bad[] = {"--bogus"};
    request.options = bad;
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_COMPILE);
    assert_non_null(strstr(error.message, "--bogus"));
    clab_error_clear(&error);
    scratch_remove();
}

static void test_a_gated_wrapper_is_an_error_at_once(void **state)
{
    (void)state;
    toolkit_or_skip(CLAB_PART_CCCL_INCLUDE);
    struct clab_image image;
    struct clab_error error = {0};
    static const char text[] =
        "#include <cuda/ptx>\n"
        "extern \"C\" __global__ void k(void *p, unsigned short m) {\n"
        "  __shared__ alignas(16) char s[16]; __shared__ unsigned long long b;\n"
        "  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, s, p, 16, &b, m); }\n";
    assert_int_equal(compile(text, "sm_103a", CLAB_IMAGE_PTX, "k", &image, &error), CLAB_PTX_TARGET);
    assert_non_null(strstr(error.message, "cuda::ptx::cp_async_bulk"));
    assert_non_null(strstr(error.message, "90a"));
    assert_non_null(strstr(error.message, "sm_103a"));
    /* The silent twin. */
    assert_int_equal(compile(text, "sm_90a", CLAB_IMAGE_PTX, "k", &image, &error), CLAB_OK);
    clab_image_free(&image);
    clab_error_clear(&error);
}

/* What we set of CCCL shows in the time only: the same bytes as with the value of its own header. */
static void test_the_unroll_limit_does_not_change_the_ptx(void **state)
{
    (void)state;
    toolkit_or_skip(CLAB_PART_CCCL_INCLUDE);
    static const char *const own[] = {"_CCCL_META_UNROLL_LIMIT=16"}, *const archs[] = {"sm_90", "sm_100a"};
    static const char *const texts[] = {
        "#include <cooperative_groups.h>\nextern \"C\" __global__ void k(int *p) {\n"
        "  cooperative_groups::this_cluster().sync(); *p = 1; }\n",
        "#include <cuda/std/tuple>\n#include <cuda/std/variant>\n#include <cuda/barrier>\n"
        "struct as_int { template <class T> __device__ int operator()(T x) const { return (int)x; } };\n"
        "extern \"C\" __global__ void k(int *p) {\n"
        "  cuda::std::tuple<char, int, float, short, long, char, int, float, short, long, char, int, float, "
        "short,\n"
        "    long, char, int, float, short> t; cuda::std::get<17>(t) = 2.f;\n"
        "  cuda::std::variant<int, float, long> v{*p};\n"
        "  *p = (int)cuda::std::get<17>(t) + cuda::std::visit(as_int{}, v); }\n"};
    for (size_t i = 0; i < 4; i++) {
        struct clab_image ours, theirs;
        struct clab_error error = {0};
        struct clab_compile_request request = {.source_path = "k.cu",
                                               .arch = archs[i % 2],
                                               .want = CLAB_IMAGE_PTX,
                                               .entry = "k",
                                               .source_text = texts[i / 2]};
        if (clab_nvrtc_compile(toolkit, &request, &ours, &error) != CLAB_OK)
            fail_msg("%s\n%s", error.message, error.log != NULL ? error.log : "");
        request.defines = own;
        request.define_count = 1;
        assert_int_equal(clab_nvrtc_compile(toolkit, &request, &theirs, &error), CLAB_OK);
        assert_string_equal(ours.data, theirs.data);
        clab_image_free(&ours);
        clab_image_free(&theirs);
    }
}

/* A user who speaks of it finds it as it would be without us. */
static void test_the_unroll_limit_is_the_users(void **state)
{
    (void)state;
    struct clab_image image;
    struct clab_error error = {0};
    assert_int_equal(compile("#ifdef _CCCL_META_UNROLL_LIMIT\n#error set\n#endif\n"
                             "extern \"C\" __global__ void k(int *p) { *p = 1; }\n",
                             "sm_90", CLAB_IMAGE_PTX, "k", &image, &error),
                     CLAB_OK);
    clab_image_free(&image);
    scratch_make();
    scratch_write("limit.h", "#define _CCCL_META_UNROLL_LIMIT 4\n");
    struct clab_compile_request request = {
        .source_path = scratch_write("k.cu", "#include \"limit.h\"\n"
                                             "extern \"C\" __global__ void k(int *p) { *p = 1; }\n"),
        .arch = "sm_90",
        .want = CLAB_IMAGE_PTX,
        .entry = "k"};
    assert_int_equal(clab_nvrtc_compile(toolkit, &request, &image, &error), CLAB_OK);
    assert_null(image.log); /* no "incompatible redefinition" */
    clab_image_free(&image);
    scratch_remove();
    /* A recursion of the user's own is looked at twice, and told once. */
    assert_int_equal(compile("template <int N> struct s : s<N + 1> {};\n"
                             "extern \"C\" __global__ void k(int *p) { *p = sizeof(s<0>); }\n",
                             "sm_90", CLAB_IMAGE_PTX, "k", &image, &error),
                     CLAB_COMPILE);
    assert_non_null(strstr(error.message, "excessive recursion"));
    clab_error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx_for_a_compute_architecture),
        cmocka_unit_test(test_a_cubin_comes_with_its_ptx_and_resources),
        cmocka_unit_test(test_names_of_cpp_kernels),
        cmocka_unit_test(test_a_name_that_is_no_kernel_lists_those_that_are),
        cmocka_unit_test(test_an_error_has_file_line_column_and_log),
        cmocka_unit_test(test_warnings_are_kept_on_success),
        cmocka_unit_test(test_missing_headers),
        cmocka_unit_test(test_host_headers),
        cmocka_unit_test(test_includes_defines_and_options),
        cmocka_unit_test(test_a_gated_wrapper_is_an_error_at_once),
        cmocka_unit_test(test_the_unroll_limit_does_not_change_the_ptx),
        cmocka_unit_test(test_the_unroll_limit_is_the_users),
    };
    toolkit = toolkit_or_skip(CLAB_PART_NVRTC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
