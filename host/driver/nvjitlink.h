/* nvJitLink, PTX to cubin with no GPU, as one struct of function pointers. */
#ifndef CLAB_DRIVER_NVJITLINK_H
#define CLAB_DRIVER_NVJITLINK_H

#include <stdint.h>
#include <stdlib.h>

#include <nvJitLink.h>

#include "base/error.h"

struct clab_nvjitlink {
    char path[4096];
    int version; /* as CUDA counts; 0 when the library cannot say */
#define FN(member, symbol, since, required) __typeof__(symbol) *member;
#include "driver/nvjitlink.def"
};

/* Loads nvJitLink into *out. path: the library's file, or NULL for the names that the system's loader knows.
   The library stays loaded. CLAB_NO_TOOLKIT, with the reason, when it is not there or lacks a required
   symbol. */
clab_status clab_nvjitlink_load(const char *path, struct clab_nvjitlink *out, struct clab_error *error);

#endif
