/* NVRTC, CUDA C++ to PTX and cubin, as one struct of function pointers. It is neither crash-proof nor
   parallel in threads (two 1.2 s compiles took 2.9 s in two threads and 1.75 s in two processes): call it
   from a worker. */
#ifndef CLAB_DRIVER_NVRTC_H
#define CLAB_DRIVER_NVRTC_H

#include <nvrtc.h>

#include "base/error.h"

struct clab_nvrtc {
    char path[4096];
    int version; /* as CUDA counts: 13000 is 13.0 */
#define FN(member, symbol, since, required) __typeof__(symbol) *member;
#include "driver/nvrtc.def"
};

/* Loads NVRTC into *out. path: the library's file, or NULL for the names that the system's loader knows. The
   library stays loaded. CLAB_NO_TOOLKIT, with the reason, when it is not there or lacks a required symbol. */
clab_status clab_nvrtc_load(const char *path, struct clab_nvrtc *out, struct clab_error *error);

#endif
