/* Launches under the hazard checker: which pairs count as ordered (streams, events, the host), and
   programmatic dependent launch. Each case that must be reported has its silent twin. CUDA Driver API 13.0,
   "Stream Management", "Event Management"; CUDA Programming Guide 13.0, "Default Stream"; PTX ISA 9.0,
   "griddepcontrol". */
#include "../api/api_test.h"

#include "check/hazard.h"
#include "driver/channel.h"

#define THREADS 64u
#define BYTES   (2 * 4 * THREADS)

/* Every thread: put stores its word, get loads it and stores it BYTES / 2 further on in `to`, add is a red.
   depend and its kin are secondaries of programmatic dependent launches; first lets them start. */
#define ENTRY(name, body)                                                                    \
    ".visible .entry " name "(.param .u64 at, .param .u64 to) {\n"                           \
    ".reg .u64 a, b; .reg .u32 t, v; .reg .pred p;\n"                                        \
    "ld.param.u64 a, [at]; ld.param.u64 b, [to]; mov.u32 t, %tid.x; mul.wide.u32 a, t, 4;\n" \
    ".reg .u64 base; ld.param.u64 base, [at]; add.u64 a, a, base; mov.u32 v, 7;\n" body "ret;\n}\n"
#define PUT "st.global.u32 [a], v;\n"
#define GET "ld.global.u32 v, [a]; mul.wide.u32 base, t, 4; add.u64 b, b, base; st.global.u32 [b], v;\n"

static const char source[] = HEADER ENTRY("put", PUT) ENTRY("get", GET)
    ENTRY("add", "red.global.add.u32 [a], v;\n") ENTRY("look", "ld.global.u32 v, [a];\n") ENTRY(
        "publish", "st.global.u32 [a], v; bar.sync 0; setp.eq.u32 p, t, 0;\n"
                   "@p st.release.gpu.global.u32 [b], v;\n")
        ENTRY("consume", "ld.acquire.gpu.global.u32 v, [b]; setp.ne.u32 p, v, 0; @p ld.global.u32 v, [a];\n")
            ENTRY("first", PUT "griddepcontrol.launch_dependents;\n")
                ENTRY("depend", "griddepcontrol.wait;\n" GET)
                    ENTRY("depend_one", "setp.eq.u32 p, t, 0; @p griddepcontrol.wait; bar.sync 0;\n" GET)
                        ENTRY("depend_late", GET "griddepcontrol.wait;\n");

static const struct clab_channel *channel;
static CUfunction function(const char *name)
{
    return load(source, name);
}

static CUstream streams[3]; /* non-blocking */
static CUdeviceptr buffer, other;

static int set_up(void **state)
{
    CUuuid id;
    const void *table = NULL;
    with_context(state);
    memcpy(&id, CLAB_CHANNEL_UUID, sizeof id);
    OK(cuGetExportTable(&table, &id));
    channel = table;
    assert_int_equal(channel->has_hazards, 1);
    channel->hazards->enable(1);
    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&buffer, BYTES));
    OK(cuMemAlloc(&other, BYTES));
    OK(cuMemsetD8(buffer, 0, BYTES));
    OK(cuMemsetD8(other, 0, BYTES));
    OK(cuCtxSynchronize()); /* sets do not wait, and these streams do not wait for them */
    return 0;
}

static int tear_down(void **state)
{
    struct clab_hazard *hazards;
    size_t n;
    OK(cuCtxSynchronize());
    channel->hazards->enable(0);
    channel->hazards->take(&hazards, &n);
    free(hazards);
    return without_context(state);
}

static void launch_with(const char *name, CUstream stream, CUdeviceptr at, CUdeviceptr to, bool programmatic)
{
    void *arguments[] = {&at, &to};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = THREADS,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = &attribute,
                             .numAttrs = programmatic ? 1 : 0};
    OK(cuLaunchKernelEx(&config, function(name), arguments, NULL));
}

static void launch(const char *name, CUstream stream)
{
    launch_with(name, stream, buffer, other, false);
}

/* What has been found must be of that kind, and something if `kind` is one; NULL: nothing. */
static void expect_between(const char *kind, const char *party)
{
    struct clab_hazard *hazards = NULL;
    size_t n = 0;
    OK(cuCtxSynchronize());
    assert_int_equal(channel->hazards->take(&hazards, &n), 0);
    for (size_t i = 0; i < n; i++) {
        if (kind == NULL || strcmp(clab_hazard_name(hazards[i].kind), kind) != 0)
            fail_msg("%s in %s: %s", clab_hazard_name(hazards[i].kind), hazards[i].kernel,
                     hazards[i].missing);
        assert_int_equal(hazards[i].parties[0].present, 1);
        assert_int_equal(hazards[i].parties[1].present, 1);
        assert_int_not_equal(hazards[i].parties[1].ptx_line, 0);
        assert_int_equal(hazards[i].within, CLAB_WITHIN_GRID);
        /* Without an order either may have run first, on its stream's thread. */
        if (strstr(hazards[i].missing, party) == NULL && strcmp(hazards[i].kernel, party) != 0)
            fail_msg("%s is no party: %s", party, hazards[i].missing);
    }
    if (kind != NULL)
        assert_int_not_equal(n, 0);
    free(hazards);
}

/* One party: the kernel's. */
static void expect_copy(const char *kernel, const char *what)
{
    struct clab_hazard *hazards = NULL;
    size_t n = 0;
    OK(cuCtxSynchronize());
    assert_int_equal(channel->hazards->take(&hazards, &n), 0);
    assert_int_equal(n, 1);
    assert_string_equal(clab_hazard_name(hazards[0].kind), "race-launches");
    assert_string_equal(hazards[0].kernel, kernel);
    assert_int_equal(hazards[0].parties[0].present, 1);
    assert_int_not_equal(hazards[0].parties[0].ptx_line, 0);
    assert_non_null(strstr(hazards[0].missing, what));
    free(hazards);
}

static void expect_race(const char *party)
{
    expect_between("race-launches", party);
}

static void expect_nothing(void)
{
    expect_between(NULL, "");
}

static void two_streams(void **state)
{
    (void)state;
    launch("put", streams[0]);
    launch("put", streams[1]);
    expect_race("put");
    launch("put", streams[0]);
    launch("get", streams[1]);
    expect_race("put");
    launch("get", streams[0]); /* a later write of what was read */
    launch("put", streams[1]);
    expect_race("get");
}

static void one_stream(void **state)
{
    (void)state;
    launch("put", streams[0]);
    launch("get", streams[0]);
    launch("put", streams[0]);
    expect_nothing();
}

static void no_conflict(void **state)
{
    (void)state;
    launch("look", streams[0]);
    launch("look", streams[1]);
    launch_with("put", streams[2], other, other, false);
    expect_nothing();
    launch("add", streams[0]); /* atomics do not race with each other */
    launch("add", streams[1]);
    expect_nothing();
    launch("add", streams[0]);
    launch("look", streams[1]);
    expect_race("add");
}

static void events(void **state)
{
    CUevent event;
    (void)state;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    launch("put", streams[0]);
    OK(cuEventRecord(event, streams[0]));
    OK(cuStreamWaitEvent(streams[1], event, 0));
    launch("get", streams[1]);
    expect_nothing();
    OK(cuEventRecord(event, streams[0])); /* too early: before the kernel */
    launch("put", streams[0]);
    OK(cuStreamWaitEvent(streams[1], event, 0));
    launch("get", streams[1]);
    expect_race("put");
    launch("put", streams[0]);
    OK(cuEventRecord(event, streams[0]));
    launch("get", streams[1]); /* before the wait */
    OK(cuStreamWaitEvent(streams[1], event, 0));
    expect_race("put");
    OK(cuEventDestroy(event));
}

static void events_in_a_row(void **state)
{
    CUevent event[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        OK(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
    launch("put", streams[0]);
    for (int i = 0; i < 2; i++) {
        OK(cuEventRecord(event[i], streams[i]));
        OK(cuStreamWaitEvent(streams[i + 1], event[i], 0));
        launch("look", streams[i + 1]);
    }
    launch_with("get", streams[2], buffer, other, false);
    expect_nothing();
    for (int i = 0; i < 2; i++)
        OK(cuEventDestroy(event[i]));
}

static void the_host(void **state)
{
    CUevent event;
    (void)state;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    launch("put", streams[0]);
    OK(cuStreamSynchronize(streams[0]));
    launch("get", streams[1]);
    OK(cuCtxSynchronize());
    launch("put", streams[2]);
    OK(cuEventRecord(event, streams[2]));
    OK(cuEventSynchronize(event));
    launch("get", streams[0]);
    while (cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY)
        continue;
    launch("put", streams[1]);
    OK(cuEventRecord(event, streams[1]));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        continue;
    launch("get", streams[2]);
    expect_nothing();
    launch("put", streams[0]);
    OK(cuStreamSynchronize(streams[1])); /* another one */
    launch("get", streams[1]);
    expect_race("put");
    OK(cuEventDestroy(event));
}

static void the_default_stream(void **state)
{
    CUstream blocking;
    uint32_t word;
    (void)state;
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    launch("put", blocking);
    launch("get", NULL);
    launch("put", blocking);
    OK(cuMemcpyDtoH(&word, other, 4)); /* waits for the blocking streams */
    launch("get", streams[0]);
    expect_nothing();
    launch("put", NULL);
    launch("get", streams[0]); /* which takes no part in that order */
    expect_race("put");
    OK(cuStreamDestroy(blocking));
}

static void CUDA_CB nothing(void *data)
{
    *(volatile int *)data = 1;
}

static void host_functions(void **state)
{
    static volatile int done;
    (void)state;
    done = 0;
    launch("put", streams[0]);
    OK(cuLaunchHostFunc(streams[0], nothing, (void *)(uintptr_t)&done));
    while (!done) /* the program may wait for it in a way that nobody sees */
        continue;
    launch("get", streams[1]);
    expect_nothing();
}

static void flags_between_grids(void **state)
{
    (void)state;
    launch("publish", streams[0]);
    launch("consume", streams[1]);
    expect_nothing();
}

static void memory_that_was_freed(void **state)
{
    CUdeviceptr first, second;
    (void)state;
    OK(cuMemAllocAsync(&first, BYTES, streams[0]));
    launch_with("put", streams[0], first, first, false);
    OK(cuMemFreeAsync(first, streams[0]));
    while (cuStreamQuery(streams[2]) == CUDA_ERROR_NOT_READY)
        continue;
    OK(cuMemAllocAsync(&second, BYTES, streams[1]));
    launch_with("put", streams[1], second, second, false);
    expect_nothing();
    OK(cuMemFree(second));
}

static void copies_and_sets(void **state)
{
    uint32_t *words;
    (void)state;
    OK(cuMemAllocHost((void **)&words, BYTES));
    launch("put", streams[0]);
    OK(cuMemcpyDtoHAsync(words, buffer, 4, streams[1]));
    expect_copy("put", "reads");
    launch("put", streams[0]);
    OK(cuMemcpyDtoHAsync(words, buffer, 4, streams[0]));
    expect_nothing();
    OK(cuMemsetD8Async(buffer, 1, BYTES, streams[0]));
    launch("look", streams[1]);
    expect_copy("look", "writes");
    OK(cuMemsetD8Async(other, 1, BYTES, streams[0])); /* other memory */
    launch("look", streams[1]);
    OK(cuMemcpyDtoHAsync(words, buffer, BYTES, streams[2])); /* both read */
    expect_nothing();
    launch("put", streams[0]);
    OK(cuMemcpyDtoH(words, buffer, 4)); /* waits for blocking streams only */
    expect_copy("put", "reads");
    launch("put", streams[0]);
    OK(cuStreamSynchronize(streams[0]));
    OK(cuMemcpyDtoH(words, buffer, 4));
    OK(cuMemcpyHtoD(buffer, words, 4)); /* synchronous: the host knows */
    launch("get", streams[1]);
    expect_nothing();
    OK(cuMemFreeHost(words));
}

static void dependent_launches(void **state)
{
    (void)state;
    launch("first", streams[0]);
    launch_with("depend", streams[0], buffer, other, true);
    expect_nothing();
    launch("first", streams[0]);
    launch_with("depend_one", streams[0], buffer, other,
                true); /* one thread waits, a barrier tells the others */
    expect_nothing();
    launch("first", streams[0]);
    launch_with("get", streams[0], buffer, other, true); /* nobody waits */
    expect_between("dependent-early", "first");
    launch("first", streams[0]);
    launch_with("depend_late", streams[0], buffer, other, true);
    expect_between("dependent-early", "first");
}

static void launches_that_do_not_overlap(void **state)
{
    (void)state;
    launch("put", streams[0]); /* does not let anybody start early */
    launch_with("get", streams[0], buffer, other, true);
    launch("first", streams[0]);
    launch("get", streams[0]); /* is no dependent launch */
    launch("first", streams[0]);
    launch_with("put", streams[0], other, other, true); /* other memory */
    expect_nothing();
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(two_streams),
        CASE(one_stream),
        CASE(no_conflict),
        CASE(events),
        CASE(events_in_a_row),
        CASE(the_host),
        CASE(the_default_stream),
        CASE(host_functions),
        CASE(flags_between_grids),
        CASE(copies_and_sets),
        CASE(memory_that_was_freed),
        CASE(dependent_launches),
        CASE(launches_that_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
