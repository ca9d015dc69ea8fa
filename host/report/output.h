/* A file that the user named for what a command puts out. It is proved writable at the start and replaced
   only once there is something to put into it: a mistake in the command line costs nobody an earlier result.
 */
#ifndef CLAB_REPORT_OUTPUT_H
#define CLAB_REPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct clab_output {
    FILE *file;      /* NULL: nothing is open */
    bool is_stdout;  /* the path was "-" */
    bool is_created; /* the file was not there before */
    bool is_begun;   /* earlier contents are gone */
    char path[4096];
};

/* Opens `path` for writing without touching what it holds; "-" is standard output. `what` names the contents
   in the message ("records", or NULL). CLAB_OUTPUT when it cannot be written. */
clab_status clab_output_open(struct clab_output *output, const char *path, const char *what,
                             struct clab_error *error);
/* Drops what the file held, the first time; false, with errno, when that fails. */
bool clab_output_begin(struct clab_output *output);
/* Closes; a file that clab_output_open made and nothing was written to is removed again. False, with errno,
   when buffered text could not be written. */
bool clab_output_close(struct clab_output *output);
/* Whether both are open on one and the same regular file or pipe. */
bool clab_output_same(const struct clab_output *a, const struct clab_output *b);

#endif
