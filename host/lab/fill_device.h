/* Filling a device buffer on the device itself: fill.h's contents without the way through host memory. */
#ifndef CLAB_LAB_FILL_DEVICE_H
#define CLAB_LAB_FILL_DEVICE_H

#include "lab/device.h"
#include "lab/fill.h"

/* Whether the device fills such a buffer by itself: elements of 32 bits at an aligned address. */
bool clab_fill_device_has(enum clab_element element, CUdeviceptr address);
/* Queues on the device's stream the stores of `count` elements at `address`, bit for bit those of
   clab_fill_store from element 0 on. requires: clab_fill_device_has. */
clab_status clab_fill_device(const struct clab_device *device, const struct clab_fill *fill,
                             enum clab_element element, CUdeviceptr address, uint64_t count,
                             struct clab_error *error);

#endif
