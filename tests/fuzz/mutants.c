/* Mutants (mutate.h) of PTX files, loaded and launched by fuzz_run.c, each file's in a child. A child that
   dies, takes longer for a mutant than ten seconds of processor time or a minute, or holds over two gigabytes
   is a defect of the stand-in.

   usage: fuzz_mutants SEED COUNT FILE...     so many of each file; status 1 when one was a defect
          fuzz_mutants --show SEED FILE       the mutant as text */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "mutate.h"
#include "target.h"

enum { CPU_SECONDS = 10, SECONDS = 60, MOST_KIB = 2 << 20, MOST_BYTES = 4 << 20 };

/* The number of the mutant that runs; shared with the parent. */
static _Atomic uint64_t *at_work;

_Noreturn static void child(uint64_t seed, uint64_t first, uint64_t count, const char *text, size_t bytes)
{
    char *mutant = malloc(bytes * 2 + 65536);
    for (uint64_t i = first; mutant != NULL && i < count; i++) {
        struct rusage used;
        *at_work = i;
        alarm(SECONDS);
        setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = CPU_SECONDS}}, NULL);
        const size_t length = fuzz_mutate(seed + i, text, bytes, mutant, bytes * 2 + 65536);
        LLVMFuzzerTestOneInput((const uint8_t *)mutant, length);
        alarm(0);
        if (getrusage(RUSAGE_SELF, &used) == 0 && used.ru_maxrss > MOST_KIB) {
            fprintf(stderr, "mutants: %ld KiB\n", used.ru_maxrss);
            _exit(3);
        }
    }
    free(mutant);
    *at_work = count;
    exit(mutant == NULL);
}

static unsigned one_file(uint64_t seed, uint64_t count, const char *path)
{
    size_t bytes;
    unsigned defects = 0;
    char *text = clab_file_read(path, MOST_BYTES, &bytes);
    if (text == NULL) {
        fprintf(stderr, "mutants: %s cannot be read\n", path);
        return 1;
    }
    *at_work = 0;
    for (uint64_t first = 0; first < count && defects < 10; first = *at_work + 1) {
        int status = 0;
        const pid_t pid = fork();
        if (pid == 0)
            child(seed, first, count, text, bytes);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        if (pid > 0 && status == 0)
            break;
        fprintf(stderr, "mutants: %s: seed %llu: %s %d\n", path, (unsigned long long)(seed + *at_work),
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        defects++;
    }
    free(text);
    return defects;
}

int main(int argc, char **argv)
{
    size_t bytes;
    unsigned defects = 0;
    if (argc == 4 && strcmp(argv[1], "--show") == 0) {
        char *text = clab_file_read(argv[3], MOST_BYTES, &bytes), *mutant = malloc(bytes * 2 + 65536);
        if (text == NULL || mutant == NULL)
            return 2;
        fwrite(mutant, 1, fuzz_mutate(strtoull(argv[2], NULL, 10), text, bytes, mutant, bytes * 2 + 65536),
               stdout);
        free(text);
        free(mutant);
        return 0;
    }
    if (argc < 4) {
        fputs("usage: fuzz_mutants SEED COUNT FILE...\n", stderr);
        return 2;
    }
    at_work = mmap(NULL, sizeof *at_work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at_work == MAP_FAILED)
        return 2;
    for (int i = 3; i < argc; i++)
        defects += one_file(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), argv[i]);
    printf("%d files, %s mutants each, %u defects\n", argc - 3, argv[2], defects);
    return defects ? 1 : 0;
}
