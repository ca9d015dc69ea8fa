/* Where the CUDA parts are: NVRTC, nvJitLink, headers, disassemblers. Finding is a handful of stat calls; no
   library is loaded by it. */
#ifndef CLAB_COMPILE_TOOLKIT_H
#define CLAB_COMPILE_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum clab_part_id {
    CLAB_PART_NVRTC,        /* libnvrtc.so.* : CUDA C++ to PTX and cubin */
    CLAB_PART_NVJITLINK,    /* libnvJitLink.so.* : PTX to cubin with no GPU */
    CLAB_PART_CUDA_INCLUDE, /* folder with cuda.h and cooperative_groups.h */
    CLAB_PART_CCCL_INCLUDE, /* folder with cuda/std/ (include/cccl in 13.x; may be the same as above) */
    CLAB_PART_NVDISASM,     /* program */
    CLAB_PART_CUOBJDUMP,    /* program */
    CLAB_PART_PTXAS,        /* program; used by tests only */
    CLAB_PART_COUNT
};

struct clab_part {
    const char *name;   /* "NVRTC" */
    const char *use;    /* what it is for, for `doctor` */
    const char *remedy; /* how to get it */
    bool found;
    char path[4096]; /* library, program or folder */
    char origin[64]; /* "$CUDA_HOME", "$CUDA_PATH", ".toolkit", "/usr/local/cuda", "system", "PATH" */
};

struct clab_toolkit {
    struct clab_part parts[CLAB_PART_COUNT];
};

/* With $CLUSTERLAB_TOOLKIT set: looks in that folder and nowhere else. Otherwise in $CUDA_HOME, $CUDA_PATH,
   .toolkit (of the source tree that the program was built in, of the installed tree, of the current folder),
   /usr/local/cuda, /usr/local/cuda-*, the distribution's folders, and, for libraries, the names that the
   system's loader knows, for programs $PATH. Each part is taken from the first place that has it. */
void clab_toolkit_find(struct clab_toolkit *out);

/* Version of a found part as text ("13.0", "13.0.88"), "" when it cannot be told. Loads the library or runs
   the program (under a two-second clock), so it is for `doctor` and records, not for every run. An error: the
   library is there and cannot be loaded (damaged, for another processor). */
clab_status clab_toolkit_version(const struct clab_toolkit *toolkit, enum clab_part_id id, char *text,
                                 size_t bytes, struct clab_error *error);

/* A line that changes whenever the part does: path, size and modification time. For cache keys. "" if not
 * found. */
void clab_toolkit_identity(const struct clab_toolkit *toolkit, enum clab_part_id id, char *text,
                           size_t bytes);

#endif
