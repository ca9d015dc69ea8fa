/* Child processes: start with pipes, wait with a wall clock, kill the whole group; and line-wise reading.

   fork and exec rather than posix_spawn, which cannot set PR_SET_PDEATHSIG. Between the two only
   async-signal-safe calls are made, so that a process with threads may start children. The kernel ties the
   parent-death signal to the thread that forked: start children from a thread that outlives them.

   Interrupted system calls are taken up again; a caller that must notice a signal passes finite timeouts. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_LIMIT_BYTES = 64 * 1024 * 1024, /* a peer that never ends its line is an error, not a memory hog */
    STACK_BYTES = 8 * 1024 * 1024,       /* Linux's default */
    KILL_WAIT_MS = 10000, /* a task stuck inside a kernel driver may outlive SIGKILL for long */
};

uint64_t clab_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* environ with the extra entries put in place of those of the same name. The array is heap memory, its
   strings are borrowed. NULL when memory is out. */
static char **environment_with(const char *const *extra)
{
    size_t extras = 0, inherited = 0, used = 0;
    while (extra && extra[extras])
        extras++;
    while (environ && environ[inherited])
        inherited++;
    char **merged = malloc((extras + inherited + 1) * sizeof *merged);
    if (!merged)
        return NULL;
    for (size_t i = 0; i < inherited; i++) {
        bool replaced = false;
        for (size_t j = 0; j < extras && !replaced; j++) {
            size_t name_bytes = strcspn(extra[j], "=") + 1;
            replaced = !strncmp(environ[i], extra[j], name_bytes);
        }
        if (!replaced)
            merged[used++] = environ[i];
    }
    for (size_t j = 0; j < extras; j++)
        merged[used++] = (char *)(uintptr_t)extra[j]; /* execve's prototype lacks the const */
    merged[used] = NULL;
    return merged;
}

static void close_if_open(int *fd)
{
    /* Never 0 to 2: pipe_above_stdio gives none of them, and a zeroed struct clab_process names stdin. */
    if (*fd > STDERR_FILENO)
        close(*fd);
    *fd = -1;
}

/* A close-on-exec pipe, neither end on descriptors 0 to 2 (which the child's dup2 overwrites). 0, or -1 with
 * errno. */
static int pipe_above_stdio(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        if (ends[i] > STDERR_FILENO)
            continue;
        int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        int saved = errno;
        close(ends[i]);
        ends[i] = moved;
        if (moved < 0) {
            close_if_open(&ends[0]);
            close_if_open(&ends[1]);
            errno = saved;
            return -1;
        }
    }
    return 0;
}

enum { STDIN_PIPE, STDOUT_PIPE, STDERR_PIPE, START_PIPE, PIPES };

/* Marks every descriptor above stderr close-on-exec: also those that libraries opened without it. */
static void keep_descriptors_here(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 4u) == 0) /* 4 is CLOSE_RANGE_CLOEXEC, Linux 5.11 */
        return;
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 && limit < 4096 ? (int)limit : 4096); fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* The stack's limit decides where the kernel maps libraries; the hard limit stays. */
static void fix_stack_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < STACK_BYTES ? limit.rlim_max : STACK_BYTES;
        (void)setrlimit(RLIMIT_STACK, &limit);
    }
}

/* The child's side: never returns; a failure goes through the start pipe as its errno. */
static _Noreturn void run_child(const char *const *argv, char **environment, int pipes[PIPES][2],
                                pid_t parent, bool fixed)
{
    int failure = 0;
    const int persona = fixed ? personality(0xffffffff) : -1;
    if (persona != -1 && personality((unsigned long)persona | ADDR_NO_RANDOMIZE) != -1)
        fix_stack_limit();
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        failure = errno;
    if (getppid() != parent) /* it died before the signal was set */
        _exit(127);
    if (!failure &&
        (dup2(pipes[STDIN_PIPE][0], STDIN_FILENO) < 0 || dup2(pipes[STDOUT_PIPE][1], STDOUT_FILENO) < 0))
        failure = errno;
    if (!failure && pipes[STDERR_PIPE][1] >= 0 && dup2(pipes[STDERR_PIPE][1], STDERR_FILENO) < 0)
        failure = errno;
    keep_descriptors_here();
    /* An ignored signal stays ignored through exec: the main program's SIGPIPE is not every child's wish. */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!failure) {
        execvpe(argv[0], (char *const *)(uintptr_t)argv, environment);
        failure = errno;
    }
    ssize_t ignored = write(pipes[START_PIPE][1], &failure, sizeof failure);
    (void)ignored;
    _exit(127);
}

static void close_pipes(int pipes[PIPES][2])
{
    for (int i = 0; i < PIPES; i++) {
        close_if_open(&pipes[i][0]);
        close_if_open(&pipes[i][1]);
    }
}

static int start(struct clab_process *process, const char *const *argv, const char *const *extra_env,
                 bool capture_stderr, bool fixed)
{
    *process = (struct clab_process){.pid = 0, .to_fd = -1, .from_fd = -1, .error_fd = -1};
    int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int failure = 0;
    pid_t pid = -1;
    char **environment = environment_with(extra_env);
    if (!environment)
        failure = ENOMEM;
    for (int i = 0; i < PIPES && !failure; i++) {
        if ((i != STDERR_PIPE || capture_stderr) && pipe_above_stdio(pipes[i]) < 0)
            failure = errno;
    }
    if (!failure) {
        /* No handler of ours may run in the child before exec has reset it. */
        sigset_t all, saved_mask;
        pid_t parent = getpid();
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &saved_mask);
        pid = fork();
        if (pid == 0)
            run_child(argv, environment, pipes, parent, fixed);
        failure = pid < 0 ? errno : 0;
        pthread_sigmask(SIG_SETMASK, &saved_mask, NULL);
    }
    if (!failure) {
        /* The start pipe closes on exec; an errno in it says that exec never happened. */
        close_if_open(&pipes[START_PIPE][1]);
        ssize_t got;
        do
            got = read(pipes[START_PIPE][0], &failure, sizeof failure);
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof failure)
            failure = 0;
        if (failure) {
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        }
    }
    if (!failure) {
        process->pid = pid;
        process->to_fd = pipes[STDIN_PIPE][1];
        process->from_fd = pipes[STDOUT_PIPE][0];
        process->error_fd = pipes[STDERR_PIPE][0];
        pipes[STDIN_PIPE][1] = pipes[STDOUT_PIPE][0] = pipes[STDERR_PIPE][0] = -1;
    }
    close_pipes(pipes);
    free(environment);
    if (failure) {
        errno = failure;
        return -1;
    }
    return 0;
}

int clab_process_start(struct clab_process *process, const char *const *argv, const char *const *extra_env,
                       bool capture_stderr)
{
    return start(process, argv, extra_env, capture_stderr, false);
}

int clab_process_start_fixed(struct clab_process *process, const char *const *argv,
                             const char *const *extra_env, bool capture_stderr)
{
    return start(process, argv, extra_env, capture_stderr, true);
}

int clab_process_wait(struct clab_process *process, int timeout_ms, int *out_status)
{
    if (process->pid <= 0)
        return 0;
    uint64_t start_ns = clab_now_ns();
    uint64_t limit_ns = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;
    /* Polled: pidfd_open is missing on some kernels and sandboxes, and 5 ms are nothing to our callers. */
    long pause_ns = 50000;
    for (;;) {
        int status = 0;
        pid_t ended = waitpid(process->pid, &status, timeout_ms < 0 ? 0 : WNOHANG);
        if (ended < 0 && errno == EINTR)
            continue;
        if (ended != 0) {
            /* ECHILD (somebody else reaped it) leaves no status: reported as killed, never as success. */
            process->pid = 0;
            if (out_status)
                *out_status = ended > 0 ? status : SIGKILL;
            return 1;
        }
        if (clab_now_ns() - start_ns >= limit_ns)
            return 0;
        nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 2500000 ? 2 * pause_ns : 5000000;
    }
}

void clab_process_kill(struct clab_process *process)
{
    if (process->pid > 0) {
        kill(-process->pid, SIGKILL);
        clab_process_wait(process, KILL_WAIT_MS, NULL);
        process->pid = 0;
    }
    close_if_open(&process->to_fd);
    close_if_open(&process->from_fd);
    close_if_open(&process->error_fd);
}

/* Makes room for more input: moves the rest to the front, or doubles the buffer. 0, or -1 with errno. */
static int make_room(struct clab_line_reader *reader)
{
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->end + 1 < reader->capacity)
        return 0;
    if (reader->capacity >= LINE_LIMIT_BYTES) {
        errno = EMSGSIZE;
        return -1;
    }
    size_t capacity = reader->capacity ? 2 * reader->capacity : 4096;
    char *larger = realloc(reader->buffer, capacity);
    if (!larger) {
        errno = ENOMEM;
        return -1;
    }
    reader->buffer = larger;
    reader->capacity = capacity;
    return 0;
}

/* Waits for input. 1 readable, -1 error, -2 deadline passed. */
static int wait_readable(int fd, uint64_t start_ns, int timeout_ms)
{
    for (;;) {
        int left_ms = timeout_ms;
        if (timeout_ms >= 0) {
            uint64_t passed_ms = (clab_now_ns() - start_ns) / 1000000u;
            left_ms = passed_ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)passed_ms;
        }
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, left_ms);
        if (ready > 0)
            return 1;
        if (ready == 0)
            return -2;
        if (errno != EINTR)
            return -1;
    }
}

int clab_line_read(struct clab_line_reader *reader, int timeout_ms, char **out_line, size_t *out_bytes)
{
    uint64_t start_ns = clab_now_ns();
    size_t searched = reader->start;
    if (reader->fd < 0) { /* poll would wait for ever */
        errno = EBADF;
        return -1;
    }
    for (;;) {
        char *newline = NULL;
        if (reader->end > searched)
            newline = memchr(reader->buffer + searched, '\n', reader->end - searched);
        if (newline) {
            *newline = 0;
            *out_line = reader->buffer + reader->start;
            *out_bytes = (size_t)(newline - *out_line);
            reader->start = (size_t)(newline - reader->buffer) + 1;
            return 1;
        }
        size_t pending_bytes = reader->end - reader->start;
        if (make_room(reader) < 0)
            return -1;
        searched = reader->start + pending_bytes;

        int ready = wait_readable(reader->fd, start_ns, timeout_ms);
        if (ready < 0)
            return ready;
        ssize_t got = read(reader->fd, reader->buffer + reader->end, reader->capacity - reader->end - 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return -1;
        if (got == 0) {
            if (!pending_bytes)
                return 0;
            reader->buffer[reader->end] = 0; /* a last line without its newline */
            *out_line = reader->buffer + reader->start;
            *out_bytes = pending_bytes;
            reader->start = reader->end;
            return 1;
        }
        reader->end += (size_t)got;
    }
}

void clab_line_reader_free(struct clab_line_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
    reader->start = reader->end = reader->capacity = 0;
}

int clab_write_all(int fd, const void *data, size_t bytes)
{
    const char *next = data;
    while (bytes > 0) {
        ssize_t written = write(fd, next, bytes);
        if (written >= 0) {
            next += written;
            bytes -= (size_t)written;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

bool clab_is_unread(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    struct stat info;
    return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) &&
           poll(&polled, 1, 0) == 1 && (polled.revents & (POLLERR | POLLHUP)) != 0;
}
