/* Inspections as JSON (schema: README.md of this room). */
#ifndef CLAB_INSPECT_JSON_H
#define CLAB_INSPECT_JSON_H

#include <jansson.h>

#include "inspect/inspect.h"

/* One kernel: file, entry, arch, compiler, resources, mix, fences, notes, blocks and instructions of `level`.
   New reference; NULL when memory is out. */
json_t *clab_subject_json(const struct clab_subject *subject, enum clab_level level);

/* `text` as a JSON string; bytes that are no UTF-8 (a file's name may have some) become '?'. New reference.
 */
json_t *clab_json_string(const char *text);

#endif
