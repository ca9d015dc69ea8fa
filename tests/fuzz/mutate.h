/* Mutants of a PTX text that mostly still parse. */
#ifndef CLAB_TESTS_FUZZ_MUTATE_H
#define CLAB_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Writes a mutant of the text to `out` (room for `capacity` bytes; no NUL is added) and returns its length:
   tokens and lines are exchanged with their like, numbers become others, types and state spaces change, the
   launch that a comment asks for (fuzz_run.c) too. The same seed makes the same mutant. */
size_t fuzz_mutate(uint64_t seed, const char *text, size_t bytes, char *out, size_t capacity);

#endif
