/* From a program's image to PTX (image.c, fatbin.c). The two public functions are in api.h. */
#ifndef CLAB_EMU_IMAGE_H
#define CLAB_EMU_IMAGE_H

#include "emu/api.h"

/* The PTX of a fatbin that fits `model` best. bytes SIZE_MAX: as the header says. As api_image_ptx otherwise.
 */
CUresult api_fatbin_ptx(const void *fatbin, size_t bytes, const struct emu_model *model, char **out_text,
                        size_t *out_bytes);
/* What cuModuleLoadData returns for a failed load. */
CUresult api_load_result(clab_status status, const struct clab_error *error);
/* The first function of a parsed text that does not assemble (unknown instruction, form not on the target):
   the driver refuses the whole module for it. NULL: all good. What the emulator merely cannot run is not
   among them. */
const struct clab_error *api_function_error(const struct ptx_module *module);
/* The first function that is called but defined nowhere; NULL: none. The emulator's own (vprintf, …) count as
   defined. `with_variables`: or the first variable that is used, as nvlink 13.0 looks at them ("Undefined
   reference"); cuModuleLoadData does not (H200, driver 13.0, tests/api/data/h200.txt). */
const char *api_undefined_name(const struct ptx_module *module, bool with_variables);
/* The first instruction that makes the module use 32-bit addresses, which ptxas and the driver take word by
   word and then refuse as a whole on sm_90 and higher; NULL: none. */
const struct ptx_insn *api_narrow_address(const struct ptx_module *module);
/* Sets the error that tells of it. `name`: the module's, for the message. */
void api_explain_narrow(struct clab_error *error, const struct ptx_module *module, const char *name,
                        const struct ptx_insn *insn);
/* Adds what to do about it, where the name is one that CUDA's headers or ptxas put there themselves. */
void api_explain_undefined(struct clab_error *error, const char *name);

#endif
