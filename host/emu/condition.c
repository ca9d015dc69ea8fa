/* Conditions of graphs (condition.h): values that kernels set and conditional nodes read. A handle packs slot
   and generation, so that a stale one is recognised. */
#include "emu/condition.h"

#include <stdlib.h>

#include "emu/machine.h"

struct emu_conditions {
    struct condition {
        uint32_t value, generation, open;
        bool live;
    } * slots;
    uint32_t count;
};

/* The live slot of a handle, or NULL. With the lock. */
static struct condition *find(const struct emu_machine *machine, uint64_t handle)
{
    const struct emu_conditions *conditions = machine->conditions;
    const uint32_t slot = (uint32_t)handle - 1;
    if (!conditions || slot >= conditions->count) {
        return NULL;
    }
    struct condition *found = &conditions->slots[slot];
    return found->live && found->generation == (uint32_t)(handle >> 32) ? found : NULL;
}

/* A free slot's place, or that after the last. */
static uint32_t place_of_next(const struct emu_conditions *conditions)
{
    uint32_t place = 0;
    while (place < conditions->count && conditions->slots[place].live) {
        place++;
    }
    return place;
}

uint64_t emu_condition_new(struct emu_machine *machine)
{
    uint64_t handle = 0;
    pthread_mutex_lock(&machine->condition_lock);
    if (!machine->conditions) {
        machine->conditions = calloc(1, sizeof *machine->conditions);
    }
    struct emu_conditions *conditions = machine->conditions;
    if (conditions) {
        const uint32_t place = place_of_next(conditions);
        if (place == conditions->count) {
            struct condition *grown = realloc(conditions->slots, (place + 1) * sizeof *grown);
            if (grown) {
                grown[place] = (struct condition){0};
                conditions->slots = grown;
                conditions->count++;
            }
        }
        if (place < conditions->count) {
            struct condition *slot = &conditions->slots[place];
            slot->live = true;
            slot->value = slot->open = 0;
            slot->generation++;
            handle = (uint64_t)slot->generation << 32 | (place + 1);
        }
    }
    pthread_mutex_unlock(&machine->condition_lock);
    return handle;
}

void emu_condition_free(struct emu_machine *machine, uint64_t handle)
{
    pthread_mutex_lock(&machine->condition_lock);
    struct condition *found = find(machine, handle);
    if (found) {
        found->live = false;
    }
    pthread_mutex_unlock(&machine->condition_lock);
}

void emu_condition_open(struct emu_machine *machine, uint64_t handle, bool open)
{
    pthread_mutex_lock(&machine->condition_lock);
    struct condition *found = find(machine, handle);
    if (found) {
        found->open += open ? 1 : UINT32_MAX;
    }
    pthread_mutex_unlock(&machine->condition_lock);
}

void emu_condition_assign(struct emu_machine *machine, uint64_t handle, uint32_t value)
{
    pthread_mutex_lock(&machine->condition_lock);
    struct condition *found = find(machine, handle);
    if (found) {
        found->value = value;
    }
    pthread_mutex_unlock(&machine->condition_lock);
}

bool emu_condition_set(struct emu_machine *machine, uint64_t handle, uint32_t value)
{
    pthread_mutex_lock(&machine->condition_lock);
    struct condition *found = find(machine, handle);
    const bool good = found && found->open > 0;
    if (good) {
        found->value = value;
    }
    pthread_mutex_unlock(&machine->condition_lock);
    return good;
}

uint32_t emu_condition_get(struct emu_machine *machine, uint64_t handle)
{
    pthread_mutex_lock(&machine->condition_lock);
    const struct condition *found = find(machine, handle);
    const uint32_t value = found ? found->value : 0;
    pthread_mutex_unlock(&machine->condition_lock);
    return value;
}

void emu_conditions_free(struct emu_machine *machine)
{
    if (machine->conditions) {
        free(machine->conditions->slots);
        free(machine->conditions);
    }
}
