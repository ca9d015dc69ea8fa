/* "Profiler Control": there is no profiler to start or stop. */
#include "emu/api.h"

#pragma GCC visibility push(default)
#include <cudaProfiler.h>
#pragma GCC visibility pop

CUresult CUDAAPI cuProfilerStart(void)
{
    API_ENTER();
    return api_leave();
}

CUresult CUDAAPI cuProfilerStop(void)
{
    API_ENTER();
    return api_leave();
}

CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile,
                                      CUoutput_mode outputMode)
{
    API_ENTER();
    (void)configFile;
    (void)outputFile;
    (void)outputMode;
    return api_fail(CUDA_ERROR_NOT_SUPPORTED, "profiler configuration is not emulated");
}
