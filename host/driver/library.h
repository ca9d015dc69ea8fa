/* One shared library of NVIDIA's, opened at run time into a struct of function pointers. Private to this
 * room. */
#ifndef CLAB_DRIVER_LIBRARY_H
#define CLAB_DRIVER_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* One member of the struct: where the pointer is stored, and which symbol it takes. */
struct clab_symbol {
    const char *name;
    size_t offset;
    int since; /* version of the library that brought it, as that library counts; 0 always */
    bool required;
};

/* Opens the first of `names` (NULL-terminated; paths or sonames) that can be opened, RTLD_NOW | RTLD_LOCAL,
   and writes the path it was found at to `path`. Returns the handle, or NULL with the loader's own words in
   `reason`. */
void *clab_library_open(const char *const *names, char *path, size_t path_bytes, char *reason,
                        size_t reason_bytes);

/* The same for a library of the toolkit: `path`, or the first of `names` where it is NULL. `what` is its name
   and `wheel` the pip wheel that has it. NULL with CLAB_NO_TOOLKIT and the remedy in `error`. */
void *clab_library_tool(const char *path, const char *const *names, const char *what, const char *wheel,
                        char *out_path, size_t path_bytes, struct clab_error *error);

/* Looks up each symbol and stores it at base + offset; NULL where the library lacks it. Returns the first
   missing required symbol, or NULL when all are there. `resolve` (may be NULL) is asked for names that the
   library does not have as spelt. */
const struct clab_symbol *clab_library_fill(void *handle, const struct clab_symbol *symbols, size_t count,
                                            void *base, void *(*resolve)(void *handle, const char *name));

#endif
