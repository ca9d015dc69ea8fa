/* What a fuzz target is to its two drivers, libFuzzer and replay.c. */
#ifndef CLAB_TESTS_FUZZ_TARGET_H
#define CLAB_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Tries one input; aborts when something is wrong. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
