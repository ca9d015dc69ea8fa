/* One compile for all targets of a chip: sm_100, sm_100f and sm_100a differ in a few macros only, so CUDA C++
   that looks at none of them is the same PTX for all three but for its .target. Private to this room. */
#ifndef CLAB_COMPILE_SHARE_H
#define CLAB_COMPILE_SHARE_H

#include <stdbool.h>

#include "compile/compile.h"
#include "compile/target.h"

/* Whether it is worth a try: asked for (per_chip), CUDA C++ for a cubin, no option that reaches further than
   the front end, and the source's own text speaks of no suffix. source_text must be set. */
bool clab_share_possible(const struct clab_compile_request *request);
/* Whether the user's files (those in the list of clab_scan_includes too) may name a floating-point type of
   8 bits or less. False only where none is named. */
bool clab_share_names_small_floats(const struct clab_compile_request *request, const char *included);
/* Whether what NVRTC read, compiling for the plain target of a chip, is the same for its other targets: the
   source's text, and every file that its front end says it opened (`trace`: a name a line, indented by
   depth). False too where a file cannot be read again. `ptx` is what came of it. */
bool clab_share_proved(const struct clab_toolkit *toolkit, const char *source_text, const char *trace,
                       const char *ptx);
/* A copy of the PTX with another target in its .target directive; heap, NULL where it has none or memory is
   out. */
char *clab_share_retarget(const char *ptx, const struct clab_target *target);
/* The kernel of the image that a name of the source means: a symbol, or the one C++ function of that name,
   outside of namespaces and templates. Sets image->lowered and image->entry. False where it is not clear. */
bool clab_share_choose_entry(struct clab_image *image, const char *entry);

/* --- for tests: what one text says */
enum clab_share_verdict {
    CLAB_SHARE_SAME,  /* the same for every target of a chip */
    CLAB_SHARE_GATED, /* so long as no function is called that the plain target does not offer */
    CLAB_SHARE_LOOKS  /* it looks at the target's suffix */
};
enum clab_share_owner {
    CLAB_SHARE_USER,    /* anybody's */
    CLAB_SHARE_CUDA,    /* of the toolkit's folders */
    CLAB_SHARE_WRAPPERS /* of cuda/__ptx/instructions there */
};
enum clab_share_verdict clab_share_look(const char *text, enum clab_share_owner owner);

#endif
