/* The CUDA driver, real or stand-in, as one struct of function pointers. Nothing links to libcuda. */
#ifndef CLAB_DRIVER_DRIVER_H
#define CLAB_DRIVER_DRIVER_H

#include <stddef.h>

#include "base/error.h"
#include "driver/channel.h"
#include "driver/cuda_names.h"

/* Least driver that can drive clusters the way the host does (cuda.def's required rows need 11.8; cluster
   launches are only specified from 12.0 on). */
#define CLAB_DRIVER_LEAST_VERSION 12000

/* Members are spelt as the symbols; those that cuda.def marks as optional may be NULL. */
struct clab_driver {
    char path[4096];                    /* file that the functions come from */
    int version;                        /* as cuDriverGetVersion gives it (13000 is 13.0) */
    const struct clab_channel *channel; /* NULL for a real driver */
#define CU(symbol, base, since, required) __typeof__(symbol) *symbol;
#include "driver/cuda.def"
};

/* Loads libcuda and fills *out_driver, which lives as long as the process and is the same for every call.
   path: NULL for the system's libcuda.so.1, else an absolute path. A process holds one libcuda: a second call
   with another path is refused (CLAB_INTERNAL), with both named. CLAB_NO_DEVICE when there is no libcuda,
   when it lacks a required symbol (named, with the library's path and version) or is older than
   CLAB_DRIVER_LEAST_VERSION. Initialises nothing: cuInit is the caller's. */
clab_status clab_driver_load(const char *path, const struct clab_driver **out_driver,
                             struct clab_error *error);

/* Path of the stand-in driver: $CLUSTERLAB_EMU_LIBRARY if set; else, seen from the folder of the running
   program,
   ../emu/libcuda.so.1 (build tree), ../lib/clusterlab/emu/libcuda.so.1 or its lib64 twin (installed).
   CLAB_NO_DEVICE, naming what was tried, when there is none. `bytes` is the room in `path`. */
clab_status clab_driver_emulator_path(char *path, size_t bytes, struct clab_error *error);

/* CUDA version that introduced a symbol of cuda.def, e.g. 12050; 0 for a name that is not in it. */
int clab_driver_symbol_since(const char *symbol);

#endif
