/* The table of live handles (handle.h). A handle packs kind, generation and slot:
     bits 0..3 zero | 4..25 slot | 26..41 generation, never 0 | 42..46 kind
   A freed slot goes to the tail of the free list, so that its generation comes round as late as possible. */
#include "emu/api_handle.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define SLOT_BITS        22
#define GENERATION_BITS  16
#define SLOT_SHIFT       4
#define GENERATION_SHIFT (SLOT_SHIFT + SLOT_BITS)
#define KIND_SHIFT       (GENERATION_SHIFT + GENERATION_BITS)
_Static_assert(KIND_SHIFT + 5 == 47, "handles stay below 2^47");
_Static_assert(EMU_HANDLE_KIND_COUNT <= 32, "five bits of kind");

struct slot {
    void *object;        /* NULL: free */
    uint32_t next_free;  /* UINT32_MAX: none */
    uint16_t generation; /* of the live or the last handle; 0: never used */
    uint8_t kind;
    bool with_context; /* the last one died with its context */
};

static struct {
    struct slot *slots;
    uint32_t used, capacity;
    uint32_t first_free, last_free;
    size_t live[EMU_HANDLE_KIND_COUNT];
} table = {.first_free = UINT32_MAX, .last_free = UINT32_MAX};

static uint32_t take_slot(void)
{
    if (table.first_free != UINT32_MAX && (table.used > 4096 || table.used == table.capacity)) {
        uint32_t index = table.first_free;
        table.first_free = table.slots[index].next_free;
        if (table.first_free == UINT32_MAX)
            table.last_free = UINT32_MAX;
        return index;
    }
    if (table.used == table.capacity) {
        uint32_t capacity = table.capacity == 0 ? 256 : table.capacity * 2;
        if (capacity > UINT32_C(1) << SLOT_BITS)
            return UINT32_MAX;
        struct slot *slots = realloc(table.slots, capacity * sizeof *slots);
        if (slots == NULL)
            return UINT32_MAX;
        table.slots = slots;
        table.capacity = capacity;
    }
    table.slots[table.used] = (struct slot){0};
    return table.used++;
}

void *emu_handle_new(enum emu_handle_kind kind, void *object)
{
    uint32_t index = take_slot();
    if (index == UINT32_MAX)
        return NULL;
    struct slot *slot = &table.slots[index];
    slot->generation = (uint16_t)(slot->generation + 1);
    if (slot->generation == 0)
        slot->generation = 1;
    slot->object = object;
    slot->kind = (uint8_t)kind;
    slot->with_context = false;
    slot->next_free = UINT32_MAX;
    table.live[kind]++;
    uint64_t bits = (uint64_t)kind << KIND_SHIFT | (uint64_t)slot->generation << GENERATION_SHIFT |
                    (uint64_t)index << SLOT_SHIFT;
    return (void *)(uintptr_t)bits;
}

/* The slot that a handle names, whatever its generation; NULL for what no emu_handle_new can have returned.
 */
static struct slot *slot_of(enum emu_handle_kind kind, const void *handle, uint16_t *out_generation)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    uint64_t index = bits >> SLOT_SHIFT & ((UINT64_C(1) << SLOT_BITS) - 1);
    *out_generation = (uint16_t)(bits >> GENERATION_SHIFT);
    if ((bits & ((1u << SLOT_SHIFT) - 1)) != 0 || bits >> KIND_SHIFT != (uint64_t)kind ||
        index >= table.used || *out_generation == 0)
        return NULL;
    return &table.slots[index];
}

void *emu_handle_get(enum emu_handle_kind kind, const void *handle)
{
    uint16_t generation;
    struct slot *slot = slot_of(kind, handle, &generation);
    return slot != NULL && slot->generation == generation && slot->kind == (uint8_t)kind ? slot->object
                                                                                         : NULL;
}

int emu_handle_was(enum emu_handle_kind kind, const void *handle)
{
    uint16_t generation;
    struct slot *slot = slot_of(kind, handle, &generation);
    return slot != NULL && generation <= slot->generation && emu_handle_get(kind, handle) == NULL;
}

int emu_handle_died_with_context(enum emu_handle_kind kind, const void *handle)
{
    uint16_t generation;
    const struct slot *slot = slot_of(kind, handle, &generation);
    return slot != NULL && slot->kind == (uint8_t)kind && generation == slot->generation &&
           slot->object == NULL && slot->with_context;
}

void emu_handle_free_with_context(enum emu_handle_kind kind, const void *handle)
{
    uint16_t generation;
    struct slot *slot = slot_of(kind, handle, &generation);
    const bool lives = emu_handle_get(kind, handle) != NULL;
    emu_handle_free(handle);
    if (lives)
        slot->with_context = true;
}

void emu_handle_free(const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    enum emu_handle_kind kind = (enum emu_handle_kind)(bits >> KIND_SHIFT);
    uint16_t generation;
    if (kind == 0 || kind >= EMU_HANDLE_KIND_COUNT || emu_handle_get(kind, handle) == NULL)
        return;
    struct slot *slot = slot_of(kind, handle, &generation);
    uint32_t index = (uint32_t)(slot - table.slots);
    slot->object = NULL;
    slot->next_free = UINT32_MAX;
    table.live[kind]--;
    if (table.last_free == UINT32_MAX)
        table.first_free = index;
    else
        table.slots[table.last_free].next_free = index;
    table.last_free = index;
}

size_t emu_handle_count(enum emu_handle_kind kind)
{
    return table.live[kind];
}

void *emu_handle_next(enum emu_handle_kind kind, size_t *cursor)
{
    while (*cursor < table.used) {
        struct slot *slot = &table.slots[(*cursor)++];
        if (slot->object != NULL && slot->kind == (uint8_t)kind)
            return slot->object;
    }
    return NULL;
}
