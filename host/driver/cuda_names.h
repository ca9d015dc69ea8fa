/* cuda.h with every name spelt as its ELF symbol.

   Plain cuda.h renames by macro: cuCtxCreate means cuCtxCreate_v4, so a table built from names would fetch
   one function and call it with another's prototype. Under __CUDA_API_VERSION_INTERNAL the header removes
   those macros and declares every form, old and per-thread ones too. Include this file, never <cuda.h>, and
   before any header that includes <cuda.h>. */
#ifndef CLAB_DRIVER_CUDA_NAMES_H
#define CLAB_DRIVER_CUDA_NAMES_H

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include driver/cuda_names.h before any header that includes cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#if CUDA_VERSION < 13000
#error "cuda.h is older than CUDA 13.0: run tools/setup, or set CUDA_HOME to a newer toolkit"
#endif
#ifdef cuMemAlloc
#error \
    "cuda.h renamed cuMemAlloc in spite of __CUDA_API_VERSION_INTERNAL: the loader would fetch wrong functions"
#endif

#endif
