/* What targets share that run kernels on the machine itself, without the driver surface: one machine for each
   device model, and how launches run, out of bits. */
#ifndef CLAB_TESTS_FUZZ_ON_MACHINE_H
#define CLAB_TESTS_FUZZ_ON_MACHINE_H

#include "emu/core.h"

#define FUZZ_BUFFER 65536u /* bytes of the buffer that parameters point to */
#define FUZZ_MAPS \
    32768u /* where in it `fill` puts tensor maps; the first is also what a large parameter holds */

/* Bits of `how`; the seed is what is above them. */
enum {
    FUZZ_FAIR = 1,
    FUZZ_THREADS = 2,
    FUZZ_HOOKS = 4, /* hooks that count */
    FUZZ_ONE_CLUSTER = 8,
    FUZZ_DECLINE = 16,
    FUZZ_CHECK = 32, /* the hazard checker */
    FUZZ_TRACE = 64,
    FUZZ_DRIVER = 128, /* a driver that refuses PTX 9.1 and later */
    FUZZ_SEED_SHIFT = 8
};

/* The machine of emu_models[model], made once in the process. Ends the process when there is none. */
struct emu_machine *fuzz_machine(unsigned model);
/* Loads `text` and launches its entry `entry` (NULL: the first) in the shape of `launch`, whose kernel and
   parameters are filled here: parameters of 8 bytes point to a buffer of FUZZ_BUFFER bytes that holds its
   words' indices (the first parameter) or, from FUZZ_BUFFER / 2, zeros and what `fill` writes (the others),
   larger ones hold the first tensor map, smaller ones small numbers. `fill` may be NULL. Ends the process on
   an error without words, and when the machine holds other memory afterwards than before. */
void fuzz_launch(struct emu_machine *machine, unsigned how, const char *text, size_t bytes, const char *entry,
                 struct emu_launch *launch, void (*fill)(void *user, uint64_t buffer), void *user);
/* Ends the process; `text` is shown. */
_Noreturn void fuzz_broken(const char *what, const char *text);

#endif
