/* A host program for with-emulator --check: a store in one stream and one in another.

   usage: program FIRST SECOND STATUS     streams 1 or 2 for the two launches; what it exits with. SECOND:
   `null` stores at the null address, `large` asks for 2048 threads */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                             ".visible .entry put(.param .u64 at) {\n"
                             ".reg .u64 a; .reg .u32 v;\n"
                             "ld.param.u64 a, [at]; mov.u32 v, %tid.x; st.global.u32 [a], v; ret;\n}\n";

#define OK(call)                                                   \
    do {                                                           \
        const CUresult result_ = (call);                           \
        if (result_ != CUDA_SUCCESS) {                             \
            fprintf(stderr, "%s gives %d\n", #call, (int)result_); \
            exit(99);                                              \
        }                                                          \
    } while (0)

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction put;
    CUstream streams[2];
    CUdeviceptr at;
    if (argc != 4) {
        return 98;
    }
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, source));
    OK(cuModuleGetFunction(&put, module, "put"));
    OK(cuMemAlloc(&at, 4));
    for (int i = 0; i < 2; i++) {
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    void *arguments[] = {&at};
    for (int i = 1; i <= 2; i++) {
        const bool null = strcmp(argv[i], "null") == 0, large = strcmp(argv[i], "large") == 0;
        at = null ? 0 : at;
        OK(cuLaunchKernel(put, 1, 1, 1, large ? 2048 : 1, 1, 1, 0,
                          streams[null || large ? 0 : atoi(argv[i]) - 1], arguments, NULL));
    }
    OK(cuCtxSynchronize());
    puts("ran");
    return atoi(argv[3]);
}
