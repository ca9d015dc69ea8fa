/* Tries every input of a pack once, in place of libFuzzer: what ctest runs. A pack is a corpus in one file:
   for each input its length in four bytes, least first, then the input.

   usage: NAME PACK                    try all of them (a file that is no pack: -1 FILE tries it as one input)
          NAME --random SEED COUNT     try random inputs
          NAME --pack PACK FILE...     write a pack
          NAME --unpack PACK FOLDER    write the inputs as files, for libFuzzer
          NAME --faults SEED PACK [N]  fuzz_faults_NAME: try all of them, or every Nth, with failing and late
   calls of the C library (faults.h), in five ways that the seed chooses
          NAME --least PACK OUT [N]    a pack of those that reach N places (1) which no smaller one before
   them does; in the build of tools/fuzz-coverage, whose counters it reads */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "faults.h"
#include "target.h"

static uint32_t length_at(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static int fail(const char *what, const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, what);
    return 2;
}

static int pack(const char *path, char **files, int count)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL)
        return fail("cannot be written", path);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        char *data = clab_file_read(files[i], 1u << 20, &bytes);
        if (data == NULL)
            return fail("cannot be read", files[i]);
        for (unsigned shift = 0; shift < 32; shift += 8)
            fputc((int)(bytes >> shift & 255), out);
        fwrite(data, 1, bytes, out);
        free(data);
    }
    return fclose(out) == 0 ? 0 : fail("cannot be written", path);
}

static int random_inputs(uint64_t seed, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t state = (seed + i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
        size_t length = 16 + (size_t)(i * 37 % 1000);
        uint8_t *input = malloc(length);
        if (input == NULL)
            return fail("no memory", "--random");
        for (size_t n = 0; n < length; n++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            input[n] = (uint8_t)(state >> 24);
        }
        LLVMFuzzerTestOneInput(input, length);
        free(input);
    }
    printf("%u inputs\n", count);
    return 0;
}

/* ---- failing calls ---- */

/* Absent in the other programs. */
#pragma weak fuzz_faults_set
#pragma weak fuzz_faults_count

/* One input: as it is, then with one call failing, with many, with all from one on, and late. */
static void with_faults(uint64_t seed, const uint8_t *input, size_t bytes)
{
    fuzz_faults_set((struct fuzz_faults){0});
    LLVMFuzzerTestOneInput(input, bytes);
    const uint64_t calls = fuzz_faults_count() + 1;
    const struct fuzz_faults schedules[] = {
        {.seed = seed, .only = 1 + seed * UINT64_C(0x9e3779b97f4a7c15) % calls},
        {.seed = seed, .only = 1 + seed * UINT64_C(0xd1342543de82ef95) % calls, .lasting = true},
        {.seed = seed, .one_in = 2 + (uint32_t)(seed * 7 % 23)},
        {.seed = seed, .one_in = 20 + (uint32_t)(seed * 31 % 400), .late = true},
        {.seed = seed, .late = true},
    };
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        fuzz_faults_set(schedules[i]);
        LLVMFuzzerTestOneInput(input, bytes);
    }
    fuzz_faults_set((struct fuzz_faults){0});
}

/* ---- the least corpus ---- */

/* The counters of clang's -fprofile-instr-generate; absent in other builds. */
extern uint64_t *__llvm_profile_begin_counters(void) __attribute__((weak));
extern uint64_t *__llvm_profile_end_counters(void) __attribute__((weak));
extern void __llvm_profile_reset_counters(void) __attribute__((weak));

struct input {
    const char *data;
    size_t bytes, at; /* at: place in the pack */
};

static int by_size(const void *a, const void *b)
{
    const struct input *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

/* Whether what has just run reached `least` places that `seen` does not have; then adds all of them. */
static bool reached_new(unsigned char *seen, size_t least)
{
    const uint64_t *counters = __llvm_profile_begin_counters();
    size_t n = (size_t)(__llvm_profile_end_counters() - counters), new = 0;
    for (size_t i = 0; i < n; i++)
        new += counters[i] != 0 && !seen[i];
    for (size_t i = 0; i < n && new >= least; i++)
        seen[i] |= counters[i] != 0;
    return new >= least;
}

static int least(const char *pack_path, const char *data, size_t bytes, const char *out_path, size_t places)
{
    size_t n = 0, kept = 0, at = 0;
    if (__llvm_profile_begin_counters == NULL || __llvm_profile_reset_counters == NULL)
        return fail("needs the build of tools/fuzz-coverage", "--least");
    for (size_t i = 0; i + 4 <= bytes; i += 4 + length_at(data + i))
        n++;
    struct input *inputs = calloc(n + 1, sizeof *inputs);
    unsigned char *seen =
        calloc((size_t)(__llvm_profile_end_counters() - __llvm_profile_begin_counters()) + 1, 1);
    FILE *out = fopen(out_path, "wb");
    if (inputs == NULL || seen == NULL || out == NULL)
        return fail("cannot be written", out_path);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = (struct input){.data = data + at + 4, .bytes = length_at(data + at), .at = at};
        at += 4 + inputs[i].bytes;
        if (at > bytes)
            return fail("is no pack", pack_path);
    }
    qsort(inputs, n, sizeof *inputs, by_size);
    for (size_t i = 0; i < n; i++) {
        __llvm_profile_reset_counters();
        LLVMFuzzerTestOneInput((const uint8_t *)inputs[i].data, inputs[i].bytes);
        if (!reached_new(seen, places))
            continue;
        fwrite(inputs[i].data - 4, 1, 4 + inputs[i].bytes, out);
        kept++;
    }
    free(inputs);
    free(seen);
    printf("%zu of %zu inputs\n", kept, n);
    return fclose(out) == 0 ? 0 : fail("cannot be written", out_path);
}

int main(int argc, char **argv)
{
    size_t bytes, at = 0;
    unsigned count = 0;
    if (argc >= 3 && strcmp(argv[1], "--pack") == 0)
        return pack(argv[2], argv + 3, argc - 3);
    if (argc == 4 && strcmp(argv[1], "--random") == 0)
        return random_inputs(strtoull(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
    bool faults = (argc == 4 || argc == 5) && strcmp(argv[1], "--faults") == 0 && fuzz_faults_set != NULL;
    unsigned every = faults && argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 1;
    bool unpack = argc == 4 && strcmp(argv[1], "--unpack") == 0,
         fewer = (argc == 4 || argc == 5) && strcmp(argv[1], "--least") == 0,
         one = argc == 3 && strcmp(argv[1], "-1") == 0;
    if (argc != 2 && !faults && !unpack && !fewer && !one)
        return fail("PACK, --unpack PACK FOLDER, --faults SEED PACK [N], --least PACK OUT [N], -1 FILE, "
                    "--pack PACK FILE...",
                    "usage");
    const char *path = argv[argc == 2 ? 1 : faults ? 3 : 2];
    char *data = clab_file_read(path, 64u << 20, &bytes);
    if (data == NULL)
        return fail("cannot be read", path);
    if (fewer)
        return least(path, data, bytes, argv[3], argc == 5 ? strtoul(argv[4], NULL, 10) : 1);
    if (one)
        LLVMFuzzerTestOneInput((const uint8_t *)data, bytes);
    while (!one && at + 4 <= bytes) {
        size_t length = length_at(data + at);
        if (length > bytes - at - 4)
            return fail("is no pack", path);
        char *input = malloc(length + 1); /* of its own, so that AddressSanitizer sees its end */
        if (input == NULL)
            return fail("no memory", path);
        memcpy(input, data + at + 4, length);
        if (unpack) {
            char name[4096];
            snprintf(name, sizeof name, "%s/%06u", argv[3], count);
            FILE *out = fopen(name, "wb");
            if (out == NULL || fwrite(input, 1, length, out) != length || fclose(out) != 0)
                return fail("cannot be written", name);
        } else if (faults && every != 0 && count % every != 0) {
            /* left out */
        } else if (faults) {
            with_faults(strtoull(argv[2], NULL, 10) + count, (const uint8_t *)input, length);
        } else {
            LLVMFuzzerTestOneInput((const uint8_t *)input, length);
        }
        free(input);
        at += 4 + length;
        count++;
    }
    free(data);
    if (!one && count == 0)
        return fail("holds no input", path);
    printf("%u inputs\n", count);
    return 0;
}
