/* Linking of several PTX modules by cuLink* (PTX ISA 9.0, 11.6 "Linking Directives"). Each case gives its
   modules and what its kernel `k` stores, or what the linker says. nvlink 13.0 takes and refuses the same
   (ptxas -c, then nvlink, 2026-11-30). */
#include "api_test.h"

#include <stdio.h>

enum { MOST = 4 };
struct link_case {
    const char *label;
    const char *modules[MOST]; /* without header */
    uint32_t value;            /* what k stores at its argument */
    const char *refused;       /* a part of the linker's log instead */
};

#define KERNEL(body)                                                                                 \
    ".visible .entry k(.param .u64 p) { .reg .b64 a, b; .reg .b32 v, w; ld.param.u64 a, [p];\n" body \
    "\nst.global"                                                                                    \
    ".u32 [a], v; ret; }\n"
#define CALL(name)      "{ .param .b32 q; call (q), " name ", (); ld.param.b32 w, [q]; add.u32 v, v, w; }\n"
#define RETURNS(number) "{ .reg .b32 x; mov.u32 x, " number "; st.param.b32 [r], x; ret; }\n"

static const struct link_case cases[] = {
    {"a function of another module",
     {".extern .func (.param .b32 r) f();\n" KERNEL("mov.u32 v, 1;" CALL("f")),
      ".visible .func (.param .b32 r) f()" RETURNS("10")},
     11,
     NULL},
    {"a variable of another module",
     {".extern .global .align 4 .u32 x;\n" KERNEL("ld.global.u32 v, [x];"),
      ".visible .global .align 4 .u32 x = 7;\n"},
     7,
     NULL},
    {"of weak functions the first",
     {".weak .func (.param .b32 r) f()" RETURNS("1") KERNEL("mov.u32 v, 0;" CALL("f")),
      ".weak .func (.param .b32 r) f()" RETURNS("2")},
     1,
     NULL},
    {"a visible function before a weak one",
     {".weak .func (.param .b32 r) f()" RETURNS("1") KERNEL("mov.u32 v, 0;" CALL("f")),
      ".visible .func (.param .b32 r) f()" RETURNS("2")},
     2,
     NULL},
    {"weak variables",
     {".weak .global .align 1 .u8 x = 1;\n" KERNEL("ld.global.u8 v, [x];"),
      ".weak .global .align 1 .u8 x = 1;\n", ".weak .global .align 1 .u8 x = 1;\n"},
     1,
     NULL},
    {"a visible variable before a weak one",
     {".weak .global .align 4 .u32 x = 1;\n" KERNEL("ld.global.u32 v, [x];"),
      ".visible .global .align 4 .u32 x = 2;\n"},
     2,
     NULL},
    {"weak constants, an initialiser of addresses",
     {".weak .const .align 4 .u32 c[2] = {3, 4};\n.weak .global .align 8 .u64 t[1] = {c};\n" KERNEL(
          "ld.const.u32 v, [c+4];"),
      ".weak .const .align 4 .u32 c[2] = {3, 4};\n.weak .global .align 8 .u64 t[1] = {c};\n"},
     4,
     NULL},
    {"of common variables the largest",
     {".common .global .align 4 .b8 x[4];\n" KERNEL("st.global.u32 [x], 5; ld.global.u32 v, [x];"),
      ".common .global .align 4 .b8 x[64];\n.visible .func g() { .reg .b32 y; ld.global.u32 y, [x+60]; ret; "
      "}\n"},
     5,
     NULL},
    {"a weak variable before a common one",
     {".common .global .align 4 .u32 x;\n" KERNEL("ld.global.u32 v, [x];"),
      ".weak .global .align 4 .u32 x = 6;\n"},
     6,
     NULL},
    {"prototypes of another size",
     {".extern .func (.param .b32 r) f();\n" KERNEL("mov.u32 v, 1;" CALL("f")),
      ".visible .func (.param .b64 r) f(.param .b32 a) { .reg .b64 x; mov.u64 x, 1; st.param.b64 [r], x; "
      "ret; }"},
     0,
     "the prototypes of 'f' do not match"},
    {"own names that two modules share",
     {".extern .func (.param .b32 r) g();\n.global .align 4 .u32 x = 1;\n.func (.param .b32 r) f()" RETURNS(
          "20") KERNEL("ld.global.u32 v, [x];" CALL("f") CALL("g")),
      ".global .align 4 .u32 x = 300;\n.func (.param .b32 r) f()" RETURNS("4000") ".visible .func (.param "
                                                                                  ".b32 r) g() { .reg .b32 "
                                                                                  "v, w; ld.global.u32 v, "
                                                                                  "[x];\n" CALL(
                                                                                      "f") "st.param.b32 "
                                                                                           "[r], v; ret; "
                                                                                           "}\n"},
     4321,
     NULL},
    {"an own name beside one that others see",
     {".extern .func (.param .b32 r) g();\n.global .align 4 .u32 x = 1;\n" KERNEL(
          "ld.global.u32 v, [x];" CALL("g")),
      ".visible .global .align 4 .u32 x = 300;\n.visible .func (.param .b32 r) g() { .reg .b32 v; "
      "ld.global.u32 v, "
      "[x]; st.param.b32 [r], v; ret; }\n"},
     301,
     NULL},
    {"numbers of files, a debug section, pragmas",
     {".file 1 \"a.cu\"\n.extern .func (.param .b32 r) g();\n" KERNEL(".loc 1 2 3\nmov.u32 v, 1;" CALL("g")),
      ".file 1 \"b.cu\"\n.pragma \"nounroll\";\n.visible .func (.param .b32 r) g() {\n.reg .b32 x;\n.loc 1 9 "
      "1\nmov.u32 "
      "x, 1; st.param.b32 [r], x; ret; }\n.section .debug_str { .b8 65, 0\n }\n"},
     2,
     NULL},
    {"a weak entry twice",
     {".weak .entry e() { ret; }\n" KERNEL("mov.u32 v, 8;"), ".weak .entry e() { ret; }\n"},
     8,
     NULL},
    {"an alias in another module",
     {".extern .func (.param .b32 r) g();\n" KERNEL("mov.u32 v, 0;" CALL("g")),
      ".visible .func (.param .b32 r) f()" RETURNS(
          "6") ".visible .func (.param .b32 r) g();\n.alias g, f;\n"},
     6,
     NULL},
    {"a weak alias before a weak function",
     {".weak .func (.param .b32 r) g()" RETURNS("1") KERNEL("mov.u32 v, 0;" CALL("g")),
      ".visible .func (.param .b32 r) f()" RETURNS("6") ".weak .func (.param .b32 r) g();\n.alias g, f;\n"},
     6,
     NULL},
    {"a weak alias beside a visible function",
     {".visible .func (.param .b32 r) g()" RETURNS("1") KERNEL("mov.u32 v, 0;" CALL("g")),
      ".visible .func (.param .b32 r) f()" RETURNS("6") ".weak .func (.param .b32 r) g();\n.alias g, f;\n"},
     0,
     "multiple definition of 'g' in 'module 1', first defined in 'module 0'"},
    {"two weak aliases",
     {".visible .func (.param .b32 r) e()" RETURNS(
          "1") ".weak .func (.param .b32 r) g();\n.alias g, e;\n" KERNEL("mov.u32 v, 0;" CALL("g")),
      ".visible .func (.param .b32 r) f()" RETURNS("6") ".weak .func (.param .b32 r) g();\n.alias g, f;\n"},
     0,
     "multiple definition of 'g' in 'module 1', first defined in 'module 0'"},
    {"a visible function twice",
     {".visible .func (.param .b32 r) f()" RETURNS("1") KERNEL("mov.u32 v, 0;" CALL("f")),
      ".visible .func (.param .b32 r) f()" RETURNS("2")},
     0,
     "module 1:4: multiple definition of 'f' in 'module 1', first defined in 'module 0' (line 4)"},
    {"an error that only the link shows is placed in its module",
     {"\n.extern .func (.param .b32 r) f();\n" KERNEL("mov.u32 v, 0;" CALL("f")),
      "\n\n\n.visible .func f(.param .b32 x) { ret; }\n"},
     0,
     "module 1:7: "},
    {"a visible variable twice",
     {".visible .global .align 4 .u32 x = 1;\n" KERNEL("ld.global.u32 v, [x];"),
      ".visible .global .align 4 .u32 x = 2;\n"},
     0,
     "multiple definition of 'x'"},
    {"an entry twice", {KERNEL("mov.u32 v, 1;"), KERNEL("mov.u32 v, 2;")}, 0, "multiple definition of 'k'"},
    {"a function that nobody defines",
     {".extern .func (.param .b32 r) f();\n" KERNEL("mov.u32 v, 1;" CALL("f")),
      ".visible .func g() { ret; }\n"},
     0,
     "module 0:4: undefined reference to 'f' in 'module 0'"},
    {"a variable that nobody defines",
     {".extern .global .align 4 .u32 x;\n" KERNEL("ld.global.u32 v, [x];"), ".visible .func g() { ret; }\n"},
     0,
     "'x'"},
    {"another module's own function",
     {".extern .func (.param .b32 r) f();\n" KERNEL("mov.u32 v, 1;" CALL("f")),
      ".func (.param .b32 r) f()" RETURNS("2")},
     0,
     "'f'"},
    {"another module's own variable",
     {".extern .global .align 4 .u32 x;\n" KERNEL("ld.global.u32 v, [x];"), ".global .align 4 .u32 x = 2;\n"},
     0,
     "'x'"},
};

static void add_modules(CUlinkState link, const struct link_case *each, const char *log)
{
    for (unsigned i = 0; i < MOST && each->modules[i] != NULL; i++) {
        char text[4096], name[32];
        int bytes = snprintf(text, sizeof text, HEADER "%s", each->modules[i]);
        assert_in_range(bytes, 1, sizeof text - 1);
        snprintf(name, sizeof name, "module %u", i);
        CUresult result = cuLinkAddData(link, CU_JIT_INPUT_PTX, text, (size_t)bytes + 1, name, 0, NULL, NULL);
        if (result == CUDA_ERROR_UNKNOWN && each->refused != NULL) {
            assert_non_null(
                strstr(log, each->refused)); /* what is defined twice is found at once, and stays */
            WANT(CUDA_ERROR_UNKNOWN,
                 cuLinkAddData(link, CU_JIT_INPUT_PTX, text, (size_t)bytes + 1, name, 0, NULL, NULL));
        } else if (result != CUDA_SUCCESS) {
            fail_msg("%s: %s", each->label, log);
        }
    }
}

static uint32_t run_k(const void *image)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr word;
    uint32_t value = 0;
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuMemAlloc(&word, 4));
    void *params[] = {&word};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&value, word, 4));
    OK(cuMemFree(word));
    OK(cuModuleUnload(module));
    return value;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct link_case *each = &cases[i];
        CUlinkState link;
        char log[1024] = "";
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void *values[] = {log, (void *)(uintptr_t)sizeof log}, *image = NULL;
        size_t bytes = 0;
        OK(cuLinkCreate(2, options, values, &link));
        add_modules(link, each, log);
        CUresult result = cuLinkComplete(link, &image, &bytes);
        if (each->refused == NULL) {
            if (result != CUDA_SUCCESS)
                fail_msg("%s: %s", each->label, log);
            uint32_t value = run_k(image);
            if (value != each->value)
                fail_msg("%s: wanted %u, got %u", each->label, each->value, value);
        } else if (result != CUDA_ERROR_UNKNOWN || strstr(log, each->refused) == NULL) {
            fail_msg("%s: got %d, %s", each->label, (int)result, log);
        }
        OK(cuLinkDestroy(link));
    }
}

/* CU_JIT_MAX_REGISTERS goes to the entries that have no .maxnreg; the newest .version and .target count. */
static void test_header(void **state)
{
    (void)state;
    static char one[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n"
                        ".visible .entry b() .maxnreg 16 { ret; }\n",
                two[] = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry c() { ret; }\n",
                three[] = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry d() { ret; }\n";
    CUlinkState link;
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS};
    void *values[] = {(void *)(uintptr_t)40}, *image = NULL;
    size_t bytes = 0;
    OK(cuLinkCreate(1, options, values, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, one, sizeof one, "one", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, two, sizeof two, "two", 0, NULL, NULL));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, three, sizeof three, "three", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &bytes));
    assert_int_equal(bytes, strlen(image) + 1);
    assert_non_null(strstr(image, ".version 8.3\n.target sm_90a\n"));
    unsigned limits = 0;
    for (const char *at = image; (at = strstr(at, ".maxnreg 40")) != NULL; at++)
        limits++;
    assert_int_equal(limits, 3);
    OK(cuLinkDestroy(link));
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_CONTEXT(test_cases), IN_CONTEXT(test_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
