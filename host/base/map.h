/* String-keyed hash map (open addressing). Keys are borrowed: they must outlive the map. Not thread-safe. */
#ifndef CLAB_BASE_MAP_H
#define CLAB_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct clab_map_entry;
/* Zero-initialise to start empty. */
struct clab_map {
    struct clab_map_entry *entries;
    size_t count, capacity;
};

/* Value for key[0..bytes), or NULL. */
void *clab_map_get(const struct clab_map *map, const char *key, size_t bytes);
/* Sets or replaces (value must not be NULL). False when memory is out. */
bool clab_map_set(struct clab_map *map, const char *key, size_t bytes, void *value);
void clab_map_free(struct clab_map *map);

#endif
