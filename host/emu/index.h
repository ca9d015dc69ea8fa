/* A map from pointers to numbers, in an arena: what a kernel reaches is small next to what its module has,
   and nothing here may cost what the module has. Zero-initialise to start empty. */
#ifndef CLAB_EMU_INDEX_H
#define CLAB_EMU_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct emu_index_entry {
    const void *key; /* NULL: free */
    uint32_t value;
};
struct emu_index {
    struct emu_index_entry *entries;
    uint32_t count, capacity; /* capacity: 0 or a power of two */
};

static inline struct emu_index_entry *emu_index_slot(const struct emu_index *index, const void *key)
{
    uint32_t at = (uint32_t)(((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    for (at &= index->capacity - 1; index->entries[at].key && index->entries[at].key != key;) {
        at = (at + 1) & (index->capacity - 1);
    }
    return &index->entries[at];
}

/* The value for `key`, or NULL. */
static inline uint32_t *emu_index_get(const struct emu_index *index, const void *key)
{
    struct emu_index_entry *entry = index->capacity ? emu_index_slot(index, key) : NULL;
    return entry && entry->key ? &entry->value : NULL;
}

/* Adds a key that is not there yet. False when memory is out. */
static inline bool emu_index_add(struct emu_index *index, struct clab_arena *arena, const void *key,
                                 uint32_t value)
{
    if (index->count >= index->capacity / 2) {
        struct emu_index larger = {.capacity = index->capacity ? 2 * index->capacity : 16};
        larger.entries = clab_arena_array(arena, larger.capacity, sizeof *larger.entries);
        if (!larger.entries) {
            return false;
        }
        for (uint32_t i = 0; i < index->capacity; i++) {
            if (index->entries[i].key) {
                *emu_index_slot(&larger, index->entries[i].key) = index->entries[i];
            }
        }
        larger.count = index->count;
        *index = larger;
    }
    *emu_index_slot(index, key) = (struct emu_index_entry){.key = key, .value = value};
    index->count++;
    return true;
}

#endif
