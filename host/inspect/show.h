/* Inspections and differences as text for a person. Colours are escape sequences of a terminal, or none. */
#ifndef CLAB_INSPECT_SHOW_H
#define CLAB_INSPECT_SHOW_H

#include "base/str.h"
#include "inspect/inspect.h"
#include "inspect/mix.h"
#include "inspect/source.h"

enum clab_colour {
    CLAB_PLAIN,
    CLAB_DIM,
    CLAB_BOLD,
    CLAB_RED,
    CLAB_GREEN,
    CLAB_YELLOW,
    CLAB_BLUE,
    CLAB_MAGENTA,
    CLAB_CYAN
};
struct clab_show {
    struct clab_str *out; /* check out->failed at the end */
    bool colour;
    int width; /* columns of the terminal; 0: as wide as needed */
    struct clab_sources *sources;
};
/* Appends `text` in a colour, padded with blanks to `width` columns (0: not); cut with "…" when longer and
 * `cut`. */
void clab_paint(struct clab_show *show, enum clab_colour colour, const char *text, int width, bool cut);
/* The colour of a group's instructions. */
enum clab_colour clab_group_colour(enum clab_group group);
/* A heading line. */
void clab_show_heading(struct clab_show *show, const char *text);

/* What the PTX of a subject is called among the sources (clab_source_add). */
#define CLAB_PTX_SOURCE "ptx"
/* Resources, mix of both levels, fences, the listing of `level` with source lines beside it, notes. */
clab_status clab_show_inspection(struct clab_show *show, const struct clab_subject *subject,
                                 enum clab_level level, const char *occupancy, struct clab_error *error);
/* The notes of one level; `subject`'s, each with where it fires. */
void clab_show_note(struct clab_show *show, const struct clab_note *note, const struct clab_listing *listing,
                    const char *prefix);
/* "cg.cu:24" into text[0..bytes), "" when unknown. */
void clab_place_text(const struct clab_place *place, char *text, size_t bytes);

#endif
