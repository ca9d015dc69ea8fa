/* Another program under the hazard checker: with-emulator --check. */
#ifndef CLAB_CLI_WITH_CHECK_H
#define CLAB_CLI_WITH_CHECK_H

#include "cli/cli.h"

struct clab_with_check {
    const char *arch; /* of the emulated device, for the line that replays a hazard; NULL: its own default */
    const char *seed; /* of the schedules; NULL: the stand-in's own */
    const char *suppress; /* a suppression file, or NULL */
    bool fails;           /* hazards give status 1 where the program's is 0 */
};

/* Runs argv[0], whose environment has been prepared, to its end and then reports on stderr what the checkers
   found in all launches of it and of the processes that it started. The program's exit status, 128 + the
   number of the signal that ended it, or 1 (`fails`); 126 or 127 with `error` where it cannot be run; 2 with
   `error` for a bad suppression file. */
int clab_with_check_run(struct clab_cli *cli, const struct clab_with_check *options, char **argv,
                        struct clab_error *error);

#endif
