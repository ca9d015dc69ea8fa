/* Programs around modules and processes: linking, libraries in two contexts, device malloc, printf and
   assert, entry points, threads that pass contexts on, forks. */
#include "sample.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- linking ---- */

static char caller_ptx[] =
    HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .u32 bias;\n"
         ".visible .entry k(.param .u64 p_p)\n{\n.reg .b64 a;\n.reg .b32 v, w;\nld.param.u64 a, [p_p];\n"
         "ld.global.u32 v, [a];\n{ .param .b32 x; .param .b32 r; st.param.b32 [x], v;\n"
         "call (r), twice, (x); ld.param.b32 v, [r]; }\n"
         "ld.global.u32 w, [bias];\nadd.u32 v, v, w;\nst.global.u32 [a], v;\nret;\n}\n";
static char callee_ptx[] =
    HEAD ".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 v;\nld.param.b32 v, [x];\n"
         "add.u32 v, v, v;\nst.param.b32 [r], v;\nret;\n}\n.visible .global .u32 bias = 100;\n";
static char wrong_ptx[] = HEAD ".visible .entry w()\n{\n.reg .b32 v;\nfrobnicate.u32 v, v;\nret;\n}\n";

void sample_linking(void)
{
    char errors[2048], infos[2048];
    float wall = -1;
    CUlinkState state;
    CUmodule module;
    CUfunction function;
    CUdeviceptr word;
    void *image = NULL;
    size_t bytes = 0;
    uint32_t value = 21;
    sample_start();
    CUjit_option options[] = {CU_JIT_WALL_TIME,
                              CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *values[6];
    values[0] = NULL;
    values[1] = infos;
    values[2] = (void *)(uintptr_t)sizeof infos;
    values[3] = errors;
    values[4] = (void *)(uintptr_t)sizeof errors;
    values[5] = (void *)(uintptr_t)1;
    errors[0] = infos[0] = '\0';
    OK(cuLinkCreate(6, options, values, &state));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, caller_ptx, sizeof caller_ptx, "caller", 0, NULL, NULL));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, callee_ptx, sizeof callee_ptx, "callee", 0, NULL, NULL));
    OK(cuLinkComplete(state, &image, &bytes));
    EXPECT(image != NULL && bytes > 0);
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state)); /* the image was its own, the module stays */
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuMemAlloc(&word, 4));
    OK(cuMemcpyHtoD(word, &value, 4));
    void *params[] = {&word};
    OK(sample_launch(function, 1, 1, NULL, params));
    OK(cuMemcpyDtoH(&value, word, 4));
    SAME(142, value);
    memcpy(&wall, &values[0], sizeof wall);
    EXPECT(wall >= 0);
    /* what is missing, and what is wrong, is in the log */
    memset(errors, 0, sizeof errors);
    values[2] = (void *)(uintptr_t)sizeof infos;
    values[4] = (void *)(uintptr_t)sizeof errors;
    OK(cuLinkCreate(6, options, values, &state));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, caller_ptx, sizeof caller_ptx, "caller", 0, NULL, NULL));
    EXPECT(cuLinkComplete(state, &image, &bytes) != CUDA_SUCCESS);
    EXPECT(strstr(errors, "twice") != NULL || strstr(errors, "bias") != NULL);
    OK(cuLinkDestroy(state));
    memset(errors, 0, sizeof errors);
    values[2] = (void *)(uintptr_t)sizeof infos;
    values[4] = (void *)(uintptr_t)sizeof errors;
    OK(cuLinkCreate(6, options, values, &state));
    WANT(CUDA_ERROR_INVALID_PTX,
         cuLinkAddData(state, CU_JIT_INPUT_PTX, wrong_ptx, sizeof wrong_ptx, "wrong.ptx", 0, NULL, NULL));
    EXPECT(strstr(errors, "frobnicate") != NULL);
    OK(cuLinkDestroy(state));
    /* the same of a module, with a log that is too small: cut, with its end */
    CUjit_option small[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *small_values[] = {errors, (void *)(uintptr_t)16};
    memset(errors, 'x', sizeof errors);
    WANT(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, wrong_ptx, 2, small, small_values));
    EXPECT(memchr(errors, '\0', 16) != NULL && errors[16] == 'x');
    EXPECT((uintptr_t)small_values[1] <= 16);
}

/* ---- libraries ---- */

void sample_libraries(void)
{
    static const char ptx[] =
        HEAD ".visible .global .u32 counter = 7;\n"
             ".visible .entry bump(.param .u32 p_by)\n{\n.reg .b32 v, w;\nld.param.u32 w, [p_by];\n"
             "ld.global.u32 v, [counter];\nadd.u32 v, v, w;\nst.global.u32 [counter], v;\nret;\n}\n"
             ".visible .entry wide() .maxntid 512, 1, 1 { ret; }\n";
    CUlibrary library;
    CUkernel bump, wide, kernels[4];
    CUfunction first, second;
    CUcontext context, other;
    CUdeviceptr counter, its;
    size_t bytes = 0, offset = 9;
    unsigned count = 0;
    uint32_t by = 5, value = 0;
    int attribute = 0;
    const char *name = NULL;
    OK(cuInit(0));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0)); /* no context needed */
    OK(cuLibraryGetKernel(&bump, library, "bump"));
    OK(cuLibraryGetKernel(&wide, library, "wide"));
    WANT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernels[0], library, "none"));
    OK(cuLibraryGetKernelCount(&count, library));
    SAME(2, count);
    OK(cuLibraryEnumerateKernels(kernels, 2, library));
    EXPECT((kernels[0] == bump && kernels[1] == wide) || (kernels[0] == wide && kernels[1] == bump));
    OK(cuKernelGetName(&name, wide));
    EXPECT(name != NULL && strcmp(name, "wide") == 0);
    OK(cuKernelGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, wide, 0));
    SAME(512, attribute);
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, bump, 0));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetFunction(&first, bump));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuKernelGetParamInfo(bump, 0, &offset, &bytes));
    EXPECT(offset == 0 && bytes == 4);
    OK(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
    SAME(4, bytes);
    void *params[] = {&by};
    OK(cuLaunchKernel((CUfunction)bump, 1, 1, 1, 1, 1, 1, 60000, NULL, params,
                      NULL)); /* a CUkernel as it is */
    OK(cuKernelGetFunction(&first, bump));
    OK(sample_launch(first, 1, 1, NULL, params));
    OK(cuMemcpyDtoH(&value, counter, 4));
    SAME(17, value);
    /* another context has a counter of its own */
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuLibraryGetGlobal(&its, &bytes, library, "counter"));
    EXPECT(its != counter);
    OK(cuKernelGetFunction(&second, bump));
    EXPECT(second != first);
    OK(cuLaunchKernel((CUfunction)bump, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&value, its, 4));
    SAME(12, value);
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(context));
    OK(cuMemcpyDtoH(&value, counter, 4));
    SAME(17, value);
    OK(cuLibraryUnload(library));
}

/* ---- malloc in kernels ---- */

void sample_device_heap(void)
{
    static const char ptx[] =
        HEAD ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
             ".visible .entry take(.param .u64 p_out, .param .u64 p_n)\n{\n.reg .b64 o, n, p, t;\n.reg .b32 "
             "i;\n.reg .pred q;\n"
             "ld.param.u64 o, [p_out];\nld.param.u64 n, [p_n];\nmov.u32 i, %tid.x;\nmul.wide.u32 t, i, "
             "8;\nadd.u64 o, o, t;\n"
             "{ .param .b64 a; .param .b64 r; st.param.b64 [a], n;\ncall (r), malloc, (a); ld.param.b64 p, "
             "[r]; }\n"
             "setp.eq.u64 q, p, 0;\n@q bra DONE;\nst.u32 [p], i;\nDONE:\nst.global.u64 [o], p;\nret;\n}\n"
             ".visible .entry give(.param .u64 p_out)\n{\n.reg .b64 o, p, t;\n.reg .b32 i, v;\n"
             "ld.param.u64 o, [p_out];\nmov.u32 i, %tid.x;\nmul.wide.u32 t, i, 8;\nadd.u64 o, o, "
             "t;\nld.global.u64 p, [o];\n"
             "ld.u32 v, [p];\nst.global.u32 [o], v;\nst.global.u32 [o+4], 0;\n"
             "{ .param .b64 a; st.param.b64 [a], p;\ncall free, (a); }\nret;\n}\n";
    CUdeviceptr out;
    uint64_t words[64];
    size_t limit = 0, bytes = 100;
    sample_start();
    OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    SAME(8 << 20, limit);
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)16 << 20));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT(limit >= 16 << 20);
    CUfunction take = sample_load(ptx, "take"), give = sample_load(ptx, "give");
    OK(cuMemAlloc(&out, sizeof words));
    void *params[] = {&out, &bytes};
    OK(sample_launch(take, 1, 64, NULL, params));
    OK(cuMemcpyDtoH(words, out, sizeof words));
    int wrong = 0;
    for (int i = 0; i < 64; i++)
        for (int k = 0; k <= i; k++)
            wrong += words[i] == 0 || words[i] % 16 != 0 || (k != i && words[i] == words[k]);
    SAME(0, wrong);
    /* it lives on from launch to launch */
    OK(sample_launch(give, 1, 64, NULL, params));
    OK(cuMemcpyDtoH(words, out, sizeof words));
    for (uint64_t i = 0; i < 64; i++)
        wrong += words[i] != i;
    SAME(0, wrong);
    /* more than the heap has: NULL, and no fault */
    bytes = (size_t)64 << 20;
    OK(sample_launch(take, 1, 1, NULL, params));
    OK(cuMemcpyDtoH(words, out, 8));
    SAME(0, words[0]);
    bytes = (size_t)1 << 20; /* so many of 1 MiB do not fit */
    OK(sample_launch(take, 1, 64, NULL, params));
    OK(cuMemcpyDtoH(words, out, sizeof words));
    int got = 0;
    uint64_t some = 0;
    for (int i = 0; i < 64; i++)
        if (words[i] != 0) {
            got++;
            some = words[i];
        }
    EXPECT(got > 0 && got <= 16);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(some)); /* it is not the host's to free */
    /* once a module that uses the heap is there, its size stays */
    WANT(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)32 << 20));
    OK(cuCtxSynchronize());
}

/* ---- printf in kernels: what comes, and when ---- */

void sample_device_print(void)
{
    static const char ptx[] = HEAD
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[12] = {116, 32, 37, 100, 32, 37, 46, 49, 102, 10, 0, 0};\n" /* "t %d
                                                                                                  %.1f\n" */
        ".visible .entry say()\n{\n.local .align 8 .b8 block[16];\n.reg .b64 f, a;\n.reg .b32 i, r;\n.reg "
        ".f64 d;\n"
        "mov.u32 i, %tid.x;\ncvt.rn.f64.u32 d, i;\nst.local.u32 [block], i;\nst.local.f64 [block+8], d;\n"
        "mov.u64 f, text;\ncvta.global.u64 f, f;\nmov.u64 a, block;\ncvta.local.u64 a, a;\n"
        "{ .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], f; st.param.b64 [y], a;\n"
        "call (z), vprintf, (x, y); ld.param.b32 r, [z]; }\nret;\n}\n";
    int pipe_ends[2];
    char got[256] = "";
    size_t length = 0, limit = 0;
    sample_start();
    OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, (size_t)2 << 20));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_PRINTF_FIFO_SIZE));
    EXPECT(limit >= 2 << 20);
    CUfunction say = sample_load(ptx, "say");
    if (pipe(pipe_ends) != 0)
        return;
    fflush(stdout);
    const int before = dup(1);
    dup2(pipe_ends[1], 1);
    OK(sample_launch(say, 1, 3, NULL, NULL));
    OK(cuCtxSynchronize());
    fflush(stdout);
    dup2(before, 1);
    close(pipe_ends[1]);
    for (ssize_t n; (n = read(pipe_ends[0], got + length, sizeof got - 1 - length)) > 0;)
        length += (size_t)n;
    got[length] = '\0';
    if (strcmp(got, "t 0 0.0\nt 1 1.0\nt 2 2.0\n") != 0)
        sample_fail("printf gave \"%s\"", got);
}

/* ---- a failed assertion ---- */

void sample_device_assert(void)
{
    static const char ptx[] =
        HEAD ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param "
             ".b64 c);\n"
             ".global .align 1 .b8 text[4] = {119, 104, 121, 0};\n"
             ".visible .entry fails()\n{\n.reg .b64 t;\nmov.u64 t, text;\ncvta.global.u64 t, t;\n"
             "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;\n"
             "st.param.b64 [m], t; st.param.b64 [f], t; st.param.b32 [l], 12; st.param.b64 [n], t; "
             "st.param.b64 [c], 1;\n"
             "call __assertfail, (m, f, l, n, c); }\nret;\n}\n";
    CUdeviceptr p;
    CUevent event;
    CUstream stream;
    CUcontext again;
    sample_start();
    CUfunction fails = sample_load(ptx, "fails");
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fflush(stdout);
    const int before = dup(2), null = dup(1);
    (void)null;
    close(2);
    OK(sample_launch(fails, 1, 1, stream, NULL));
    const CUresult result = cuStreamSynchronize(stream);
    dup2(before, 2);
    SAME(CUDA_ERROR_ASSERT, result);
    WANT(CUDA_ERROR_ASSERT, cuMemAlloc(&p, 4));
    WANT(CUDA_ERROR_ASSERT, cuEventRecord(event, stream));
    WANT(CUDA_ERROR_ASSERT, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset(0));
    WANT(CUDA_ERROR_ASSERT, cuDevicePrimaryCtxRetain(&again, 0));
}

/* ---- entry points ---- */

void sample_entry_points(void)
{
    void *old = NULL, *current = NULL, *per_thread = NULL;
    CUdriverProcAddressQueryResult status;
    __typeof__(&cuStreamSynchronize) synchronize;
    int version = 0;
    OK(cuGetProcAddress("cuMemAlloc", &current, 12000, 0, &status)); /* before cuInit */
    SAME(CU_GET_PROC_ADDRESS_SUCCESS, status);
    OK(cuGetProcAddress("cuMemAlloc", &old, 2000, 0, &status));
    EXPECT(old != NULL && old != current);
    OK(cuGetProcAddress("cuLaunchKernelEx", &old, 11000, 0, &status));
    EXPECT(old == NULL);
    SAME(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
    OK(cuGetProcAddress("cuNothingAtAll", &old, 12000, 0, &status));
    EXPECT(old == NULL);
    SAME(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
    sample_start();
    OK(cuDriverGetVersion(&version));
    OK(cuGetProcAddress("cuStreamSynchronize", &current, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                        &status));
    OK(cuGetProcAddress("cuStreamSynchronize", &per_thread, version,
                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    EXPECT(current != per_thread && per_thread != NULL);
    /* the per-thread form waits for the thread's own default stream only */
    CUdeviceptr word;
    CUstream other;
    OK(cuMemAlloc(&word, 4));
    OK(cuMemsetD32(word, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(other, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    memcpy(&synchronize, &per_thread, sizeof synchronize);
    OK(synchronize(NULL));
    WANT(CUDA_ERROR_NOT_READY, cuStreamQuery(other));
    OK(cuStreamWriteValue32(CU_STREAM_PER_THREAD, word, 1, 0));
    OK(cuStreamSynchronize(other));
}

/* ---- contexts that threads pass on ---- */

static CUcontext passed;
static CUdeviceptr shared_word;

static void *take_over(void *argument)
{
    CUcontext now = (CUcontext)argument, popped = NULL;
    uint32_t value = 0;
    OK(cuCtxGetCurrent(&now));
    EXPECT(now == NULL);
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyDtoH(&value, shared_word, 4) == CUDA_SUCCESS
                                         ? CUDA_ERROR_INVALID_CONTEXT
                                         : CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxPushCurrent(passed));
    OK(cuMemcpyDtoH(&value, shared_word, 4));
    SAME(31, value);
    OK(cuMemsetD32(shared_word, 32, 1));
    OK(cuCtxPopCurrent(&popped));
    EXPECT(popped == passed);
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&popped));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    return NULL;
}

static void *destroys(void *argument)
{
    (void)argument;
    OK(cuCtxDestroy(passed)); /* while it is current to another thread */
    return NULL;
}

void sample_threads(void)
{
    CUcontext primary = sample_start(), now = NULL, popped = NULL;
    pthread_t thread;
    uint32_t value = 0;
    CUdevice device = 9;
    OK(cuCtxCreate(&passed, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    OK(cuCtxGetCurrent(&now));
    EXPECT(now == passed);
    OK(cuMemAlloc(&shared_word, 4));
    OK(cuMemsetD32(shared_word, 31, 1));
    OK(cuCtxSynchronize());
    pthread_create(&thread, NULL, take_over, NULL);
    pthread_join(thread, NULL);
    OK(cuMemcpyDtoH(&value, shared_word, 4));
    SAME(32, value);
    OK(cuCtxPushCurrent(primary));
    OK(cuMemcpyDtoH(&value, shared_word, 4)); /* of another context of the device: one address space */
    OK(cuCtxPopCurrent(&popped));
    EXPECT(popped == primary);
    unsigned flags = 0;
    OK(cuCtxGetFlags(&flags));
    SAME(CU_CTX_SCHED_BLOCKING_SYNC, flags & CU_CTX_SCHED_MASK);
    OK(cuCtxGetDevice(&device));
    SAME(0, device);
    pthread_create(&thread, NULL, destroys, NULL);
    pthread_join(thread, NULL);
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    OK(cuCtxPopCurrent(&popped));
    OK(cuCtxGetCurrent(&now));
    EXPECT(now == primary);
    OK(cuCtxSynchronize());
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(primary));
}

/* ---- forks ---- */

static void in_fresh_child(void)
{
    CUdeviceptr p;
    sample_start();
    OK(cuMemAlloc(&p, 64));
}

void sample_forks(void)
{
    int status = -1, count = 0;
    sample_child(in_fresh_child); /* before cuInit here: fine */
    CUdeviceptr p;
    sample_start();
    OK(cuMemAlloc(&p, 64));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) { /* CUDA is not usable here, and says so */
        const CUresult first = cuMemAlloc(&p, 64), second = cuDeviceGetCount(&count), third = cuInit(0);
        _exit(first == CUDA_ERROR_NOT_INITIALIZED && second == CUDA_ERROR_NOT_INITIALIZED &&
                      third == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    waitpid(child, &status, 0);
    SAME(0, status);
    OK(cuMemsetD8(p, 1, 64)); /* the parent goes on */
    OK(cuMemFree(p));
}
