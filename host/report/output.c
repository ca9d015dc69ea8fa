/* Output files: opened first, emptied late (POSIX.1-2008 open, ftruncate). Leaves out: replacing by rename,
   since records are read while a run goes on, and what was measured before a crash stays. */
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

clab_status clab_output_open(struct clab_output *output, const char *path, const char *what,
                             struct clab_error *error)
{
    memset(output, 0, sizeof *output);
    snprintf(output->path, sizeof output->path, "%s", path);
    output->is_stdout = strcmp(path, "-") == 0;
    if (output->is_stdout) {
        output->file = stdout;
        return CLAB_OK;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    output->is_created = fd >= 0;
    if (fd < 0 && errno == EEXIST) /* a link to a file that is not there exists, too: O_CREAT */
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    output->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (output->file != NULL)
        return CLAB_OK;
    const int code = errno;
    if (fd >= 0)
        close(fd);
    if (output->is_created)
        unlink(path);
    return clab_error_set(error, CLAB_OUTPUT, "cannot write %s%s%s: %s", what != NULL ? what : "",
                          what != NULL ? " to " : "", path, strerror(code));
}

bool clab_output_begin(struct clab_output *output)
{
    struct stat facts;
    if (output->is_begun)
        return true;
    output->is_begun = true;
    if (output->is_stdout || output->is_created || fstat(fileno(output->file), &facts) != 0 ||
        !S_ISREG(facts.st_mode)) /* a pipe or a device has nothing to drop */
        return true;
    return ftruncate(fileno(output->file), 0) == 0;
}

bool clab_output_close(struct clab_output *output)
{
    if (output->file == NULL)
        return true;
    const bool done = (output->is_stdout ? fflush(output->file) : fclose(output->file)) == 0;
    const int code = errno;
    if (output->is_created && !output->is_begun)
        unlink(output->path);
    output->file = NULL;
    errno = code;
    return done;
}

bool clab_output_same(const struct clab_output *a, const struct clab_output *b)
{
    struct stat of_a, of_b;
    if (a->file == NULL || b->file == NULL || fstat(fileno(a->file), &of_a) != 0 ||
        fstat(fileno(b->file), &of_b) != 0)
        return false;
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino &&
           (S_ISREG(of_a.st_mode) || S_ISFIFO(of_a.st_mode));
}
