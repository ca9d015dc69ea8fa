/* The command line: one function per subcommand, and what they share. */
#ifndef CLAB_CLI_CLI_H
#define CLAB_CLI_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "compile/compile.h"
#include "lab/session.h"

/* How far a command is (progress.c). */
struct clab_progress {
    bool is_log;       /* --progress: whole lines */
    uint64_t every_ns; /* between two of them, at least */
    uint64_t start_ns, told_ns;
    bool is_shown; /* a terminal has one to take back */
    char text[512];
};

struct clab_cli {
    FILE *out, *err; /* product; progress and notes */
    bool err_is_terminal;
    const volatile sig_atomic_t *interrupted;
    struct sigaction pipe_before, size_before; /* SIGPIPE and SIGXFSZ as this process found them */
    int argc;                                  /* the whole command line, for records */
    char *const *argv;
    struct clab_progress progress;
};

/* A subcommand. argv[0] is its name. Returns the process's exit status; a status that needs words fills
   `error`, which main prints. */
typedef int clab_command(struct clab_cli *cli, int argc, char **argv, struct clab_error *error);

struct clab_command_info {
    const char *name;
    clab_command *run;
    const char *summary; /* one line for `clusterlab --help` */
    const char *usage;   /* whole text of `clusterlab NAME --help` */
};
extern const struct clab_command_info clab_commands[]; /* ends with a NULL name */

clab_command clab_cmd_list, clab_cmd_devices, clab_cmd_doctor, clab_cmd_run, clab_cmd_launch,
    clab_cmd_compile, clab_cmd_check, clab_cmd_compare, clab_cmd_with_emulator, clab_cmd_inspect,
    clab_cmd_diff, clab_cmd_matrix;

/* --- options (options.c)
 * ------------------------------------------------------------------------------------------ */
#define CLAB_MAX_REPEAT 64
enum clab_option_kind { CLAB_OPTION_FLAG, CLAB_OPTION_TEXT, CLAB_OPTION_LIST };
struct clab_option {
    const char *name; /* "--cluster" */
    enum clab_option_kind kind;
    bool set;
    const char *text;                  /* TEXT: the value; a second one is a usage error */
    const char *list[CLAB_MAX_REPEAT]; /* LIST: every value in order */
    size_t count;
};
/* Parses argv[1..] into `options` (ended by a NULL name); the rest goes to `positional` (room for
   `max_positional`), everything after "--" too. "--name value" and "--name=value". --help is the caller's: it
   is looked for first by main. CLAB_USAGE with the nearest option for an unknown one, and for a TEXT option
   given twice. */
clab_status clab_options_parse(struct clab_option *options, int argc, char **argv, const char **positional,
                               size_t max_positional, size_t *out_positional, struct clab_error *error);
const struct clab_option *clab_option_get(const struct clab_option *options, const char *name);
/* A decimal number within [low, high]; CLAB_USAGE otherwise. */
clab_status clab_option_number(const struct clab_option *option, long long low, long long high,
                               long long *out_value, struct clab_error *error);

/* The same for a command that compiles: -IDIR, -I DIR, -DNAME and -o DIR stand for --include, --define and
   --out. */
clab_status clab_options_parse_compiler(struct clab_option *options, int argc, char **argv,
                                        const char **positional, size_t max_positional,
                                        size_t *out_positional, struct clab_error *error);
/* What --include, --define and --option say, into a request (borrowed from the options). */
void clab_cli_compiler_words(const struct clab_option *options, struct clab_compile_request *request);

/* CLAB_USAGE unless the file's name says what it holds: .cu, .ptx, .cubin or .fatbin. Whether it exists is
 * not asked. */
clab_status clab_cli_source_check(const char *path, struct clab_error *error);
/* CLAB_USAGE unless `path`, a word of the command line, is a file that can be read. */
clab_status clab_cli_file_check(const char *path, struct clab_error *error);

/* Whether standard output is a terminal that may be coloured (NO_COLOR unset or empty), and its columns (0:
   no terminal). (inspect.c) */
bool clab_cli_colour(const struct clab_cli *cli);
int clab_cli_width(const struct clab_cli *cli);

/* --- what is said besides (progress.c)
 * ------------------------------------------------------------------------------------------ */
/* Reads --progress S (0 to 3600 seconds) of a command that may take long. CLAB_USAGE. */
clab_status clab_cli_progress_start(struct clab_cli *cli, const struct clab_option *options,
                                    struct clab_error *error);
/* "STAGE DONE/COUNT WHAT" on cli->err: on a terminal, or with --progress. `context` is the struct clab_cli.
 */
void clab_cli_progress(void *context, const char *stage, const char *what, size_t done, size_t count);
/* The same words again, when --progress asks for them: called while a command waits. */
void clab_cli_progress_wait(void *context);
/* Takes the terminal's line back: before anything else is said, and at the end. */
void clab_cli_progress_erase(struct clab_cli *cli);
/* Before another program takes this process's place: signals are as they were found. */
void clab_cli_restore_signals(const struct clab_cli *cli);
/* "clusterlab: " and the whole error, on cli->err. */
void clab_cli_say(struct clab_cli *cli, const struct clab_error *error);

/* --- one launch from the command line (launch_options.c)
 * ------------------------------------------------------------------------------------------ */
/* What --grid, --block, --cluster, --smem, --cooperative and --arg ask for, as a plan row {"launch", "args"}
   and a buffer list (new references, also on failure). CLAB_USAGE for a malformed one, or one that no device
   takes; whether --grid and --block are there is the caller's to ask. */
clab_status clab_cli_launch_row(const struct clab_option *options, json_t **out_row, json_t **out_buffers,
                                struct clab_error *error);

/* --- devices (session_default.c)
 * ---------------------------------------------------------------------------------- */
/* CLAB_USAGE, naming --device, unless `device` is cuda:N or an emulated device that there is. Whether the
   machine has that GPU is not asked. */
clab_status clab_cli_device_check(const char *device, struct clab_error *error);
/* Opens `device`, or the default for NULL: cuda:0 where a driver and a CC 9.0 or later GPU exist, else
   emu:sm_90, said in one line on cli->err. The session tells of progress while it waits. */
clab_status clab_cli_open(struct clab_cli *cli, const char *device, json_t *options,
                          struct clab_session *session, struct clab_error *error);
/* Emulator options given as --emu-NAME VALUE: an object for clab_session_open, NULL when none (new
 * reference). */
json_t *clab_cli_emulator_options(const struct clab_option *options);

#endif
