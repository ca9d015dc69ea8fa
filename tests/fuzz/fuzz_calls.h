/* What fuzz_calls.c and fuzz_calls_more.c share: choices and handles. */
#ifndef CLAB_TESTS_FUZZ_CALLS_H
#define CLAB_TESTS_FUZZ_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

/* ---- pools of handles: the last few of each kind, live or stale ---- */
enum kind {
    CONTEXT,
    MODULE,
    FUNCTION,
    STREAM,
    EVENT,
    GRAPH,
    NODE,
    EXEC,
    LIBRARY,
    KERNEL,
    LINK,
    POOL,
    MEMORY,
    HOST,
    RESERVED, /* address ranges, physical memory */
    PHYSICAL,
    GREEN,
    FIRST_KINDS, /* those that `any` may give for another: inputs keep their meaning */
    ARRAY = FIRST_KINDS,
    MIPMAPS,
    TEXTURE,
    SURFACE,
    REFERENCE, /* of textures, made by the program */
    KINDS
};

uint64_t fuzz_next(void);
unsigned fuzz_pick(unsigned limit);
/* A handle: mostly one that is held. */
uintptr_t fuzz_any(enum kind kind);
/* One that holds something, if there is one. */
uintptr_t fuzz_held_handle(enum kind kind);
/* Keeps it for later calls; lets go of what was kept there. */
void fuzz_keep(enum kind kind, uintptr_t value);
uint64_t fuzz_size(void);
unsigned fuzz_small(void);
/* A buffer of the host, 64 KiB. */
extern unsigned char fuzz_scratch[1 << 16];

/* fuzz_calls_more.c: groups of calls. */
void fuzz_arrays(void);
void fuzz_textures(void);
void fuzz_references(void);
void fuzz_graph_memory(void);
void fuzz_old_and_managed(void);
/* Lets go of what those made. */
void fuzz_more_forget(enum kind kind, uintptr_t value);

#endif
