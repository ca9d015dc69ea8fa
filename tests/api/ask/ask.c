/* Asks a libcuda some thousand questions and prints one line for each answer: on a GPU that is evidence, on
   the stand-in it is compared with that evidence (../conformance.py).

   usage: ask [SECTION]…       all sections if none is named

   Each section runs in a child. A call that crashes the driver, or does not return within 6 s, is recorded as
   such: the section starts again, in silence up to that call, and leaves it out. What makes a context
   unusable has a child of its own (ask_child). */
#include "ask.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CRASHES  200
#define CALL_SECONDS 6

static struct progress {
    int step;                     /* the call in progress */
    int crashes, at[MAX_CRASHES]; /* calls that crashed so far */
    char name[256];               /* in full */
} * progress;                     /* shared with the parent */
static int step;
static bool quiet; /* on the way to a call after a crash */
static const char *section;
static char prefix[96];

void ask_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!quiet)
        vprintf(format, args);
    va_end(args);
}

const char *ask_name(const char *format, ...)
{
    static char names[32][128];
    static int next;
    char *name = names[next++ % 32];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof names[0], format, args);
    va_end(args);
    return name;
}

void ask_prefix(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
}

bool ask_begin(const char *name)
{
    const int last = progress->crashes > 0 ? progress->at[progress->crashes - 1] : -1;
    step++;
    quiet = step <= last;
    progress->step = step;
    for (int i = 0; i < progress->crashes; i++)
        if (progress->at[i] == step)
            return false;
    alarm(CALL_SECONDS);
    snprintf(progress->name, sizeof progress->name, "%s/%s%s%s", section, prefix,
             prefix[0] != '\0' ? " " : "", name);
    return true;
}

void ask_answer(int result)
{
    ask_say("%s: %d", progress->name, result);
}

uint64_t ask_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In a child, again and again while it crashes. */
static void run(void (*function)(const void *), const void *argument)
{
    struct progress *const outer = progress;
    const bool outer_quiet = quiet;
    if (outer_quiet)
        return;
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    const int outer_step = step;
    for (;;) {
        fflush(stdout);
        alarm(0);
        const pid_t child = fork();
        if (child == 0) {
            step = 0;
            quiet = progress->crashes > 0;
            function(argument);
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status == 0)
            break;
        if (!WIFSIGNALED(status) || progress->step == 0 || progress->crashes == MAX_CRASHES ||
            (progress->crashes > 0 && progress->at[progress->crashes - 1] >= progress->step)) {
            printf("%s/%s ended with status %d after %s\n", section, prefix, status, progress->name);
            break;
        }
        printf("%s: %s\n", progress->name, WTERMSIG(status) == SIGALRM ? "hangs" : "crashes");
        progress->at[progress->crashes++] = progress->step;
        progress->step = 0;
    }
    munmap(progress, sizeof *progress);
    progress = outer;
    step = outer_step;
    quiet = outer_quiet;
}

void ask_child(const char *name, void (*function)(const void *), const void *argument)
{
    char before[sizeof prefix];
    memcpy(before, prefix, sizeof before);
    ask_prefix("%s", name);
    run(function, argument);
    memcpy(prefix, before, sizeof before);
}

static void run_section(const void *argument)
{
    void (*const *const function)(void) = argument;
    (*function)();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } sections[] = {
#define SECTION(name) {#name, section_##name},
#include "sections.def"
    };
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setenv("CUDA_VISIBLE_DEVICES", "0", 1); /* one device, on any machine */
    setvbuf(stdout, NULL, _IOLBF, 1 << 12); /* a crash loses no line */
    for (size_t s = 0; s < COUNT(sections); s++) {
        bool wanted = argc == 1;
        for (int i = 1; i < argc; i++)
            wanted = wanted || strcmp(argv[i], sections[s].name) == 0;
        if (!wanted)
            continue;
        section = sections[s].name;
        prefix[0] = '\0';
        run(run_section, &sections[s].run);
    }
    return 0;
}
