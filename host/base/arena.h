/* Arena: memory with one lifetime (a module, a run), freed in one place. Not thread-safe. */
#ifndef CLAB_BASE_ARENA_H
#define CLAB_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct clab_arena_block;
/* Zero-initialise to start empty. */
struct clab_arena {
    struct clab_arena_block *head;
    size_t total_bytes; /* memory held, headers included */
    size_t limit_bytes; /* 0: none; else allocation beyond it returns NULL */
};

/* `bytes` zeroed bytes aligned to 16, owned by the arena; NULL when memory or the limit is exhausted. */
void *clab_arena_alloc(struct clab_arena *arena, size_t bytes);
/* count * size with overflow check. */
void *clab_arena_array(struct clab_arena *arena, size_t count, size_t size);
/* A copy of text[0..bytes) with a NUL added. */
char *clab_arena_strndup(struct clab_arena *arena, const char *text, size_t bytes);
char *clab_arena_strdup(struct clab_arena *arena, const char *text);
char *clab_arena_printf(struct clab_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Doubling growth for an array of `size`-byte items that lives in the arena: returns the (possibly moved)
   array with room for at least `count + 1` items, or NULL. *capacity is in items; start with NULL and 0. */
void *clab_arena_grow(struct clab_arena *arena, void *items, size_t count, size_t *capacity, size_t size);
/* Frees everything; the arena is empty and usable again. */
void clab_arena_free(struct clab_arena *arena);

#endif
