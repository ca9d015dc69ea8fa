/* Kernel arguments of a plan as the bytes that a launch takes. */
#ifndef CLAB_LAB_ARGUMENTS_H
#define CLAB_LAB_ARGUMENTS_H

#include <jansson.h>

#include "lab/launch.h"

/* Fills launch->values and launch->params from a plan's "args": buffers (buffer_address(name, context) is the
   device address, 0 for an unknown name), typed scalars, tensor maps. Count and sizes are held against the
   kernel's parameters where the driver can tell them. Errors: EXPERIMENT (argument and reason), WAIVED (a
   tensor map that needs another compute capability), DRIVER. */
clab_status clab_arguments_prepare(const struct clab_device *device, const struct clab_loaded *loaded,
                                   const json_t *arguments,
                                   CUdeviceptr (*buffer_address)(const char *name, void *context),
                                   void *context, struct clab_launch *launch, struct clab_error *error);

/* Encodes a plan's {"tensor_map": …} object (README.md) for a buffer at `address`. *out_map is aligned by its
   type. Errors: EXPERIMENT (alignment of the address), WAIVED (compute capability), UNSUPPORTED (driver), and
   what the driver's own check says. */
clab_status clab_tensor_map_encode(const struct clab_device *device, const json_t *map, CUdeviceptr address,
                                   CUtensorMap *out_map, struct clab_error *error);

#endif
