/* must_contain: an experiment's claim that its kernel uses an instruction, held against the image. */
#ifndef CLAB_LAB_PROOF_H
#define CLAB_LAB_PROOF_H

#include <jansson.h>

#include "base/error.h"
#include "compile/image.h"
#include "compile/toolkit.h"

/* Every name in `instructions` (array of strings, e.g. "barrier.cluster", "mapa"; may be NULL) must begin an
   instruction of the image's PTX (of the PTX that a cubin was made from, where it is known), and what it
   becomes must be in a cubin's SASS (host/inspect/lowered.def) where there is a disassembler. CLAB_COMPILE
   with the missing names. Comments, strings and other functions' names do not count. `toolkit` NULL: no
   disassembler; `cache_dir`: where disassemblies are kept, NULL nowhere. *out_proof (may be NULL as a
   pointer): {"ptx": true|false|null, "sass": true|false|null}, null what could not be looked at (no PTX; no
   cubin, no disassembler, no name that lowered.def knows); a new reference, NULL without instructions. */
clab_status clab_proof_check(const struct clab_image *image, const json_t *instructions,
                             const struct clab_toolkit *toolkit, const char *cache_dir, json_t **out_proof,
                             struct clab_error *error);

#endif
