/* Measurement (host/lab/measure.c, hot.c, stand.c, clock.c) on a GPU of a few lines with a clock of its own:
   a driver table whose calls act at once. Interleaving, discards, the stop rule, failures, and that nothing
   ends without samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/clock.h"
#include "lab/helpers.h"
#include "lab/measure.h"
#include "lab/stats.h"

#define SMS         4
#define RATED_MHZ   2000.0
#define MOST_EVENTS 4096

/* The GPU. Calls that belong to a sample leave a letter in `trace`: f flush, b blocker, t stamp, e event, w
   wait, and the row's own p prepare, s submit. */
static struct gpu {
    double now_ns, cycles, mhz;
    double events[2];
    unsigned n_events;
    int allocations;
    uint32_t *flags;
    bool blocker_gives_up, no_stamps;
    CUresult wait_result;
    char trace[MOST_EVENTS];
    size_t n_trace;
} gpu;

static void trace(char letter)
{
    if (gpu.n_trace + 1 == sizeof gpu.trace) { /* the end is what counts */
        gpu.n_trace = sizeof gpu.trace / 2;
        memmove(gpu.trace, gpu.trace + sizeof gpu.trace - 1 - gpu.n_trace, gpu.n_trace);
    }
    gpu.trace[gpu.n_trace++] = letter;
    gpu.trace[gpu.n_trace] = '\0';
}

static void pass(double ns)
{
    gpu.now_ns += ns;
    gpu.cycles += ns * gpu.mhz / 1000;
}

static char blocker_mark, stamp_mark, module_mark; /* their addresses are the handles */

static CUresult fake_load(CUmodule *module, const void *image, unsigned n, CUjit_option *options,
                          void **values)
{
    (void)image, (void)n, (void)options, (void)values;
    *module = (CUmodule)(void *)&module_mark;
    return CUDA_SUCCESS;
}

static CUresult fake_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)(void *)(strcmp(name, "clab_blocker") == 0 ? &blocker_mark : &stamp_mark);
    return CUDA_SUCCESS;
}

static CUresult fake_launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                            void **extra)
{
    (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    if (function == (CUfunction)(void *)&blocker_mark) {
        trace('b');
        gpu.flags[1] = gpu.blocker_gives_up;
        return CUDA_SUCCESS;
    }
    trace('t');
    struct clab_clock_slot *slots = (struct clab_clock_slot *)(uintptr_t) * (CUdeviceptr *)params[0];
    for (unsigned i = 0; i < gx && !gpu.no_stamps; i++)
        slots[i + 3] =
            (struct clab_clock_slot){.time_ns = (uint64_t)gpu.now_ns, /* no CTA on SM 0, as in a partition */
                                     .cycles = (uint64_t)gpu.cycles + 1000 * i,
                                     .tag = *(uint64_t *)params[2]};
    pass(1000);
    return CUDA_SUCCESS;
}

static CUresult fake_alloc(CUdeviceptr *address, size_t bytes)
{
    *address = (CUdeviceptr)(uintptr_t)calloc(1, bytes);
    gpu.allocations++;
    return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr address)
{
    free((void *)(uintptr_t)address);
    gpu.allocations--;
    return CUDA_SUCCESS;
}

static CUresult fake_host_alloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    *pointer = gpu.flags = calloc(1, bytes);
    gpu.allocations++;
    return CUDA_SUCCESS;
}

static CUresult fake_host_free(void *pointer)
{
    free(pointer);
    gpu.allocations--;
    return CUDA_SUCCESS;
}

static CUresult fake_host_pointer(CUdeviceptr *address, void *host, unsigned flags)
{
    (void)flags;
    *address = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

static CUresult fake_memset(CUdeviceptr address, unsigned char value, size_t bytes)
{
    memset((void *)(uintptr_t)address, value, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_memset_async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    trace('f');
    assert_true(value != 0);
    assert_int_equal(bytes, 2 * 4096);
    return fake_memset(address, value, bytes);
}

static CUresult fake_read(void *host, CUdeviceptr address, size_t bytes)
{
    memcpy(host, (void *)(uintptr_t)address, bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_event_create(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)(void *)&gpu.events[gpu.n_events++ % 2];
    gpu.allocations++;
    return CUDA_SUCCESS;
}

static CUresult fake_event_destroy(CUevent event)
{
    (void)event;
    gpu.allocations--;
    return CUDA_SUCCESS;
}

static CUresult fake_event_record(CUevent event, CUstream stream)
{
    (void)stream;
    trace('e');
    *(double *)(void *)event = gpu.now_ns;
    return CUDA_SUCCESS;
}

static CUresult fake_elapsed(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((*(double *)(void *)b - *(double *)(void *)a) / 1e6);
    return CUDA_SUCCESS;
}

static CUresult fake_wait(CUstream stream)
{
    (void)stream;
    trace('w');
    return gpu.wait_result;
}

static CUresult fake_error_name(CUresult result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

static const struct clab_driver driver = {
    .cuModuleLoadDataEx = fake_load,
    .cuModuleGetFunction = fake_function,
    .cuLaunchKernel = fake_launch,
    .cuMemAlloc_v2 = fake_alloc,
    .cuMemFree_v2 = fake_free,
    .cuMemHostAlloc = fake_host_alloc,
    .cuMemFreeHost = fake_host_free,
    .cuMemHostGetDevicePointer_v2 = fake_host_pointer,
    .cuMemsetD8_v2 = fake_memset,
    .cuMemsetD8Async = fake_memset_async,
    .cuMemcpyDtoH_v2 = fake_read,
    .cuEventCreate = fake_event_create,
    .cuEventDestroy_v2 = fake_event_destroy,
    .cuEventRecord = fake_event_record,
    .cuEventElapsedTime = fake_elapsed,
    .cuStreamSynchronize = fake_wait,
    .cuGetErrorName = fake_error_name,
};

/* What came out. */
static struct {
    struct clab_sample samples[20000];
    size_t count, kept, discarded;
    char reason[256]; /* of the last discard */
    size_t most;      /* the sink refuses more than this */
    unsigned last_launch, launches;
} got;

/* A row: what its launches take and do. */
struct kernel {
    double ns;                      /* of a launch */
    double (*vary)(unsigned count); /* added to ns; count: launches so far */
    double mhz;                     /* the clock that it runs at; 0: RATED_MHZ */
    size_t slow_from, slow_until;   /* numbers of the samples that run at half that clock */
    unsigned fails_at;              /* 0: never; else that launch is refused */
    unsigned launches;
};

static clab_status prepare(void *context, struct clab_error *error)
{
    (void)context, (void)error;
    trace('p');
    return CLAB_OK;
}

static clab_status submit(void *context, struct clab_error *error)
{
    struct kernel *kernel = context;
    const unsigned count = kernel->launches++;
    trace('s');
    if (kernel->fails_at != 0 && kernel->launches == kernel->fails_at)
        return clab_error_set(error, CLAB_LAUNCH, "refused");
    const double rated = kernel->mhz > 0 ? kernel->mhz : RATED_MHZ;
    gpu.mhz = got.count >= kernel->slow_from && got.count < kernel->slow_until ? rated / 2 : rated;
    pass(kernel->ns + (kernel->vary != NULL ? kernel->vary(count) : 0));
    return CLAB_OK;
}

static bool on_launch(void *context, unsigned id)
{
    (void)context;
    got.last_launch = id;
    got.launches++;
    return true;
}

static bool on_sample(void *context, const struct clab_sample *sample)
{
    (void)context;
    assert_int_equal(sample->id, got.last_launch);
    if (got.count >= got.most)
        return false;
    got.samples[got.count++] = *sample;
    if (sample->discarded != NULL) {
        got.discarded++;
        snprintf(got.reason, sizeof got.reason, "%s", sample->discarded);
    } else {
        got.kept++;
    }
    return true;
}

static const struct clab_measure_sink sink = {.on_launch = on_launch, .on_sample = on_sample};
static struct clab_helpers helpers;
static const struct clab_device device = {
    .id = "fake", .driver = &driver, .sms = SMS, .l2_bytes = 4096, .helpers = &helpers};

static int setup(void **state)
{
    (void)state;
    memset(&gpu, 0, sizeof gpu);
    memset(&got, 0, sizeof got);
    memset(&helpers, 0, sizeof helpers);
    gpu.mhz = RATED_MHZ;
    gpu.now_ns = 1e9;
    got.most = sizeof got.samples / sizeof *got.samples;
    return 0;
}

static clab_status measure(bool hot, struct kernel *kernels, size_t count,
                           const struct clab_measure_options *options, struct clab_outcome *outcome,
                           struct clab_error *error)
{
    struct clab_measured_row rows[8] = {0};
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct clab_measured_row){
            .id = 10 + (unsigned)i, .prepare = prepare, .submit = submit, .context = &kernels[i]};
    clab_status status = hot ? clab_measure_hot(&device, rows, count, options, &sink, outcome, error)
                             : clab_measure_cold(&device, rows, count, options, &sink, outcome, error);
    assert_int_equal(gpu.allocations, 0);
    return status;
}

static void rounds_hold_every_row_once_in_changing_order(void **state)
{
    (void)state;
    struct kernel kernels[4] = {{.ns = 1000}, {.ns = 2000}, {.ns = 3000}, {.ns = 4000}};
    const struct clab_measure_options options = {.samples = 20, .seed = 3, .first_round = 7};
    struct clab_outcome outcome;
    struct clab_error error = {0};
    assert_int_equal(measure(false, kernels, 4, &options, &outcome, &error), CLAB_OK);
    assert_int_equal(outcome.end, CLAB_END_COUNT);
    assert_int_equal(outcome.rounds, 20);
    assert_int_equal(got.count, 80);
    unsigned same_as_before = 0;
    for (size_t round = 0; round < 20; round++) {
        unsigned seen = 0, same = 0;
        for (size_t i = 0; i < 4; i++) {
            const struct clab_sample *sample = &got.samples[4 * round + i];
            assert_int_equal(sample->round, 7 + round);
            assert_null(sample->discarded);
            assert_true(fabs(sample->ns - 1000.0 * (sample->id - 9)) < 1);
            assert_true(fabs(sample->sm_mhz - RATED_MHZ) < 10);
            seen |= 1u << (sample->id - 10);
            same += round > 0 && sample->id == got.samples[4 * (round - 1) + i].id;
        }
        assert_int_equal(seen, 15);
        same_as_before += same == 4;
    }
    assert_in_range(same_as_before, 0, 5); /* 20 shuffles of four: one in 24 repeats */
    assert_true(fabs(outcome.reference_mhz - RATED_MHZ) < 10);
}

static void a_sample_is_prepared_flushed_blocked_and_stamped(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measure_options options = {.samples = 1};
    struct clab_outcome outcome;
    assert_int_equal(measure(false, &kernel, 1, &options, &outcome, NULL), CLAB_OK);
    const char *last = gpu.trace + gpu.n_trace - strlen("pfwbtesetw");
    assert_string_equal(last, "pfwbtesetw");
    assert_true(got.launches > 3); /* warm-up is announced too */
}

static clab_status accompany(void *context, struct clab_error *error)
{
    (void)context, (void)error;
    trace('c');
    return CLAB_OK;
}

static void what_runs_beside_begins_behind_the_blocker_and_before_the_time(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measured_row row = {
        .id = 10, .prepare = prepare, .accompany = accompany, .submit = submit, .context = &kernel};
    const struct clab_measure_options options = {.samples = 1};
    struct clab_outcome outcome;
    assert_int_equal(clab_measure_cold(&device, &row, 1, &options, &sink, &outcome, NULL), CLAB_OK);
    const char *last = gpu.trace + gpu.n_trace - strlen("pfwbtcesetw");
    assert_string_equal(last, "pfwbtcesetw");
}

static void a_low_clock_is_discarded_with_the_reason_and_taken_again(void **state)
{
    (void)state;
    struct kernel kernels[2] = {{.ns = 1e6, .slow_from = 20, .slow_until = 23},
                                {.ns = 1e6, .slow_from = 20, .slow_until = 23}};
    const struct clab_measure_options options = {.samples = 30};
    struct clab_outcome outcome;
    assert_int_equal(measure(false, kernels, 2, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.discarded, 3);
    assert_int_equal(got.kept, 60);
    assert_non_null(strstr(got.reason, "under 75 % of 2000 MHz"));
    for (size_t i = 0; i < got.count; i++)
        assert_true((got.samples[i].discarded != NULL) == (i >= 20 && i < 23));
    for (size_t i = 21; i <= 23; i++) { /* again at once, in the same round */
        assert_int_equal(got.samples[i].id, got.samples[20].id);
        assert_int_equal(got.samples[i].round, got.samples[20].round);
    }
}

static void a_clock_that_stays_low_still_gives_a_verdict(void **state)
{
    (void)state;
    struct kernel kernels[2] = {{.ns = 1e6}, {.ns = 1e6, .slow_from = 20, .slow_until = SIZE_MAX}};
    const struct clab_measure_options options = {.samples = 30};
    struct clab_outcome outcome;
    assert_int_equal(measure(false, kernels, 2, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.discarded, CLAB_CLOCK_PATIENCE);
    assert_int_equal(got.kept, 60);
    assert_int_equal(outcome.end, CLAB_END_COUNT);
}

static void samples_without_a_clock_are_kept(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measure_options options = {.samples = 5};
    struct clab_outcome outcome;
    gpu.no_stamps = true;
    assert_int_equal(measure(false, &kernel, 1, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.kept, 5);
    assert_true(isnan(got.samples[0].sm_mhz));
    assert_true(isnan(outcome.reference_mhz));
}

static double wild(unsigned count)
{
    uint64_t x = (count + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(x >> 40) / (1 << 24) *
           1e6; /* up to twice the time: no median is known to half a percent soon */
}

static double two_steps(unsigned count)
{
    return count % 2 == 0 ? 0 : 32; /* a timer of 32 ns under a median between two of its steps */
}

static void the_stop_rule_ends_on_target_resolution_and_limit(void **state)
{
    (void)state;
    struct clab_outcome outcome;
    struct clab_measure_options options = {0};
    struct kernel steady[2] = {{.ns = 1000}, {.ns = 5000}};
    assert_int_equal(measure(false, steady, 2, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(outcome.end, CLAB_END_TARGET);
    assert_int_equal(outcome.rounds, CLAB_LEAST_ROUNDS);
    assert_int_equal(got.kept, 2 * CLAB_LEAST_ROUNDS);

    setup(NULL);
    struct kernel coarse[2] = {{.ns = 1000, .vary = two_steps}, {.ns = 5000}};
    assert_int_equal(measure(false, coarse, 2, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(outcome.end, CLAB_END_RESOLUTION);
    assert_int_equal(outcome.rounds, CLAB_LEAST_ROUNDS);

    setup(NULL);
    struct kernel noisy = {.ns = 1e6, .vary = wild};
    options.total_limit_s = 0.05;
    options.row_limit_s = 0.02;
    assert_int_equal(measure(false, &noisy, 1, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(outcome.end, CLAB_END_LIMIT);
    assert_true(got.kept >= 1);

    setup(NULL); /* a limit that was over before the first round: one round all the same */
    options.spent_s = 1000;
    noisy.launches = 0;
    assert_int_equal(measure(false, &noisy, 1, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(outcome.end, CLAB_END_LIMIT);
    assert_int_equal(got.kept, 1);
    assert_true(outcome.spent_s >= 1000);
}

static void earlier_samples_count(void **state)
{
    (void)state;
    double earlier[45];
    for (size_t i = 0; i < 45; i++)
        earlier[i] = 1000;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measured_row row = {
        .id = 10, .submit = submit, .context = &kernel, .earlier = earlier, .n_earlier = 45};
    struct clab_outcome outcome;
    struct clab_measure_options options = {.first_round = 45};
    assert_int_equal(clab_measure_cold(&device, &row, 1, &options, &sink, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.kept, 5);
    assert_int_equal(got.samples[0].round, 45);
    setup(NULL);
    options.samples = 48;
    assert_int_equal(clab_measure_cold(&device, &row, 1, &options, &sink, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.kept, 3);
}

static void a_refused_launch_names_its_row_and_releases_the_stream(void **state)
{
    (void)state;
    struct kernel kernels[3] = {{.ns = 1000}, {.ns = 1000, .fails_at = 2}, {.ns = 1000}};
    const struct clab_measure_options options = {.samples = 10};
    struct clab_outcome outcome;
    struct clab_error error = {0};
    assert_int_equal(measure(false, kernels, 3, &options, &outcome, &error), CLAB_LAUNCH);
    assert_int_equal(outcome.failed, 11);
    assert_string_equal(error.message, "refused");
    assert_int_equal(outcome.end, CLAB_END_NONE);
    assert_int_equal(got.last_launch, 11);
}

static void a_fault_names_its_row(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measure_options options = {.samples = 10};
    struct clab_outcome outcome;
    struct clab_error error = {0};
    gpu.wait_result = CUDA_ERROR_UNKNOWN;
    assert_int_not_equal(measure(false, &kernel, 1, &options, &outcome, &error), CLAB_OK);
    assert_int_equal(outcome.failed, 10);
    assert_string_equal(error.native_call, "cuStreamSynchronize");
    clab_error_clear(&error);
}

static void a_submit_that_waits_is_refused(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measure_options options = {.samples = 10};
    struct clab_outcome outcome;
    struct clab_error error = {0};
    gpu.blocker_gives_up = true;
    assert_int_equal(measure(false, &kernel, 1, &options, &outcome, &error), CLAB_LAUNCH);
    assert_non_null(strstr(error.message, "waited for the device"));
    assert_int_equal(got.count, 0);
}

static void a_sink_that_refuses_ends_it(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1000};
    const struct clab_measure_options options = {.samples = 10};
    struct clab_outcome outcome;
    struct clab_error error = {0};
    got.most = 4;
    assert_int_equal(measure(false, &kernel, 1, &options, &outcome, &error), CLAB_OUTPUT);
    assert_int_equal(got.count, 4);
}

static void hot_batches_are_sized_by_time(void **state)
{
    (void)state;
    struct kernel kernels[2] = {{.ns = 1e6}, {.ns = 100e6}};
    const struct clab_measure_options options = {0};
    struct clab_outcome outcome;
    assert_int_equal(measure(true, kernels, 2, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.kept, 20);
    for (size_t i = 0; i < got.count; i++) {
        const struct clab_sample *sample = &got.samples[i];
        assert_int_equal(sample->launches, sample->id == 10 ? 50 : 4); /* 50 ms, and at least four */
        assert_true(fabs(sample->ns / (sample->id == 10 ? 1e6 : 100e6) - 1) < 1e-3);
        assert_int_equal(sample->round, i / 2);
        assert_false(sample->host_bound);
    }
    assert_non_null(strstr(gpu.trace, "pwbtess")); /* no flush; two launches behind the blocker */
    assert_null(strchr(gpu.trace, 'f'));
}

static void hot_batches_obey_the_clock(void **state)
{
    (void)state;
    struct kernel kernel = {.ns = 1e6, .slow_from = 3, .slow_until = 5};
    const struct clab_measure_options options = {.samples = 6};
    struct clab_outcome outcome;
    assert_int_equal(measure(true, &kernel, 1, &options, &outcome, NULL), CLAB_OK);
    assert_int_equal(got.discarded, 2);
    assert_int_equal(got.kept, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rounds_hold_every_row_once_in_changing_order, setup),
        cmocka_unit_test_setup(a_sample_is_prepared_flushed_blocked_and_stamped, setup),
        cmocka_unit_test_setup(what_runs_beside_begins_behind_the_blocker_and_before_the_time, setup),
        cmocka_unit_test_setup(a_low_clock_is_discarded_with_the_reason_and_taken_again, setup),
        cmocka_unit_test_setup(a_clock_that_stays_low_still_gives_a_verdict, setup),
        cmocka_unit_test_setup(samples_without_a_clock_are_kept, setup),
        cmocka_unit_test_setup(the_stop_rule_ends_on_target_resolution_and_limit, setup),
        cmocka_unit_test_setup(earlier_samples_count, setup),
        cmocka_unit_test_setup(a_refused_launch_names_its_row_and_releases_the_stream, setup),
        cmocka_unit_test_setup(a_fault_names_its_row, setup),
        cmocka_unit_test_setup(a_submit_that_waits_is_refused, setup),
        cmocka_unit_test_setup(a_sink_that_refuses_ends_it, setup),
        cmocka_unit_test_setup(hot_batches_are_sized_by_time, setup),
        cmocka_unit_test_setup(hot_batches_obey_the_clock, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
