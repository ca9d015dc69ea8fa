/* Files that hold several images: fatbins, and host objects and programs with fatbins inside. */
#ifndef CLAB_INSPECT_CONTAINER_H
#define CLAB_INSPECT_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "compile/image.h"
#include "compile/target.h"

/* Whether the bytes are a fatbin, or an ELF file of a host. */
bool clab_container_is(const void *data, size_t bytes);
/* Every PTX and cubin in a container, unpacked, in its order: a heap array that clab_container_free frees.
   `name` is for messages. LOAD (damaged, or nothing of CUDA in it), NO_MEMORY. */
clab_status clab_container_read(const char *name, const void *data, size_t bytes,
                                struct clab_image **out_images, size_t *out_count, struct clab_error *error);
void clab_container_free(struct clab_image *images, size_t count);
/* Of a container's images of one kind, the best one: with the entry (NULL: with any), and for `chip` exactly,
   else the nearest below it that runs there; without a chip the newest. Borrowed; NULL when none fits. */
struct clab_image *clab_container_best(struct clab_image *images, size_t count, enum clab_image_kind kind,
                                       const char *entry, const struct clab_target *chip);
/* NOT_FOUND: none of them has the entry for the architecture (each may be NULL); the message lists what there
 * is. */
clab_status clab_container_refuse(const char *file, const struct clab_image *images, size_t count,
                                  const char *entry, const char *arch, struct clab_error *error);

#endif
