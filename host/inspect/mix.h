/* The instruction mix: how many static instructions of each group, and of each kind within it. */
#ifndef CLAB_INSPECT_MIX_H
#define CLAB_INSPECT_MIX_H

#include <jansson.h>

#include "inspect/listing.h"

struct clab_mix_row {
    enum clab_group group;
    const char *what;  /* "" the group's total; borrowed from the listings */
    uint32_t count[2]; /* by side (a difference) or by level (an inspection) */
    bool present[2];   /* false: there is no listing for that column */
};
struct clab_mix {
    struct clab_arena arena;
    struct clab_mix_row *rows; /* in the order of groups.def; a group's total before its kinds */
    size_t n_rows;
};

/* Counts two listings beside each other; either may be NULL. Kinds that the two sides spell differently are
   apart. NO_MEMORY. The listings must outlive the mix. */
clab_status clab_mix_count(const struct clab_listing *first, const struct clab_listing *second,
                           struct clab_mix *out, struct clab_error *error);
void clab_mix_free(struct clab_mix *mix);
/* {"group": {"total": n, "kinds": {"what": n}}} of one column. Owned by the caller. */
json_t *clab_mix_json(const struct clab_mix *mix, unsigned column);

#endif
