/* Growable text, whole-file reading and writing, and the nearest name to a misspelt one. */
#include "base/str.h"

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for `bytes` more and the NUL; false, with `failed` set, when there is none. */
static bool reserve(struct clab_str *str, size_t bytes)
{
    if (str->failed)
        return false;
    if (str->capacity - str->bytes > bytes)
        return true;
    size_t wanted = str->capacity ? str->capacity : 64;
    while (wanted <= SIZE_MAX / 2 && wanted - str->bytes <= bytes)
        wanted *= 2;
    char *larger = wanted - str->bytes > bytes ? realloc(str->text, wanted) : NULL;
    if (!larger) {
        str->failed = true;
        return false;
    }
    str->text = larger;
    str->capacity = wanted;
    return true;
}

void clab_str_add_bytes(struct clab_str *str, const char *text, size_t bytes)
{
    if (!reserve(str, bytes))
        return;
    if (bytes)
        memcpy(str->text + str->bytes, text, bytes);
    str->bytes += bytes;
    str->text[str->bytes] = 0;
}

void clab_str_add(struct clab_str *str, const char *text)
{
    clab_str_add_bytes(str, text, strlen(text));
}

void clab_str_vaddf(struct clab_str *str, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, args);
    if (bytes < 0)
        str->failed = true;
    else if (reserve(str, (size_t)bytes)) {
        vsnprintf(str->text + str->bytes, (size_t)bytes + 1, format, again);
        str->bytes += (size_t)bytes;
    }
    va_end(again);
}

void clab_str_addf(struct clab_str *str, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    clab_str_vaddf(str, format, args);
    va_end(args);
}

char *clab_str_take(struct clab_str *str)
{
    if (!str->failed && !str->text)
        clab_str_add_bytes(str, "", 0);
    char *text = str->text;
    if (str->failed) {
        free(text);
        text = NULL;
    }
    *str = (struct clab_str){0};
    return text;
}

void clab_str_free(struct clab_str *str)
{
    free(str->text);
    *str = (struct clab_str){0};
}

/* Closes and frees without losing the errno that is to be reported. */
static void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

char *clab_file_read(const char *path, size_t limit_bytes, size_t *out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct stat status;
    size_t capacity = 4096; /* a file of /proc says 0 bytes, so the size is only a first guess */
    if (fstat(fd, &status) == 0 && status.st_size > 0 && (uintmax_t)status.st_size < limit_bytes)
        capacity = (size_t)status.st_size + 2; /* one to find the end without growing, one for the NUL */
    char *text = malloc(capacity);
    size_t bytes = 0;
    while (text) {
        if (bytes + 1 >= capacity) {
            char *larger = capacity <= SIZE_MAX / 2 ? realloc(text, capacity * 2) : NULL;
            if (!larger) {
                errno = ENOMEM;
                break;
            }
            text = larger;
            capacity *= 2;
        }
        ssize_t got = read(fd, text + bytes, capacity - bytes - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        bytes += (size_t)got;
        if (bytes > limit_bytes) {
            errno = EFBIG;
            break;
        }
        if (got == 0) {
            close(fd);
            text[bytes] = 0;
            if (out_bytes)
                *out_bytes = bytes;
            return text;
        }
    }
    close_keeping_errno(fd);
    int saved = errno;
    free(text);
    errno = saved;
    return NULL;
}

static int write_and_close(int fd, const void *data, size_t bytes, bool durable)
{
    if (clab_write_all(fd, data, bytes) < 0 || (durable && fsync(fd) < 0)) {
        close_keeping_errno(fd);
        return -1;
    }
    return close(fd);
}

static int write_file(const char *path, const void *data, size_t bytes, bool sync)
{
    /* A device, a pipe or a link is written through, never replaced: rename would take /dev/null's place. */
    struct stat status;
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        return fd < 0 ? -1 : write_and_close(fd, data, bytes, false);
    }
    /* Not mkstemp: its files are private to the user, and a cache or a report is to have the umask's mode. */
    char *temporary = NULL;
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        struct clab_str name = {0};
        clab_str_addf(&name, "%s.%ld-%llx.tmp", path, (long)getpid(), (unsigned long long)clab_now_ns());
        free(temporary);
        temporary = clab_str_take(&name);
        if (!temporary) {
            errno = ENOMEM;
            return -1;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    int result = fd < 0 ? -1 : write_and_close(fd, data, bytes, sync);
    if (result == 0)
        result = rename(temporary, path);
    int saved = errno;
    if (fd >= 0 && result < 0)
        unlink(temporary);
    free(temporary);
    errno = saved;
    return result;
}

int clab_file_write_atomic(const char *path, const void *data, size_t bytes)
{
    return write_file(path, data, bytes, true);
}

int clab_file_write_quick(const char *path, const void *data, size_t bytes)
{
    return write_file(path, data, bytes, false);
}

enum { NAME_LIMIT = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Edits (insert, delete, replace, swap of neighbours; case counts for nothing) that turn `a` into `b`.
   requires: both at most NAME_LIMIT characters. */
static size_t edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t rows[3][NAME_LIMIT + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_bytes; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t best = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_bytes];
}

const char *clab_nearest_name(const char *word, const char *const *names, size_t count)
{
    size_t word_bytes = strlen(word);
    const char *nearest = NULL;
    size_t nearest_distance = word_bytes / 3 + 1;
    if (word_bytes > NAME_LIMIT)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_bytes = strlen(names[i]);
        if (name_bytes > NAME_LIMIT)
            continue;
        size_t distance = edit_distance(word, word_bytes, names[i], name_bytes);
        if (distance < nearest_distance) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}

const char *clab_path_shown(const char *path)
{
    char folder[4096];
    if (getcwd(folder, sizeof folder) == NULL)
        return path;
    size_t bytes = strlen(folder);
    bool below = strncmp(path, folder, bytes) == 0 && path[bytes] == '/';
    return below ? path + bytes + 1 : path;
}

void clab_unescape(char *name)
{
    char *to = name;
    for (const char *from = name; *from; to++) {
        size_t digits = 0;
        while (from[0] == '\\' && digits < 3 && from[1 + digits] >= '0' && from[1 + digits] <= '7')
            digits++;
        if (digits > 0) {
            unsigned value = 0;
            for (size_t i = 1; i <= digits; i++)
                value = value * 8 + (unsigned)(from[i] - '0');
            *to = (char)(value != 0 ? value & 0xff : '?');
            from += 1 + digits;
        } else {
            from += from[0] == '\\' && from[1] != '\0';
            *to = *from++;
        }
    }
    *to = '\0';
}
