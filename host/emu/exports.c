/* Every name of the real libcuda, and the table that cuGetProcAddress answers from: both come from
   host/driver/cuda.def, and from cuda_graphics.def for graphics. Each name is defined here as a weak stub
   that returns CUDA_ERROR_NOT_SUPPORTED and says so once in the log; an api_*.c that implements it defines
   the same name strongly, and the linker takes that one. cuda.h is not included: the stubs' prototype is
   their own (the caller's arguments are not looked at). */
#include "emu/exports.h"

#include <string.h>

#include "emu/log.h"

#define STUB_RESULT 801 /* CUDA_ERROR_NOT_SUPPORTED */

#define STUB(symbol)                                               \
    __attribute__((weak, visibility("default"))) int symbol(void); \
    __attribute__((weak, visibility("default"))) int symbol(void)  \
    {                                                              \
        emu_log_once("%s is not emulated", #symbol);               \
        return STUB_RESULT;                                        \
    }
#define CU(symbol, base, since, required)   STUB(symbol)
#define CU_EXPORT_ONLY(symbol, base, since) STUB(symbol)
#include "driver/cuda.def"
#define CU_GRAPHICS(symbol, base, since) STUB(symbol)
#include "driver/cuda_graphics.def"

static const struct emu_export exports[] = {
#define CU(symbol, base, since, required)    {#symbol, #base, since, 0, symbol},
#define CU_PT(symbol, base, since, required) {#symbol, #base, since, 1, symbol},
#define CU_EXPORT_ONLY(symbol, base, since)  {#symbol, #base, since, 0, symbol},
#include "driver/cuda.def"
#define CU_GRAPHICS(symbol, base, since)    {#symbol, #base, since, 0, symbol},
#define CU_GRAPHICS_PT(symbol, base, since) {#symbol, #base, since, 1, symbol},
#include "driver/cuda_graphics.def"
};

const struct emu_export *emu_export_get(unsigned index)
{
    return index < sizeof exports / sizeof exports[0] ? &exports[index] : NULL;
}

const struct emu_export *emu_export_find(const char *base, int version, int per_thread, int *out_known)
{
    const struct emu_export *best = NULL;
    *out_known = 0;
    for (unsigned i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        const struct emu_export *row = &exports[i];
        if (strcmp(row->base, base) != 0)
            continue;
        *out_known = 1;
        if (row->since > version || (row->per_thread && !per_thread))
            continue;
        /* The newest form that the version asked for has; of equal ones the per-thread form where asked for.
         */
        if (best == NULL || row->since > best->since || (row->since == best->since && row->per_thread))
            best = row;
    }
    /* A per-thread form wins over a plain one of the same newest version only; a newer plain form has no
     * twin. */
    return best;
}
