/* What a glob cannot say of a kernel's code: the FACT rows of notes.def. Private to this room. */
#ifndef CLAB_INSPECT_FACTS_H
#define CLAB_INSPECT_FACTS_H

#include "inspect/notes.h"

/* Instructions that a fact rests on, in order. */
struct clab_hits {
    struct clab_arena *arena;
    uint32_t *insns;
    size_t count, capacity;
    bool failed;
};
void clab_hit(struct clab_hits *hits, uint32_t insn);

/* Whether the fact holds; what it rests on goes to `hits` (nothing for a directive or a symbol). */
typedef bool clab_fact(const struct clab_listing *listing, const struct clab_resources *resources,
                       struct clab_hits *hits);
/* By the name in notes.def; NULL when there is none. */
clab_fact *clab_fact_get(const char *name);

#endif
