/* Green contexts: a part of the SMs for a part of the work. What an H200 answers to each call is in
   data/h200_resources.txt; here it is what kernels see. */
#include <stdbool.h>
#include <unistd.h>

#include "api_test.h"

static const char where_text[] =
    HEADER ".visible .entry where(.param .u64 p) { .reg .b64 a, b; .reg .b32 s, n;\n"
           "  ld.param.u64 a, [p]; mov.u32 s, %smid; mul.wide.u32 b, s, 4; add.u64 b, b, a; "
           "red.global.add.u32 [b], 1; ret; }\n";

static bool on_sm[256]; /* of the last grid */

/* On how many SMs did the grid run? */
static unsigned sms_used(CUstream stream, unsigned ctas)
{
    CUdeviceptr memory;
    uint32_t counts[256];
    unsigned used = 0, all = 0;
    OK(cuMemAlloc(&memory, sizeof counts));
    OK(cuMemsetD8(memory, 0, sizeof counts));
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(load(where_text, "where"), ctas, 1, 1, 32, 1, 1, 0, stream, (void *[]){&memory}, NULL));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(counts, memory, sizeof counts));
    OK(cuMemFree(memory));
    for (size_t i = 0; i < 256; i++) {
        on_sm[i] = counts[i] != 0;
        used += counts[i] != 0;
        all += counts[i];
    }
    assert_int_equal(all, ctas * 32);
    return used;
}

static void test_partition(void **state)
{
    (void)state;
    CUdevResource all, groups[2], rest, got;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext context;
    CUstream stream, primary_stream;
    unsigned n = 2, ctas;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, 20));
    assert_int_equal(n, 2);
    assert_int_equal(groups[0].sm.smCount, 24);
    assert_int_equal(groups[0].sm.smCount + groups[1].sm.smCount + rest.sm.smCount, all.sm.smCount);
    OK(cuDevResourceGenerateDesc(&desc, groups, 1));
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuGreenCtxGetDevResource(green, &got, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(got.sm.smCount, 24);
    OK(cuStreamCreate(&primary_stream, CU_STREAM_NON_BLOCKING));
    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    ctas = all.sm.smCount;
    assert_int_equal(sms_used(stream, ctas), 24);
    assert_int_equal(sms_used(primary_stream, ctas), all.sm.smCount);

    /* the default stream and new streams follow what is current; memory is shared */
    CUdeviceptr memory;
    uint32_t word = 0;
    OK(cuMemAlloc(&memory, 4));
    OK(cuCtxFromGreenCtx(&context, green));
    OK(cuCtxPushCurrent(context));
    assert_int_equal(sms_used(NULL, ctas), 24);
    OK(cuMemsetD32(memory, 5, 1));
    OK(cuCtxPopCurrent(&context));
    assert_int_equal(sms_used(NULL, ctas), all.sm.smCount);
    OK(cuMemcpyDtoH(&word, memory, 4));
    assert_int_equal(word, 5);

    /* a captured launch keeps its SMs */
    CUgraph graph;
    CUgraphExec exec;
    uint32_t counts[256];
    unsigned used = 0;
    CUdeviceptr table;
    OK(cuMemAlloc(&table, sizeof counts));
    OK(cuMemsetD8(table, 0, sizeof counts));
    CUfunction where = load(where_text, "where");
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuLaunchKernel(where, ctas, 1, 1, 1, 1, 1, 0, stream, (void *[]){&table}, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, primary_stream));
    OK(cuStreamSynchronize(primary_stream));
    OK(cuMemcpyDtoH(counts, table, sizeof counts));
    for (size_t i = 0; i < 256; i++)
        used += counts[i] != 0;
    assert_int_equal(used, 24);

    /* a cooperative grid must fit the part */
    CUdeviceptr place = table;
    void *params[] = {&place};
    int per_sm = 0;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, where, 1024, 0));
    OK(cuLaunchCooperativeKernel(where, 24 * (unsigned)per_sm, 1, 1, 1024, 1, 1, 0, stream, params));
    WANT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
         cuLaunchCooperativeKernel(where, 24 * (unsigned)per_sm + 1, 1, 1, 1024, 1, 1, 0, stream, params));
    OK(cuLaunchCooperativeKernel(where, 24 * (unsigned)per_sm + 1, 1, 1, 1024, 1, 1, 0, primary_stream,
                                 params));
    OK(cuCtxSynchronize());

    OK(cuStreamDestroy(stream));
    OK(cuGreenCtxDestroy(green));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(green));
    OK(cuGraphLaunch(exec, primary_stream)); /* what it was captured with is still known */
    OK(cuStreamSynchronize(primary_stream));
}

/* Events of a green context: of its streams only. */
/* Two groups of one split have no SM in common, by %smid. */
static void test_smid(void **state)
{
    (void)state;
    CUdevResource all, groups[2];
    CUdevResourceDesc descs[2];
    CUgreenCtx greens[2];
    CUstream streams[2];
    bool first[256];
    unsigned n = 2;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(groups, &n, &all, NULL, 0, 16));
    for (unsigned i = 0; i < 2; i++) {
        OK(cuDevResourceGenerateDesc(&descs[i], &groups[i], 1));
        OK(cuGreenCtxCreate(&greens[i], descs[i], 0, CU_GREEN_CTX_DEFAULT_STREAM));
        OK(cuGreenCtxStreamCreate(&streams[i], greens[i], CU_STREAM_NON_BLOCKING, 0));
        assert_int_equal(sms_used(streams[i], 264), 16);
        for (unsigned k = 0; k < 256 && i == 1; k++)
            assert_false(first[k] && on_sm[k]);
        memcpy(first, on_sm, sizeof first);
    }
    for (unsigned i = 0; i < 2; i++) {
        OK(cuStreamDestroy(streams[i]));
        OK(cuGreenCtxDestroy(greens[i]));
    }
}

static void test_events(void **state)
{
    (void)state;
    CUdevResource all, groups[2];
    CUdevResourceDesc descs[2];
    CUgreenCtx green[2];
    CUstream streams[2];
    CUevent event;
    CUdeviceptr memory;
    unsigned n = 2;
    uint32_t word = 0;
    OK(cuMemAlloc(&memory, 8));
    OK(cuMemsetD32(memory, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(groups, &n, &all, NULL, 0, 16));
    for (int i = 0; i < 2; i++) {
        OK(cuDevResourceGenerateDesc(&descs[i], &groups[i], 1));
        OK(cuGreenCtxCreate(&green[i], descs[i], 0, CU_GREEN_CTX_DEFAULT_STREAM));
        OK(cuGreenCtxStreamCreate(&streams[i], green[i], CU_STREAM_NON_BLOCKING, 0));
    }
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitValue32(streams[0], memory, 1, CU_STREAM_WAIT_VALUE_EQ)); /* the first has to wait */
    OK(cuGreenCtxRecordEvent(green[0], event));
    WANT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    OK(cuGreenCtxWaitEvent(green[1], event));
    OK(cuMemsetD32Async(memory + 4, 7, 1, streams[1]));
    OK(cuMemcpyDtoH(&word, memory + 4, 4));
    assert_int_equal(word, 0);
    OK(cuMemsetD32(memory, 1, 1));
    OK(cuStreamSynchronize(streams[1]));
    OK(cuEventQuery(event));
    OK(cuMemcpyDtoH(&word, memory + 4, 4));
    assert_int_equal(word, 7);
    for (int i = 0; i < 2; i++) {
        OK(cuStreamDestroy(streams[i]));
        OK(cuGreenCtxDestroy(green[i]));
    }
}

/* The primary context goes while green ones are there. */
static void test_reset(void **state)
{
    (void)state;
    CUdevResource all;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext context, current;
    CUstream stream;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevResourceGenerateDesc(&desc, &all, 1));
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    OK(cuCtxFromGreenCtx(&context, green));
    OK(cuCtxGetCurrent(&current));
    OK(cuDevicePrimaryCtxReset(0));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(green));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamSynchronize(stream));
    assert_non_null(current);
}

int main(void)
{
    alarm(120); /* what hangs ends here */
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_partition),
        IN_CONTEXT(test_smid),
        IN_CONTEXT(test_events),
        IN_CONTEXT(test_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
