/* Accuses host/base/process.c: children, their pipes and end, lines with a deadline. Children are /bin/sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_shell(struct clab_process *process, const char *script, const char *const *env,
                        bool stderr_too)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    assert_int_equal(clab_process_start(process, argv, env, stderr_too), 0);
    assert_true(process->pid > 0);
}

/* Closes the child's stdin, waits for its end and returns its wait status. */
static int finish(struct clab_process *process)
{
    int status = -1;
    if (process->to_fd >= 0)
        close(process->to_fd);
    process->to_fd = -1;
    assert_int_equal(clab_process_wait(process, -1, &status), 1);
    assert_int_equal(process->pid, 0);
    clab_process_kill(process);
    clab_process_kill(process); /* twice is allowed */
    return status;
}

static void assert_next_line(struct clab_line_reader *reader, const char *wanted)
{
    char *line;
    size_t bytes;
    assert_int_equal(clab_line_read(reader, 20000, &line, &bytes), 1);
    assert_string_equal(line, wanted);
    assert_int_equal(bytes, strlen(wanted));
}

static void assert_no_more(struct clab_line_reader *reader)
{
    char *line;
    size_t bytes;
    assert_int_equal(clab_line_read(reader, 20000, &line, &bytes), 0);
    clab_line_reader_free(reader);
}

static void test_pipes_carry_all_three_streams(void **state)
{
    (void)state;
    struct clab_process process;
    start_shell(&process, "while read x; do echo out $x; echo err $x >&2; done; exit 3", NULL, true);
    assert_int_equal(clab_write_all(process.to_fd, "a\nb\n", 4), 0);
    close(process.to_fd);
    process.to_fd = -1;
    struct clab_line_reader out = {.fd = process.from_fd}, err = {.fd = process.error_fd};
    assert_next_line(&out, "out a");
    assert_next_line(&out, "out b");
    assert_no_more(&out);
    assert_next_line(&err, "err a");
    assert_next_line(&err, "err b");
    assert_no_more(&err);
    int status = finish(&process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void test_environment_is_added_to(void **state)
{
    (void)state;
    setenv("CLAB_TEST_KEPT", "kept", 1);
    setenv("CLAB_TEST_REPLACED", "old", 1);
    const char *const env[] = {"CLAB_TEST_REPLACED=new", "CLAB_TEST_ADDED=a=b", NULL};
    struct clab_process process;
    start_shell(&process,
                "echo $CLAB_TEST_KEPT $CLAB_TEST_REPLACED $CLAB_TEST_ADDED; env | grep -c ^CLAB_TEST_", env,
                false);
    assert_int_equal(process.error_fd, -1);
    struct clab_line_reader out = {.fd = process.from_fd};
    assert_next_line(&out, "kept new a=b");
    assert_next_line(&out, "3");
    assert_no_more(&out);
    finish(&process);
}

static void test_program_that_does_not_exist(void **state)
{
    (void)state;
    struct clab_process process;
    const char *const argv[] = {"/nonexistent/program", NULL};
    assert_int_equal(clab_process_start(&process, argv, NULL, true), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(process.pid, 0);
    assert_int_equal(process.from_fd, -1);
    clab_process_kill(&process);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    assert_int_equal(errno, ECHILD);
}

static void test_wait_has_a_wall_clock_and_kill_ends_the_group(void **state)
{
    (void)state;
    struct clab_process process;
    /* The grandchild holds the pipe's other end: end of file says that it is gone too. */
    start_shell(&process, "sleep 600 & echo started; sleep 600", NULL, false);
    struct clab_line_reader out = {.fd = process.from_fd};
    assert_next_line(&out, "started");
    int status = -1;
    uint64_t before_ns = clab_now_ns();
    assert_int_equal(clab_process_wait(&process, 50, &status), 0);
    uint64_t waited_ns = clab_now_ns() - before_ns;
    assert_true(waited_ns >= 50000000u);
    assert_true(waited_ns < 10000000000u);
    assert_int_equal(clab_process_wait(&process, 0, &status), 0);

    pid_t pid = process.pid;
    int pipe_fd = dup(process.from_fd);
    clab_process_kill(&process);
    assert_int_equal(process.pid, 0);
    assert_int_equal(process.from_fd, -1);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    out.fd = pipe_fd;
    assert_no_more(&out);
    close(pipe_fd);
}

static void test_wait_reports_the_signal(void **state)
{
    (void)state;
    struct clab_process process;
    start_shell(&process, "kill -SEGV $$", NULL, false);
    int status = finish(&process);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void test_child_inherits_no_descriptor(void **state)
{
    (void)state;
    int leaky = open("/dev/null", O_RDONLY); /* without close-on-exec, as a careless library does */
    assert_true(leaky > 2);
    struct clab_process other, process;
    start_shell(&other, "cat", NULL, true);
    /* ls itself opens the folder: 0, 1, 2 and one more */
    start_shell(&process, "ls /proc/self/fd | wc -l", NULL, true);
    struct clab_line_reader out = {.fd = process.from_fd};
    assert_next_line(&out, "4");
    assert_no_more(&out);
    finish(&process);
    clab_process_kill(&other);
    close(leaky);
}

static void test_child_has_default_signals_and_its_own_group(void **state)
{
    (void)state;
    struct clab_process process;
    /* This program ignores SIGPIPE (main); the child must not. Blocked signals must not be inherited either.
     */
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    start_shell(&process, "grep -E 'Sig(Blk|Ign)' /proc/self/status; read x", NULL, false);
    sigprocmask(SIG_SETMASK, &before, NULL);
    struct clab_line_reader out = {.fd = process.from_fd};
    char *line;
    size_t bytes;
    assert_int_equal(clab_line_read(&out, 20000, &line, &bytes), 1);
    assert_string_equal(line, "SigBlk:\t0000000000000000");
    assert_int_equal(clab_line_read(&out, 20000, &line, &bytes), 1);
    assert_memory_equal(line, "SigIgn:\t", 8);
    assert_int_equal(strtoull(line + 8, NULL, 16) & (1u << (SIGPIPE - 1)), 0);
    assert_int_equal(getpgid(process.pid), process.pid);
    clab_line_reader_free(&out);
    finish(&process);
}

static void test_child_dies_with_its_parent(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t middle = fork();
    assert_true(middle >= 0);
    if (middle == 0) {
        struct clab_process process;
        const char *const argv[] = {"sleep", "600", NULL};
        if (clab_process_start(&process, argv, NULL, false) < 0)
            _exit(1);
        if (clab_write_all(ends[1], &process.pid, sizeof process.pid) < 0)
            _exit(1);
        _exit(0); /* without killing the child */
    }
    close(ends[1]);
    pid_t orphan = 0;
    assert_int_equal(read(ends[0], &orphan, sizeof orphan), sizeof orphan);
    close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(middle, &status, 0), middle);
    assert_int_equal(status, 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)orphan);
    bool alive = true;
    for (int tries = 0; tries < 2000 && alive; tries++) {
        FILE *file = fopen(path, "r");
        char letter = 'Z';
        if (file) {
            if (fscanf(file, "%*d (%*[^)]) %c", &letter) != 1)
                letter = 'Z';
            fclose(file);
        }
        alive = letter != 'Z' && letter != 'X'; /* a zombie that nobody reaps is dead enough */
        if (alive)
            usleep(5000);
    }
    assert_false(alive);
}

static void test_standard_descriptors_may_be_closed(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(0);
        close(1);
        struct clab_process process;
        const char *const argv[] = {"sh", "-c", "read x; echo got $x", NULL};
        char *line;
        size_t bytes;
        if (clab_process_start(&process, argv, NULL, false) < 0)
            _exit(1);
        if (clab_write_all(process.to_fd, "y\n", 2) < 0)
            _exit(2);
        struct clab_line_reader out = {.fd = process.from_fd};
        if (clab_line_read(&out, 20000, &line, &bytes) != 1 || strcmp(line, "got y") != 0)
            _exit(3);
        clab_line_reader_free(&out);
        clab_process_kill(&process);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Where the C library lies in a child. */
static void place_of_libc(bool fixed, char *line, size_t bytes)
{
    const char *const argv[] = {"grep", "-m1", "libc[.-]", "/proc/self/maps", NULL};
    struct clab_process process;
    assert_int_equal(fixed ? clab_process_start_fixed(&process, argv, NULL, false)
                           : clab_process_start(&process, argv, NULL, false),
                     0);
    struct clab_line_reader reader = {.fd = process.from_fd};
    char *text;
    size_t length;
    assert_int_equal(clab_line_read(&reader, 10000, &text, &length), 1);
    snprintf(line, bytes, "%s", text);
    clab_line_reader_free(&reader);
    clab_process_kill(&process);
}

/* The same in each, whatever stack the parent may have; in ordinary children it moves. */
static void test_addresses_can_be_fixed(void **state)
{
    (void)state;
    char first[512], second[512], third[512], moving[4][512];
    struct rlimit saved, large;
    place_of_libc(true, first, sizeof first);
    place_of_libc(true, second, sizeof second);
    getrlimit(RLIMIT_STACK, &saved);
    large = saved;
    large.rlim_cur = large.rlim_max;
    setrlimit(RLIMIT_STACK, &large);
    place_of_libc(true, third, sizeof third);
    setrlimit(RLIMIT_STACK, &saved);
    bool moves = false;
    for (int i = 0; i < 4; i++) {
        place_of_libc(false, moving[i], sizeof moving[i]);
        moves = moves || strcmp(moving[i], moving[0]) != 0;
    }
    if (!moves || strcmp(first, second) != 0)
        skip(); /* nothing moves on this system, or it does not let us fix it */
    assert_string_equal(first, third);
}

static void test_lines_of_every_length(void **state)
{
    (void)state;
    struct clab_process process;
    start_shell(&process, "cat", NULL, false);
    struct clab_line_reader out = {.fd = process.from_fd};
    static char text[10002];
    static const size_t lengths[] = {0, 1, 4094, 4095, 4096, 10000, 3};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(text, 'a' + (int)i, sizeof text);
        text[lengths[i]] = '\n';
        assert_int_equal(clab_write_all(process.to_fd, text, lengths[i] + 1), 0);
        if (i % 2 == 0)
            continue; /* two lines at once half of the time */
        for (size_t j = i - 1; j <= i; j++) {
            char *line;
            size_t bytes;
            assert_int_equal(clab_line_read(&out, 20000, &line, &bytes), 1);
            assert_int_equal(bytes, lengths[j]);
            for (size_t b = 0; b < bytes; b++)
                assert_int_equal(line[b], 'a' + (int)j);
            assert_int_equal(line[bytes], 0);
        }
    }
    assert_next_line(&out, "ggg");
    char *line;
    size_t bytes;
    assert_int_equal(clab_line_read(&out, 0, &line, &bytes), -2);
    assert_int_equal(clab_write_all(process.to_fd, "half", 4), 0);
    assert_int_equal(clab_line_read(&out, 30, &line, &bytes), -2); /* what came is kept for the next call */
    assert_int_equal(clab_write_all(process.to_fd, " line\nlast", 10), 0);
    assert_next_line(&out, "half line");
    close(process.to_fd);
    process.to_fd = -1;
    assert_next_line(&out, "last"); /* no newline at the end */
    assert_no_more(&out);
    finish(&process);
    struct clab_line_reader closed = {.fd = -1};
    assert_int_equal(clab_line_read(&closed, -1, &line, &bytes), -1);
    assert_int_equal(errno, EBADF);
    clab_line_reader_free(&closed);
}

static void test_write_to_a_closed_pipe_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(clab_write_all(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

static void test_large_write_waits_for_a_full_pipe(void **state)
{
    (void)state;
    struct clab_process process;
    start_shell(&process, "sleep 0.1; wc -c", NULL, false);
    size_t bytes = 1 << 20;
    char *data = calloc(1, bytes);
    assert_non_null(data);
    fcntl(process.to_fd, F_SETFL, O_NONBLOCK);
    assert_int_equal(clab_write_all(process.to_fd, data, bytes), 0);
    free(data);
    close(process.to_fd);
    process.to_fd = -1;
    struct clab_line_reader out = {.fd = process.from_fd};
    assert_next_line(&out, "1048576");
    assert_no_more(&out);
    finish(&process);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as host/main.c does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes_carry_all_three_streams),
        cmocka_unit_test(test_environment_is_added_to),
        cmocka_unit_test(test_program_that_does_not_exist),
        cmocka_unit_test(test_wait_has_a_wall_clock_and_kill_ends_the_group),
        cmocka_unit_test(test_wait_reports_the_signal),
        cmocka_unit_test(test_child_inherits_no_descriptor),
        cmocka_unit_test(test_child_has_default_signals_and_its_own_group),
        cmocka_unit_test(test_child_dies_with_its_parent),
        cmocka_unit_test(test_standard_descriptors_may_be_closed),
        cmocka_unit_test(test_addresses_can_be_fixed),
        cmocka_unit_test(test_lines_of_every_length),
        cmocka_unit_test(test_write_to_a_closed_pipe_is_an_error),
        cmocka_unit_test(test_large_write_waits_for_a_full_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
