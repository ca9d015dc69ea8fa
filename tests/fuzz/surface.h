/* What the driver surface holds, by its own accounts, beyond what a program can ask it. */
#ifndef CLAB_TESTS_FUZZ_SURFACE_H
#define CLAB_TESTS_FUZZ_SURFACE_H

#include <stdint.h>

struct fuzz_held {
    uint64_t device_bytes; /* of the emulated device's memory: modules' variables too, whatever the host can
                              spare */
    uint64_t host_bytes;   /* that count against what the host can spare */
    uint64_t allocations;
};

/* Zeros before cuInit. */
struct fuzz_held fuzz_held(void);
/* Ends the process when `after` holds something else than `before`; `target` is named. */
void fuzz_compare(const char *target, struct fuzz_held before, struct fuzz_held after);

#endif
