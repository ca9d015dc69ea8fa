/* The compile service: CUDA C++ or PTX to PTX or cubin, cached by content, in worker processes.

   The parent keeps one struct clab_compiler. NVRTC and nvJitLink are only ever called in workers: this same
   program started as `PROGRAM --compile-worker`, whose main() hands over to clab_compile_worker. A worker
   that dies or hangs costs one request. */
#ifndef CLAB_COMPILE_COMPILE_H
#define CLAB_COMPILE_COMPILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "compile/image.h"
#include "compile/toolkit.h"

/* What to compile. Plain data; strings are borrowed for the call. Zero means default. */
struct clab_compile_request {
    const char *source_path;   /* .cu, .ptx, .cubin or .fatbin; also the name in messages and line info */
    const char *source_text;   /* NULL: read source_path */
    const char *arch;          /* any spelling of a target, e.g. "sm_90a" */
    enum clab_image_kind want; /* CLAB_IMAGE_PTX or CLAB_IMAGE_CUBIN */
    const char *entry;         /* extern "C" name or C++ name expression; NULL: do not resolve one */
    const char *const
        *include_dirs; /* searched before the CUDA folders; the source's own folder is always first */
    size_t include_dir_count;
    const char *const *defines; /* "NAME" or "NAME=value" */
    size_t define_count;
    const char *const *options; /* passed to NVRTC (nvJitLink, for PTX to cubin) as they are */
    size_t option_count;
    bool line_info;    /* -lineinfo: .loc in PTX, line tables in cubins; the code is the same */
    bool no_pch;       /* do not try precompiled headers */
    bool per_chip;     /* CUDA C++ for a cubin, one of several targets in a row: where nothing that the source
                          reads looks at the target's suffix, it is compiled once for the chip (sm_100) and
                          assembled for each target (sm_100, sm_100f, sm_100a) by nvJitLink (share.h). Registers
                          are then those of a link, more than NVRTC's where a kernel calls functions */
    bool adopt_suffix; /* for a device rather than a row of a matrix: PTX for sm_90a, asked for sm_90, becomes
                          sm_90a */
};

struct clab_compile_result {
    clab_status status; /* CLAB_OK: `image` is filled; else `error` is */
    struct clab_image image;
    struct clab_error error;
};

struct clab_compiler_options {
    const char *program; /* worker program; NULL: the running one */
    const char
        *cache_dir; /* NULL: $CLUSTERLAB_CACHE, $XDG_CACHE_HOME/clusterlab, ~/.cache/clusterlab; "": none */
    unsigned int workers;    /* at most this many at once; 0: one per core */
    unsigned int timeout_ms; /* per request; 0: 120,000 */
    const volatile sig_atomic_t
        *interrupted; /* once not 0, what is unfinished ends as INTERRUPTED; NULL: never */
};

struct clab_compiler;

/* Finds the toolkit; starts no worker yet. NULL only when memory is out. Owned by the caller. */
struct clab_compiler *clab_compiler_new(const struct clab_compiler_options *options);
/* Ends the workers and removes their temporary files. */
void clab_compiler_free(struct clab_compiler *compiler);
const struct clab_toolkit *clab_compiler_toolkit(const struct clab_compiler *compiler);
/* The cache's folder ("" none) and, when it could not be used, why ("" fine). Borrowed. */
const char *clab_compiler_cache_dir(const struct clab_compiler *compiler);
const char *clab_compiler_cache_note(const struct clab_compiler *compiler);
/* Requests that a worker really compiled so far: 0 after a run that the cache answered. */
size_t clab_compiler_compiled(const struct clab_compiler *compiler);

/* Compiles `count` requests, in parallel over the workers, requests of one architecture on one worker as far
   as that keeps all busy (precompiled headers live in one process). results[i] answers requests[i]; the
   caller frees each with clab_compile_result_free. `progress` (may be NULL) is told how many are done after
   each. Statuses: COMPILE (file, line and column of the first error, log), NO_TOOLKIT, NOT_FOUND, PTX_TARGET,
   LOAD, WORKER, TIMEOUT, USAGE, INTERRUPTED. */
void clab_compile_all(struct clab_compiler *compiler, const struct clab_compile_request *requests,
                      size_t count, struct clab_compile_result *results,
                      void (*progress)(void *context, size_t done, size_t count), void *context);
/* One request. */
clab_status clab_compile(struct clab_compiler *compiler, const struct clab_compile_request *request,
                         struct clab_image *out, struct clab_error *error);
void clab_compile_result_free(struct clab_compile_result *result);

/* The worker: answers requests on in_fd until its end. Returns the process's exit status. */
int clab_compile_worker(int in_fd, int out_fd);

/* The compilers themselves, in this process, without cache: what the worker calls. A crash in NVRTC takes the
   caller along. */
clab_status clab_nvrtc_compile(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                               struct clab_image *out, struct clab_error *error);
/* The same with precompiled headers (pch.h). */
struct clab_pch_plan;
struct clab_pch_store;
clab_status clab_nvrtc_compile_pch(const struct clab_toolkit *toolkit,
                                   const struct clab_compile_request *request,
                                   const struct clab_pch_plan *plan, struct clab_pch_store *store,
                                   struct clab_image *out, struct clab_error *error);
/* PTX of a request with per_chip for the plain target of its chip, with `lowered` and `entry` if an entry was
   asked for. False where it cannot be had, or not be shared by the chip's targets. Standard error is another
   one meanwhile: for processes with one thread. */
bool clab_nvrtc_compile_for_chip(const struct clab_toolkit *toolkit,
                                 const struct clab_compile_request *request, struct clab_image *out);
clab_status clab_link_ptx(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                          const char *ptx, size_t ptx_bytes, struct clab_image *out,
                          struct clab_error *error);

#endif
