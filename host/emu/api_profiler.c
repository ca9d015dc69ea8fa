/* "Profiler Control": there is no profiler to start or stop. */
#include "emu/api.h"

/* As cudaProfiler.h of CUDA 13.0 declares them; the wheels that a machine without a toolkit builds with lack
 * that header. */
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;
#pragma GCC visibility push(default)
CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile,
                                      CUoutput_mode outputMode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
#pragma GCC visibility pop

CUresult CUDAAPI cuProfilerStart(void)
{
    API_ENTER_CONTEXT(context);
    (void)context;
    return api_leave();
}

CUresult CUDAAPI cuProfilerStop(void)
{
    API_ENTER_CONTEXT(context);
    (void)context;
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
