/* Notes: patterns in a kernel's code that are worth a word, with what they cost and where that was measured.
   The knowledge is in notes.def. */
#ifndef CLAB_INSPECT_NOTES_H
#define CLAB_INSPECT_NOTES_H

#include <jansson.h>

#include "inspect/listing.h"
#include "inspect/resources.h"

struct clab_note_info {
    const char *id;
    enum clab_level level;
    const char *title, *cost, *measured; /* measured "" when nobody measured it */
};
/* The index-th row of notes.def, or NULL past the end. */
const struct clab_note_info *clab_note_at(size_t index);

struct clab_note {
    const struct clab_note_info *info;
    const uint32_t *hits; /* instruction indices, in order; may be empty (a directive, a symbol) */
    uint32_t n_hits;
};
struct clab_notes {
    struct clab_arena arena;
    struct clab_note *notes; /* in the order of notes.def */
    size_t count;
};

/* The notes on a listing. NO_MEMORY. */
clab_status clab_notes_find(const struct clab_listing *listing, const struct clab_resources *resources,
                            struct clab_notes *out, struct clab_error *error);
void clab_notes_free(struct clab_notes *notes);
/* Array of {id, level, title, cost, measured|null, count, at: [{"address"|"line": n, "source":
 * "file:line"|null}]}. */
json_t *clab_notes_json(const struct clab_notes *notes, const struct clab_listing *listing);

#endif
