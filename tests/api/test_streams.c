/* Streams and events: order inside a stream, across events, with the legacy default stream; waiting, asking,
   callbacks, per-thread streams, memory operations; several threads at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "api_test.h"

/* The per-thread forms, as a program compiled for them would name them. */
CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr, unsigned, size_t);
CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream);
CUresult CUDAAPI cuStreamGetId_ptsz(CUstream, unsigned long long *);

/* spin(gate, counter, out): waits for the gate word, then out = old counter, counter + 1. */
static const char spin[] =
    HEADER ".visible .entry spin(.param .u64 pgate, .param .u64 pcount, .param .u64 pout)\n{\n"
           "  .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<4>;\n"
           "  ld.param.u64 %rd1, [pgate]; ld.param.u64 %rd2, [pcount]; ld.param.u64 %rd3, [pout];\n"
           "AGAIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra AGAIN;\n"
           "  atom.global.add.u32 %r2, [%rd2], 1; st.global.u32 [%rd3], %r2; ret;\n}\n";

struct fixture {
    CUfunction function;
    uint32_t *gate, *count, *out; /* pinned; out[8] */
};

static void set_up(struct fixture *f)
{
    f->function = load(spin, "spin");
    OK(cuMemHostAlloc((void **)&f->gate, 64, 0));
    OK(cuMemHostAlloc((void **)&f->count, 64, 0));
    OK(cuMemHostAlloc((void **)&f->out, 64, 0));
    memset(f->gate, 0, 64);
    memset(f->count, 0, 64);
    memset(f->out, 0xff, 64);
}

static void start(struct fixture *f, CUstream stream, int gate, int out)
{
    CUdeviceptr a = (CUdeviceptr)(uintptr_t)&f->gate[gate], b = (CUdeviceptr)(uintptr_t)f->count,
                c = (CUdeviceptr)(uintptr_t)&f->out[out];
    void *params[] = {&a, &b, &c};
    OK(cuLaunchKernel(f->function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void open_gate(struct fixture *f, int gate)
{
    __atomic_store_n(&f->gate[gate], 1, __ATOMIC_SEQ_CST);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void test_order_in_a_stream(void **state)
{
    (void)state;
    struct fixture f;
    CUstream stream;
    set_up(&f);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 8; i++)
        start(&f, stream, i == 0 ? 0 : 1, i);
    open_gate(&f, 1); /* all but the first could run */
    nap();
    assert_int_equal(f.out[1], UINT32_MAX);
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    open_gate(&f, 0);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(f.out[i], i);
    OK(cuStreamDestroy(stream));
}

static void test_streams_overlap_and_events_order(void **state)
{
    (void)state;
    struct fixture f;
    CUstream one, two;
    CUevent event, after;
    float ms = -1;
    set_up(&f);
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&after, 0));
    open_gate(&f, 1);
    start(&f, one, 0, 0);
    start(&f, two, 1, 1); /* runs while the first waits */
    OK(cuStreamSynchronize(two));
    assert_int_equal(f.out[1], 0);
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    start(&f, two, 1, 2); /* now it has to wait for the first stream */
    OK(cuEventRecord(after, two));
    nap();
    assert_int_equal(f.out[2], UINT32_MAX);
    WANT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    WANT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, event, after));
    open_gate(&f, 0);
    OK(cuEventSynchronize(after));
    assert_int_equal(f.out[0], 1);
    assert_int_equal(f.out[2], 2);
    OK(cuEventElapsedTime(&ms, event, after));
    assert_true(ms >= 0);
    OK(cuEventDestroy(event));
    OK(cuEventDestroy(after));
    OK(cuStreamDestroy(one));
    OK(cuStreamDestroy(two));
}

/* Blocking streams and the legacy stream wait for each other; non-blocking ones do not. */
static void test_legacy_stream(void **state)
{
    (void)state;
    struct fixture f;
    CUstream blocking, free_;
    set_up(&f);
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_, CU_STREAM_NON_BLOCKING));
    open_gate(&f, 1);
    start(&f, blocking, 0, 0);
    start(&f, NULL, 1, 1);     /* waits for `blocking` */
    start(&f, blocking, 1, 2); /* waits for the legacy stream */
    start(&f, free_, 1, 3);
    OK(cuStreamSynchronize(free_));
    assert_int_equal(f.out[3], 0);
    nap();
    assert_int_equal(f.out[1], UINT32_MAX);
    assert_int_equal(f.out[2], UINT32_MAX);
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_LEGACY));
    open_gate(&f, 0);
    OK(cuStreamSynchronize(NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(f.out[0], 1);
    assert_int_equal(f.out[1], 2);
    assert_int_equal(f.out[2], 3);
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(free_));
}

static void test_per_thread_stream(void **state)
{
    (void)state;
    unsigned long long legacy = 0, own = 0, named = 0;
    CUdeviceptr a;
    OK(cuMemAlloc(&a, 64));
    OK(cuStreamGetId(NULL, &legacy));
    OK(cuStreamGetId_ptsz(NULL, &own));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &named));
    assert_true(own == named && own != legacy);
    OK(cuMemsetD32_v2_ptds(a, 3, 16));
    OK(cuStreamSynchronize_ptsz(NULL));
    uint32_t word = 0;
    OK(cuMemcpyDtoH(&word, a + 60, 4));
    assert_int_equal(word, 3);
}

/* ---- copies ---- */

static void test_async_copies(void **state)
{
    (void)state;
    struct fixture f;
    CUstream stream;
    CUdeviceptr a;
    uint32_t pageable = 5, *pinned = NULL;
    set_up(&f);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&a, 64));
    OK(cuMemHostAlloc((void **)&pinned, 64, 0));
    start(&f, stream, 0, 0);
    OK(cuMemcpyHtoDAsync(a, &pageable, 4,
                         stream)); /* returns although the stream is busy: the source was read */
    pageable = 6;
    OK(cuMemcpyDtoHAsync(pinned, a, 4, stream));
    *pinned = 0;
    nap();
    assert_int_equal(*pinned, 0);
    open_gate(&f, 0);
    OK(cuStreamSynchronize(stream));
    assert_int_equal(*pinned, 5);
    OK(cuMemsetD32Async(a, 9, 4, stream));
    OK(cuMemcpyDtoHAsync(&pageable, a + 12, 4, stream)); /* to pageable memory: done on return */
    assert_int_equal(pageable, 9);
    OK(cuStreamDestroy(stream));
}

/* ---- host functions ---- */

static struct {
    atomic_int calls;
    CUresult inside;
} called;

static void CUDA_CB host_function(void *data)
{
    CUdeviceptr pointer;
    called.inside = cuMemAlloc(&pointer, 4); /* not allowed here */
    nap();
    atomic_fetch_add(&called.calls, *(int *)data);
}

static void CUDA_CB callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    if (status == CUDA_SUCCESS)
        atomic_fetch_add(&called.calls, 10 * *(int *)data);
}

static void test_host_functions(void **state)
{
    (void)state;
    CUstream stream;
    int two = 2;
    atomic_store(&called.calls, 0);
    OK(cuStreamCreate(&stream, 0));
    OK(cuLaunchHostFunc(stream, host_function, &two));
    OK(cuStreamAddCallback(stream, callback, &two, 0));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(atomic_load(&called.calls), 22);
    assert_int_equal(called.inside, CUDA_ERROR_NOT_PERMITTED);
    WANT(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, NULL, NULL));
    OK(cuStreamDestroy(stream));
}

/* A stream destroyed with work in it does that work; destroying does not wait. */
static void test_destroy_busy(void **state)
{
    (void)state;
    struct fixture f;
    CUstream stream;
    set_up(&f);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    start(&f, stream, 0, 0);
    OK(cuStreamDestroy(stream));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamSynchronize(stream));
    open_gate(&f, 0);
    OK(cuCtxSynchronize());
    assert_int_equal(f.out[0], 0);
}

/* A context destroyed while a kernel spins for ever: the kernel is ended. */
static void test_destroy_context_under_a_kernel(void **state)
{
    (void)state;
    CUcontext second;
    struct fixture f;
    OK(cuCtxCreate(&second, NULL, 0, 0));
    set_up(&f);
    start(&f, NULL, 0, 0);
    start(&f, NULL, 0, 1);
    OK(cuCtxDestroy(second));
    CUcontext current;
    OK(cuCtxGetCurrent(&current));
    assert_ptr_not_equal(current, second);
}

/* ---- memory operations ---- */

static void test_stream_values(void **state)
{
    (void)state;
    struct fixture f;
    CUstream one, two;
    CUdeviceptr word;
    set_up(&f);
    OK(cuMemAlloc(&word, 8));
    OK(cuMemsetD32(word, 0, 2));
    OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    open_gate(&f, 0);
    OK(cuStreamWaitValue32(one, word, 7, CU_STREAM_WAIT_VALUE_GEQ));
    start(&f, one, 0, 0);
    nap();
    assert_int_equal(f.out[0], UINT32_MAX);
    OK(cuStreamWriteValue32(two, word, 8, 0));
    OK(cuStreamSynchronize(one));
    assert_int_equal(f.out[0], 0);
    WANT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(two, word + 2, 8, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(two, word + 4, 8, 0));
    OK(cuStreamDestroy(one));
    OK(cuStreamDestroy(two));
}

/* ---- threads ---- */

enum { THREADS = 6, ROUNDS = 40 };

static void *many_calls(void *argument)
{
    struct fixture *f = argument;
    CUcontext context;
    CUstream stream = NULL;
    CUdeviceptr memory = 0;
    CUevent event = NULL;
    uint32_t out = 0;
    long bad = 0;
    bad += cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS;
    bad += cuCtxSetCurrent(context) != CUDA_SUCCESS;
    for (int i = 0; i < ROUNDS; i++) {
        bad += cuStreamCreate(&stream, i % 2 != 0 ? CU_STREAM_NON_BLOCKING : 0) != CUDA_SUCCESS;
        bad += cuMemAlloc(&memory, 4096) != CUDA_SUCCESS;
        bad += cuEventCreate(&event, 0) != CUDA_SUCCESS;
        bad += cuMemsetD32Async(memory, (unsigned)i, 1024, stream) != CUDA_SUCCESS;
        CUdeviceptr gate = (CUdeviceptr)(uintptr_t)f->gate, count = (CUdeviceptr)(uintptr_t)f->count;
        void *params[] = {&gate, &count, &memory};
        bad += cuLaunchKernel(f->function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL) != CUDA_SUCCESS;
        bad += cuEventRecord(event, stream) != CUDA_SUCCESS;
        bad += cuEventSynchronize(event) != CUDA_SUCCESS;
        bad += cuMemcpyDtoH(&out, memory + 4, 4) != CUDA_SUCCESS || out != (uint32_t)i;
        bad += cuEventDestroy(event) != CUDA_SUCCESS;
        bad += cuStreamDestroy(stream) != CUDA_SUCCESS;
        bad += cuMemFree(memory) != CUDA_SUCCESS;
    }
    return (void *)bad;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t threads[THREADS];
    void *bad = NULL;
    set_up(&f);
    open_gate(&f, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_calls, &f), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
    assert_int_equal(*f.count, THREADS * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_order_in_a_stream), IN_CONTEXT(test_streams_overlap_and_events_order),
        IN_CONTEXT(test_legacy_stream),     IN_CONTEXT(test_per_thread_stream),
        IN_CONTEXT(test_async_copies),      IN_CONTEXT(test_host_functions),
        IN_CONTEXT(test_destroy_busy),      IN_CONTEXT(test_destroy_context_under_a_kernel),
        IN_CONTEXT(test_stream_values),     IN_CONTEXT(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
