/* What programs share that ask a libcuda questions and print one line per answer. A section runs in a child;
   a call that crashes the driver is recorded as such: the section starts again, in silence up to that call,
   and leaves it out. The includer is one program; nothing is linked to, the functions come from dlopen
   through host/driver/cuda.def. */
#ifndef CLAB_TESTS_API_PROBING_H
#define CLAB_TESTS_API_PROBING_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cuda_names.h"

#ifndef PROBE_SECTION_SECONDS
#define PROBE_SECTION_SECONDS 60 /* what takes longer counts as a crash */
#endif

static struct {
#define CU(symbol, base, since, required) __typeof__(symbol) *symbol;
#include "driver/cuda.def"
} cu;

#define MAX_CRASHES 64
static struct progress {
    int step;                     /* the call in progress */
    int crashes, at[MAX_CRASHES]; /* calls that crashed so far */
} * progress;                     /* shared with the parent */
static int step;
static bool quiet; /* on the way to a call after a crash */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!quiet)
        vprintf(format, args);
    va_end(args);
}

/* Is the next call to be made? */
static bool step_begin(const char *text)
{
    int crashed = progress->crashes > 0 ? progress->at[progress->crashes - 1] : -1;
    step++;
    quiet = step < crashed;
    progress->step = step;
    for (int i = 0; i < progress->crashes; i++)
        if (progress->at[i] == step) {
            say("%s crashes\n", text);
            return false;
        }
    return true;
}

/* Makes a call and says what it returned. */
#define SAY(text, call)                        \
    do {                                       \
        if (step_begin(text))                  \
            say("%s %d\n", text, (int)(call)); \
    } while (0)

static CUcontext context;

/* The primary context of device 0, current. */
static void start(void)
{
    if (cu.cuInit(0) != CUDA_SUCCESS || cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cu.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        say("no device\n");
        exit(77);
    }
}

/* In a child, again and again while it crashes at a call. */
static void run_section(const char *name, void (*run)(void))
{
    *progress = (struct progress){0};
    for (;;) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(PROBE_SECTION_SECONDS);
            quiet = progress->crashes > 0;
            run();
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status == 0)
            return;
        if (!WIFSIGNALED(status) || progress->step == 0 || progress->crashes == MAX_CRASHES ||
            (progress->crashes > 0 && progress->at[progress->crashes - 1] >= progress->step)) {
            printf("section %s ended with status %d\n", name, status);
            return;
        }
        progress->at[progress->crashes++] = progress->step;
        progress->step = 0;
    }
}

struct section {
    const char *name;
    void (*run)(void);
};

/* argv: LIBCUDA SECTION…; no section: all of them. */
static int run_sections(int argc, char **argv, const struct section *sections, size_t count)
{
    if (argc < 2)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
#define CU(symbol, base, since, required) *(void **)&cu.symbol = dlsym(library, #symbol);
#include "driver/cuda.def"
    for (size_t s = 0; s < count; s++) {
        bool wanted = argc == 2;
        for (int i = 2; i < argc; i++)
            wanted = wanted || strcmp(argv[i], sections[s].name) == 0;
        if (wanted)
            run_section(sections[s].name, sections[s].run);
    }
    return 0;
}

#endif
