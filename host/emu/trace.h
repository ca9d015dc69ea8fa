/* The instruction trace of one warp (trace.c): an observer like any other (hook.h). */
#ifndef CLAB_EMU_TRACE_H
#define CLAB_EMU_TRACE_H

#include "emu/hook.h"

struct emu_trace;
/* `next`: hooks that are called as well, or NULL. path NULL: standard error. NULL when memory is out or the
   file cannot be opened (error filled). */
struct emu_trace *emu_trace_new(const char *path, uint64_t cta, uint32_t warp, const struct emu_hooks *next,
                                struct clab_error *error);
const struct emu_hooks *emu_trace_hooks(const struct emu_trace *trace);
/* Writes what is pending and closes. */
void emu_trace_free(struct emu_trace *trace);

#endif
