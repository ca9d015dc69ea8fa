/* The emulated device as the machine's own files see it (core.h shows it to the driver surface as an opaque
 * type). */
#ifndef CLAB_EMU_MACHINE_H
#define CLAB_EMU_MACHINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "emu/core.h"
#include "emu/space.h"

struct emu_textures; /* texture.c */

struct emu_machine {
    const struct emu_model *model;
    struct emu_options options;
    struct emu_space *space;
    pthread_mutex_t lock; /* modules and their kernels */
    pthread_mutex_t condition_lock;
    struct emu_conditions *conditions; /* condition.c; NULL until there is one */
    uint32_t next_module;              /* serial number of the next module, for function addresses */
    _Atomic uint64_t epoch; /* raised by whatever may let a waiting kernel go on: see emu_machine_progress */
    _Atomic uint64_t last_ns;                /* latest %globaltimer of any launch so far */
    _Atomic uint64_t next_grid;              /* %gridid of the next launch, less one */
    _Atomic(struct emu_textures *) textures; /* NULL until there is one */
    _Atomic bool heap_in_use;                /* a kernel that may call malloc was launched */
    _Atomic uint64_t heap_parts;             /* of the heap that malloc in kernels has given (builtin.c) */
    _Atomic uint32_t running; /* host threads, of all launches, that are not known to be stuck */
};

/* Implemented in space.c. Whether memory that the host program can write directly (pinned, managed,
   registered) exists: a kernel that spins is then given longer before it is declared dead. */
bool emu_space_host_visible(const struct emu_space *space);

/* The table of texture and surface objects. */
void emu_textures_free(struct emu_machine *machine);

void emu_conditions_free(struct emu_machine *machine);

/* The device as a PTX target: its own number, suffix 'a'. */
struct ptx_target emu_machine_target(const struct emu_machine *machine);

#endif
