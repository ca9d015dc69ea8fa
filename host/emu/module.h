/* A loaded module and its kernels, as the machine's own files see them (module.c). */
#ifndef CLAB_EMU_MODULE_H
#define CLAB_EMU_MODULE_H

#include "emu/code.h"

#define EMU_SETS 3 /* base, v3, v4 */

struct emu_kernel {
    struct emu_module *module;
    struct emu_kernel *next;
    struct emu_kernel_info info;
    struct emu_image *image; /* of the best set, without hooks: made when the kernel is fetched */
    struct emu_image *others[2 * EMU_SETS]; /* made when a launch asks for them; n_others in use */
    unsigned n_others;
};

const struct ptx_module *emu_module_ptx(const struct emu_module *module);
/* The kernel's image for the set `name` (NULL: best) and hook mode, with costs when `clocked`; decodes on
   first use. Thread-safe. */
clab_status emu_kernel_image(struct emu_kernel *kernel, const char *isa, bool hooks, bool clocked,
                             const struct emu_image **out_image, struct clab_error *error);

#endif
