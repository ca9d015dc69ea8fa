/* Temporary files and folders: mkstemp and mkdtemp under $TMPDIR (POSIX.1-2017, 8.3 "TMPDIR"). */
#include "base/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *clab_temporary_root(void)
{
    const char *root = getenv("TMPDIR");
    return root != NULL && root[0] == '/' ? root : "/tmp";
}

static int name(const char *what, char *path, size_t bytes)
{
    int length = snprintf(path, bytes, "%s/clusterlab-%s-XXXXXX", clab_temporary_root(), what);
    if (length > 0 && (size_t)length < bytes)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int clab_temporary_file(const char *what, char *path, size_t bytes)
{
    int fd = name(what, path, bytes) == 0 ? mkstemp(path) : -1;
    if (fd < 0)
        path[0] = '\0';
    else
        close(fd);
    return fd < 0 ? -1 : 0;
}

int clab_temporary_folder(const char *what, char *path, size_t bytes)
{
    if (name(what, path, bytes) == 0 && mkdtemp(path) != NULL)
        return 0;
    path[0] = '\0';
    return -1;
}
