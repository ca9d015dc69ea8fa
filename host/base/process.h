/* Child processes with pipes, a wall clock and no zombie: used for workers, the Lua evaluator and
 * disassemblers. */
#ifndef CLAB_BASE_PROCESS_H
#define CLAB_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct clab_process {
    pid_t pid;    /* 0 when not running */
    int to_fd;    /* write end of the child's stdin, or -1 */
    int from_fd;  /* read end of the child's stdout, or -1 */
    int error_fd; /* read end of the child's stderr, or -1 when inherited */
};

/* Starts argv[0] (absolute path, or searched in PATH) in its own process group, which dies with this process
   (PR_SET_PDEATHSIG). Stdin and stdout are pipes; stderr is a pipe when capture_stderr. extra_env: NULL or
   NULL-terminated "NAME=value" list added to the environment. 0, or -1 with errno. */
int clab_process_start(struct clab_process *process, const char *const *argv, const char *const *extra_env,
                       bool capture_stderr);
/* The same, without address space randomisation in the child (personality(2), ADDR_NO_RANDOMIZE) where the
   system allows that: some containers do not, and the child runs as always. */
int clab_process_start_fixed(struct clab_process *process, const char *const *argv,
                             const char *const *extra_env, bool capture_stderr);
/* Waits up to timeout_ms (-1: for ever) for the end. 1 ended (*out_status as waitpid gives it), 0 still
 * running. */
int clab_process_wait(struct clab_process *process, int timeout_ms, int *out_status);
/* SIGKILL to the group, reap, close the pipes. Safe to call twice. */
void clab_process_kill(struct clab_process *process);
/* Monotonic clock in nanoseconds. */
uint64_t clab_now_ns(void);

/* Buffered line reader over a descriptor with a deadline. Zero-initialise, set fd. */
struct clab_line_reader {
    int fd;
    char *buffer;
    size_t start, end, capacity;
};
/* Next line without its newline, borrowed until the next call. 1 line, 0 end of file, -1 error (errno),
   -2 deadline passed. timeout_ms -1: for ever. */
int clab_line_read(struct clab_line_reader *reader, int timeout_ms, char **out_line, size_t *out_bytes);
void clab_line_reader_free(struct clab_line_reader *reader);
/* Writes all bytes; 0, or -1 with errno (EPIPE is returned, never a signal, when SIGPIPE is ignored). */
int clab_write_all(int fd, const void *data, size_t bytes);
/* Whether `fd` is a pipe or socket that nobody reads any more, as after `| head`: what is written there then
   gets lost without harm to anyone. */
bool clab_is_unread(int fd);

#endif
