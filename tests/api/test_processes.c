/* How a process that uses the driver comes and goes: it forks, executes another program, unloads the library,
   gets signals, cancels threads, and exits from anywhere with work in flight. Each scenario runs in a child
   of its own and loads the library itself, as programs that do not link to it do; none may crash, hang or
   disturb its parent. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>

#define SECONDS 60 /* after which a scenario hangs */

static void *library;
static CUcontext context;
static CUstream stream, other;
static CUfunction add, forever;
static CUdeviceptr memory;
static uint32_t *flag;

/* Plain names, as cuGetProcAddress knows them: the forms of CUDA 12.0. */
static struct {
    __typeof__(cuInit) *Init;
    __typeof__(cuDevicePrimaryCtxRetain) *DevicePrimaryCtxRetain;
    __typeof__(cuCtxSetCurrent) *CtxSetCurrent;
    __typeof__(cuCtxSynchronize) *CtxSynchronize;
    __typeof__(cuDevicePrimaryCtxReset) *DevicePrimaryCtxReset;
    __typeof__(cuModuleLoadData) *ModuleLoadData;
    __typeof__(cuModuleGetFunction) *ModuleGetFunction;
    __typeof__(cuMemAlloc) *MemAlloc;
    __typeof__(cuMemFree) *MemFree;
    __typeof__(cuMemHostAlloc) *MemHostAlloc;
    __typeof__(cuMemcpyDtoH) *MemcpyDtoH;
    __typeof__(cuMemsetD32Async) *MemsetD32Async;
    __typeof__(cuStreamCreate) *StreamCreate;
    __typeof__(cuStreamSynchronize) *StreamSynchronize;
    __typeof__(cuStreamBeginCapture) *StreamBeginCapture;
    __typeof__(cuLaunchKernel) *LaunchKernel;
    __typeof__(cuLaunchHostFunc) *LaunchHostFunc;
} cu;

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 p) { .reg .b64 a; ld.param.u64 a, [p]; red.global.add.u32 [a], 1; ret; "
    "}\n"
    ".visible .entry forever(.param .u64 p) { .reg .pred q; .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p];\n"
    "L: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra L; ret; }\n";

/* Ends the scenario where something went wrong. */
static void need(bool good, int line)
{
    if (good)
        return;
    fprintf(stderr, "test_processes.c:%d: not as it should be\n", line);
    _exit(1);
}
static void need_result(CUresult result, int line)
{
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "result %d\n", (int)result);
    need(result == CUDA_SUCCESS, line);
}
#define NEED(condition) need((condition), __LINE__)
#define OK(call)        need_result((call), __LINE__)

static void open_library(void)
{
    __typeof__(cuGetProcAddress) *get = NULL;
    library = dlopen(getenv("API_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    NEED(library != NULL);
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    NEED(get != NULL);
#define GET(name) OK(get("cu" #name, (void **)&cu.name, 12000, 0, NULL))
    GET(Init);
    GET(DevicePrimaryCtxRetain);
    GET(CtxSetCurrent);
    GET(CtxSynchronize);
    GET(DevicePrimaryCtxReset);
    GET(ModuleLoadData);
    GET(ModuleGetFunction);
    GET(MemAlloc);
    GET(MemFree);
    GET(MemHostAlloc);
    GET(MemcpyDtoH);
    GET(MemsetD32Async);
    GET(StreamCreate);
    GET(StreamSynchronize);
    GET(StreamBeginCapture);
    GET(LaunchKernel);
    GET(LaunchHostFunc);
#undef GET
}

static void open_context(void)
{
    CUmodule module = NULL;
    open_library();
    OK(cu.Init(0));
    OK(cu.DevicePrimaryCtxRetain(&context, 0));
    OK(cu.CtxSetCurrent(context));
    OK(cu.ModuleLoadData(&module, ptx));
    OK(cu.ModuleGetFunction(&add, module, "add"));
    OK(cu.ModuleGetFunction(&forever, module, "forever"));
    OK(cu.MemAlloc(&memory, 64));
    OK(cu.MemHostAlloc((void **)&flag, 64, 0));
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cu.MemsetD32Async(memory, 0, 1, stream));
    *flag = 0;
}

static void run_forever(void)
{
    void *params[] = {&flag};
    OK(cu.LaunchKernel(forever, 1, 1, 1, 1, 1, 1, 0, other, params, NULL));
}

/* `count` launches that add 32 each, and the sum. */
static void use(uint32_t count)
{
    void *params[] = {&memory};
    uint32_t sum = 0;
    OK(cu.MemsetD32Async(memory, 0, 1, stream));
    for (uint32_t i = 0; i < count; i++)
        OK(cu.LaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    OK(cu.StreamSynchronize(stream));
    OK(cu.MemcpyDtoH(&sum, memory, 4));
    NEED(sum == 32 * count);
}

static int status_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0)
        continue;
    return status;
}

/* ---- scenarios: end with exit(0), or as their row says ---- */

static void unloads(void)
{
    open_context();
    run_forever();
    dlclose(library);
    usleep(10000); /* its threads run on */
    *flag = 1;
    open_library(); /* the same, with its state */
    OK(cu.CtxSynchronize());
    use(3);
    dlclose(library);
}

static void unloads_unused(void)
{
    open_library();
    dlclose(library);
    open_context();
    use(3);
}

static void exits_with_a_kernel(void)
{
    open_context();
    run_forever();
}

static void exits_while_capturing(void)
{
    open_context();
    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.MemsetD32Async(memory, 0, 1, stream));
}

static void CUDA_CB leave(void *data)
{
    exit(*(int *)data);
}

static void exits_in_a_host_function(void)
{
    static int seven = 7;
    open_context();
    OK(cu.LaunchHostFunc(stream, leave, &seven));
    cu.StreamSynchronize(stream);
    pause();
}

static void *exits(void *argument)
{
    usleep(20000);
    exit((int)(intptr_t)argument);
}

static void exits_in_another_thread(void)
{
    pthread_t thread;
    open_context();
    run_forever();
    NEED(pthread_create(&thread, NULL, exits, (void *)(intptr_t)8) == 0);
    cu.StreamSynchronize(other); /* for ever */
}

static void tidies_up(void)
{
    if (cu.MemFree == NULL)
        return;
    cu.MemFree(memory); /* the library may be past its own end: any answer will do */
    *flag = 1;
    cu.CtxSynchronize();
    cu.DevicePrimaryCtxReset(0);
}

static void tidies_up_late(void)
{
    NEED(atexit(tidies_up) == 0); /* before the library is loaded: runs after its own handlers */
    open_context();
    run_forever();
}

static void tidies_up_early(void)
{
    open_context();
    NEED(atexit(tidies_up) == 0);
    run_forever();
}

static void *waits(void *unused)
{
    (void)unused;
    cu.CtxSetCurrent(context);
    cu.StreamSynchronize(other);
    return NULL;
}

static void main_thread_ends(void)
{
    pthread_t thread;
    open_context();
    run_forever();
    NEED(pthread_create(&thread, NULL, waits, NULL) == 0);
    NEED(pthread_create(&thread, NULL, exits, (void *)(intptr_t)9) == 0);
    pthread_exit(NULL);
}

static void cancels_a_waiter(void)
{
    pthread_t thread;
    open_context();
    run_forever();
    NEED(pthread_create(&thread, NULL, waits, NULL) == 0);
    usleep(20000);
    NEED(pthread_cancel(thread) == 0);
    use(3); /* the library is not locked by the one that goes */
    *flag = 1;
    NEED(pthread_join(thread, NULL) == 0);
    OK(cu.CtxSynchronize());
    use(3);
}

static atomic_int alarms;

static void on_alarm(int signal)
{
    (void)signal;
    atomic_fetch_add(&alarms, 1);
}

static void gets_signals(void)
{
    const struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    open_context();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300 || (atomic_load(&alarms) < 50 && i < 100000); i++)
        use(4);
    setitimer(ITIMER_REAL, &never, NULL);
    NEED(atomic_load(&alarms) >= 50);
}

static void terminated(void)
{
    open_context();
    run_forever();
    raise(SIGTERM);
    cu.StreamSynchronize(other);
}

static void executes_others(void)
{
    char *const arguments[] = {"true", NULL};
    char *const nothing[] = {NULL};
    pid_t child = -1;
    open_context();
    run_forever();
    for (int i = 0; i < 5; i++) {
        NEED(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, nothing) == 0 && status_of(child) == 0);
        NEED(system("exit 3") >> 8 == 3);
        child = fork(); /* and exec, after other calls in the child */
        if (child == 0) {
            (void)cu.CtxSynchronize();
            execve("/bin/true", arguments, nothing);
            _exit(1);
        }
        NEED(status_of(child) == 0);
        use(2);
    }
    *flag = 1;
    OK(cu.CtxSynchronize());
}

static atomic_bool stop;

static void *works(void *unused)
{
    (void)unused;
    CUdeviceptr own = 0;
    cu.CtxSetCurrent(context);
    while (!atomic_load(&stop))
        if (cu.MemAlloc(&own, 4096) == CUDA_SUCCESS)
            cu.MemFree(own);
    return NULL;
}

static void forks_under_threads(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    open_context();
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, works, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();
        if (child == 0) {
            CUdeviceptr none = 0;
            alarm(20);
            _exit(cu.MemAlloc(&none, 16) == CUDA_ERROR_NOT_INITIALIZED &&
                          cu.CtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED
                      ? 0
                      : 1);
        }
        NEED(status_of(child) == 0);
        use(2);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
}

static void forks_before(void)
{
    open_library();
    const pid_t child = fork(); /* both initialise */
    open_context();
    use(5);
    if (child == 0)
        exit(0);
    NEED(status_of(child) == 0);
}

static void child_exits_normally(void)
{
    open_context();
    run_forever();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        exit(5); /* with the handlers of the parent's library */
    NEED(status_of(child) >> 8 == 5);
    *flag = 1;
    OK(cu.CtxSynchronize());
}

static void *leaves_its_stream(void *unused)
{
    (void)unused;
    cu.CtxSetCurrent(context);
    void *params[] = {&memory};
    cu.LaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL);
    return NULL; /* with work in its default stream */
}

static void threads_come_and_go(void)
{
    uint32_t sum = 0;
    open_context();
    OK(cu.StreamSynchronize(stream));
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        NEED(pthread_create(&thread, NULL, leaves_its_stream, NULL) == 0);
        NEED(pthread_join(thread, NULL) == 0);
    }
    OK(cu.CtxSynchronize());
    OK(cu.MemcpyDtoH(&sum, memory, 4));
    NEED(sum == 3200);
}

static void *in_little_stack(void *unused)
{
    (void)unused;
    cu.CtxSetCurrent(context);
    use(2);
    return NULL;
}

static void has_little_stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    open_context();
    pthread_attr_init(&attributes);
    NEED(pthread_attr_setstacksize(&attributes, 128 << 10) == 0);
    NEED(pthread_create(&thread, &attributes, in_little_stack, NULL) == 0);
    NEED(pthread_join(thread, NULL) == 0);
}

/* ---- */

static const struct scenario {
    const char *name;
    void (*run)(void);
    int status; /* as waitpid gives it */
} scenarios[] = {
    {"unloads", unloads, 0},
    {"unloads unused", unloads_unused, 0},
    {"exits with a kernel", exits_with_a_kernel, 0},
    {"exits while capturing", exits_while_capturing, 0},
    {"exits in a host function", exits_in_a_host_function, 7 << 8},
    {"exits in another thread", exits_in_another_thread, 8 << 8},
    {"tidies up late", tidies_up_late, 0},
    {"tidies up early", tidies_up_early, 0},
    {"main thread ends", main_thread_ends, 9 << 8},
    {"cancels a waiter", cancels_a_waiter, 0},
    {"gets signals", gets_signals, 0},
    {"terminated", terminated, SIGTERM},
    {"executes others", executes_others, 0},
    {"forks under threads", forks_under_threads, 0},
    {"forks before", forks_before, 0},
    {"child exits normally", child_exits_normally, 0},
    {"threads come and go", threads_come_and_go, 0},
    {"has little stack", has_little_stack, 0},
};

static void test_scenarios(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            scenarios[i].run();
            exit(0);
        }
        const int status = status_of(child);
        if (status != scenarios[i].status) {
            print_error("%s: status 0x%x, wanted 0x%x\n", scenarios[i].name, (unsigned)status,
                        (unsigned)scenarios[i].status);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scenarios)};
    if (getenv("API_LIBCUDA") == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
