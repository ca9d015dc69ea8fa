/* The include scanner: which files a source may read, since NVRTC gives no dependency list. It looks at the
   text only, ignores conditionals, comments and strings, follows #include, #include_next and __has_include,
   and takes a name from every folder that has it; so it finds too much, never too little, among the folders
   it is given. The CUDA folders are not scanned: a key names them by their toolkit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "compile/cache.h"
#include "compile/sha256.h"

struct scan {
    const char *const *dirs;
    size_t dir_count;
    struct clab_arena arena;
    struct clab_map seen;
    struct clab_str *out;
    bool unknown;
};

enum { DEPTH_LIMIT = 200 }; /* NVRTC gives up at 200 nested includes too */

static void scan_text(struct scan *scan, const char *path, const char *text, int depth);

static void scan_file(struct scan *scan, const char *path, int depth)
{
    size_t bytes;
    if (clab_map_get(&scan->seen, path, strlen(path)) != NULL)
        return;
    char *text = clab_file_read(path, (size_t)64 << 20, &bytes);
    if (text == NULL)
        return; /* not there: the next folder's turn */
    char *key = clab_arena_strdup(&scan->arena, path);
    char hex[65];
    clab_sha256_of(text, bytes, hex);
    if (key == NULL || !clab_map_set(&scan->seen, key, strlen(key), key))
        scan->unknown = true;
    clab_str_addf(scan->out, "%s %s\n", path, hex);
    if (depth >= DEPTH_LIMIT)
        scan->unknown = true;
    else
        scan_text(scan, path, text, depth + 1);
    free(text);
}

/* A name in quotes or angle brackets at `at`: looked up beside the includer and in every folder. */
static void scan_name(struct scan *scan, const char *path, const char *at, bool directive, int depth)
{
    while (*at == ' ' || *at == '\t' || *at == '(')
        at++;
    char close = *at == '"' ? '"' : *at == '<' ? '>' : '\0';
    if (close == '\0') {
        scan->unknown |= directive; /* #include MACRO; elsewhere on a line it is prose in a comment */
        return;
    }
    size_t length = strcspn(++at, close == '"' ? "\"\n" : ">\n");
    if (at[length] != close || length == 0 || length > 1024)
        return; /* no include that a compiler would take */
    char file[8192];
    if (at[0] == '/') {
        snprintf(file, sizeof file, "%.*s", (int)length, at);
        scan_file(scan, file, depth);
        return;
    }
    const char *slash = strrchr(path, '/');
    if (slash != NULL)
        snprintf(file, sizeof file, "%.*s/%.*s", (int)(slash - path), path, (int)length, at);
    else
        snprintf(file, sizeof file, "%.*s", (int)length, at);
    scan_file(scan, file, depth);
    for (size_t i = 0; i < scan->dir_count; i++) {
        snprintf(file, sizeof file, "%s/%.*s", scan->dirs[i], (int)length, at);
        scan_file(scan, file, depth);
    }
}

/* Line splices go first, as in the standard's translation phase 2; "\r\n" too. */
static void unsplice(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (from[0] == '\\' && from[1] == '\n')
            from += 2;
        else if (from[0] == '\\' && from[1] == '\r' && from[2] == '\n')
            from += 3;
        else
            *to++ = *from++;
    }
    *to = '\0';
}

static void scan_text(struct scan *scan, const char *path, const char *text, int depth)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        scan->unknown = true;
        return;
    }
    unsplice(copy);
    for (const char *at = copy; (at = strstr(at, "include")) != NULL;) {
        const char *word = at, *behind = at + strlen("include");
        at = behind;
        if (word - copy >= 6 && memcmp(word - 6, "__has_", 6) == 0) {
            if (strncmp(behind, "_next", 5) == 0)
                behind += 5;
            while (*behind == ' ' || *behind == '\t')
                behind++;
            if (*behind == '(') /* else: defined(__has_include), which reads nothing */
                scan_name(scan, path, behind, true, depth);
            continue;
        }
        /* Back over white space and comments to the '#' (or the digraph %:); else it is no directive. */
        const char *before = word;
        for (;;) {
            while (before > copy && (before[-1] == ' ' || before[-1] == '\t'))
                before--;
            if (before - copy < 2 || before[-1] != '/' || before[-2] != '*')
                break;
            for (before -= 2; before - copy >= 2 && !(before[-2] == '/' && before[-1] == '*');)
                before--;
            before -= before - copy >= 2 ? 2 : 0;
        }
        if (before > copy && before[-1] == '#')
            before -= 1;
        else if (before - copy >= 2 && before[-1] == ':' && before[-2] == '%')
            before -= 2;
        else
            continue;
        while (before > copy && (before[-1] == ' ' || before[-1] == '\t'))
            before--;
        bool directive =
            before == copy || before[-1] == '\n' || before[-1] == '/'; /* '/': a comment ends there */
        if (strncmp(behind, "_next", 5) == 0)
            behind += 5;
        for (;;) {
            while (*behind == ' ' || *behind == '\t')
                behind++;
            const char *end = behind[0] == '/' && behind[1] == '*' ? strstr(behind + 2, "*/") : NULL;
            if (end == NULL)
                break;
            behind = end + 2;
        }
        scan_name(scan, path, behind, directive, depth);
    }
    free(copy);
}

bool clab_scan_includes(const char *path, const char *text, const char *const *dirs, size_t dir_count,
                        struct clab_str *out)
{
    struct scan scan = {.dirs = dirs, .dir_count = dir_count, .out = out};
    scan_text(&scan, path, text, 0);
    clab_map_free(&scan.seen);
    clab_arena_free(&scan.arena);
    return !scan.unknown && !out->failed;
}
