/* What the programs of this folder share: one checked call, a context for each test, PTX fragments. */
#ifndef CLAB_TESTS_API_TEST_H
#define CLAB_TESTS_API_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda.h>

/* A call that must return that code; the message shows both by name. */
#define WANT(code, call) want(code, call, #call, __FILE__, __LINE__)
#define OK(call)         WANT(CUDA_SUCCESS, call)

static inline void want(CUresult wanted, CUresult got, const char *call, const char *file, int line)
{
    const char *wanted_name = "?", *got_name = "?";
    if (wanted == got)
        return;
    cuGetErrorName(wanted, &wanted_name);
    cuGetErrorName(got, &got_name);
    print_error("%s:%d: %s: wanted %s, got %s\n", file, line, call, wanted_name, got_name);
    fail();
}

static inline int with_context(void **state)
{
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    *state = context;
    return 0;
}

static inline int without_context(void **state)
{
    (void)state;
    OK(cuCtxSetCurrent(NULL));
    OK(cuDevicePrimaryCtxReset(0));
    while (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS) /* whatever the test retained */
        continue;
    return 0;
}

#define HEADER           ".version 8.0\n.target sm_90\n.address_size 64\n"
#define IN_CONTEXT(test) cmocka_unit_test_setup_teardown(test, with_context, without_context)

/* Runs each test in a process of its own: after a fault a process gets no context any more. Nothing may have
   called cuInit. The exit status. */
#define RUN_ALONE(tests) run_alone(#tests, tests, sizeof(tests) / sizeof((tests)[0]))

static inline int run_alone(const char *group, const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        fflush(stdout);
        fflush(stderr);
        const pid_t child = fork();
        if (child == 0) {
            cmocka_set_test_filter(tests[i].name);
            exit(_cmocka_run_group_tests(group, tests, count, NULL, NULL) != 0);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "%s ended with status %d\n", tests[i].name, status);
            failed++;
        }
    }
    return failed;
}

static inline CUfunction load(const char *ptx, const char *name)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result = cuModuleLoadDataEx(&module, ptx, 2, options, values);
    if (result != CUDA_SUCCESS)
        print_error("%s\n", log);
    OK(result);
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

#endif
