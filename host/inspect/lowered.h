/* Whether SASS holds what a PTX instruction becomes. */
#ifndef CLAB_INSPECT_LOWERED_H
#define CLAB_INSPECT_LOWERED_H

#include "inspect/listing.h"

enum clab_found { CLAB_FOUND, CLAB_NOT_THERE, CLAB_NOT_JUDGED };
/* `name` as the beginning of a PTX instruction, "barrier.cluster". NOT_JUDGED when lowered.def has no row for
   it, and when it is absent from a kernel that calls code outside its own section. *out_patterns: what was
   looked for, static; NULL when nothing. */
enum clab_found clab_lowered_find(const struct clab_listing *sass, const char *name,
                                  const char **out_patterns);

#endif
