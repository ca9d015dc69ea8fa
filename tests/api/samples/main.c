/* Runs sample programs: samples [NAME]…, all of them if none is named, each in a process of its own. The exit
   status is the number of those that failed. */
#include "sample.h"

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

void sample_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    failures++;
}

void sample_want(CUresult wanted, CUresult got, const char *call, const char *file, int line)
{
    const char *wanted_name = "?", *got_name = "?";
    if (wanted == got)
        return;
    cuGetErrorName(wanted, &wanted_name);
    cuGetErrorName(got, &got_name);
    sample_fail("%s:%d: %s: wanted %s, got %s", file, line, call, wanted_name, got_name);
}

CUcontext sample_start(void)
{
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

CUfunction sample_load(const char *ptx, const char *name)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const CUresult result = cuModuleLoadDataEx(&module, ptx, 2, options, values);
    if (result != CUDA_SUCCESS)
        sample_fail("%s: %d: %s", name, (int)result, log);
    else
        OK(cuModuleGetFunction(&function, module, name));
    return function;
}

CUresult sample_launch(CUfunction function, unsigned grid, unsigned block, CUstream stream, void **params)
{
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, params, NULL);
}

void sample_child(void (*program)(void))
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        failures = 0;
        program();
        fflush(stdout);
        _exit(failures != 0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        sample_fail("a child ended with status %d", status);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } samples[] = {
#define SAMPLE(name) {#name, sample_##name},
#include "samples.def"
    };
    int failed = 0, ran = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            wanted = wanted || strcmp(argv[k], samples[i].name) == 0;
        if (!wanted)
            continue;
        const int before = failures;
        sample_child(samples[i].run);
        printf("%s: %s\n", samples[i].name, failures == before ? "ok" : "FAILED");
        failed += failures != before;
        ran++;
    }
    if (ran == 0)
        printf("no such program\n");
    return ran == 0 ? 2 : failed;
}
