/* Launches (host/lab/launch.c, companion.c) against a driver table that answers occupancy queries with set
   numbers and notes the order of calls: fitted grids, opt-ins, the companion that has begun before the time
   does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/companion.h"
#include "lab/launch.h"

#define SMS 10

static int active_clusters, ctas_per_sm;
static int limits[32];     /* function attributes */
static char calls[32][64]; /* in order */
static size_t n_calls;
static CUlaunchConfig seen; /* of the last launch */
static CUlaunchAttribute seen_attributes[4];
static char main_mark, side_mark, first_event, second_event;
static unsigned n_events;

static const char *stream_name(CUstream stream)
{
    return stream == (CUstream)(void *)&side_mark ? "side" : "main";
}

static const char *event_name(CUevent event)
{
    return event == (CUevent)(void *)&first_event ? "go" : "begun";
}

static void note(const char *call, const char *what, const char *where)
{
    assert_true(n_calls < sizeof calls / sizeof *calls);
    snprintf(calls[n_calls++], sizeof *calls, "%s %s %s", call, what, where);
}

static CUresult fake_clusters(int *count, CUfunction function, const CUlaunchConfig *config)
{
    (void)function, (void)config;
    *count = active_clusters;
    return CUDA_SUCCESS;
}

static CUresult fake_ctas(int *count, CUfunction function, int block, size_t shared)
{
    (void)function, (void)block, (void)shared;
    *count = ctas_per_sm;
    return CUDA_SUCCESS;
}

static CUresult fake_get(int *value, CUfunction_attribute which, CUfunction function)
{
    (void)function;
    *value = limits[which];
    return CUDA_SUCCESS;
}

static CUresult fake_set(CUfunction function, CUfunction_attribute which, int value)
{
    (void)function;
    limits[which] = value;
    return CUDA_SUCCESS;
}

static CUresult fake_launch(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    (void)function, (void)params, (void)extra;
    seen = *config;
    memcpy(seen_attributes, config->attrs, config->numAttrs * sizeof *seen_attributes);
    note("launch", "kernel", stream_name(config->hStream));
    return CUDA_SUCCESS;
}

static CUresult fake_stream(CUstream *stream, unsigned flags)
{
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    *stream = (CUstream)(void *)&side_mark;
    return CUDA_SUCCESS;
}

static CUresult fake_stream_destroy(CUstream stream)
{
    note("destroy", "stream", stream_name(stream));
    return CUDA_SUCCESS;
}

static CUresult fake_event(CUevent *event, unsigned flags)
{
    assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
    *event = (CUevent)(void *)(n_events++ == 0 ? &first_event : &second_event);
    return CUDA_SUCCESS;
}

static CUresult fake_event_destroy(CUevent event)
{
    note("destroy", "event", event_name(event));
    return CUDA_SUCCESS;
}

static CUresult fake_record(CUevent event, CUstream stream)
{
    note("record", event_name(event), stream_name(stream));
    return CUDA_SUCCESS;
}

static CUresult fake_wait_event(CUstream stream, CUevent event, unsigned flags)
{
    assert_int_equal(flags, 0);
    note("wait", event_name(event), stream_name(stream));
    return CUDA_SUCCESS;
}

static CUresult fake_sync(CUstream stream)
{
    note("sync", "stream", stream_name(stream));
    return CUDA_SUCCESS;
}

static struct clab_driver driver = {
    .cuOccupancyMaxActiveClusters = fake_clusters,
    .cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_ctas,
    .cuFuncGetAttribute = fake_get,
    .cuFuncSetAttribute = fake_set,
    .cuLaunchKernelEx = fake_launch,
    .cuStreamCreate = fake_stream,
    .cuStreamDestroy_v2 = fake_stream_destroy,
    .cuEventCreate = fake_event,
    .cuEventDestroy_v2 = fake_event_destroy,
    .cuEventRecord = fake_record,
    .cuStreamWaitEvent = fake_wait_event,
    .cuStreamSynchronize = fake_sync,
};
static struct clab_device device;
static struct clab_loaded loaded;
static struct clab_error error;

static int setup(void **state)
{
    (void)state;
    device = (struct clab_device){.driver = &driver,
                                  .sms = SMS,
                                  .max_shared_optin_bytes = 200 * 1024,
                                  .stream = (CUstream)(void *)&main_mark};
    loaded = (struct clab_loaded){.entry = "k", .source = "k.ptx", .n_params = 0};
    driver.version = 13000;
    memset(limits, 0, sizeof limits);
    active_clusters = 9;
    ctas_per_sm = 3;
    n_calls = n_events = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    clab_error_clear(&error);
    return 0;
}

/* The grid of a launch table, or the status in *out_status. */
static unsigned grid_of(const char *launch, clab_status *out_status)
{
    char text[512];
    unsigned grid[3] = {0};
    snprintf(text, sizeof text, "{\"launch\":{\"block\":[64,1,1],%s}}", launch);
    json_t *row = json_loads(text, 0, NULL);
    assert_non_null(row);
    clab_error_clear(&error);
    *out_status = clab_launch_grid(&device, &loaded, row, grid, &error);
    json_decref(row);
    return grid[0] * grid[1] * grid[2];
}

static unsigned fit_of(const char *cluster, const char *fit)
{
    char text[256];
    clab_status status;
    snprintf(text, sizeof text, "\"grid\":null,\"cluster\":%s,\"fit\":{%s}", cluster, fit);
    unsigned grid = grid_of(text, &status);
    assert_int_equal(status, CLAB_OK);
    return grid;
}

static clab_status fit_status(const char *cluster, const char *fit)
{
    char text[256];
    clab_status status;
    snprintf(text, sizeof text, "\"grid\":null,\"cluster\":%s,\"fit\":{%s}", cluster, fit);
    (void)grid_of(text, &status);
    return status;
}

static void a_fit_is_what_the_queries_say(void **state)
{
    (void)state;
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cluster\""), 18);
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cta\""), 30);
    assert_int_equal(fit_of("null", "\"per\":\"cluster\""), 30);
    assert_int_equal(fit_of("null", "\"per\":\"cta\""), 30);
    assert_int_equal(fit_of("[4,1,1]", "\"per\":\"cta\""), 28); /* whole clusters */
    assert_int_equal(fit_of("[2,2,1]", "\"per\":\"cluster\""), 36);
}

static void limits_cut_a_fit_in_whole_clusters(void **state)
{
    (void)state;
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cluster\",\"waves\":3"), 54);
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cluster\",\"waves\":3,\"at_most\":21"), 20);
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cluster\",\"at_most\":100"), 18);
    assert_int_equal(fit_of("[2,1,1]", "\"per\":\"cluster\",\"ctas_per_sm\":1"), 10);
    assert_int_equal(fit_of("null", "\"per\":\"cta\",\"ctas_per_sm\":2,\"waves\":2"), 40);
    assert_int_equal(fit_of("null", "\"per\":\"cta\",\"ctas_per_sm\":5"), 30);
}

static void a_fit_of_nothing_is_waived(void **state)
{
    (void)state;
    assert_int_equal(fit_status("[4,1,1]", "\"per\":\"cluster\",\"at_most\":3"), CLAB_WAIVED);
    assert_string_equal(error.message, "at most 3 CTAs are asked for, a cluster has 4");
    assert_int_equal(fit_status("[4,1,1]", "\"per\":\"cluster\",\"at_most\":4"), CLAB_OK);
    ctas_per_sm = 0;
    assert_int_equal(fit_status("null", "\"per\":\"cta\""), CLAB_WAIVED);
    active_clusters = 0;
    assert_int_equal(fit_status("[4,1,1]", "\"per\":\"cluster\""), CLAB_WAIVED);
    assert_non_null(strstr(error.message, "occupancy query: 0"));
}

static void a_grid_beyond_every_grid_is_refused(void **state)
{
    (void)state;
    active_clusters = 4000;
    assert_int_equal(fit_status("[1,1,1]", "\"per\":\"cluster\",\"waves\":1000000"), CLAB_EXPERIMENT);
    assert_int_equal(fit_status("[1,1,1]", "\"per\":\"cluster\",\"waves\":1000"), CLAB_OK);
}

static void a_given_grid_must_divide(void **state)
{
    (void)state;
    clab_status status;
    assert_int_equal(grid_of("\"grid\":[6,2,1],\"cluster\":[3,2,1]", &status), 12);
    assert_int_equal(status, CLAB_OK);
    (void)grid_of("\"grid\":[6,3,1],\"cluster\":[3,2,1]", &status);
    assert_int_equal(status, CLAB_EXPERIMENT);
    assert_non_null(strstr(error.message, "dimension y"));
}

static void limits_of_a_function_only_rise(void **state)
{
    (void)state;
    clab_status status;
    const int shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    (void)grid_of("\"grid\":[1],\"smem_bytes\":100000", &status);
    assert_int_equal(limits[shared], 100000);
    (void)grid_of("\"grid\":[1],\"smem_bytes\":60000", &status); /* the launch before may still be made */
    assert_int_equal(limits[shared], 100000);
    (void)grid_of("\"grid\":[1],\"smem_bytes\":300000", &status);
    assert_int_equal(status, CLAB_WAIVED);
    (void)grid_of("\"grid\":[8],\"cluster\":[8]", &status);
    assert_int_equal(limits[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED], 0);
    (void)grid_of("\"grid\":[9],\"cluster\":[9]", &status);
    assert_int_equal(limits[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED], 1);
}

static CUdeviceptr no_buffer(const char *name, void *context)
{
    (void)name, (void)context;
    return 0;
}

static clab_status companion_of(struct clab_companion *companion)
{
    json_t *json = json_loads("{\"launch\":{\"grid\":[4,1,1],\"block\":[64,1,1]},\"args\":[]}", 0, NULL);
    clab_status status = clab_companion_prepare(&device, &loaded, json, no_buffer, NULL, companion, &error);
    json_decref(json);
    return status;
}

static void assert_calls(const char *const *wanted, size_t count)
{
    assert_int_equal(n_calls, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(calls[i], wanted[i]);
}

static void a_companion_has_begun_before_what_follows(void **state)
{
    (void)state;
    static const char *const wanted[] = {"record go main", "wait go side", "launch kernel side",
                                         "wait begun main"};
    struct clab_companion *companion = calloc(1, sizeof *companion);
    device.timed = true;
    assert_int_equal(companion_of(companion), CLAB_OK);
    assert_int_equal(clab_companion_start(&device, companion, &error), CLAB_OK);
    assert_calls(wanted, 4);
    assert_int_equal(seen.numAttrs, 1);
    assert_int_equal(seen_attributes[0].id, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
    assert_ptr_equal(seen_attributes[0].value.launchCompletionEvent.event, &second_event);
    clab_companion_fini(&device, companion);
    assert_int_equal(n_calls, 7);
    free(companion);
}

static void a_device_that_counts_lets_it_end_first(void **state)
{
    (void)state;
    static const char *const wanted[] = {"sync stream main", "launch kernel side", "sync stream side"};
    struct clab_companion *companion = calloc(1, sizeof *companion);
    assert_int_equal(companion_of(companion), CLAB_OK);
    assert_int_equal(clab_companion_start(&device, companion, &error), CLAB_OK);
    assert_calls(wanted, 3);
    assert_int_equal(seen.numAttrs, 0);
    clab_companion_fini(&device, companion);
    assert_int_equal(n_calls, 4);
    free(companion);
}

static void an_old_driver_waives_a_companion(void **state)
{
    (void)state;
    struct clab_companion *companion = calloc(1, sizeof *companion);
    device.timed = true;
    driver.version = 12020;
    assert_int_equal(companion_of(companion), CLAB_WAIVED);
    assert_int_equal(clab_companion_start(&device, companion, &error), CLAB_OK); /* there is none */
    assert_int_equal(n_calls, 0);
    free(companion);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fit_is_what_the_queries_say),
        TEST(limits_cut_a_fit_in_whole_clusters),
        TEST(a_fit_of_nothing_is_waived),
        TEST(a_grid_beyond_every_grid_is_refused),
        TEST(a_given_grid_must_divide),
        TEST(limits_of_a_function_only_rise),
        TEST(a_companion_has_begun_before_what_follows),
        TEST(a_device_that_counts_lets_it_end_first),
        TEST(an_old_driver_waives_a_companion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
