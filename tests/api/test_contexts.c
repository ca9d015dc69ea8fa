/* Contexts: the stack of current ones, primary contexts, limits, what goes with a context; a process that
   forks, one that exits with work in flight. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_test.h"

static void test_stack(void **state)
{
    CUcontext primary = *state, a, b, top;
    OK(cuCtxCreate(&a, NULL, 0, 0)); /* becomes current */
    OK(cuCtxGetCurrent(&top));
    assert_ptr_equal(top, a);
    OK(cuCtxCreate(&b, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    OK(cuCtxPopCurrent(&top));
    assert_ptr_equal(top, b);
    OK(cuCtxGetCurrent(&top));
    assert_ptr_equal(top, a);
    OK(cuCtxPushCurrent(b));
    OK(cuCtxSetCurrent(primary)); /* replaces the top */
    OK(cuCtxPopCurrent(&top));
    assert_ptr_equal(top, primary);
    OK(cuCtxGetCurrent(&top));
    assert_ptr_equal(top, a);
    OK(cuCtxDestroy(a)); /* was current: popped */
    OK(cuCtxGetCurrent(&top));
    assert_ptr_equal(top, primary);
    OK(cuCtxSetCurrent(a)); /* found out when it is used */
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    OK(cuCtxSetCurrent(primary));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(a));
    OK(cuCtxDestroy(b));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)(uintptr_t)0xdead0));
}

static void test_no_context(void **state)
{
    (void)state;
    CUdeviceptr memory;
    CUcontext top;
    OK(cuCtxSetCurrent(NULL));
    OK(cuCtxGetCurrent(&top));
    assert_null(top);
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 4));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&top));
}

static void test_primary(void **state)
{
    CUcontext first = *state, second;
    CUdeviceptr memory;
    unsigned flags = 0;
    int active = 0;
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    assert_ptr_equal(first, second);
    OK(cuMemAlloc(&memory, 16));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuMemsetD8(memory, 0, 16)); /* still retained once */
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemsetD8(memory, 0, 16));
    WANT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    assert_ptr_equal(first, second);
    OK(cuCtxGetFlags(&flags)); /* current again */
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(memory, 0, 16)); /* but its memory went with the old life */
    OK(cuDevicePrimaryCtxSetFlags(0, 0));
    WANT(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, 3));
    WANT(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&second, 1));
}

/* Everything that was made in a context dies with it. */
static void test_contents_die(void **state)
{
    (void)state;
    CUcontext context;
    CUdeviceptr memory;
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUfunction function;
    size_t before, after, total;
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuMemAlloc(&memory, (size_t)1 << 20));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    OK(cuModuleLoadData(&module, HEADER ".visible .entry e() { ret; }\n"));
    OK(cuModuleGetFunction(&function, module, "e"));
    OK(cuCtxDestroy(context));
    WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(memory, 0, 1));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamQuery(stream));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuEventQuery(event));
    WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuEventDestroy(event));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    WANT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemGetInfo(&after, &total));
    assert_int_equal(before, after);
}

/* A stack is a thread's own. */
static void *other_thread(void *argument)
{
    CUcontext top = argument;
    CUresult result = cuCtxGetCurrent(&top);
    CUdeviceptr memory;
    bool good = result == CUDA_SUCCESS && top == NULL && cuMemAlloc(&memory, 4) == CUDA_ERROR_INVALID_CONTEXT;
    good = good && cuCtxSetCurrent(argument) == CUDA_SUCCESS && cuMemAlloc(&memory, 4) == CUDA_SUCCESS;
    return good ? argument : NULL;
}

static void test_threads_have_stacks(void **state)
{
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, *state), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, *state);
}

static void test_limits(void **state)
{
    (void)state;
    size_t value = 0;
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 5000));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 5008);
    WANT(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 30));
    WANT(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    WANT(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, (CUlimit)99));
    WANT(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
}

/* Recursion gets the stack that was asked for; what needs more than that overflows. */
static void test_stack_limit(void **state)
{
    (void)state;
    static const char ptx[] =
        HEADER ".func (.param .b32 r) f(.param .b32 n)\n{\n.local .align 8 .b8 frame[1024];\n.reg .b32 x, "
               "y;\n.reg .pred p;\n"
               "ld.param.u32 x, [n];\nst.local.u32 [frame+512], x;\nmov.u32 y, 0;\nsetp.eq.u32 p, x, 0;\n@p "
               "bra END;\n"
               "{\n.param .b32 a, b;\nsub.u32 y, x, 1;\nst.param.b32 [a], y;\ncall (b), f, "
               "(a);\nld.param.b32 y, [b];\n}\n"
               "ld.local.u32 x, [frame+512];\nadd.u32 y, y, x;\nEND:\nst.param.b32 [r], y;\nret;\n}\n"
               ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n.reg .b64 to;\n.reg .b32 x;\n.param "
               ".b32 a, b;\n"
               "ld.param.u64 to, [out];\nld.param.u32 x, [n];\nst.param.b32 [a], x;\ncall (b), f, (a);\n"
               "ld.param.b32 x, [b];\nst.global.u32 [to], x;\nret;\n}\n";
    CUfunction function = load(ptx, "k");
    CUdeviceptr memory;
    uint32_t depth = 60, sum = 0;
    void *params[] = {&memory, &depth};
    OK(cuMemAlloc(&memory, 4));
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 80 << 10));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH(&sum, memory, 4));
    assert_int_equal(sum, 60 * 61 / 2);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

/* The child of a fork has no device: its calls say so, and end. */
static void test_fork(void **state)
{
    (void)state;
    CUdeviceptr memory;
    OK(cuMemAlloc(&memory, 4)); /* there is something to lose */
    pid_t child = fork();
    if (child == 0) {
        int count = 0;
        CUresult one = cuDeviceGetCount(&count), two = cuMemFree(memory);
        _exit(one == CUDA_ERROR_NOT_INITIALIZED && two == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(cuMemFree(memory)); /* the parent is not disturbed */
}

/* Runs before anything else in this process: children that use the library on their own. */
static void run_child(void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        body();
        exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static const char forever[] =
    HEADER ".visible .entry forever(.param .u64 p) { .reg .pred q; .reg .b64 a; .reg .b32 v;\n"
           "  ld.param.u64 a, [p];\n"
           "L: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra L; ret; }\n";

static void leaves_a_kernel_running(void)
{
    void *context;
    uint32_t *flag;
    with_context(&context);
    CUfunction function = load(forever, "forever");
    OK(cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    void *params[] = {&flag};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static void does_not_initialise(void)
{
    int count = 0;
    CUdeviceptr memory;
    const char *name = NULL;
    WANT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    WANT(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&memory, 4));
    OK(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &name)); /* these do not need it */
    OK(cuDriverGetVersion(&count));
    assert_int_equal(count, 13000);
}

static void chooses(const char *arch, int major, int minor)
{
    int value = 0, version = 0;
    char name[128] = "";
    setenv("CLUSTERLAB_EMU_ARCH", arch, 1);
    OK(cuInit(0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    assert_int_equal(value, major);
    OK(cuDeviceGetAttribute(&version, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    assert_int_equal(version, minor);
    OK(cuDeviceGetName(name, sizeof name, 0));
    assert_non_null(strstr(name, "emulated"));
}

static void chooses_100a(void)
{
    chooses("sm_100a", 10, 0);
}

static void chooses_121(void)
{
    chooses("sm_121", 12, 1);
}

static void chooses_nothing(void)
{
    setenv("CLUSTERLAB_EMU_ARCH", "sm_77", 1);
    WANT(CUDA_ERROR_NO_DEVICE, cuInit(0));
    setenv("CLUSTERLAB_EMU_ARCH", "sm_90", 1);
    setenv("CLUSTERLAB_EMU_SCHEDULE", "quick", 1);
    WANT(CUDA_ERROR_INVALID_VALUE, cuInit(0));
}

static void test_processes(void **state)
{
    (void)state;
    run_child(does_not_initialise);
    run_child(leaves_a_kernel_running);
    run_child(chooses_100a);
    run_child(chooses_121);
    run_child(chooses_nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes), /* first: before this process initialises */
        IN_CONTEXT(test_stack),
        IN_CONTEXT(test_no_context),
        IN_CONTEXT(test_primary),
        IN_CONTEXT(test_contents_die),
        IN_CONTEXT(test_threads_have_stacks),
        IN_CONTEXT(test_limits),
        IN_CONTEXT(test_fork),
        IN_CONTEXT(test_stack_limit), /* last: its fault stays with the primary context */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
