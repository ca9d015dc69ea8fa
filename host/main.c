/* clusterlab's entry point: picks the subcommand, prints the last error, exits. The only printer of last
 * resort. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"
#include "cli/cli.h"
#include "compile/compile.h"
#include "lab/worker.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    if (interrupted)
        _exit(clab_status_exit(CLAB_INTERRUPTED)); /* the second one does not wait */
    interrupted = 1;
}

static void print_help(FILE *file)
{
    fputs("clusterlab " CLAB_VERSION ": a workbench for NVIDIA thread block clusters\n\n"
          "usage: clusterlab COMMAND [options]    (clusterlab COMMAND --help tells more)\n\n",
          file);
    for (const struct clab_command_info *command = clab_commands; command->name != NULL; command++)
        fprintf(file, "  %-14s %s\n", command->name, command->summary);
    fputs("\nTry: clusterlab run reduce\n", file);
}

/* A closed descriptor 0, 1 or 2 would be given to the next pipe or file opened, and what is printed would go
   there. Held by something that can only be read, it stays what it was: a place where writing fails. */
static void hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDONLY) != fd)
            _exit(clab_status_exit(CLAB_INTERNAL));
}

/* The last thing before the exit: what is buffered goes out, or the status says that it could not. A reader
   that has seen enough (| head) is no failure. */
static int finish(int status)
{
    if ((fflush(stdout) == 0 && ferror(stdout) == 0) || clab_is_unread(STDOUT_FILENO))
        return status;
    fputs("clusterlab: standard output could not be written\n", stderr);
    return clab_exit_worse(status, clab_status_exit(CLAB_OUTPUT));
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int unknown_command(const char *name, struct clab_error *error)
{
    const char *names[32];
    size_t n = 0;
    for (const struct clab_command_info *command = clab_commands; command->name != NULL && n < 32; command++)
        names[n++] = command->name;
    const char *nearest = clab_nearest_name(name, names, n);
    clab_error_set(error, CLAB_USAGE, "unknown command '%s'", name);
    if (nearest != NULL)
        clab_error_remedy(error, "did you mean %s?", nearest);
    else
        clab_error_remedy(error, "clusterlab --help lists the commands");
    return clab_status_exit(CLAB_USAGE);
}

static int dispatch(struct clab_cli *cli, int argc, char **argv, struct clab_error *error)
{
    const bool asks = argc > 1 && strcmp(argv[0], "help") == 0; /* help COMMAND */
    if (asks)
        argv++;
    for (const struct clab_command_info *command = clab_commands; command->name != NULL; command++) {
        if (strcmp(command->name, argv[0]) != 0)
            continue;
        if (asks || wants_help(argc, argv)) {
            fputs(command->usage, cli->out);
            return 0;
        }
        return command->run(cli, argc, argv, error);
    }
    return unknown_command(argv[0], error);
}

int main(int argc, char **argv)
{
    hold_closed_streams();
    /* A write that fails is told where it is made: to a pipe that nobody reads, to a file beyond `ulimit -f`.
     */
    struct sigaction action = {.sa_handler = SIG_IGN}, pipe_before, size_before;
    sigaction(SIGPIPE, &action, &pipe_before);
    sigaction(SIGXFSZ, &action, &size_before);
    /* Workers: this same program behind a pipe. */
    if (argc == 2 && strcmp(argv[1], "--device-worker") == 0)
        return clab_device_worker(STDIN_FILENO, STDOUT_FILENO);
    if (argc == 2 && strcmp(argv[1], "--compile-worker") == 0)
        return clab_compile_worker(STDIN_FILENO, STDOUT_FILENO);
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* ignored: under nohup */
        sigaction(SIGHUP, &action, NULL);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (argc == 2 && strcmp(argv[1], "help") == 0)) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? clab_status_exit(CLAB_USAGE) : finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("clusterlab " CLAB_VERSION);
        return finish(0);
    }
    struct clab_cli cli = {.out = stdout,
                           .err = stderr,
                           .err_is_terminal = isatty(STDERR_FILENO) == 1,
                           .interrupted = &interrupted,
                           .pipe_before = pipe_before,
                           .size_before = size_before,
                           .argc = argc,
                           .argv = argv};
    struct clab_error error = {0};
    int status = dispatch(&cli, argc - 1, argv + 1, &error);
    if (error.status != CLAB_OK) {
        char *text = clab_error_format(&error);
        fprintf(stderr, "clusterlab: %s\n", text != NULL ? text : error.message);
        free(text);
    }
    clab_error_clear(&error);
    return finish(status);
}
