/* SASS: the text that NVIDIA's disassemblers make of a cubin. */
#ifndef CLAB_COMPILE_SASS_H
#define CLAB_COMPILE_SASS_H

#include "base/error.h"
#include "compile/image.h"
#include "compile/toolkit.h"

/* Disassembles a cubin with nvdisasm (code sections only, control flow labels kept) or, where only that is
   found, with cuobjdump -sass. *out_text is heap memory that the caller frees. USAGE (image is not a cubin),
   NO_TOOLKIT (neither program is there, with how to get one), COMPILE (the program refused the file: its
   words are the log), WORKER (it could not be started, or gave no answer within a minute), OUTPUT (no
   temporary file). */
clab_status clab_sass(const struct clab_toolkit *toolkit, const struct clab_image *image, char **out_text,
                      struct clab_error *error);
/* The same with source lines, inlined calls and lines of the PTX between the instructions where the cubin has
   them (nvdisasm -g -gi -gp; cuobjdump shows none), kept in `cache_dir` ("" or NULL: nowhere) by the cubin's
   content and the program's identity. */
clab_status clab_sass_lines(const struct clab_toolkit *toolkit, const char *cache_dir,
                            const struct clab_image *image, char **out_text, struct clab_error *error);

#endif
