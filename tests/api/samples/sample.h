/* What the sample programs share. Each is an ordinary driver-API program that checks itself: it is linked to
   libcuda.so.1 and to nothing else of CUDA, so that one binary runs on a GPU's driver and on the stand-in. */
#ifndef CLAB_TESTS_SAMPLE_H
#define CLAB_TESTS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

/* A call that must return that code; a check of the program's own. Both go on after a failure, which is
 * printed and counted. */
#define WANT(code, call) sample_want(code, call, #call, __FILE__, __LINE__)
#define OK(call)         WANT(CUDA_SUCCESS, call)
#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition))                                                           \
            sample_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); \
    } while (0)
/* Two numbers that must be equal. */
#define SAME(wanted, got)                                                                             \
    do {                                                                                              \
        const long long wanted_ = (long long)(wanted), got_ = (long long)(got);                       \
        if (wanted_ != got_)                                                                          \
            sample_fail("%s:%d: %s: wanted %lld, got %lld", __FILE__, __LINE__, #got, wanted_, got_); \
    } while (0)

void sample_want(CUresult wanted, CUresult got, const char *call, const char *file, int line);
void sample_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cuInit and a primary context that is current. */
CUcontext sample_start(void);
/* A module's only kernel of that name; the JIT's log is printed if there is none. */
CUfunction sample_load(const char *ptx, const char *name);
/* A launch without dynamic shared memory. */
CUresult sample_launch(CUfunction function, unsigned grid, unsigned block, CUstream stream, void **params);
/* Runs it in a child of its own: what it fails counts here. Before cuInit in the calling process. */
void sample_child(void (*program)(void));

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* The programs (samples.def), one function each. */
#define SAMPLE(name) void sample_##name(void);
#include "samples.def"

#endif
