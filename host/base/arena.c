/* Arena allocation: zeroed memory in blocks of growing size, freed all at once.

   A request larger than a quarter of the next block gets a block of its own behind the current one, so that
   the current block's rest stays in use. Under AddressSanitizer what is not handed out is poisoned and each
   item is followed by 16 poisoned bytes; an overrun inside a block is then reported like one of malloc's. */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
enum { GUARD_BYTES = 16 };
#else
enum { GUARD_BYTES = 0 };
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum {
    ALIGN_BYTES = 16,
    FIRST_BLOCK_BYTES = 4096,
    LARGEST_BLOCK_BYTES = 256 * 1024,
};

struct clab_arena_block {
    struct clab_arena_block *next;
    size_t capacity_bytes; /* payload, without this header */
    size_t used_bytes;
    size_t unused;
    unsigned char payload[];
};
_Static_assert(sizeof(struct clab_arena_block) % ALIGN_BYTES == 0,
               "the payload is aligned when the block is");
_Static_assert(ALIGN_BYTES <= _Alignof(max_align_t), "calloc aligns a block for us");

static struct clab_arena_block *block_new(struct clab_arena *arena, size_t payload_bytes)
{
    size_t bytes = sizeof(struct clab_arena_block) + payload_bytes;
    if (arena->limit_bytes &&
        (arena->total_bytes >= arena->limit_bytes || bytes > arena->limit_bytes - arena->total_bytes))
        return NULL;
    struct clab_arena_block *block = calloc(1, bytes);
    if (!block)
        return NULL;
    block->capacity_bytes = payload_bytes;
    ASAN_POISON_MEMORY_REGION(block->payload, payload_bytes);
    arena->total_bytes += bytes;
    return block;
}

/* A block with at least `bytes` free, already linked into the arena; NULL when none can be had. */
static struct clab_arena_block *block_for(struct clab_arena *arena, size_t bytes)
{
    struct clab_arena_block *head = arena->head;
    if (head && head->capacity_bytes - head->used_bytes >= bytes)
        return head;

    size_t next_bytes = FIRST_BLOCK_BYTES;
    if (head && head->capacity_bytes >= FIRST_BLOCK_BYTES)
        next_bytes =
            head->capacity_bytes < LARGEST_BLOCK_BYTES ? 2 * head->capacity_bytes : LARGEST_BLOCK_BYTES;
    struct clab_arena_block *block = NULL;
    if (bytes <= next_bytes / 4)
        block = block_new(arena, next_bytes);
    if (block) {
        block->next = head;
        arena->head = block;
        return block;
    }
    /* Large, or near the limit: exactly what is asked for, behind the current block. */
    block = block_new(arena, bytes);
    if (!block)
        return NULL;
    if (head) {
        block->next = head->next;
        head->next = block;
    } else {
        arena->head = block;
    }
    return block;
}

void *clab_arena_alloc(struct clab_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    size_t item_bytes = bytes ? bytes : 1;
    size_t taken_bytes = (item_bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES + GUARD_BYTES;
    struct clab_arena_block *block = block_for(arena, taken_bytes);
    if (!block)
        return NULL;
    unsigned char *item = block->payload + block->used_bytes;
    block->used_bytes += taken_bytes;
    ASAN_UNPOISON_MEMORY_REGION(item, item_bytes);
    return item;
}

void *clab_arena_array(struct clab_arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return clab_arena_alloc(arena, count * size);
}

char *clab_arena_strndup(struct clab_arena *arena, const char *text, size_t bytes)
{
    if (bytes == SIZE_MAX)
        return NULL;
    char *copy = clab_arena_alloc(arena, bytes + 1);
    if (copy && bytes)
        memcpy(copy, text, bytes);
    return copy;
}

char *clab_arena_strdup(struct clab_arena *arena, const char *text)
{
    return clab_arena_strndup(arena, text, strlen(text));
}

char *clab_arena_printf(struct clab_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes < 0)
        return NULL;
    char *text = clab_arena_alloc(arena, (size_t)bytes + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)bytes + 1, format, args);
    va_end(args);
    return text;
}

void *clab_arena_grow(struct clab_arena *arena, void *items, size_t count, size_t *capacity, size_t size)
{
    if (items && count < *capacity)
        return items;
    if (count >= SIZE_MAX / 4)
        return NULL;
    size_t wanted = *capacity ? *capacity : 8;
    while (wanted <= count)
        wanted *= 2;
    void *larger = clab_arena_array(arena, wanted, size);
    if (!larger)
        return NULL;
    if (items && *capacity)
        memcpy(larger, items, (count < *capacity ? count : *capacity) * size);
    *capacity = wanted;
    return larger;
}

void clab_arena_free(struct clab_arena *arena)
{
    for (struct clab_arena_block *block = arena->head, *next; block; block = next) {
        next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->payload, block->capacity_bytes);
        free(block);
    }
    arena->head = NULL;
    arena->total_bytes = 0;
}
