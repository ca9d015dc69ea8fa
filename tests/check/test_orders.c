/* Verdicts that come from the order of streams, events and graph edges, whatever happened to run first: each
   scenario many times, with and without time for the earlier task to finish, and each that must be reported
   with its silent twin. CUDA Driver API 13.0, "Stream Ordered Memory Allocator", "Stream Management", "Event
   Management", "Graph Management". */
#include <time.h>

#include "../api/api_test.h"

#include "check/hazard.h"
#include "driver/channel.h"

#define ROUNDS  12
#define THREADS 32u
#define BYTES   (4 * THREADS)

/* put stores and look loads, each thread a word, after some ten thousand instructions. */
#define ENTRY(name, body)                                                                             \
    ".visible .entry " name "(.param .u64 at) {\n"                                                    \
    ".reg .u64 a, b; .reg .u32 t, v, k; .reg .pred p;\n"                                              \
    "ld.param.u64 b, [at]; mov.u32 t, %tid.x; mul.wide.u32 a, t, 4; add.u64 a, a, b; mov.u32 k, 0;\n" \
    "again: add.u32 k, k, 1; setp.lt.u32 p, k, 10000; @p bra again;\n" body "ret;\n}\n"
static const char source[] =
    HEADER ENTRY("put", "st.global.u32 [a], k;\n") ENTRY("look", "ld.global.u32 v, [a];\n");

static const struct clab_channel *channel;
static CUstream streams[3]; /* non-blocking */
static CUevent event;
static CUdeviceptr buffer;
static uint32_t *words; /* pinned */
static bool slowly;     /* there is time between one call and the next */

static void launch(const char *name, CUstream stream, CUdeviceptr at)
{
    void *arguments[] = {&at};
    OK(cuLaunchKernel(load(source, name), 1, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL));
}

static void pause_if_slow(void)
{
    if (slowly)
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

/* The second stream waits for what the first has been given so far. */
static void order(CUstream first, CUstream second)
{
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
}

/* One round of a scenario, in a process that has had no other: everything that it leaves must be of that
   kind, and something; NULL: nothing. */
static void round_of(void (*scenario)(bool ordered), bool ordered, const char *kind, bool slow)
{
    struct clab_hazard *hazards = NULL;
    CUuuid id;
    const void *table = NULL;
    CUcontext context = NULL;
    size_t n = 0;
    slowly = slow;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    memcpy(&id, CLAB_CHANNEL_UUID, sizeof id);
    OK(cuGetExportTable(&table, &id));
    channel = table;
    channel->hazards->enable(1);
    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&buffer, BYTES));
    OK(cuMemAllocHost((void **)&words, BYTES));
    OK(cuMemsetD8(buffer, 0, BYTES));
    OK(cuCtxSynchronize());
    scenario(ordered);
    cuCtxSynchronize(); /* a kernel or a copy that finds its memory gone ends the context */
    assert_int_equal(channel->hazards->take(&hazards, &n), 0);
    for (size_t i = 0; i < n; i++) {
        const char *found = clab_hazard_name(hazards[i].kind);
        assert_non_null(found);
        if (kind == NULL || strcmp(found, kind) != 0)
            fail_msg("%s in %s: %s", found, hazards[i].kernel, hazards[i].missing);
    }
    if (kind != NULL && n == 0)
        fail_msg("nothing was found%s", slow ? ", with pauses" : "");
    free(hazards);
}

static void free_after_kernel(bool ordered)
{
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, BYTES, streams[0]));
    launch("put", streams[0], at);
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    OK(cuMemFreeAsync(at, streams[1]));
}

static void free_before_kernel(bool ordered)
{
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, BYTES, streams[0]));
    launch("put", streams[0], at); /* keeps the stream busy */
    order(streams[0], streams[1]);
    OK(cuMemFreeAsync(at, streams[0]));
    pause_if_slow();
    if (!ordered)
        launch("look", streams[1], at);
}

static void free_after_copy(bool ordered)
{
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, BYTES, streams[0]));
    launch("look", streams[0], buffer);
    OK(cuMemcpyDtoHAsync(words, at, BYTES, streams[0]));
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    OK(cuMemFreeAsync(at, streams[1]));
}

static void free_after_set(bool ordered)
{
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, BYTES, streams[0]));
    launch("look", streams[0], buffer);
    OK(cuMemsetD8Async(at, 1, BYTES, streams[0]));
    pause_if_slow();
    if (ordered)
        OK(cuStreamSynchronize(streams[0]));
    OK(cuMemFreeAsync(at, streams[1]));
}

static void use_before_allocation(bool ordered)
{
    CUdeviceptr at;
    launch("look", streams[0], buffer);
    OK(cuMemAllocAsync(&at, BYTES, streams[0]));
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    launch("put", streams[1], at);
    OK(cuStreamSynchronize(streams[1]));
    OK(cuMemFree(at));
}

static void two_streams(bool ordered)
{
    launch("put", streams[0], buffer);
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    launch("look", streams[1], buffer);
}

static void copy_after_kernel(bool ordered)
{
    launch("put", streams[0], buffer);
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    OK(cuMemcpyDtoHAsync(words, buffer, BYTES, streams[1]));
}

static void kernel_after_set(bool ordered)
{
    launch("look", streams[0], buffer);
    OK(cuMemsetD8Async(buffer, 1, BYTES, streams[0]));
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    launch("look", streams[1], buffer);
}

/* A synchronous copy of a non-blocking stream's result. */
static void host_after_kernel(bool ordered)
{
    uint32_t word;
    launch("put", streams[0], buffer);
    pause_if_slow();
    if (ordered)
        OK(cuStreamSynchronize(streams[0]));
    OK(cuMemcpyDtoH(&word, buffer, 4));
}

static void host_before_kernel(bool ordered)
{
    const uint32_t word = 1;
    launch("look", streams[0], buffer);
    pause_if_slow();
    if (ordered)
        OK(cuStreamSynchronize(streams[0]));
    OK(cuMemcpyHtoD(buffer, &word, 4));
}

static void two_copies(bool ordered)
{
    launch("look", streams[0], buffer);
    OK(cuMemcpyHtoDAsync(buffer, words, BYTES, streams[0]));
    pause_if_slow();
    if (ordered)
        order(streams[0], streams[1]);
    OK(cuMemcpyDtoHAsync(words + THREADS / 2, buffer + 16, 16, streams[1]));
}

/* Rows that interleave, and do not touch. */
static void copy_of_rows(bool ordered)
{
    OK(cuMemsetD2D8Async(buffer, 32, 1, 16, 4, streams[0]));
    pause_if_slow();
    OK(cuMemsetD2D8Async(buffer + (ordered ? 16 : 8), 32, 2, 16, 3, streams[1]));
}

/* The event was recorded before the stream itself waited for another one. */
static void event_before_wait(bool ordered)
{
    CUevent other;
    OK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    launch("put", streams[0], buffer);
    OK(cuEventRecord(other, streams[0]));
    if (!ordered)
        OK(cuEventRecord(event, streams[1]));
    OK(cuStreamWaitEvent(streams[1], other, 0));
    if (ordered)
        OK(cuEventRecord(event, streams[1]));
    pause_if_slow();
    OK(cuStreamWaitEvent(streams[2], event, 0));
    launch("look", streams[2], buffer);
    OK(cuEventDestroy(other));
}

static CUDA_KERNEL_NODE_PARAMS kernel_node(const char *name, void **arguments)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = load(source, name),
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = THREADS,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = arguments};
}

static void graph_nodes(bool ordered)
{
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode first, between, last;
    void *arguments[] = {&buffer};
    const CUDA_KERNEL_NODE_PARAMS put = kernel_node("put", arguments), look = kernel_node("look", arguments);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode(&first, graph, NULL, 0, &put));
    OK(cuGraphAddEmptyNode(&between, graph, &first, 1));
    OK(cuGraphAddKernelNode(&last, graph, ordered ? &between : NULL, ordered ? 1 : 0, &look));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, streams[0]));
    OK(cuGraphLaunch(exec, streams[0])); /* one launch after the other */
    OK(cuStreamSynchronize(streams[0]));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* A fork and a join in a capture, and a child graph. */
static void captured(bool ordered)
{
    CUgraph graph, outer;
    CUgraphExec exec;
    CUgraphNode child, last;
    void *arguments[] = {&buffer};
    const CUDA_KERNEL_NODE_PARAMS look = kernel_node("look", arguments);
    CUevent join;
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuEventRecord(event, streams[0]));
    OK(cuStreamWaitEvent(streams[1], event, 0));
    OK(cuMemsetD8Async(buffer, 1, BYTES, streams[0]));
    if (ordered)
        order(streams[0], streams[1]);
    OK(cuMemcpyDtoHAsync(words, buffer, BYTES, streams[1]));
    OK(cuEventRecord(join, streams[1]));
    OK(cuStreamWaitEvent(streams[0], join, 0));
    OK(cuStreamEndCapture(streams[0], &graph));
    OK(cuGraphCreate(&outer, 0));
    OK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph));
    OK(cuGraphAddKernelNode(&last, outer, &child, 1, &look));
    OK(cuGraphInstantiate(&exec, outer, 0));
    OK(cuGraphLaunch(exec, streams[2]));
    OK(cuStreamSynchronize(streams[2]));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(outer));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(join));
}

/* A fault ends what contexts a process has for good: each round is a test in a process of its own. */
struct round {
    const struct scenario {
        const char *name, *kind;
        void (*run)(bool ordered);
    } * scenario;
    bool ordered, slow;
    char name[64];
};

static void test_round(void **state)
{
    const struct round *round = *state;
    round_of(round->scenario->run, round->ordered, round->ordered ? NULL : round->scenario->kind,
             round->slow);
}

#define SCENARIO(name, kind) \
    {                        \
#name, kind, name    \
    }
static const struct scenario scenarios[] = {SCENARIO(free_after_kernel, "use-after-free"),
                                            SCENARIO(free_before_kernel, "use-after-free"),
                                            SCENARIO(free_after_copy, "use-after-free"),
                                            SCENARIO(free_after_set, "use-after-free"),
                                            SCENARIO(use_before_allocation, "race-launches"),
                                            SCENARIO(two_streams, "race-launches"),
                                            SCENARIO(copy_after_kernel, "race-launches"),
                                            SCENARIO(kernel_after_set, "race-launches"),
                                            SCENARIO(host_after_kernel, "race-launches"),
                                            SCENARIO(host_before_kernel, "race-launches"),
                                            SCENARIO(two_copies, "race-launches"),
                                            SCENARIO(copy_of_rows, "race-launches"),
                                            SCENARIO(event_before_wait, "race-launches"),
                                            SCENARIO(graph_nodes, "race-launches"),
                                            SCENARIO(captured, "race-launches")};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

int main(void)
{
    static struct round rounds[SCENARIOS * ROUNDS * 2];
    static struct CMUnitTest tests[SCENARIOS * ROUNDS * 2];
    for (int i = 0; i < SCENARIOS * ROUNDS * 2; i++) {
        struct round *round = &rounds[i];
        round->scenario = &scenarios[i / (ROUNDS * 2)];
        round->ordered = i % 2 == 1;
        round->slow = i / 2 % 2 == 1;
        snprintf(round->name, sizeof round->name, "%s %d%s%s", round->scenario->name, i % (ROUNDS * 2) / 2,
                 round->ordered ? ", ordered" : "", round->slow ? ", with pauses" : "");
        tests[i] = (struct CMUnitTest){.name = round->name, .test_func = test_round, .initial_state = round};
    }
    return RUN_ALONE(tests);
}
