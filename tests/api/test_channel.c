/* The private channel: counters of a launch, the detail of an error, options (driver/channel.h). */
#include "api_test.h"

#include "driver/channel.h"

static const struct clab_channel *channel(void)
{
    static const CUuuid id = {.bytes = CLAB_CHANNEL_UUID};
    const void *table = NULL;
    OK(cuGetExportTable(&table, &id));
    assert_non_null(table);
    return table;
}

static const char text[] = HEADER
    ".visible .entry touch(.param .u64 p) { .reg .b64 a; .reg .b32 t; .reg .b64 b; ld.param.u64 a, [p];\n"
    "  mov.u32 t, %tid.x; mul.wide.u32 b, t, 4; add.s64 a, a, b;\n"
    "  st.global.u32 [a], t; red.global.add.u32 [a], 1; ret; }\n";

static void test_identity(void **state)
{
    (void)state;
    const struct clab_channel *c = channel();
    assert_int_equal(c->version, CLAB_CHANNEL_VERSION);
    assert_int_equal(c->size_bytes, sizeof *c);
    assert_int_equal(c->counters_bytes, sizeof(struct clab_counters));
    assert_int_equal(c->error_bytes, sizeof(struct clab_error));
    assert_int_equal(c->emulated, 1);
    assert_int_equal(c->accepts_cubin, 0);
    assert_int_equal(c->timed, 0);
    assert_non_null(c->name);
}

static void test_counters(void **state)
{
    (void)state;
    const struct clab_channel *c = channel();
    struct clab_counters counters;
    CUfunction function = load(text, "touch");
    CUdeviceptr memory;
    OK(cuMemAlloc(&memory, 256));
    void *params[] = {&memory};
    OK(cuLaunchKernel(function, 3, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(c->last_counters(&counters), 1);
    assert_int_equal(counters.ctas, 3);
    assert_int_equal(counters.clusters, 3);
    assert_int_equal(counters.atomics_global, 192);
    assert_int_equal(counters.stores[CLAB_SPACE_GLOBAL].accesses, 192);
    assert_int_equal(counters.stores[CLAB_SPACE_GLOBAL].bytes, 768);
    assert_int_equal(counters.thread_instructions, 7 * 192);
    assert_int_equal(counters.warp_instructions, 7 * 6);
}

static void test_errors(void **state)
{
    (void)state;
    const struct clab_channel *c = channel();
    struct clab_error error = {0};
    CUfunction function = load(text, "touch");
    CUdeviceptr memory;
    CUmodule module;
    /* a refused call */
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32((CUdeviceptr)2, 0, 1));
    assert_int_equal(c->last_error(&error), 1);
    assert_int_equal(error.native_code, CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(error.native_name, "CUDA_ERROR_INVALID_VALUE");
    /* a text that does not parse: file, line */
    WANT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, HEADER ".visible .entry e() {\n  nonsense;\n}\n"));
    assert_int_equal(c->last_error(&error), 1);
    assert_int_equal(error.status, CLAB_PTX_SYNTAX);
    assert_int_equal(error.line, 5);
    /* a launch that a rule refuses */
    void *params[] = {&memory};
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 2000, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(c->last_error(&error), 1);
    assert_int_equal(error.status, CLAB_LAUNCH);
    /* a fault: which instruction, which thread, which address */
    OK(cuMemAlloc(&memory, 128)); /* room for one warp of two */
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    assert_int_equal(c->last_error(&error), 1);
    assert_int_equal(error.status, CLAB_FAULT);
    assert_int_equal(error.native_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_string_equal(error.kernel, "touch");
    assert_non_null(strstr(error.instruction, "st.global.u32"));
    assert_int_equal(error.line, 6);
    assert_true(error.has_address);
    assert_true(error.address == memory + 128);
    assert_true(error.where.has_warp && error.where.has_lane);
    assert_int_equal(error.where.warp, 1);
    assert_int_equal(error.where.lane, 0);
    /* and again from a synchronous copy, which meets the same fault */
    uint32_t word;
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&word, memory, 4));
    assert_int_equal(c->last_error(&error), 1);
    assert_string_equal(error.kernel, "touch");
    clab_error_clear(&error);
}

/* A fault that a copy is the first to meet. */
static void test_fault_seen_by_a_copy(void **state)
{
    (void)state;
    const struct clab_channel *c = channel();
    struct clab_error error = {0};
    CUfunction function = load(text, "touch");
    CUdeviceptr memory, nowhere = 64;
    uint32_t word = 0;
    OK(cuMemAlloc(&memory, 4));
    void *params[] = {&nowhere};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&word, memory, 4));
    assert_int_equal(c->last_error(&error), 1);
    assert_int_equal(error.native_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_string_equal(error.kernel, "touch");
    clab_error_clear(&error);
}

static void test_options(void **state)
{
    (void)state;
    const struct clab_channel *c = channel();
    struct clab_error error = {0};
    static const char *const good[][2] = {
        {"schedule", "fair"},      {"schedule", "fast"}, {"seed", "7"},      {"isa", "base"},
        {"initial_clusters", "3"}, {"decline", "2"},     {"driver", "13.0"}, {"driver", ""},
        {"trace", "3,1"},          {"trace", ""},        {"threads", "1"},   {"budget", "1000"},
        {"trace_file", "/tmp/x"},  {"trace_file", NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (c->set_option(good[i][0], good[i][1], &error) != CLAB_OK)
            print_error("%s: %s\n", good[i][0], error.message);
        assert_int_equal(c->set_option(good[i][0], good[i][1], &error), CLAB_OK);
        assert_int_equal(c->set_option(good[i][0], NULL, &error), CLAB_OK);
    }
    static const char *const bad[][2] = {
        {"schedule", "quick"}, {"seed", "-1"},     {"isa", "avx"},  {"driver", "11"},   {"trace", "1"},
        {"threads", "9999"},   {"budget", "many"}, {"colour", "x"}, {"decline", "0.5"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(c->set_option(bad[i][0], bad[i][1], &error), CLAB_USAGE);
        assert_non_null(strstr(error.message, bad[i][0]));
    }
    /* A budget ends a kernel. */
    CUfunction function = load(HEADER ".visible .entry forever() { L: bra L; }\n", "forever");
    assert_int_equal(c->set_option("budget", "100000", &error), CLAB_OK);
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    WANT(CUDA_ERROR_LAUNCH_TIMEOUT, cuCtxSynchronize());
    assert_int_equal(c->set_option("budget", NULL, &error), CLAB_OK);
    clab_error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_identity), IN_CONTEXT(test_counters),
        IN_CONTEXT(test_errors),   IN_CONTEXT(test_fault_seen_by_a_copy),
        IN_CONTEXT(test_options),
    };
    return RUN_ALONE(tests);
}
