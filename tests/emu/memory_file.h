/* The test files memory/FILE.ptx: reading what they ask for, and checking what came of it. Used by
   memory_test.c (the emulator) and memory_gpu.c (a GPU). A file holds one entry and comment lines:

     // DEVICE: sm_100                     default sm_90
     // LAUNCH: grid=2 block=64 cluster=2 smem=1024          default grid=1 block=32 smem=0, and no cluster
     // SEEDS: 8                           the emulator runs it with seeds 0 to 7; default 1
     // EXPECT: out[0..31] = 2 i + 5       i: index of the word; `= 7` is allowed too
     // FAULT: CUDA_ERROR_ILLEGAL_ADDRESS part of the message
     // COUNT: loads.global.accesses = 32  the emulator only
     // PRINT: a line of what the kernel prints (all of them, in order)
     // H200: CUDA_SUCCESS why             what an H200 returns where PTX leaves the outcome undefined and it
   differs
     // H200: out[0..1] = 0                an EXPECT in place of those of the emulator for the same words

   The entry takes two u64 parameters, in and out: 4096 words each; in[i] = i, out is zeroed. */
#ifndef CLAB_TESTS_EMU_MEMORY_FILE_H
#define CLAB_TESTS_EMU_MEMORY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_WORDS 4096u

struct memory_file {
    char *text;
    char device[16];
    uint32_t grid, block, cluster, shared_bytes, seeds; /* cluster 1 when none */
    bool clustered;                                     /* LAUNCH gives a cluster, of 1 too */
};

/* NULL, or what is wrong. text is heap, and freed by memory_file_free. */
const char *memory_file_read(const char *path, struct memory_file *out);
void memory_file_free(struct memory_file *file);
/* The next line of `tag` after `at`: its rest is copied; NULL when there is none. */
const char *memory_file_line(const char *at, const char *tag, char *out_rest, size_t size);
/* Checks every EXPECT against the words; false with *out_text filled. *out_checks is raised by their number.
   hardware: H200 lines stand in for the EXPECT lines of the same words. */
bool memory_file_expects(const struct memory_file *file, const uint32_t *out_words, bool hardware,
                         unsigned *out_checks, char *out_text, size_t size);

#endif
