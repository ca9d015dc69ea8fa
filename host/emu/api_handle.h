/* Handles: what the program gets for a context, stream, event, … is no pointer but a number that names a slot
   and the slot's generation, so that a stale, foreign or invented handle is recognised and never followed.
   Guarded by the API's lock (api.h). */
#ifndef CLAB_EMU_HANDLE_H
#define CLAB_EMU_HANDLE_H

#include <stddef.h>

enum emu_handle_kind {
    EMU_HANDLE_CONTEXT = 1,
    EMU_HANDLE_MODULE,
    EMU_HANDLE_FUNCTION,
    EMU_HANDLE_LIBRARY,
    EMU_HANDLE_KERNEL,
    EMU_HANDLE_STREAM,
    EMU_HANDLE_EVENT,
    EMU_HANDLE_POOL,
    EMU_HANDLE_GRAPH,
    EMU_HANDLE_NODE,
    EMU_HANDLE_EXEC,
    EMU_HANDLE_LINK,
    EMU_HANDLE_USER_OBJECT,
    EMU_HANDLE_VMM,
    EMU_HANDLE_ARRAY,
    EMU_HANDLE_MIPMAP,
    EMU_HANDLE_TEXREF,
    EMU_HANDLE_SURFREF,
    EMU_HANDLE_EXTERNAL, /* a CUexternalMemory */
    EMU_HANDLE_NOTIFICATION,
    EMU_HANDLE_RESOURCES, /* a CUdevResourceDesc */
    EMU_HANDLE_GREEN,     /* a CUgreenCtx, which is a CUcontext too */
    EMU_HANDLE_KIND_COUNT
};

/* A new handle for `object` (borrowed), or NULL when memory or the 4 M slots are exhausted. A multiple of 16,
   below 2^47 like any pointer, never one of the small numbers that the API gives a meaning
   (CU_STREAM_LEGACY). */
void *emu_handle_new(enum emu_handle_kind kind, void *object);
/* The object of a live handle of this kind, else NULL. */
void *emu_handle_get(enum emu_handle_kind kind, const void *handle);
/* Was this ever a handle of `kind`, and is it dead now? (CUDA_ERROR_CONTEXT_IS_DESTROYED needs to know.) */
int emu_handle_was(enum emu_handle_kind kind, const void *handle);
void emu_handle_free(const void *handle);
/* The same for one that dies because its context does; known until the slot is used again. */
void emu_handle_free_with_context(enum emu_handle_kind kind, const void *handle);
int emu_handle_died_with_context(enum emu_handle_kind kind, const void *handle);
/* Live handles of a kind: the library's own accounting. */
size_t emu_handle_count(enum emu_handle_kind kind);
/* The live objects of a kind one after the other: *cursor starts as 0; NULL at the end. */
void *emu_handle_next(enum emu_handle_kind kind, size_t *cursor);

#endif
