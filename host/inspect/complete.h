/* What a cubin leaves open: symbols that somebody else has to supply. */
#ifndef CLAB_INSPECT_COMPLETE_H
#define CLAB_INSPECT_COMPLETE_H

#include "base/str.h"
#include "compile/image.h"

enum clab_complete {
    CLAB_COMPLETE,        /* nothing but what every driver has: vprintf, malloc, free, __assertfail */
    CLAB_COMPLETE_DRIVER, /* also driver calls in place of native instructions (__cuda_syscall_…, CC 12.x) */
    CLAB_INCOMPLETE       /* something that nobody has: it will not load */
};

/* Reads the cubin's symbol table. `out_names` (initialised by the caller, who frees it) gets the names behind
   the answer, sorted, separated by ", ". A cubin without a symbol table (stripped) is taken as complete.
   Names of driver calls: decoded from ptxas 13.0's output for sm_120. */
enum clab_complete clab_cubin_complete(const struct clab_image *cubin, struct clab_str *out_names);

#endif
