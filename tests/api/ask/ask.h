/* What the sections of `ask` share: how a question is put and printed, and the objects that questions use.

   A question is one driver call: ASK(name, call) prints "section/name: result", ASKF adds outputs that every
   machine gives alike. The program is linked to libcuda.so.1 and to nothing else, so that one binary asks a
   GPU's driver and the stand-in (README.md says how). */
#ifndef CLAB_TESTS_ASK_H
#define CLAB_TESTS_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

/* Old calls are asked too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* Older forms, which cuda.h declares to the driver's own sources only. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count, unsigned flags,
                                CUdevice device);

/* Is the call to be made? Counts it; false for one that is known to crash (and says so). */
bool ask_begin(const char *name);
/* "section/name: result", without the end of the line. */
void ask_answer(int result);
/* Prints, unless the section is on its way to a call that comes after a crash. */
void ask_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A name out of parts; good until a few more were made. */
const char *ask_name(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same again, for the questions that follow: "section/prefix name". "" for none. */
void ask_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define ASKF(name, call, ...)                \
    do {                                     \
        const char *const name_ = (name);    \
        if (ask_begin(name_)) {              \
            const int result_ = (int)(call); \
            ask_answer(result_);             \
            ask_say(__VA_ARGS__);            \
            ask_say("\n");                   \
        }                                    \
    } while (0)
#define ASK(name, call) ASKF(name, call, "%s", "")

/* A preparation that has to succeed; if it does not, that is printed. */
#define MUST(call)                                                   \
    do {                                                             \
        const int result_ = (int)(call);                             \
        if (result_ != 0)                                            \
            ask_say("preparation failed: %s: %d\n", #call, result_); \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Objects of the section's process, made by ask_setup. */
extern struct ask_objects {
    CUcontext context; /* the primary one, current */
    CUmodule module;
    CUfunction plain, two_params, store, cluster, small, exact, spin;
    CUlibrary library;
    CUkernel kernel;
    CUstream stream, other, blocking;    /* the first two do not synchronise with the legacy stream */
    CUstream s;                          /* the stream that calls.def uses */
    CUevent event, second, untimed;      /* the first two were recorded and have completed */
    CUdeviceptr device, managed, pooled; /* DEVICE_BYTES each */
    void *pinned;                        /* likewise */
    CUmemoryPool pool;                   /* the device's default */
    CUarray array;                       /* 64 x 32 floats */
    CUmipmappedArray mipmap;
    CUgraph graph; /* a kernel, a set, a copy, a host function in a row */
    CUgraphNode kernel_node, set_node, copy_node, host_node;
    CUgraphExec exec;
    CUlinkState link;
    CUtexObject texture;
    CUuserObject object;
} o;
#define DEVICE_BYTES ((size_t)1 << 16)

/* Outputs that nobody looks at. */
extern struct ask_scratch {
    int i, j;
    unsigned u;
    size_t size, size2;
    float ms;
    unsigned long long id;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUlibrary library;
    CUkernel kernel;
    CUstream stream;
    CUevent event;
    CUdeviceptr pointer, pointer2;
    void *host;
    CUarray array;
    CUmipmappedArray mipmap;
    CUmemoryPool pool;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node, node2;
    CUlinkState link;
    CUtexObject texture;
    CUsurfObject surface;
    CUuserObject object;
    CUuuid uuid;
    CUmemGenericAllocationHandle handle;
    CUstreamCaptureStatus status;
    CUstreamCaptureMode mode;
    char text[256];
    _Alignas(128) CUtensorMap map;
    unsigned char bytes[4096];
} t;

extern const char ask_ptx[];
extern void *ask_params[]; /* of two_params, and of store: a null pointer */
void CUDA_CB ask_nothing(void *data);
void CUDA_CB ask_no_callback(CUstream stream, CUresult status, void *data);

/* cuInit and the primary context; false (and a line) if there is no device. */
bool ask_context(void);
/* The same and every object. */
bool ask_setup(void);
/* Nanoseconds of a host clock. */
uint64_t ask_now(void);

/* Runs it in a child of its own whose name is the prefix there; a crash or a wait of more than 6 s ends only
   that. Before cuInit in the calling process: CUDA does not survive a fork. */
void ask_child(const char *name, void (*run)(const void *argument), const void *argument);

/* The sections (sections.def), one function each. */
#define SECTION(name) void section_##name(void);
#include "sections.def"

#endif
