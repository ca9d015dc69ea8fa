/* Images to modules: loading as they are, and the driver's own JIT with its cubin, log and time kept. */
#ifndef CLAB_COMPILE_JIT_H
#define CLAB_COMPILE_JIT_H

#include "compile/image.h"
#include "driver/driver.h"

/* cuModuleLoadDataEx with log buffers; needs a current context. The image's log is not touched; on failure
   the error holds the driver's log, with the line where PTX went wrong. CLAB_LOAD and others of
   clab_call_status. */
clab_status clab_module_load(const struct clab_driver *driver, const struct clab_image *image,
                             CUmodule *out_module, struct clab_error *error);

/* PTX to cubin by the driver: cuLinkCreate, cuLinkAddData, cuLinkComplete. `out` is a cubin for the current
   device with log, compile_ns, compiler "driver 13.0", and the PTX kept in out->ptx. Only for drivers that
   take cubins. */
clab_status clab_jit_ptx(const struct clab_driver *driver, const struct clab_image *ptx,
                         struct clab_image *out, struct clab_error *error);

#endif
