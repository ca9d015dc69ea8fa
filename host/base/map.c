/* String-keyed hash map: open addressing with linear probing, FNV-1a hashes, capacity a power of two, at most
   three quarters full. There is no removal, so a free slot always ends a probe. */
#include "base/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct clab_map_entry {
    const char *key; /* borrowed */
    size_t bytes;
    uint64_t hash;
    void *value; /* NULL: free slot */
};

static uint64_t hash_key(const char *key, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

/* The entry that holds the key, or the free slot where it belongs. requires: at least one free slot. */
static struct clab_map_entry *find_slot(struct clab_map_entry *entries, size_t capacity, const char *key,
                                        size_t bytes, uint64_t hash)
{
    for (size_t i = (size_t)hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        struct clab_map_entry *entry = &entries[i];
        if (!entry->value)
            return entry;
        if (entry->hash == hash && entry->bytes == bytes && (!bytes || !memcmp(entry->key, key, bytes)))
            return entry;
    }
}

void *clab_map_get(const struct clab_map *map, const char *key, size_t bytes)
{
    if (!map->count)
        return NULL;
    return find_slot(map->entries, map->capacity, key, bytes, hash_key(key, bytes))->value;
}

static bool grow(struct clab_map *map)
{
    size_t capacity = map->capacity ? 2 * map->capacity : 16;
    struct clab_map_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct clab_map_entry *entry = &map->entries[i];
        if (entry->value)
            *find_slot(entries, capacity, entry->key, entry->bytes, entry->hash) = *entry;
    }
    free(map->entries);
    map->entries = entries;
    map->capacity = capacity;
    return true;
}

bool clab_map_set(struct clab_map *map, const char *key, size_t bytes, void *value)
{
    if (!value) /* NULL marks a free slot: storing it would break the probes */
        return false;
    if (4 * (map->count + 1) > 3 * map->capacity && !grow(map))
        return false;
    uint64_t hash = hash_key(key, bytes);
    struct clab_map_entry *entry = find_slot(map->entries, map->capacity, key, bytes, hash);
    if (!entry->value) {
        *entry = (struct clab_map_entry){.key = key, .bytes = bytes, .hash = hash};
        map->count++;
    }
    entry->value = value;
    return true;
}

void clab_map_free(struct clab_map *map)
{
    free(map->entries);
    *map = (struct clab_map){0};
}
