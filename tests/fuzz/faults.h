/* Failing and late calls of the C library, for the programs fuzz_faults_NAME: every call of ours to malloc
   and its kin, mmap and its kin, and pthread_create goes through faults.c (the linker's --wrap). */
#ifndef CLAB_TESTS_FUZZ_FAULTS_H
#define CLAB_TESTS_FUZZ_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct fuzz_faults {
    uint64_t seed;   /* which calls fail, which are late */
    uint32_t one_in; /* so many calls fails; 0 none */
    uint64_t only;   /* instead: this call, counted from 1; 0 none */
    bool lasting;    /* all after the first failure fail */
    bool late;       /* threads lose time where they take a lock */
};

/* From here on. */
void fuzz_faults_set(struct fuzz_faults faults);
/* Calls that could fail since then. */
uint64_t fuzz_faults_count(void);

#endif
