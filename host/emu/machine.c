/* The emulated device: its model, options and address space (core.h). */
#include <stdlib.h>
#include <string.h>

#include "emu/machine.h"

clab_status emu_machine_new(const struct emu_model *model, struct emu_machine **out_machine,
                            struct clab_error *error)
{
    *out_machine = NULL;
    struct emu_machine *machine = calloc(1, sizeof *machine);
    if (!machine) {
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for an emulated device");
    }
    machine->model = model;
    machine->options.decline = UINT32_MAX;
    machine->options.trace_cta = machine->options.trace_warp = -1;
    const clab_status status = emu_space_new(model->memory_bytes, &machine->space, error);
    if (status != CLAB_OK) {
        free(machine);
        return status;
    }
    if (pthread_mutex_init(&machine->lock, NULL) != 0 ||
        pthread_mutex_init(&machine->condition_lock, NULL) != 0) {
        emu_space_free(machine->space);
        free(machine);
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory for an emulated device");
    }
    *out_machine = machine;
    return CLAB_OK;
}

void emu_machine_free(struct emu_machine *machine)
{
    if (machine) {
        emu_textures_free(machine);
        emu_conditions_free(machine);
        emu_space_free(machine->space);
        pthread_mutex_destroy(&machine->lock);
        pthread_mutex_destroy(&machine->condition_lock);
        free(machine);
    }
}

const struct emu_model *emu_machine_model(const struct emu_machine *machine)
{
    return machine->model;
}

struct emu_options *emu_machine_options(struct emu_machine *machine)
{
    return &machine->options;
}

void emu_machine_progress(struct emu_machine *machine)
{
    atomic_fetch_add_explicit(&machine->epoch, 1, memory_order_relaxed);
}

/* The chip takes images for itself with either suffix. */
struct ptx_target emu_machine_target(const struct emu_machine *machine)
{
    return (struct ptx_target){.sm = machine->model->sm, .suffix = 'a'};
}
