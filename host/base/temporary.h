/* Temporary files and folders, where $TMPDIR says. */
#ifndef CLAB_BASE_TEMPORARY_H
#define CLAB_BASE_TEMPORARY_H

#include <stddef.h>

/* $TMPDIR when that is an absolute path, else /tmp. Borrowed. */
const char *clab_temporary_root(void);
/* Makes an empty file, readable by its owner only, named after `what` in clab_temporary_root; its path goes
   to path[0..bytes). The caller removes it. 0, or -1 with errno and an empty path. */
int clab_temporary_file(const char *what, char *path, size_t bytes);
/* The same for an empty folder. */
int clab_temporary_folder(const char *what, char *path, size_t bytes);

#endif
