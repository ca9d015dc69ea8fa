/* The names that the library exports (exports.c). */
#ifndef CLAB_EMU_EXPORTS_H
#define CLAB_EMU_EXPORTS_H

struct emu_export {
    const char *symbol, *base;
    int since, per_thread;
    int (*address)(void);
};

/* NULL past the end. */
const struct emu_export *emu_export_get(unsigned index);
/* What cuGetProcAddress answers for a base name and a CUDA version (12050 is 12.5); NULL: none so old.
 *out_known: is there any form of that name? */
const struct emu_export *emu_export_find(const char *base, int version, int per_thread, int *out_known);

#endif
