/* Many host threads: each with contexts of its own; on handles that all of them use, make and destroy; on a
   context that another thread destroys or resets. Calls may fail then; nothing may crash, hang or be lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api_test.h"

enum { THREADS = 6 };

static const char ptx[] = HEADER ".visible .global .u32 counter;\n"
                                 ".visible .entry add(.param .u64 p) { .reg .b64 a; ld.param.u64 a, [p]; "
                                 "red.global.add.u32 [a], 1; ret; }\n"
                                 ".visible .entry nothing() { ret; }\n";

/* Runs it in every thread with its number; all end before this does. */
static void in_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    void *bad[THREADS] = {NULL};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], &bad[i]), 0);
    for (int i = 0; i < THREADS; i++) /* the number of calls that went wrong */
        assert_null(bad[i]);
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- contexts of their own ---- */

static void *own_context(void *argument)
{
    long bad = 0;
    const uint32_t number = (uint32_t)(uintptr_t)argument;
    for (uint32_t round = 0; round < 12; round++) {
        CUcontext context = NULL, popped = NULL;
        CUmodule module = NULL;
        CUfunction add = NULL;
        CUdeviceptr memory = 0;
        CUstream stream = NULL;
        uint32_t value = 0;
        bad += cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS;
        bad += cuModuleLoadData(&module, ptx) != CUDA_SUCCESS;
        bad += cuModuleGetFunction(&add, module, "add") != CUDA_SUCCESS;
        bad += cuMemAlloc(&memory, 4096) != CUDA_SUCCESS;
        bad += cuStreamCreate(&stream, round % 2) != CUDA_SUCCESS;
        bad += cuMemsetD32Async(memory, number, 1, stream) != CUDA_SUCCESS;
        void *params[] = {&memory};
        for (int i = 0; i < 5; i++)
            bad += cuLaunchKernel(add, 3, 1, 1, 32, 1, 1, 0, stream, params, NULL) != CUDA_SUCCESS;
        bad += cuStreamSynchronize(stream) != CUDA_SUCCESS;
        bad += cuMemcpyDtoH(&value, memory, 4) != CUDA_SUCCESS || value != number + 5 * 96;
        if (round % 3 == 0) {
            bad += cuCtxPopCurrent(&popped) != CUDA_SUCCESS || popped != context;
            bad += cuMemsetD8(memory, 0, 4) != CUDA_ERROR_INVALID_CONTEXT;
            bad += cuMemFree(memory) != CUDA_SUCCESS; /* that one needs none */
        }
        bad += cuCtxDestroy(context) != CUDA_SUCCESS; /* with what is in it */
    }
    return (void *)bad;
}

static void test_own_contexts(void **state)
{
    (void)state;
    size_t before = 0, after = 0, total;
    OK(cuMemGetInfo(&before, &total));
    in_threads(own_context);
    OK(cuMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

/* ---- captures ---- */

static CUcontext shared_context;

static void *own_capture(void *argument)
{
    long bad = 0;
    const bool strict =
        (uintptr_t)argument % 2 != 0; /* the others call what a capture in GLOBAL mode forbids */
    bad += cuCtxSetCurrent(shared_context) != CUDA_SUCCESS;
    CUmodule module = NULL;
    CUfunction add = NULL;
    bad += cuModuleLoadData(&module, ptx) != CUDA_SUCCESS;
    bad += cuModuleGetFunction(&add, module, "add") != CUDA_SUCCESS;
    for (int round = 0; round < 20; round++) {
        CUstream stream = NULL;
        CUdeviceptr memory = 0;
        CUgraph graph = NULL;
        CUgraphExec exec = NULL;
        uint32_t value = 0;
        bad += cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
        bad += cuMemAlloc(&memory, 64) != CUDA_SUCCESS;
        void *params[] = {&memory};
        bad += cuStreamBeginCapture(stream, strict ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                                   : CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS;
        bad += cuMemsetD32Async(memory, 7, 1, stream) != CUDA_SUCCESS;
        for (int i = 0; i < 4; i++)
            bad += cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) != CUDA_SUCCESS;
        CUdeviceptr other = 0;
        const CUresult allocated = cuMemAlloc(&other, 64);
        if (strict) {
            bad += allocated != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            bad += cuStreamEndCapture(stream, &graph) != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        } else {
            bad += allocated != CUDA_SUCCESS || cuMemFree(other) != CUDA_SUCCESS;
            bad += cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS;
            bad += cuGraphInstantiate(&exec, graph, 0) != CUDA_SUCCESS;
            bad += cuGraphDestroy(graph) != CUDA_SUCCESS;
            for (int i = 0; i < 3; i++)
                bad += cuGraphLaunch(exec, stream) != CUDA_SUCCESS;
            bad += cuStreamSynchronize(stream) != CUDA_SUCCESS;
            bad += cuMemcpyDtoH(&value, memory, 4) != CUDA_SUCCESS || value != 7 + 4 * 32;
            bad += cuGraphExecDestroy(exec) != CUDA_SUCCESS;
        }
        bad += cuStreamDestroy(stream) != CUDA_SUCCESS;
        bad += cuMemFree(memory) != CUDA_SUCCESS;
    }
    bad += cuModuleUnload(module) != CUDA_SUCCESS;
    return (void *)bad;
}

static void test_captures(void **state)
{
    size_t before = 0, after = 0, total;
    shared_context = *state;
    OK(cuMemGetInfo(&before, &total));
    in_threads(own_capture);
    OK(cuMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

/* ---- the same handles from every thread ---- */

enum { SLOTS = 4 };

/* What all threads use and any may replace. A handle read here may be destroyed before it is used. */
static struct {
    _Atomic(CUstream) streams[SLOTS];
    _Atomic(CUevent) events[SLOTS];
    _Atomic(CUmodule) modules[SLOTS];
    _Atomic(CUfunction) functions[SLOTS];
    _Atomic(CUdeviceptr) memory[SLOTS];
    _Atomic(CUgraphExec) execs[SLOTS];
} all;

static CUgraphExec new_exec(void)
{
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    const CUDA_KERNEL_NODE_PARAMS kernel = {.func = atomic_load(&all.functions[0]),
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 32,
                                            .blockDimY = 1,
                                            .blockDimZ = 1};
    cuGraphCreate(&graph, 0);
    cuGraphAddEmptyNode(&node, graph, NULL, 0);
    cuGraphAddKernelNode(&node, graph, &node, 1, &kernel); /* its function may be gone */
    cuGraphInstantiate(&exec, graph, 0);
    cuGraphDestroy(graph);
    return exec;
}

static void CUDA_CB nothing(void *data)
{
    (void)data;
}

static void *anything(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument * 7919u + 1u;
    cuCtxSetCurrent(shared_context);
    for (int round = 0; round < 600; round++) {
        const unsigned i = next(&seed) % SLOTS, j = next(&seed) % SLOTS;
        const CUstream stream = next(&seed) % 6 == 0 ? NULL : atomic_load(&all.streams[i]);
        CUdeviceptr memory = atomic_load(&all.memory[j]), fresh = 0;
        CUstream made_stream = NULL;
        CUevent made_event = NULL;
        CUmodule made_module = NULL;
        CUfunction made_function = NULL;
        uint32_t words[16];
        float ms;
        switch (next(&seed) % 22) {
        case 0:
            cuStreamCreate(&made_stream, next(&seed) % 2);
            cuStreamDestroy(atomic_exchange(&all.streams[i], made_stream));
            break;
        case 1:
            cuEventCreate(&made_event, 0);
            cuEventDestroy(atomic_exchange(&all.events[i], made_event));
            break;
        case 2:
            if (round % 8 == 0) {
                cuModuleLoadData(&made_module, ptx);
                cuModuleGetFunction(&made_function, made_module, "nothing");
                cuModuleUnload(atomic_exchange(&all.modules[i], made_module));
                atomic_store(&all.functions[i], made_function);
            }
            break;
        case 3:
            cuMemAlloc(&fresh, 64);
            cuMemFree(atomic_exchange(&all.memory[j], fresh));
            break;
        case 4:
            cuMemAllocAsync(&fresh, 64, stream);
            cuMemFreeAsync(atomic_exchange(&all.memory[j], fresh), stream);
            break;
        case 5:
            cuGraphExecDestroy(atomic_exchange(&all.execs[i], new_exec()));
            break;
        case 6:
        case 7:
        case 8:
            cuLaunchKernel(atomic_load(&all.functions[j]), 2, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
            break;
        case 9:
            cuEventRecord(atomic_load(&all.events[j]), stream);
            break;
        case 10:
            cuStreamWaitEvent(stream, atomic_load(&all.events[j]), 0);
            break;
        case 11:
            cuEventSynchronize(atomic_load(&all.events[j]));
            break;
        case 12:
            cuStreamSynchronize(stream);
            break;
        case 13:
            cuStreamQuery(stream);
            cuEventQuery(atomic_load(&all.events[j]));
            break;
        case 14:
            cuEventElapsedTime(&ms, atomic_load(&all.events[i]), atomic_load(&all.events[j]));
            break;
        case 15:
            cuMemsetD8(memory, 1, 64);
            break;
        case 16:
            cuMemcpyDtoH(words, memory, 64);
            break;
        case 17:
            cuMemcpyHtoD(memory, memset(words, 1, sizeof words), 64);
            break;
        case 18:
            cuGraphLaunch(atomic_load(&all.execs[i]), stream);
            break;
        case 19:
            cuLaunchHostFunc(stream, nothing, NULL);
            break;
        case 20: {
            unsigned type;
            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
            break;
        }
        default:
            cuCtxSynchronize();
        }
    }
    return NULL;
}

static void clear_slots(void)
{
    for (int i = 0; i < SLOTS; i++) {
        cuStreamDestroy(atomic_exchange(&all.streams[i], NULL));
        cuEventDestroy(atomic_exchange(&all.events[i], NULL));
        cuGraphExecDestroy(atomic_exchange(&all.execs[i], NULL));
        cuModuleUnload(atomic_exchange(&all.modules[i], NULL));
        cuMemFree(atomic_exchange(&all.memory[i], 0));
        atomic_store(&all.functions[i], NULL);
    }
}

/* Free memory is what it was, unless a set or copy of what another thread had freed has ended all contexts.
 */
static void all_is_back(size_t before)
{
    size_t after = 0, total;
    const CUresult result = cuMemGetInfo(&after, &total);
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
        return;
    OK(result);
    assert_int_equal(before, after);
}

static void test_the_same_handles(void **state)
{
    (void)state;
    size_t before = 0, total;
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&shared_context, NULL, 0, 0));
    in_threads(anything);
    clear_slots();
    OK(cuCtxDestroy(shared_context));
    all_is_back(before);
}

/* ---- a context that goes away under its users ---- */

/* Each time in a process of its own: a set of memory that another thread has freed ends all of them. */
static void destroyed_under_threads(int round)
{
    size_t before = 0, total;
    pthread_t threads[THREADS];
    CUcontext own = NULL;
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&shared_context, NULL, 0, 0));
    OK(cuCtxPopCurrent(&own));
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, anything, (void *)(i + 1)), 0);
    struct timespec pause = {0, 1000000 * (2 + 3 * round)};
    nanosleep(&pause, NULL);
    OK(cuCtxDestroy(own));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    all_is_back(before);
}

#define DESTROYED(round)                                           \
    static void test_destroyed_under_threads_##round(void **state) \
    {                                                              \
        (void)state;                                               \
        destroyed_under_threads(round);                            \
    }
DESTROYED(0)
DESTROYED(1)
DESTROYED(2)
DESTROYED(3)
DESTROYED(4)
DESTROYED(5)

/* ---- the primary context, retained, used, released and reset ---- */

static void *primary_life(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument * 104729u + 3u;
    long bad = 0;
    for (int round = 0; round < 60; round++) {
        CUcontext context = NULL;
        CUdeviceptr memory = 0;
        CUstream stream = NULL;
        int active = 0;
        unsigned flags = 0;
        bad += cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS;
        bad += cuCtxSetCurrent(context) != CUDA_SUCCESS;
        if (cuMemAlloc(&memory, 4096) == CUDA_SUCCESS) {
            cuStreamCreate(&stream, 0);
            cuMemsetD8Async(memory, 1, 4096, stream);
            cuStreamSynchronize(stream);
            cuStreamDestroy(stream);
            cuMemFree(memory); /* each may find the context reset */
        }
        if (next(&seed) % 8 == 0)
            bad += cuDevicePrimaryCtxReset(0) != CUDA_SUCCESS;
        bad += cuDevicePrimaryCtxGetState(0, &flags, &active) != CUDA_SUCCESS;
        cuDevicePrimaryCtxRelease(0);
        bad += cuCtxSetCurrent(NULL) != CUDA_SUCCESS;
    }
    return (void *)bad;
}

static void test_primary_lives(void **state)
{
    size_t before = 0, after = 0, total;
    OK(cuMemGetInfo(&before, &total));
    in_threads(primary_life);
    OK(cuDevicePrimaryCtxRetain((CUcontext *)state, 0));
    OK(cuCtxSetCurrent(*state));
    OK(cuMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_own_contexts),
        IN_CONTEXT(test_captures),
        IN_CONTEXT(test_the_same_handles),
        IN_CONTEXT(test_destroyed_under_threads_0),
        IN_CONTEXT(test_destroyed_under_threads_1),
        IN_CONTEXT(test_destroyed_under_threads_2),
        IN_CONTEXT(test_destroyed_under_threads_3),
        IN_CONTEXT(test_destroyed_under_threads_4),
        IN_CONTEXT(test_destroyed_under_threads_5),
        IN_CONTEXT(test_primary_lives),
    };
    return RUN_ALONE(tests);
}
