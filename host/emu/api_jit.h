/* The option lists of cuModuleLoadDataEx, cuLibraryLoadData and cuLinkCreate ("CUjit_option"). */
#ifndef CLAB_EMU_JIT_H
#define CLAB_EMU_JIT_H

#include "emu/api.h"

struct api_jit {
    char *info, *error; /* the program's log buffers, or NULL */
    size_t info_bytes, error_bytes;
    unsigned max_registers; /* 0: not given */
    unsigned target;        /* CUjit_target, as given */
    bool has_target, has_sm3x, has_fallback;
    void **info_size, **error_size, **wall_time; /* where the call writes its answers */
};

/* Reads a list. INVALID_VALUE with the reason recorded for an unknown option. */
CUresult api_jit_read(unsigned count, CUjit_option *options, void **values, struct api_jit *out_jit);
/* What is wrong with the options of a load; a linker does not look at these. */
CUresult api_jit_check_load(const struct api_jit *jit);
/* Fills the program's buffers: the error as text (NULL: none), sizes, time. */
void api_jit_answer(const struct api_jit *jit, const struct clab_error *error, double seconds);

#endif
