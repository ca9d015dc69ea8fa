/* Lines of source files, read once. */
#ifndef CLAB_INSPECT_SOURCE_H
#define CLAB_INSPECT_SOURCE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"

/* Zero-initialise. */
struct clab_sources {
    struct clab_arena arena;
    struct clab_map files;
};
/* Text of a line (1 for the first), without blanks at its ends; "" when the file or the line is not there.
   Owned by `sources`. */
const char *clab_source_line(struct clab_sources *sources, const char *file, uint32_t line);
/* Takes `text` for the file `name`, which need not exist. */
void clab_source_add(struct clab_sources *sources, const char *name, const char *text, size_t bytes);
void clab_sources_free(struct clab_sources *sources);

#endif
