/* The machine through core.h: what data files cannot say. Modules and their errors, cancellation, kernels
   that wait for the host or for another launch, the program's floating-point mode, hooks and the trace. */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/str.h"
#include "emu/core.h"
#include "emu/hook.h"
#include "emu/module.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const char spin_text[] = HEAD ".visible .entry spin(.param .u64 flag)\n{\n"
                                     ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
                                     "ld.param.u64 %rd1, [flag];\n"
                                     "WAIT: ld.volatile.global.u32 %r1, [%rd1];\n"
                                     "setp.eq.u32 %p1, %r1, 0;\n"
                                     "@%p1 bra WAIT;\n"
                                     "st.global.u32 [%rd1+4], %r1;\n"
                                     "ret;\n}\n"
                                     ".visible .entry set(.param .u64 flag)\n{\n"
                                     ".reg .b64 %rd<2>;\n"
                                     "ld.param.u64 %rd1, [flag];\n"
                                     "st.volatile.global.u32 [%rd1], 9;\n"
                                     "ret;\n}\n";

static struct emu_machine *machine_new(void)
{
    struct emu_machine *machine;
    struct clab_error error = {0};
    assert_int_equal(emu_machine_new(emu_model_get("sm_90"), &machine, &error), CLAB_OK);
    return machine;
}

static struct emu_module *load(struct emu_machine *machine, const char *text)
{
    struct emu_module *module = NULL;
    struct clab_error error = {0};
    if (emu_module_load(machine, text, strlen(text), "test.ptx", &module, &error) != CLAB_OK) {
        fail_msg("%s", error.message);
    }
    return module;
}

struct job {
    struct emu_machine *machine;
    struct emu_module *module;
    const char *entry;
    uint64_t argument;
    volatile bool cancel;
    clab_status status;
    struct clab_counters counters;
    struct clab_error error;
};

static void *job_run(void *argument)
{
    struct job *job = argument;
    struct emu_kernel *kernel;
    job->status = emu_module_kernel(job->module, job->entry, &kernel, &job->error);
    if (job->status == CLAB_OK) {
        const struct emu_launch launch = {.kernel = kernel,
                                          .grid = {1, 1, 1},
                                          .block = {32, 1, 1},
                                          .cluster = {1, 1, 1},
                                          .params = &job->argument,
                                          .cancel = &job->cancel};
        job->status = emu_launch_run(job->machine, &launch, &job->counters, &job->error);
    }
    return NULL;
}

/* A kernel that spins on a mapped host flag goes on when the host program writes it, long after the kernel
   found nothing else to do. */
static void test_host_flag(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct job job = {.machine = machine, .module = load(machine, spin_text), .entry = "spin"};
    job.argument = emu_memory_alloc(machine, 8, EMU_MEMORY_HOST);
    volatile uint32_t *flag = (volatile uint32_t *)(uintptr_t)job.argument;
    flag[0] = flag[1] = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, job_run, &job);
    usleep(1500000);
    flag[0] = 5;
    pthread_join(thread, NULL);
    assert_int_equal(job.status, CLAB_OK);
    assert_int_equal(flag[1], 5);
    emu_memory_free(machine, job.argument);
    emu_module_unload(job.module);
    emu_machine_free(machine);
}

/* One launch waits for another of the same process. */
static void test_two_launches(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct emu_module *module = load(machine, spin_text);
    struct job wait = {.machine = machine, .module = module, .entry = "spin"};
    struct job set = {.machine = machine, .module = module, .entry = "set"};
    wait.argument = set.argument = emu_memory_alloc(machine, 8, EMU_MEMORY_DEVICE);
    volatile uint32_t *flag = (volatile uint32_t *)(uintptr_t)wait.argument;
    flag[0] = flag[1] = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, job_run, &wait);
    usleep(100000);
    job_run(&set);
    pthread_join(thread, NULL);
    assert_int_equal(set.status, CLAB_OK);
    assert_int_equal(wait.status, CLAB_OK);
    assert_int_equal(flag[1], 9);
    emu_memory_free(machine, wait.argument);
    emu_module_unload(module);
    emu_machine_free(machine);
}

static void test_cancel(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct job job = {.machine = machine, .module = load(machine, spin_text), .entry = "spin"};
    job.argument = emu_memory_alloc(machine, 8, EMU_MEMORY_HOST);
    memset((void *)(uintptr_t)job.argument, 0, 8);
    pthread_t thread;
    pthread_create(&thread, NULL, job_run, &job);
    usleep(50000);
    job.cancel = true;
    pthread_join(thread, NULL);
    assert_int_equal(job.status, CLAB_INTERRUPTED);
    emu_memory_free(machine, job.argument);
    emu_module_unload(job.module);
    emu_machine_free(machine);
}

static void expect_load_error(const char *text, clab_status status, const char *words)
{
    struct emu_machine *machine = machine_new();
    struct emu_module *module = NULL;
    struct clab_error error = {0};
    assert_int_equal(emu_module_load(machine, text, strlen(text), "test.ptx", &module, &error), status);
    if (!strstr(error.message, words)) {
        fail_msg("'%s' lacks '%s'", error.message, words);
    }
    clab_error_clear(&error);
    emu_machine_free(machine);
}

static void test_load_errors(void **state)
{
    (void)state;
    expect_load_error(".version 8.6\n.target sm_100\n.address_size 64\n", CLAB_PTX_TARGET, "sm_100");
    expect_load_error(HEAD ".extern .global .u32 there;\n.global .u64 here = there;\n", CLAB_LOAD, "there");
    expect_load_error("nonsense", CLAB_PTX_SYNTAX, "");
}

static void test_kernel_errors(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct emu_module *module =
        load(machine, HEAD ".visible .entry a() { ret; }\n"
                           ".extern .func gone();\n"
                           ".visible .entry b() { call.uni gone; ret; }\n"
                           ".extern .global .u32 there;\n"
                           ".visible .entry c() { .reg .b64 %rd1; mov.u64 %rd1, there; ret; }\n");
    struct emu_kernel *kernel;
    struct clab_error error = {0};
    assert_int_equal(emu_module_kernel(module, "z", &kernel, &error), CLAB_NOT_FOUND);
    assert_non_null(strstr(error.message, "a, b, c"));
    assert_int_equal(emu_module_kernel(module, "b", &kernel, &error), CLAB_UNSUPPORTED);
    assert_non_null(strstr(error.message, "'gone'"));
    assert_int_equal(error.line, 6);
    assert_int_equal(emu_module_kernel(module, "c", &kernel, &error), CLAB_LOAD);
    assert_non_null(strstr(error.message, "'there'"));
    assert_int_equal(emu_module_kernel(module, "a", &kernel, &error), CLAB_OK);
    clab_error_clear(&error);
    emu_module_unload(module);
    emu_machine_free(machine);
}

/* Initialisers: values, addresses of variables with an offset, addresses of functions are not zero. */
static void test_globals(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct emu_module *module = load(machine, HEAD ".global .align 4 .u32 a[3] = {1, 2, 3};\n"
                                                   ".const .align 8 .u64 p = generic(a)+8;\n"
                                                   ".func f() { ret; }\n"
                                                   ".global .align 8 .u64 q = f;\n");
    uint64_t a, p, q, bytes;
    assert_true(emu_module_global(module, "a", &a, &bytes));
    assert_int_equal(bytes, 12);
    assert_int_equal(((const uint32_t *)(uintptr_t)a)[2], 3);
    assert_true(emu_module_global(module, "p", &p, &bytes));
    assert_true(*(const uint64_t *)(uintptr_t)p == a + 8);
    assert_true(emu_module_global(module, "q", &q, &bytes));
    assert_true(*(const uint64_t *)(uintptr_t)q != 0);
    assert_false(emu_module_global(module, "b", &a, &bytes));
    emu_module_unload(module);
    emu_machine_free(machine);
}

/* What the driver tells of a kernel: the sizes of ptxas 13.0 -v for sm_90. */
static void test_resources(void **state)
{
    (void)state;
    static const struct {
        const char *module, *function, *uses;
        uint32_t shared;
    } cases[] = {
        {"", "", "", 0},
        {"", ".shared .align 4 .b8 a[1000];", "a", 1000},
        {"", ".shared .align 4 .b8 a[3]; .shared .b8 b[1]; .shared .align 2 .b8 c[6];", "a", 10},
        {"", ".shared .align 16 .b8 c[256]; .shared .align 8 .b8 b[8];", "b", 272}, /* b first: it is used */
        {"", ".shared .align 16 .b8 c[256];", "", 256},
        {".shared .align 16 .b8 m[32]; .shared .align 4 .b8 n[20];", ".shared .align 4 .b8 a[100];", "m",
         132},
        {".shared .align 16 .b8 m[32];", ".shared .align 4 .b8 a[100];", "", 100},
        {".extern .shared .align 4 .b8 d[];", ".shared .align 4 .b8 a[100];", "a", 112},
        {".extern .shared .align 128 .b8 d[];", ".shared .align 4 .b8 a[100];", "d", 128},
        {".extern .shared .align 128 .b8 d[];", "", "d", 0},
    };
    struct emu_machine *machine = machine_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clab_str text = {0};
        clab_str_addf(&text, HEAD "%s\n.visible .entry main()\n{\n.reg .b32 %%r<2>;\n%s\n", cases[i].module,
                      cases[i].function);
        if (cases[i].uses[0]) {
            clab_str_addf(&text, "mov.u32 %%r1, %s;\n", cases[i].uses);
        }
        clab_str_add(&text, "ret;\n}\n");
        struct emu_module *module = load(machine, text.text);
        struct emu_kernel *kernel;
        struct clab_error error = {0};
        struct emu_kernel_info info;
        assert_int_equal(emu_module_kernel(module, "main", &kernel, &error), CLAB_OK);
        emu_kernel_info_get(kernel, &info);
        assert_int_equal(info.static_shared_bytes, cases[i].shared);
        assert_int_equal(info.registers_modelled, 4); /* an H200 says 4 of a trivial kernel too */
        emu_module_unload(module);
        clab_str_free(&text);
    }
    emu_machine_free(machine);
}

/* A function that many kernels call is decoded for each of them; what that takes is bounded, and a kernel
   that was dropped runs as before. */
static void test_many_kernels(void **state)
{
    (void)state;
    enum { KERNELS = 100, ADDS = 40000, LIMIT_BYTES = 128 << 20 };
    struct clab_str text = {0};
    clab_str_add(&text, HEAD ".func (.reg .b32 sum) long(.reg .b32 x)\n{\n");
    for (unsigned i = 0; i < ADDS; i++) {
        clab_str_add(&text, "add.u32 x, x, 1;\n");
    }
    clab_str_add(&text, "mov.u32 sum, x;\nret;\n}\n");
    for (unsigned i = 0; i < KERNELS; i++) {
        clab_str_addf(&text,
                      ".visible .entry k%u(.param .u64 out)\n{\n.reg .b32 %%r<3>; .reg .b64 %%rd<2>;\n"
                      "ld.param.u64 %%rd1, [out];\ncall (%%r1), long, (%u);\n"
                      "st.global.u32 [%%rd1], %%r1;\nret;\n}\n",
                      i, i);
    }
    struct emu_machine *machine = machine_new();
    struct job job = {.machine = machine, .module = load(machine, text.text)};
    size_t one = 0, most = 0;
    for (unsigned i = 0; i < KERNELS; i++) {
        char name[16];
        struct emu_kernel *kernel;
        struct clab_error error = {0};
        snprintf(name, sizeof name, "k%u", i);
        assert_int_equal(emu_module_kernel(job.module, name, &kernel, &error), CLAB_OK);
        const size_t bytes = emu_module_decoded_bytes(job.module);
        one = i == 0 ? bytes : one;
        most = bytes > most ? bytes : most;
    }
    assert_true(one * KERNELS > 2 * (size_t)LIMIT_BYTES);
    assert_true(most <= LIMIT_BYTES);
    job.argument = emu_memory_alloc(machine, 4, EMU_MEMORY_DEVICE);
    static const char *const entries[] = {"k7", "k99", "k7"};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        job.entry = entries[i];
        job_run(&job);
        assert_int_equal(job.status, CLAB_OK);
        assert_int_equal(*(volatile uint32_t *)(uintptr_t)job.argument, ADDS + atoi(entries[i] + 1));
    }
    emu_memory_free(machine, job.argument);
    emu_module_unload(job.module);
    emu_machine_free(machine);
    clab_str_free(&text);
}

/* Registers per thread end where .maxntid, .minnctapersm and .maxnreg say, and never above 255. */
static void test_register_limits(void **state)
{
    (void)state;
    static const struct {
        const char *directives;
        uint32_t registers;
    } cases[] = {{"", 255},
                 {".maxntid 1024", 64},
                 {".maxntid 768", 80},
                 {".reqntid 256 .minnctapersm 2", 128},
                 {".maxnreg 40", 40}};
    struct emu_machine *machine = machine_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clab_str text = {0};
        clab_str_addf(&text,
                      HEAD ".visible .entry main(.param .u64 out) %s\n{\n.reg .b32 %%r<300>; .reg .b64 %%d;\n"
                           "ld.param.u64 %%d, [out];\n",
                      cases[i].directives);
        for (unsigned r = 0; r < 300; r++) {
            clab_str_addf(&text, "ld.global.u32 %%r%u, [%%d+%u];\n", r, 4 * r);
        }
        for (unsigned r = 0; r < 300; r++) {
            clab_str_addf(&text, "st.global.u32 [%%d+%u], %%r%u;\n", 4 * r + 4, r);
        }
        clab_str_add(&text, "ret;\n}\n");
        struct emu_module *module = load(machine, text.text);
        struct emu_kernel *kernel;
        struct clab_error error = {0};
        struct emu_kernel_info info;
        assert_int_equal(emu_module_kernel(module, "main", &kernel, &error), CLAB_OK);
        emu_kernel_info_get(kernel, &info);
        assert_int_equal(info.registers_modelled, cases[i].registers);
        emu_module_unload(module);
        clab_str_free(&text);
    }
    emu_machine_free(machine);
}

/* A program that rounds upwards and flushes subnormals keeps its mode, and gets the results of any other. */
static void test_float_mode(void **state)
{
    (void)state;
    static const char text[] = HEAD ".visible .entry main(.param .u64 out)\n{\n"
                                    ".reg .f32 %f<6>; .reg .b64 %rd<2>;\n"
                                    "ld.param.u64 %rd1, [out];\n"
                                    "ld.global.f32 %f1, [%rd1];\n"
                                    "add.rn.f32 %f2, %f1, %f1;\n" /* of the least subnormal */
                                    "mov.f32 %f3, 0.7;\n"         /* lies just above 3f333333 */
                                    "mov.f32 %f4, 0f40400000;\n"
                                    "rcp.rn.f32 %f4, %f4;\n" /* a third: just below 3eaaaaab */
                                    "add.rn.f32 %f5, %f3, %f4;\n"
                                    "st.global.v4.f32 [%rd1], {%f2, %f3, %f4, %f5};\n"
                                    "ret;\n}\n";
    struct emu_machine *machine = machine_new();
    struct job job = {.machine = machine, .entry = "main"};
    const int rounding = fegetround();
    assert_int_equal(fesetround(FE_UPWARD), 0);
#if defined(__SSE__)
    const unsigned csr = _mm_getcsr() | 0x8040; /* flush to zero, denormals are zero */
    _mm_setcsr(csr);
#endif
    job.module = load(machine, text);
    job.argument = emu_memory_alloc(machine, 16, EMU_MEMORY_DEVICE);
    *(uint32_t *)(uintptr_t)job.argument = 1;
    job_run(&job);
#if defined(__SSE__)
    assert_int_equal(_mm_getcsr(), csr);
    _mm_setcsr(csr & ~0x8040u);
#endif
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(rounding);
    assert_int_equal(job.status, CLAB_OK);
    const uint32_t *got = (const uint32_t *)(uintptr_t)job.argument;
    assert_int_equal(got[0], 2);
    assert_int_equal(got[1], 0x3f333333);
    assert_int_equal(got[2], 0x3eaaaaab);
    assert_int_equal(got[3], 0x3f844444);
    emu_module_unload(job.module);
    emu_machine_free(machine);
}

struct seen {
    unsigned ops, starts, exits, arrives, completions;
};

static void on_op(void *user, struct emu_warp *warp, const struct emu_op *op)
{
    (void)warp;
    (void)op;
    ((struct seen *)user)->ops++;
}

static void on_event(void *user, const struct emu_cta *cta, const struct emu_warp *warp,
                     const struct emu_op *op, const struct emu_event *event)
{
    struct seen *seen = user;
    (void)cta;
    (void)warp;
    (void)op;
    seen->starts += event->kind == EMU_EVENT_CTA_START;
    seen->exits += event->kind == EMU_EVENT_CTA_EXIT;
    seen->arrives += event->kind == EMU_EVENT_BARRIER_ARRIVE;
    seen->completions += event->kind == EMU_EVENT_BARRIER_COMPLETE;
}

static void launch_bar(struct emu_machine *machine, uint32_t grid)
{
    struct emu_module *module = load(machine, HEAD ".visible .entry main()\n{\n"
                                                   ".reg .b32 %r<4>; .reg .pred %p<2>;\n"
                                                   "mov.u32 %r1, %tid.x;\n"
                                                   "bar.sync 0;\n"
                                                   "add.u32 %r2, %r1, 5;\n"
                                                   "setp.lt.u32 %p1, %r1, 3;\n"
                                                   "@%p1 add.u32 %r2, %r2, 1;\n"
                                                   "ret;\n}\n");
    struct emu_kernel *kernel;
    struct clab_error error = {0};
    struct clab_counters counters;
    assert_int_equal(emu_module_kernel(module, "main", &kernel, &error), CLAB_OK);
    const struct emu_launch launch = {
        .kernel = kernel, .grid = {grid, 1, 1}, .block = {64, 1, 1}, .cluster = {1, 1, 1}};
    assert_int_equal(emu_launch_run(machine, &launch, &counters, &error), CLAB_OK);
    assert_int_equal(counters.warp_instructions, 2 * 6 * grid);
    assert_int_equal(counters.barriers, grid);
    emu_module_unload(module);
}

static void test_hooks(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    struct seen seen = {0};
    const struct emu_hooks hooks = {.user = &seen, .op = on_op, .event = on_event};
    emu_machine_options(machine)->hooks = &hooks;
    emu_machine_options(machine)->threads = 1;
    launch_bar(machine, 3);
    assert_int_equal(seen.starts, 3);
    assert_int_equal(seen.exits, 3);
    assert_int_equal(seen.arrives, 6);
    assert_int_equal(seen.completions, 3);
    assert_true(seen.ops >= 36);
    emu_machine_free(machine);
}

static void test_trace(void **state)
{
    (void)state;
    struct emu_machine *machine = machine_new();
    char path[] = "/tmp/clab-trace-XXXXXX";
    close(mkstemp(path));
    struct emu_options *options = emu_machine_options(machine);
    options->trace_cta = 1;
    options->trace_warp = 1;
    options->trace_file = path;
    launch_bar(machine, 3);
    size_t bytes;
    char *text = clab_file_read(path, 1 << 20, &bytes);
    assert_non_null(text);
    unsigned lines = 0;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 6);
    assert_non_null(strstr(text, "CTA 1 warp 1 ffffffff test.ptx:9 add.u32 %r2, %r1, 5 | %r2 = 25 26 27 28"));
    assert_non_null(strstr(text, "setp.lt.u32 %p1, %r1, 3 | %p1 = 00000000"));
    free(text);
    unlink(path);
    emu_machine_free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_flag),       cmocka_unit_test(test_two_launches),
        cmocka_unit_test(test_cancel),          cmocka_unit_test(test_load_errors),
        cmocka_unit_test(test_kernel_errors),   cmocka_unit_test(test_globals),
        cmocka_unit_test(test_hooks),           cmocka_unit_test(test_trace),
        cmocka_unit_test(test_float_mode),      cmocka_unit_test(test_resources),
        cmocka_unit_test(test_register_limits), cmocka_unit_test(test_many_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
