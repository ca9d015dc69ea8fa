/* Source files as arrays of lines. */
#include "inspect/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct lines {
    const char **text;
    uint32_t count;
};

static struct lines *cut_lines(struct clab_sources *sources, const char *text, size_t bytes)
{
    struct lines *lines = clab_arena_alloc(&sources->arena, sizeof *lines);
    uint32_t n = 1;
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == '\n';
    if (lines == NULL || (lines->text = clab_arena_array(&sources->arena, n, sizeof *lines->text)) == NULL)
        return NULL;
    for (const char *at = text, *end = text + bytes; at <= end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        const char *start = at, *stop = next != NULL ? next : end;
        while (start < stop && isspace((unsigned char)*start))
            start++;
        while (stop > start && isspace((unsigned char)stop[-1]))
            stop--;
        char *copy = clab_arena_strndup(&sources->arena, start, (size_t)(stop - start));
        lines->text[lines->count++] = copy != NULL ? copy : "";
        if (next == NULL)
            break;
        at = next + 1;
    }
    return lines;
}

void clab_source_add(struct clab_sources *sources, const char *name, const char *text, size_t bytes)
{
    struct lines *lines = cut_lines(sources, text, bytes);
    char *key = clab_arena_strdup(&sources->arena, name);
    if (lines != NULL && key != NULL)
        (void)clab_map_set(&sources->files, key, strlen(key), lines);
}

const char *clab_source_line(struct clab_sources *sources, const char *file, uint32_t line)
{
    struct lines *lines = clab_map_get(&sources->files, file, strlen(file));
    if (lines == NULL) {
        size_t bytes = 0;
        char *text = clab_file_read(file, (size_t)64 << 20, &bytes);
        clab_source_add(sources, file, text != NULL ? text : "", bytes);
        free(text);
        lines = clab_map_get(&sources->files, file, strlen(file));
    }
    return lines != NULL && line > 0 && line <= lines->count ? lines->text[line - 1] : "";
}

void clab_sources_free(struct clab_sources *sources)
{
    clab_map_free(&sources->files);
    clab_arena_free(&sources->arena);
    memset(sources, 0, sizeof *sources);
}
