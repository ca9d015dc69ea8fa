/* Linking of PTX modules: several texts become one, which is again PTX (PTX ISA 9.0, 11.6 "Linking
   Directives"). Each name is resolved as nvlink 13.0 resolves symbols of objects that ptxas made of the
   texts:

   - a name without a linking directive belongs to its own module; where another module has the same name, it
     is renamed (NAME$2, of the second module). Entries always belong to all;
   - a .visible definition counts, else the first .weak one, else the largest of the .common ones;
   - two .visible definitions, or two entries that are not .weak, of one name are an error;
   - .extern declarations stay: who parses the result says what none of the modules defines. */
#ifndef CLAB_PTX_LINK_H
#define CLAB_PTX_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A comment near the start of a linked text tells the parser that what one of its parts declares .extern
 * another may define. */
#define PTX_LINKED_MARK "// clusterlab: linked"

struct ptx_linker;

/* NULL when memory is out. Not thread-safe. */
struct ptx_linker *ptx_linker_new(void);
void ptx_linker_free(struct ptx_linker *linker);

/* Adds a module, which ptx_parse takes: text[bytes] must be NUL; `name` is its file's. Both are copied.
   CLAB_PTX_SYNTAX: no PTX module (file and line are given); CLAB_NO_MEMORY. After an error the linker can
   only be freed. */
clab_status ptx_linker_add(struct ptx_linker *linker, const char *text, size_t bytes, const char *name,
                           struct clab_error *error);

/* The first name that two modules define (CLAB_LOAD, with both), which ptx_linker_text will refuse; NULL:
 * none. */
const struct clab_error *ptx_linker_conflict(const struct ptx_linker *linker);

/* Does a module define or declare `name` for others? */
bool ptx_linker_mentions(const struct ptx_linker *linker, const char *name);

/* The linked text (*out_text: heap, to be freed). Its .version is the newest of the modules', its .target the
   one for the newest chip, of those of one chip one that has a suffix; `target` when no module was added.
   Entries get .maxnreg `max_registers` unless it is 0 or they have one. CLAB_LOAD: two modules define a name;
   CLAB_NO_MEMORY. */
clab_status ptx_linker_text(struct ptx_linker *linker, const char *target, unsigned max_registers,
                            char **out_text, struct clab_error *error);

/* Which module has a line (from 1) of the text that ptx_linker_text made last, and which of its lines that is
   (from 1). *out_name is the linker's. False for the lines before the first module. */
bool ptx_linker_place(const struct ptx_linker *linker, uint32_t line, const char **out_name,
                      uint32_t *out_line);

/* Where a module declares `name` .extern, the first one that does. Out as above; false: none does. */
bool ptx_linker_declared(const struct ptx_linker *linker, const char *name, const char **out_name,
                         uint32_t *out_line);

#endif
