/* A loaded module and its kernels, as the machine's own files see them (module.c). */
#ifndef CLAB_EMU_MODULE_H
#define CLAB_EMU_MODULE_H

#include "emu/code.h"

#define EMU_SETS 3 /* base, v3, v4 */

struct emu_kernel {
    struct emu_module *module;
    struct emu_kernel *next;
    struct emu_kernel_info info;
    /* Its decoded forms: that of the best set without hooks is made when the kernel is fetched, others when a
       launch asks for them. All are dropped when kernels used since fill the module's share of memory. */
    struct emu_image *images[2 * EMU_SETS];
    unsigned n_images;
    unsigned uses;                    /* launches under way: their images stay */
    struct emu_kernel *newer, *older; /* by last use, those with images */
};

const struct ptx_module *emu_module_ptx(const struct emu_module *module);
/* Does a .global or .const variable of the module lie at the address? */
bool emu_module_has_variable_at(const struct emu_module *module, uint64_t address);
/* The kernel's image for the set `name` (NULL: best) and hook mode, with costs when `clocked`; decodes on
   first use, and again after it was dropped. It stays until emu_kernel_release, once for each success.
   Thread-safe. */
clab_status emu_kernel_image(struct emu_kernel *kernel, const char *isa, bool hooks, bool clocked,
                             const struct emu_image **out_image, struct clab_error *error);
void emu_kernel_release(struct emu_kernel *kernel);
/* Bytes that the decoded kernels of the module hold now. */
size_t emu_module_decoded_bytes(const struct emu_module *module);

#endif
