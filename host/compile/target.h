/* GPU architectures: names, families, the rule of forward compatibility, and the least PTX version of each.
 */
#ifndef CLAB_COMPILE_TARGET_H
#define CLAB_COMPILE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* How far an image for a target may travel (PTX ISA 9.0, "PTX Module Directives: .target"). */
enum clab_target_reach {
    CLAB_REACH_FORWARD, /* sm_90: this chip and every later one */
    CLAB_REACH_FAMILY,  /* sm_100f: later chips of the same family only */
    CLAB_REACH_EXACT    /* sm_90a: this chip only */
};

struct clab_target {
    const char *name; /* "sm_90a" */
    int number;       /* 90 */
    int major, minor; /* compute capability: 9, 0 */
    int family; /* number of the family's first member: 100 for sm_100 and sm_103, 120 for sm_120 and sm_121
                 */
    enum clab_target_reach reach;
    int least_ptx;     /* least .version that names it: 78 is 7.8 */
    bool has_clusters; /* CC 9.0 and up */
};

/* Target by any spelling of its name: "sm_90a", "compute_90a", "90a", "lto_90a"; sm_101* are the former names
   of sm_110*. NULL when there is no such target. Static. */
const struct clab_target *clab_target_find(const char *text);
/* The same, with an error that names the nearest target and lists them all. CLAB_USAGE. */
clab_status clab_target_parse(const char *text, const struct clab_target **out_target,
                              struct clab_error *error);
/* The i-th target that clusters can run on (17 of them, sm_90 first), or NULL past the end: the architecture
 * matrix. */
const struct clab_target *clab_target_at(size_t index);
/* Plain target of a device of compute capability major.minor, or NULL when unknown. */
const struct clab_target *clab_target_of_device(int major, int minor);
/* The target with the greatest reach-limited feature set of that chip ("sm_90a" of sm_90), or the plain one.
 */
const struct clab_target *clab_target_exact(const struct clab_target *target);

/* Whether PTX with `.target image` may be compiled for `chip` (which may have a suffix, and never loses by
 * it). */
bool clab_target_ptx_runs(const struct clab_target *image, const struct clab_target *chip);
/* Whether a cubin made for `image` loads on a device: same major, no lesser minor; a: that chip; f: its
 * family. */
bool clab_target_cubin_runs(const struct clab_target *image, const struct clab_target *device);
/* CLAB_OK, or CLAB_PTX_TARGET (ptx) or CLAB_LOAD (cubin) with the rule that forbids it and what to compile
 * for. */
clab_status clab_target_check(const struct clab_target *image, bool is_ptx, const struct clab_target *chip,
                              struct clab_error *error);

#endif
