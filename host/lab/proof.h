/* must_contain: an experiment's claim that its kernel uses an instruction, held against the image. */
#ifndef CLAB_LAB_PROOF_H
#define CLAB_LAB_PROOF_H

#include <jansson.h>

#include "base/error.h"
#include "compile/image.h"

/* Every name in `instructions` (array of strings, e.g. "barrier.cluster", "mapa"; may be NULL) must begin an
   instruction of the image's PTX (of the PTX that a cubin was made from, where it is known). CLAB_COMPILE
   with the missing names. Comments, strings and other functions' names do not count; a cubin without PTX is
   not judged here. */
clab_status clab_proof_check(const struct clab_image *image, const json_t *instructions,
                             struct clab_error *error);

#endif
