/* The small kernels of our own that measurement and filling need, as one module, compiled by the driver when
   first used: the stream blocker, the clock stamp, the buffer fill. */
#ifndef CLAB_LAB_HELPERS_H
#define CLAB_LAB_HELPERS_H

#include "lab/device.h"

struct clab_helpers {
    CUmodule module;    /* NULL until loaded */
    CUfunction blocker; /* (u64 flags, u64 limit_ns): spins until flags[0] != 0; past the limit sets flags[1]
                           and ends */
    CUfunction
        stamp; /* (u64 slots, u32 n_slots, u64 tag): slots[%smid] = {globaltimer ns, clock64, tag, 0} */
    CUfunction
        fill; /* (u64 out, u64 count, u64 weyl, u32 mode, u32 one): 32-bit elements, see fill_device.c */
};

/* Loads the module into device->helpers, once. */
clab_status clab_helpers_load(const struct clab_device *device, struct clab_error *error);

#endif
