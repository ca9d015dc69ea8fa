/* Growable text. A failed allocation sets `failed` and later calls do nothing, so callers check once at the
 * end. */
#ifndef CLAB_BASE_STR_H
#define CLAB_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise to start empty. `text` is NUL-terminated once anything was added (NULL before). */
struct clab_str {
    char *text;
    size_t bytes, capacity;
    bool failed;
};

void clab_str_add(struct clab_str *str, const char *text);
void clab_str_add_bytes(struct clab_str *str, const char *text, size_t bytes);
void clab_str_addf(struct clab_str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clab_str_vaddf(struct clab_str *str, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* Hands the text to the caller (heap, to be freed; "" if empty) and resets. NULL when an allocation had
 * failed. */
char *clab_str_take(struct clab_str *str);
void clab_str_free(struct clab_str *str);

/* Reads a whole file (at most limit_bytes) into heap memory with a NUL added; *out_bytes without it.
   NULL with errno set on failure (EFBIG when too large). */
char *clab_file_read(const char *path, size_t limit_bytes, size_t *out_bytes);
/* Writes atomically: temporary file in the same folder, fsync, rename. 0, or -1 with errno. */
int clab_file_write_atomic(const char *path, const void *data, size_t bytes);
/* The same without fsync (5 ms on our disk): for what can be made again and has a checksum, as in caches, and
   for temporary files. After a crash of the system it may be empty or cut. */
int clab_file_write_quick(const char *path, const void *data, size_t bytes);
/* The path as a record shows it: without the current folder in front when it lies below that, else as it is.
   A pointer into `path`. */
const char *clab_path_shown(const char *path);
/* A file's name as compilers and disassemblers write it in quotes, back to what it is, in place: bytes beyond
   ASCII, quotes and backslashes stand there as \346, \" and \\ (the manual has no word about it: PTX ISA 9.0,
   "Debugging Directives: .file"). */
void clab_unescape(char *name);
/* Nearest of `count` names to `word` by edit distance, or NULL when none is close (distance > 1/3 of the
 * length). */
const char *clab_nearest_name(const char *word, const char *const *names, size_t count);

#endif
